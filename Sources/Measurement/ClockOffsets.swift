/// How far the clocks of machines are from the gateway's, by the connections that both have in their books.
struct ClockOffsets {
  /// A connection's life: seconds since 1970 by one clock.
  struct Life: Sendable, Equatable {
    /// The attempt to connect.
    var from: Double
    /// The end of the handshake.
    var up: Double
    /// The last byte that was settled.
    var to: Double
  }

  /// The most lives of a run that are looked at: more make it no surer.
  static let maximumLives = 16
  /// Comparisons above which nothing is computed: thousands of runs with thousands of connections.
  private static let maximumWork = 40_000_000
  /// Seconds between what both sides call the beginning, or the end, of a connection.
  private static let (beginTolerance, endTolerance) = (0.1, 0.5)

  /// The gateway's connections, by when they were opened.
  private let lives: [(opened: Double, closed: Double)]

  init(_ ledger: Ledger) {
    lives = ledger.connections.compactMap { connection in
      guard let opened = unixSeconds(connection.opened), let closed = unixSeconds(connection.closed) else { return nil }
      return (opened, closed)
    }.sorted { $0.opened < $1.opened }
  }

  /// Whether so many runs can be compared in reasonable time.
  func canCompare(_ runs: Int) -> Bool { lives.count * Self.maximumLives * max(1, runs) <= Self.maximumWork }

  /// The seconds by which a run's clock is ahead of the gateway's: those with which most of its connections are
  /// connections of the gateway that lasted as long, and of these the least. `nil` when with none at least half of them
  /// are.
  func offset(of run: [Life]) -> Double? {
    guard let first = run.first else { return nil }
    var best: (fit: Fit, offset: Double)?
    for life in lives where abs((first.to - first.from) - (life.closed - life.opened)) <= Self.endTolerance {
      let offset = first.from - life.opened
      var fit = Fit(offset: offset)
      for own in run {
        guard let difference = difference(from: own, offset) else { continue }
        fit.matches += 1
        fit.difference += difference
      }
      guard 2 * fit.matches >= run.count else { continue }
      if best.map({ fit.isBetter(than: $0.fit) }) ?? true { best = (fit, offset) }
    }
    return best?.offset
  }

  private struct Fit {
    var offset: Double
    var matches = 0
    /// Seconds between the ends, of all together.
    var difference = 0.0

    /// Ends that both sides saw within some hundredths of a second are equal.
    private var steps: Double { (difference / Double(max(1, matches)) / 0.03).rounded(.down) }

    func isBetter(than other: Fit) -> Bool {
      if matches != other.matches { return matches > other.matches }
      return steps == other.steps ? abs(offset) < abs(other.offset) : steps < other.steps
    }
  }

  /// Seconds between the ends of a run's connection and of that of the gateway which is most like it; `nil` if none is.
  private func difference(from life: Life, _ offset: Double) -> Double? {
    let (from, up, to) = (life.from - offset, life.up - offset, life.to - offset)
    var (low, high) = (0, lives.count)
    while low < high {
      let middle = (low + high) / 2
      if lives[middle].opened < from - Self.beginTolerance { low = middle + 1 } else { high = middle }
    }
    var least: Double?
    while low < lives.count, lives[low].opened <= max(from, up) + Self.beginTolerance {
      let difference = abs(lives[low].closed - to)
      if difference <= Self.endTolerance { least = min(least ?? difference, difference) }
      low += 1
    }
    return least
  }
}

extension RunResult {
  /// The first lives of its connections; empty in a merged result, whose parts have clocks of their own.
  var connectionLives: [ClockOffsets.Life] {
    guard merged == nil, let start = unixSeconds(started) else { return [] }
    var handshakes: [Int: Timeline.Span] = [:]
    var lives: [ClockOffsets.Life] = []
    for span in timeline.spans {
      switch span.state {
      case .handshake: handshakes[span.connection] = span
      case .up:
        guard let handshake = handshakes.removeValue(forKey: span.connection) else { continue }
        lives.append(.init(from: start + handshake.fromS, up: start + handshake.toS, to: start + span.toS))
        if lives.count == ClockOffsets.maximumLives { return lives }
      case .backOff: continue
      }
    }
    return lives
  }
}
