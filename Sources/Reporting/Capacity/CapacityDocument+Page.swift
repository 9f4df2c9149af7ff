import Glibc
import Measurement

extension CapacityDocument {
  /// The report: the answer first, then its evidence, then every trial.
  public var page: Page { page(footer: "") }

  /// The report, with a line at its end.
  ///
  /// - Parameter footer: how it was made.
  package func page(footer: Prose = "") -> Page {
    let analysis = CapacityAnalysis(self)
    var sections = [answer(analysis)]
    if let section = demandSection(analysis) { sections.append(section) }
    if let section = stormSection(analysis) { sections.append(section) }
    if let devices, let forecast = analysis.devices { sections.append(forecast.section(devices)) }
    sections.append(search)
    if let section = connectionsSection(analysis) { sections.append(section) }
    if let section = errorsSection(analysis) { sections.append(section) }
    if let section = batchesSection(analysis) { sections.append(section) }
    sections.append(allTrials)
    sections.append(setup.folded)
    var place = "\(environment.host)"
    if case .text(let gateway) = plan["gateway"] { place = "\(gateway) from \(environment.host)" }
    return Page(
      title: "Capacity of \(Self.text(plan["gateway"]) ?? "the gateway")", subtitle: Prose("\(place), \(started)"),
      sections: sections, footer: footer)
  }

  private static func text(_ value: RunResult.PlanValue?) -> String? {
    if case .text(let text) = value { text } else { nil }
  }

  /// One sentence about the result of the search, without its full stop.
  public var conclusion: String {
    let over = connections == 1 ? "1 connection" : "\(connections) connections"
    guard let sustainedPerS else {
      return switch ending {
      case .interrupted: "it was interrupted before a rate had passed"
      case .unsettled: "no rate was found: trials ran out"
      default: "no rate passed"
      }
    }
    let rate = Unit.perSecond.text(sustainedPerS) + (rangeText.map { " (\($0))" } ?? "")
    let passed = isConfirmed ? "sustained \(rate) over \(over)" : "passed \(rate) over \(over) in a short trial"
    return switch ending {
    case .found: "the gateway sustains \(rate) over \(over); \(Unit.share.text(settings.precision)) more failed"
    case .generatorLimited: "the gateway sustains \(rate) over \(over); this generator cannot try more"
    case .unsettled: "the gateway \(passed); trials ran out"
    case .nothingPassed: "no rate passed"
    case .interrupted: "the gateway \(passed); then it was interrupted"
    }
  }

  /// The uncertainty of the rate: "128,000/s to 137,000/s", or the lower end alone.
  private var rangeText: String? {
    guard let range = sustainedRange else { return ending == .generatorLimited ? "at least" : nil }
    let lower = Unit.perSecond.text(range.lowerPerS)
    return range.upperPerS.map { "\(lower) to \(Unit.perSecond.text($0))" } ?? "\(lower) at least"
  }

  /// Whether a long trial has passed at the rate, not only a short one.
  private var isConfirmed: Bool {
    trials.contains {
      [.confirm, .above].contains($0.purpose) && $0.verdict == .passed && $0.offeredPerS == sustainedPerS
    }
  }

  // MARK: the answer

  private func answer(_ analysis: CapacityAnalysis) -> Section {
    let tone: Tone =
      switch ending {
      case .found: analysis.contradiction == nil ? .good : .warning
      case .nothingPassed: .bad
      case .generatorLimited, .unsettled, .interrupted: .warning
      }
    var figures = [
      Figure(
        "sustained", sustainedPerS.map(Unit.perSecond.text) ?? "–",
        note: [ending.rawValue.replacing("_", with: " "), rangeText].compactMap { $0 }.joined(separator: ", "),
        tone: tone)
    ]
    if let plan = analysis.plan { figures += self.figures(plan) }
    var blocks: [Block] = [
      .callout(tone, Prose("\(conclusion.prefix(1).uppercased())\(conclusion.dropFirst()).\(reason)")), picture,
      .figures(figures),
    ]
    if let plan = analysis.plan { blocks += Self.costs(plan) }
    blocks += analysis.warnings.map { .callout(.warning, Prose($0)) }
    if sustainedRange != nil {
      blocks.append(
        .paragraph(
          "The range after the rate is the uncertainty of the search: the limit that the fewest trials contradict, all limits that one more trial contradicts, and half a step on either side."
        ))
    }
    return Section("Result", blocks)
  }

  private func figures(_ plan: CampaignPlan) -> [Figure] {
    var figures: [Figure] = []
    figures.append(
      Figure(
        "network", Unit.bytesPerSecond.text(plan.networkBitsPerS / 8),
        note:
          "at \(Unit.perSecond.text(plan.demandPerS ?? sustainedPerS ?? 0)), \(significant(plan.bytesEach, 3)) B each"
      ))
    figures.append(
      Figure("generator's memory", Unit.bytes.text(Double(plan.memoryBytes)), note: "the most of all trials"))
    if let first = plan.cases.first, let target {
      figures.append(
        Figure(
          "\(Unit.count.text(Double(target.notifications))) take", Unit.seconds.text(first.secondsForTarget ?? 0),
          note: "over \(connections == 1 ? "1 connection" : "\(connections) connections")"
            + (plan.heldS.map { ", a rate held for \(Unit.seconds.text($0))" } ?? "")))
      if let within = target.withinS {
        figures.append(
          Figure(
            "connections, within \(Unit.seconds.text(within))", first.connections.map { grouped($0) } ?? "not known",
            note: "at \(Unit.perSecond.text(plan.demandPerS ?? 0))\(first.connectionsBasis.remark)"
              + (first.hosts.map { ", from \(grouped($0)) hosts" } ?? "")))
      }
    }
    return figures
  }

  private static func costs(_ plan: CampaignPlan) -> [Block] {
    var blocks: [Block] = []
    blocks.append(.heading("Cost of errors"))
    blocks.append(.table(table(of: plan, hasDemand: plan.demandPerS != nil)))
    blocks += plan.notes.map { .callout(.warning, Prose($0)) }
    if plan.cases.count > 1 {
      blocks.append(
        .paragraph(
          "Accepted, sendings and reconnects of the first row were measured; below it they are the goodput law's."))
    }
    blocks.append(
      .paragraph(
        "Connections are planned at \(Unit.share.text(CampaignPlan.headroom)) of their sustained rate, hosts at the same share of their cores plus one spare."
      ))
    return blocks
  }

  private static func table(of plan: CampaignPlan, hasDemand: Bool) -> Table {
    var names = ["share of errors", "accepted", "of one connection", "sendings each", "reconnects"]
    if plan.cases.contains(where: { $0.secondsForTarget != nil }) { names.append("time for the target") }
    if hasDemand { names += ["connections needed", "hosts"] }
    return .numbers(
      names,
      plan.cases.enumerated().map { index, one in
        var cells = [
          // On one line, however narrow the page is.
          ((index == 0 ? "measured: " : "") + plan.shareText(one)).replacing(" ", with: "\u{A0}"),
          Unit.perSecond.text(one.acceptedPerS),
          Unit.perSecond.text(one.perConnectionPerS), significant(one.sendingsEach, 4),
          "\(significant(one.reconnectsPerS, 3))/s",
        ]
        if let seconds = one.secondsForTarget { cells.append(Unit.seconds.text(seconds)) }
        if hasDemand { cells += [one.connections.map { grouped($0) } ?? "–", one.hosts.map { grouped($0) } ?? "–"] }
        return cells
      })
  }

  // MARK: the search

  /// Every trial of the search by its rate, with the rate that is sustained.
  private var picture: Block {
    let steps = trials.filter { [.burst, .search, .confirm, .above].contains($0.purpose) }
    func points(_ verdict: CapacityTrial.Verdict) -> [Point] {
      steps.filter { $0.verdict == verdict }.map {
        Point(Double($0.number), $0.offeredPerS ?? $0.acceptedPerS, note: $0.reasons.first ?? $0.purpose.rawValue)
      }
    }
    let rates = steps.map { $0.offeredPerS ?? $0.acceptedPerS }.filter { $0 > 0 }
    // Trials are close to each other at the end: the axis shows a little more than they span.
    let bounds = rates.min().flatMap { low in rates.max().map { low * 0.97...$0 * 1.03 } }
    let isFar = bounds.map { $0.upperBound > 4 * $0.lowerBound } ?? false
    let numbers = steps.map { Double($0.number) }
    let trials = numbers.min().flatMap { first in numbers.max().map { first - 0.5...$0 + 0.5 } }
    let line = sustainedPerS.flatMap { rate in
      numbers.min().flatMap { first in numbers.max().map { [Point(first, rate), Point($0, rate)] } }
    }
    let chart = Chart(
      title: "Trials of the search",
      x: Axis("trial", unit: .count, bounds: trials, includesZero: false),
      y: Axis("notifications per second", unit: .perSecond, layout: isFar ? .logarithmic : .linear, bounds: bounds),
      marks: [
        .line("sustained", line ?? [], color: .grey, isDashed: true),
        .points("passed", points(.passed), color: .green), .points("failed", points(.failed), color: .vermillion),
        .points("void", points(.void), color: .grey), .points("burst", points(.measured), color: .blue),
      ].filter { !$0.points.isEmpty })
    let caption = [
      sustainedPerS.map { "The dashed line is the sustained rate, \(Unit.perSecond.text($0))." } ?? "",
      isFar || rates.isEmpty ? "" : "The axis does not begin at 0.",
    ].filter { !$0.isEmpty }.joined(separator: " ")
    return .chart(chart, caption: Prose(caption))
  }

  /// The reason why the next higher rate failed, as a sentence; empty when none did.
  private var reason: String {
    guard ending == .found || ending == .unsettled, let sustainedPerS else { return "" }
    let failed = trials.filter { $0.verdict == .failed && ($0.offeredPerS ?? 0) > sustainedPerS }
    guard let next = failed.min(by: { ($0.offeredPerS ?? 0) < ($1.offeredPerS ?? 0) }), let why = next.reasons.first,
      let rate = next.offeredPerS
    else { return "" }
    return " At \(Unit.perSecond.text(rate)): \(why)."
  }

  private var search: Section {
    Section(
      "Search",
      [
        .paragraph(
          "A trial passes when send lag (p99) stays below \(Unit.microseconds.text(Double(settings.lagLimitUs))), the backlog does not grow, the gateway has caught up at the end, nothing is lost without an error, at most \(Unit.share.text(settings.errorLimit)) is refused and \(Unit.share.text(settings.resentLimit)) resent. \(rules)"
        )
      ])
  }

  /// The criteria by which the trials were judged.
  private var rules: String {
    trials.contains { $0.stalledS != nil }
      ? "A trial whose generator lacked processor time or stalled is void instead of failed. A failed trial is repeated: a rate fails when it failed twice."
      : "A trial whose generator lacked processor time is void instead of failed."
  }

  // MARK: laws

  private func connectionsSection(_ analysis: CapacityAnalysis) -> Section? {
    let (fitted, check) = CapacityAnalysis.scaling(trials)
    guard !fitted.isEmpty else { return nil }
    let point = { (trial: CapacityTrial) in
      Point(Double(trial.connections), trial.acceptedPerS, note: trial.reasons.first)
    }
    var marks = [Mark.points("measured", fitted.map(point))]
    var blocks: [Block] = []
    if let fit = CapacityAnalysis.scalabilityFit(trials) {
      let curve = (0...120).compactMap { step -> Point? in
        let count = 1 + (2 * fit.largest - 1) * Double(step) / 120
        return fit.throughput(at: count).map { Point(count, $0) }
      }
      marks.insert(.line("scalability law", curve, color: .orange, isDashed: true), at: 0)
      func parameter(_ value: Double, _ error: Double?) -> String {
        significant(value, 4) + (error.map { " ± \(significant($0, 2))" } ?? "")
      }
      blocks.append(
        .values([
          Value("γ, of one connection", Prose("\(parameter(fit.gamma, fit.gammaHalfWidth)) per second")),
          Value("α, waiting in line", Prose(parameter(fit.alpha, fit.alphaHalfWidth))),
          Value("β, keeping in step", Prose(parameter(fit.beta, fit.betaHalfWidth))),
          Value("R²", Prose(significant(fit.rSquared, 4))),
          Value(
            "fastest with", Prose(fit.peak.map { "\(significant($0, 3)) connections" } ?? "unknown from these points")),
        ]))
      blocks.append(
        .paragraph(
          Prose(
            (fit.gammaHalfWidth == nil
              ? "Three points are too few to estimate the errors of the parameters."
              : "± are 95 % intervals (Student's t) of the law with all its parameters free.")
              + " Beyond \(Int(nearest: fit.largest)) connections the curve is a prediction, and it ends at twice as many; the fastest point is stated only within it, and only if β exceeds 0 by more than its ±."
          )))
    }
    if let check {
      marks.append(.points("check", [point(check)], color: .purple))
      if let result = analysis.scalability?.check {
        blocks.append(
          .callout(Self.tone(result), Prose(Self.sentence(result, "\(Int(nearest: result.at)) connections"))))
      }
    }
    let chart = Chart(
      title: "Accepted over connections, as fast as possible", x: Axis("connections", unit: .count),
      y: Axis("accepted per second", unit: .perSecond), marks: marks)
    return Section("Connections", [.chart(chart)] + blocks)
  }

  private func errorsSection(_ analysis: CapacityAnalysis) -> Section? {
    guard let (law, _) = CapacityAnalysis.goodputLaw(trials), let goodput = analysis.goodput else { return nil }
    let measured = trials.filter { $0.purpose == .errors && $0.acceptedPerS > 0 && $0.errorShare > 0 }
    let connections = measured.first?.connections ?? 1
    let curve = (0...120).map { step -> Point in
      let share = ratio(step)
      return Point(share, law.goodput(errorShare: share, connections: connections, cores: nil))
    }
    func ratio(_ step: Int) -> Double { 1e-7 * pow(1e6, Double(step) / 120) }
    let chart = Chart(
      title: "Accepted over the share of errors",
      x: Axis("share of errors", unit: .share, layout: .logarithmic, includesZero: false),
      y: Axis("accepted per second", unit: .perSecond),
      marks: [
        .line("goodput law", curve, color: .orange, isDashed: true),
        .points("measured", measured.map { Point($0.errorShare, $0.acceptedPerS) }),
      ])
    var blocks: [Block] = [
      .chart(chart, caption: "G = N / ((N + L)/R + T) of one connection, one error every N."),
      .values([
        Value("R, streaming", Prose(Unit.perSecond.text(goodput.streamingPerS))),
        Value("L, discarded by an error", Prose(significant(goodput.discardedPerError, 3))),
        Value("T, until sending again", Prose(Unit.milliseconds.text(goodput.downtimeMs))),
      ]),
    ]
    if let check = goodput.check {
      blocks.append(.callout(Self.tone(check), Prose(Self.sentence(check, "a share of \(Unit.share.text(check.at))"))))
    }
    return Section("Errors", blocks)
  }

  private func batchesSection(_ analysis: CapacityAnalysis) -> Section? {
    let points = CapacityAnalysis.batchPoints(trials)
    guard points.count >= 2 else { return nil }
    let fit = try? BatchCost(points)
    let chart = Chart.batchCost(
      points.map { Point($0.batch, $0.cost) }, fit: fit.flatMap { $0.isConclusive ? $0 : nil })
    guard let fit else { return Section("Batches", [.chart(chart)]) }
    if let reason = fit.reasonToHide { return Section("Batches", [.chart(chart), .paragraph(Prose("\(reason)."))]) }
    return Section("Batches", [.chart(chart), .values(fit.values), .paragraph("± are 95 % intervals (Student's t).")])
  }

  private static func tone(_ check: CapacityAnalysis.Check) -> Tone { abs(check.deviation) <= 0.15 ? .good : .warning }

  private static func sentence(_ check: CapacityAnalysis.Check, _ place: String) -> String {
    let deviation = "\(check.deviation >= 0 ? "+" : "−")\(Unit.share.text(abs(check.deviation)))"
    return
      "Checked at \(place): \(Unit.perSecond.text(check.predictedPerS)) predicted, \(Unit.perSecond.text(check.measuredPerS)) measured (\(deviation))."
  }

  // MARK: evidence

  private var allTrials: Section {
    var table = Table([
      .init("trial", .right), .init("for"), .init("offered", .right), .init("accepted", .right),
      .init("connections", .right), .init("batch", .right), .init("errors", .right), .init("lag p99", .right),
      .init("behind", .right), .init("cores", .right), .init("verdict"),
    ])
    for trial in trials {
      let tone: Tone =
        switch trial.verdict {
        case .passed: .good
        case .failed: .bad
        case .void: .warning
        case .measured: .neutral
        }
      table.rows.append(
        Table.Row(
          [
            "\(trial.number)", trial.purpose.rawValue, trial.offeredPerS.map(Unit.perSecond.text) ?? "all it takes",
            Unit.perSecond.text(trial.acceptedPerS), "\(trial.connections)",
            trial.perWriteMean.map { significant($0, 3) } ?? "–", grouped(trial.errors),
            Unit.microseconds.text(Double(trial.sendLagP99Us)), trial.behindMs.map(Unit.milliseconds.text) ?? "–",
            trial.cpuCores.map { significant($0, 2) } ?? "–",
            trial.verdict.rawValue,
          ].map { Prose($0) }, tone: tone, note: Prose(trial.reasons.joined(separator: "; "))))
    }
    return Section("All trials", [.table(table)])
  }

  private var setup: Section {
    let values = [
      Value("host", Prose(environment.host)), Value("kernel", Prose(environment.kernel)),
      Value("processor", Prose("\(environment.cpu), \(environment.cores) cores")),
      Value("memory", Prose(Unit.bytes.text(Double(environment.memoryBytes)))),
      Value("TLS", Prose(environment.openssl)), Value("apnscope", Prose(environment.build)),
      Value("command", .code(environment.command.joined(separator: " "))),
      Value("time", Prose("\(started) to \(ended)")),
    ]
    let lines = plan.sorted { $0.key < $1.key }.map { "\($0.key) = \($0.value.text)" }
    return Section(
      "Set-up",
      [.values(values)]
        + (lines.isEmpty
          ? [] : [.heading("Plan of every trial"), .preformatted(lines.joined(separator: "\n"))]))
  }
}
