/// Streams of the client that were passed over after a loss, as ranges: they may have been opened in what is lost.
struct MissedStreams: Sendable {
  private static let limit = 256

  private var ranges: [ClosedRange<UInt32>] = []

  /// Notes the streams between two that follow one another. Beyond the limit the oldest are forgotten.
  mutating func note(after low: UInt32, before high: UInt32) {
    guard high > 0, high - 1 > low else { return }
    if ranges.count == Self.limit { ranges.removeFirst() }
    ranges.append(low + 1...high - 1)
  }

  /// One of them was opened.
  mutating func remove(_ stream: UInt32) {
    guard let place = ranges.firstIndex(where: { $0.contains(stream) }) else { return }
    let range = ranges.remove(at: place)
    if stream < range.upperBound { ranges.insert(stream + 1...range.upperBound, at: place) }
    if stream > range.lowerBound { ranges.insert(range.lowerBound...stream - 1, at: place) }
    if ranges.count > Self.limit { ranges.removeFirst() }
  }

  func contains(_ stream: UInt32) -> Bool { ranges.contains { $0.contains(stream) } }
}
