import Bytes
import Measurement
import PacketCapture

/// Why reports of inspections cannot be merged, as a sentence with the names of the reports.
public struct InspectionMergeError: Error, CustomStringConvertible {
  public let description: String
}

extension InspectionReport {
  /// A report, and its name in messages.
  public struct Part: Sendable {
    /// The name in messages, for example the report's file.
    public var name: String
    public var report: InspectionReport

    public init(_ name: String, _ report: InspectionReport) { (self.name, self.report) = (name, report) }
  }

  /// Joins the reports of several recordings, or of the shards of one.
  ///
  /// Counts and distributions cover the whole. Findings about resends are within each report; shards keep each pair of
  /// hosts together for this.
  ///
  /// - Parameter parts: reports that have counts (`finish(withCounts:shard:)`).
  /// - Returns: the joint report, and sentences about shards that are missing.
  public static func merging(
    _ parts: [Part]
  ) throws(InspectionMergeError) -> (report: InspectionReport, missing: [String]) {
    var merging = InspectionMerging()
    for part in parts { try merging.add(part) }
    return (merging.finish(), merging.missing)
  }
}

/// The merging of reports.
private struct InspectionMerging {
  /// A recording: its files, and which parts of it were added.
  private struct Recording {
    var files: [InspectionReport.File]
    /// The number of its first file among all, from 1.
    var firstFile: Int
    var shardCount: Int?
    var shards: [Int: String]
    var dropped = 0
    var latePackets = 0
    var longestDelay: Int64 = 0
  }

  /// A connection of a part.
  private struct Key: Hashable {
    var part: Int
    var connection: Int
  }

  private var whole = InspectionReport()
  private var recordings: [Recording] = []
  private var parts = 0
  /// With the number of the recording that each part belongs to.
  private var connections: [(key: Key, row: InspectionReport.ConnectionRow, recording: Int)] = []
  private var errors: [(key: Key, row: InspectionReport.ErrorRow, recording: Int)] = []
  private var findings: [(row: InspectionReport.FindingRow, recording: Int)] = []
  private var payloads = PayloadMerging()
  private var payloadLengths = Counts(highest: 65_535)
  private var perSegment = Counts(highest: 4_096)
  private var sent = PerSecond()
  private var opens = PerSecond()
  private var lifetimes = Samples()
  /// By token, or by its known prefix.
  private var tokens: [String: InspectionReport.TokenRow] = [:]
  private var recoveries: [(times: [Double], recording: Int)] = []
  /// The outcomes, with the numbers of their recording and part.
  private var stories: [(stories: InspectionReport.Stories, recording: Int, part: Int)] = []
  /// The parts of recordings that have connections.
  private var connected: [(part: Int, recording: Int, alone: InspectionReport.Alone?)] = []
  private var health = ProviderHealth(limit: .max)
  private var unread = UnreadConnections()

  // MARK: adding

  mutating func add(_ part: InspectionReport.Part) throws(InspectionMergeError) {
    let report = part.report
    guard let counts = report.counts else {
      throw InspectionMergeError(
        description: "\(part.name): has no counts, which 'apnscope inspect --format json' writes since 0.2.0")
    }
    if parts > 0, report.selection != whole.selection {
      throw InspectionMergeError(description: "\(part.name): selects other records than the inspections before it")
    }
    whole.selection = report.selection
    let recording = try recording(of: part, counts)
    parts += 1
    for row in report.connections { connections.append((Key(part: parts, connection: row.connection), row, recording)) }
    for row in report.errors { errors.append((Key(part: parts, connection: row.connection), row, recording)) }
    for row in report.findings { findings.append((row, recording)) }
    payloads.add(report.payloads, part: parts, recording: recording)
    payloadLengths.add(counts.payloadLengths)
    perSegment.add(counts.notificationsPerSegment)
    sent.add(counts.sentPerSecond)
    opens.add(counts.opensPerSecond)
    for value in counts.lifetimesS { lifetimes.add(value) }
    for row in counts.rejectedTokens {
      let key = row.token ?? row.tokenPrefix
      var sum = tokens[key] ?? InspectionReport.TokenRow(tokenPrefix: row.tokenPrefix, token: row.token, rejections: 0)
      sum.rejections += row.rejections
      tokens[key] = sum
    }
    recoveries.append((counts.recoveriesS, recording))
    health.add(counts)
    if let stories = report.stories { self.stories.append((stories, recording, parts)) }
    if report.summary.connections > 0 { connected.append((parts, recording, counts.alone)) }
    unread.add(counts.unread)
    whole.summary.readFeedbackConnections += counts.readFeedbackConnections
    addSums(report)
  }

  /// Adds up the outcomes. Another recording of the same time may show sendings that change outcomes.
  private mutating func finishStories(_ overlaps: [Bool]) {
    guard !stories.isEmpty else { return }
    var sum = InspectionReport.Stories()
    for (part, recording, _) in stories {
      var part = part
      if overlaps[recording] {
        part.notSeenAgain[.otherRecording, default: 0] += part.lost
        for outcome in Self.refutable where part[outcome] > 0 {
          part.openReasons[.otherRecording, default: 0] += part[outcome]
          part.open += part[outcome]
          part[outcome] = 0
        }
        if part.notSeenAgain[.otherRecording] == 0 { part.notSeenAgain[.otherRecording] = nil }
      }
      sum.add(part)
    }
    whole.stories = sum
    recoveries.removeAll { overlaps[$0.recording] }
  }

  /// Outcomes that a further sending would change.
  private static let refutable = [StoryOutcome.lost, .rejected, .recovered, .expired]

  /// For each recording, whether a provider may have resent what was discarded in it in a file of another recording;
  /// `true` if times are unknown.
  private var overlaps: [Bool] {
    let spans = recordings.map { recording in
      recording.files.map { file -> (first: Int64, last: Int64) in
        func time(_ text: String?) -> Int64? { text.flatMap { RFC3339.nanoseconds(Array($0.utf8).rawBytes) } }
        guard let first = time(file.firstTime), let last = time(file.lastTime) else { return (.min, .max) }
        let within = UnseenSendings.usualResendWithin
        return (first.subtractingReportingOverflow(within).partialValue, last)
      }
    }
    func areOfOneTime(_ one: [(first: Int64, last: Int64)], _ other: [(first: Int64, last: Int64)]) -> Bool {
      one.contains { one in other.contains { one.first <= $0.last && $0.first <= one.last } }
    }
    return spans.indices.map { one in
      spans.indices.contains { $0 != one && areOfOneTime(spans[one], spans[$0]) }
    }
  }

  private mutating func addSums(_ report: InspectionReport) {
    whole.connectionsNotListed += report.connectionsNotListed
    whole.missingBytes += report.missingBytes
    whole.tls.connections += report.tls.connections
    whole.tls.decrypted += report.tls.decrypted
    whole.tls.resumed += report.tls.resumed
    whole.tls.tlsBytes += report.tls.tlsBytes
    whole.tls.payloadBytes += report.tls.payloadBytes
    whole.gapsByReason.merge(report.gapsByReason, +)
    whole.malformed += report.malformed
    for (command, count) in report.notificationsByCommand.prefix(3).enumerated() {
      whole.notificationsByCommand[command] += count
    }
    whole.fates.accepted += report.fates.accepted
    whole.fates.rejected += report.fates.rejected
    whole.fates.discarded += report.fates.discarded
    whole.fates.unknown += report.fates.unknown
    if let requests = report.http2 {
      whole.http2 = whole.http2 ?? InspectionReport.Requests()
      whole.http2?.add(requests)
      whole.summary.readProviderConnections += requests.connections
    }
    if let devices = report.devices {
      whole.devices = whole.devices ?? InspectionReport.DeviceCounts(connections: 0)
      whole.devices?.add(devices)
    }
    if let localPush = report.localPush {
      whole.localPush = whole.localPush ?? InspectionReport.LocalPushCounts(connections: 0)
      whole.localPush?.add(localPush)
    }
    if let messages = report.summary.messages { whole.summary.messages = (whole.summary.messages ?? 0) + messages }
    if let responses = report.summary.responses { whole.summary.responses = (whole.summary.responses ?? 0) + responses }
    whole.errorCount += report.errorCount
    whole.errorsByStatus.merge(report.errorsByStatus, uniquingKeysWith: +)
    whole.feedbackConnections += report.feedbackConnections
    whole.feedbackTuples += report.feedbackTuples
    whole.ends.merge(report.ends, +)
    whole.summary.packets += report.summary.packets
    whole.summary.connections += report.summary.connections
    whole.summary.notifications += report.summary.notifications
    whole.summary.errorResponses += report.summary.errorResponses
    whole.summary.feedbackTuples += report.summary.feedbackTuples
    whole.summary.gaps += report.summary.gaps
    whole.summary.malformed += report.summary.malformed
    whole.summary.undecryptedConnections += report.summary.undecryptedConnections
    // Of a recording's parts only the first counts unread packets.
    if let packets = report.summary.unreadPackets {
      whole.summary.unreadPackets = (whole.summary.unreadPackets ?? 0) + packets
    }
    if let unread = report.summary.unread {
      whole.summary.unread = Array(((whole.summary.unread ?? []) + unread).prefix(Self.maximumUnread))
    }
  }

  /// Lines about unread packets that are kept.
  private static let maximumUnread = 64

  /// The recording of a part; shards of the same files belong to one.
  private mutating func recording(
    of part: InspectionReport.Part, _ counts: InspectionReport.Counts
  ) throws(InspectionMergeError) -> Int {
    var shard: Shard?
    if let text = counts.shard {
      let numbers = text.split(separator: "/").compactMap { Int($0) }
      shard = numbers.count == 2 ? Shard(number: numbers[0], of: numbers[1]) : nil
      guard shard != nil else {
        throw InspectionMergeError(description: "\(part.name): is of part '\(text)', which cannot be")
      }
    }
    let dropped = part.report.summary.droppedPackets ?? 0
    if let shard,
      let index = recordings.firstIndex(where: { $0.shardCount == shard.count && $0.files == part.report.files })
    {
      if let other = recordings[index].shards[shard.number] {
        throw InspectionMergeError(
          description: "\(part.name): is the same part as \(other) (\(shard.number)/\(shard.count))")
      }
      recordings[index].shards[shard.number] = part.name
      recordings[index].dropped = max(recordings[index].dropped, dropped)
      recordings[index].latePackets = max(recordings[index].latePackets, counts.latePackets)
      recordings[index].longestDelay = max(recordings[index].longestDelay, counts.longestDelayNs)
      return index
    }
    let before = recordings.last.map { $0.firstFile + $0.files.count } ?? 1
    recordings.append(
      Recording(
        files: part.report.files, firstFile: before, shardCount: shard?.count,
        shards: shard.map { [$0.number: part.name] } ?? [:], dropped: dropped, latePackets: counts.latePackets,
        longestDelay: counts.longestDelayNs))
    return recordings.count - 1
  }

  /// Parts of recordings that were not added.
  var missing: [String] {
    recordings.flatMap { recording -> [String] in
      guard let count = recording.shardCount, recording.shards.count < count else { return [] }
      let name = recording.files.first?.source ?? "a recording"
      let absent = (1...count).filter { recording.shards[$0] == nil }
      let listed = absent.prefix(8).map { "\($0)/\(count)" }.joined(separator: ", ")
      return ["\(name): the parts \(listed)\(absent.count > 8 ? " and \(absent.count - 8) more" : "") are missing"]
    }
  }

  // MARK: the report

  mutating func finish() -> InspectionReport {
    finishFiles()
    finishLonelyParts()
    let overlaps = overlaps
    finishRows(overlaps)
    finishStories(overlaps)
    var counts = InspectionReport.Counts()
    counts.payloadLengths = payloadLengths.values
    counts.notificationsPerSegment = perSegment.values
    counts.sentPerSecond = sent.values()
    counts.opensPerSecond = opens.values()
    counts.lifetimesS = lifetimes.sorted
    counts.rejectedTokens = tokens.values.sorted { ($0.token ?? $0.tokenPrefix) < ($1.token ?? $1.tokenPrefix) }
    counts.recoveriesS = recoveries.flatMap(\.times).sorted()
    health.write(to: &counts)
    whole.stories?.recovery = RecoveryTimes(sortedSeconds: counts.recoveriesS)
    counts.unread = unread.counts
    counts.readFeedbackConnections = whole.summary.readFeedbackConnections
    counts.latePackets = recordings.reduce(0) { $0 + $1.latePackets }
    counts.longestDelayNs = recordings.reduce(0) { max($0, $1.longestDelay) }
    whole.counts = counts
    whole.payloadLengths = payloadLengths.distribution
    whole.notificationsPerSegment = perSegment.distribution
    whole.notificationsPerSecond = sent.distribution()
    whole.opensPerMinute = opens.perMinute()
    whole.lifetimesS = lifetimes.distribution
    whole.repeatedlyRejectedTokens = InspectionReport.TokenRow.worst(counts.rejectedTokens)
    finishFindings(counts)
    return whole
  }

  /// If one part has all connections of its recording and no part is missing, its outcomes are the recording's.
  private mutating func finishLonelyParts() {
    for (number, recording) in recordings.enumerated() {
      guard let count = recording.shardCount, count > 1, recording.shards.count == count else { continue }
      let parts = connected.filter { $0.recording == number }
      guard parts.count == 1, let alone = parts[0].alone else { continue }
      if let place = stories.firstIndex(where: { $0.part == parts[0].part }), let others = alone.stories {
        stories[place].stories = others
      }
      let rows = errors.indices.filter { errors[$0].key.part == parts[0].part }
      for (row, outcomes) in zip(rows, alone.outcomes) where !outcomes.isEmpty { errors[row].row.outcomes = outcomes }
      recoveries.append((alone.recoveriesS, number))
    }
  }

  private mutating func finishFiles() {
    let isNumbered = recordings.reduce(0) { $0 + $1.files.count } > 1
    for recording in recordings {
      for (index, file) in recording.files.enumerated() {
        var file = file
        file.file = isNumbered ? recording.firstFile + index : nil
        whole.files.append(file)
      }
    }
    let dropped = recordings.reduce(0) { $0 + $1.dropped }
    whole.summary.droppedPackets = dropped > 0 ? dropped : nil
  }

  /// A part's file number among all files; `nil` if there is only one file.
  private func file(_ number: Int?, of recording: Int) -> Int? {
    whole.files.count > 1 ? recordings[recording].firstFile + (number ?? 1) - 1 : nil
  }

  /// Connections are numbered anew, by the times of their first packets.
  private mutating func finishRows(_ overlaps: [Bool]) {
    func order(_ row: InspectionReport.ConnectionRow) -> (String, String, String) {
      (row.opened ?? "", row.client ?? "", row.server ?? "")
    }
    connections.sort { order($0.row) < order($1.row) }
    errors.sort { ($0.row.time ?? "", $0.row.packet ?? 0) < ($1.row.time ?? "", $1.row.packet ?? 0) }
    var numbers: [Key: Int] = [:]
    for connection in connections { numbers[connection.key] = numbers.count + 1 }
    // Errors of unlisted connections come last.
    for error in errors where numbers[error.key] == nil { numbers[error.key] = numbers.count + 1 }
    for (key, row, recording) in connections {
      var row = row
      row.connection = numbers[key] ?? row.connection
      row.file = file(row.file, of: recording)
      whole.connections.append(row)
    }
    for (key, row, recording) in errors {
      var row = row
      if overlaps[recording], var outcomes = row.outcomes {
        for outcome in Self.refutable {
          guard let count = outcomes[outcome] else { continue }
          outcomes[.open, default: 0] += count
          outcomes[outcome] = nil
        }
        row.outcomes = outcomes
      }
      row.connection = numbers[key] ?? row.connection
      row.file = file(row.file, of: recording)
      whole.errors.append(row)
    }
    whole.payloads = payloads.report { row, part, recording in
      row.firstFile = file(row.firstFile, of: recording)
      if let connection = row.example?.connection {
        row.example?.connection = numbers[Key(part: part, connection: connection)] ?? connection
      }
    }
  }

  private mutating func finishFindings(_ counts: InspectionReport.Counts) {
    var merged = Findings()
    for (row, recording) in findings {
      switch row.kind {
      // Findings of these kinds are derived from the merged report.
      case .captureLoss, .outOfOrder, .nothingRead, .unreadPackets, .undecryptedConnection, .partlyDecrypted,
        .devicePort,
        .otherProtocol, .emptyConnection, .unbatched, .reconnectStorm, .oneNotificationConnections,
        .tokensOfOtherEnvironment,
        .feedbackNotRead, .neverResent, .notSeenAgain:
        continue
      case .tokenFailedAgain:
        merged.note(row.kind, count: 0, packet: number(row, recording))
      default: merged.note(row.kind, count: row.count, packet: number(row, recording))
      }
    }
    let again = counts.rejectedTokens.reduce(0) { $0 + $1.rejections - 1 }
    if again > 0 { merged.note(.tokenFailedAgain, count: again, packet: 0) }
    merged.noteSending(
      notifications: whole.summary.notifications, segments: perSegment.total, opensPerMinute: whole.opensPerMinute,
      isSelection: whole.selection != nil)
    if whole.selection == nil { health.report(sent: counts.sentPerSecond, into: &merged) }
    if let stories = whole.stories {
      merged.note(.neverResent, count: stories.lost, packet: firstPacket(of: [.neverResent]))
      merged.note(
        .notSeenAgain, count: stories.notSeenAgain.sum, packet: firstPacket(of: [.neverResent, .notSeenAgain]))
    }
    whole.findings = whole.findings(
      unread, merged, latePackets: counts.latePackets, longestDelay: counts.longestDelayNs)
  }

  private func firstPacket(of kinds: Set<FindingKind>) -> Int {
    findings.filter { kinds.contains($0.row.kind) }.map { number($0.row, $0.recording) }.filter { $0 > 0 }.min() ?? 0
  }

  private func number(_ row: InspectionReport.FindingRow, _ recording: Int) -> Int {
    guard let packet = row.firstPacket else { return 0 }
    return file(row.firstFile, of: recording).map { PacketNumber.joining(file: $0, packet: packet) } ?? packet
  }
}
