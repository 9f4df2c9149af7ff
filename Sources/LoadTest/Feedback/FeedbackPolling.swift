import Measurement
import Synchronization

/// When a run polls the feedback service, and what it knows from there.
///
/// Polls begin at whole intervals after the start of the schedule and not after its end, one at a time:
///
/// ```
/// waiting ── begin ──▶ idle ── it is time ──▶ polling ── it has ended ──▶ idle
/// ```
struct FeedbackPolling: Sendable {
  /// Begins a poll; the closure is called once, on any thread.
  typealias Start = @Sendable (FeedbackListReader, @escaping @Sendable (FeedbackPoll) -> Void) -> Void

  private enum State: Sendable {
    case waiting
    /// `next`: nanoseconds of the monotonic clock; `nil`: no more polls.
    case idle(next: Int64?)
    case polling(since: Int64, Box)
  }

  /// Where the other thread leaves the outcome.
  private final class Box: Sendable {
    let outcome = Mutex<FeedbackPoll?>(nil)
  }

  private let plan: LoadPlan.Feedback
  private let workload: Workload
  /// UNIX seconds.
  private let registered: UInt32
  private let start: Start
  private var state = State.waiting
  private var began: Int64 = 0
  /// No poll begins from then on.
  private var end = Int64.max
  private(set) var tokens: ListedTokens
  private(set) var books = FeedbackBooks()

  /// - Parameter registered: when all tokens were registered, in UNIX seconds.
  init(_ plan: LoadPlan.Feedback, _ workload: Workload, registered: UInt32, start: @escaping Start) {
    (self.plan, self.workload, self.registered, self.start) = (plan, workload, registered, start)
    tokens = ListedTokens(limit: plan.maximumTokens)
  }

  var isPolling: Bool { if case .polling = state { true } else { false } }

  /// The schedule begins.
  mutating func begin(at time: Int64) {
    began = time
    state = .idle(next: time + interval)
  }

  /// No poll begins any more.
  mutating func end(at time: Int64) { end = min(end, time) }

  private var interval: Int64 { max(1_000_000, plan.interval.nanoseconds) }

  /// Time has passed: begins a poll that is due, and takes the outcome of one that has ended.
  ///
  /// - Returns: the listed tokens when they have changed.
  mutating func step(_ now: Int64) -> ListedTokens? {
    switch state {
    case .waiting: return nil
    case .idle(let next):
      guard let next, now >= next, now < end else { return nil }
      let box = Box()
      state = .polling(since: now, box)
      start(FeedbackListReader(workload, tokens, registered: registered, maximumTuples: plan.maximumTuples)) { poll in
        box.outcome.withLock { $0 = poll }
      }
      return nil
    case .polling(_, let box):
      guard let poll = box.outcome.withLock({ $0 }) else { return nil }
      // A poll that took longer than the interval does not bring several at once.
      state = .idle(next: began + ((now - began) / interval + 1) * interval)
      return take(poll)
    }
  }

  /// The run is over, and is not to wait for a poll any longer.
  mutating func abandon() {
    guard isPolling else { return }
    state = .idle(next: nil)
    _ = take(FeedbackPoll(end: .incomplete("the run ended"), tokens: tokens))
  }

  private mutating func take(_ poll: FeedbackPoll) -> ListedTokens? {
    books.note(poll)
    guard poll.end == .complete else { return nil }
    tokens = poll.tokens
    return tokens
  }
}
