import Glibc
import NIOCore

/// Wall-clock time as records show it. What has to be waited for is measured on the event loop's clock instead.
struct WallClock: Sendable {
  /// UNIX nanoseconds UTC.
  let nanoseconds: @Sendable () -> Int64

  static let system = WallClock {
    var time = timespec()
    // Safe: the structure lives through the call.
    _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

extension Duration {
  /// Whole nanoseconds. A duration of more than 146 years becomes that: it can be added to a time, or to another one.
  var nanoseconds: Int64 {
    let longest = Duration.nanoseconds(Int64.max / 2)
    let (seconds, attoseconds) = Swift.min(longest, Swift.max(.zero - longest, self)).components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }

  var timeAmount: TimeAmount { .nanoseconds(nanoseconds) }
}
