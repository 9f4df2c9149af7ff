import Payload

/// How the payloads of a recording are judged.
public struct PayloadJudging: Sendable {
  /// The year of sending, by which rules apply; `nil`: the year of each notification's packet, in UTC.
  public var era: Int?
  /// The topic of connections whose certificate names none.
  public var topic = PayloadTopic.unknown
  /// The number of distinct payloads whose judgement is kept; when there are more, all are dropped and judged again.
  public var maximumKept = 1 << 14

  public init() {}
}

/// The verdict on one notification's payload and frame.
public struct PayloadVerdict: Sendable, Equatable {
  /// The rules that the payload or the frame breaks.
  public var rules: PayloadRuleSet
  /// The purpose of the payload.
  public var kind: PayloadKind
  /// What a device does with the payload.
  public var effects: PayloadEffects

  /// Whether the push wakes the app and has no alert, so that a device may defer it.
  package var needsBudget: Bool { kind != .voip && effects.contains(.background) && !effects.contains(.alert) }
}

/// Years as ranges of time.
package enum SendingYear {
  /// Nanoseconds since 1970 that lie in the same year as `nanoseconds`, and its number; `nil` before 2009, when no push
  /// was sent: the recorder's clock was not set.
  static func around(nanoseconds: Int64) -> (range: Range<Int64>, year: Int?) {
    let first = start(of: 2009)
    guard nanoseconds >= first else { return (Int64.min..<first, nil) }
    var year = 2009
    while year < 2262, start(of: year + 1) <= nanoseconds { year += 1 }
    return (start(of: year)..<(year < 2262 ? start(of: year + 1) : .max), year)
  }

  /// The range and number of the year of a time in seconds since 1970.
  package static func around(second: Int64) -> (range: Range<Int64>, year: Int?) {
    let (product, isTooFar) = second.multipliedReportingOverflow(by: 1_000_000_000)
    return around(nanoseconds: isTooFar ? (second < 0 ? .min : .max) : product)
  }

  private static func start(of year: Int) -> Int64 {
    let before = year - 1
    let leapDays = before / 4 - before / 100 + before / 400 - 477
    return Int64((year - 1970) * 365 + leapDays) * 86_400_000_000_000
  }
}
