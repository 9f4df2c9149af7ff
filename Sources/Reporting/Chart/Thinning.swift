import Measurement

/// Reduces the points of a series without a visible difference.
enum Thinning {
  /// Points in stretches without a hole, ordered as they came.
  ///
  /// Keeps the first, smallest, largest and last point of each of `buckets` equal parts of `range`: at most four in
  /// each, without losing spikes. Points whose x or y is not finite interrupt the series; short series stay unchanged.
  static func stretches(_ points: [Point], over range: ClosedRange<Double>, buckets: Int) -> [[Point]] {
    let stretches = points.split { !$0.x.isFinite || !$0.y.isFinite }
    guard points.count > buckets * 2, buckets > 0, range.upperBound > range.lowerBound else {
      return stretches.map(Array.init)
    }
    let width = (range.upperBound - range.lowerBound) / Double(buckets)
    func bucket(_ point: Point) -> Int {
      Int(nearest: min(max((point.x - range.lowerBound) / width, 0), Double(buckets - 1)))
    }
    return stretches.map { stretch in
      var kept: [Point] = []
      var start = stretch.startIndex
      while start < stretch.endIndex {
        let number = bucket(stretch[start])
        var (end, lowest, highest) = (start, start, start)
        while end < stretch.endIndex, bucket(stretch[end]) == number {
          if stretch[end].y < stretch[lowest].y { lowest = end }
          if stretch[end].y > stretch[highest].y { highest = end }
          end += 1
        }
        for index in Set([start, lowest, highest, end - 1]).sorted() { kept.append(stretch[index]) }
        start = end
      }
      return kept
    }
  }

  /// Keeps one of the dots that cover each other.
  static func dots(_ places: [(x: Double, y: Double)]) -> [Int] {
    struct Cell: Hashable { var x, y: Int }
    var taken: Set<Cell> = []
    return places.indices.filter { index in
      guard places.count > 500 else { return true }
      return taken.insert(Cell(x: Int(nearest: places[index].x / 3), y: Int(nearest: places[index].y / 3))).inserted
    }
  }
}
