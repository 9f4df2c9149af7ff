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
}
