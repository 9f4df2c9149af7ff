import Measurement
import PacketCapture
import Records

/// How providers treat connections, certificates and the feedback service, from the connections' records.
struct ProviderHealth {
  /// A client's address and a server.
  private struct Pair: Hashable {
    var client: String
    var server: String
  }

  /// The fewest rejections with status 8 that suggest tokens of the other environment; a single one proves nothing.
  private static let fewestInvalidTokens = 3
  /// The fewest connections that show a pattern.
  private static let fewestConnections = 10
  private static let day = 86_400
  private static let soon = 30 * day
  /// A connection that is open for longer than this many hours has no more marks.
  private static let maximumHours = 10_000

  private let limit: Int
  private var providers: [Pair: (accepted: Int, invalidTokens: Int)] = [:]
  /// Pairs with a selected connection.
  private var selected: Set<Pair> = []
  /// A connection that carries notifications is selected.
  private var isSelected = false
  private var sendingConnections = 0
  private var oneNotification = 0
  private var feedbackReads = PerSecond()

  /// - Parameter limit: pairs of a client and a server that are counted; further ones are not.
  init(limit: Int) { self.limit = limit }

  /// - Parameter isSelected: findings about the connection are wanted.
  mutating func note(
    _ record: ConnectionRecord, _ tally: ConnectionTally, isSelected: Bool, _ findings: inout Findings
  ) {
    if isSelected, record.notifications > 0 { self.isSelected = true }
    if record.notifications > 0 { sendingConnections += 1 }
    if record.notifications == 1, record.http2 == nil || record.isSeenWhole { oneNotification += 1 }
    if record.service == .feedback { noteRead(from: record.opened, to: record.closed) }
    if let client = record.client, let server = record.server, record.fates.accepted + tally.invalidTokens > 0 {
      let pair = Pair(client: client.address.description, server: server.description)
      if providers[pair] != nil || providers.count < limit {
        let known = providers[pair] ?? (0, 0)
        providers[pair] = (known.accepted + record.fates.accepted, known.invalidTokens + tally.invalidTokens)
        if isSelected { selected.insert(pair) }
      }
    }
    guard isSelected, let tls = record.tls else { return }
    for kind in [FindingKind.certificateExpired, .certificateRevoked, .unknownCA]
    where tls.alert?.hasPrefix("\(kind.rawValue) ") == true {
      findings.note(kind, packet: 0)
    }
    if let ends = tls.certificateEnds, record.opened.isKnown,
      Int64(ends) < record.opened.nanoseconds / 1_000_000_000 + Int64(Self.soon)
    {
      findings.note(.certificateEndsSoon, packet: 0)
    }
  }

  private mutating func noteRead(from opened: Timestamp, to closed: Timestamp) {
    guard opened.isKnown else { return }
    feedbackReads.add(1, at: opened)
    guard let length = closed.nanoseconds(since: opened), length > 0 else { return }
    let hour: Int64 = 3_600_000_000_000
    for number in 0..<min(length / hour, Int64(Self.maximumHours)) {
      feedbackReads.add(1, at: Timestamp(nanoseconds: opened.nanoseconds + (number + 1) * hour))
    }
    feedbackReads.add(1, at: closed)
  }

  // MARK: counts

  mutating func write(to counts: inout InspectionReport.Counts) {
    counts.sendingConnections = sendingConnections
    counts.oneNotificationConnections = oneNotification
    counts.feedbackReadPerSecond = feedbackReads.values()
    counts.providers = providers.sorted { ($0.key.client, $0.key.server) < ($1.key.client, $1.key.server) }.map {
      .init(
        client: $0.key.client, server: $0.key.server, accepted: $0.value.accepted, invalidTokens: $0.value.invalidTokens
      )
    }
  }

  mutating func add(_ counts: InspectionReport.Counts) {
    isSelected = true
    sendingConnections += counts.sendingConnections
    oneNotification += counts.oneNotificationConnections
    feedbackReads.add(counts.feedbackReadPerSecond)
    for row in counts.providers {
      let known = providers[Pair(client: row.client, server: row.server)] ?? (0, 0)
      providers[Pair(client: row.client, server: row.server)] = (
        known.accepted + row.accepted, known.invalidTokens + row.invalidTokens
      )
      selected.insert(Pair(client: row.client, server: row.server))
    }
  }

  // MARK: findings

  /// Findings that are of the whole recording.
  ///
  /// - Parameter sent: notifications by second since 1970.
  mutating func report(sent: InspectionReport.Values, into findings: inout Findings) {
    guard isSelected else { return }
    if sendingConnections >= Self.fewestConnections, oneNotification * 2 > sendingConnections {
      findings.note(.oneNotificationConnections, count: oneNotification, packet: 0)
    }
    let invalid = providers.filter { pair, counts in
      selected.contains(pair) && counts.invalidTokens >= Self.fewestInvalidTokens
        && counts.invalidTokens > counts.accepted
    }
    if !invalid.isEmpty {
      findings.note(.tokensOfOtherEnvironment, count: invalid.reduce(0) { $0 + $1.value.invalidTokens }, packet: 0)
    }
    let pause = longestPause(sent)
    if pause >= Self.day { findings.note(.feedbackNotRead, count: pause / 3_600, packet: 0) }
  }

  /// Seconds between the first and the last notification in which no feedback service was read, the longest.
  private mutating func longestPause(_ sent: InspectionReport.Values) -> Int {
    guard let first = sent.values.first, let last = sent.values.last else { return 0 }
    let marks = [first] + feedbackReads.values().values.filter { (first...last).contains($0) } + [last]
    return zip(marks, marks.dropFirst()).map { $1 - $0 }.max() ?? 0
  }
}

extension ConnectionRecord {
  /// Whether the recording has all that the client sent.
  fileprivate var isSeenWhole: Bool {
    missingBytes == 0 && !notCaptured.start && notCaptured.client == nil && limits.isEmpty && tls?.isWhole ?? true
  }
}
