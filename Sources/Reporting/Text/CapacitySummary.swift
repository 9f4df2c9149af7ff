import Bytes
import Measurement

/// A capacity document on one screen.
package struct CapacitySummary: Sendable {
  package let text: String

  package init(_ document: CapacityDocument) {
    let analysis = CapacityAnalysis(document)
    var lines = [document.conclusion]
    if let plan = analysis.plan { lines += Self.campaign(plan, document.target) }
    lines += Self.unanswered(document, analysis)
    if let demand = document.demand, let forecast = analysis.demand { lines += Self.demand(demand, forecast) }
    lines += (analysis.storms ?? []).map(Self.storm)
    if let forecast = analysis.devices { lines.append("devices        \(forecast.sentence)") }
    lines += Self.laws(analysis)
    if let plan = analysis.plan, plan.cases.count > 1 { lines += aligned(Self.cases(plan)) }
    if let law = analysis.batching { lines.append(Self.batches(law)) }
    let verdicts = [CapacityTrial.Verdict.passed, .failed, .void, .measured]
      .map { verdict in (verdict, document.trials.count { $0.verdict == verdict }) }.filter { $0.1 > 0 }
    lines.append(
      "trials         \(document.trials.count): \(verdicts.map { "\($0.1) \($0.0.rawValue)" }.joined(separator: ", "))")
    let storms = (analysis.storms ?? []).flatMap { storm in
      storm.notes.map { "\(grouped(storm.connections)) at once: \($0)" }
    }
    let devices = (analysis.devices?.notes ?? []).map { "devices: \($0)" }
    let notes = (analysis.plan?.notes ?? []) + (analysis.demand?.notes ?? []) + storms + devices
    // Some of them have words of a file.
    lines += (analysis.warnings + notes).map { "! \(ControlCharacters.escaped($0))" }
    text = lines.joined(separator: "\n")
  }

  private static func campaign(_ plan: CampaignPlan, _ target: CapacityDocument.Target?) -> [String] {
    var lines: [String] = []
    if let target, let first = plan.cases.first {
      let time = first.secondsForTarget.map(Unit.seconds.text) ?? "-"
      let held = plan.heldS.map { ", which a trial held for \(Unit.seconds.text($0))" } ?? ""
      lines.append("target         \(grouped(target.notifications)) take \(time) at that rate\(held)")
      if let within = target.withinS, let demand = plan.demandPerS {
        let needs =
          first.connections.map { "\(counted($0, "connection"))\(first.connectionsBasis.remark)" }
          ?? "no trial proves how many connections"
        let hosts = first.hosts.map { ", \($0) hosts like this one (one may fail)" } ?? ""
        lines.append(
          "               within \(Unit.seconds.text(within)): \(Unit.perSecond.text(demand)), \(needs)\(hosts)")
      }
    }
    lines.append(
      "network        \(Unit.bytesPerSecond.text(plan.networkBitsPerS / 8)), \(fixed(plan.bytesEach, 0)) B a notification before TLS; generator \(Unit.bytes.text(Double(plan.memoryBytes)))"
    )
    return lines
  }

  /// The questions to which there is no answer, because no rate passed.
  private static func unanswered(_ document: CapacityDocument, _ analysis: CapacityAnalysis) -> [String] {
    var lines: [String] = []
    if document.target != nil, analysis.plan == nil { lines.append("target         no answer: no rate passed") }
    if document.demand != nil, analysis.demand == nil { lines.append("demand         no answer: no rate passed") }
    return lines
  }

  private static func demand(_ demand: Demand, _ forecast: DemandForecast) -> [String] {
    let factor = demand.factor == 1 ? "" : " times \(significant(demand.factor, 4))"
    let count = grouped(forecast.notifications)
    var lines = [
      "demand         \(ControlCharacters.escaped(demand.source))\(factor): \(count) in \(Unit.seconds.text(forecast.lengthS)), \(Unit.perSecond.text(forecast.meanPerS)) on average, at most \(Unit.perSecond.text(forecast.peakPerS))\(demand.place(of: forecast.peakAtS))",
      "               \(forecast.sentence)",
    ]
    if forecast.verdict != .fits {
      if forecast.verdict == .uncertain {
        lines.append("               at the sustained rate: \(DemandForecast.backlog(forecast.atSustained, demand))")
      }
      if let lower = forecast.atLower {
        lines.append(
          "               at \(Unit.perSecond.text(lower.capacityPerS)), the lower end of its range: \(DemandForecast.backlog(lower, demand))"
        )
      }
    }
    if let connections = forecast.connections {
      lines.append(
        "               connections for the peak: \(grouped(connections))\(forecast.connectionsBasis.remark)")
    }
    if let storm = forecast.storm {
      lines.append(
        "               a storm of \(counted(storm.connections, "connection")) at the peak\(Optional(storm.basis).remark): up to \(grouped(storm.largest)) wait, over after \(Unit.seconds.text(storm.overAfterS))"
      )
    }
    return lines
  }

  private static func storm(_ storm: StormForecast) -> String {
    let name = "storm          \(counted(storm.connections, "connection")) at once"
    guard let seconds = storm.seconds else { return "\(name): no answer" }
    var line = "\(name): all back after \(Unit.seconds.text(seconds))\(storm.basis.remark)"
    if let rate = storm.handshakesPerS { line += ", \(Unit.perSecond.text(rate.rounded()))" }
    if let middle = storm.handshakeP50Us, let high = storm.handshakeP99Us {
      line +=
        ", handshakes p50 \(Unit.microseconds.text(Double(middle))), p99 \(Unit.microseconds.text(Double(high)))"
    }
    return line
  }

  /// The laws of connections and errors, each with its check.
  private static func laws(_ analysis: CapacityAnalysis) -> [String] {
    func error(_ value: Double?, _ places: Int) -> String { value.map { " ± \(fixed($0, places))" } ?? "" }
    func sentence(_ check: CapacityAnalysis.Check, _ place: String) -> String {
      "               \(place): \(Unit.perSecond.text(check.predictedPerS)) predicted, \(Unit.perSecond.text(check.measuredPerS)) measured (\(check.deviation >= 0 ? "+" : "")\(fixed(check.deviation * 100, 1)) %)"
    }
    var lines: [String] = []
    if let law = analysis.scalability {
      lines.append(
        "connections    X(N) = γN / (1 + α(N−1) + βN(N−1)): γ \(Unit.perSecond.text(law.gamma))\(error(law.gammaHalfWidth, 0)), α \(fixed(law.alpha, 4))\(error(law.alphaHalfWidth, 4)), β \(fixed(law.beta, 6))\(error(law.betaHalfWidth, 6)), R² \(fixed(law.rSquared, 3)), \(law.points) points\(law.gammaHalfWidth == nil ? "" : "; ± 95 %")"
      )
      if let check = law.check { lines.append(sentence(check, "at \(Int(nearest: check.at))")) }
    }
    if let law = analysis.goodput {
      lines.append(
        "errors         G = N / ((N+L)/R + T): R \(Unit.perSecond.text(law.streamingPerS)), L \(fixed(law.discardedPerError, 1)), T \(Unit.milliseconds.text(law.downtimeMs))"
      )
      if let check = law.check { lines.append(sentence(check, "at \(Unit.share.text(check.at))")) }
    }
    return lines
  }

  private static func cases(_ plan: CampaignPlan) -> [[String]] {
    [["               share of errors", "accepted", "sendings each", "reconnects", "target takes"]]
      + plan.cases.map { one in
        [
          "               \(plan.shareText(one))", Unit.perSecond.text(one.acceptedPerS),
          fixed(one.sendingsEach, 3), Unit.perSecond.text(one.reconnectsPerS),
          one.secondsForTarget.map(Unit.seconds.text) ?? "-",
        ]
      }
  }

  private static func batches(_ law: CapacityAnalysis.Batching) -> String {
    func part(_ value: Double, _ halfWidth: Double?) -> String {
      Unit.microseconds.text(value) + (halfWidth.map { " ± " + Unit.microseconds.text($0) } ?? "")
    }
    return "batches        "
      + (law.notShown
        ?? "generator's time F/b + V: F \(part(law.perWriteUs, law.perWriteHalfWidthUs)) a write, V \(part(law.perNotificationUs, law.perNotificationHalfWidthUs)) a notification; ± 95 %")
  }

  /// A trial in one line, for standard error.
  package static func line(_ trial: CapacityTrial) -> String {
    var what = trial.offeredPerS.map { Unit.perSecond.text($0.rounded()) } ?? "all it takes"
    switch trial.purpose {
    case .connections, .check: what = counted(trial.connections, "connection")
    case .batch: what = "\(trial.batch ?? 0) a write"
    case .storm: what = "\(grouped(trial.connections)) at once"
    case .errors: what = "\(Unit.share.text(trial.faultShare)) bad"
    default: break
    }
    func pad(_ text: String, _ width: Int) -> String {
      text + String(repeating: " ", count: max(0, width - text.count))
    }
    return
      "trial \(pad("\(trial.number)", 3)) \(pad(trial.purpose.rawValue, 11)) \(pad(what, 16)) \(pad(trial.verdict.rawValue, 8)) \(Unit.perSecond.text(trial.acceptedPerS.rounded())) accepted, lag p99 \(Unit.microseconds.text(Double(trial.sendLagP99Us))), \(trial.behindMs.map { "behind \(fixed($0, 1)) ms, " } ?? "")cpu \(trial.cpuCores.map { "\(Int(nearest: ($0 * 100).rounded())) %" } ?? "unknown")\(trial.reasons.isEmpty ? "" : "; \(trial.reasons.joined(separator: "; "))")"
  }
}
