import Bytes
import Dispatch
import Synchronization

/// Reads a capture on a separate thread, up to reassembled streams, a few blocks ahead of the consumer.
///
/// Copying a gigabyte from the page cache, decoding its packets and reassembling streams takes about as long as
/// dissecting the streams; on two cores both happen at the same time. Reading begins with the initializer and ends with
/// `forEachBatch(idle:_:)` or when the reader is released.
public final class StreamReader {
  private let work: ReadingWork

  /// Starts reading a file.
  ///
  /// - Parameters:
  ///   - file: the file; the reader takes ownership.
  ///   - options: limits on memory, and what to read.
  ///   - filter: packets that do not match are not decoded. The reader copies the filter for its thread.
  public convenience init(_ file: consuming CaptureFile, options: CaptureOptions, filter: PacketFilter? = nil) {
    self.init(Recording(file), options: options, filter: filter)
  }

  /// Starts reading a recording of any number of files.
  ///
  /// - Parameters:
  ///   - recording: the files, in reading order.
  ///   - options: limits on memory, and what to read.
  ///   - filter: packets that do not match are not decoded. The reader copies the filter for its thread.
  ///   - depth: the most batches that are read ahead.
  ///   - queue: a queue to read on, one batch at a time, so that other work on the queue can run in between; `nil`: a
  ///     thread of the reader's own.
  public init(
    _ recording: Recording, options: CaptureOptions, filter: PacketFilter? = nil, depth: Int = 4,
    queue: DispatchQueue? = nil
  ) {
    work = ReadingWork(recording, options: options, filter: filter, depth: depth, queue: queue)
    work.start()
  }

  /// A queue to read on, for several recordings in a row.
  public static func makeQueue() -> DispatchQueue { DispatchQueue(label: "apnscope.reading", qos: .userInitiated) }

  deinit { work.cancel() }

  /// Calls `body` with one batch after the other, until the capture ends or `body` returns `false`. To be called once.
  ///
  /// - Parameters:
  ///   - idle: called five times a second while nothing arrives, as from a quiet pipe; `false` ends the reading.
  ///   - body: receives a batch, which is borrowed for the call.
  /// - Returns: the summary of all files after they were read; `nil` if `idle` or `body` ended the reading. The `files`
  ///   of batches have a summary of each file.
  /// - Throws: what `body` throws; a `CaptureError` if the filter does not compile for a link type, or if the only file
  ///   cannot be read. `body` has received all batches before the error.
  public func forEachBatch(
    idle: () -> Bool, _ body: (borrowing EventBatch) throws -> Bool
  ) throws -> CaptureFileEnd? {
    try forEachBatch(ahead: 1, idle: idle) { try body($0[0]) }
  }

  /// Like `forEachBatch(idle:_:)`, for a consumer that looks ahead.
  ///
  /// - Parameters:
  ///   - ahead: the most batches to look at, if they have arrived.
  ///   - body: consumes the first of the batches; the others are passed again.
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

/// The summary of a file, or of all files of a recording, after reading.
public struct CaptureFileEnd: Sendable {
  /// The link types, in the order in which they appear, at most 64.
  public var linkTypes: [LinkType] = []
  /// The problems of the files, for the user.
  public var warnings: [String] = []
  /// The packets that were lost in capturing.
  public var losses: [CaptureLoss] = []
  /// The error if the operating system failed to open the file or to read it to its end.
  public var failure: CaptureError?
}

/// What the reading thread passes to the consuming thread.
private enum Delivery: Sendable {
  case batch(EventBatch)
  case end
}

/// The state of the reading thread.
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

  /// Reads a batch. Returns `false` for the last one.
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

/// The state that both threads share: the state of reading, behind a lock that is never contended, since the consuming
/// thread takes it only after the end; and batches, each of which belongs to one thread.
private final class ReadingWork: Sendable {
  private let reading: Mutex<Reading>
  private let ready = Handover<Delivery>()
  /// Consumed batches, whose memory is reused.
  private let spare = Mutex<[EventBatch]>([])
  /// The number of batches that may be read ahead; −1: none, and the reading has stopped.
  private let room: Mutex<Int>
  private let hasRoom = DispatchSemaphore(value: 0)
  private let isCancelled = Atomic<Bool>(false)
  private let queue: DispatchQueue
  private let isShared: Bool

  init(_ recording: Recording, options: CaptureOptions, filter: PacketFilter?, depth: Int, queue: DispatchQueue?) {
    self.queue = queue ?? StreamReader.makeQueue()
    isShared = queue != nil
    room = Mutex(max(1, depth) - 1)
    // The caller may still use the filter, also for the next recording.
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
      // A waiting thread resumes faster than a queue starts a block.
      if !hasRoomNow { hasRoom.wait() }
    }
    ready.put(.end)
  }

  /// Reads a batch. Returns `false` for the last one.
  private func readBatch() -> Bool {
    var batch = spare.withLock { $0.popLast() } ?? EventBatch()
    let hasMore = reading.withLock { $0.read(&batch) }
    ready.put(.batch(batch))
    return hasMore
  }

  // MARK: the consuming thread

  /// Waits for the next batch; `nil` if none arrived in time.
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

  /// Makes the reading thread end soon and drops its batches.
  func cancel() {
    isCancelled.store(true, ordering: .relaxed)
    makeRoom()
  }
}
