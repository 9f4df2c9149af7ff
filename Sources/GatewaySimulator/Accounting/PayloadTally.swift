import Bytes
import Measurement
import Payload
import ProviderAPI
import PushModel

/// How the gateway judges payloads; how the real gateway did is not documented.
public struct PayloadScrutiny: Sendable {
  /// The year that the gateway simulates; `nil`: only rules that hold in any year apply.
  public var era: Int?
  /// The rejection of notifications whose payload or frame has an error; `nil`: they are accepted.
  public var refusal: Rejection?
  /// The reason over HTTP/2, where a payload alone is judged; `nil`: they are accepted.
  public var reason: ProviderReason?
  /// Distinct payloads whose judgement is kept on each event loop; when there are more, they are judged again.
  public var maximumKept = 1 << 14

  public init() {}
}

/// Counts of notifications on one event loop's connections, by kind and by the rules that payloads and frames break.
///
/// Accessed only on its loop.
final class PayloadTally {
  private let scrutiny: PayloadScrutiny
  private var table: JudgementTable
  private var templates = TemplateTable()
  private var sums = PayloadCounts()
  /// Notifications whose payload needs no judgement.
  private var plainAlerts = 0

  init(_ scrutiny: PayloadScrutiny) {
    self.scrutiny = scrutiny
    table = JudgementTable(limit: scrutiny.maximumKept)
  }

  /// Judges a notification, and counts it; returns why it is refused.
  ///
  /// - Parameter now: UNIX time in ms.
  @inline(__always)
  func refusal(of notification: borrowing Push, topic: PayloadTopic, now: Int64) -> Rejection? {
    let (command, priority) = (notification.fields.command.rawValue, notification.priority)
    let payload = notification.payload
    let second = now / 1_000
    let mayBeFaulty = PushFrame.mayBeFaulty(
      command: command, expiration: notification.expiration, sentAt: second, token: notification.token)
    let hasFaultyFrame = mayBeFaulty && noteFrame(notification, second)
    if PayloadJudge.isPlainAlert(payload, command: command, priority: priority, topic: topic) {
      plainAlerts += 1
      return hasFaultyFrame ? scrutiny.refusal : nil
    }
    let rules = count(payload, topic, PushFrame(command: command, priority: priority), longest: nil)
    guard let refusal = scrutiny.refusal else { return nil }
    return hasFaultyFrame || rules.hasErrors ? refusal : nil
  }

  /// Judges the payload of a notification over HTTP/2, and counts it; returns why it is refused.
  ///
  /// - Parameter longest: the longest payload of its type in bytes.
  func refusal(of payload: RawSpan, priority: UInt8?, topic: PayloadTopic, longest: Int) -> ProviderReason? {
    // As for an observer's records: the priority is judged as that of a binary frame is.
    if PayloadJudge.isPlainAlert(payload, command: 2, priority: priority, topic: topic) {
      plainAlerts += 1
      return nil
    }
    let rules = count(payload, topic, PushFrame(command: 2, priority: priority), longest: longest)
    return rules.hasErrors ? scrutiny.reason : nil
  }

  /// Counts a payload with its judgement.
  @inline(__always)
  private func count(_ payload: RawSpan, _ topic: PayloadTopic, _ frame: PushFrame, longest: Int?) -> PayloadRuleSet {
    let seed = JudgementTable.seed(era: scrutiny.era, topic: topic, longestPayload: longest)
    let environment = JudgementTable.environment(command: frame.command, priority: frame.priority, seed: seed)
    if let known = templates.countLatest(payload, environment: environment) { return known }
    let digest = JudgementTable.digest(of: payload, environment: environment)
    if let index = table.index(of: digest) {
      table.count(index)
      return table[index].rules
    }
    var judged = PayloadEnvironment(era: scrutiny.era, topic: topic, frame: frame)
    judged.longestPayload = longest
    return judge(payload, environment, digest, judged)
  }

  /// Judges a payload that was not seen before, by its template if that is known, and counts it.
  @inline(never)
  private func judge(
    _ payload: RawSpan, _ environment: UInt64, _ digest: UInt64, _ judged: PayloadEnvironment
  ) -> PayloadRuleSet {
    if let known = templates.count(payload, environment: environment) { return known }
    var sums = sums
    let index = table.add(digest, payload, in: judged) { sums.add($0) }
    table.count(index)
    if templates.isWanted(), let template = table.template(ofLast: payload) {
      templates.add(template, environment: environment, table[index]) { sums.add($0) }
    }
    self.sums = sums
    return table[index].rules
  }

  /// Counts the rules that the frame alone breaks; `true` if one is an error.
  @inline(never)
  private func noteFrame(_ notification: borrowing Push, _ second: Int64) -> Bool {
    let command = notification.fields.command.rawValue
    var rules = PayloadJudge.rules(
      ofFrame: PushFrame(command: command, expiration: notification.expiration, sentAt: second), era: scrutiny.era)
    rules.formUnion(PayloadJudge.rules(ofToken: notification.token, era: scrutiny.era))
    for rule in rules { sums.lint[rule.code, default: 0] += 1 }
    return rules.hasErrors
  }

  /// Counts a notification that the protocol's rules refused, so that it was not judged.
  func note(refused status: BinaryStatus) {
    let rule: PayloadRule
    switch status {
    case .missingPayload: rule = .payloadEmpty
    case .invalidPayloadSize: rule = .payloadTooLarge
    case .missingDeviceToken, .invalidTokenSize: rule = .tokenLength
    default: return
    }
    note(rule)
  }

  /// Counts the rule that a payload breaks which is not judged: there is none, or it is too long.
  func note(_ rule: PayloadRule) { sums.lint[rule.code, default: 0] += 1 }

  /// The counts so far.
  var counts: PayloadCounts {
    var counts = sums
    table.eachKept { counts.add($0) }
    templates.eachKept { counts.add($0) }
    if plainAlerts > 0 { counts.kinds[PayloadKind.alert.rawValue, default: 0] += plainAlerts }
    return counts
  }
}

/// Notifications by kind, and by code of the rules that they break.
struct PayloadCounts: Sendable {
  var kinds: [String: Int] = [:]
  var lint: [String: Int] = [:]

  mutating func add(_ entry: JudgementTable.Entry) {
    guard entry.count > 0 else { return }
    kinds[entry.kind.rawValue, default: 0] += entry.count
    for rule in entry.rules { lint[rule.code, default: 0] += entry.count }
  }

  mutating func combine(with other: PayloadCounts, _ operation: (Int, Int) -> Int) {
    for (kind, count) in other.kinds { kinds[kind] = operation(kinds[kind] ?? 0, count) }
    for (rule, count) in other.lint { lint[rule] = operation(lint[rule] ?? 0, count) }
  }

  /// The counts in the ledger's form.
  var ledger: Ledger.Payloads { Ledger.Payloads(kinds: kinds, lint: lint) }
}
