/// The data: lines, areas, bars, points.
extension Drawing {
  private var xValues: ClosedRange<Double> { min(x.low, x.high)...max(x.low, x.high) }

  /// The number of buckets for thinning: one per pixel of the plot's width.
  private var buckets: Int { Int(layout.right - layout.left) }

  mutating func marks() {
    bars()
    for mark in chart.marks {
      switch mark.shape {
      case .line: add(path(mark.points, "l c\(mark.color.rawValue)\(mark.isDashed ? " d" : "")"))
      case .steps: add(path(Self.stepped(mark.points), "l c\(mark.color.rawValue)"))
      case .area:
        add(area(mark.points.map { Point($0.x, $0.y) }, "a f\(mark.color.rawValue)"))
        add(path(mark.points, "l c\(mark.color.rawValue)"))
      case .band: add(area(mark.points, "b f\(mark.color.rawValue)"))
      case .points: whiskers(mark)
      case .bars: break
      }
    }
  }

  /// The dots of all marks, outside of the plot's picture: a zoom moves them.
  mutating func dots() {
    guard chart.strip == nil else { return }
    for mark in chart.marks where mark.shape == .points { dots(mark) }
  }

  private static func stepped(_ points: [Point]) -> [Point] {
    var steps: [Point] = []
    for point in points {
      if let last = steps.last, last.y.isFinite { steps.append(Point(point.x, last.y)) }
      steps.append(point)
    }
    return steps
  }

  /// Points by their coordinates: a percentile axis is not divided evenly.
  private func stretches(_ points: [Point]) -> [[Point]] {
    let placed = points.map { point in
      guard let across = x.clamped(point.x), let up = y.clamped(point.y) else { return Point(.nan, .nan) }
      return Point(
        across, up, low: point.low.flatMap { y.clamped($0) } ?? layout.bottom,
        high: point.high.flatMap { y.clamped($0) } ?? up)
    }
    return Thinning.stretches(placed, over: layout.left...layout.right, buckets: buckets)
  }

  private func path(_ points: [Point], _ name: String) -> String {
    var data = ""
    for stretch in stretches(points) {
      for (index, point) in stretch.enumerated() { data += "\(index == 0 ? "M" : "L")\(n(point.x)) \(n(point.y))" }
      // A path of a single point is drawn as a dot, because of its round line caps.
      if stretch.count == 1 { data += "h0" }
    }
    return data.isEmpty ? "" : "<path class=\"\(name)\" d=\"\(data)\"/>"
  }

  /// The area from each point's high, or its y without one, down to its low, or to the axis without one.
  private func area(_ points: [Point], _ name: String) -> String {
    var data = ""
    for stretch in stretches(points) where stretch.count > 1 {
      for (index, point) in stretch.enumerated() {
        data += "\(index == 0 ? "M" : "L")\(n(point.x)) \(n(point.high ?? point.y))"
      }
      for point in stretch.reversed() { data += "L\(n(point.x)) \(n(point.low ?? layout.bottom))" }
      data += "Z"
    }
    return data.isEmpty ? "" : "<path class=\"\(name)\" d=\"\(data)\"/>"
  }

  private func placed(_ mark: Mark) -> [(across: Double, up: Double, point: Point)] {
    let placed = mark.points.compactMap { point in
      x.inside(point.x).flatMap { across in y.inside(point.y).map { (across: across, up: $0, point: point) } }
    }
    return Thinning.dots(placed.map { (x: $0.across, y: $0.up) }).map { placed[$0] }
  }

  private mutating func whiskers(_ mark: Mark) {
    for (across, _, point) in placed(mark) {
      if let low = point.low.flatMap({ y.clamped($0) }), let high = point.high.flatMap({ y.clamped($0) }) {
        add(
          "<path class=\"l c\(mark.color.rawValue)\" d=\"M\(n(across)) \(n(low))V\(n(high))M\(n(across - 4)) \(n(low))h8M\(n(across - 4)) \(n(high))h8\"/>"
        )
      }
    }
  }

  private mutating func dots(_ mark: Mark) {
    for (across, up, point) in placed(mark) {
      add(
        "<circle class=\"f\(mark.color.rawValue)\" data-at=\"\(n(across))\" cx=\"\(n(across))\" cy=\"\(n(up))\" r=\"3.6\">\(title(tooltip(point, mark)))</circle>"
      )
    }
  }

  private func tooltip(_ point: Point, _ mark: Mark) -> String {
    var text = [point.note ?? "", mark.name].filter { !$0.isEmpty }.joined(separator: ", ")
    text += (text.isEmpty ? "" : ": ") + "\(chart.x.text(point.x)): \(chart.y.text(point.y))"
    if let low = point.low, let high = point.high { text += " (\(chart.y.text(low)) to \(chart.y.text(high)))" }
    return text
  }

  /// If there are more bars than pixels, the highest bar of each pixel is drawn.
  private mutating func bars() {
    var stacks = BarStacks(chart.marks).stacks
    if stacks.count > buckets {
      var highest: [Int: BarStacks.Stack] = [:]
      for stack in stacks {
        guard let place = x.inside(stack.x) else { continue }
        let column = Int(place.rounded())
        if highest[column].map({ $0.total < stack.total }) ?? true { highest[column] = stack }
      }
      stacks = highest.values.sorted { $0.x < $1.x }
    }
    for stack in stacks {
      guard let from = x.clamped(stack.x - stack.width / 2), let to = x.clamped(stack.x + stack.width / 2) else {
        continue
      }
      // A thin gap between bars, if they are wide enough.
      let gap = to - from > 6 ? 1.0 : to - from > 3 ? 0.5 : 0
      var below = 0.0
      for part in stack.parts where part.value != 0 {
        guard let low = y.clamped(max(below, y.low)), let high = y.clamped(below + part.value) else { continue }
        below += part.value
        let mark = chart.marks[part.mark]
        let text = tooltip(Point(stack.x, part.value, note: part.note), mark)
        // Never thinner than can be seen.
        let height = max(abs(low - high), 1)
        add(
          "<rect class=\"f\(mark.color.rawValue)\" x=\"\(n(from + gap / 2))\" y=\"\(n(min(low, high) - (height > abs(low - high) ? height - abs(low - high) : 0)))\" width=\"\(n(max(to - from - gap, 0.8)))\" height=\"\(n(height))\">\(title(text))</rect>"
        )
      }
    }
  }
}

/// The bars of several marks, stacked on each other.
struct BarStacks {
  struct Part {
    var mark: Int
    var value: Double
    var note: String?
  }

  struct Stack {
    var x: Double
    var width: Double
    var parts: [Part] = []
    var total: Double { parts.reduce(0) { $0 + $1.value } }
  }

  let stacks: [Stack]

  init(_ marks: [Mark]) {
    var stacks: [Double: Stack] = [:]
    for (index, mark) in marks.enumerated() {
      guard case .bars(let width) = mark.shape else { continue }
      for point in mark.points where point.x.isFinite && point.y.isFinite {
        stacks[point.x, default: Stack(x: point.x, width: width)].parts
          .append(Part(mark: index, value: point.y, note: point.note))
      }
    }
    self.stacks = stacks.values.sorted { $0.x < $1.x }
  }
}
