import Measurement

/// The report of a decoded trace: its notifications, the cost of errors, and findings.
public struct TracePage: Sendable {
  public var report: TraceReport
  /// The arguments of the command line that makes this report, for the footer; empty: unknown.
  public var command: [String]
  /// The maximum number of connections, and of error responses, that a table lists.
  public var rows: Int

  public init(_ report: TraceReport, command: [String] = [], rows: Int = 50) {
    self.report = report
    self.command = command
    self.rows = rows
  }

  var inspection: InspectionReport { report.inspection }
  var summary: InspectionReport.Summary { report.inspection.summary }

  /// Rows of the strip; more would be thinner than can be seen.
  static let stripRows = 250

  /// The report as a page.
  public var page: Page {
    var sections = [glance]
    if let missing { sections.append(missing) }
    // A trace of the feedback service alone has nothing else to show.
    let isFeedback = summary.notifications == 0 && inspection.errorCount == 0 && inspection.feedbackConnections > 0
    if isFeedback {
      sections += [feedback, connections, damage]
    } else if isOfRequests {
      sections += [sending] + stories + answers
      sections += [connections, reconnects, payloads, tokens, mix, damage]
    } else {
      sections += [sending]
      sections += stories
      sections += answers
      sections += [connections] + (hasBinary ? [errors] : [])
      sections += [reconnects, batching, payloads, tokens, mix, feedback, damage]
    }
    sections.append(glossary.folded)
    return Page(
      title: "Trace: \(title)", subtitle: subtitle, sections: sections,
      footer: command.isEmpty ? "Made by apnscope." : "Made by " + .code(commandLine(command)))
  }

  /// Whether there may be answers of the binary protocol: there are none where all notifications were sent over HTTP/2.
  var hasBinary: Bool {
    inspection.http2 == nil || inspection.errorCount > 0 || inspection.notificationsByCommand.contains { $0 > 0 }
  }

  /// What a page of a provider has of a trace: the course of time, and what is sent.
  var providerSections: [Section] {
    // A gateway knows no packets, and requests are not sent in batches.
    let batching = report.perSegment.isEmpty && isOfRequests ? [] : [batching]
    return [sending, connections, reconnects] + batching + [payloads, tokens, mix, damage, glossary.folded]
  }

  private var title: String {
    let names = report.sources.map { source in
      Self.short(String(source.name.split(separator: "/").last ?? "standard input"), 60)
    }
    switch names.count {
    case 0: return "records"
    case 1: return names[0]
    default: return "\(names[0]) and \(names.count - 1) more"
    }
  }

  private var subtitle: Prose {
    let formats = Set(report.sources.map(\.format)).sorted().joined(separator: ", ")
    let words = [
      report.started.map { "from \($0)" } ?? "",
      report.started == nil ? "" : "for \(Unit.seconds.text(report.lengthS))", formats,
      summary.packets > 0 ? "\(grouped(summary.packets)) packets" : "",
    ]
    return Prose(words.filter { !$0.isEmpty }.joined(separator: " · "))
  }

  // MARK: at a glance

  private var glance: Section {
    let fates = inspection.fates
    let segments = report.perSegment.reduce(0) { $0 + $1.count }
    let bad = inspection.findings.filter { $0.kind.tone == .bad }
    let hasSent = summary.notifications > 0 || inspection.errorCount > 0
    var figures = [Figure("connections", grouped(summary.connections), note: connectionNote)]
    if hasSent || inspection.feedbackConnections == 0 {
      figures =
        [
          Figure(
            "notifications", grouped(summary.notifications), note: summary.hasRead ? rateNote : "nothing was read"),
          isOfRequests
            ? rejectedFigure
            : Figure(
              "error responses", summary.hasRead ? grouped(inspection.errorCount) : "–",
              note: responsesByStatus.sorted { ($1.count, $0.status) < ($0.count, $1.status) }
                .map { "\(grouped($0.count)) × \($0.name)" }.joined(separator: ", "),
              tone: inspection.errorCount == 0 ? .neutral : .warning),
          Figure(
            "discarded", summary.notifications == 0 ? "–" : grouped(fates.discarded), note: discardedNote,
            tone: fates.discarded == 0 ? (isProven ? .good : .neutral) : bad.isEmpty ? .warning : .bad),
        ] + figures
    }
    if segments > 0, !isOfRequests {
      figures.append(
        Figure(
          "per segment", significant(Double(summary.notifications) / Double(segments), 3),
          note: "notifications; \(grouped(segments)) segments",
          tone: segments >= 100 && Double(summary.notifications) < 1.1 * Double(segments) ? .warning : .neutral))
    }
    if inspection.feedbackConnections > 0 {
      figures.append(
        Figure(
          "feedback tuples", grouped(inspection.feedbackTuples),
          note:
            "on \(grouped(inspection.feedbackConnections)) \(inspection.feedbackConnections == 1 ? "connection" : "connections")"
        ))
    }
    var blocks: [Block] = [verdict] + picture + [.figures(figures)]
    if let selection = inspection.selection {
      blocks.append(
        .callout(
          .neutral,
          "All figures of this page are of a selection of the trace's records: "
            + .code(selection.joined(separator: " ")) + "."))
    }
    blocks += report.warnings.map { .callout(.warning, Prose($0)) }
    if summary.notifications > 0 {
      blocks.append(
        .paragraph(
          .strong(grouped(summary.notifications))
            + " \(summary.notifications == 1 ? "notification" : "notifications"): \(grouped(fates.accepted)) accepted, \(grouped(fates.rejected)) rejected, \(grouped(fates.discarded)) discarded, \(grouped(fates.unknown)) unknown."
        ))
    }
    if !inspection.findings.isEmpty {
      var table = Table([.init("finding"), .init("first packet", .right)])
      for finding in inspection.findings {
        table.add(
          Prose(finding.text), Prose(Self.packet(finding.firstPacket, of: finding.firstFile)), tone: finding.kind.tone)
      }
      blocks += [.heading("Findings"), .table(table)]
    }
    return Section("At a glance", blocks)
  }

  /// The verdict in a sentence.
  private var verdict: Block {
    let fates = inspection.fates
    if !summary.hasRead {
      return .callout(
        .warning,
        inspection.selection == nil
          ? "No APNs traffic was found; see the findings for the reason."
          : "No record is selected; see the findings for the reason.")
    }
    if inspection.findings.isEmpty, isProven {
      return .callout(.good, "No findings: no error, no loss, no damage.")
    }
    let isBad = inspection.findings.contains { $0.kind.tone == .bad }
    let first = inspection.findings.first.map { " \($0.text.prefix(1).uppercased())\($0.text.dropFirst())." } ?? ""
    let all = counted(summary.notifications, "notification")
    if isOfRequests { return .callout(isBad ? .bad : .warning, Prose(requestVerdict + first)) }
    guard inspection.errorCount > 0 else {
      let what =
        summary.notifications == 0
        ? inspection.feedbackConnections > 0
          ? "\(counted(inspection.feedbackTuples, "feedback tuple")) and no notification."
          : "No notification is in the trace."
        : fates.unknown > 0
          ? "No error response came, and nothing proves what became of \(grouped(fates.unknown)) of \(all)."
          : "No error response came for \(all)."
      return .callout(isBad ? .bad : inspection.findings.isEmpty ? .neutral : .warning, Prose(what + first))
    }
    let errors = counted(inspection.errorCount, "error response")
    guard fates.discarded > 0 else {
      return .callout(isBad ? .bad : .warning, Prose("\(errors) discarded none of \(all)." + first))
    }
    var parts: [String] = []
    let known = inspection.errors.compactMap(\.sentAgain)
    let again = known.reduce(0, +)
    if !known.isEmpty, again <= fates.discarded {
      parts.append(
        "\(notFollowed > 0 ? "at least " : "")\(again == fates.discarded ? "all" : grouped(again)) of these were \(ResendWords.sentAgain)"
      )
    }
    let lost = report.stories.map { InspectionReport.Stories($0) }
    if let lost, lost.lost > 0 {
      parts.append("\(counted(lost.lost, "notification")) \(lost.lost == 1 ? "is" : "are") \(ResendWords.lostForGood)")
    }
    if let lost, lost.notSeenAgain.sum > 0 {
      let count = lost.notSeenAgain.sum
      parts.append("\(counted(count, "notification")) \(count == 1 ? "was" : "were") \(ResendWords.notSeenAgain)")
    }
    let rest = parts.isEmpty ? "" : ": \(parts.joined(separator: ", "))"
    return .callout(
      isBad || (lost?.lost ?? 0) > 0 ? .bad : .warning,
      Prose("\(errors) threw away \(grouped(fates.discarded)) of \(all)\(rest)."))
  }

  /// What was sent over time, and what each error threw away of it.
  var picture: [Block] {
    guard summary.notifications > 0, !report.sent.counts.isEmpty else { return [] }
    let (kind, groups) = groups
    let (rates, caption) = rateChart(kind, groups)
    guard let losses = losses.chart else { return [.chart(rates, caption: caption)] }
    return [.stack([rates, losses], caption: caption + Prose(" \(LossPicture.caption)"))]
  }

  private var losses: LossPicture {
    LossPicture(
      losses: report.listedErrors.compactMap { error in
        error.timeS.map { time in
          LossPicture.Loss(
            at: time, discarded: error.row.discarded ?? 0, sentAgain: error.row.sentAgain,
            backAfter: error.row.lastResentS,
            words: "connection \(error.row.connection), status \(error.row.status) \(error.row.statusName)")
        }
      }, time: time)
  }

  /// `12`, or `2:12` for packet 12 of the second of several files.
  static func packet(_ packet: Int?, of file: Int?) -> String {
    let number = packet.map(grouped) ?? "–"
    return file.map { "\($0):\(number)" } ?? number
  }

  /// Everything was read, and the fate of each notification is known.
  private var isProven: Bool {
    summary.notifications > 0 && summary.droppedPackets == nil && inspection.fates.unknown == 0
      && summary.undecryptedConnections == 0
      && inspection.missingBytes == 0 && inspection.malformed == 0 && inspection.gapsByReason.isEmpty
      && report.warnings.isEmpty
  }

  private var rateNote: String {
    guard summary.notifications > 1, let first = report.sent.counts.firstIndex(where: { $0 > 0 }),
      let last = report.sent.counts.lastIndex(where: { $0 > 0 })
    else { return report.frameBytes > 0 ? Unit.bytes.text(Double(report.frameBytes)) : "" }
    let seconds = Double(last - first + 1) * report.sent.widthS
    return "\(Unit.perSecond.text(Self.rounded(Double(summary.notifications) / seconds))) while sending"
  }

  /// Two digits: the ends of the time are known to a bin.
  private static func rounded(_ value: Double) -> Double {
    guard value >= 100 else { return value }
    var factor = 1.0
    while value / factor >= 100 { factor *= 10 }
    return (value / factor).rounded() * factor
  }

  private var discardedNote: String {
    guard summary.notifications > 0 else { return "no notification was read" }
    guard inspection.fates.discarded > 0 else {
      if isProven { return isOfRequests ? "every one was answered" : "nothing was lost to an error" }
      return inspection.fates.unknown > 0 ? "\(grouped(inspection.fates.unknown)) unknown" : "of the input"
    }
    if isOfRequests { return causes }
    let known = inspection.errors.compactMap(\.sentAgain)
    let again = known.reduce(0, +)
    guard !known.isEmpty, again <= inspection.fates.discarded else { return "" }
    let least = notFollowed > 0 ? "at least " : ""
    return "\(least)\(grouped(again)) of them \(ResendWords.sentAgain)\(outcomesOfDiscarded)"
  }

  /// The outcomes of discarded notifications that are not proven accepted.
  private var outcomesOfDiscarded: String {
    guard let stories = inspection.stories else { return "" }
    let words = [(stories.lost, ResendWords.lostForGood), (stories.notSeenAgain.sum, ResendWords.notSeenAgain)]
      .filter { $0.0 > 0 }
    return words.map { "; \(grouped($0.0)) notifications \($0.1)" }.joined()
  }

  private var connectionNote: String {
    let count = summary.undecryptedConnections
    return count == 0 ? "" : "\(grouped(count)) not decrypted"
  }

  var glossary: Section {
    if isOfRequests { return requestGlossary }
    let words: [(String, Prose)] = [
      ("accepted", "an error response names a later notification of the connection, which proves it"),
      ("rejected", "named by an error response; that of status 10 names the last accepted one"),
      (
        "discarded",
        "written after the one that an error response names on its connection; the gateway ignored it"
      ),
      ("unknown", "its connection ended, or the trace did, and left it open"),
      (ResendWords.sentAgain, "seen later with the same token and payload, on any connection"),
      ("error latency", "from the last byte of a rejected notification to its error response, where it was captured"),
      ("segment", "a packet with bytes of TCP; the nearest thing to a client's write that a recording shows"),
      ("frame", "a notification with all its fields, without TLS and TCP"),
    ]
    return Section("Glossary", [.values(words.map { Value($0.0, $0.1) })])
  }

  // MARK: parts of several sections

  var time: Axis {
    var axis = Axis.time("time since the first packet", bounds: 0...max(1e-6, report.lengthS))
    if let clock, report.lengthS < 86_400 {
      axis.label = "time of day, UTC"
      axis.clock = clock - (clock / 86_400).rounded(.down) * 86_400
    }
    return axis
  }

  /// The UNIX seconds of the trace's start; `nil` if it has no times.
  private var clock: Double? { report.started.flatMap(unixSeconds).flatMap { abs($0) < 9e9 ? $0 : nil } }

  /// The name of a column of times.
  var atName: String { clock == nil ? "at" : "at (UTC)" }

  /// A time since the trace's start by the clock; of a trace of a day or more with its date.
  func at(_ seconds: Double?) -> String {
    guard let seconds, seconds.isFinite else { return "–" }
    guard let clock, abs(seconds) < 1e9 else { return self.seconds(seconds) }
    if report.lengthS < 86_400 { return ClockTime.text(clock + seconds, step: 1e-3) }
    return rfc3339(Int64((clock + seconds) * 1e3) * 1_000_000)
  }

  static func short(_ text: String, _ length: Int = 40) -> String {
    text.count > length ? text.prefix(length - 1) + "…" : text
  }

  func seconds(_ value: Double?) -> String { value.map { Unit.seconds.text($0) } ?? "–" }

  /// "and 12 more", as a paragraph; nothing when all are listed.
  func more(than listed: Int, of total: Int, _ what: String, option: String = "--rows") -> [Block] {
    total > listed ? [.paragraph("And \(grouped(total - listed)) more \(what) (" + .code(option) + ").")] : []
  }

  /// The smallest value that a share of all are not above.
  static func quantile(_ share: Double, of buckets: [TraceReport.Bucket]) -> Int {
    let total = buckets.reduce(0) { $0 + $1.count }
    let rank = max(1, Int((share * Double(total)).rounded(.up)))
    var seen = 0
    for bucket in buckets {
      seen += bucket.count
      if seen >= rank { return bucket.value }
    }
    return buckets.last?.value ?? 0
  }

  /// The quantile of sorted single values.
  static func quantile(_ share: Double, of sorted: [Double]) -> Double {
    sorted.isEmpty ? .nan : sorted[min(sorted.count - 1, max(0, Int((share * Double(sorted.count)).rounded(.up)) - 1))]
  }

  static let columns = ["count", "p50", "p90", "p99", "max", "mean"]

  static func cells(_ buckets: [TraceReport.Bucket], _ unit: Unit) -> [String] {
    let total = buckets.reduce(0) { $0 + $1.count }
    guard total > 0 else { return ["0", "–", "–", "–", "–", "–"] }
    let sum = buckets.reduce(0.0) { $0 + Double($1.value) * Double($1.count) }
    return [grouped(total)] + [0.5, 0.9, 0.99, 1].map { unit.text(Double(quantile($0, of: buckets))) }
      + [unit == .count ? significant(sum / Double(total), 3) : unit.text((sum / Double(total)).rounded())]
  }

  /// Bars of values in equal bins, about 50.
  static func histogram(_ buckets: [TraceReport.Bucket]) -> Mark {
    let (low, high) = (buckets.first?.value ?? 0, buckets.last?.value ?? 0)
    var width = 1
    while (high - low) / width > 60 { width *= 2 }
    var bins: [Int: Int] = [:]
    for bucket in buckets { bins[bucket.value / width, default: 0] += bucket.count }
    let points = bins.sorted { $0.key < $1.key }.map { bin, count in
      Point(
        Double(bin * width) + Double(width - 1) / 2, Double(count),
        note: width == 1 ? nil : "\(grouped(bin * width)) to \(grouped(bin * width + width - 1))")
    }
    return .bars("", points, width: Double(width), color: .blue)
  }
}
