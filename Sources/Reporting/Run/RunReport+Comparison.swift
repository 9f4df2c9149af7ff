import Measurement

extension RunReport {
  /// Ratios to another run. One that could as well be 1 is marked "~".
  func comparison(with baseline: RunResult) -> Section {
    var table = Table([
      .init("what"), .init("this run", .right), .init("baseline", .right), .init("ratio", .right),
      .init("95 % interval", .right), .init(""),
    ])
    for line in Self.lines(result, baseline) {
      let words: Prose =
        switch line.outcome {
        case .same: "~"
        case .small: "below 15 %"
        case .better: .strong("better")
        case .worse: .strong("worse")
        case .unknown: ""
        }
      table.add(
        Prose(line.name), Prose(line.this), Prose(line.that), Prose(line.ratio.map { decimal($0, 3) } ?? "–"),
        Prose(line.interval.map { "\(decimal($0.lowerBound, 3)) to \(decimal($0.upperBound, 3))" } ?? "–"), words,
        tone: line.outcome == .worse ? .bad : line.outcome == .better ? .good : .neutral)
    }
    // Where the gateway was and what was asked of the result change no number.
    let differences = SetupDifference.between([result], [baseline])
      .filter { !["gateway", "identity", "threshold", "timeline"].contains($0.name) }
    var blocks: [Block] = []
    if differences.isEmpty {
      blocks.append(.paragraph("Both runs were made on the same machine, with the same software, plan and seed."))
    } else {
      blocks.append(.callout(.warning, "The runs differ in more than their outcome; a ratio may be due to that."))
      var changed = Table([.init("setting"), .init("this run"), .init("baseline")])
      for difference in differences {
        changed.add(
          .code(difference.name), Prose(difference.a.joined(separator: ", ")),
          Prose(difference.b.joined(separator: ", ")))
      }
      blocks.append(.table(changed))
    }
    blocks.append(.table(table))
    blocks.append(
      .paragraph(
        "~: the ratio could as well be 1. Intervals tell of the changes inside each run, not of those from one run to the next: with one run a side, take a difference below 15 % for noise, and use several runs of each to be sure."
      ))
    return Section("Compared with the baseline", blocks)
  }

  private struct Line {
    enum Outcome { case same, small, better, worse, unknown }

    var name: String
    var this: String
    var that: String
    var ratio: Double?
    var interval: ClosedRange<Double>?
    var moreIsBetter = false

    var outcome: Outcome {
      guard let interval else { return .unknown }
      if interval.contains(1) { return .same }
      // Two single runs on one machine differ by that much for no reason.
      if let ratio, abs(ratio - 1) < 0.15 { return .small }
      return (interval.lowerBound > 1) == moreIsBetter ? .better : .worse
    }
  }

  private static func lines(_ a: RunResult, _ b: RunResult) -> [Line] {
    var lines: [Line] = []
    let (ours, theirs) = (
      WholeSeconds(a.series, in: RunReport(a).measured), WholeSeconds(b.series, in: RunReport(b).measured)
    )
    let rate = relativeInterval(ours.writtenPerSecond, theirs.writtenPerSecond)
    func add(_ name: String, _ x: Double, _ y: Double, _ unit: Unit, by relative: Double?, moreIsBetter: Bool) {
      let ratio = Reporting.ratio(x, to: y)
      var line = Line(name: name, this: unit.text(x), that: unit.text(y), ratio: ratio)
      if let ratio, let relative { line.interval = max(0, ratio * (1 - relative))...ratio * (1 + relative) }
      line.moreIsBetter = moreIsBetter
      lines.append(line)
    }
    add("written", a.rates.writtenPerS, b.rates.writtenPerS, .perSecond, by: rate, moreIsBetter: true)
    add("accepted", a.rates.acceptedPerS, b.rates.acceptedPerS, .perSecond, by: rate, moreIsBetter: true)
    func processor(_ result: RunResult) -> Double {
      (result.resources.cpuUserS + result.resources.cpuSystemS) / Double(max(1, result.sendings.written))
    }
    add(
      "processor time per notification", processor(a), processor(b), .seconds,
      by: relativeInterval(ours.processorPerNotification, theirs.processorPerNotification), moreIsBetter: false)
    add(
      "most memory", Double(a.resources.maxRssBytes), Double(b.resources.maxRssBytes), .bytes, by: nil,
      moreIsBetter: false)
    let histograms: [(String, KeyPath<RunResult, LatencyHistogram>)] = [
      ("send lag", \.latency.sendLagUs), ("error latency", \.latency.errorMs), ("time to recover", \.latency.recoverMs),
      ("full TLS handshake", \.latency.tlsHandshakeMs), ("resumed TLS handshake", \.latency.tlsResumedMs),
      ("loss window", \.lossWindow),
    ]
    for (name, path) in histograms where a[keyPath: path].count > 0 && b[keyPath: path].count > 0 {
      for (label, share) in [("p50", 0.5), ("p99", 0.99)] {
        lines.append(quantileLine("\(name) \(label)", a[keyPath: path], b[keyPath: path], share))
      }
    }
    return lines
  }

  /// How far, as a share of itself, the ratio of two means may be off.
  private static func relativeInterval(_ a: [Double], _ b: [Double]) -> Double? {
    guard let a = try? BatchMeans(a), let b = try? BatchMeans(b), a.mean > 0, b.mean > 0 else { return nil }
    let (x, y) = (a.halfWidth / a.mean, b.halfWidth / b.mean)
    return (x * x + y * y).squareRoot()
  }

  /// From the one's lower end over the other's upper end to the reverse: wider than it need be, and never too sure.
  private static func quantileLine(_ name: String, _ a: LatencyHistogram, _ b: LatencyHistogram, _ share: Double)
    -> Line
  {
    let (x, y) = (a.quantile(share), b.quantile(share))
    var line = Line(name: name, this: a.text(x), that: b.text(y), ratio: ratio(Double(x), to: Double(y)))
    let (ours, theirs) = (a.interval(of: share), b.interval(of: share))
    if let low = ours.lower, let high = ours.upper, let least = theirs.lower, let most = theirs.upper, least > 0,
      most > 0,
      low <= high, least <= most
    {
      line.interval = Double(low) / Double(most)...Double(high) / Double(least)
    }
    return line
  }
}
