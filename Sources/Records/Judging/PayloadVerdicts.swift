import BinaryProtocol
import Bytes
import PacketCapture
import Payload
import ProviderAPI
import PushModel

/// Judges the payloads of a recording, each distinct one once as long as its judgement is kept, and counts
/// notifications.
///
/// A judgement depends on the payload, its year, topic, command and priority, and is found by a digest of them all
/// (`ContentDigest`); the rules about token and expiration are run on each notification. Notifications are counted with
/// the judgement and summed when it is dropped, so that a repeated payload costs a digest and a table lookup.
public struct PayloadVerdicts: Sendable {
  private let options: PayloadJudging
  private let keepsExamples: Bool
  private var table: JudgementTable
  private var totals = PayloadTotals()
  /// Notifications whose payload needs no judgement.
  private var plainAlerts = 0

  // Cached from the previous notification: most have the same year, connection and packet.
  private var year: Int?
  private var yearRange = Int64.min..<Int64.min
  private var time = Int64.min
  private var second: Int64?
  private var connection = 0
  private var topic: PayloadTopic
  private(set) var topics: [Int: PayloadTopic] = [:]
  private var seed: UInt64 = 0

  /// The number of judgements made: a payload whose judgement was dropped counts again.
  public var judged: Int { table.judged }

  /// - Parameters:
  ///   - options: year, topic, and the number of judgements kept.
  ///   - keepsExamples: keeps the first payload that breaks each rule.
  public init(_ options: PayloadJudging = PayloadJudging(), keepsExamples: Bool = false) {
    self.options = options
    self.keepsExamples = keepsExamples
    table = JudgementTable(limit: options.maximumKept)
    topic = options.topic
    year = options.era
    seed = JudgementTable.seed(era: year, topic: topic)
  }

  /// A connection's certificate names its topic.
  package mutating func note(subject: String, of connection: Int) {
    let named = PayloadTopic(name: CertificateSubject(subject).topics.first)
    guard named != .unknown, topics[connection] != named else { return }
    // The user's choice of Newsstand holds if the certificate names an app, and no other kind of topic.
    topics[connection] = named == .app && options.topic == .newsstand ? .newsstand : named
    self.connection = 0
  }

  package mutating func noteEnd(of connection: Int) {
    if topics.removeValue(forKey: connection) != nil { self.connection = 0 }
  }

  /// Takes the topics of connections of another instance.
  package mutating func take(_ topics: [Int: PayloadTopic]) {
    guard topics != self.topics else { return }
    self.topics = topics
    connection = 0
  }

  /// Judges a notification, and counts it.
  @inline(__always)
  package mutating func verdict(_ fields: PushFields, _ frame: RawSpan, _ place: RecordPlace) -> PayloadVerdict {
    if place.time.nanoseconds != time { setTime(place.time) }
    if place.connection != connection { setConnection(place.connection) }
    let payload = frame.extracting(fields.payload.range)
    let (command, priority) = (fields.command.rawValue, fields.priority)
    if PayloadJudge.isPlainAlert(payload, command: command, priority: priority, topic: topic) {
      plainAlerts += 1
      var rules = PayloadRuleSet()
      if mayBeFaulty(fields, frame) { judgeFrame(fields, frame, place, &rules) }
      return PayloadVerdict(rules: rules, kind: .alert, effects: .alert)
    }
    let digest = JudgementTable.digest(
      of: payload, command: command, priority: priority, seed: seed)
    let index = table.index(of: digest) ?? add(digest, payload, fields, place)
    table.count(index)
    let entry = table[index]
    var rules = entry.rules
    if mayBeFaulty(fields, frame) { judgeFrame(fields, frame, place, &rules) }
    return PayloadVerdict(rules: rules, kind: entry.kind, effects: entry.effects)
  }

  /// Judges a notification of the provider API, and counts it; `nil` if its payload is not whole, or something that it is
  /// judged by is uncertain.
  package mutating func verdict(_ record: borrowing ProviderNotificationRecord) -> PayloadVerdict? {
    guard Self.isCertain(record.request) else { return nil }
    if record.place.time.nanoseconds != time { setTime(record.place.time) }
    let request = record.request
    let environment = Self.environment(of: record, year: year, topic: options.topic)
    let payload = record.bytes(of: request.payload)
    let seed = JudgementTable.seed(
      era: year, topic: environment.topic, longestPayload: environment.longestPayload)
    let digest = JudgementTable.digest(of: payload, command: 2, priority: request.priority, seed: seed)
    let index = table.index(of: digest) ?? add(digest, payload, environment, record.place)
    table.count(index)
    let entry = table[index]
    return PayloadVerdict(rules: entry.rules, kind: entry.kind, effects: entry.effects)
  }

  /// Whether its payload is whole, and everything known that it is judged by.
  package static func isCertain(_ request: ProviderRequest) -> Bool {
    (request.isPayloadWhole || request.payloadLength == 0)
      && request.uncertain.isDisjoint(with: [.payload, .topic, .pushType, .priority]) && request.target != .unknown
  }

  /// What the payload of a notification of the provider API is judged by.
  ///
  /// - Parameters:
  ///   - year: of sending.
  ///   - topic: of a notification that has none.
  package static func environment(
    of record: borrowing ProviderNotificationRecord, year: Int?, topic: PayloadTopic
  ) -> PayloadEnvironment {
    let request = record.request
    var environment = PayloadEnvironment(
      era: year, topic: record.text(of: request.topic).map { PayloadTopic(name: $0) } ?? topic,
      frame: PushFrame(command: 2, priority: request.priority))
    environment.longestPayload = request.longestPayload(record.text(of: request.pushType))
    return environment
  }

  @inline(__always)
  private func mayBeFaulty(_ fields: PushFields, _ frame: RawSpan) -> Bool {
    PushFrame.mayBeFaulty(
      command: fields.command.rawValue, expiration: fields.expiration, sentAt: second,
      token: frame.extracting(fields.token.range))
  }

  @inline(never)
  private mutating func judgeFrame(
    _ fields: PushFields, _ frame: RawSpan, _ place: RecordPlace, _ rules: inout PayloadRuleSet
  ) {
    var found = PayloadJudge.rules(
      ofFrame: PushFrame(command: fields.command.rawValue, expiration: fields.expiration, sentAt: second), era: year)
    let token = frame.extracting(fields.token.range)
    found.formUnion(PayloadJudge.rules(ofToken: token, era: year))
    guard !found.isEmpty else { return }
    rules.formUnion(found)
    for rule in found {
      if keepsExamples, totals[rule].example == nil {
        totals[rule].example = PayloadExample(
          rule, text: rule.isOfToken ? PayloadExample.text(token) : "\(fields.expiration ?? 0)", place)
      }
      totals.note(rule, 1, packet: place.packet)
    }
  }

  // MARK: judgements

  @inline(never)
  private mutating func add(
    _ digest: UInt64, _ payload: RawSpan, _ fields: PushFields, _ place: RecordPlace
  ) -> Int {
    let frame = PushFrame(command: fields.command.rawValue, priority: fields.priority)
    return add(digest, payload, PayloadEnvironment(era: year, topic: topic, frame: frame), place)
  }

  private mutating func add(
    _ digest: UInt64, _ payload: RawSpan, _ environment: PayloadEnvironment, _ place: RecordPlace
  ) -> Int {
    var sums = totals
    let index = table.add(digest, payload, in: environment, mark: place.packet) { sums.add($0) }
    let rules = table[index].rules
    totals = sums
    if keepsExamples, !totals.exampled.isSuperset(of: rules) { keepExamples(rules, payload, environment, place) }
    return index
  }

  private mutating func keepExamples(
    _ rules: PayloadRuleSet, _ payload: RawSpan, _ environment: PayloadEnvironment, _ place: RecordPlace
  ) {
    totals.exampled.formUnion(rules)
    for finding in table.findings(of: payload, in: environment)
    where totals[finding.rule].example == nil {
      totals[finding.rule].example = PayloadExample(finding, payload, place)
    }
  }

  /// The counts so far.
  package var counted: PayloadTotals {
    var totals = totals
    table.eachKept { totals.add($0) }
    if plainAlerts > 0 { totals.kinds[.alert, default: 0] += plainAlerts }
    return totals
  }

  /// Counts a push that exceeds its device's budget.
  package mutating func noteTooOften(_ frame: RawSpan, _ fields: PushFields, _ place: RecordPlace) {
    if keepsExamples, totals[.backgroundTooOften].example == nil {
      let token = PayloadExample.text(frame.extracting(fields.token.range))
      totals[.backgroundTooOften].example = PayloadExample(.backgroundTooOften, text: token, place)
    }
    totals.note(.backgroundTooOften, 1, packet: place.packet)
  }

  // MARK: what a judgement depends on

  @inline(never)
  private mutating func setTime(_ time: Timestamp) {
    self.time = time.nanoseconds
    guard time.isKnown else {
      second = nil
      setYear(options.era)
      yearRange = 0..<0
      return
    }
    second = time.nanoseconds >= 0 ? time.nanoseconds / 1_000_000_000 : nil
    if yearRange.contains(time.nanoseconds) { return }
    let found = SendingYear.around(nanoseconds: time.nanoseconds)
    yearRange = found.range
    setYear(options.era ?? found.year)
  }

  private mutating func setYear(_ year: Int?) {
    guard year != self.year else { return }
    self.year = year
    seed = JudgementTable.seed(era: year, topic: self.topic)
  }

  @inline(never)
  private mutating func setConnection(_ connection: Int) {
    self.connection = connection
    let topic = topics[connection] ?? options.topic
    guard topic != self.topic else { return }
    self.topic = topic
    seed = JudgementTable.seed(era: year, topic: self.topic)
  }
}

extension ProviderRequest {
  /// The longest payload that it may have: broadcasts may be longer than other notifications.
  fileprivate func longestPayload(_ type: String?) -> Int? {
    if target == .broadcast { return 5_120 }
    return type.map { PushType(rawValue: $0).longestPayload } ?? 4_096
  }
}
