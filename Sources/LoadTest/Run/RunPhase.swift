import Measurement

/// The counts and measurements of one event loop in one phase.
///
/// The fate, lag and cost of a sending belong to the phase in which it was written, however late they become known;
/// everything else to the phase in which it occurred.
struct PhaseTotals: Sendable {
  var tally = LoadTally()
  var measurements = LoadMeasurements()
  /// The time of the gateway's last response that settled notifications written in the phase; 0: there was none.
  var settledAt: Int64 = 0

  mutating func merge(_ other: PhaseTotals) {
    tally += other.tally
    measurements.merge(other.measurements)
    settledAt = max(settledAt, other.settledAt)
  }
}

/// Where on a connection each phase began: positions of its log.
struct PhaseMarks {
  /// By phase; beyond every position for phases after the current one.
  private var begins: InlineArray<4, Int> = [0, 0, 0, 0]

  /// A connection that is opened in `phase`.
  init(in phase: RunPhase) {
    for later in RunPhase.allCases where later.index > phase.index { begins[later.index] = .max }
  }

  /// The phase begins with the notification at `position`.
  mutating func begin(_ phase: RunPhase, at position: Int) {
    for begun in 0...phase.index where begins[begun] == .max { begins[begun] = position }
  }

  func phase(of position: Int) -> RunPhase {
    RunPhase.allCases.last { begins[$0.index] <= position } ?? .connect
  }

  /// How many of these positions are of each phase; phases without any are left out.
  func counts(of positions: Range<Int>) -> [(phase: RunPhase, count: Int)] {
    RunPhase.allCases.compactMap { phase in
      let begin = max(positions.lowerBound, begins[phase.index])
      let next = phase.index + 1
      let end = min(positions.upperBound, next < begins.count ? begins[next] : .max)
      return begin < end ? (phase, end - begin) : nil
    }
  }
}
