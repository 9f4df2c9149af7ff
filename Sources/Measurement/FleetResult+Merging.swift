extension FleetResult {
  /// A result and its name in messages, e.g. the name of its file.
  public struct Part: Sendable {
    public var name: String
    public var result: FleetResult

    public init(_ name: String, _ result: FleetResult) { (self.name, self.result) = (name, result) }
  }

  /// Joins results of segments of one fleet.
  ///
  /// Counts are added and histograms merge exactly, in whatever order the parts are given; of storms the latest return
  /// counts, and connections are added second by second. The course is joined by the time of day. The environment is that
  /// of the first segment, with all hosts. Warnings name segments that are missing or repeated, and plans that differ.
  ///
  /// - Parameter samples: the most samples over time; when there are more, each is of twice the time.
  /// - Throws: a `MergeError` without parts, or if they differ in schema, storms or the number of segments.
  public static func merging(_ parts: [Part], samples: Int = 10_000) throws(RunResult.MergeError) -> FleetResult {
    let sorted = parts.sorted { $0.result.place < $1.result.place }
    guard let first = sorted.first else { throw RunResult.MergeError(description: "there is nothing to merge") }
    guard var segments = Segments(first.result.segment) else { throw first.misfit("is of no segment") }
    var merged = first.result
    for part in sorted.dropFirst() {
      let other = part.result
      guard other.schema == merged.schema, other.kind == merged.kind else { throw part.misfit("has another schema") }
      guard let numbers = Segments(other.segment), numbers.count == segments.count else {
        throw part.misfit("has another number of segments than \(first.name)")
      }
      guard other.storms.map(\.terms) == merged.storms.map(\.terms) else {
        throw part.misfit("had other storms than \(first.name)")
      }
      guard other.latency.hasUnits, merged.latency.hasUnits,
        [other, merged].allSatisfy({ $0.localPush?.invitationUs.unit ?? .microseconds == .microseconds })
      else { throw part.misfit("has times in another unit") }
      segments.add(numbers)
      merged.add(other)
      if other.terms != first.result.terms { merged.warnings.append("\(part.name) and \(first.name) had other plans") }
    }
    merged.segment = segments.text
    merged.plan["segment"] = .text(segments.text)
    if merged.plan["devices"] != nil { merged.plan["devices"] = .number(Double(merged.devices.asked)) }
    merged.timeline.shorten(to: samples)
    merged.warnings = unique(merged.warnings.filter { !Segments.isWarning($0) } + segments.warnings).sorted()
    return merged
  }

  /// Names that no segment is missing from.
  public var missingSegments: [String] { Segments(segment)?.missing ?? [] }

  /// Segments that are there more than once.
  public var repeatedSegments: [String] { Segments(segment)?.repeated ?? [] }

  /// The plan without what each segment has of its own.
  private var terms: [String: RunResult.PlanValue] {
    plan.filter { !["segment", "devices", "received"].contains($0.key) }
  }

  /// Before which other parts it is taken.
  private var place: (Int, String, String) {
    (Segments(segment)?.numbers.keys.min() ?? .max, started, environment.host)
  }

  private mutating func add(_ other: FleetResult) {
    started = min(started, other.started)
    ended = max(ended, other.ended)
    let hosts = unique(
      (environment.hosts ?? [environment.host]) + (other.environment.hosts ?? [other.environment.host])
    )
    .sorted()
    if hosts.count > 1 { environment.hosts = hosts }
    labels = both(labels, other.labels) { mine, others in mine.filter { others[$0.key] == $0.value } }
    interrupted = interrupted || other.interrupted
    devices.add(other.devices)
    connections.add(other.connections)
    registrations.add(other.registrations)
    notifications.add(other.notifications)
    latency.add(other.latency)
    campaigns.add(other.campaigns)
    if let others = other.localPush {
      if localPush == nil { localPush = others } else { localPush?.add(others) }
    }
    faults.merge(other.faults, uniquingKeysWith: sum)
    lastReceived = [lastReceived, other.lastReceived].compactMap { $0 }.max()
    for (place, storm) in other.storms.enumerated() where place < storms.count { storms[place].add(storm) }
    timeline.add(other.timeline)
    resources.cpuUserS += other.resources.cpuUserS
    resources.cpuSystemS += other.resources.cpuSystemS
    resources.maxRssBytes = sum(resources.maxRssBytes, other.resources.maxRssBytes)
    warnings += other.warnings
  }

  /// The equations that the counts have to obey.
  public var invariants: [RunResult.Verdict.Invariant] {
    func equation(_ name: String, _ left: Int, _ right: Int) -> RunResult.Verdict.Invariant {
      .init(name, holds: left == right, detail: "\(left) = \(right)")
    }
    return [
      equation(
        "attempted = opened + failed + abandoned", connections.attempted,
        sum(sum(connections.opened, connections.failures), connections.abandoned)),
      equation("opened = closed", connections.opened, connections.closed.byName.values.reduce(0, sum)),
      equation(
        "received = online + stored + repeated", notifications.received,
        sum(sum(notifications.online, notifications.stored), notifications.repeated)),
      .init(
        "online at the end <= ever online <= asked",
        holds: 0 <= devices.onlineAtEnd && devices.onlineAtEnd <= devices.everOnline
          && devices.everOnline <= devices.asked,
        detail: "\(devices.onlineAtEnd), \(devices.everOnline), \(devices.asked)"),
    ]
      + (localPush.map {
        [equation("received = texts + invitations", notifications.received, sum($0.texts, $0.invitations))]
          + $0.invariants
      }
        ?? [])
  }
}

extension FleetResult.Part {
  fileprivate func misfit(_ problem: String) -> RunResult.MergeError {
    RunResult.MergeError(description: "\(name): \(problem)")
  }
}

extension FleetResult.Devices {
  fileprivate mutating func add(_ other: Self) {
    asked = sum(asked, other.asked)
    everOnline = sum(everOnline, other.everOnline)
    onlineAtEnd = sum(onlineAtEnd, other.onlineAtEnd)
    restored = sum(restored, other.restored)
  }
}

extension FleetResult.Connections {
  fileprivate mutating func add(_ other: Self) {
    attempted = sum(attempted, other.attempted)
    opened = sum(opened, other.opened)
    failed.merge(other.failed, uniquingKeysWith: sum)
    abandoned = sum(abandoned, other.abandoned)
    closed.merge(other.closed, sum)
  }
}

extension FleetResult.Registrations {
  fileprivate mutating func add(_ other: Self) {
    asked = sum(asked, other.asked)
    tokens = sum(tokens, other.tokens)
    wrongTokens = sum(wrongTokens, other.wrongTokens)
    tokenChanges = sum(tokenChanges, other.tokenChanges)
    refused.merge(other.refused, uniquingKeysWith: sum)
  }
}

extension FleetResult.Notifications {
  package mutating func add(_ other: Self) {
    received = sum(received, other.received)
    online = sum(online, other.online)
    stored = sum(stored, other.stored)
    repeated = sum(repeated, other.repeated)
    duplicates = sum(duplicates, other.duplicates)
    acknowledgements = sum(acknowledgements, other.acknowledgements)
    payloadBytes = sum(payloadBytes, other.payloadBytes)
    early = sum(early, other.early)
  }
}

extension FleetResult.Latency {
  /// Whether the histograms of a document can be added to others.
  var hasUnits: Bool {
    ([onlineUs, storedUs, repeatedUs, connectUs, readyUs] + fromDue.all + fromWritten.all)
      .allSatisfy { $0.unit == .microseconds }
  }

  package mutating func add(_ other: Self) {
    onlineUs.merge(other.onlineUs)
    storedUs.merge(other.storedUs)
    repeatedUs.merge(other.repeatedUs)
    fromDue.add(other.fromDue)
    fromWritten.add(other.fromWritten)
    connectUs.merge(other.connectUs)
    readyUs.merge(other.readyUs)
  }
}

extension FleetResult.Paths {
  package var all: [LatencyHistogram] { [onlineUs, storedUs, repeatedUs] }

  fileprivate mutating func add(_ other: Self) {
    onlineUs.merge(other.onlineUs)
    storedUs.merge(other.storedUs)
    repeatedUs.merge(other.repeatedUs)
  }
}

extension FleetResult.Campaign {
  package mutating func add(_ other: Self) {
    received = sum(received, other.received)
    online = sum(online, other.online)
    dated = sum(dated, other.dated)
    firstDueNs = [firstDueNs, other.firstDueNs].compactMap { $0 }.min()
    firstSentNs = [firstSentNs, other.firstSentNs].compactMap { $0 }.min()
    lastOnlineNs = [lastOnlineNs, other.lastOnlineNs].compactMap { $0 }.max()
    lastNs = [lastNs, other.lastNs].compactMap { $0 }.max()
  }
}

extension [FleetResult.Campaign] {
  /// The name that campaigns beyond a limit have together.
  package static var others: String { "other" }

  package mutating func add(_ others: Self) {
    for other in others {
      if let place = firstIndex(where: { $0.name == other.name }) {
        self[place].add(other)
      } else {
        append(other)
      }
    }
    sort { ($0.name.map { (1, $0) } ?? (0, "")) < ($1.name.map { (1, $0) } ?? (0, "")) }
  }

  /// Counts a notification.
  ///
  /// - Parameters:
  ///   - time: when the device had it, in UNIX nanoseconds.
  ///   - sent: when the gateway read it, in UNIX nanoseconds.
  ///   - isOnline: the gateway sent it as soon as it came.
  ///   - most: the most names; those beyond count together.
  package mutating func note(_ stamp: PushStamp?, time: Int64, sent: Int64, isOnline: Bool, most: Int) {
    var name = stamp?.campaign
    var place = firstIndex { $0.name == name }
    if place == nil, count >= most, name != nil {
      name = Self.others
      place = firstIndex { $0.name == name }
    }
    if place == nil { append(FleetResult.Campaign(name: name)) }
    let index = place ?? count - 1
    self[index].received += 1
    if isOnline {
      self[index].online += 1
      self[index].lastOnlineNs = Swift.max(self[index].lastOnlineNs ?? time, time)
    }
    self[index].lastNs = Swift.max(self[index].lastNs ?? time, time)
    self[index].firstSentNs = Swift.min(self[index].firstSentNs ?? sent, sent)
    guard let due = stamp?.due else { return }
    self[index].dated += 1
    self[index].firstDueNs = Swift.min(self[index].firstDueNs ?? due, due)
  }
}

extension FleetResult.Storm {
  /// Its part in the plan.
  fileprivate var terms: [String] { ["\(atS)", "\(withinS)", network ?? ""] }

  package mutating func add(_ other: Self) {
    lost = sum(lost, other.lost)
    back = sum(back, other.back)
    lastBackS = [lastBackS, other.lastBackS].compactMap { $0 }.max()
    lastStoredS = [lastStoredS, other.lastStoredS].compactMap { $0 }.max()
    let length = max(openedPerS.count, other.openedPerS.count)
    openedPerS = (0..<length).map { second in
      sum(
        second < openedPerS.count ? openedPerS[second] : 0,
        second < other.openedPerS.count ? other.openedPerS[second] : 0)
    }
    peakOpenedPerS = openedPerS.max() ?? 0
  }

  /// Counts a connection that was opened this long after the storm.
  ///
  /// - Parameter most: the seconds that are counted; later ones are not.
  package mutating func noteOpened(after second: Int, most: Int) {
    guard (0..<max(0, most)).contains(second) else { return }
    while openedPerS.count <= second { openedPerS.append(0) }
    openedPerS[second] += 1
    peakOpenedPerS = max(peakOpenedPerS, openedPerS[second])
  }
}

extension FleetResult.Timeline {
  /// Adds to the sample that a second belongs to, which is the last one or behind it.
  ///
  /// - Parameters:
  ///   - time: UNIX seconds.
  ///   - most: the most samples; when there are more, each becomes one of twice the time.
  package mutating func note(time: Int, onlineS: Int, opened: Int, received: Int, most: Int) {
    add([FleetResult.Sample(time: time - time % periodS, onlineS: onlineS, opened: opened, received: received)])
    shorten(to: most)
  }

  mutating func add(_ other: Self) {
    let isValid = { (period: Int) in period > 0 && period.nonzeroBitCount == 1 }
    guard isValid(periodS), isValid(other.periodS) else { return }
    let period = max(periodS, other.periodS)
    var others = other
    lengthen(to: period)
    others.lengthen(to: period)
    add(others.samples)
  }

  /// Doubles the period until there are no more samples than this.
  mutating func shorten(to most: Int) {
    while samples.count > max(1, most), periodS < 1 << 40 { lengthen(to: periodS * 2) }
  }

  private mutating func lengthen(to period: Int) {
    guard period > periodS else { return }
    periodS = period
    let finer = samples
    samples = []
    add(
      finer.map {
        FleetResult.Sample(
          time: $0.time - $0.time % period, onlineS: $0.onlineS, opened: $0.opened, received: $0.received)
      })
  }

  /// Adds samples of the same period.
  private mutating func add(_ others: [FleetResult.Sample]) {
    if let last = samples.last, let first = others.first, first.time < last.time || others.count > 1 {
      samples = Self.joined(samples + others)
    } else if samples.isEmpty {
      samples = Self.joined(others)
    } else {
      for sample in others { Self.append(sample, to: &samples) }
    }
  }

  private static func joined(_ samples: [FleetResult.Sample]) -> [FleetResult.Sample] {
    var joined: [FleetResult.Sample] = []
    for sample in samples.sorted(by: { $0.time < $1.time }) { append(sample, to: &joined) }
    return joined
  }

  private static func append(_ sample: FleetResult.Sample, to samples: inout [FleetResult.Sample]) {
    guard let last = samples.indices.last, samples[last].time == sample.time else {
      samples.append(sample)
      return
    }
    samples[last].onlineS = sum(samples[last].onlineS, sample.onlineS)
    samples[last].opened = sum(samples[last].opened, sample.opened)
    samples[last].received = sum(samples[last].received, sample.received)
  }
}
