import Measurement
import Testing

@testable import Reporting

/// What charts look like, and what they look like whatever is in them.
@Suite("Charts")
struct ChartTests {
  private static let small: [(name: String, chart: Chart)] = {
    let points = [1.0, 4, 2, .nan, 5, 3].enumerated().map { Point(Double($0.offset), $0.element * 1_000) }
    var histogram = LatencyHistogram(.microseconds)
    for value in 1...1_000 { histogram.record(value * value) }
    return [
      (
        "lines",
        Chart(
          title: "Two lines", x: .time(), y: Axis("notifications per second", unit: .perSecond),
          marks: [
            .area("written", points), .line("accepted", points.map { Point($0.x, $0.y / 2) }, color: .green),
          ],
          regions: [.init(from: 0, to: 1, label: "connect"), .init(from: 1, to: 5, label: "measured")],
          events: [.init(x: 2, count: 3, label: "errors"), .init(x: 4, label: "error")],
          rules: [.horizontal(4_500, "limit"), .vertical(3, "knee")], height: 120)
      ),
      (
        "bars",
        Chart(
          title: "Stacked bars", x: .categories(["full", "linger", "idle"]), y: Axis("writes", unit: .count),
          marks: [
            .bars("first", [Point(0, 3), Point(1, 1), Point(2, 0)]),
            .bars("second", [Point(0, 2), Point(2, 7)], color: .orange),
          ], height: 120)
      ),
      (
        "percentiles",
        Chart(
          title: "Percentiles", x: .percentile(), y: Axis("send lag", unit: .microseconds, layout: .logarithmic),
          marks: [.percentiles("send lag", of: histogram)], height: 120)
      ),
      (
        "scatter",
        Chart(
          title: "Points with intervals and a curve", x: Axis("connections", unit: .count),
          y: Axis("accepted", unit: .perSecond),
          marks: [
            .points(
              "measured", [Point(1, 9_000, low: 8_000, high: 10_000), Point(4, 30_000, low: 28_000, high: 33_000)]),
            .line("fit", (0...8).map { Point(Double($0), Double($0) * 8_000) }, color: .vermillion, isDashed: true),
            .band("interval", (0...8).map { Point(Double($0), 0, low: Double($0) * 7_000, high: Double($0) * 9_000) }),
          ], height: 120)
      ),
      (
        "strip",
        Chart(
          title: "Lives", x: .time(bounds: 0...90),
          strip: Strip(
            states: [.init("up", color: .sky, isQuiet: true), .init("handshake", color: .orange)],
            rows: [
              .init(label: "1", spans: [.init(from: 0, to: 0.01, state: 1), .init(from: 0.01, to: 80, state: 0)]),
              .init(
                label: "2",
                spans: [.init(from: 10, to: 12, state: 1, note: "failed"), .init(from: 12, to: 90, state: 0)]),
            ], rowName: "connection"))
      ),
      (
        "empty",
        Chart(title: "Nothing", x: .time(), y: Axis("errors", unit: .count), marks: [.line("a", [])], height: 80)
      ),
    ]
  }()

  @Test("Small charts are drawn as they are kept")
  func golden() throws {
    for (name, chart) in Self.small {
      #expect(problem(inXML: chart.svg) == nil, "\(name)")
      try expectGolden(chart.svg + "\n", "\(name).svg")
    }
  }

  @Test("A chart without data says so, with its axes")
  func empty() {
    let axis = Axis("errors", unit: .count)
    let holes = [Point(1, .nan), Point(.infinity, 2)]
    let charts = [
      Chart(title: "a", x: .time(), y: axis, marks: []),
      Chart(title: "b", x: .time(), y: axis, marks: [.line("x", holes), .points("y", holes), .bars("z", holes)]),
      Chart(title: "c", x: .percentile(), y: axis, marks: [.percentiles(of: LatencyHistogram(.count))]),
      Chart(title: "d", x: .time(), strip: Strip(states: [], rows: [])),
    ]
    for chart in charts {
      #expect(chart.isEmpty)
      #expect(chart.svg.contains(">no data</text>"), "\(chart.title)")
      #expect(problem(inXML: chart.svg) == nil)
    }
    #expect(charts[0].svg.contains(">errors</text>"))
  }

  @Test("No number makes a picture with a hole in it: every coordinate is one")
  func extremes() {
    let values: [Double] = [
      0, -0.0, 1, -1, .nan, .infinity, -.infinity, .greatestFiniteMagnitude, -.greatestFiniteMagnitude,
      .leastNonzeroMagnitude, 1e-300, 1e300, 0.5, 1e15,
    ]
    let points = values.flatMap { x in values.map { Point(x, $0, low: -$0, high: x) } }
    for layout in [Axis.Layout.linear, .logarithmic, .percentile, .categories(["a", "b"])] {
      for unit in [Unit.plain, .count, .perSecond, .microseconds, .seconds, .bytes, .share] {
        let marks: [Mark] = [
          .line("l", points), .steps("s", points), .area("a", points), .band("b", points), .points("p", points),
          .bars("c", points, width: .infinity),
        ]
        let axis = Axis("x", unit: unit, layout: layout)
        let chart = Chart(
          title: "t", x: axis, y: Axis("y", unit: unit, layout: layout == .logarithmic ? .logarithmic : .linear),
          marks: marks,
          regions: [.init(from: -.infinity, to: .nan, label: "r"), .init(from: 0, to: 1e300, label: "q")],
          events: [
            .init(x: .nan, label: "e"), .init(x: 1, count: .max, label: "f"), .init(x: 1, count: .max, label: "f"),
          ],
          rules: [.horizontal(.nan, "h"), .vertical(.infinity, "v")])
        let svg = chart.svg
        #expect(!svg.contains("nan") && !svg.contains("inf\"") && !svg.contains("NaN"), "\(layout) \(unit)")
        #expect(problem(inXML: svg) == nil)
      }
    }
    let spans = values.flatMap { from in values.map { Strip.Span(from: from, to: $0, state: Int.random(in: -1...3)) } }
    let strip = Strip(states: [.init("a", color: .sky)], rows: [.init(label: "r", spans: spans)])
    for axis in [Axis.time(), .time(bounds: 0...1)] {
      let svg = Chart(title: "s", x: axis, strip: strip).svg
      #expect(!svg.contains("nan") && problem(inXML: svg) == nil)
    }
  }

  @Test("Text of any kind stays text, wherever it is")
  func hostile() {
    let hostile = "<script>alert('x')</script>\"&\u{0}\u{1B}\u{202E}]]>"
    let chart = Chart(
      title: hostile, x: Axis(hostile, layout: .categories([hostile, hostile])), y: Axis(hostile, unit: .count),
      marks: [
        .points(hostile, [Point(0, 1, note: hostile)]), .bars(hostile, [Point(1, 2, note: hostile)]),
        .line(hostile, [Point(0, 1), Point(1, 2)]),
      ], regions: [.init(from: -0.5, to: 1.5, label: hostile)], events: [.init(x: 0, label: hostile)],
      rules: [.horizontal(1, hostile), .vertical(0.5, hostile)])
    let strip = Chart(
      title: hostile, x: .time(),
      strip: Strip(
        states: [.init(hostile, color: .blue)],
        rows: [.init(label: hostile, spans: [.init(from: 0, to: 1, state: 0, note: hostile)])], rowName: hostile))
    for svg in [chart.svg, chart.inlineSVG, strip.svg, strip.inlineSVG] {
      #expect(
        !svg.contains("<script") && !svg.contains("\u{0}") && !svg.contains("\u{1B}") && !svg.contains("\u{202E}"))
      #expect(problem(inXML: svg) == nil)
      #expect(svg.contains("&lt;script&gt;"))
    }
  }

  @Test("However long a series, its picture stays small, and shows its spikes")
  func long() {
    var points = (0..<50_000).map { Point(Double($0), 10) }
    points[34_567].y = 9_000
    points[7_777].y = -50
    let chart = Chart(
      title: "t", x: .time(), y: Axis("y"), marks: [.line("", points), .area("", points), .steps("", points)])
    #expect(chart.svg.utf8.count < 100_000)
    let bars = Chart(title: "t", x: .time(), y: Axis("y"), marks: [.bars("", points, width: 1)])
    #expect(bars.svg.utf8.count < 150_000)
    #expect(bars.svg.contains("9,000"), "the highest bar is there")
    let dots = Chart(title: "t", x: .time(), y: Axis("y"), marks: [.points("", points)])
    #expect(dots.svg.utf8.count < 100_000)
  }

  @Test("Numbers are written with units that fit them")
  func units() {
    let cases: [(Unit, Double, String)] = [
      (.count, 1_234_567, "1,234,567"), (.count, 1.25, "1.25"), (.perSecond, 50_139.4, "50,139/s"),
      (.perSecond, 1.5, "1.5/s"),
      (.microseconds, 0, "0 µs"), (.microseconds, 950, "950 µs"), (.microseconds, 1_000, "1 ms"),
      (.microseconds, 1_234_567, "1.23 s"), (.milliseconds, 0.25, "250 µs"), (.seconds, 90, "90 s"),
      (.seconds, 150, "2.5 min"), (.seconds, 9_000, "2.5 h"), (.seconds, 400_000, "4.63 d"), (.bytes, 512, "512 B"),
      (.bytes, 65_536, "64 KiB"), (.bytesPerSecond, 1_268_000, "1.21 MiB/s"), (.share, 0.1234, "12.3 %"),
      (.share, 0.999_82, "99.98 %"), (.share, 0.999_999, "99.9999 %"), (.share, 1, "100 %"), (.share, 1.0004, "100 %"),
      (.plain, 3.14159, "3.142"), (.count, .nan, "–"), (.count, -1_500, "-1,500"),
    ]
    for (unit, value, text) in cases { #expect(unit.text(value) == text) }
  }
}
