import Foundation
import Measurement
import Testing

@Suite("Ledgers")
struct LedgerTests {
  @Test("A ledger from before lost failures and incomplete responses were counted can be read")
  func earlier() throws {
    var ledger = Ledger()
    (ledger.gateway.received, ledger.gateway.binary.errorResponses) = (7, ["8": 1])
    ledger.feedback.waiting = 3
    var earlier = try #require(JSONSerialization.jsonObject(with: JSONEncoder().encode(ledger)) as? [String: Any])
    for (part, name) in [("gateway", "errorResponsesIncomplete"), ("feedback", "lost")] {
      var counts = try #require(earlier[part] as? [String: Any])
      #expect(counts.removeValue(forKey: name) as? Int == 0)
      earlier[part] = counts
    }
    let read = try JSONDecoder().decode(Ledger.self, from: JSONSerialization.data(withJSONObject: earlier))
    #expect(read == ledger)
    ledger.feedback.lost = 5
    ledger.gateway.binary.errorResponsesIncomplete = 2
    #expect(try JSONDecoder().decode(Ledger.self, from: JSONEncoder().encode(ledger)) == ledger)
  }

  @Test("A connection is read as it was written; no topic and no rejection are null")
  func connections() throws {
    var plain = Ledger.Connection(client: "127.0.0.1:1", topic: nil, opened: "a", closed: "b", end: .peerFin)
    var full = Ledger.Connection(client: "127.0.0.1:2", topic: "com.example", opened: "c", closed: "d", end: .rejected)
    (plain.received, plain.accepted) = (1, 1)
    (full.received, full.accepted, full.discarded) = (7, 4, 2)
    full.rejected = .init(status: 8, identifier: 99, notification: 4)
    full.error = "reset"
    var ledger = Ledger()
    ledger.connections = [plain, full]
    #expect(try JSONDecoder().decode(Ledger.self, from: JSONEncoder().encode(ledger)) == ledger)
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    #expect(
      String(decoding: try encoder.encode(plain), as: UTF8.self)
        == #"{"accepted":1,"client":"127.0.0.1:1","closed":"b","discarded":0,"end":"peer_fin","opened":"a","received":1,"rejected":null,"topic":null}"#
    )
  }

  /// Of a gateway whose books balance.
  private func balanced(_ client: String = "127.0.0.1:1") -> Ledger {
    var ledger = Ledger()
    (ledger.gateway.received, ledger.gateway.accepted, ledger.gateway.discarded) = (10, 7, 2)
    (ledger.gateway.rejected, ledger.gateway.connections) = (["8": 1], 1)
    (ledger.devices.delivered, ledger.devices.stored) = (4, 3)
    var connection = Ledger.Connection(client: client, topic: nil, opened: "a", closed: "b", end: .rejected)
    (connection.received, connection.accepted, connection.discarded) = (10, 7, 2)
    ledger.connections = [connection]
    return ledger
  }

  @Test("The counts of a ledger balance, those over HTTP/2 and of devices too, and what does not is named")
  func invariants() throws {
    func broken(_ change: (inout Ledger) -> Void) -> [String] {
      var ledger = balanced()
      change(&ledger)
      return ledger.invariants.filter { !$0.holds }.map { "\($0.name): \($0.detail)" }
    }
    #expect(broken { _ in } == [])
    #expect(broken { $0.gateway.discarded = 3 } == ["received = accepted + rejected + discarded: 10 = 7 + 1 + 3"])
    #expect(
      broken { $0.devices.expired = 1 }
        == ["accepted = the sum of the outcomes for devices: 7 = 4 + 3 + 0 + 1 + 0 + 0"])
    #expect(
      broken {
        $0.devices.channel = .init()
        $0.devices.channel?.restored = 2
        $0.devices.stored = 5
      } == [])
    #expect(
      broken {
        var http2 = Ledger.HTTP2()
        (http2.received, http2.accepted) = (2, 1)
        $0.http2 = http2
      } == ["received = accepted + rejected + discarded, over HTTP/2: 2 = 1 + 0 + 0"])
    // After a reset what waited before is delivered.
    #expect(
      broken {
        $0.connections = []
        $0.devices.delivered = 9
      } == [])
    // A number that is too large is nobody's count.
    #expect(broken { ($0.gateway.received, $0.gateway.accepted, $0.gateway.discarded) = (.max, .max, 0) }.count == 2)
  }

  @Test("A sum that is too large does not hold, though it would stay at the end on both sides")
  func overflow() throws {
    var large = balanced()
    (large.gateway.received, large.gateway.accepted, large.devices.delivered) = (1 << 62, (1 << 62) - 3, (1 << 62) - 6)
    #expect(large.invariants.allSatisfy { $0.holds })
    let sum = try #require(Ledger.merging([large, large]))
    #expect(sum.invariants(ofSumOf: [large, large]).contains { !$0.holds && $0.name == "every sum is below 2^63 - 1" })
    let small = try #require(Ledger.merging([balanced(), balanced("127.0.0.1:2")]))
    #expect(small.invariants(ofSumOf: []).allSatisfy { $0.holds })
  }

  @Test("Ledgers that share a connection are of one run, and those of different gateways are not")
  func overlaps() throws {
    let (one, other) = (balanced(), balanced("127.0.0.1:2"))
    #expect(Ledger.overlaps(of: [("one", one), ("other", other)]) == [])
    let merged = try #require(Ledger.merging([one, other]))
    let overlaps = Ledger.overlaps(of: [("merged", merged), ("other", other)])
    #expect(overlaps.count == 1 && overlaps[0].hasPrefix("other: has a connection of merged, which counts twice"))
    #expect(Ledger.overlaps(of: [("one", one), ("merged", merged), ("other", other)]).count == 2)
    // Two gateways may have connections that look alike by chance.
    let like = try #require(one.connections.first)
    func many(_ host: String, common: Int) -> Ledger {
      var ledger = one
      ledger.connections = (0..<500).map { number in
        var connection = like
        connection.client = "\(number < common ? "10.0.0.1" : host):\(number)"
        return connection
      }
      return ledger
    }
    let gateway = many("10.0.0.2", common: 0)
    #expect(Ledger.overlaps(of: [("a", many("10.0.0.3", common: 5)), ("b", many("10.0.0.4", common: 5))]) == [])
    #expect(Ledger.overlaps(of: [("a", many("10.0.0.3", common: 6)), ("b", many("10.0.0.4", common: 6))]).count == 1)
    #expect(Ledger.overlaps(of: [("a", gateway), ("b", many("10.0.0.3", common: 0))]) == [])
  }
}
