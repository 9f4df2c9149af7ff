import NIOCore

/// When a connection that is to be read slowly may be read again.
struct ReadThrottle {
  private let rules: Behavior.Reading
  private var sincePause = 0
  var isPausing = false

  /// `nil` when reading is not to be slow.
  init?(_ rules: Behavior.Reading) {
    guard rules.bytesPerSecond != nil || rules.pauseEvery != nil else { return nil }
    self.rules = rules
  }

  /// How long to wait after `length` bytes were read; `nil`: not at all.
  mutating func delay(after length: Int) -> TimeAmount? {
    var wait: Int64 = 0
    if let rate = rules.bytesPerSecond { wait += Int64(Double(length) / Double(max(1, rate)) * 1e9) }
    if let interval = rules.pauseEvery {
      sincePause += length
      if sincePause >= max(1, interval) {
        sincePause = 0
        wait += rules.pause.nanoseconds
      }
    }
    return wait > 0 ? .nanoseconds(wait) : nil
  }

  /// Bytes to be read at a time, so that a slow rate is not a burst and a long wait.
  static func readLength(_ rules: Behavior.Reading) -> Int {
    let least = [rules.bytesPerSecond.map { $0 / 20 }, rules.pauseEvery].compactMap { $0 }.min()
    return least.map { min(65_536, max(256, $0)) } ?? 65_536
  }
}
