import Measurement
import Testing

import struct Foundation.Data
import class Foundation.JSONSerialization

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

  @Test("A chart has its values in words and in a table, and what the table leaves out is said")
  func numbers() throws {
    var points = (0..<1_000).map { Point(Double($0), 10) }
    points[617].y = 9_000
    points[311].y = -7
    var chart = Chart(
      title: "t", x: .time(), y: Axis("rate", unit: .perSecond),
      marks: [.line("written", points), .steps("asked", [Point(0, 5), Point(617, 6)])])
    #expect(chart.summary == "Rate over time since start: written -7/s to 9,000/s, asked 5/s to 6/s.")
    #expect(chart.svg.contains("<desc>\(chart.summary)</desc>"))
    let (table, note) = try #require(chart.numbers)
    #expect(table.columns.map(\.name) == ["time since start", "written", "asked"])
    #expect(table.rows.count <= Chart.numberRows)
    #expect(note.hasPrefix("A sample: \(table.rows.count) of 1,000 values"))
    let cells = table.rows.map { $0.cells.map(\.text) }
    #expect(cells.contains(["10.3 min", "9,000/s", "6/s"]) && cells.contains { $0[1] == "-7/s" }, "extremes are in it")
    #expect(cells.first == ["0 s", "10/s", "5/s"] && cells.last?[1] == "10/s")
    chart.marks[0].points.removeLast(950)
    let whole = try #require(chart.numbers)
    #expect(whole.note == "" && whole.table.rows.count == 51)
    chart.marks = []
    #expect(chart.numbers == nil && chart.summary == "No data.")
    var histogram = LatencyHistogram(.microseconds)
    for value in 1...1_000 { histogram.record(value) }
    let curve = try #require(
      Chart(title: "p", x: .percentile(), y: Axis("t", unit: .microseconds), marks: [.percentiles(of: histogram)])
        .numbers)
    let half = try #require(curve.table.rows.first { $0.cells[0].text == "50 %" })
    #expect(half.cells[1].text == Reporting.Unit.microseconds.text(Double(histogram.quantile(0.5))))
    let strip = try #require(Self.small.first { $0.name == "strip" }?.chart)
    #expect(strip.summary == "2 rows over time since start: up 2 times, handshake 2 times.")
    #expect(try #require(strip.numbers).table.rows.map { $0.cells[1].text }.count == 4)
  }

  @Test("What the script reads is JSON, whatever the numbers and names are")
  func data() throws {
    let values: [Double] = [0, -0.0, 1e-300, 1e300, .nan, .infinity, 1.0 / 3, 123_456_789.123, -5e-7]
    let hostile = "\"\\</svg>'\n\t\u{0}\u{2028}"
    for layout in [Axis.Layout.linear, .logarithmic, .percentile, .categories([hostile])] {
      let axis = Axis(hostile, unit: .seconds, layout: layout)
      let chart = Chart(
        title: hostile, x: axis, y: Axis(hostile, unit: .bytes),
        marks: [
          .bars(hostile, values.map { Point($0, $0) }, width: .infinity), .steps("", values.map { Point($0, 1) }),
        ])
      let text = Drawing(chart).dataForScript.replacing("\u{0}", with: "\u{FFFD}")
      let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
      let series = try #require(object["series"] as? [[String: Any]])
      #expect(series.count == 2)
      for each in series { #expect(try #require(each["points"] as? [Double]).count % 2 == 0) }
    }
    #expect(Drawing.number(1.0 / 3) == "0.3333333" && Drawing.number(-1_500) == "-1500" && Drawing.number(.nan) == "0")
  }

  @Test("The script reaches every value that its axis was made for, however close the last two are")
  func lastValue() throws {
    var random = SplitMix64(seed: 35)
    for _ in 0..<500 {
      let end = Double(random.next() % 1_000_000_000_000) / 1e7
      let ends = [0, end - 0.1176394, end].filter { $0 >= 0 }
      let chart = Chart(
        title: "", x: .time(bounds: 0...max(end, 1)), y: Axis("written", unit: .count),
        marks: [.line("", ends.map { Point($0, 1) })])
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(Drawing(chart).dataForScript.utf8)) as? [String: Any])
      let high = try #require((object["x"] as? [String: Any])?["high"] as? Double)
      let points = try #require((object["series"] as? [[String: Any]])?.first?["points"] as? [Double])
      #expect(try #require(points.dropLast().last) <= high, "\(end)")
    }
  }

  @Test("An axis of times of day has round times of day, across midnight too")
  func clock() {
    var axis = Axis.time("time of day, UTC", bounds: 0...30)
    axis.clock = 86_390.25
    let svg = Chart(title: "t", x: axis, y: Axis("y"), marks: [.line("", [Point(0, 1), Point(30, 2)])]).svg
    for time in ["23:59:55", "00:00:00", "00:00:05"] { #expect(svg.contains(">\(time)</text>"), "\(time)") }
    #expect(!svg.contains("24:00"))
    #expect(ClockTime.text(86_399.9999, step: 1e-3) == "00:00:00.000" && ClockTime.text(3_661.5, step: 1) == "01:01:02")
    #expect(ClockTime.text(.nan, step: 1) == "–" && ClockTime.text(-0.5, step: 1e-3) == "23:59:59.500")
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
