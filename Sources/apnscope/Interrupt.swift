import Glibc
import Synchronization

/// Ctrl-C and a closed pipe, as far as a reading command is concerned: the first ends the reading in good order, the
/// second is an ordinary end of the output.
enum Interrupt {
  private static let flag = Atomic<Bool>(false)

  /// Ctrl-C was pressed. A second one ends the process at once.
  static var isRequested: Bool { flag.load(ordering: .relaxed) }

  static func watch() {
    _ = signal(SIGPIPE, SIG_IGN)
    // Without SA_RESTART, so that a read that waits for a pipe comes back.
    var action = sigaction()
    unsafe action.__sigaction_handler.sa_handler = { _ in
      if Interrupt.flag.exchange(true, ordering: .relaxed) { _exit(130) }
    }
    _ = unsafe sigaction(SIGINT, &action, nil)
  }
}
