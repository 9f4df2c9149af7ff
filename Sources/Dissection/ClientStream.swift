import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import Records
import TLSDecryption

/// The part of a connection that every packet and notification touches: its client stream's framer, the session, and
/// how its ways are read.
///
/// It is a value in an array of the dissector and not a property of `Connection`, because access to a class is checked
/// at run time, which would cost more than decoding a notification does.
struct ClientStream {
  /// How one direction's bytes are read.
  enum ReadingMode {
    /// Too few bytes were seen to decide.
    case undecided
    case gateway
    case responses
    case feedback
    case http2
    case messages
    /// Another protocol, or a direction without messages of this protocol: bytes are only counted.
    case opaque
  }

  private var frames: FrameReader
  private var writeTimes: WriteTimes

  /// Decrypts the bytes if they are TLS; the plaintext is read instead.
  var tls: TLSStream?
  /// The number of notifications whose fates were passed to the sink: all before this index.
  private var reportedFates = 0
  /// Whether the client is the flow's high end; with TLS only.
  var clientIsHigh = false
  /// How each direction is read, and its bytes so far; `low` is what the flow's low end sent.
  var readings = (low: ReadingMode.undecided, high: ReadingMode.undecided)
  private(set) var byteCounts = (low: 0, high: 0)

  init(connection: Int, options: DissectionOptions) {
    frames = FrameReader(
      connection: connection, limits: options.limits, maximumIdentifierRuns: options.maximumIdentifierRuns)
    writeTimes = WriteTimes(maximum: options.maximumWriteTimes)
  }

  /// The connection's number in records.
  @inline(__always)
  var connection: Int { frames.connection }
  @inline(__always)
  var session: BinarySession {
    _read { yield frames.session }
    _modify { yield &frames.session }
  }

  /// The connection's number, and the number of its next notification.
  var standing: (connection: Int, next: Int) { (connection, session.written) }

  @inline(__always)
  func side(fromHigh: Bool) -> TLSSide { fromHigh == clientIsHigh ? .client : .server }
  @inline(__always)
  func isHigh(_ side: TLSSide) -> Bool { (side == .client) == clientIsHigh }

  @inline(__always)
  func reading(fromHigh: Bool) -> ReadingMode { fromHigh ? readings.high : readings.low }

  @inline(__always)
  mutating func count(_ bytes: Int, fromHigh: Bool) {
    if fromHigh { byteCounts.high += bytes } else { byteCounts.low += bytes }
  }

  /// The beginning of the stream was not captured.
  mutating func beginAnywhere() { frames.beginAnywhere() }

  /// Prefetches the memory that belongs to the stream but lies outside of it.
  @inline(__always)
  func prefetch() { writeTimes.prefetch() }

  // MARK: notifications

  /// The fast path: counts the bytes, and decodes them if they are from a provider in whose stream a notification was
  /// found already; `false` otherwise.
  @inline(__always)
  mutating func readWholeFrames(
    _ bytes: RawSpan, at offset: Int, fromHigh: Bool, _ mark: CapturePosition, into output: inout RecordEmitter
  ) -> Bool {
    count(bytes.byteCount, fromHigh: fromHigh)
    guard session.written > 0, reading(fromHigh: fromHigh) == .gateway else { return false }
    read(bytes, at: offset, mark, into: &output)
    return true
  }

  /// Reads, on any thread, bytes that need nothing but this stream: bytes of a provider in whose stream a notification
  /// was already found; under TLS, only application data records whose keys are proven.
  ///
  /// - Returns: the number of bytes read, from the first on, and of notifications found; `nil` if nothing was done.
  @inline(__always)
  mutating func readAhead(
    _ bytes: RawSpan, at position: StreamPosition, _ workspace: TLSWorkspace, into output: inout RecordEmitter
  ) -> (taken: Int, notifications: Int)? {
    let before = session.written
    guard before > 0, reading(fromHigh: position.fromHigh) == .gateway else { return nil }
    if tls != nil { return readSealedAhead(bytes, at: position, workspace, into: &output) }
    let mark = CapturePosition(position)
    count(bytes.byteCount, fromHigh: position.fromHigh)
    read(bytes, at: position.offset, mark, into: &output)
    return (bytes.byteCount, session.written - before)
  }

  @inline(never)
  private mutating func readSealedAhead(
    _ bytes: RawSpan, at position: StreamPosition, _ workspace: TLSWorkspace, into output: inout RecordEmitter
  ) -> (taken: Int, notifications: Int)? {
    let before = session.written
    let fromHigh = position.fromHigh
    let mark = CapturePosition(position)
    let taken = tls?.receiveStraight(
      bytes, from: side(fromHigh: fromHigh), at: CapturePoint(position), workspace
    ) { event, _, offset, _ in
      guard case .bytes(let content) = event else { return }
      count(content.byteCount, fromHigh: fromHigh)
      read(content, at: offset, mark, into: &output)
    }
    return taken.map { ($0, session.written - before) }
  }

  /// Decodes what these bytes complete.
  ///
  /// - Parameter offset: stream offset of the first byte.
  mutating func read(
    _ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, into output: inout RecordEmitter
  ) {
    let before = session.written
    var position = 0
    // The earliest sequence number at which the first found frame may have ended.
    var sequence = mark.sequence
    while !output.sink.readFrames(bytes, &position, at: offset, mark, &frames) {
      guard readSlowly(bytes, &position, at: offset, mark, &sequence, &output) else { break }
    }
    noteWritten(since: before, mark, sequence, &output)
  }

  /// Takes one step other than reading the next record; `false` when all bytes are read.
  @inline(never)
  private mutating func readSlowly(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: CapturePosition, _ sequence: inout UInt32,
    _ output: inout RecordEmitter
  ) -> Bool {
    let step = frames.framer.next(bytes, &position, at: offset, mark: mark)
    noteUnreadable()
    switch step {
    case .done: return false
    case .record(let range):
      frames.decode(bytes.extracting(range), at: offset + range.lowerBound, mark, into: &output.sink)
    case .assembled: frames.decodeAssembled(mark, into: &output.sink)
    case .recovered(let record, let offset, let mark):
      sequence = mark.sequence
      frames.decode(record.rawBytes, at: offset, mark, into: &output.sink)
    case .damage(let damage): output.report(damage, .client, connection)
    }
    return true
  }

  /// Notifies the session at once: the end of the unreadable bytes may only be known when the next frame is found,
  /// which may be after the response to these bytes.
  private mutating func noteUnreadable() { if frames.framer.hasSeenUnreadable { session.noteUnreadableBytes() } }

  /// Notes that `length` bytes from `offset` are missing.
  mutating func gap(
    at offset: Int, length: Int, _ mark: CapturePosition, into output: inout RecordEmitter
  ) {
    frames.framer.gap(at: offset, length: length)
    session.noteMissingBytes()
    noteUnreadable()
    readFound(mark, &output)
  }

  /// Bytes that it holds until more comes.
  var heldBytes: Int { frames.framer.heldBytes + session.heldBytes + writeTimes.heldBytes }

  /// Frees memory that is ready for the next frame.
  mutating func freeSpare() { frames.framer.freeSpare() }

  /// Drops the frame that has begun, and the identifiers by which error responses are resolved.
  mutating func drop(_ mark: CapturePosition, into output: inout RecordEmitter) {
    if !frames.framer.isStraight { session.noteMissingBytes() }
    frames.framer.drop()
    noteUnreadable()
    readFound(mark, &output)
    session.forgetIdentifiers()
    writeTimes.forget()
  }

  /// Notes that nothing more comes.
  mutating func finish(_ mark: CapturePosition, into output: inout RecordEmitter) {
    frames.framer.finish()
    readFound(mark, &output)
  }

  /// Reads the records that a gap or the end completed.
  private mutating func readFound(_ mark: CapturePosition, _ output: inout RecordEmitter) {
    let before = session.written
    var sequence: UInt32?
    while true {
      switch frames.framer.nextFound() {
      case .recovered(let record, let offset, let mark):
        sequence = sequence ?? mark.sequence
        frames.decode(record.rawBytes, at: offset, mark, into: &output.sink)
      case .damage(let damage): output.report(damage, .client, connection)
      default: return noteWritten(since: before, mark, sequence ?? mark.sequence, &output)
      }
    }
  }

  /// Notes when the notifications of one piece were written.
  ///
  /// - Parameter sequence: the sequence number after which all of the notifications end.
  private mutating func noteWritten(
    since before: Int, _ mark: CapturePosition, _ sequence: UInt32, _ output: inout RecordEmitter
  ) {
    let ended = session.written - before
    output.summary.notifications += ended
    output.summary.malformed += frames.takeMalformed()
    if ended > 0 { writeTimes.note(before, mark, sequence) }
    // With TLS a segment may have many records; the caller counts the segment.
    if tls == nil { output.sink.segment(notifications: ended, at: mark.time) }
  }

  // MARK: responses

  /// Applies an error response; returns its interpretation and its latency, which is absent when it would be negative.
  mutating func receive(
    _ response: ErrorResponse, at mark: CapturePosition
  ) -> (verdict: BinarySession.Naming, latencyNanoseconds: Int64?) {
    let verdict = session.receive(response, sent: writeTimes.count(acknowledgedBy: mark.acknowledgement) ?? .max)
    return (verdict, latency(of: verdict, at: mark.time))
  }

  /// Applies a response after its turn in the capture, if it is proven that the notification it names was written
  /// before it; otherwise it names none.
  ///
  /// - Parameter before: the number of notifications that precede it in the capture.
  mutating func receiveLate(
    _ response: ErrorResponse, at mark: CapturePosition, after before: Int
  ) -> (verdict: BinarySession.Naming, latencyNanoseconds: Int64?) {
    var later = session
    let acknowledged = writeTimes.count(acknowledgedBy: mark.acknowledgement)
    var verdict = later.receive(response, sent: acknowledged ?? .max)
    let latency = latency(of: verdict, at: mark.time)
    if let named = verdict.notification {
      guard acknowledged != nil || named < before || latency != nil else {
        (verdict.notification, verdict.accepted, verdict.candidates) = (nil, nil, 0)
        return (verdict, nil)
      }
      session = later
    }
    return (verdict, latency)
  }

  /// The number of notifications that a response's packet acknowledges.
  func acknowledged(by mark: CapturePosition) -> Int? {
    writeTimes.count(acknowledgedBy: mark.acknowledgement).map { min($0, session.written) }
  }

  private func latency(of verdict: BinarySession.Naming, at time: Timestamp) -> Int64? {
    let written = verdict.notification.flatMap { writeTimes.time(of: $0) }
    return written.flatMap { time.nanoseconds(since: $0) }.flatMap { $0 >= 0 ? $0 : nil }
  }

  // MARK: fates

  /// Passes the fates that became final since the last call to the sink; with `atEnd` all remaining fates.
  mutating func reportFates(atEnd: Bool = false, to sink: inout any RecordSink) {
    let end = atEnd ? session.written : session.final
    guard end > reportedFates else { return }
    session.forEachFate(in: reportedFates..<end) { range, fate in
      sink.receive(
        FateRecord(connection: connection, first: range.lowerBound, last: range.upperBound - 1, fate: fate))
    }
    reportedFates = end
  }
}
