import Measurement

/// A figure over runs.
public struct HistoryChart: Sendable {
  public let figure: String
  public let unit: Unit
  /// Runs that have it.
  public let runs: [(run: RunHistory.Run, value: Double)]

  /// - Parameter figure: one of `RunHistory.figureNames`.
  public init(_ figure: String, _ runs: [RunHistory.Run]) {
    self.figure = figure
    unit = RunFigure.named(figure)?.unit ?? .perSecond
    self.runs = runs.compactMap { run in run.figures[figure].map { (run, $0) } }
  }

  public var median: Double? { Reporting.median(runs.map(\.value)) }

  /// One character a run, from the smallest to the largest value; `nil` of none.
  public var sparkline: String? {
    let values = runs.map(\.value)
    guard let low = values.min(), let high = values.max() else { return nil }
    let signs = Array("▁▂▃▄▅▆▇█")
    return String(
      values.map { value in
        guard high > low else { return signs[3] }
        return signs[min(7, max(0, Int(nearest: (value - low) / (high - low) * 8)))]
      })
  }

  public var chart: Chart {
    // A run that was made by another version is worth a look.
    var changes: [Chart.Event] = []
    for (before, after) in zip(runs, runs.dropFirst()) where before.run.apnscope != after.run.apnscope {
      changes.append(Chart.Event(x: Double(after.run.number), label: "changes of version"))
    }
    let points = runs.map { entry in
      Point(
        Double(entry.run.number), entry.value, note: "\(entry.run.started), \(entry.run.apnscope), \(entry.run.host)")
    }
    return Chart(
      title: "\(figure) over runs", x: Axis("run", unit: .count, includesZero: false), y: Axis(figure, unit: unit),
      marks: [.line("", points), .points("", points)], events: changes,
      rules: median.map { [.horizontal($0, "median")] } ?? [])
  }

  /// The chart with the runs below it.
  public func page(of file: String) -> Page {
    var table = Table([
      .init("run", .right), .init("started"), .init("kind"), .init("apnscope"), .init("host"),
      .init(figure, .right), .init("to the median", .right),
    ])
    for (run, value) in runs.reversed() {
      table.add(
        Prose("\(run.number)"), Prose(run.started), Prose(run.kind), Prose(run.apnscope), Prose(run.host),
        Prose(unit.text(value)), Prose(median.flatMap { ratio(value, to: $0) }.map { significant($0, 3) } ?? "–"))
    }
    return Page(
      title: "\(figure) over \(runs.count) runs", subtitle: .code(file),
      sections: [Section("History", [.chart(chart), .table(table)])])
  }
}
