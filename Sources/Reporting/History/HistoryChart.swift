import Measurement

/// A figure over runs.
package struct HistoryChart: Sendable {
  package let figure: String
  package let unit: Unit
  /// Runs that have it.
  package let runs: [(run: RunHistory.Run, value: Double)]

  /// - Parameter figure: one of `RunHistory.figureNames`.
  package init(_ figure: String, _ runs: [RunHistory.Run]) {
    self.figure = figure
    unit = RunFigure.named(figure)?.unit ?? .perSecond
    self.runs = runs.compactMap { run in run.figures[figure].map { (run, $0) } }
  }

  /// The runs whose figures were computed in the same way; in a mixture, the runs that were computed as by this
  /// version.
  package var comparable: [(run: RunHistory.Run, value: Double)] {
    isMixed ? runs.filter { !$0.run.hasOldMeasure } : runs
  }

  private var isMixed: Bool { RunHistory.mixesMeasures(runs.map(\.run)) }

  /// Runs of one kind with the same plan and the same labels.
  package struct Group: Sendable {
    /// A letter and the labels: "B branch=main".
    package var name: String
    package var numbers: Set<Int>
    /// The median of its comparable runs.
    package var median: Double?
    package var count: Int
  }

  /// The groups in the order of their first runs.
  package var groups: [Group] {
    var order: [[String]] = []
    var parts: [[String]: [(run: RunHistory.Run, value: Double)]] = [:]
    for entry in runs {
      let key = [entry.run.kind, entry.run.labels, entry.run.plan]
      if parts[key] == nil { order.append(key) }
      parts[key, default: []].append(entry)
    }
    return order.enumerated().map { place, key in
      let part = parts[key] ?? []
      let usable = part.filter { !isMixed || !$0.run.hasOldMeasure }
      return Group(
        name: Self.letters(place) + (key[1].isEmpty ? "" : " " + key[1]), numbers: Set(part.map(\.run.number)),
        median: Reporting.median(usable.map(\.value)), count: usable.count)
    }
  }

  /// A, B … Z, AA …
  private static func letters(_ place: Int) -> String {
    let letter = String(UnicodeScalar(UInt8(65 + place % 26)))
    return place < 26 ? letter : letters(place / 26 - 1) + letter
  }

  /// The median of the comparable runs.
  package var median: Double? { Reporting.median(comparable.map(\.value)) }

  /// The ratio to the median of the comparable runs with the same plan and labels; `nil` of a run that is not
  /// comparable.
  package func ratioToMedian(_ run: RunHistory.Run, _ value: Double, in groups: [Group]) -> Double? {
    guard !(isMixed && run.hasOldMeasure) else { return nil }
    return groups.first { $0.numbers.contains(run.number) }?.median.flatMap { ratio(value, to: $0) }
  }

  /// One character per run, from the smallest to the largest value; `nil` without runs.
  package var sparkline: String? {
    let values = runs.map(\.value)
    guard let low = values.min(), let high = values.max() else { return nil }
    let signs = Array("▁▂▃▄▅▆▇█")
    return String(
      values.map { value in
        guard high > low else { return signs[3] }
        return signs[min(7, max(0, Int(nearest: (value - low) / (high - low) * 8)))]
      })
  }

  package var chart: Chart {
    // A run that was made by another version is worth a look.
    var changes: [Chart.Event] = []
    for (before, after) in zip(runs, runs.dropFirst()) {
      if before.run.hasOldMeasure != after.run.hasOldMeasure {
        changes.append(Chart.Event(x: Double(after.run.number), label: "changes of measure"))
      } else if before.run.apnscope != after.run.apnscope {
        changes.append(Chart.Event(x: Double(after.run.number), label: "changes of version"))
      }
    }
    let points = runs.map { entry in
      Point(
        Double(entry.run.number), entry.value,
        note: ([
          entry.run.started, entry.run.kindAndState, entry.run.apnscope, entry.run.host, entry.run.labels,
        ].filter { !$0.isEmpty }.joined(separator: ", ")))
    }
    return Chart(
      title: "\(figure) over runs", x: Axis("run", unit: .count, includesZero: false), y: Axis(figure, unit: unit),
      marks: [.line("", points), .points("", points)], events: changes,
      rules: median.map { [.horizontal($0, isMixed ? "median without the old measure" : "median")] } ?? [])
  }

  /// The name of a run's group.
  package func name(of run: RunHistory.Run, in groups: [Group]) -> String {
    groups.first { $0.numbers.contains(run.number) }?.name ?? ""
  }

  /// The chart with the runs below it.
  package func page(of file: String) -> Page {
    let groups = groups
    var table = Table([
      .init("run", .right), .init("started"), .init("kind"), .init("apnscope"), .init("host"), .init("plan and labels"),
      .init(figure, .right), .init("to the median", .right),
    ])
    for (run, value) in runs.reversed() {
      table.add(
        Prose("\(run.number)"), Prose(run.started), Prose(run.kindAndState), Prose(run.apnscope), Prose(run.host),
        Prose(name(of: run, in: groups)), Prose(unit.text(value)),
        Prose(ratioToMedian(run, value, in: groups).map { significant($0, 3) } ?? "–"))
    }
    return Page(
      title: "\(figure) over \(runs.count) runs", subtitle: .code(file),
      sections: [
        Section(
          "History",
          (isMixed ? [.callout(.warning, Prose(RunHistory.noteOnMeasures))] : []) + [.chart(chart), .table(table)])
      ])
  }
}
