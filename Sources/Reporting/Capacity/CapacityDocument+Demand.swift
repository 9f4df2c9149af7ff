import Measurement

/// The parts of the report about a demand and about reconnect storms.
extension CapacityDocument {
  func demandSection(_ analysis: CapacityAnalysis) -> Section? {
    guard let demand else { return nil }
    guard let forecast = analysis.demand else {
      return Section("Demand", [.callout(.warning, "No rate passed, so nothing is known about the demand.")])
    }
    var blocks: [Block] = [
      .callout(forecast.tone, Prose("\(forecast.sentence.prefix(1).uppercased())\(forecast.sentence.dropFirst()).")),
      .figures(figures(forecast, demand)),
      .chart(chart(forecast, demand), caption: Prose(caption(forecast, demand))),
    ]
    let courses = [
      ("lower end of the range", forecast.atLower), ("sustained rate", forecast.atSustained),
      ("upper end of the range", forecast.atUpper),
    ].compactMap { name, course in course.map { (name, $0) } }
    if courses.contains(where: { $0.1.largest > 0 }) {
      blocks.append(.chart(Self.backlogs(courses, length: demand.endS), caption: "Notifications that wait."))
      blocks.append(.table(Self.table(courses, demand)))
    }
    blocks += forecast.notes.map { .callout(.warning, Prose($0)) }
    blocks.append(
      .paragraph(
        "What exceeds a rate waits and is sent in order as soon as there is room. The demand fits if its peak is not above the range of the sustained rate. Rates within a step of the demand are its mean: a shorter burst is not seen."
      ))
    if demand.origin == .inspection {
      blocks.append(
        .paragraph(
          "A recording shows what was sent, resends among it, and not what was due: a sender that was slowed down shows less."
        ))
    }
    return Section("Demand", blocks)
  }

  private func figures(_ forecast: DemandForecast, _ demand: Demand) -> [Figure] {
    let course = forecast.atSustained
    var figures = [
      Figure(
        "peak", Unit.perSecond.text(forecast.peakPerS),
        note: demand.place(of: forecast.peakAtS).trimmingPrefix(" ").description, tone: forecast.tone),
      Figure("headroom", Unit.share.text(forecast.headroom), note: "of the sustained rate, at the peak"),
      Figure(
        "notifications", grouped(forecast.notifications),
        note: "in \(Unit.seconds.text(forecast.lengthS)), \(Unit.perSecond.text(forecast.meanPerS)) on average"),
    ]
    if course.largest > 0 {
      figures.append(Figure("largest backlog", grouped(course.largest), note: "at the sustained rate"))
      figures.append(
        Figure(
          "longest delay", Unit.seconds.text(course.longestDelayS),
          note: "a backlog lasts \(Unit.seconds.text(course.longestS)) at most"))
    }
    if let connections = forecast.connections {
      figures.append(
        Figure(
          "connections for the peak", grouped(connections),
          note: forecast.connectionsBasis.remark.trimmingPrefix(" ").description))
    }
    return figures
  }

  private func chart(_ forecast: DemandForecast, _ demand: Demand) -> Chart {
    var points = (0..<demand.count).map { Point(demand.step($0).fromS, demand.step($0).perS) }
    points.append(Point(demand.endS, demand.step(demand.count - 1).perS))
    var marks: [Mark] = []
    if let lower = sustainedRange?.lowerPerS, let upper = sustainedRange?.upperPerS, let rate = sustainedPerS {
      marks.append(
        .band(
          "range of the sustained rate",
          [Point(0, rate, low: lower, high: upper), Point(demand.endS, rate, low: lower, high: upper)], color: .grey))
    }
    marks.append(.steps("demand", points))
    return Chart(
      title: "Demand over capacity", x: .time("time since the demand's beginning"),
      y: Axis("notifications per second", unit: .perSecond), marks: marks,
      rules: sustainedPerS.map { [.horizontal($0, "sustained")] } ?? [])
  }

  private func caption(_ forecast: DemandForecast, _ demand: Demand) -> String {
    let factor = demand.factor == 1 ? "" : ", times \(significant(demand.factor, 4))"
    return "Demand of \(demand.source)\(factor)\(demand.started.map { ", from \($0) on" } ?? "")."
  }

  private static func backlogs(_ courses: [(String, BacklogCourse)], length: Double) -> Chart {
    Chart(
      title: "Backlog", x: .time("time since the demand's beginning"),
      y: Axis("waiting notifications", unit: .count),
      marks: courses.enumerated().compactMap { index, course in
        guard course.1.largest > 0 else { return nil }
        let points = course.1.points.map { Point($0.atS, $0.waiting) }
        return .line(course.0, [Point(0, 0)] + points, color: [.vermillion, .blue, .green][index % 3])
      })
  }

  private static func table(_ courses: [(String, BacklogCourse)], _ demand: Demand) -> Table {
    .numbers(
      ["capacity", "rate", "largest backlog", "longest delay", "longest backlog", "all backlogs", "last one out"],
      courses.map { name, course in
        let after = course.lastOutS - demand.lastDueS
        return [
          name, Unit.perSecond.text(course.capacityPerS), grouped(course.largest),
          Unit.seconds.text(course.longestDelayS), Unit.seconds.text(course.longestS),
          Unit.seconds.text(course.totalS), after > 0 ? "\(Unit.seconds.text(after)) late" : "in time",
        ]
      })
  }

  // MARK: storms

  func stormSection(_ analysis: CapacityAnalysis) -> Section? {
    guard let storms = analysis.storms else { return nil }
    var table = Table([
      .init("connections", .right), .init("all back after", .right), .init("evidence"), .init("handshakes", .right),
      .init("p50", .right), .init("p99", .right), .init("notes"),
    ])
    for storm in storms {
      table.add(
        Prose(grouped(storm.connections)), Prose(storm.seconds.map(Unit.seconds.text) ?? "unknown"),
        Prose(storm.basis?.rawValue ?? "–"),
        Prose(storm.handshakesPerS.map { Unit.perSecond.text($0.rounded()) } ?? "–"),
        Prose(storm.handshakeP50Us.map { Unit.microseconds.text(Double($0)) } ?? "–"),
        Prose(storm.handshakeP99Us.map { Unit.microseconds.text(Double($0)) } ?? "–"),
        Prose(storm.notes.joined(separator: "; ")), tone: storm.seconds == nil ? .warning : .neutral)
    }
    var blocks: [Block] = [.table(table)]
    if let storm = analysis.demand?.storm {
      blocks.append(
        .paragraph(
          Prose(
            "At the demand's peak, with \(grouped(storm.connections)) connections and nothing sent until all are back: up to \(grouped(storm.largest)) notifications wait, and none any more \(Unit.seconds.text(storm.overAfterS)) after the storm began."
          )))
    }
    blocks.append(
      .paragraph(
        "A storm is all connections opened at once, with full handshakes, as after a restart of the gateway. The time is that until the last one is established."
      ))
    return Section("Reconnect storms", blocks)
  }
}

extension DemandForecast {
  fileprivate var tone: Tone {
    switch verdict {
    case .fits: .good
    case .late: .bad
    case .uncertain: .warning
    }
  }
}
