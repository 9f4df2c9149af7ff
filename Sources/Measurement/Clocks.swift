import CClock
import Glibc

/// Time that passes evenly, from a beginning that means nothing: for measuring and waiting.
package enum MonotonicClock {
  /// Nanoseconds of CLOCK_MONOTONIC.
  package static func nanoseconds() -> Int64 { systemTime(CLOCK_MONOTONIC) }
}

/// The time of day, as records and results show it. The system may set it at any time.
package struct WallClock: Sendable {
  /// UNIX nanoseconds UTC.
  package let nanoseconds: @Sendable () -> Int64

  package init(nanoseconds: @escaping @Sendable () -> Int64) { self.nanoseconds = nanoseconds }

  package static let system = WallClock { systemTime(CLOCK_REALTIME) }
}

/// The kernel's knowledge of its clock: whether a time service, such as chrony, keeps it near to UTC.
package struct SystemClockState: Sendable, Equatable {
  package let isSynchronised: Bool
  /// The largest error that the time service expects, in seconds; `nil` when the clock is not synchronised.
  package let maximumErrorS: Double?

  package init(isSynchronised: Bool, maximumErrorS: Double? = nil) {
    (self.isSynchronised, self.maximumErrorS) = (isSynchronised, isSynchronised ? maximumErrorS : nil)
  }

  /// The state now; `nil` where the system tells none, as in some containers.
  package static func now() -> SystemClockState? {
    var status: Int32 = 0
    var error = 0
    // Safe: both live through the call.
    let result = unsafe apnscope_clock_state(&status, &error)
    guard result >= 0 else { return nil }
    return SystemClockState(
      isSynchronised: result != apnscope_clock_error && status & apnscope_clock_unsynchronised == 0,
      maximumErrorS: Double(error) / 1e6)
  }
}

/// Processor time, which passes only while something runs, however busy the machine is.
package enum ProcessorTime {
  /// Nanoseconds that the thread which asks has used so far.
  package static func ofThread() -> Int64 { systemTime(CLOCK_THREAD_CPUTIME_ID) }
}

private func systemTime(_ clock: clockid_t) -> Int64 {
  var time = timespec()
  // Safe: the structure lives through the call.
  _ = unsafe clock_gettime(clock, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

extension Duration {
  /// Rounded to the nearest nanosecond: seconds that were a `Double` are seldom exact. Clamped to ±146 years, so that
  /// it can be added to a time or to another duration.
  package var nanoseconds: Int64 {
    let longest = Duration.nanoseconds(Int64.max / 2)
    let (seconds, attoseconds) = Swift.min(longest, Swift.max(.zero - longest, self)).components
    return seconds * 1_000_000_000 + (attoseconds + (attoseconds < 0 ? -500_000_000 : 500_000_000)) / 1_000_000_000
  }
}
