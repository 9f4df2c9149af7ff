import Measurement
import Records

/// The findings of a recording, with their counts and the first packet of each.
struct Findings {
  /// In the order in which they were first noted. A recording has few kinds of findings, so a linear search serves.
  private var noted: [(kind: FindingKind, count: Int, firstPacket: Int)] = []
  /// The index of the latest finding, which is often noted again.
  private var latest = 0

  mutating func note(_ kind: FindingKind, count: Int = 1, packet: Int) {
    if latest >= noted.count || noted[latest].kind != kind { find(kind) }
    noted[latest].count += count
    if packet > 0 && (noted[latest].firstPacket == 0 || packet < noted[latest].firstPacket) {
      noted[latest].firstPacket = packet
    }
  }

  @inline(never)
  private mutating func find(_ kind: FindingKind) {
    if let index = noted.indices.first(where: { noted[$0].kind == kind }) {
      latest = index
    } else {
      latest = noted.count
      noted.append((kind, 0, 0))
    }
  }

  /// Notes how a provider sends, as far as counts of the whole recording show it.
  mutating func noteSending(
    notifications: Int, segments: Int, opensPerMinute: Distribution?, isSelection: Bool
  ) {
    // A segment may have had notifications that are not selected.
    if !isSelection, segments >= 100, Double(notifications) / Double(max(1, segments)) < 1.1 {
      note(.unbatched, count: segments, packet: 0)
    }
    if let highest = opensPerMinute?.max, highest > 60 { note(.reconnectStorm, count: Int(highest), packet: 0) }
  }

  /// Packets that the capture dropped.
  static func loss(_ summary: InspectionReport.Summary) -> [InspectionReport.FindingRow] {
    guard let dropped = summary.droppedPackets else { return [] }
    let text = FindingKind.captureLossSentence(dropped: dropped)
    return [InspectionReport.FindingRow(.captureLoss, count: dropped, text: text)]
  }

  /// Times that run backwards, and the window that puts the packets into order.
  static func order(latePackets: Int, longestDelay: Int64) -> [InspectionReport.FindingRow] {
    guard latePackets > 0 else { return [] }
    let text = FindingKind.outOfOrderSentence(late: latePackets, longestDelay: longestDelay)
    return [InspectionReport.FindingRow(.outOfOrder, count: latePackets, text: text)]
  }

  /// Causes of lost notifications come first.
  var rows: [InspectionReport.FindingRow] {
    FindingKind.allCases.compactMap { kind in
      guard let finding = noted.first(where: { $0.kind == kind }), finding.count > 0 else { return nil }
      let place = RecordPlace(connection: 0, time: .none, packet: finding.firstPacket, offset: 0, length: 0)
      return InspectionReport.FindingRow(
        kind, count: finding.count, firstFile: place.file, firstPacket: place.packetInFile,
        text: kind.sentence(finding.count))
    }
  }
}

extension InspectionReport {
  private static func seconds(_ seconds: Double) -> String {
    let tenths = Int((seconds * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// All findings. Lost packets and unread connections come first: the other findings do not cover them.
  func findings(
    _ unread: UnreadConnections, _ findings: Findings, latePackets: Int, longestDelay: Int64
  ) -> [FindingRow] {
    var rows =
      Findings.loss(summary)
      + unread.findings(
        summary, isSelection: selection != nil, hasRequests: http2 != nil) + findings.rows
    for index in rows.indices where rows[index].kind == .notSeenAgain {
      rows[index].text += stories.map { ": \($0.whereNotSeen)" } ?? ""
    }
    for index in rows.indices where rows[index].kind == .goAway {
      rows[index].text += http2.map { ": \($0.goAwayWords)" } ?? ""
    }
    for index in rows.indices where rows[index].kind == .serverSilent {
      guard let longest = localPush?.longestIntervalS else { continue }
      rows[index].text += "; the longest time between two heartbeats is \(Self.seconds(longest)) s"
    }
    return rows + Findings.order(latePackets: latePackets, longestDelay: longestDelay)
  }
}

extension TraceReport {
  /// Adds the outcomes of the distinct notifications, and corrects the counts of the findings that depend on them: an
  /// inspection may have tracked fewer notifications.
  package mutating func add(_ stories: Stories) {
    self.stories = stories
    let counted = InspectionReport.Stories(stories)
    inspection.stories?.takeOutcomes(of: counted)
    takeLosses(of: stories)
    for (kind, count) in [
      (FindingKind.neverResent, counted.lost), (.notSeenAgain, counted.notSeenAgain.sum),
      (.acceptedTwice, counted.acceptedTwice), (.deadTokens, stories.deadTokens),
      (.unregisteredTokens, stories.unregisteredTokens),
    ] {
      let place = inspection.findings.firstIndex { $0.kind == kind }
      if let place, count == 0 {
        inspection.findings.remove(at: place)
      } else if let place {
        inspection.findings[place].count = count
        inspection.findings[place].text = counted.sentence(of: kind, count)
      } else if count > 0 {
        let order = FindingKind.allCases
        let next = inspection.findings.firstIndex { row in
          (order.firstIndex(of: row.kind) ?? 0) > (order.firstIndex(of: kind) ?? 0)
        }
        inspection.findings.insert(
          InspectionReport.FindingRow(kind, count: count, text: counted.sentence(of: kind, count)),
          at: next ?? inspection.findings.count)
      }
    }
  }

  /// Adds the outcomes of the notifications that each listed response discarded. Losses of a connection belong to the
  /// last response that names a notification.
  private mutating func takeLosses(of stories: Stories) {
    let losses = Dictionary(stories.losses.map { ($0.connection, $0) }, uniquingKeysWith: { first, _ in first })
    for row in inspection.errors.indices where inspection.errors[row].outcomes?.isEmpty == false {
      guard let loss = losses[inspection.errors[row].connection] else { continue }
      var outcomes: NamedCounts<StoryOutcome> = [:]
      for outcome in loss.outcomes { outcomes.byName[outcome.name] = outcome.count }
      inspection.errors[row].outcomes = outcomes
      inspection.errors[row].sentAgain = loss.sentAgain
      inspection.errors[row].firstResentS = loss.firstResentS
      inspection.errors[row].lastResentS = loss.lastResentS
    }
  }
}
