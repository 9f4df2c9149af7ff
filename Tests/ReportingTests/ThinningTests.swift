import Testing

@testable import Reporting

/// Fewer points that look the same.
@Suite("Thinning")
struct ThinningTests {
  private static func noise(_ count: Int) -> [Point] {
    var state: UInt64 = 7
    return (0..<count).map { index in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Point(Double(index), Double(state >> 40))
    }
  }

  @Test("No bucket loses its smallest or largest value, nor the series its first and last point; order stays")
  func keepsExtremes() {
    for count in [1, 10, 999, 5_000, 20_011] {
      for buckets in [1, 7, 100, 640] {
        let points = Self.noise(count)
        let range = 0.0...Double(max(1, count - 1))
        let thinned = Thinning.stretches(points, over: range, buckets: buckets).flatMap { $0 }
        #expect(thinned.first == points.first && thinned.last == points.last)
        #expect(zip(thinned, thinned.dropFirst()).allSatisfy { $0.x < $1.x })
        #expect(thinned.count <= max(buckets * 4, buckets * 2), "\(count) in \(buckets)")
        let width = (range.upperBound - range.lowerBound) / Double(buckets)
        func extremes(_ points: [Point]) -> [Int: ClosedRange<Double>] {
          var extremes: [Int: ClosedRange<Double>] = [:]
          for point in points {
            let bucket = min(buckets - 1, Int(point.x / width))
            let range = extremes[bucket] ?? point.y...point.y
            extremes[bucket] = min(range.lowerBound, point.y)...max(range.upperBound, point.y)
          }
          return extremes
        }
        #expect(extremes(thinned) == extremes(points))
      }
    }
  }

  @Test("A hole stays a hole: no stretch crosses one")
  func holes() {
    var points = Self.noise(1_000)
    points[300].y = .nan
    points[301].x = .infinity
    let stretches = Thinning.stretches(points, over: 0...999, buckets: 50)
    #expect(stretches.count == 2)
    #expect(stretches[0].last?.x == 299 && stretches[1].first?.x == 302)
    #expect(Thinning.stretches([], over: 0...1, buckets: 10).isEmpty)
    #expect(Thinning.stretches([Point(.nan, 1)], over: 0...1, buckets: 10).isEmpty)
  }

  @Test("A strip of many rows is painted: short spans are seen, and its size is bounded")
  func strips() {
    let states: [Strip.State] = [.init("up", color: .sky), .init("back-off", color: .vermillion)]
    // One short failure in each of 500 connections, and one that flaps all the time.
    var rows = (0..<500).map { row in
      Strip.Row(
        label: "\(row)",
        spans: [
          .init(from: 0, to: 3_600, state: 0), .init(from: Double(row) * 7, to: Double(row) * 7 + 0.001, state: 1),
        ] + (0..<10).map { .init(from: Double($0) * 360, to: Double($0) * 360 + 300, state: 0) })
    }
    rows[250].spans = (0..<100_000).map {
      .init(from: Double($0) * 0.036, to: Double($0) * 0.036 + 0.02, state: $0 % 2)
    }
    let svg = Chart(title: "t", x: .time(bounds: 0...3_600), strip: Strip(states: states, rows: rows)).inlineSVG
    #expect(svg.utf8.count < 400_000)
    let path = svg.split(separator: "\n").first { $0.contains("class=\"p c4\"") } ?? ""
    #expect(path.split(separator: "M").count > 499, "every row shows its failure")
  }
}
