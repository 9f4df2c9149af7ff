import Measurement
import Testing

@testable import OutputSchema

/// Findings are described as they are named, and each has a sentence.
@Suite("Findings")
struct FindingShapeTests {
  private func names(_ shape: Shape) -> Set<String> {
    guard case .enumeration(let values) = shape else { return [] }
    return Set(values.map(\.name))
  }

  @Test("Kinds of findings, outcomes and reasons are those that are described") func described() {
    #expect(names(.findingKind) == Set(FindingKind.allCases.map(\.rawValue)))
    #expect(names(.storyOutcome) == Set(StoryOutcome.allCases.map(\.rawValue)))
    #expect(names(.openReason) == Set(OpenReason.allCases.map(\.rawValue)))
  }

  @Test("Every kind has one sentence for one and for many, but for those with sentences of their own") func sentences()
  {
    let own: Set<FindingKind> = [
      .captureLoss, .nothingRead, .unreadPackets, .undecryptedConnection, .partlyDecrypted, .devicePort, .otherProtocol,
      .emptyConnection, .outOfOrder,
    ]
    var all: Set<String> = []
    for kind in FindingKind.allCases {
      for count in [1, 12] {
        let sentence = kind.sentence(count)
        #expect(sentence.isEmpty == own.contains(kind), "\(kind)")
        if !sentence.isEmpty { #expect(all.insert(sentence).inserted, "\(kind)") }
      }
    }
    #expect(FindingKind.captureLossSentence(dropped: 1).hasPrefix("1 packet was dropped"))
    #expect(FindingKind.outOfOrderSentence(late: 2, longestDelay: 9_998_999_999).contains("--reorder-window 9999ms"))
    #expect(FindingKind.outOfOrderSentence(late: 2, longestDelay: 9_999_000_000).contains("--reorder-window 10s"))
  }
}
