import Glibc

/// Processor time, which passes only while something runs, however busy the machine is.
public enum ProcessorTime {
  /// Nanoseconds that the thread which asks has used so far.
  public static func ofThread() -> Int64 {
    var time = timespec()
    // Safe: the structure lives through the call.
    _ = unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
