import BinaryProtocol
import Bytes
import PushModel

/// One connection told from the gateway's side: bytes come in pieces, and what is not consumed is given again.
struct GatewayTalk {
  var session: GatewaySession
  /// What the gateway has not consumed.
  private(set) var rest: [UInt8] = []
  /// Bytes that came in so far.
  private(set) var sent = 0
  /// Identifiers of those that kept the rules, in the order they were asked about.
  private(set) var asked: [UInt32?] = []
  /// What speaks against a notification with this identifier.
  var refusals: [UInt32: ErrorResponse.Status] = [:]

  init(
    _ rules: GatewaySession.Rules = .init(), standing: ErrorResponse.Status? = nil, shutdownAfter: Int = .max,
    refusals: [UInt32: ErrorResponse.Status] = [:]
  ) {
    session = GatewaySession(rules: rules, standing: standing)
    session.shutdownAfter = shutdownAfter
    self.refusals = refusals
  }

  /// Takes the bytes, and returns how the gateway ended the connection with them: `nil` when it did not, or before.
  @discardableResult
  mutating func send(_ bytes: [UInt8]) -> GatewaySession.Ending? {
    let hadEnded = session.ending != nil
    rest += bytes
    sent += bytes.count
    var seen: [UInt32?] = []
    let (refusals, input) = (refusals, rest)
    let consumed = session.receive(input.rawBytes) { notification in
      seen.append(notification.identifier)
      return notification.identifier.flatMap { refusals[$0] }.map(Rejection.status)
    }
    asked += seen
    rest.removeFirst(consumed)
    return hadEnded ? nil : session.ending
  }

  /// [received, accepted, rejected, discarded]
  var counts: [Int] { [session.received, session.accepted, session.rejected, session.discarded] }

  /// What holds at every moment.
  var isBalanced: Bool {
    session.received == session.accepted + session.rejected + session.discarded
      && session.bytes + rest.count == sent && session.rejected <= 1
  }
}

extension GatewaySession.Ending {
  /// The answer as its six bytes, empty when there is none.
  var answer: [UInt8] {
    guard let response else { return [] }
    return written { response.encode(into: &$0) }
  }
}

/// Notifications as providers write them. What a test does not say is as it should be.
enum Frame {
  static let token = [UInt8](repeating: 0xab, count: 32)
  static let payload = Array(#"{"aps":{"alert":"hello"}}"#.utf8)
  static let silent = Array(#"{"aps":{"content-available":1}}"#.utf8)

  static func simple(token: [UInt8] = token, payload: [UInt8] = payload) -> [UInt8] {
    written { BinaryFrame.encodeSimple(token: token.rawBytes, payload: payload.rawBytes, into: &$0) }
  }

  static func enhanced(_ identifier: UInt32, token: [UInt8] = token, payload: [UInt8] = payload) -> [UInt8] {
    written {
      BinaryFrame.encodeEnhanced(
        identifier: identifier, expiration: 0, token: token.rawBytes, payload: payload.rawBytes, into: &$0)
    }
  }

  static func framed(
    _ identifier: UInt32?, token: [UInt8] = token, payload: [UInt8] = payload, expiration: UInt32? = 0,
    priority: UInt8? = 10
  ) -> [UInt8] {
    written {
      BinaryFrame.encodeFramed(
        token: token.rawBytes, payload: payload.rawBytes, identifier: identifier, expiration: expiration,
        priority: priority, into: &$0)
    }
  }

  static func of(items: [FrameItem]) -> [UInt8] { written { BinaryFrame.encodeFramed(items: items, into: &$0) } }

  /// A command-2 frame around any bytes.
  static func around(_ bytes: [UInt8]) -> [UInt8] {
    written {
      $0.write(2 as UInt8)
      $0.write(bigEndian: UInt32(bytes.count))
      $0.write(bytes.rawBytes)
    }
  }

  static func item(_ id: UInt8, length: Int? = nil, _ data: [UInt8]) -> [UInt8] {
    [id] + written { $0.write(bigEndian: UInt16(length ?? data.count)) } + data
  }

  /// The frame that pushy closes a connection with: all five items, token and payload empty.
  static func knownBad(_ identifier: UInt32) -> [UInt8] { framed(identifier, token: [], payload: []) }

  /// A payload of exactly this many bytes.
  static func payload(_ length: Int) -> [UInt8] {
    let (head, tail) = (Array(#"{"aps":{"alert":""#.utf8), Array(#""}}"#.utf8))
    return head + [UInt8](repeating: UInt8(ascii: "x"), count: length - head.count - tail.count) + tail
  }
}
