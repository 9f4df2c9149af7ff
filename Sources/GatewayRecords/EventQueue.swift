import Dispatch
import GatewaySimulator
import Synchronization

/// Events of connections on their way to the thread that makes records of them.
///
/// Event loops never wait for that thread: when events hold too much memory, what is received and sent is left out and
/// counted, and the next event of the connection says how much it was.
final class EventQueue: Sendable {
  enum Item: Sendable {
    case event(ObservedEvent)
    /// Bytes of a connection that were left out before its next event.
    case missed(connection: UInt64, Missed)
    /// Somebody waits until all events before it are recorded.
    case request(@Sendable () -> Void)
  }

  struct Missed: Sendable, Equatable {
    /// Bytes that the client sent, and accepted notifications in them.
    var received = 0
    var accepted = 0
    /// Bytes that the service sent.
    var sent = 0
    /// When the last of them came, in nanoseconds since 1970-01-01 UTC.
    var time: Int64 = 0
  }

  private struct State {
    var items: [Item] = []
    /// Memory that events in `items`, and those that were taken last, keep.
    var heldBytes = 0
    var missed: [UInt64: Missed] = [:]
    /// Open connections whose beginning was left out, and with it all of them.
    var unseen: Set<UInt64> = []
    /// All notifications that arrived, and the part of them that was left out.
    var received = 0
    var lost = 0
    /// The part of `lost` that was on connections of which nothing is recorded.
    var unseenLost = 0
    /// Outcomes for devices that were left out.
    var lostOutcomes = 0
    /// The thread was woken and has not come by.
    var isWoken = false
    var hasEnded = false
  }

  /// The memory of an event without its bytes.
  private static let eventBytes = 256

  private let maximumBytes: Int
  private let state = Mutex(State())
  private let work = DispatchSemaphore(value: 0)

  init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

  /// Outcomes for devices that were left out.
  var lostOutcomes: Int { state.withLock { $0.lostOutcomes } }

  /// Notifications that arrived so far, and the part of them that was left out.
  var counts: (received: Int, lost: Int, unseenLost: Int) {
    state.withLock { ($0.received, $0.lost, $0.unseenLost) }
  }

  func receive(_ event: ObservedEvent) {
    let wakes = state.withLock { state in
      if case .received(_, let decision) = event.change { state.received += decision.received }
      guard !state.hasEnded, !leavesOut(event, &state) else { return false }
      if !state.missed.isEmpty, let missed = state.missed.removeValue(forKey: event.connection) {
        state.items.append(.missed(connection: event.connection, missed))
      }
      state.items.append(.event(event))
      state.heldBytes += event.heldBytes + Self.eventBytes
      defer { state.isWoken = true }
      return !state.isWoken
    }
    if wakes { work.signal() }
  }

  /// Whether there is no room for an event. Ends of connections whose beginning was taken always have room: there are
  /// not more than a few for each open connection.
  private func leavesOut(_ event: ObservedEvent, _ state: inout State) -> Bool {
    if state.unseen.contains(event.connection) {
      if case .received(_, let decision) = event.change {
        state.lost += decision.received
        state.unseenLost += decision.received
      }
      if case .closed = event.change { state.unseen.remove(event.connection) }
      return true
    }
    guard state.heldBytes + event.heldBytes + Self.eventBytes > maximumBytes else { return false }
    var missed = state.missed[event.connection] ?? Missed()
    switch event.change {
    case .received(let bytes, let decision):
      missed.received += bytes.readableBytes
      missed.accepted += decision.accepted
      state.lost += decision.received
    case .sent(let bytes): missed.sent += bytes.readableBytes
    case .devices(let outcomes):
      state.lostOutcomes += outcomes.count
      return true
    case .opened:
      state.unseen.insert(event.connection)
      return true
    case .closing, .closed: return false
    }
    missed.time = event.time
    state.missed[event.connection] = missed
    return true
  }

  /// Calls back on the thread, after the events that are there; `false`: never, because none follows.
  func request(_ done: @escaping @Sendable () -> Void) -> Bool {
    let (isTaken, wakes) = state.withLock { state in
      guard !state.hasEnded else { return (false, false) }
      // What was left out of it comes before it, too.
      state.items += state.missed.map { .missed(connection: $0.key, $0.value) }
      state.missed = [:]
      state.items.append(.request(done))
      defer { state.isWoken = true }
      return (true, !state.isWoken)
    }
    if wakes { work.signal() }
    return isTaken
  }

  /// No event follows.
  func end() {
    let wakes = state.withLock { state in
      defer { (state.hasEnded, state.isWoken) = (true, true) }
      return !state.hasEnded && !state.isWoken
    }
    if wakes { work.signal() }
  }

  /// Waits for events, for at most so long.
  ///
  /// - Parameter items: receives them; those that it has are given back.
  /// - Returns: whether further ones may follow.
  func take(_ items: inout [Item], within time: DispatchTimeInterval) -> Bool {
    _ = work.wait(timeout: .now() + time)
    items.removeAll(keepingCapacity: true)
    return state.withLock { state in
      swap(&items, &state.items)
      state.isWoken = false
      if state.hasEnded {
        items += state.missed.map { .missed(connection: $0.key, $0.value) }
        state.missed = [:]
      }
      return !state.hasEnded
    }
  }

  /// Gives back the memory of events that were taken.
  func release(_ items: [Item]) {
    let bytes = items.reduce(0) { sum, item in
      if case .event(let event) = item { sum + event.heldBytes + Self.eventBytes } else { sum }
    }
    state.withLock { $0.heldBytes -= bytes }
  }
}
