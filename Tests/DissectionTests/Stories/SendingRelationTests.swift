import PushModel
import Testing

@testable import Analysis

/// The rule for what a further sending of a notification means.
@Suite("What a sending is to those before it")
struct SendingRelationTests {
  private static func relations(_ sendings: [(FateCode, Int)]) -> [SendingRelation] {
    var relations = SendingRelations()
    return sendings.map { relations.next($0.0, on: $0.1) }
  }

  @Test("The fate of the sending before decides") func before() {
    for fate in [FateCode.accepted, .rejected, .unknown, .discarded] {
      #expect(Self.relations([(.accepted, 1), (fate, 2)]) == [.first, .repeatsAccepted])
      #expect(Self.relations([(.rejected, 1), (fate, 2)]) == [.first, .retriesRejected])
      #expect(Self.relations([(.unknown, 1), (fate, 2)]) == [.first, .followsUnknown])
      #expect(Self.relations([(.discarded, 1), (fate, 2)]) == [.first, .resendsDiscarded(count: 1)])
    }
  }

  @Test("What one response discarded is sent again together") func together() {
    let sendings: [(FateCode, Int)] = [
      (.discarded, 1), (.discarded, 1), (.discarded, 2), (.accepted, 3), (.accepted, 3), (.discarded, 3), (.unknown, 4),
    ]
    #expect(
      Self.relations(sendings) == [
        .first, .discardedTogether, .resendsDiscarded(count: 2), .resendsDiscarded(count: 1), .repeatsAccepted,
        .repeatsAccepted, .resendsDiscarded(count: 1),
      ])
  }

  @Test("A discarded sending is sent again if any later one was not discarded by the same response", arguments: 0..<256)
  func definition(number: Int) {
    // Four sendings, each on one of two connections, discarded or not.
    let sendings = (0..<4).map { place in
      let bits = number >> (2 * place) & 3
      return (bits & 1 == 0 ? FateCode.discarded : .accepted, bits >> 1)
    }
    // On one connection everything behind a discarded notification is discarded.
    for connection in 0...1 {
      let fates = sendings.filter { $0.1 == connection }.map(\.0)
      if let first = fates.firstIndex(of: .discarded), fates[first...].contains(.accepted) { return }
    }
    var again = Set<Int>()
    for (place, relation) in Self.relations(sendings).enumerated() {
      again.formUnion(place - relation.resent..<place)
    }
    let expected = sendings.indices.filter { place in
      sendings[place].0 == .discarded
        && sendings[(place + 1)...].contains { $0.0 != .discarded || $0.1 != sendings[place].1 }
    }
    #expect(again == Set(expected))
  }
}
