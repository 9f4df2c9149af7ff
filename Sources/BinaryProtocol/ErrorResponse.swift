import Bytes
import PushModel

/// The gateway's answer to a bad notification: `08 | status u8 | identifier 4 bytes`, after which it closes.
///
/// Nothing is answered for an accepted notification. Source: Apple's guide of 2015-09-16.
public struct ErrorResponse: Sendable, Hashable {
  /// The length of a response in bytes.
  public static let length = 6
  /// The command byte of the documented service.
  public static let documentedCommand: UInt8 = 8

  /// The command byte: 8 from the documented service; a mock server used another one.
  public var command: UInt8
  /// The reason of the rejection, or 10 for a shutdown.
  public var status: Status
  /// The identifier of the named notification, four bytes read as a big-endian number.
  public var identifier: UInt32

  /// Makes a response.
  ///
  /// - Parameters:
  ///   - command: 8, unless a test wants another byte.
  ///   - status: any value, also an undocumented one.
  ///   - identifier: the identifier of the named notification.
  public init(command: UInt8 = documentedCommand, status: Status, identifier: UInt32) {
    self.command = command
    self.status = status
    self.identifier = identifier
  }

  /// The extent of the response at `offset`. A response begins with 8; any other command byte is malformed.
  @inlinable
  public static func extent(of bytes: RawSpan, at offset: Int) -> RecordExtent {
    let available = bytes.byteCount - offset
    if available >= 2, bytes.byte(at: offset) != documentedCommand {
      let (command, status) = (bytes.byte(at: offset), bytes.byte(at: offset + 1))
      return .malformed(ParseError(.unknownResponse(command: command, status: status), at: 0))
    }
    return available >= length ? .complete(length) : .incomplete(needed: length)
  }

  /// Whether all that a gateway has said so far may become a response with another command byte than 8: six bytes at
  /// most, with a documented status.
  package static func mayBecomeWholeAnswer(_ bytes: RawSpan) -> Bool {
    bytes.byteCount <= length && (bytes.byteCount < 2 || Status(rawValue: bytes.byte(at: 1)).isDocumented)
  }

  /// A response that is all that a gateway has said on a connection, with any command byte; `nil` when the bytes are not
  /// six, or the status is not documented.
  ///
  /// A page of HTML has a byte in it now and then that looks like a status, so that among other bytes another command
  /// than 8 proves nothing.
  package init?(wholeAnswer bytes: RawSpan) {
    guard bytes.byteCount == Self.length, Self.mayBecomeWholeAnswer(bytes) else { return nil }
    self.init(
      command: bytes.byte(at: 0), status: Status(rawValue: bytes.byte(at: 1)), identifier: bytes.uint32(at: 2))
  }

  /// Parses the response at `offset`, and advances `offset` past it.
  ///
  /// - Throws: a `ParseError`; `incomplete` with fewer than six bytes, `unknownResponse` if the command byte is not 8.
  ///   `offset` is then unchanged.
  @inlinable
  public init(parsing bytes: RawSpan, at offset: inout Int) throws(ParseError) {
    switch Self.extent(of: bytes, at: offset) {
    case .incomplete(let needed): throw ParseError(.incomplete, at: needed)
    case .malformed(let error): throw error
    case .complete: break
    }
    self.init(
      command: bytes.byte(at: offset), status: Status(rawValue: bytes.byte(at: offset + 1)),
      identifier: bytes.uint32(at: offset + 2))
    offset += Self.length
  }

  /// Writes the six bytes of the response.
  public func encode(into output: inout ByteWriter) {
    output.write(command)
    output.write(status.rawValue)
    output.write(bigEndian: identifier)
  }
}

extension ErrorResponse {
  /// The status of the notification that the response names.
  public typealias Status = BinaryStatus
}
