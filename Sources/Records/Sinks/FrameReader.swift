import BinaryProtocol
import Bytes
import PushModel

/// The frames of one provider's stream and the session that they belong to.
///
/// The value does not depend on connections: the dissector passes it the pieces of a stream, and applies error
/// responses to its session.
public struct FrameReader: Sendable {
  @usableFromInline package var framer: RecordFramer<GatewayGrammar, CapturePosition>
  @usableFromInline package var session: BinarySession
  /// The connection's number in records.
  @usableFromInline package let connection: Int
  /// Frames whose items do not fit their length, since the last call of `takeMalformed`.
  @usableFromInline package var malformed = 0

  package init(connection: Int, limits: ProtocolLimits, maximumIdentifierRuns: Int) {
    self.connection = connection
    framer = RecordFramer(grammar: GatewayGrammar(limits: limits), isAligned: true)
    session = BinarySession(maximumIdentifierRuns: maximumIdentifierRuns)
  }

  /// Notes that the beginning of the stream was not captured.
  package mutating func beginAnywhere() {
    framer = RecordFramer(grammar: framer.grammar, isAligned: false)
    session.noteMissingBytes()
  }

  /// Returns the number of frames since the last call whose items do not fit their length.
  package mutating func takeMalformed() -> Int {
    defer { malformed = 0 }
    return malformed
  }

  /// Reads what needs no search: whole frames, and frames that end or begin in these bytes; `false` if bytes are left.
  @inlinable @inline(__always)
  package mutating func read<Sink: NotificationSink>(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: CapturePosition, into sink: inout Sink
  ) -> Bool {
    if position == 0, framer.completeBeginning(bytes, &position) { decodeAssembled(mark, into: &sink) }
    while true {
      if let end = framer.endOfRecord(bytes, at: position) {
        Self.decode(
          bytes.extracting(position..<end), at: offset + position, mark, connection, &session, &malformed, into: &sink)
        position = end
      } else {
        return framer.isStraight && position == bytes.byteCount
          || framer.keepBeginning(bytes, at: position, offset: offset, mark: mark)
      }
    }
  }

  /// Hands the frame that came in several pieces to the session and the sink.
  @inlinable @inline(__always)
  package mutating func decodeAssembled<Sink: NotificationSink>(_ mark: CapturePosition, into sink: inout Sink) {
    Self.decodeAssembled(&framer, mark, connection, &session, &malformed, into: &sink)
  }

  /// Static, so that the frame may be borrowed from the framer while the session changes.
  @inlinable @inline(__always)
  static func decodeAssembled<Sink: NotificationSink>(
    _ framer: inout RecordFramer<GatewayGrammar, CapturePosition>, _ mark: CapturePosition, _ connection: Int,
    _ session: inout BinarySession, _ malformed: inout Int, into sink: inout Sink
  ) {
    decode(framer.assembled, at: framer.start, mark, connection, &session, &malformed, into: &sink)
    framer.dropAssembled()
  }

  /// Hands a frame that lies outside of the framer to the session and the sink.
  @inlinable
  package mutating func decode<Sink: NotificationSink>(
    _ frame: RawSpan, at offset: Int, _ mark: CapturePosition, into sink: inout Sink
  ) {
    Self.decode(frame, at: offset, mark, connection, &session, &malformed, into: &sink)
  }

  /// Static, so that the frame may be borrowed from the framer.
  @inlinable @inline(__always)
  package static func decode<Sink: NotificationSink>(
    _ frame: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Int, _ session: inout BinarySession,
    _ malformed: inout Int, into sink: inout Sink
  ) {
    let place = RecordPlace(
      connection: connection, time: mark.time, packet: mark.packet, offset: offset, length: frame.byteCount)
    let fields: PushFields
    do throws(ParseError) {
      fields = try PushFields(parsing: frame)
    } catch {
      malformed += 1
      let (fields, index) = note(malformed: frame, &session)
      sink.receive(malformed: error.description, fields, frame, at: place, index: index)
      return
    }
    let index = session.write(identifier: fields.identifier, isKnownBad: fields.isKnownBad)
    if fields.token.length != DeviceToken.usualLength || fields.identifier == 0 || fields.payload.length == 0 {
      noteFaults(fields, frame, &session)
    }
    sink.receive(fields, frame, at: place, index: index)
  }

  /// A frame whose length is valid but whose items are not is counted like other notifications and has a fate.
  @usableFromInline @inline(never)
  package static func note(malformed frame: RawSpan, _ session: inout BinarySession) -> (fields: PushFields, index: Int)
  {
    let fields = PushFields(fitting: frame)
    return (fields, session.write(malformedWith: fields.identifier))
  }

  /// Out of line: few notifications have an odd token or no payload, or count from 0.
  @usableFromInline @inline(never)
  static func noteFaults(_ fields: PushFields, _ frame: RawSpan, _ session: inout BinarySession) {
    session.noteFaults(Push(fields, frame).faults, identifier: fields.identifier)
  }
}
