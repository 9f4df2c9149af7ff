import PacketCapture

/// Adds up the packets that captures dropped: counts continue across the files of a ring buffer.
struct LossTally {
  private struct Capture: Hashable {
    var interface: String?
    var started: Timestamp
  }

  /// Distinct captures that are counted.
  private static let limit = 1 << 16
  private var highest: [Capture: Int] = [:]

  /// Returns the packets dropped since the previous count of the same capture.
  mutating func new(_ loss: CaptureLoss) -> Int {
    let capture = Capture(interface: loss.interface, started: loss.started)
    guard loss.started.isKnown, highest[capture] != nil || highest.count < Self.limit else { return loss.dropped }
    let before = highest[capture] ?? 0
    highest[capture] = max(before, loss.dropped)
    return max(0, loss.dropped - before)
  }
}
