import Bytes

/// A push that breaks exactly one rule, for loads with faults and for tests of every judge.
public struct FaultyPush: Sendable {
  /// The rule that is broken.
  public let rule: PayloadRule
  /// The payload, which may be valid if the rule is about the frame.
  public var payload: [UInt8]
  /// The conditions in which the rule is broken: a frame, a topic, a year, a table of strings. The defaults are those
  /// of an alert with priority 10 in command 2.
  public var environment: PayloadEnvironment
  /// The times of such pushes to one token, in seconds, for the rule about series.
  public var sendings: [Int64] = []

  /// Whether the payload alone breaks the rule, in any frame.
  public var isOfPayload: Bool {
    rule != .payloadOver256 && (Self.payloads[rule] != nil || Self.bytes(rule, "") != nil)
  }

  /// Makes the faulty push with this number; a pure function of its arguments.
  ///
  /// - Parameters:
  ///   - rule: the rule to break.
  ///   - seed: selects the texts, together with `number`.
  ///   - number: the number of the push.
  public init(breaking rule: PayloadRule, seed: UInt64 = 0, number: UInt64 = 0) {
    var draws = SampleDraws(seed: seed, number: number)
    let theme = draws.pick(SampleTheme.all)
    let format = draws.pick(theme.words).format
    let text = LocalizedFormat(format).filled(with: [draws.pick(theme.firsts), draws.pick(theme.seconds)]).text
    self.rule = rule
    environment = PayloadEnvironment(frame: PushFrame(command: 2, priority: 10))
    if let bytes = Self.bytes(rule, text) {
      payload = bytes
    } else {
      let parts = (Self.payloads[rule] ?? Self.alert).split(separator: "§", omittingEmptySubsequences: false)
      payload = Array(parts.joined(separator: text).utf8)
    }
    adapt(to: rule)
  }

  /// The payload for rules about the frame.
  private static let alert = #"{"aps":{"alert":"§"}}"#

  /// A fault with a usual payload around it; § is a text.
  private static let payloads: [PayloadRule: String] = [
    .alertJSONText: #"{"aps":{"alert":"{\"body\":\"§\"}"}}"#,
    .alertNoText: #"{"aps":{"alert":"","badge":2},"text":"§"}"#,
    .alertOnlyBody: #"{"aps":{"alert":{"body":"§"}}}"#,
    .alertTitleOnly: #"{"aps":{"alert":{"title":"§"}}}"#,
    .alertType: #"{"aps":{"alert":["§"],"badge":2}}"#,
    .alertValueType: #"{"aps":{"alert":{"title":null,"body":"§"}}}"#,
    .apsEmpty: #"{"aps":{},"text":"§"}"#,
    .apsMissing: #"{"text":"§"}"#,
    .apsNoEffect: #"{"aps":{"content-available":0},"text":"§"}"#,
    .apsNotDictionary: #"{"aps":["§"]}"#,
    .badgeType: #"{"aps":{"alert":"§","badge":"3"}}"#,
    .badgeValue: #"{"aps":{"alert":"§","badge":-1}}"#,
    .categoryType: #"{"aps":{"alert":"§","category":7}}"#,
    .categoryWithoutAlert: #"{"aps":{"badge":2,"category":"MESSAGE"},"text":"§"}"#,
    .contentAvailableValue: #"{"aps":{"alert":"§","content-available":true}}"#,
    .customNull: #"{"aps":{"alert":"§"},"thread":null}"#,
    .backgroundWithBadgeOrSound: #"{"aps":{"content-available":1,"badge":4},"text":"§"}"#,
    .jsonDoubleEncoded: #""{\"aps\":{\"alert\":\"§\"}}""#,
    .jsonDuplicateKey: #"{"aps":{"badge":1,"alert":"§","badge":2}}"#,
    .jsonLoneSurrogate: #"{"aps":{"alert":"§ \ud83c"}}"#,
    .jsonMissingComma: #"{"aps":{"alert":"§" "badge":2}}"#,
    .jsonNotObject: #"[{"aps":{"alert":"§"}}]"#,
    .jsonSingleQuotes: "{'aps':{'alert':'§'}}",
    .jsonSyntax: #"{"aps":{"alert":"§","content-available":True}}"#,
    .jsonTrailingComma: #"{"aps":{"alert":"§","badge":2,}}"#,
    .jsonTruncated: #"{"aps":{"alert":"§"}"#,
    .keyMisplaced: #"{"aps":{"alert":"§"},"badge":2}"#,
    .keyMisspelt: #"{"aps":{"alert":"§","content_available":1}}"#,
    .keyUnknown: #"{"aps":{"alert":"§","harbour":"north"}}"#,
    .locArgsType: #"{"aps":{"alert":{"loc-key":"MESSAGE_FROM","loc-args":["§",2]}}}"#,
    .locArgsWithoutKey: #"{"aps":{"alert":{"body":"§","loc-args":["north"]}}}"#,
    .mdmNotAlone: #"{"mdm":"6F1B1A4E-0000-4000-8000-000000000001","aps":{"alert":"§"}}"#,
    .mdmType: #"{"mdm":7}"#,
    .locKeyAndText: #"{"aps":{"alert":{"body":"§","loc-key":"MESSAGE_FROM"}}}"#,
    .locKeyType: #"{"aps":{"alert":{"body":"§","loc-key":null}}}"#,
    .mutableContentValue: #"{"aps":{"alert":"§","mutable-content":"1"}}"#,
    .mutableWithoutAlert: #"{"aps":{"mutable-content":1},"text":"§"}"#,
    .payloadNotMinified: #"{"aps": {"alert": "§"}}"#,
    .soundFileName: #"{"aps":{"alert":"§","sound":"chime.mp3"}}"#,
    .soundType: #"{"aps":{"alert":"§","sound":1}}"#,
    .textDoubleEscaped: #"{"aps":{"alert":"§ \\ud83c\\udf0a"}}"#,
    .textHTMLEntities: #"{"aps":{"alert":"§ &amp; more"}}"#,
    .textPrivateUse: #"{"aps":{"alert":"§ \ue415"}}"#,
    .threadIDType: #"{"aps":{"alert":"§","thread-id":42}}"#,
    .urlArgsType: #"{"aps":{"alert":"§","url-args":"north"}}"#,
  ]

  /// Payloads that are not text, or not of the usual length.
  private static func bytes(_ rule: PayloadRule, _ text: String) -> [UInt8]? {
    let alert = Array("{\"aps\":{\"alert\":\"\(text)\"}}".utf8)
    func long(_ count: Int) -> [UInt8] {
      let letters = [UInt8](repeating: UInt8(ascii: "a"), count: max(0, count - alert.count - 7))
      return Array(alert.dropLast()) + Array(",\"d\":\"".utf8) + letters + Array("\"}".utf8)
    }
    switch rule {
    case .payloadEmpty: return []
    case .payloadNulTerminated: return alert + [0]
    case .payloadBOM: return [0xef, 0xbb, 0xbf] + alert
    case .payloadBadUTF8: return Array("{\"aps\":{\"alert\":\"K".utf8) + [0xe4] + Array("se \(text)\"}}".utf8)
    case .payloadUTF16:
      return String(decoding: alert, as: UTF8.self).utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
    case .jsonControlCharacter: return Array("{\"aps\":{\"alert\":\"\(text)\n!\"}}".utf8)
    case .payloadTooLarge: return long(4097)
    case .payloadOver2048: return long(3000)
    case .payloadOver256: return long(300)
    default: return nil
    }
  }

  /// The frame, topic, year or strings that the rule is about.
  private mutating func adapt(to rule: PayloadRule) {
    // 1 July 2015, 00:00 UTC.
    let sentAt: Int64 = 1_435_708_800
    func frame(
      _ command: UInt8, _ priority: UInt8? = nil, expiration: UInt32? = nil, token: [UInt8]? = nil
    ) -> PushFrame {
      PushFrame(command: command, priority: priority, expiration: expiration, sentAt: sentAt, token: token)
    }
    let silent = Array(#"{"aps":{"content-available":1}}"#.utf8)
    switch rule {
    case .payloadOver256: environment.frame = frame(1)
    case .apsNoEffect, .backgroundWithBadgeOrSound: environment.frame = frame(2, 5)
    case .backgroundTooOften:
      (payload, environment.frame) = (silent, frame(2, 5))
      sendings = [0, 600, 1200, 1800]
    case .silentPriority10: payload = silent
    case .silentPriorityImplied: (payload, environment.frame) = (silent, frame(1))
    case .priorityValue: environment.frame = frame(2, 7)
    case .alertPriority5: environment.frame = frame(2, 5)
    case .expirationZero: environment.frame = frame(2, 10, expiration: 0)
    case .expiration1970: environment.frame = frame(2, 10, expiration: 86_400)
    case .expirationPast: environment.frame = frame(2, 10, expiration: 1_435_708_740)
    case .expirationFar: environment.frame = frame(2, 10, expiration: 0x7fff_ffff)
    case .tokenLength: environment.frame = frame(2, 10, token: (1...31).map { UInt8($0) })
    case .tokenConstant: environment.frame = frame(2, 10, token: [UInt8](repeating: 0, count: 32))
    case .tokenHexText: environment.frame = frame(2, 10, token: Array("7c1e90d2a45b3f6881c0de27594e6ab3".utf8))
    case .voipAPSIgnored: environment.topic = .voip
    case .complicationAPSIgnored: environment.topic = .complication
    case .urlArgsMissing: environment.topic = .web
    case .mdmMissing: environment.topic = .management
    case .locFormatPlaceholder:
      environment.strings = ["KEY": "%s and %2$d"]
      payload = Array(#"{"aps":{"alert":{"loc-key":"KEY","loc-args":["north","2"]}}}"#.utf8)
    case .keyTooNew:
      environment.era = 2012
      payload.replaceSubrange(payload.count - 2..<payload.count, with: Array(#","category":"MESSAGE"}}"#.utf8))
    case .locKeyNotFound, .locArgsTooFew, .locArgsTooMany:
      environment.strings = rule == .locKeyNotFound ? [:] : ["KEY": rule == .locArgsTooFew ? "%@: %@" : "Ready"]
      payload = Array(#"{"aps":{"alert":{"loc-key":"KEY","loc-args":["north"]}}}"#.utf8)
    default: break
    }
  }
}
