import Bytes
import Payload
import Testing

@Suite("Payloads with known answers")
struct VectorTests {
  @Test("All vectors are read from both files")
  func vectorsArePresent() {
    #expect(RuleVector.all.count == 274)
    #expect(RenderVector.all.count == 53)
  }

  @Test("A payload has the codes and the kind of its vector", arguments: RuleVector.all)
  func rules(vector: RuleVector) {
    var judgement = judged(vector.payload, in: vector.environment)
    if let sendings = vector.sentOffsetsS { judgement.judge(sendings: sendings) }
    #expect(judgement.rules.codes == vector.codes)
    #expect(judgement.kind.rawValue == vector.kind)
  }

  @Test("Every code and every kind is in a vector")
  func coverage() {
    #expect(Set(RuleVector.all.flatMap(\.codes)) == Set(PayloadRule.allCases.map(\.code)))
    #expect(Set(RuleVector.all.map(\.kind)) == Set(PayloadKind.allCases.map(\.rawValue)))
  }

  @Test("A judge that is used again says the same, with and without places")
  func reuse() {
    var judge = PayloadJudge()
    for vector in RuleVector.all {
      let fresh = judged(vector.payload, in: vector.environment)
      let payload = vector.payload
      let again = judge.judge(payload.rawBytes, in: vector.environment)
      #expect(again.rules == fresh.rules && again.kind == fresh.kind && again.effects == fresh.effects)
      #expect(again.findings.isEmpty)
      #expect(PayloadRuleSet(fresh.findings.map(\.rule)) == fresh.rules)
    }
  }

  @Test("A judgement without expiration and token, and that of the frame, are the whole")
  func framesApart() {
    var judge = PayloadJudge()
    for vector in RuleVector.all {
      guard let frame = vector.environment.frame else { continue }
      let (payload, whole) = (vector.payload, judged(vector.payload, in: vector.environment))
      var environment = vector.environment
      environment.frame = PushFrame(command: frame.command, priority: frame.priority)
      let apart = judge.judge(payload.rawBytes, in: environment)
      #expect(apart.rules.union(PayloadJudge.rules(ofFrame: frame, era: vector.era)) == whole.rules)
    }
  }

  @Test("A user sees what the vector says", arguments: RenderVector.all)
  func rendering(vector: RenderVector) throws {
    let system = try #require(SystemVersion(rawValue: vector.ios))
    let payload = Array(vector.payload.utf8)
    let shown = PayloadRendering(
      of: payload.rawBytes, on: system, language: vector.language, resources: vector.resources)
    let expected = vector.expect
    #expect(shown.title == expected.title)
    #expect(shown.subtitle == expected.subtitle)
    #expect(shown.body == expected.body)
    #expect(shown.buttons.dialog == expected.buttons.dialog)
    #expect(shown.buttons.options == expected.buttons.options)
    #expect(shown.buttons.compact == expected.buttons.compact)
    #expect(shown.badge == expected.badge)
    #expect(shown.sound == expected.sound)
    #expect(shown.wakesApp == expected.background)
    #expect(shown.mayBeChanged == expected.mutable)
    #expect(shown.notes.map(\.rawValue) == expected.notes)
  }
}
