import Glibc
import Reporting

/// The file descriptors that this process may still open: one for every connection, and three for every event loop.
enum Descriptors {
  /// An event loop's epoll instance, eventfd and timer.
  private static let perLoop = 3
  /// Listening sockets, outputs, databases, signals, what the Swift runtime opens, and some that are needed for a moment.
  private static let others = 32
  /// Connections to an endpoint of HTTP, such as that of `--metrics`, and its listening socket.
  private static let endpoint = 72

  /// Below this libdispatch ends the process with an illegal instruction.
  private static let fewest = 8

  /// Ends the process if it may open too few files for anything, and opens missing standard streams: no other file may
  /// get the number of one that is closed.
  static func requireSome() {
    if limit < fewest { Machine.raiseFileLimit() }
    _ = openAtStart
    guard limit >= fewest else {
      complain("this process may open \(limit) files at a time (ulimit -n), and needs \(fewest)")
      _exit(ExitStatus.unavailable.rawValue)
    }
    for number in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(number, F_GETFD) < 0 {
      // Reading and writing it fails as before.
      _ = unsafe open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }

  /// The number of connections that can be open besides everything else that a command opens; 0 or less if even that
  /// does not fit. Raises the soft limit of open files to the hard limit first.
  ///
  /// Call it before event loops are created: NIO ends the process if it cannot create one.
  ///
  /// - Parameters:
  ///   - threads: the number of event loops that connections are spread over.
  ///   - endpoints: the number of endpoints of HTTP, which share further event loops.
  static func connections(threads: Int, endpoints: Int) -> Int {
    Machine.raiseFileLimit()
    let loops = threads + (endpoints > 0 ? sysconf(Int32(_SC_NPROCESSORS_ONLN)) : 0)
    return available - loops * perLoop - others - endpoints * endpoint
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

  /// Whether a descriptor is a short-lived one of /proc: the list that is read here, or a file in which libdispatch
  /// looks up the state of threads.
  private static func isMomentary(_ descriptor: Int) -> Bool {
    var target = [CChar](repeating: 0, count: 6)
    let length = unsafe readlink("/proc/self/fd/\(descriptor)", &target, target.count)
    // The descriptor was closed since then, or is in /proc.
    return length < 0 || target == "/proc/".utf8.map { CChar(bitPattern: $0) }
  }

  /// The number of files that may still be opened; 0 if even the list of open files cannot be opened.
  private static var available: Int { openAtStart == .max ? 0 : limit - openAtStart }

  /// Files that were open when the process began. Counted once, before there are threads: files that the process itself
  /// opens are included in `others`, and would be counted here depending on timing.
  private static let openAtStart: Int = {
    guard let offset = MemoryLayout<dirent>.offset(of: \.d_name), let folder = unsafe opendir("/proc/self/fd") else {
      // Without /proc the number is unknown; assume a few.
      return errno == EMFILE || errno == ENFILE ? .max : 16
    }
    defer { unsafe closedir(folder) }
    var open = 0
    while let entry = unsafe readdir(folder) {
      // Safe: the name ends with NUL; the entry may be shorter than its type, so it is never copied.
      let bytes = unsafe UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self)
      if let descriptor = unsafe Int(String(cString: bytes)), !isMomentary(descriptor) { open += 1 }
    }
    return open
  }()
}
