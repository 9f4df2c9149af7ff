import Bytes

/// The rules about frames, tokens and series.
extension Judging {
  /// The first second that counts as a date, in September 2001.
  private static var firstDate: UInt32 { 1_000_000_000 }
  private static var longestLife: Int64 { 366 * 86_400 }

  /// Judges the frame alone, regardless of the payload.
  mutating func judgeFrame(_ frame: PushFrame) {
    if frame.command >= 2, let priority = frame.priority, priority != 5, priority != 10 { report(.priorityValue) }
    if frame.command > 0, let expiration = frame.expiration { judgeExpiration(expiration, frame.sentAt) }
    if let token = frame.token {
      for rule in PayloadJudge.rules(ofToken: token.rawBytes, era: era) { report(rule) }
    }
  }

  private mutating func judgeExpiration(_ expiration: UInt32, _ sentAt: Int64?) {
    if expiration == 0 {
      report(.expirationZero)
    } else if expiration < Self.firstDate {
      report(.expiration1970)
    } else if let sentAt, Int64(expiration) <= sentAt {
      report(.expirationPast)
    } else if expiration == 0x7fff_ffff || expiration == 0xffff_ffff {
      report(.expirationFar)
    } else if let sentAt, Int64(expiration) - sentAt > Self.longestLife {
      report(.expirationFar)
    }
  }

  /// The rules about silent pushes and priorities, which need the frame and are not for VoIP.
  mutating func judgePriority(_ frame: (command: UInt8, priority: UInt8?)) {
    if effects.isSilent {
      if frame.command < 2 || frame.priority == nil {
        report(.silentPriorityImplied)
      } else if frame.priority == 10 {
        report(.silentPriority10)
      }
    }
    if effects.contains(.alert), frame.command >= 2, frame.priority == 5 { report(.alertPriority5) }
  }
}

extension PayloadJudge {
  /// The rules that a frame breaks by itself: about its priority, expiration and token.
  ///
  /// Judgements of payloads that are kept for the next time are made with a frame of command and priority alone, and adds
  /// these for each frame: then a judgement depends on payload, era, topic, command and priority.
  package static func rules(ofFrame frame: PushFrame, era: Int? = nil) -> PayloadRuleSet {
    var judging = Judging(environment: PayloadEnvironment(era: era), findsPlaces: false)
    judging.judgeFrame(frame)
    return judging.rules
  }

  /// The rules that a device token breaks: its length, text instead of bytes, a placeholder.
  package static func rules(ofToken token: RawSpan, era: Int? = nil) -> PayloadRuleSet {
    var rules = PayloadRuleSet()
    let count = token.byteCount
    // Longer tokens were announced for 2016; until then all had 32 bytes.
    if count < 32 || count > 100 || count != 32 && era.map({ $0 < 2016 }) ?? false { rules.insert(.tokenLength) }
    guard count > 0 else { return rules }
    let first = token.byte(at: 0)
    var isConstant = true
    var isText = count >= 32
    for offset in 0..<count {
      let byte = token.byte(at: offset)
      if byte != first { isConstant = false }
      if isText, !isPrintedHex(byte) { isText = false }
      if !isConstant, !isText { return rules }
    }
    if isConstant { rules.insert(.tokenConstant) }
    if isText { rules.insert(.tokenHexText) }
    return rules
  }

  private static func isPrintedHex(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x46, 0x61...0x66, UInt8(ascii: " "), UInt8(ascii: "<"), UInt8(ascii: ">"): true
    default: false
    }
  }

  /// Whether one token got more background pushes than a device delivers: more than three within an hour; for a
  /// Newsstand app, more than one within a day.
  ///
  /// - Parameter sendings: the times, in seconds and any order, of its pushes with distinct payloads that wake the app
  ///   and have no alert.
  package static func isTooOften(_ sendings: [Int64], kind: PayloadKind) -> Bool {
    let sorted = sendings.sorted()
    let (further, seconds): (Int, Int64) = kind == .newsstand ? (1, 86_400) : (3, 3_600)
    guard sorted.count > further else { return false }
    return (further..<sorted.count).contains { sorted[$0] - sorted[$0 - further] < seconds }
  }
}

extension PayloadJudgement {
  /// Adds `background_too_often` if a series of this payload's sendings to one token breaks that rule.
  public mutating func judge(sendings: [Int64]) {
    guard kind != .voip, effects.contains(.background), !effects.contains(.alert),
      PayloadJudge.isTooOften(sendings, kind: kind)
    else { return }
    rules.insert(.backgroundTooOften)
  }
}
