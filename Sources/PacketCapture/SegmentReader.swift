import Bytes
import Dispatch
import Synchronization

/// Reads a capture file on a thread of its own, down to TCP segments, a few blocks ahead of whoever takes them.
///
/// Copying a gigabyte out of the page cache and finding the segments in it takes as long as dissecting them; on two
/// cores the two happen at the same time.
public final class SegmentReader {
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
  /// - Returns: the file when it has been read, or `nil` when `body` ended it before.
  /// - Throws: what reading or filtering threw; the batches before it have been handed over.
  public func forEachBatch(_ body: (borrowing SegmentBatch) throws -> Bool) throws -> CaptureFileEnd? {
    while true {
      guard let batch = work.take() else { return try work.end() }
      let goesOn = try body(batch)
      work.giveBack(batch)
      if !goesOn {
        work.cancel()
        return nil
      }
    }
  }
}

/// What is known of a file when it has been read.
public struct CaptureFileEnd: Sendable {
  public var linkTypes: [LinkType]
  public var warnings: [String]
  public var secrets: [DecryptionSecrets]
}

/// The state that both threads see.
///
/// `@unchecked Sendable` is true because of who touches what when: `file`, `decoder`, `filter` and `failure` belong to
/// the reading thread until it has signalled its last batch, which is the only time at which the other one looks at
/// them; each slot belongs to the reader between `free` and `full` and to the taker between `full` and `free`.
private final class ReadingWork: @unchecked Sendable {
  private static let slotCount = 4

  private var file: CaptureFile
  private var decoder: PacketDecoder
  private let filter: PacketFilter?
  private var failure: (any Error)?

  private var slots: [SegmentBatch?] = Array(repeating: nil, count: slotCount)
  private var spare: [SegmentBatch] = Array(repeating: SegmentBatch(), count: slotCount)
  private let spareLock = Mutex(())
  private let free = DispatchSemaphore(value: slotCount)
  private let full = DispatchSemaphore(value: 0)
  private let isCancelled = Atomic<Bool>(false)
  private var writeSlot = 0
  private var readSlot = 0

  init(_ file: consuming CaptureFile, options: CaptureOptions, filter: PacketFilter?) {
    self.file = file
    self.filter = filter
    decoder = PacketDecoder(options: options)
  }

  // MARK: the reading thread

  func run() {
    while !isCancelled.load(ordering: .relaxed) {
      free.wait()
      var batch = spareLock.withLock { _ in spare.popLast() } ?? SegmentBatch()
      batch.removeAll()
      var hasMore = false
      do { hasMore = try file.readBatch(&batch, &decoder, filter) } catch { failure = error }
      slots[writeSlot] = batch
      writeSlot = (writeSlot + 1) % Self.slotCount
      full.signal()
      if !hasMore { break }
    }
    free.wait()
    slots[writeSlot] = nil
    full.signal()
  }

  // MARK: the taking thread

  /// The next batch; `nil` at the end.
  func take() -> SegmentBatch? {
    full.wait()
    let batch = slots[readSlot].take()
    readSlot = (readSlot + 1) % Self.slotCount
    return batch
  }

  func giveBack(_ batch: SegmentBatch) {
    spareLock.withLock { _ in spare.append(batch) }
    free.signal()
  }

  func end() throws -> CaptureFileEnd {
    if let failure { throw failure }
    return CaptureFileEnd(linkTypes: file.linkTypes, warnings: file.warnings, secrets: file.secrets)
  }

  func cancel() {
    isCancelled.store(true, ordering: .relaxed)
    // Whatever the reading thread waits for, it finds.
    free.signal()
    free.signal()
  }
}
