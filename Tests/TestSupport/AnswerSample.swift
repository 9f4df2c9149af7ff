import Testing

/// All that a gateway, or something else on its port, says on a connection, and what is in it: the load and the dissector
/// read answers by the same rules, so they find the same.
public struct AnswerSample: Sendable, CustomTestStringConvertible {
  public var name: String
  public var bytes: [UInt8]
  /// Error responses before the first byte that is none; a load stops there.
  public var responses: Int
  /// Error responses in all: the dissector goes on at the next 8 that a documented status follows.
  public var responsesInAll: Int

  public var testDescription: String { name }

  private init(_ name: String, _ bytes: [UInt8], _ responses: Int, inAll: Int? = nil) {
    (self.name, self.bytes, self.responses, responsesInAll) = (name, bytes, responses, inAll ?? responses)
  }

  private static func response(_ command: UInt8 = 8, _ status: UInt8 = 8, _ identifier: UInt8 = 77) -> [UInt8] {
    [command, status, 0, 0, 0, identifier]
  }

  public static let all: [AnswerSample] = [
    .init("a response", response(), 1),
    .init("two responses", response() + response(8, 10), 2),
    .init("a response with a status that is not documented", response(8, 33), 1),
    .init("half a response", Array(response().prefix(3)), 0),
    .init("a response with another command byte", response(1, 7), 1),
    .init("another command byte and a status that is not documented", response(1, 33), 0),
    .init("another command byte and a byte too many", response(1, 7) + [0], 0),
    .init("another command byte and a byte too few", Array(response(1, 7).dropLast()), 0),
    .init("another command byte twice", response(1, 7) + response(1, 7), 0),
    .init("another command byte behind a response", response() + response(1, 7), 1),
    .init("a page of HTML", Array("<!DOCTYPE HTML>\n<html>\n<p>Error\n\n\n\n</p>\n".utf8), 0),
    .init("text of six bytes", Array("short!".utf8), 0),
    .init("six bytes of text that might be a status", Array("<\nhtml".utf8), 1),
    .init("a response behind text", Array("<!DOCTYPE HTML>\n".utf8) + response(), 0, inAll: 1),
  ]
}
