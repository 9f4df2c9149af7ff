import Measurement

/// What one event loop counts and measures, by phase of the run.
struct LoopBooks {
  /// The current phase.
  private(set) var phase = RunPhase.connect
  /// Totals of the current phase, and of earlier ones.
  private var current = PhaseTotals()
  private var earlier = [PhaseTotals](repeating: PhaseTotals(), count: RunPhase.allCases.count)
  var bins = WriteBins()
  var pauses = LoopPauses()
  var stalls = StallWatch(shortest: Int64(RunResult.Stalls.shortestMs * 1e6))
  var timeline: ConnectionTimeline
  /// Events for a log; `nil` without one.
  var events: LoopEvents?
  var lastError = ""
  /// The first permanent failure.
  var permanentFailure: PermanentFailure?
  /// When the last batch was written; 0: none was.
  var lastWrite: Int64 = 0

  init(timelineLimit: Int) { timeline = ConnectionTimeline(limit: timelineLimit) }

  var tally: LoadTally {
    _read { yield current.tally }
    _modify { yield &current.tally }
  }
  var measurements: LoadMeasurements {
    _read { yield current.measurements }
    _modify { yield &current.measurements }
  }

  mutating func enter(_ next: RunPhase) {
    earlier[phase.index].merge(current)
    current = PhaseTotals()
    phase = next
  }

  /// Changes the totals of a phase, possibly an earlier one.
  mutating func book(_ phase: RunPhase, _ change: (inout PhaseTotals) -> Void) {
    if phase == self.phase { change(&current) } else { change(&earlier[phase.index]) }
  }

  /// Counts of each phase so far, in their order.
  var tallies: [LoadTally] {
    var all = earlier.map(\.tally)
    all[phase.index] += current.tally
    return all
  }

  /// When the last thing was settled that was written in the phase; 0: nothing was.
  func settledAt(_ phase: RunPhase) -> Int64 {
    max(earlier[phase.index].settledAt, phase == self.phase ? current.settledAt : 0)
  }

  /// The measurements of each phase since the last call.
  mutating func takeMeasurements() -> [LoadMeasurements] {
    var all: [LoadMeasurements] = []
    for phase in RunPhase.allCases {
      all.append(earlier[phase.index].measurements)
      earlier[phase.index].measurements = LoadMeasurements()
    }
    all[phase.index].merge(current.measurements)
    current.measurements = LoadMeasurements()
    return all
  }
}
