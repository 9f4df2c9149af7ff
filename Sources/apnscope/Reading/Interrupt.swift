import Glibc
import Synchronization

/// SIGINT, SIGTERM, SIGHUP and a closed pipe in a reading command: the first signal ends the reading gracefully, a
/// second one ends the process at once, and a closed pipe is a normal end of the output.
enum Interrupt {
  private static let flag = Atomic<Bool>(false)
  /// The time of the first signal, in nanoseconds of the monotonic clock; 0: none so far.
  private static let first = Atomic<Int64>(0)

  /// An end was asked for.
  static var isRequested: Bool { flag.load(ordering: .relaxed) }

  /// Returns whether an end was requested, and resets the request: the next signal counts as the first.
  static func take() -> Bool {
    first.store(0, ordering: .relaxed)
    return flag.exchange(false, ordering: .relaxed)
  }

  /// Ends the reading as a signal does.
  static func request() { flag.store(true, ordering: .relaxed) }

  /// The thread that reads, and may wait for a pipe.
  private static let reader = Atomic<pthread_t>(0)

  /// Called by the thread that reads.
  static func watch() {
    _ = signal(SIGPIPE, SIG_IGN)
    reader.store(pthread_self(), ordering: .relaxed)
    // Without SA_RESTART, so that a signal interrupts a read that waits for a pipe.
    var action = sigaction()
    unsafe action.__sigaction_handler.sa_handler = { number in
      // The system gives the signal to any thread, and only a read of the thread that has it comes back.
      let reader = Interrupt.reader.load(ordering: .relaxed)
      if pthread_equal(pthread_self(), reader) == 0, pthread_kill(reader, number) == 0 { return }
      Interrupt.note()
    }
    var own = sigset_t()
    _ = unsafe sigemptyset(&own)
    for number in StopSignals.numbers {
      _ = unsafe sigaction(number, &action, nil)
      _ = unsafe sigaddset(&own, number)
    }
    // Worker threads of the system's library block all signals.
    _ = unsafe pthread_sigmask(SIG_UNBLOCK, &own, nil)
  }

  /// Called by the signal's handler: uses nothing that a handler may not.
  private static func note() {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    let now = max(1, Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    let (isFirst, before) = first.compareExchange(expected: 0, desired: now, ordering: .relaxed)
    flag.store(true, ordering: .relaxed)
    if !isFirst, now - before > StopRequests.oneRequest { _exit(130) }
  }
}
