import Measurement

/// The timeline of the connections of one event loop, as spans. Costs something only when a connection changes its
/// state.
struct ConnectionTimeline {
  private typealias State = RunResult.Timeline.State

  private struct Span {
    var connection: Int
    var state: State
    var from: Int64
    var to: Int64
  }

  private let limit: Int
  private var spans: [Span] = []
  private var omitted = 0
  /// The current state of each connection, and since when.
  private var current: [Int: (state: State, since: Int64)] = [:]

  /// - Parameter limit: most spans that are kept.
  init(limit: Int) { self.limit = limit }

  /// - Parameters:
  ///   - state: the connection's state; `nil`: it is down, and not drawn.
  ///   - now: nanoseconds of the monotonic clock, as all times here.
  mutating func note(_ connection: Int, _ state: RunResult.Timeline.State?, at now: Int64) {
    let last = current[connection]
    guard last?.state != state else { return }
    current[connection] = state.map { ($0, now) }
    guard let last else { return }
    guard spans.count < limit else {
      omitted += 1
      return
    }
    spans.append(Span(connection: connection, state: last.state, from: last.since, to: now))
  }

  /// All spans, with the current ones ended now.
  ///
  /// - Parameter start: what seconds count from.
  mutating func end(since start: Int64, at now: Int64) -> RunResult.Timeline {
    for connection in current.keys.sorted() { note(connection, nil, at: now) }
    var timeline = RunResult.Timeline()
    timeline.omitted = omitted
    // Microseconds: finer times are meaningless.
    func seconds(_ time: Int64) -> Double { Double((time - start) / 1_000) / 1e6 }
    timeline.spans = spans.map {
      .init(connection: $0.connection, $0.state, fromS: seconds($0.from), toS: seconds($0.to))
    }
    return timeline
  }
}
