/// Reads the files of a recording into batches: block by block if no other file overlaps in time, otherwise packet by
/// packet in the order of time.
struct RecordingReader {
  private let files: [RecordedFile]
  private let firstNumber: Int
  private let options: CaptureOptions
  /// The index of the first file that was not opened yet.
  private var next = 0
  /// The open files, in the order of `files`.
  private var open: [OpenFile] = []
  /// Whether the next file begins before packets that were read already, because no more files could be opened.
  private var isBehind = false
  /// The bytes read from files that are closed.
  private var bytesReadBefore = 0
  /// The packets that wait to be sorted by time, if packets are sorted.
  private var order: PacketOrder?
  /// Whether packets were read too early for lack of room.
  private var hadNoRoom = false
  /// The clock for the silence of a pipe advances only while the reader waits for it. Otherwise, a reader that its
  /// consumer holds up would consider connections silent whose packets are in the pipe.
  private let began = ContinuousClock.now
  /// The time of that clock of the reassembler's latest tick.
  private var lastTick: ContinuousClock.Instant
  /// Whether anything becomes due while the pipe is silent.
  private var hasDue = false
  /// The time since which the pipe has been silent; `nil` if it is not.
  private var quietSince: ContinuousClock.Instant?
  /// The summary of all files that were read.
  private(set) var end = CaptureFileEnd()

  /// A class, because a noncopyable file cannot be in an array.
  private final class OpenFile {
    var file: CaptureFile
    let index: Int
    /// The latest packet time so far.
    var latest = Timestamp.none
    /// The index of the file's part in the current batch.
    var part: Int?
    /// Whether the file overlaps more files than may be merged.
    let isLate: Bool

    init(_ file: consuming CaptureFile, index: Int, isLate: Bool) {
      self.file = file
      self.index = index
      self.isLate = isLate
    }
  }

  /// The most packets, and the most copied bytes, of a batch of merged files.
  private static let mergedPackets = 4_096
  private static let mergedBytes = 1 << 19
  /// The interval at which the reassembler learns the time.
  private static let tick = Duration.milliseconds(100)

  init(_ recording: Recording, options: CaptureOptions) {
    files = recording.files
    firstNumber = recording.firstNumber
    self.options = options
    lastTick = began
    if let window = options.reorderWindow {
      order = PacketOrder(window: window, maximumBytes: options.maximumReorderBytes)
    }
  }

  /// Reads the next stream events into `batch`. Returns `false` if no more follow.
  mutating func readBatch(_ batch: inout EventBatch, _ path: inout PacketPath) throws -> Bool {
    if open.isEmpty, next < files.count { openNext(&batch) }
    repeat {
      tellTime(&batch, &path.reassembler)
      // The bytes of these events are in no block, and the next packets bring another block.
      if !batch.isEmpty { return true }
      if order != nil {
        try readOrdered(&batch, &path)
      } else if open.count > 1 {
        try merge(&batch, &path)
      } else if let only = open.first {
        try read(only, &batch, &path)
      }
    } while isQuiet && batch.isEmpty
    batch.bytesRead = bytesReadBefore + open.reduce(0) { $0 + $1.file.bytesRead }
    return !open.isEmpty || next < files.count || order?.isEmpty == false
  }

  // MARK: a pipe that stays open

  /// Whether no input of the pipe came within the patience.
  private var isQuiet: Bool { open.count == 1 && open[0].file.isQuiet }

  /// Tells the reassembler the time while one pipe is read: without packets, the time of packets stands still.
  private mutating func tellTime(_ batch: inout EventBatch, _ reassembler: inout TCPReassembler) {
    guard open.count == 1, next == files.count, open[0].file.size == nil else { return }
    let now = max(lastTick, began + open[0].file.waited)
    quietSince = isQuiet ? quietSince ?? now : nil
    if isQuiet || lastTick.duration(to: now) >= Self.tick {
      lastTick = now
      let blockLength = batch.block.count
      hasDue = reassembler.advance(to: now) {
        batch.add($0, $1, in: .none(blockLength: blockLength))
      }
    }
    // Events since the last time become due as well, and so do packets that wait to be sorted.
    let waits = !isQuiet || hasDue || order?.isEmpty == false
    open[0].file.patience = waits ? Self.tick : nil
  }

  /// Whether packets have waited for later ones as long as the reorder window.
  private var isWindowOver: Bool {
    guard isQuiet, let window = options.reorderWindow, window < .max, let quietSince else { return false }
    return quietSince.duration(to: began + open[0].file.waited) >= .nanoseconds(window)
  }

  // MARK: opening and closing

  private mutating func openNext(_ batch: inout EventBatch) {
    let index = next
    next += 1
    defer { isBehind = false }
    do throws(CaptureError) {
      var file = try files[index].open(options)
      if firstNumber > 0 { file.base = PacketNumber.joining(file: firstNumber + index, packet: 0) }
      open.append(OpenFile(file, index: index, isLate: isBehind))
    } catch {
      fail(error, index, &batch, latest: .none)
    }
  }

  private mutating func fail(_ error: CaptureError, _ index: Int, _ batch: inout EventBatch, latest: Timestamp) {
    var part = FilePart(file: index, latest: latest)
    part.end = CaptureFileEnd(failure: error)
    batch.files.append(part)
  }

  /// Handles an error in reading a file. Any other error than one of the file itself ends the reading of the recording.
  private mutating func end(_ file: OpenFile, _ failure: (any Error)?, _ batch: inout EventBatch) throws {
    var end = CaptureFileEnd(linkTypes: file.file.linkTypes, warnings: file.file.warnings, losses: file.file.losses)
    if let failure {
      guard let failure = failure as? CaptureError, failure.kind != .badFilter, files.count > 1 else { throw failure }
      end.failure = failure
    }
    if file.isLate {
      end.warnings.append(
        "overlaps in time more than \(options.maximumMergedFiles) files (--max-merged-files): it was read after them")
    }
    if hadNoRoom {
      end.warnings.append(
        "packets were read before their turn: more than \(options.maximumReorderBytes) bytes had to wait "
          + "(--max-reorder-bytes)")
    }
    file.file.handSecrets(to: &batch)
    var part = FilePart(file: file.index, latest: file.latest)
    part.end = end
    batch.files.append(part)
    bytesReadBefore += file.file.bytesRead
    open.removeAll { $0 === file }
    self.end.warnings += end.warnings
    for linkType in end.linkTypes where self.end.linkTypes.count < LinkTypeList.limit {
      if !self.end.linkTypes.contains(linkType) { self.end.linkTypes.append(linkType) }
    }
  }

  // MARK: one file

  private mutating func read(_ file: OpenFile, _ batch: inout EventBatch, _ path: inout PacketPath) throws {
    // Files without a known time follow after this one.
    let isFollowed = next < files.count && files[next].firstTime.isKnown
    let limit = isFollowed ? files[next].firstTime : Timestamp(nanoseconds: .max)
    batch.current = FilePart(file: file.index, latest: file.latest)
    let ending: Result<PacketWalk.BatchEnd, any Error>
    do {
      ending = .success(try file.file.readBatch(&batch, until: limit, &path))
    } catch {
      ending = .failure(error)
    }
    file.latest = batch.current.lastTime
    if batch.current.packets > 0 { batch.files.append(batch.current) }
    switch ending {
    case .success(.more), .success(.quiet): return
    case .success(.last): try end(file, nil, &batch)
    case .success(.held): _ = try nextInTime(&batch)
    case .failure(let error): try end(file, error, &batch)
    }
  }

  // MARK: files that overlap

  private var isFull: Bool { open.count >= max(2, options.maximumMergedFiles) }

  /// The open file with the earliest next packet, after opening files that begin before it; `nil` if no packet is left.
  private mutating func nextInTime(_ batch: inout EventBatch) throws -> OpenFile? {
    while let (file, time) = try earliest(&batch) {
      guard next < files.count, files[next].firstTime.isKnown, files[next].firstTime < time else { return file }
      if isFull {
        isBehind = true
        return file
      }
      openNext(&batch)
    }
    return nil
  }

  /// The open file with the earliest next packet, and the time of that packet. Files without a further packet are
  /// closed.
  private mutating func earliest(_ batch: inout EventBatch) throws -> (file: OpenFile, time: Timestamp)? {
    var first: (file: OpenFile, time: Timestamp)?
    for file in open {
      var failure: (any Error)?
      do { if try !file.file.holdNext() { failure = nil } } catch { failure = error }
      guard let held = file.file.held else {
        if failure == nil && file.file.isQuiet { continue }
        try end(file, failure, &batch)
        continue
      }
      // With equal times, the packet of the earlier file comes first.
      if let known = first, known.time <= held.packet.time { continue }
      first = (file, held.packet.time)
    }
    return first
  }

  private mutating func merge(_ batch: inout EventBatch, _ path: inout PacketPath) throws {
    var parts = MergedParts(of: open)
    defer { batch.files.insert(contentsOf: parts.all, at: 0) }
    for _ in 0..<Self.mergedPackets where batch.copiedBytes < Self.mergedBytes {
      guard let file = try nextInTime(&batch), open.count > 1, let held = file.file.takeHeld() else { return }
      try parts.withPart(of: file, &batch) { batch in try batch.take(held, &path) }
    }
    for file in open { file.file.handSecrets(to: &batch) }
  }

  /// The parts of files in a batch of merged files, in the order of their first packets.
  private struct MergedParts {
    private(set) var all: [FilePart] = []

    init(of files: [OpenFile]) { for file in files { file.part = nil } }

    /// Calls `body` with the file's part as the current part of the batch.
    mutating func withPart(
      of file: OpenFile, _ batch: inout EventBatch, _ body: (inout EventBatch) throws -> Void
    ) throws {
      let place = file.part ?? all.count
      if file.part == nil {
        all.append(FilePart(file: file.index, latest: file.latest))
        file.part = place
      }
      swap(&batch.current, &all[place])
      defer {
        swap(&batch.current, &all[place])
        file.latest = all[place].lastTime
      }
      try body(&batch)
    }
  }

  // MARK: packets that are late

  private mutating func readOrdered(_ batch: inout EventBatch, _ path: inout PacketPath) throws {
    guard var order = order.take() else { return }
    defer { self.order = order }
    var parts = MergedParts(of: open)
    defer { batch.files.insert(contentsOf: parts.all, at: 0) }
    for _ in 0..<Self.mergedPackets where batch.copiedBytes < Self.mergedBytes {
      let file = try nextInTime(&batch)
      if let file, let held = file.file.takeHeld() {
        try parts.withPart(of: file, &batch) { batch in
          if try batch.note(held.packet, held.bytes.rawBytes, path.filter) { order.add(held) }
        }
      }
      // After the last file, all waiting packets are read.
      let isLast = file == nil && next == files.count && (!isQuiet || isWindowOver)
      while let packet = order.next(isLast: isLast) {
        batch.deliver(packet, &path)
        if isLast && batch.copiedBytes >= Self.mergedBytes { return }
      }
      hadNoRoom = order.wasFull
      if file == nil { return }
    }
    for file in open { file.file.handSecrets(to: &batch) }
  }
}
