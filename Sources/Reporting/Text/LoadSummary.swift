import Measurement

/// The result of a load on one screen.
package struct LoadSummary: Sendable {
  package let text: String

  package init(_ result: RunResult) {
    let lines = Self.counts(result) + Self.times(result) + Self.checks(result)
    text = lines.joined(separator: "\n")
  }

  private static func counts(_ result: RunResult) -> [String] {
    let (notifications, sendings, connections) = (result.notifications, result.sendings, result.connections)
    var lines = [
      result.measuredS > 0
        ? "rate           \(rates(result)), limited by the \(result.verdict.limitedBy.rawValue)"
        : "rate           \(result.merged?.together == false ? "none: the segments did not run together" : "not measured")",
      "notifications  \(grouped(notifications.generated)) = \(grouped(notifications.accepted)) accepted + \(grouped(notifications.rejected)) rejected + \(grouped(notifications.unknown)) unknown + \(grouped(notifications.abandoned)) abandoned\(notifications.pruned.map { " + \(grouped($0)) pruned" } ?? "")",
      "sendings       \(grouped(sendings.written)) = \(grouped(sendings.accepted)) accepted + \(grouped(sendings.rejected)) rejected + \(grouped(sendings.discarded)) discarded + \(grouped(sendings.unknown)) unknown; \(grouped(sendings.resent)) of them again, \(counted(sendings.binary.markers, "marker"))",
    ]
    if let replay = result.replay {
      lines.append(
        "replayed       \(grouped(replay.notifications)) notifications of \(tenths(replay.lengthS)); \(grouped(replay.skippedRecords)) other records"
      )
    }
    if result.schedule.skipped > 0 {
      let missed = result.start?.missed ?? 0
      lines.append(
        "skipped        \(grouped(result.schedule.skipped)) that would have been late\(missed > 0 ? "; \(grouped(missed)) of them were due before the run began" : "")"
      )
    }
    if result.schedule.unsent > 0 {
      lines.append("unsent         \(grouped(result.schedule.unsent)) that were due when it ended")
    }
    lines += MergedRuns.lines(result)
    lines += topics(result)
    let errors = result.binary.errorResponses.sorted { (Int($0.key) ?? 0) < (Int($1.key) ?? 0) }
      .map { "\(grouped($0.value)) x status \($0.key)" }
    lines.append("errors         \(errors.isEmpty ? "-" : errors.joined(separator: ", "))")
    if result.binary.answers != RunResult.Answers() {
      lines.append(
        "other answers  \(grouped(result.binary.answers.unresolved)) with unknown identifiers, \(grouped(result.binary.answers.strayBytes)) B that are not error responses"
      )
    }
    if let feedback = result.feedback { lines += Self.lines(of: feedback) }
    let closed = connections.closed.positive.sorted.map { "\(grouped($0.count)) \($0.name)" }
    lines.append(
      "connections    \(grouped(connections.opened)) opened, \(grouped(connections.resumed)) resumed, \(grouped(connections.failed)) failed\(reason(connections)); closed: \(closed.isEmpty ? "-" : closed.joined(separator: ", "))"
    )
    if let refused = connections.refused, refused > 0 {
      lines.append("refused        \(grouped(refused)) of the opened connections, before anything on them was settled")
    }
    return lines
  }

  /// A line for each topic: what it had of the lines above.
  private static func topics(_ result: RunResult) -> [String] {
    (result.topics ?? []).map { topic in
      let (notifications, sendings) = (topic.notifications, topic.sendings)
      let neverSent = topic.schedule.neverSent
      return
        "topic          \(topic.topic): \(grouped(notifications.generated)) = \(grouped(notifications.accepted)) accepted + \(grouped(notifications.rejected)) rejected + \(grouped(notifications.unknown)) unknown + \(grouped(notifications.abandoned)) abandoned; \(grouped(sendings.written)) written, \(grouped(sendings.discarded)) discarded\(neverSent > 0 ? ", \(grouped(neverSent)) never sent" : ""); \(counted(topic.connections.asked ?? topic.connections.opened, "connection"))"
    }
  }

  private static func lines(of feedback: RunResult.Feedback) -> [String] {
    var lines = [
      "feedback       \(counted(feedback.polls, "poll")): \(grouped(feedback.complete)) complete, \(grouped(feedback.incomplete)) incomplete, \(grouped(feedback.failed)) failed; \(counted(feedback.tuples, "tuple")): \(grouped(feedback.listed)) listed, \(grouped(feedback.registeredSince)) registered since, \(grouped(feedback.unknown)) unknown, \(grouped(feedback.notRemembered)) not remembered"
    ]
    guard feedback.listed > 0 else { return lines }
    let tokens = feedback.listedTokens.map { "\(grouped($0)) tokens; " } ?? ""
    lines.append(
      "listed         \(tokens)\(counted(feedback.sentToListed, "sending")) to them, \(grouped(feedback.rejectedListed)) rejected with status 8, \(grouped(feedback.discardedByListed)) discarded by that"
    )
    return lines
  }

  private static func times(_ result: RunResult) -> [String] {
    let latency = result.latency
    let window = result.measuredBy == nil ? "" : "measured phase"
    var lines = table(
      window,
      [
        ("send lag", latency.sendLagUs), ("  own", latency.sendLagOwnUs), ("  gateway's", latency.sendLagGatewayUs),
        ("error latency", latency.errorUs), ("drain", latency.drainUs), ("recover", latency.recoverUs),
        ("loop lag", result.resources.loopLagUs), ("loss window", result.binary.lossWindow),
        ("per write", result.batches.notifications), ("bytes per write", result.batches.bytes),
      ])
    let reasons = result.batches.flushReasons.positive.sorted.map { "\(grouped($0.count)) \($0.name)" }
    lines.append("flushed        \(reasons.isEmpty ? "-" : reasons.joined(separator: ", "))")
    lines += table(
      "whole run",
      [
        ("TCP connect", result.ofWholeRun(\.tcpConnectUs)), ("TLS handshake", result.ofWholeRun(\.tlsHandshakeUs)),
        ("TLS resumed", result.ofWholeRun(\.tlsResumedUs)),
      ])
    lines.append(
      "resources      \(tenths(result.resources.cpuUserS + result.resources.cpuSystemS)) of processor time, \(result.resources.maxRssBytes >> 20) MiB"
    )
    return lines
  }

  private static func checks(_ result: RunResult) -> [String] {
    var lines = result.verdict.invariants.map { invariant in
      "\(invariant.holds ? "✓" : "✗") \(invariant.name)\(invariant.holds ? "" : "  \(invariant.detail)")"
    }
    lines += result.verdict.thresholds.map(\.line)
    let verdictReasons = result.verdict.reasons ?? []
    if result.verdict.outcome == .failed { lines += verdictReasons.map { "✗ \($0)" } }
    for warning in result.warnings where result.verdict.outcome != .failed || !verdictReasons.contains(warning) {
      lines.append("! \(warning)")
    }
    return lines
  }

  private static func rates(_ result: RunResult) -> String {
    let rates = result.rates
    func text(_ rate: Double?) -> String { rate.map { grouped(Int(nearest: $0.rounded())) } ?? "-" }
    let written = "\(text(rates.writtenPerS))/s written"
    let accepted = "\(text(rates.acceptedPerS))/s accepted"
    let measured = "over \(tenths(result.measuredS))"
    guard rates.basis == .measuredAndDrain else { return "\(written), \(accepted) \(measured)" }
    let drain = result.phase(.drain)?.seconds ?? 0
    return "\(written) \(measured), \(accepted) over \(tenths(result.measuredS + drain)) with the drain"
  }

  /// Rows of the histograms that have values, under a head that names the part of the run they cover; empty if none has
  /// any.
  private static func table(_ window: String, _ histograms: [(String, LatencyHistogram?)]) -> [String] {
    let rows = histograms.compactMap { name, histogram -> String? in
      guard let histogram, histogram.count > 0 else { return nil }
      return row(
        name,
        ([0.5, 0.99, 0.999].map(histogram.quantile) + [histogram.maximum]).map { value($0, of: histogram) })
    }
    return rows.isEmpty ? [] : [row(window, ["p50", "p99", "p99.9", "max"])] + rows
  }

  /// The most common reason of failed attempts, in parentheses.
  private static func reason(_ connections: RunResult.Connections) -> String {
    connections.commonestFailure.map { " (\(grouped($0.count)) x \($0.reason))" } ?? ""
  }

  private static func row(_ name: String, _ cells: [String]) -> String {
    func pad(_ text: String, _ width: Int) -> String {
      String(repeating: " ", count: max(0, width - text.count)) + text
    }
    return name + String(repeating: " ", count: max(1, 15 - name.count)) + cells.map { pad($0, 11) }.joined()
  }

  /// Bytes in full.
  private static func value(_ value: Int, of histogram: LatencyHistogram) -> String {
    histogram.unit == .bytes ? "\(grouped(value)) B" : histogram.text(value)
  }
}

extension RunResult.Verdict.Threshold {
  /// The condition with its value, or with the reason why it cannot be judged, as a line of text.
  var line: String { "\(passed ? "✓" : "✗") \(expression)  (\(reason ?? RunReport.value(of: self)))" }
}
