import Bytes
import Payload
import Testing

@Suite("Payloads for loads")
struct SampleTests {
  private func environment(_ kind: PayloadKind, era: Int?) -> PayloadEnvironment {
    let isSilent = kind == .background || kind == .newsstand
    return PayloadEnvironment(
      era: era, topic: kind == .voip ? .voip : kind == .newsstand ? .newsstand : .unknown,
      frame: PushFrame(command: 2, priority: isSilent ? 5 : 10))
  }

  @Test("Samples are of their kind and break no rule but those of their kind", arguments: PayloadKind.allCases)
  func kinds(kind: PayloadKind) {
    for era in [nil, 2016, 2015, 2013] as [Int?] {
      let samples = PayloadSamples(seed: 5, era: era)
      for number in 0..<100 as Range<UInt64> {
        let judgement = judged(samples.payload(kind, number: number), in: environment(kind, era: era))
        #expect(judgement.kind == kind)
        let allowed: PayloadRuleSet =
          switch kind {
          case .mutable: [.mutableWithoutAlert, .keyTooNew]
          case .empty: [.apsEmpty]
          case .invalid: [.jsonSyntax]
          default: []
          }
        #expect(judgement.rules.allSatisfy { allowed.contains($0) }, "\(judgement.rules.codes)")
      }
    }
  }

  @Test("A wished size is met exactly where it can be", arguments: PayloadKind.allCases)
  func sizes(kind: PayloadKind) {
    let samples = PayloadSamples(seed: 6)
    let shortest = PayloadSamples.shortestExactSize(of: kind)
    for size in Array(shortest...shortest + 200) + [2048, 4096] {
      let payload = samples.payload(kind, number: UInt64(size), size: size)
      #expect(payload.count == size)
      #expect(judged(payload, in: environment(kind, era: nil)).kind == kind)
    }
    #expect(samples.payload(kind, number: 1, size: 1).count <= shortest)
  }

  @Test("The same seed and number give the same payload, others give others")
  func seeds() {
    let (one, again, other) = (PayloadSamples(seed: 1), PayloadSamples(seed: 1), PayloadSamples(seed: 2))
    let numbers = 0..<200 as Range<UInt64>
    #expect(numbers.allSatisfy { one.payload(.alert, number: $0) == again.payload(.alert, number: $0) })
    #expect(Set(numbers.map { one.payload(.alert, number: $0) }).count > 190)
    #expect(numbers.filter { one.payload(.alert, number: $0) == other.payload(.alert, number: $0) }.count < 10)
  }

  @Test("Localized samples have all keys and arguments in every language", arguments: PayloadSamples.languages)
  func languages(language: String) {
    let samples = PayloadSamples(seed: 8, languages: [language])
    let strings = PayloadSamples.strings(language: language)
    let resources = AppResources(strings: [language: strings], categories: PayloadSamples.categories)
    for number in 0..<100 as Range<UInt64> {
      let payload = samples.payload(.alert, number: number)
      var environment = environment(.alert, era: nil)
      environment.strings = strings
      #expect(judged(payload, in: environment).isClean)
      let shown = PayloadRendering(of: payload.rawBytes, on: .iOS10, language: language, resources: resources)
      #expect(shown.notes.isEmpty && shown.body != nil)
    }
  }

  @Test("A push that is wrong whatever frame it is in says so")
  func faultsOfPayloads() {
    #expect(FaultyPush(breaking: .jsonTrailingComma).isOfPayload)
    #expect(FaultyPush(breaking: .payloadEmpty).isOfPayload)
    #expect(!FaultyPush(breaking: .tokenLength).isOfPayload)
    #expect(!FaultyPush(breaking: .silentPriority10).isOfPayload)
  }
}
