import PacketCapture

/// Adds up what captures dropped: the counts of a ring's files go on from one to the next.
struct LossTally {
  private struct Capture: Hashable {
    var interface: String?
    var started: Timestamp
  }

  /// Distinct captures that are counted.
  private static let limit = 1 << 16
  private var highest: [Capture: Int] = [:]

  /// The part of a count that those before it do not have.
  mutating func new(_ loss: CaptureLoss) -> Int {
    let capture = Capture(interface: loss.interface, started: loss.started)
    guard loss.started.isKnown, highest[capture] != nil || highest.count < Self.limit else { return loss.dropped }
    let before = highest[capture] ?? 0
    highest[capture] = max(before, loss.dropped)
    return max(0, loss.dropped - before)
  }
}
