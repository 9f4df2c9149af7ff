import Glibc

/// Metrics of this process from the system.
package enum ProcessStatus {
  /// Most resident bytes so far.
  package static func maximumMemory() -> Int {
    var usage = rusage()
    _ = unsafe getrusage(__rusage_who_t(0), &usage)
    return usage.ru_maxrss * 1_024
  }

  /// Resident bytes now; 0 if the system does not report them.
  package static func memory() -> Int {
    let words = words(of: "/proc/self/statm")
    return words.count > 1 ? (Int(words[1]) ?? 0) * max(0, sysconf(Int32(_SC_PAGESIZE))) : 0
  }

  /// Reads a one-line /proc file and splits it into words.
  private static func words(of path: String) -> [Substring] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 128)
    // Safe: at most the array's length is written.
    let count = unsafe read(descriptor, &bytes, bytes.count)
    guard count > 0 else { return [] }
    return String(decoding: bytes[..<count], as: UTF8.self).split { $0 == " " || $0 == "\n" }
  }

  /// Seconds for which this thread could have run and no processor was free; 0 if the system does not report them.
  package static func waited() -> Double {
    // | nanoseconds on a processor | nanoseconds waiting for one | turns |
    words(of: "/proc/thread-self/schedstat").dropFirst().first.flatMap { Double($0) }.map { $0 / 1e9 } ?? 0
  }

  /// User and system seconds of this process.
  package static func processor() -> (user: Double, system: Double) {
    var usage = rusage()
    _ = unsafe getrusage(__rusage_who_t(0), &usage)
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return (seconds(usage.ru_utime), seconds(usage.ru_stime))
  }
}
