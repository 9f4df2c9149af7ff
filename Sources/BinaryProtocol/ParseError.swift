/// The reason why bytes are not a record of the protocol, and the offset.
///
/// Two errors are equal if their problems are: the offset is a hint for readers.
public struct ParseError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The reason.
  public var problem: Problem
  /// The offset of the offending field from the first byte of the record; for `incomplete`, the length that is needed.
  public var offset: Int

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - problem: the reason.
  ///   - offset: the offset in bytes from the first byte of the record.
  @inlinable
  public init(_ problem: Problem, at offset: Int) {
    self.problem = problem
    self.offset = offset
  }

  /// Whether both errors have the same problem; offsets are ignored.
  public static func == (a: ParseError, b: ParseError) -> Bool { a.problem == b.problem }

  public var description: String { "\(problem) at offset \(offset)" }

  /// The kinds of damage.
  public enum Problem: Sendable, Equatable {
    /// The first byte is not a command of a provider: garbage, another protocol, or a lost frame boundary.
    case unknownCommand(UInt8)
    /// The first byte of a response is not 8 and the second no status. Not an APNs gateway.
    case unknownResponse(command: UInt8, status: UInt8)
    /// A command-2 frame length above `ProtocolLimits.maximumFrameLength`.
    case frameTooLong(Int)
    /// A token length above `ProtocolLimits.maximumTokenLength`.
    case tokenTooLong(Int)
    /// A payload length above `ProtocolLimits.maximumPayloadLength`.
    case payloadTooLong(Int)
    /// Command 0 with neither token nor payload: five zero bytes are padding, not a notification.
    case emptyNotification
    /// An item claims more bytes than its frame has left. rpush and apns4erl do this with tokens that are not 32 bytes.
    case itemOverrun(item: UInt8, length: Int)
    /// One or two bytes are left in a frame where an item header needs three.
    case itemHeaderCut
    /// The bytes end before the record does.
    case incomplete
  }
}

extension ParseError.Problem: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unknownCommand(let command): "unknown command \(command)"
    case .unknownResponse(let command, let status): "unknown response command \(command) with status \(status)"
    case .frameTooLong(let length):
      "frame length \(length) is over the limit"
        + Self.swapped(Int(UInt32(truncatingIfNeeded: length).byteSwapped), 5...4_608)
    case .tokenTooLong(let length):
      "token length \(length) is over the limit"
        + Self.swapped(Int(UInt16(truncatingIfNeeded: length).byteSwapped), 1...100)
    case .payloadTooLong(let length):
      "payload length \(length) is over the limit"
        + Self.swapped(Int(UInt16(truncatingIfNeeded: length).byteSwapped), 2...4_096)
    case .emptyNotification: "command 0 with neither token nor payload"
    case .itemOverrun(let item, let length):
      "item \(item) of length \(length) overruns its frame"
        + Self.swapped(Int(UInt16(truncatingIfNeeded: length).byteSwapped), Self.usualLengths(ofItem: item))
    case .itemHeaderCut: "item header cut short by the end of its frame"
    case .incomplete: "incomplete record"
    }
  }

  /// The end of a sentence about a length that is usual with its bytes swapped: the sender writes numbers as its processor
  /// keeps them.
  private static func swapped(_ length: Int, _ usual: ClosedRange<Int>) -> String {
    usual.contains(length) ? " (little-endian? \(length) with its bytes swapped)" : ""
  }

  private static func usualLengths(ofItem item: UInt8) -> ClosedRange<Int> {
    switch item {
    case 1: 1...100
    case 3, 4: 4...4
    case 5: 1...1
    default: 2...4_096
    }
  }
}

/// The extent of a record that starts at a given byte: the result of every incremental decoder here.
public enum RecordExtent: Sendable, Equatable {
  /// The whole record is there and is this many bytes long.
  case complete(Int)
  /// More bytes are needed: at least this many from the start of the record before the next attempt.
  case incomplete(needed: Int)
  /// These bytes are not a record.
  case malformed(ParseError)
}
