import Bytes
import Dispatch
import Synchronization

/// Reads a capture file on a separate thread, up to reassembled streams, a few blocks ahead of the consumer.
///
/// Copying a gigabyte out of the page cache, decoding its packets and putting streams in order takes about as long as
/// taking the streams apart; on two cores the two happen at the same time.
public final class StreamReader {
  private let work: ReadingWork

  /// Starts reading a file. `filter` is used on the reading thread only.
  public convenience init(_ file: consuming CaptureFile, options: CaptureOptions, filter: PacketFilter? = nil) {
    self.init(Recording(file), options: options, filter: filter)
  }

  /// Starts reading a recording of any number of files.
  ///
  /// - Parameters:
  ///   - depth: batches that are read ahead at most.
  ///   - queue: read on this one, a batch at a time, so that its other work comes between; `nil`: on a thread of its own.
  public init(
    _ recording: Recording, options: CaptureOptions, filter: PacketFilter? = nil, depth: Int = 4,
    queue: DispatchQueue? = nil
  ) {
    work = ReadingWork(recording, options: options, filter: filter, depth: depth, queue: queue)
    work.start()
  }

  /// A queue to read on.
  public static func makeQueue() -> DispatchQueue { DispatchQueue(label: "apnscope.reading", qos: .userInitiated) }

  deinit { work.cancel() }

  /// Calls `body` with one batch after the other, until the file ends or `body` returns `false`.
  ///
  /// - Parameter idle: asked five times a second while nothing comes, as from a quiet pipe; `false` ends it.
  /// - Returns: the summary of all files together after they were read, or `nil` if reading was ended before; the
  ///   `files` of batches describe each.
  /// - Throws: what filtering threw, or reading the only file; the batches before it have been handed over.
  public func forEachBatch(
    idle: () -> Bool, _ body: (borrowing EventBatch) throws -> Bool
  ) throws -> CaptureFileEnd? {
    try forEachBatch(ahead: 1, idle: idle) { try body($0[0]) }
  }

  /// The same for a consumer that looks ahead.
  ///
  /// - Parameters:
  ///   - ahead: batches to look at, if they have come.
  ///   - body: takes the first of the batches. The others come again.
  package func forEachBatch(
    ahead: Int, idle: () -> Bool, _ body: ([EventBatch]) throws -> Bool
  ) throws -> CaptureFileEnd? {
    defer { work.cancel() }
    var batches: [EventBatch] = []
    var hasEnded = false
    while true {
      while !hasEnded && batches.count < ahead {
        guard let next = work.next(within: batches.isEmpty ? .milliseconds(200) : .nanoseconds(0)) else {
          if !batches.isEmpty { break }
          if idle() { continue }
          return nil
        }
        switch next {
        case .batch(let batch): batches.append(batch)
        case .end: hasEnded = true
        }
      }
      if batches.isEmpty { return try work.end() }
      let goesOn = try body(batches)
      work.giveBack(batches.removeFirst())
      if !goesOn { return nil }
    }
  }
}

/// The summary of a file after it was read.
public struct CaptureFileEnd: Sendable {
  public var linkTypes: [LinkType] = []
  public var warnings: [String] = []
  /// Packets that the capture lost.
  public var losses: [CaptureLoss] = []
  /// Why it was not read to its end, or not at all, when the operating system did not let it be read.
  public var failure: CaptureError?
}

/// What the consuming thread takes of the reading one.
private enum Delivery: Sendable {
  case batch(EventBatch)
  case end
}

/// What the reading thread works with.
private struct Reading {
  private var source: RecordingReader
  private var path: PacketPath
  private let shard: Shard?
  private var failure: (any Error)?

  init(_ recording: Recording, _ options: CaptureOptions, _ filter: sending PacketFilter?) {
    source = RecordingReader(recording, options: options)
    path = PacketPath(options, filter)
    shard = options.shard
  }

  /// `false` after the last one.
  mutating func read(_ batch: inout EventBatch) -> Bool {
    batch.removeAll()
    batch.shard = shard
    var hasMore = false
    do { hasMore = try source.readBatch(&batch, &path) } catch { failure = error }
    if !hasMore {
      let blockLength = batch.block.count
      path.reassembler.finish { batch.add($0, $1, in: .none(blockLength: blockLength)) }
    }
    return hasMore
  }

  func end() throws -> CaptureFileEnd {
    if let failure { throw failure }
    return source.end
  }
}

/// What both threads see: the state of reading behind a lock that is free whenever it is taken, since the consuming
/// thread wants it only after the end; and batches, each of which belongs to one thread.
private final class ReadingWork: Sendable {
  private let reading: Mutex<Reading>
  private let ready = Handover<Delivery>()
  /// Used ones, whose memory is used again.
  private let spare = Mutex<[EventBatch]>([])
  /// Batches that may be read ahead; -1: none may, and reading has stopped for that.
  private let room: Mutex<Int>
  private let hasRoom = DispatchSemaphore(value: 0)
  private let isCancelled = Atomic<Bool>(false)
  private let queue: DispatchQueue
  private let isShared: Bool

  init(_ recording: Recording, options: CaptureOptions, filter: PacketFilter?, depth: Int, queue: DispatchQueue?) {
    self.queue = queue ?? StreamReader.makeQueue()
    isShared = queue != nil
    room = Mutex(max(1, depth) - 1)
    // The caller's filter may still be used by the thread of a recording before, and is for the next one.
    reading = Mutex(Reading(recording, options, filter?.another()))
  }

  func start() { queue.async { self.read() } }

  // MARK: the reading thread

  private func read() {
    while !isCancelled.load(ordering: .relaxed) && readBatch() {
      let hasRoomNow = room.withLock { room in
        room -= 1
        return room >= 0
      }
      if isShared {
        if hasRoomNow { start() }
        return
      }
      // A thread that waits goes on sooner than a queue starts again.
      if !hasRoomNow { hasRoom.wait() }
    }
    ready.put(.end)
  }

  /// `false` after the last one.
  private func readBatch() -> Bool {
    var batch = spare.withLock { $0.popLast() } ?? EventBatch()
    let hasMore = reading.withLock { $0.read(&batch) }
    ready.put(.batch(batch))
    return hasMore
  }

  // MARK: the consuming thread

  /// Waits for the next batch; `nil` when none came in time.
  func next(within interval: DispatchTimeInterval) -> Delivery? { ready.take(within: interval) }

  func giveBack(_ batch: consuming EventBatch) {
    let batch = batch
    spare.withLock { $0.append(batch) }
    makeRoom()
  }

  private func makeRoom() {
    let hadStopped = room.withLock { room in
      room += 1
      return room == 0
    }
    guard hadStopped else { return }
    if isShared { start() } else { hasRoom.signal() }
  }

  func end() throws -> CaptureFileEnd { try reading.withLock { try $0.end() } }

  /// Ends the reading thread soon and drops its batches.
  func cancel() {
    isCancelled.store(true, ordering: .relaxed)
    makeRoom()
  }
}
