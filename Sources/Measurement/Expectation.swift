/// A condition on a gateway's ledger, such as `accepted>=1000`, `lost<=0` or `token=43bf,count=1`.
///
/// It holds only if the ledger proves it: where a value is not certain, all that it may be has to fulfil the condition.
public struct Expectation: Sendable, Equatable {
  private enum Subject: Sendable, Equatable {
    case ledger
    /// Notifications to the tokens that begin so.
    case token(prefix: String)
  }

  /// The range in which a value lies.
  private struct Reading {
    var least: Double
    var most: Double
    /// Why it is not certain.
    var reason: String?

    init(_ value: Double) { (least, most) = (value, value) }
    init(_ least: Double, orUpTo most: Double, because reason: String) {
      (self.least, self.most) = (least, most)
      if least != most { self.reason = reason }
    }
  }

  /// The expression as written by the user.
  public let expression: String
  private let condition: Condition
  private let subject: Subject

  /// Parses `metric<bound`, with `<`, `<=`, `>`, `>=` or `=`, or `token=PREFIX,count=1`. Spaces are ignored.
  ///
  /// Times need a unit (`us`, `ms`, `s`), except 0. Counts may have `k`, `M` or `G`.
  ///
  /// - Throws: a `SyntaxError` for an unknown metric (with a list of all), or a bound that does not fit it.
  public init(_ expression: String) throws(Condition.SyntaxError) {
    self.expression = expression
    let text = expression.filter { $0 != " " }
    guard text.hasPrefix("token=") else {
      subject = .ledger
      let names = Array(Self.counts.keys) + Array(Self.verdicts.keys)
      condition = try Condition(text, of: names) { Self.verdicts[$0]?.quantity ?? .count }
      return
    }
    let parts = text.dropFirst("token=".count).split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false)
    let prefix = String(parts.first ?? "").lowercased()
    guard parts.count == 2, !prefix.isEmpty, prefix.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
      throw Condition.SyntaxError(
        description: "'\(expression)' takes hexadecimal digits and a condition, as in token=43bf,count=1")
    }
    subject = .token(prefix: prefix)
    condition = try Condition(String(parts[1]), of: Self.ofToken.keys) { _ in .count }
  }

  /// Whether it is of what only the verdict on providers knows.
  public var needsVerdict: Bool { subject != .ledger || Self.verdicts[condition.name] != nil }

  /// The tokens that it is of, by their beginning in lower-case hexadecimal; `nil`: it is of none.
  public var token: String? { if case .token(let prefix) = subject { prefix } else { nil } }

  /// Compares a ledger with the bound. A value that is not certain fails the condition unless all that it may be
  /// fulfils it, and the outcome has the reason.
  public func judge(_ ledger: Ledger) -> RunResult.Verdict.Threshold {
    guard let reading = reading(ledger) else {
      return .init(expression: expression, value: nil, passed: false, reason: "there is no verdict")
    }
    let comparison = condition.comparison
    let holds = comparison.holds(reading.least, condition.bound)
    let passed = holds && comparison.holds(reading.most, condition.bound)
    // Otherwise it is certainly wrong.
    let isOpen =
      holds || comparison.holds(reading.most, condition.bound)
      || (reading.least < condition.bound && condition.bound < reading.most)
    return .init(
      expression: expression, value: reading.least, passed: passed, reason: !passed && isOpen ? reading.reason : nil)
  }

  private func reading(_ ledger: Ledger) -> Reading? {
    if case .token(let prefix) = subject {
      guard let verdict = ledger.verdict, let count = Self.ofToken[condition.name] else { return nil }
      guard let token = verdict.tokens.first(where: { $0.prefix == prefix }) else { return nil }
      return Self.observed(count(token), verdict)
    }
    if let count = Self.counts[condition.name] { return Reading(Double(count(ledger))) }
    guard let verdict = ledger.verdict else { return nil }
    return Self.verdicts[condition.name]?.reading(verdict)
  }

  // MARK: metrics

  /// The names of all metrics.
  package static var names: [String] { Array(counts.keys) + Array(verdicts.keys) }

  private static let ofToken: [String: @Sendable (ProviderVerdict.Token) -> Int] = [
    "count": { $0.accepted }, "sent": { $0.sent }, "rejected": { $0.rejected },
  ]

  /// Counts of the gateway's own books, which are certain.
  private static let counts: [String: @Sendable (Ledger) -> Int] = [
    "received": { $0.gateway.received }, "accepted": { $0.gateway.accepted },
    "rejected": { $0.gateway.rejected.values.reduce(0, +) }, "discarded": { $0.gateway.discarded },
    "malformed": { $0.gateway.binary.malformed }, "incomplete": { $0.gateway.binary.incomplete },
    "connections": { $0.gateway.connections }, "handshakes": { $0.gateway.handshakes },
    "handshake_failures": { $0.gateway.handshakeFailures }, "refused": { $0.gateway.refused },
    "delivered": { $0.devices.delivered }, "stored": { $0.devices.stored }, "coalesced": { $0.devices.coalesced },
    "devices_expired": { $0.devices.expired }, "dropped": { $0.devices.dropped },
    "uninstalled": { $0.devices.uninstalled }, "feedback_connections": { $0.feedback.connections },
    "feedback_tuples": { $0.feedback.tuplesSent }, "feedback_waiting": { $0.feedback.waiting },
  ]

  private struct Metric: Sendable {
    var quantity = Condition.Quantity.count
    var reading: @Sendable (ProviderVerdict) -> Reading
  }

  private static let verdicts: [String: Metric] = {
    var metrics: [String: Metric] = [
      "notifications": Metric { observed($0.stories.total, $0) },
      "lost": Metric { uncertain($0.stories.lost, mayBe: $0.mayBeLost - $0.stories.lost, $0) },
      "accepted_twice": Metric { uncertain($0.stories.acceptedTwice, mayBe: $0.stories.open, $0) },
      "expired": Metric { uncertain($0.stories.expired, mayBe: $0.stories.open, $0) },
      "recovered": Metric { uncertain($0.stories.recovered, mayBe: $0.stories.open, $0) },
      "open": Metric { observed($0.stories.open, $0) },
      "sent_again": Metric { observed($0.sentAgain, $0) },
      "sent_to_listed": Metric { verdict in
        verdict.feedback.isCut
          ? Reading(Double(verdict.feedback.sentToListed), orUpTo: .infinity, because: "too many tokens were listed")
          : observed(verdict.feedback.sentToListed, verdict)
      },
      "one_notification_connections": Metric { verdict in
        verdict.notObserved == 0
          ? Reading(Double(verdict.connections.ofOneNotification))
          : Reading(0, orUpTo: .infinity, because: notObserved(verdict))
      },
      "most_connections_per_s": Metric { verdict in
        Reading(
          Double(verdict.connections.mostPerSecond),
          orUpTo: verdict.notObserved == 0 ? Double(verdict.connections.mostPerSecond) : .infinity,
          because: notObserved(verdict))
      },
    ]
    let quantiles: [(String, Double, @Sendable (RecoveryTimes) -> Double)] = [
      ("_p50", 0.5, { $0.p50S }), ("_p99", 0.99, { $0.p99S }), ("_max", 1, { $0.maxS }),
    ]
    for (suffix, quantile, value) in quantiles {
      metrics["resend" + suffix] = Metric(quantity: .time) { verdict in
        let never = verdict.notSentAgain
        return time(
          verdict.resend.map(value), verdict,
          never: Double(never) > (1 - quantile) * Double(verdict.discarded) ? never : 0,
          of: "\(verdict.discarded) discarded sendings were not sent again")
      }
      metrics["reconnect" + suffix] = Metric(quantity: .time) { verdict in
        let all = verdict.errors.count + verdict.errorsOmitted
        let never = verdict.errors.count { $0.reconnectedS == nil } + verdict.errorsOmitted
        return time(
          verdict.reconnect.map(value), verdict, never: Double(never) > (1 - quantile) * Double(all) ? never : 0,
          of: "\(all) error responses have no next connection that is known")
      }
    }
    return metrics
  }()

  /// A time in microseconds; 0 if nothing happened that it is of.
  ///
  /// - Parameter never: so many never happened that the quantile is theirs; 0: not so many.
  private static func time(_ seconds: Double?, _ verdict: ProviderVerdict, never: Int, of all: String) -> Reading {
    let value = (seconds ?? 0) * 1e6
    if never > 0 { return Reading(value, orUpTo: .infinity, because: "\(never) of \(all)") }
    return Reading(value, orUpTo: verdict.notObserved == 0 ? value : .infinity, because: notObserved(verdict))
  }

  /// A count of what was observed; each notification that was not may be one more.
  private static func observed(_ count: Int, _ verdict: ProviderVerdict) -> Reading {
    Reading(Double(count), orUpTo: Double(count + verdict.notObserved), because: notObserved(verdict))
  }

  /// A count of notifications whose outcome is certain; open ones may have it as well.
  private static func uncertain(_ count: Int, mayBe open: Int, _ verdict: ProviderVerdict) -> Reading {
    var reasons: [String] = []
    if open > 0 { reasons.append("\(open) \(open == 1 ? "is" : "are") open: \(verdict.stories.whereOpen)") }
    if verdict.notObserved > 0 { reasons.append(notObserved(verdict)) }
    return Reading(
      Double(count), orUpTo: Double(count + open + verdict.notObserved), because: reasons.joined(separator: "; "))
  }

  private static func notObserved(_ verdict: ProviderVerdict) -> String {
    "\(verdict.notObserved) notifications were left out (--max-unrecorded)"
  }
}
