import Glibc

/// Programs that this process starts.
package enum ChildProgram {
  /// Starts a program. Returns its process number, and the system's error number.
  ///
  /// - Parameters:
  ///   - file: the program; `nil`: the first argument.
  ///   - input, output, errors: its standard streams; `nil`: none.
  ///   - group: its process group; 0: a new one.
  ///   - endingSignals: the signals that end it, whatever this process does with them.
  package static func spawn(
    _ arguments: [String], file: String? = nil, input: Int32? = nil, output: Int32? = nil, errors: Int32? = nil,
    group: pid_t = 0,
    endingSignals: [Int32]
  ) -> (process: pid_t, code: Int32) {
    var actions = unsafe posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    unsafe posix_spawn_file_actions_init(&actions)
    unsafe posix_spawnattr_init(&attributes)
    defer {
      unsafe posix_spawn_file_actions_destroy(&actions)
      unsafe posix_spawnattr_destroy(&attributes)
    }
    for (number, file) in [(STDIN_FILENO, input), (STDOUT_FILENO, output), (STDERR_FILENO, errors)] {
      if let file {
        unsafe posix_spawn_file_actions_adddup2(&actions, file, number)
      } else {
        unsafe posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
      }
    }
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    unsafe posix_spawnattr_setsigmask(&attributes, &signals)
    for number in endingSignals + [SIGPIPE] { unsafe sigaddset(&signals, number) }
    unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
    unsafe posix_spawnattr_setpgroup(&attributes, group)
    let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK
    unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
    var process = pid_t()
    var words: [UnsafeMutablePointer<CChar>?] = unsafe arguments.map { unsafe strdup($0) } + [nil]
    defer { for index in unsafe words.indices { unsafe free(words[index]) } }
    // Safe: the words end with nil, and live through the call.
    let code = unsafe posix_spawnp(&process, file ?? arguments[0], &actions, &attributes, &words, environ)
    return (process, code)
  }

  /// Waits for the process, and returns its exit status; 128 plus the signal if one ended it.
  package static func wait(for process: pid_t) -> Int32 {
    var status: Int32 = 0
    while unsafe waitpid(process, &status, 0) < 0 && errno == EINTR {}
    return exitStatus(status)
  }

  /// Waits for the process, and returns its exit status; `nil` if it does not end in time.
  package static func wait(for process: pid_t, atMost time: Duration) -> Int32? {
    let end = ContinuousClock.now + time
    while true {
      var status: Int32 = 0
      if unsafe waitpid(process, &status, WNOHANG) > 0 { return exitStatus(status) }
      if ContinuousClock.now >= end { return nil }
      usleep(5_000)
    }
  }

  private static func exitStatus(_ status: Int32) -> Int32 {
    status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f
  }
}
