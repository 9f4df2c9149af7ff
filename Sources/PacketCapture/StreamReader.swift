import Bytes
import Dispatch
import Synchronization

/// Reads a capture file on a separate thread, up to reassembled streams, a few blocks ahead of the consumer.
///
/// Copying a gigabyte out of the page cache, decoding its packets and putting streams in order takes about as long as
/// taking the streams apart; on two cores the two happen at the same time.
public final class StreamReader {
  private let work: ReadingWork

  /// Starts reading. `filter` is used on the reading thread only.
  public init(_ file: consuming CaptureFile, options: CaptureOptions, filter: PacketFilter? = nil) {
    work = ReadingWork(file, options: options, filter: filter)
    let work = work
    let thread = DispatchQueue(label: "apnscope.reading", qos: .userInitiated)
    thread.async { work.run() }
  }

  deinit { work.cancel() }

  /// Calls `body` with one batch after the other, until the file ends or `body` returns `false`.
  ///
  /// - Parameter idle: asked five times a second while nothing comes, as from a quiet pipe; `false` ends it.
  /// - Returns: the summary of the file after it was read, or `nil` if it was ended before.
  /// - Throws: what reading or filtering threw; the batches before it have been handed over.
  public func forEachBatch(
    idle: () -> Bool, _ body: (borrowing EventBatch) throws -> Bool
  ) throws -> CaptureFileEnd? {
    defer { work.cancel() }
    while true {
      while !work.wait(.milliseconds(200)) { if !idle() { return nil } }
      guard let batch = work.take() else { return try work.end() }
      let goesOn = try body(batch)
      work.giveBack(batch)
      if !goesOn { return nil }
    }
  }
}

/// The summary of a file after it was read.
public struct CaptureFileEnd: Sendable {
  public var linkTypes: [LinkType]
  public var warnings: [String]
}

/// The state that both threads see.
///
/// `@unchecked Sendable` is valid because of exclusive ownership: `file`, `decoder`, `reassembler`, `filter` and
/// `failure` belong to the reading thread until it has handed over the end; only then does the other thread access
/// them. Batches are handed over under a lock.
private final class ReadingWork: @unchecked Sendable {
  /// Blocks that are read ahead at most.
  private static let depth = 4

  private var file: CaptureFile
  private var decoder: PacketDecoder
  private var reassembler: TCPReassembler
  private let filter: PacketFilter?
  private var failure: (any Error)?

  /// Batches that wait to be taken, `nil` for the end; and used ones, whose memory is used again.
  private let ready = Mutex<[EventBatch?]>([])
  private let spare = Mutex<[EventBatch]>([])
  private let room = DispatchSemaphore(value: 0)
  private let count = DispatchSemaphore(value: 0)
  private let isCancelled = Atomic<Bool>(false)

  init(_ file: consuming CaptureFile, options: CaptureOptions, filter: PacketFilter?) {
    self.file = file
    self.filter = filter
    decoder = PacketDecoder(options: options)
    reassembler = TCPReassembler(options: options.reassembly)
    // Signalled instead of created with this value: libdispatch traps when a semaphore is freed below its initial
    // value, which happens if the consumer stops early.
    for _ in 0..<Self.depth { room.signal() }
  }

  // MARK: the reading thread

  func run() {
    var hasMore = true
    while hasMore && !isCancelled.load(ordering: .relaxed) {
      room.wait()
      var batch = spare.withLock { $0.popLast() } ?? EventBatch()
      batch.removeAll()
      do {
        hasMore = try file.readBatch(&batch, &decoder, &reassembler, filter)
      } catch {
        failure = error
        hasMore = false
      }
      if !hasMore {
        let blockLength = batch.block.count
        reassembler.finish { batch.add($0, $1, in: RawSpan(), at: 0, blockLength: blockLength) }
      }
      handOver(batch)
    }
    handOver(nil)
  }

  private func handOver(_ batch: EventBatch?) {
    ready.withLock { $0.append(batch) }
    count.signal()
  }

  // MARK: the consuming thread

  /// Waits for the next batch; `false` when none came in time.
  func wait(_ interval: DispatchTimeInterval) -> Bool { count.wait(timeout: .now() + interval) == .success }

  /// The batch that was waited for; `nil` at the end.
  func take() -> EventBatch? { ready.withLock { $0.removeFirst() } }

  func giveBack(_ batch: consuming EventBatch) {
    let batch = batch
    spare.withLock { $0.append(batch) }
    room.signal()
  }

  func end() throws -> CaptureFileEnd {
    if let failure { throw failure }
    return CaptureFileEnd(linkTypes: file.linkTypes, warnings: file.warnings)
  }

  /// Ends the reading thread soon and drops its batches.
  func cancel() {
    isCancelled.store(true, ordering: .relaxed)
    room.signal()
  }
}
