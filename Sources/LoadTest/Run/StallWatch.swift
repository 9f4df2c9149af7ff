/// Detects stalls of an event loop: its timer fired late, and its thread did not run meanwhile.
///
/// A loop that was late because it was busy did not stall; its processor time distinguishes this.
struct StallWatch {
  struct Stall: Sendable, Equatable {
    /// Nanoseconds of the monotonic clock.
    var from: Int64
    var to: Int64
  }

  private let shortest: Int64
  private var last: (now: Int64, processor: Int64)?
  private var found: [Stall] = []

  /// - Parameter shortest: the shortest stall, in nanoseconds.
  init(shortest: Int64) { self.shortest = shortest }

  /// The loop's timer has fired; if on time, `interval` nanoseconds after the last time.
  ///
  /// - Parameter processor: nanoseconds of processor time that the loop's thread has used so far.
  /// - Returns: how late it came.
  mutating func tick(_ now: Int64, processor: Int64, interval: Int64) -> Int64 {
    defer { last = (now, processor) }
    guard let last else { return 0 }
    let late = max(0, now - last.now - interval)
    let still = late - (processor - last.processor)
    if still >= shortest { found.append(Stall(from: now - still, to: now)) }
    return late
  }

  /// Returns the stalls since the last call.
  mutating func take() -> [Stall] {
    defer { found = [] }
    return found
  }
}
