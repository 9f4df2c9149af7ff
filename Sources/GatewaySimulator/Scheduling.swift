import Glibc

/// How the system gives a simulator's threads the processor.
public enum Scheduling: String, Sendable, CaseIterable {
  /// A thread woken by received data may preempt the sender. With both on one machine this happens after nearly every
  /// record, so that the gateway reads one record at a time.
  case normal
  /// The thread waits until a processor is free or its turn has come, with the same share of processor time
  /// (SCHED_BATCH, sched(7)).
  case batch

  /// SCHED_OTHER and SCHED_BATCH of <linux/sched.h>; the headers that Swift sees lack the second.
  private var policy: Int32 { self == .batch ? 3 : 0 }

  /// Sets it for the calling thread. It stays as it was where the system does not allow it.
  func apply() {
    var parameters = sched_param()
    // Safe: one structure, which outlives the call; 0 is the calling thread.
    _ = unsafe sched_setscheduler(0, policy, &parameters)
  }
}
