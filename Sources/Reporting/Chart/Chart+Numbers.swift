import Glibc
import Measurement

/// A chart's values in words and in a table, for readers who cannot see it or want to know more.
extension Chart {
  /// The axes, and the range of each series.
  package var summary: String {
    if let strip {
      let rows = "\(grouped(strip.rows.count)) \(strip.rows.count == 1 ? "row" : "rows")"
      let spans = strip.states.enumerated().map { index, state in
        let count = strip.rows.reduce(0) { $0 + $1.spans.count { $0.state == index } }
        return "\(state.name) \(grouped(count)) \(count == 1 ? "time" : "times")"
      }
      return "\(rows) over \(x.label.isEmpty ? "time" : x.label): \(spans.joined(separator: ", "))."
    }
    if isEmpty { return "No data." }
    let series = marks.compactMap { mark -> String? in
      let values = mark.points.filter { $0.x.isFinite && $0.y.isFinite }.map(\.y)
      guard let least = values.min(), let most = values.max() else { return nil }
      let range = least == most ? y.text(least) : "\(y.text(least)) to \(y.text(most))"
      return (mark.name.isEmpty ? "" : mark.name + " ") + range
    }
    let name = [y.label, x.label].filter { !$0.isEmpty }.joined(separator: " over ")
    return "\(name.prefix(1).uppercased())\(name.dropFirst()): \(series.joined(separator: ", "))."
  }

  /// Rows of a table of numbers.
  static let numberRows = 60

  /// The values as a table, and a sentence about what it leaves out, which is empty when it is complete; `nil` without
  /// values.
  package var numbers: (table: Table, note: String)? {
    if isEmpty { return nil }
    if let strip { return numbers(of: strip) }
    let named = marks.filter { mark in mark.points.contains { $0.x.isFinite && $0.y.isFinite } }
    let columns = named.map { mark in
      Table.Column(mark.name.isEmpty ? (y.label.isEmpty ? "value" : y.label) : mark.name, .right)
    }
    var table = Table([.init(x.label.isEmpty ? " " : x.label)] + columns)
    if case .percentile = x.layout {
      for share in x.percentiles(in: named) {
        table.rows.append(
          Table.Row(
            [Prose(x.text(share))] + named.map { mark in Prose(mark.value(atShare: share).map(y.text) ?? "–") }))
      }
      return (table, "")
    }
    var rows: [Double: [Int: Double]] = [:]
    for (index, mark) in named.enumerated() {
      for point in mark.points where point.x.isFinite && point.y.isFinite {
        rows[point.x, default: [:]][index] = point.y
      }
    }
    let places = rows.keys.sorted()
    let kept = sample(places, rows, columns: named.count)
    for place in kept {
      let cells = named.indices.map { Prose(rows[place]?[$0].map(y.text) ?? "–") }
      table.rows.append(Table.Row([Prose(x.text(place))] + cells))
    }
    let note =
      kept.count < places.count
      ? "A sample: \(grouped(kept.count)) of \(grouped(places.count)) values, evenly spaced, and the lowest and highest of each series."
      : ""
    return (table, note)
  }

  /// Evenly spaced places, and those of each column's extremes.
  private func sample(_ places: [Double], _ rows: [Double: [Int: Double]], columns: Int) -> [Double] {
    guard places.count > Self.numberRows else { return places }
    let count = max(2, Self.numberRows - 2 * columns)
    var kept = Set((0..<count).map { places[$0 * (places.count - 1) / (count - 1)] })
    for column in 0..<columns {
      let known = places.filter { rows[$0]?[column] != nil }
      func value(_ place: Double) -> Double { rows[place]?[column] ?? 0 }
      if let least = known.min(by: { value($0) < value($1) }) { kept.insert(least) }
      if let most = known.max(by: { value($0) < value($1) }) { kept.insert(most) }
    }
    return kept.sorted()
  }

  /// Rare states first, since the table of a long run has not room for all.
  private func numbers(of strip: Strip) -> (table: Table, note: String) {
    var table = Table([
      .init(strip.rowName.isEmpty ? "row" : strip.rowName), .init("state"), .init("from", .right), .init("to", .right),
      .init("length", .right),
    ])
    let spans = strip.rows.flatMap { row in
      row.spans.filter { strip.states.indices.contains($0.state) && $0.from.isFinite && $0.to.isFinite }
        .map { (row: row.label, span: $0) }
    }
    let unusual = spans.filter { !strip.states[$0.span.state].isQuiet }
    let isWhole = spans.count <= Self.numberRows
    let kept = isWhole ? spans : Array(unusual.prefix(Self.numberRows))
    for (row, span) in kept {
      table.add(
        Prose(row), Prose(strip.states[span.state].name), Prose(x.text(span.from)), Prose(x.text(span.to)),
        Prose(x.unit.text(span.to - span.from)))
    }
    let quiet = strip.states.filter(\.isQuiet).map { "“\($0.name)”" }.joined(separator: " and ")
    let note =
      isWhole
      ? ""
      : "A sample: the first \(grouped(kept.count)) of \(grouped(spans.count)) spans\(quiet.isEmpty ? "" : ", without \(quiet)")."
    return (table, note)
  }
}

extension Axis {
  /// Shares of a percentile axis that are worth a row, up to the last that any of the curves reaches.
  fileprivate func percentiles(in marks: [Mark]) -> [Double] {
    let highest = marks.flatMap(\.points).map(\.x).filter(\.isFinite).max() ?? 0
    return [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999].filter { $0 <= highest }
  }
}

extension Mark {
  /// The value of a percentile curve at a share; `nil` beyond its last value.
  fileprivate func value(atShare share: Double) -> Double? {
    guard let last = points.last, share <= last.x else { return nil }
    return points.first { $0.x >= share }?.y
  }
}

// MARK: for the page's script

extension Drawing {
  /// Parts of the axis of which the script has the first, smallest, largest and last value.
  private static let buckets = 200

  /// The axes and the values, as JSON.
  var dataForScript: String {
    let series = chart.strip != nil ? [] : chart.marks.filter { $0.shape != .band }.map(json)
    let fields = [
      "\"x\":\(json(chart.x, x))", "\"y\":\(json(chart.y, y))", "\"top\":\(n(layout.top))",
      "\"bottom\":\(n(layout.bottom))", "\"hidesTicks\":\(chart.hidesTicks)",
      "\"series\":[\(series.joined(separator: ","))]",
    ]
    return "{\(fields.joined(separator: ","))}"
  }

  /// Digits of a place on the x axis. The axis ends with as many: a last value that is the end must not lie beyond it.
  private static let placeDigits = 9

  private func json(_ axis: Axis, _ scale: Scale) -> String {
    let low = Self.number(scale.low, digits: Self.placeDigits)
    let high = Self.number(scale.high, digits: Self.placeDigits)
    var fields = [
      "\"label\":\(Self.quoted(axis.label))", "\"unit\":\"\(axis.unit)\"", "\"low\":\(low)", "\"high\":\(high)",
      "\"from\":\(n(scale.from))", "\"to\":\(n(scale.to))",
    ]
    switch axis.layout {
    case .linear: fields.append("\"layout\":\"linear\"")
    case .logarithmic: fields.append("\"layout\":\"logarithmic\"")
    case .percentile: fields.append("\"layout\":\"percentile\"")
    case .categories(let names):
      fields.append("\"layout\":\"categories\",\"names\":[\(names.map(Self.quoted).joined(separator: ","))]")
    }
    if let clock = axis.clock { fields.append("\"clock\":\(Self.number(clock, digits: 12))") }
    return "{\(fields.joined(separator: ","))}"
  }

  private func json(_ mark: Mark) -> String {
    let range = min(x.low, x.high)...max(x.low, x.high)
    let points = Thinning.stretches(mark.points, over: range, buckets: Self.buckets).flatMap(\.self)
    let numbers = points.map { "\(Self.number($0.x, digits: Self.placeDigits)),\(Self.number($0.y))" }
    var fields = ["\"name\":\(Self.quoted(mark.name))"]
    switch mark.shape {
    case .steps: fields.append("\"shape\":\"steps\"")
    case .bars(let width): fields.append("\"shape\":\"bars\",\"width\":\(Self.number(width))")
    default: fields.append("\"shape\":\"line\"")
    }
    fields.append("\"points\":[\(numbers.joined(separator: ","))]")
    return "{\(fields.joined(separator: ","))}"
  }

  /// A number of JSON, rounded to what a table shows and a little more.
  static func number(_ value: Double, digits: Int = 7) -> String {
    guard value.isFinite, abs(value) < 1e250, abs(value) > 1e-250 else { return "0" }
    let power = Double(digits - 1) - floor(log10(abs(value)))
    let factor = pow(10, min(max(power, -250), 250))
    let rounded = power > 0 ? (value * factor).rounded() / factor : value.rounded()
    let text = "\(rounded)"
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  /// A string of JSON; control characters are left to `Markup`.
  static func quoted(_ text: String) -> String {
    let escaped = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
      .replacing("\r\n", with: " ").replacing("\n", with: " ").replacing("\t", with: " ")
    return "\"\(escaped)\""
  }
}
