import Foundation

@testable import Bytes
@testable import Payload

/// Keeps its memory from one payload to the next, as everybody does who judges many.
nonisolated(unsafe) private var judge = PayloadJudge()

/// A payload; the first byte chooses era, topic and frame.
@Sendable func fuzzPayload(_ bytes: RawSpan) {
  guard bytes.byteCount > 0 else { return }
  let choice = bytes.byte(at: 0)
  let payload = bytes.extracting(1..<bytes.byteCount)
  let eras: [Int?] = [nil, 2009, 2013, 2014, 2015, 2016, 2018, 2021]
  let topics: [PayloadTopic] = [.unknown, .app, .voip, .wallet]
  var environment = PayloadEnvironment(era: eras[Int(choice & 7)], topic: topics[Int(choice >> 3 & 3)])
  if choice & 0x20 != 0 {
    environment.frame = PushFrame(command: choice & 0x40 != 0 ? 2 : 1, priority: choice & 0x80 != 0 ? 10 : nil)
    environment.strings = ["KEY": "%@ and %2$@"]
  }
  let judgement = judge.judge(payload, in: environment, findsPlaces: true)
  var fresh = PayloadJudge()
  law(fresh.judge(payload, in: environment, findsPlaces: true) == judgement, "a used judge says something else")
  let rules = fresh.judge(payload, in: environment).rules
  law(rules == judgement.rules, "places change the rules")
  let frame = environment.frame
  let isPlain = PayloadJudge.isPlainAlert(
    payload, command: frame?.command ?? 2, priority: frame?.priority, topic: environment.topic)
  law(!isPlain || judgement.isClean && judgement.kind == .alert, "a plain alert is not clean")
  law(PayloadRuleSet(judgement.findings.map(\.rule)) == rules, "findings are not of the rules")
  let places = judgement.findings.map { $0.offset ?? -1 }
  law(places == places.sorted(), "findings are not in the order of their places")
  for finding in judgement.findings {
    law(finding.offset.map { 0...payload.byteCount ~= $0 } ?? true, "\(finding.rule) is outside the payload")
    law(!finding.message.isEmpty, "\(finding.rule) has no message")
  }
  law(judgement.kind != .invalid || rules.hasErrors, "an invalid payload without an error")
  for system in SystemVersion.allCases {
    _ = PayloadRendering(of: payload, on: system, language: "en", resources: AppResources())
  }
  var redaction = PayloadRedaction()
  var masked = Array(copying: payload)
  redaction.redact(&masked, in: masked.indices)
  law(masked.count == payload.byteCount, "a redacted payload has another length")
  var again = masked
  redaction.redact(&again, in: again.indices)
  law(again == masked, "a redacted payload is changed by another redaction")
  var tagged = Array(copying: payload)
  redaction.redact(&tagged, in: tagged.indices, tag: Array(copying: payload) + Array(repeating: 7, count: 16))
  redaction.redact(&tagged, in: tagged.indices)
  law(tagged == masked, "a tag changes more than placeholders")
  checkValidity(payload, rules)
}

/// The judge agrees on what is JSON with the scanner and with Foundation, where those see the bytes that it does.
private func checkValidity(_ payload: RawSpan, _ rules: PayloadRuleSet) {
  let changed: [PayloadRule] = [.payloadNulTerminated, .payloadBOM, .payloadUTF16, .payloadEmpty]
  guard payload.byteCount > 0, !changed.contains(where: rules.contains) else { return }
  let faults: [PayloadRule] = [
    .jsonTrailingComma, .jsonMissingComma, .jsonSingleQuotes, .jsonTruncated, .jsonControlCharacter, .jsonSyntax,
    .payloadBadUTF8,
  ]
  let isValid = !faults.contains(where: rules.contains)
  law(isValid == (JSONText.scan(payload) != .invalid), "the judge and the scanner differ on what is JSON")
  // Foundation refuses half surrogate pairs and deep nesting, which JSON does not, and takes NUL bytes for UTF-16.
  let text = Array(copying: payload)
  guard !rules.contains(.jsonLoneSurrogate), !text.contains(0), text.count < 2_048 else { return }
  let nesting = text.count { $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "{") }
  guard nesting < 500 else { return }
  let isFoundations = (try? JSONSerialization.jsonObject(with: Data(text), options: .fragmentsAllowed)) != nil
  // Numbers that no Double holds are JSON, and no value of Foundation: long ones, and those with exponents.
  let digits = text.count { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  let hasExponent = text.contains { $0 == UInt8(ascii: "e") || $0 == UInt8(ascii: "E") } && digits > 0
  if isValid, !isFoundations, digits > 15 || hasExponent { return }
  // Foundation takes a comma after the last member of an object.
  if isFoundations, rules.contains(.jsonTrailingComma) { return }
  law(isValid == isFoundations, "the judge and Foundation differ on what is JSON")
}
