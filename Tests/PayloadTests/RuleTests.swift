import Bytes
import Payload
import Testing

@Suite("Rules of payloads")
struct RuleTests {
  @Test("A push that is made to break a rule breaks it and no other", arguments: PayloadRule.allCases)
  func positive(rule: PayloadRule) {
    for number in 0..<20 as Range<UInt64> {
      let push = FaultyPush(breaking: rule, seed: 21, number: number)
      var judgement = judged(push.payload, in: push.environment)
      judgement.judge(sendings: push.sendings)
      #expect(judgement.rules.codes == [rule.code])
    }
  }

  @Test("A push that nearly breaks a rule does not", arguments: PayloadRule.allCases)
  func nearlyPositive(rule: PayloadRule) throws {
    let cases = Self.nearly.filter { $0.rule == rule }
    try #require(!cases.isEmpty)
    for nearly in cases {
      var judgement = judged(nearly.payload, in: nearly.environment)
      judgement.judge(sendings: nearly.sendings)
      #expect(!judgement.rules.contains(rule), "\(String(decoding: nearly.payload, as: UTF8.self))")
    }
  }

  @Test("Every rule has its place in the table and a sentence")
  func table() {
    #expect(PayloadRule.allCases.map(\.code) == PayloadRule.allCases.map(\.code).sorted())
    var all = PayloadRuleSet()
    for rule in PayloadRule.allCases {
      #expect(PayloadRuleSet([rule]).map(\.self) == [rule])
      #expect(PayloadRule.Severity.allCases.contains(rule.severity))
      #expect(rule.explanation.hasSuffix(".") && rule.explanation.first?.isUppercase == true)
      all.insert(rule)
      #expect(all.contains(rule))
    }
    #expect(all.count == PayloadRule.allCases.count)
    #expect(all.codes == PayloadRule.allCases.map(\.code))
    #expect(PayloadRule.silentPriority10.severity == .error && PayloadRule.keyUnknown.severity == .advice)
    #expect(PayloadRuleSet([.badgeType, .keyUnknown]).hasErrors == false)
    #expect(PayloadRuleSet([.badgeType, .apsMissing]).hasErrors)
  }

  // MARK: what just does not break a rule

  struct Nearly {
    var rule: PayloadRule
    var payload: [UInt8]
    var environment: PayloadEnvironment
    var sendings: [Int64] = []
  }

  private static func aps(
    _ rule: PayloadRule, _ members: String, _ environment: PayloadEnvironment = framed()
  ) -> Nearly {
    text(rule, "{\"aps\":{\(members)}}", environment)
  }

  private static func text(
    _ rule: PayloadRule, _ text: String, _ environment: PayloadEnvironment = framed()
  ) -> Nearly {
    Nearly(rule: rule, payload: Array(text.utf8), environment: environment)
  }

  private static func framed(
    _ command: UInt8 = 2, _ priority: UInt8? = 10, expiration: UInt32? = nil, token: [UInt8]? = nil, era: Int? = nil,
    topic: String? = nil, strings: [String: String]? = nil
  ) -> PayloadEnvironment {
    PayloadEnvironment(
      era: era, topic: PayloadTopic(name: topic),
      frame: PushFrame(
        command: command, priority: priority, expiration: expiration, sentAt: 1_435_708_800, token: token),
      strings: strings)
  }

  private static func long(_ count: Int) -> String {
    "{\"aps\":{\"alert\":\"\(String(repeating: "a", count: count - 20))\"}}"
  }

  private static let alert = #""alert":"Low tide""#
  private static let wakes = #""content-available":1"#

  private static let nearly: [Nearly] =
    ofBytes + ofText + ofKeys + ofAlerts + ofValues + ofFrames

  private static let ofBytes: [Nearly] = [
    text(.payloadEmpty, " "),
    text(.payloadTooLarge, long(256), framed(1, nil, era: 2013)),
    text(.payloadTooLarge, long(2048), framed(topic: "com.example.ferry")),
    text(.payloadTooLarge, long(4096), framed(topic: "com.example.ferry.voip")),
    text(.payloadOver2048, long(2048)),
    text(.payloadOver2048, long(4096), framed(topic: "com.example.ferry.voip")),
    text(.payloadOver256, long(256), framed(1, nil)),
    text(.payloadOver256, long(257), framed(2, 10, era: 2015)),
    text(.payloadNulTerminated, "\0{}"),
    text(.payloadBOM, "{\"aps\":{\"alert\":\"\u{feff}\"}}"),
    text(.payloadUTF16, "{}\0\0"),
    text(.payloadBadUTF8, "{\"aps\":{\"alert\":\"\u{10ffff}\u{d7ff}\u{800}\u{80}\"}}"),
  ]

  private static let ofText: [Nearly] = [
    text(.jsonNotObject, "{}"),
    text(.jsonDoubleEncoded, #""{\"aps\":{}""#),
    text(.jsonTrailingComma, #"{"aps":{"badge":1,,}}"#),
    text(.jsonTrailingComma, #"{"aps":{"badge":,}}"#),
    text(.jsonTrailingComma, #"{"aps":{"badge":}}"#),
    text(.jsonTrailingComma, "[,]"),
    text(.jsonMissingComma, #"{"aps":{"badge":03}}"#),
    text(.jsonMissingComma, #"{"aps":{"badge":1}} {}"#),
    text(.jsonMissingComma, #"{"aps":{"badge":1:2}}"#),
    text(.jsonMissingComma, #"{"aps":{"badge":1 yes}}"#),
    aps(.jsonSingleQuotes, #""alert":"It's 'low' tide""#),
    text(.jsonTruncated, #"{"aps":{"badge":tru}}"#),
    text(.jsonTruncated, #"{"aps":{"alert":"\u00"}}"#),
    aps(.jsonControlCharacter, "\"alert\":\"\u{7f}\u{20}\\n\""),
    text(.jsonSyntax, #"{"aps":{"alert":"\/\b\f\n\r\t\u00e9","badge":-0.0e+1}}"#),
    aps(.jsonLoneSurrogate, #""alert":"\ud83c\udf0a \\ud83c""#),
    text(.jsonDuplicateKey, #"{"aps":{"alert":"x","badge":1},"alert":{"alert":1},"Alert":1}"#),
    aps(.payloadNotMinified, #""alert":" \n ""#),
  ]

  private static let ofKeys: [Nearly] = [
    text(.apsMissing, #"{"\u0061ps":{"alert":"x"}}"#),
    text(.apsMissing, #"{"mdm":"x"}"#),
    text(.apsNotDictionary, #"{"aps":{}}"#),
    text(.apsEmpty, #"{"aps":{}}"#, framed(topic: "pass.com.example.ticket")),
    aps(.apsEmpty, #""x":1"#),
    aps(.apsNoEffect, #""badge":-1"#),
    aps(.keyMisspelt, #""alert":"x","sonnet":1"#),
    text(.keyMisspelt, #"{"apes":1}"#),
    text(.keyMisspelt, #"{"aps":{"alert":"x"},"APS":{}}"#),
    text(.keyMisplaced, #"{"aps":{"alert":"x","badge":1},"badge":2,"body":"x"}"#),
    text(.keyMisplaced, #"{"aps":{},"badge":2}"#, framed(topic: "com.example.voip")),
    text(.urlArgsMissing, #"{"aps":{"alert":"x","url-args":7}}"#, framed(topic: "web.com.example.auction")),
    text(.urlArgsMissing, #"{"aps":{"alert":"x"}}"#, framed(topic: "com.example.web.auction")),
    text(.mdmMissing, #"{"\u006ddm":"x"}"#, framed(topic: "com.apple.mgmt.External.1")),
    text(.mdmMissing, #"{"aps":{"alert":"x"}}"#, framed(topic: "com.apple.mail")),
    text(.mdmNotAlone, #"{"mdm":"x","mdm":"y"}"#),
    text(.mdmNotAlone, #"{"mdm":"x","aps":{"alert":"x"}}"#, framed(topic: "com.example.ferry")),
    text(.mdmType, #"{"mdm":" "}"#),
    text(.complicationAPSIgnored, #"{"aps":{"content-available":1}}"#, framed(topic: "com.example.complication")),
    text(.complicationAPSIgnored, #"{"aps":{"alert":"x"}}"#, framed(topic: "complication.example")),
    aps(.keyUnknown, #""alert":{"title":"x","body":"y","summary-arg":"z"},"relevance-score":1"#),
    aps(.keyTooNew, #""alert":"x","category":"y""#, framed(era: 2014)),
    text(.customNull, #"{"aps":{"alert":{"body":"x","title-loc-key":null}},"x":{"null":"null"}}"#),
    text(.customNull, #"{"aps":{"alert":"x"},"x":{"a":null,"a":1},"y":null,"y":0}"#),
  ]

  private static let ofAlerts: [Nearly] = [
    aps(.alertType, #""alert":{}"#),
    aps(.alertNoText, #""alert":{"title-loc-key":"x"}"#),
    aps(.alertNoText, #""badge":1"#),
    aps(.alertOnlyBody, #""alert":{"body":"x","launch-image":"y"}"#),
    aps(.alertOnlyBody, #""alert":{"body":"x"}"#, framed(era: 2016)),
    aps(.alertTitleOnly, #""alert":{"title":"x","loc-key":"y"}"#),
    aps(.alertTitleOnly, #""alert":{"title":"x"}"#, framed(era: 2017)),
    aps(.alertJSONText, #""alert":"{\"a\":1,}""#),
    aps(.alertJSONText, #""alert":"[1]""#),
    aps(.textDoubleEscaped, #""alert":"\ud83c\udf0a C:\\users \\ud83 \\U0001f60 \\u{} \\n""#),
    aps(.textDoubleEscaped, #""badge":1,"x":"\\ud83d""#),
    aps(.textHTMLEntities, #""alert":"AT&T; a&b; R & amp; &; &#; &#x; &#xg; &Roll;""#),
    aps(.textPrivateUse, #""alert":"\uf8ff \ue000 \ue05b \ue600 \ud83d\ude00""#),
    aps(.textPrivateUse, #""alert":"\ue415""#, framed(era: 2011)),
    aps(.alertValueType, #""alert":{"body":"","title":"x","subtitle":"","launch-image":"","action":""}"#),
    aps(.locKeyType, #""alert":{"body":"x","action-loc-key":null,"title-loc-key":null,"subtitle-loc-key":null}"#),
    aps(.locArgsType, #""alert":{"loc-key":"x","loc-args":[],"title-loc-args":null,"subtitle-loc-args":null}"#),
    aps(.locArgsWithoutKey, #""alert":{"body":"x","title-loc-args":null,"loc-key":"y","loc-args":[]}"#),
    aps(.locKeyAndText, #""alert":{"body":"","loc-key":"x","title":"y","title-loc-key":null}"#),
    aps(.locKeyNotFound, #""alert":{"loc-key":"K"}"#, framed(strings: ["K": ""])),
    aps(.locKeyNotFound, #""alert":{"loc-key":"K"}"#),
    aps(
      .locFormatPlaceholder, #""alert":{"loc-key":"K","loc-args":["x","y"]}"#,
      framed(strings: ["K": "100% sure, 5 % discount: %%s %1$@ %2$@ %"])),
    aps(.locArgsTooFew, #""alert":{"loc-key":"K","loc-args":["x","y"]}"#, framed(strings: ["K": "%@ %2$@ %@ %%@"])),
    aps(.locArgsTooMany, #""alert":{"loc-key":"K","loc-args":["x","y"]}"#, framed(strings: ["K": "%2$@"])),
  ]

  private static let ofValues: [Nearly] = [
    aps(.badgeType, #""badge":-1.5"#),
    aps(.badgeValue, #""badge":0.12e2"#),
    aps(.badgeValue, #""badge":-0"#),
    aps(.soundType, #""sound":{}"#, framed(era: 2018)),
    aps(.soundFileName, #""sound":"a.CaF""#),
    aps(.soundFileName, #""sound":"d\u0065fault""#),
    aps(.contentAvailableValue, #""content-available":1.0"#),
    aps(.contentAvailableValue, #""content-available":0e3"#),
    aps(.mutableContentValue, #""mutable-content":10e-1"#),
    aps(.categoryType, #""category":"""#),
    aps(.threadIDType, #""thread-id":"""#),
    aps(.urlArgsType, #""url-args":[]"#),
    aps(.categoryWithoutAlert, #""alert":{"title":"x"},"category":"y""#),
    aps(.mutableWithoutAlert, #""mutable-content":1,"alert":{"loc-key":"x"}"#),
    aps(.mutableWithoutAlert, #""mutable-content":0"#),
    aps(.voipAPSIgnored, wakes + #","sound":"","alert":"""#, framed(topic: "com.example.voip")),
    aps(.backgroundWithBadgeOrSound, wakes + #","sound":"""#),
    aps(.backgroundWithBadgeOrSound, wakes + #","badge":1,"# + alert),
  ]

  private static let ofFrames: [Nearly] = [
    aps(.silentPriority10, wakes + #","badge":1"#),
    aps(.silentPriority10, wakes, framed(2, 5)),
    aps(.silentPriority10, wakes, PayloadEnvironment()),
    aps(.silentPriority10, wakes, framed(topic: "com.example.voip")),
    aps(.silentPriorityImplied, wakes, framed(2, 5)),
    aps(.silentPriorityImplied, wakes, PayloadEnvironment()),
    aps(.silentPriorityImplied, alert, framed(0, nil)),
    Nearly(
      rule: .backgroundTooOften, payload: Array(#"{"aps":{"content-available":1}}"#.utf8), environment: framed(2, 5),
      sendings: [3600, 0, 1200, 2400]),
    Nearly(
      rule: .backgroundTooOften, payload: Array(#"{"aps":{"content-available":1,"alert":"x"}}"#.utf8),
      environment: framed(), sendings: [0, 1, 2, 3]),
    aps(.priorityValue, alert, framed(2, nil)),
    aps(.priorityValue, alert, framed(2, 5)),
    aps(.alertPriority5, #""badge":1"#, framed(2, 5)),
    aps(.expirationZero, alert, framed(expiration: 1)),
    aps(.expiration1970, alert, framed(expiration: 1_000_000_000)),
    aps(.expirationPast, alert, framed(expiration: 1_435_708_801)),
    aps(.expirationPast, alert, framed(expiration: 999_999_999)),
    aps(.expirationFar, alert, framed(expiration: 1_435_708_800 + 366 * 86_400)),
    aps(.tokenLength, alert, framed(token: Array(0..<32))),
    aps(.tokenLength, alert, framed(token: Array(0..<100), era: 2016)),
    aps(.tokenHexText, alert, framed(token: Array("7c1e90d2a45b3f6881c0de27594e6abg".utf8))),
    aps(.tokenHexText, alert, framed(token: Array("7c1e90d2a45b3f6881c0de27594e6ab".utf8))),
    aps(.tokenConstant, alert, framed(token: [UInt8](repeating: 0, count: 31) + [1])),
    aps(.tokenConstant, alert, framed(token: [])),
  ]
}
