/// The numbers of one segment of a stream: of anything that is numbered from 0, every `segments`-th, beginning with
/// number `segment`.
///
/// Whatever is divided in this way adds up: each number of the whole is of exactly one segment, and of the first n
/// numbers every segment has as many as any other, give or take one.
package struct SegmentNumbers: Sendable, Equatable {
  /// From 0, and below `segments`.
  package let segment: Int
  /// At least 1.
  package let segments: Int

  package init(segment: Int, segments: Int) {
    self.segments = max(1, segments)
    self.segment = max(0, min(segment, self.segments - 1))
  }

  /// The number in the whole of the segment's number `index`; `Int.max` when that is too large.
  package func number(_ index: Int) -> Int {
    let (product, overflow) = index.multipliedReportingOverflow(by: segments)
    return overflow || product > .max - segment ? .max : product + segment
  }

  /// How many of the first `all` are the segment's.
  package func count(among all: Int) -> Int {
    // A count without end is divided into counts without end.
    guard all < .max else { return .max }
    return all <= segment ? 0 : (all - segment - 1) / segments + 1
  }
}
