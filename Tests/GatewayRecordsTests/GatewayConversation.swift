import BinaryProtocol
import Bytes
import Foundation
import NIOCore
import Records
import TestSupport

@testable import GatewayRecords
@testable import GatewaySimulator

/// One provider's connection, as a simulator would report it: frames of a seed in pieces of a seed, decided by a
/// `GatewaySession`.
struct GatewayConversation {
  /// What the gateway's own session says at the end.
  struct Books: Equatable {
    var accepted = 0
    var rejected = 0
    var discarded = 0
    var received: Int { accepted + rejected + discarded }
  }

  private(set) var events: [ObservedEvent] = []
  private(set) var books = Books()
  /// The provider wrote bytes that are no frame: the gateway counts them as rejected and finds no frame after them.
  private(set) var hasNoFrame = false
  /// The tokens of all frames in their order.
  private(set) var tokens: [String] = []

  /// How a connection's stream ends.
  enum Ending: CaseIterable { case peer, rejection, shutdown, malformedItems, noFrame }

  private let number: UInt64
  private var time: Int64

  /// - Parameters:
  ///   - number: the connection's number.
  ///   - frames: the number of notifications that are written.
  init(_ number: UInt64, frames: Int, ending: Ending, _ random: inout SeededGenerator) {
    self.number = number
    time = 1_700_000_000_000_000_000 + Int64(number) * 1_000_000_000
    var session = GatewaySession()
    let turning = frames == 0 ? 0 : random.number(0...frames - 1)
    if ending == .shutdown { session.shutdownAfter = turning + 1 }
    add(
      .opened(
        .init(service: .gateway, client: "127.0.0.1:\(40_000 + number)", server: "127.0.0.1:2195", tls: nil)))
    var stream = ByteWriter(capacity: 1 << 16)
    for index in 0..<frames {
      let isLast = index == turning
      var token = random.bytes(32)
      if isLast && ending == .rejection { token.removeLast() }
      tokens.append(token.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined())
      switch ending {
      case .noFrame where isLast:
        stream.write(Array("GET / HTTP/1.1\r\n\r\n".utf8).rawBytes)
        tokens.removeLast()
        hasNoFrame = true
      case .malformedItems where isLast:
        // An item that extends past the end of its frame.
        stream.write([2, 0, 0, 0, 7, 1, 0, 32, 1, 2, 3, 4].rawBytes)
        tokens[tokens.count - 1] = ""
      default:
        BinaryFrame.encodeFramed(
          token: token.rawBytes, payload: Array(#"{"aps":{"badge":\#(index)}}"#.utf8).rawBytes,
          identifier: UInt32(index), expiration: nil, priority: 10, into: &stream)
      }
    }
    deliver(Array(copying: stream.bytes), to: &session, &random)
    if ending == .peer { add(.closing(byPeer: true, isReset: false)) }
    add(.closing(byPeer: false, isReset: false))
    add(.closed(session.decision()))
    books = Books(accepted: session.accepted, rejected: session.rejected, discarded: session.discarded)
  }

  private mutating func add(_ change: ObservedEvent.Change) {
    time += 1_000_000
    events.append(ObservedEvent(connection: number, time: time, change: change))
  }

  private mutating func deliver(
    _ bytes: [UInt8], to session: inout GatewaySession, _ random: inout SeededGenerator
  ) {
    var rest = bytes[...]
    var waiting: [UInt8] = []
    while !rest.isEmpty {
      let piece = rest.prefix(random.number(1...2_000))
      rest = rest.dropFirst(piece.count)
      waiting += piece
      let before = session
      let consumed = session.receive(waiting.rawBytes) { _ in nil }
      if consumed > 0 {
        add(.received(ByteBuffer(bytes: waiting.prefix(consumed)), session.decision(since: before)))
        waiting.removeFirst(consumed)
      }
      if before.ending == nil, let response = session.ending?.response {
        var answer = ByteWriter(capacity: 64)
        response.encode(into: &answer)
        add(.sent(ByteBuffer(bytes: Array(copying: answer.bytes))))
      }
    }
    if !waiting.isEmpty { add(.received(ByteBuffer(bytes: waiting), session.decision())) }
  }
}

/// Records as JSON.
final class WrittenRecords {
  private var bytes: [UInt8] = []

  func writer() -> JSONLinesWriter {
    JSONLinesWriter(fates: .early) { [self] in
      bytes.append(copying: $0)
      return true
    }
  }

  func all(_ type: String) throws -> [[String: Any]] {
    try bytes.split(separator: UInt8(ascii: "\n")).compactMap {
      let record = try JSONSerialization.jsonObject(with: Data($0)) as? [String: Any]
      return record?["type"] as? String == type ? record : nil
    }
  }
}

extension GatewaySession {
  /// The decisions on the connection so far, and on the frames that arrived since an earlier state.
  func decision(since before: GatewaySession? = nil) -> ObservedEvent.Decision {
    var decision = ObservedEvent.Decision()
    (decision.acceptedInAll, decision.discardsRest) = (accepted, ending != nil)
    guard let before else { return decision }
    (decision.received, decision.accepted) = (received - before.received, accepted - before.accepted)
    decision.rejection = before.ending == nil && hasRejectedFrame ? .status(.invalidToken) : nil
    return decision
  }
}
