import Measurement

/// The picture that carries a run: what was asked, written and accepted, the errors, the lag and the stalls, over one
/// axis of time with the phases, stages and thresholds.
extension RunReport {
  var picture: Block? {
    guard !result.series.isEmpty else { return nil }
    let charts = [rates, errorBars, lagBelow].compactMap(\.self)
    return .stack(charts, caption: Prose(pictureCaption))
  }

  private var rates: Chart {
    func perSecond(_ value: (RunResult.Sample) -> Int) -> [Point] {
      let points = line { Double(value($0)) }
      return zip(points, seconds).map { Point($0.x, $0.y / $1) }
    }
    let (written, accepted) = (perSecond(\.written), perSecond(\.accepted))
    var marks: [Mark] = []
    if let asked { marks.append(.line("asked", asked, color: .grey, isDashed: true)) }
    marks.append(.area("written", written, color: .blue))
    if acceptedIsSmooth { marks.append(.line("accepted", accepted, color: .green)) }
    if let baseline { marks.append(.line("baseline, written", Self.written(of: baseline), color: .purple)) }
    let names = [asked == nil ? nil : "asked", "written", acceptedIsSmooth ? "accepted" : nil].compactMap(\.self)
    let list =
      names.count < 2 ? names.joined() : names.dropLast().joined(separator: ", ") + " and \(names[names.count - 1])"
    return Chart(
      title: "Notifications per second: \(list)", x: time, y: Axis("notifications per second", unit: .perSecond),
      marks: marks, regions: regions,
      rules: stageRules + thresholdRules(["written_per_s", "accepted_per_s"]), height: 128)
  }

  /// Whether notifications are proven accepted about as they are written. If everything is proven at the end, one spike
  /// would flatten the rest.
  var acceptedIsSmooth: Bool {
    Double(result.series.map(\.accepted).max() ?? 0) <= 1.5 * Double(result.series.map(\.written).max() ?? 0)
  }

  /// What another run wrote per second, over its own time.
  static func written(of run: RunResult) -> [Point] {
    let seconds = WholeSeconds.lengths(of: run.series).map { $0 ?? 1 }
    return zip(run.series, seconds).map { Point($0.tS + $1 / 2, Double($0.written) / $1) }
  }

  private var errorBars: Chart? {
    guard result.series.contains(where: { $0.errors > 0 }) else { return nil }
    let bins = bins(\.errors)
    let every = bins.width == 1 ? "second" : Unit.seconds.text(bins.width)
    return Chart(
      title: "Error responses", x: time, y: Axis("error responses per \(every)", unit: .count),
      marks: [.bars("", bins.points.filter { $0.y > 0 }, width: bins.width, color: .vermillion)],
      regions: regions.map(\.unnamed), height: 40)
  }

  private var lagBelow: Chart? {
    guard result.latency.sendLagUs.count > 0 else { return nil }
    var marks = [Mark.line("", line { Double($0.sendLagP99Us) }, color: .blue)]
    if let baseline, baseline.latency.sendLagUs.count > 0 {
      let points = zip(baseline.series, WholeSeconds.lengths(of: baseline.series)).map {
        Point($0.tS + ($1 ?? 1) / 2, Double($0.sendLagP99Us))
      }
      marks[0].name = "this run"
      marks.append(.line("baseline", points, color: .purple))
    }
    return Chart(
      title: "Send lag p99 of each second", x: time, y: Axis("send lag p99", unit: .microseconds), marks: marks,
      regions: regions.map(\.unnamed), events: stalls,
      rules: thresholdRules(["send_lag_p50", "send_lag_p90", "send_lag_p99", "send_lag_p999", "send_lag_max"]),
      height: 56)
  }

  /// Stalls of the generator, for the upper edge of a chart.
  var stalls: [Chart.Event] {
    (result.stalls?.listed ?? []).map {
      Chart.Event(x: $0.tS, label: "stall of \(Unit.milliseconds.text($0.ms))", color: .orange)
    }
  }

  /// The bounds of thresholds on these metrics, as lines across a chart of their unit.
  private func thresholdRules(_ names: [String]) -> [Chart.Rule] {
    result.verdict.thresholds.compactMap { threshold in
      guard let parsed = try? Threshold(threshold.expression), names.contains(parsed.name) else { return nil }
      return .horizontal(parsed.bound, threshold.passed ? threshold.expression : "✗ \(threshold.expression)")
    }
  }

  private var stageRules: [Chart.Rule] {
    stageStarts.enumerated().dropFirst().map { .vertical($0.element, "stage \($0.offset + 1)") }
  }

  private var pictureCaption: String {
    var parts: [String] = []
    let hasThresholds = !result.verdict.thresholds.isEmpty
    if !stalls.isEmpty { parts.append("Ticks above the send lag are stalls of the generator.") }
    if hasThresholds, picturesThreshold {
      parts.append("Dashed lines are thresholds, which are judged over the whole measured phase.")
    }
    if !result.series.contains(where: { $0.errors > 0 }) { parts.append("No error response came.") }
    return parts.joined(separator: " ")
  }

  private var picturesThreshold: Bool {
    let shown = ["written_per_s", "accepted_per_s"]
    return result.verdict.thresholds.contains { threshold in
      guard let parsed = try? Threshold(threshold.expression) else { return false }
      return shown.contains(parsed.name) || parsed.name.hasPrefix("send_lag_") && result.latency.sendLagUs.count > 0
    }
  }
}

extension Chart.Region {
  /// Shaded as it is, without its name.
  fileprivate var unnamed: Self { Self(from: from, to: to, label: "", isShaded: isShaded) }
}
