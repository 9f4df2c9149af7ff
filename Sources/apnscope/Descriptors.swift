import Glibc
import Reporting

/// File descriptors that this process may still open: every connection takes one, and an event loop takes three.
enum Descriptors {
  /// An event loop's epoll instance, eventfd and timer.
  private static let perLoop = 3
  /// Listening sockets, outputs, databases, signals, what the Swift runtime opens, and some that are needed for a moment.
  private static let others = 32
  /// Those of `--metrics`: connections to its page, and a socket that listens.
  private static let metrics = 72

  /// Connections that can be open at a time beside everything else that a command opens; 0 or less when even that does
  /// not fit. Raises the soft limit of open files to the hard one first.
  ///
  /// Asked before the event loops are made: NIO ends the process when one of them cannot be.
  ///
  /// - Parameter threads: event loops that connections are spread over.
  static func connections(threads: Int, servesMetrics: Bool) -> Int {
    Machine.raiseFileLimit()
    let loops = threads + (servesMetrics ? sysconf(Int32(_SC_NPROCESSORS_ONLN)) : 0)
    return available - loops * perLoop - others - (servesMetrics ? metrics : 0)
  }

  /// The message when not even one connection fits.
  static var problem: String {
    "this process may open \(grouped(limit)) files at a time (ulimit -n), too few for one connection; reduce --threads"
  }

  /// The soft limit of open files.
  static var limit: Int {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
    return Int(clamping: limit.rlim_cur)
  }

  /// How many more may be opened now; 0 when not even the list of those that are open can be.
  private static var available: Int {
    guard let folder = unsafe opendir("/proc/self/fd") else {
      // Without /proc the number is unknown; assume a few.
      return errno == EMFILE || errno == ENFILE ? 0 : limit - 16
    }
    defer { unsafe closedir(folder) }
    // Not ".", "..", and the folder's own.
    var open = -3
    while unsafe readdir(folder) != nil { open += 1 }
    return limit - max(0, open)
  }
}
