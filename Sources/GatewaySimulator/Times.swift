import Glibc
import NIOCore

/// Wall-clock time as records show it.
enum WallClock {
  /// UNIX nanoseconds UTC.
  static func nanoseconds() -> Int64 {
    var time = timespec()
    // Safe: the structure lives through the call.
    _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

extension Duration {
  /// Whole nanoseconds; a duration of more than 292 years becomes that.
  var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflows { return seconds < 0 ? .min : .max }
    let (sum, tooMuch) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
    return tooMuch ? (seconds < 0 ? .min : .max) : sum
  }

  var timeAmount: TimeAmount { .nanoseconds(nanoseconds) }
}
