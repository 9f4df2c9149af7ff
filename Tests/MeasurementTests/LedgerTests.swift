import Foundation
import Measurement
import Testing

@Suite("Ledgers")
struct LedgerTests {
  @Test("A ledger from before lost failures and incomplete responses were counted can be read")
  func earlier() throws {
    var ledger = Ledger()
    (ledger.gateway.received, ledger.gateway.errorResponses) = (7, ["8": 1])
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
    ledger.gateway.errorResponsesIncomplete = 2
    #expect(try JSONDecoder().decode(Ledger.self, from: JSONEncoder().encode(ledger)) == ledger)
  }
}
