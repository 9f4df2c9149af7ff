import Bytes

/// Judges payloads: which rules they break, and which kind they are.
///
/// It reuses its memory, so a clean payload allocates nothing. A judgement is a pure function of the payload and its
/// environment. Faults of the frame come first, then those of the bytes, then of the JSON text; the rules about keys
/// are run on an object with an `aps` dictionary.
public struct PayloadJudge: Sendable {
  var tape = JSONTape()
  /// The last payload was JSON in UTF-8 from its first byte to its last, and is on the tape.
  private var isPlainJSON = false

  /// Makes a judge; one judge should judge many payloads, since it keeps its memory.
  public init() {}

  /// Judges one payload, in one pass over its bytes and one over its keys.
  ///
  /// - Parameters:
  ///   - payload: the bytes as they were sent, of any encoding and length.
  ///   - environment: facts about the sending; rules about unknown facts are not run.
  ///   - findsPlaces: whether the judgement has findings with positions and details.
  /// - Complexity: O(*n*) in the length of the payload. A clean payload allocates nothing, except for the memory that
  ///   the judge keeps.
  public mutating func judge(
    _ payload: RawSpan, in environment: PayloadEnvironment = PayloadEnvironment(), findsPlaces: Bool = false
  ) -> PayloadJudgement {
    var judging = Judging(environment: environment, findsPlaces: findsPlaces)
    if let frame = environment.frame { judging.judgeFrame(frame) }
    judging.judgeSize(payload.byteCount)
    isPlainJSON = false
    if payload.byteCount > 0 { judge(payload, &judging) }
    if findsPlaces { judging.findings.sort { ($0.offset ?? -1, $0.rule) < ($1.offset ?? -1, $1.rule) } }
    return PayloadJudgement(
      rules: judging.rules, kind: judging.kind, effects: judging.effects, findings: judging.findings)
  }

  /// The template of the payload that was judged last; `nil` if payloads like it have to be judged one by one.
  package func template(ofLast payload: RawSpan) -> PayloadTemplate? {
    isPlainJSON ? PayloadTemplate(of: payload, tape) : nil
  }

  private mutating func judge(_ payload: RawSpan, _ judging: inout Judging) {
    let text = PayloadText(of: payload)
    if text.end < payload.byteCount { judging.report(.payloadNulTerminated, at: text.end) }
    guard text.encoding == .utf8 else {
      judging.report(.payloadUTF16, at: 0)
      guard let converted = text.converted(payload) else { return judging.report(.payloadBadUTF8) }
      return judge(text: converted.rawBytes, of: payload, text, &judging)
    }
    if text.start > 0 { judging.report(.payloadBOM, at: 0) }
    judge(text: payload.extracting(text.start..<text.end), of: payload, text, &judging)
  }

  private mutating func judge(
    text: RawSpan, of payload: RawSpan, _ place: PayloadText, _ judging: inout Judging
  ) {
    let found = judging.findings.count
    if let fault = tape.read(text) {
      judging.judgeFault(fault, text)
    } else {
      judging.judge(tape, text)
      isPlainJSON = text.byteCount == payload.byteCount && place.encoding == .utf8
    }
    guard judging.findsPlaces, place.start > 0 || place.encoding != .utf8 else { return }
    for index in found..<judging.findings.count {
      let finding = judging.findings[index]
      judging.findings[index] = PayloadFinding(
        rule: finding.rule, offset: finding.offset.map { place.place($0, in: payload) }, detail: finding.detail)
    }
  }
}

/// The state of one judgement.
struct Judging {
  let era: Int?
  let topic: PayloadTopic
  let frame: (command: UInt8, priority: UInt8?)?
  let strings: [String: String]?
  private let longest: Int?
  let findsPlaces: Bool
  var rules = PayloadRuleSet()
  var findings: [PayloadFinding] = []
  var kind = PayloadKind.invalid
  var effects: PayloadEffects = []

  init(environment: borrowing PayloadEnvironment, findsPlaces: Bool) {
    era = environment.era
    topic = environment.topic
    frame = environment.frame.map { ($0.command, $0.priority) }
    strings = environment.strings
    longest = environment.longestPayload
    self.findsPlaces = findsPlaces
  }

  var isVoIP: Bool { topic == .voip }

  /// Whether the era is unknown or not before `year`.
  func isFrom(_ year: Int) -> Bool { era.map { $0 >= year } ?? true }
  /// Whether the era is unknown or not after `year`.
  func isUpTo(_ year: Int) -> Bool { era.map { $0 <= year } ?? true }

  /// Notes that a rule is broken. The first position is kept, or each one for rules about single keys and texts.
  mutating func report(
    _ rule: PayloadRule, at offset: Int? = nil, _ detail: @autoclosure () -> PayloadFinding.Detail? = nil
  ) {
    if findsPlaces, !rules.contains(rule) || rule.isToldEach {
      findings.append(PayloadFinding(rule: rule, offset: offset, detail: detail()))
    }
    rules.insert(rule)
  }

  /// The limits of the years: 256 bytes up to 2013, then 2,048, and 4,096 for VoIP.
  mutating func judgeSize(_ count: Int) {
    if let longest, count > 0 {
      if count > longest { report(.payloadTooLarge, at: longest, .bytes(count)) }
      return
    }
    guard count <= 256, count > 0 else {
      if count == 0 { return report(.payloadEmpty) }
      if let era, era <= 2013 { return report(.payloadTooLarge, at: 256, .bytes(count)) }
      if count > 4096 { return report(.payloadTooLarge, at: 4096, .bytes(count)) }
      if count > 2048 {
        if isVoIP { return }
        if topic == .unknown { return report(.payloadOver2048, at: 2048, .bytes(count)) }
        return report(.payloadTooLarge, at: 2048, .bytes(count))
      }
      let isOldFormat = frame.map { $0.command < 2 } ?? false
      if isOldFormat || era == 2014 { report(.payloadOver256, at: 256, .bytes(count)) }
      return
    }
  }

  /// The fault that stops the text from being JSON.
  mutating func judgeFault(_ fault: JSONFault, _ text: RawSpan) {
    let rule = Self.rule(of: fault, text)
    let note = rule == .jsonSyntax ? noteOnBackslash(text, at: fault.offset) : nil
    report(rule, at: rule == .payloadBadUTF8 ? Self.firstBadUTF8(text) ?? fault.offset : fault.offset, note)
  }

  /// The cause of a backslash at which JSON parsing stops: an escape of another language, or a text that was escaped as
  /// a whole.
  private func noteOnBackslash(_ text: RawSpan, at offset: Int) -> PayloadFinding.Detail? {
    guard offset + 1 < text.byteCount, text.byte(at: offset) == UInt8(ascii: "\\") else { return nil }
    switch text.byte(at: offset + 1) {
    case UInt8(ascii: "\""): return .note("a backslash outside of strings: the text was escaped as a whole")
    case UInt8(ascii: "u"): return .note("the escape \\u takes four hexadecimal digits")
    case let letter where (0x21...0x7e).contains(letter):
      let name = Character(Unicode.Scalar(letter))
      return .note(
        "\\\(name) is no escape of JSON: a character is \\u and four hexadecimal digits, above U+FFFF two such escapes")
    default: return .note("a backslash begins no escape")
    }
  }

  /// Encoding comes first: bytes that are not UTF-8 cannot be parsed as JSON.
  static func rule(of fault: JSONFault, _ text: RawSpan) -> PayloadRule {
    if firstBadUTF8(text) != nil { return .payloadBadUTF8 }
    return switch fault.problem {
    case .truncated: .jsonTruncated
    case .trailingComma: .jsonTrailingComma
    case .missingComma: .jsonMissingComma
    case .singleQuote: .jsonSingleQuotes
    case .controlCharacter: .jsonControlCharacter
    case .badUTF8: .payloadBadUTF8
    case .other: .jsonSyntax
    }
  }

  private static func firstBadUTF8(_ text: RawSpan) -> Int? {
    var offset = 0
    while offset < text.byteCount {
      guard let length = text.lengthOfCharacter(at: offset) else { return offset }
      offset += length
    }
    return nil
  }
}
