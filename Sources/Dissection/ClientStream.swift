import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
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
    /// Another protocol, or a direction without messages of this protocol: bytes are only counted.
    case opaque
  }

  private var framer: RecordFramer<GatewayGrammar, CapturePosition>
  private(set) var session: BinarySession
  private var writeTimes: WriteTimes

  /// The connection's number in records.
  let connection: Int
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
    self.connection = connection
    framer = RecordFramer(grammar: GatewayGrammar(limits: options.limits), isAligned: true)
    session = BinarySession(maximumIdentifierRuns: options.maximumIdentifierRuns)
    writeTimes = WriteTimes(maximum: options.maximumWriteTimes)
  }

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
  mutating func beginAnywhere() {
    framer = RecordFramer(grammar: framer.grammar, isAligned: false)
    session.noteMissingBytes()
  }

  /// Prefetches the memory that belongs to the stream but lies outside of it.
  @inline(__always)
  func prefetch() { writeTimes.prefetch() }

  // MARK: notifications

  /// The fast path: counts the bytes, and decodes them if they are from a provider in whose stream a notification was
  /// found already; `false` otherwise.
  @inline(__always)
  mutating func readWholeFrames<Sink>(
    _ bytes: RawSpan, at offset: Int, fromHigh: Bool, _ mark: CapturePosition, into output: inout RecordEmitter<Sink>
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
  mutating func readAhead<Sink>(
    _ bytes: RawSpan, at position: StreamPosition, _ workspace: TLSWorkspace, into output: inout RecordEmitter<Sink>
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
  private mutating func readSealedAhead<Sink>(
    _ bytes: RawSpan, at position: StreamPosition, _ workspace: TLSWorkspace, into output: inout RecordEmitter<Sink>
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
  mutating func read<Sink>(
    _ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, into output: inout RecordEmitter<Sink>
  ) {
    let before = session.written
    var position = 0
    // The earliest sequence number at which the first found frame may have ended.
    var sequence = mark.sequence
    if framer.completeBeginning(bytes, &position) {
      Self.decodeAssembled(&framer, mark, connection, &session, &output)
    }
    while true {
      if let end = framer.endOfRecord(bytes, at: position) {
        Self.decode(
          bytes.extracting(position..<end), at: offset + position, mark, connection, &session, &output)
        position = end
      } else if framer.isStraight && position == bytes.byteCount {
        break
      } else if framer.keepBeginning(bytes, at: position, offset: offset, mark: mark) {
        break
      } else if !readSlowly(bytes, &position, at: offset, mark, &sequence, &output) {
        break
      }
    }
    noteWritten(since: before, mark, sequence, &output)
  }

  /// Takes one step other than reading the next record; `false` when all bytes are read.
  @inline(never)
  private mutating func readSlowly<Sink>(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: CapturePosition, _ sequence: inout UInt32,
    _ output: inout RecordEmitter<Sink>
  ) -> Bool {
    let step = framer.next(bytes, &position, at: offset, mark: mark)
    noteUnreadable()
    switch step {
    case .done: return false
    case .record(let range):
      Self.decode(bytes.extracting(range), at: offset + range.lowerBound, mark, connection, &session, &output)
    case .assembled:
      Self.decodeAssembled(&framer, mark, connection, &session, &output)
    case .recovered(let record, let offset, let mark):
      sequence = mark.sequence
      Self.decode(record.rawBytes, at: offset, mark, connection, &session, &output)
    case .damage(let damage): output.report(damage, .client, connection)
    }
    return true
  }

  /// Notifies the session at once: where the unreadable bytes end may only be known when the next frame is found, which
  /// may be after the response to them.
  private mutating func noteUnreadable() { if framer.hasSeenUnreadable { session.noteUnreadableBytes() } }

  /// Notes that `length` bytes from `offset` are missing.
  mutating func gap<Sink>(
    at offset: Int, length: Int, _ mark: CapturePosition, into output: inout RecordEmitter<Sink>
  ) {
    framer.gap(at: offset, length: length)
    session.noteMissingBytes()
    noteUnreadable()
    readFound(mark, &output)
  }

  /// Bytes that it holds until more comes.
  var heldBytes: Int { framer.heldBytes + session.heldBytes + writeTimes.heldBytes }

  /// Frees memory that is ready for the next frame.
  mutating func freeSpare() { framer.freeSpare() }

  /// Gives up the frame that has begun, and forgets what error responses are resolved with.
  mutating func drop<Sink>(_ mark: CapturePosition, into output: inout RecordEmitter<Sink>) {
    if !framer.isStraight { session.noteMissingBytes() }
    framer.drop()
    noteUnreadable()
    readFound(mark, &output)
    session.forgetIdentifiers()
    writeTimes.forget()
  }

  /// Notes that nothing more comes.
  mutating func finish<Sink>(_ mark: CapturePosition, into output: inout RecordEmitter<Sink>) {
    framer.finish()
    readFound(mark, &output)
  }

  /// Reads the records that a gap or the end completed.
  private mutating func readFound<Sink>(_ mark: CapturePosition, _ output: inout RecordEmitter<Sink>) {
    let before = session.written
    var sequence: UInt32?
    while true {
      switch framer.nextFound() {
      case .recovered(let record, let offset, let mark):
        sequence = sequence ?? mark.sequence
        Self.decode(record.rawBytes, at: offset, mark, connection, &session, &output)
      case .damage(let damage): output.report(damage, .client, connection)
      default: return noteWritten(since: before, mark, sequence ?? mark.sequence, &output)
      }
    }
  }

  /// Hands one frame to the session and the sink. Static, so that the frame may be borrowed from the framer.
  @inline(__always)
  private static func decode<Sink>(
    _ frame: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Int, _ session: inout BinarySession,
    _ output: inout RecordEmitter<Sink>
  ) {
    let place = RecordPlace(
      connection: connection, time: mark.time, packet: mark.packet, offset: offset, length: frame.byteCount)
    let fields: PushFields
    do throws(ParseError) {
      fields = try PushFields(parsing: frame)
    } catch {
      return decode(malformed: error, frame, at: place, &session, &output)
    }
    let index = session.write(identifier: fields.identifier, isKnownBad: fields.isKnownBad)
    if fields.token.length != 32 || fields.identifier == 0 || fields.payload.length == 0 {
      noteFaults(fields, frame, &session)
    }
    output.sink.receive(fields, frame, at: place, index: index)
  }

  /// Decodes a frame whose length is valid but whose items are not: it is counted like other notifications and has a
  /// fate.
  @inline(never)
  private static func decode<Sink>(
    malformed error: ParseError, _ frame: RawSpan, at place: RecordPlace, _ session: inout BinarySession,
    _ output: inout RecordEmitter<Sink>
  ) {
    let fields = PushFields(fitting: frame)
    let index = session.write(malformedWith: fields.identifier)
    output.summary.malformed += 1
    output.sink.receive(malformed: error.description, fields, frame, at: place, index: index)
  }

  /// Out of line: few notifications have an odd token or no payload, or count from 0.
  @inline(never)
  private static func noteFaults(
    _ fields: PushFields, _ frame: RawSpan, _ session: inout BinarySession
  ) {
    session.noteFaults(Push(fields, frame).faults, identifier: fields.identifier)
  }

  private static func decodeAssembled<Sink>(
    _ framer: inout RecordFramer<GatewayGrammar, CapturePosition>, _ mark: CapturePosition, _ connection: Int,
    _ session: inout BinarySession, _ output: inout RecordEmitter<Sink>
  ) {
    decode(framer.assembled, at: framer.start, mark, connection, &session, &output)
    framer.dropAssembled()
  }

  /// Notes when the notifications of one piece were written.
  ///
  /// - Parameter sequence: the sequence number after which all of the notifications end.
  private mutating func noteWritten<Sink>(
    since before: Int, _ mark: CapturePosition, _ sequence: UInt32, _ output: inout RecordEmitter<Sink>
  ) {
    let ended = session.written - before
    output.summary.notifications += ended
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

  /// Sends the sink the fates that became final since the last call; with `atEnd` all others too.
  mutating func reportFates<Sink: RecordSink>(atEnd: Bool = false, to sink: inout Sink) {
    let end = atEnd ? session.written : session.final
    guard end > reportedFates else { return }
    session.forEachFate(in: reportedFates..<end) { range, fate in
      sink.receive(
        FateRecord(connection: connection, first: range.lowerBound, last: range.upperBound - 1, fate: fate))
    }
    reportedFates = end
  }
}
