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
    _ = signal(SIGINT) { _ in
      if Interrupt.flag.exchange(true, ordering: .relaxed) { _exit(130) }
    }
  }
}
