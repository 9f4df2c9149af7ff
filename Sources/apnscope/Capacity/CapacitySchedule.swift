import LoadTest
import Measurement
import Reporting

/// Which trials a capacity run makes, as far as that is known before.
struct CapacitySchedule {
  /// What comes behind the search.
  private(set) var sweeps: [TrialRequest] = []
  let text: String

  /// Of any trial.
  func mostConnections(_ plan: LoadPlan) -> Int {
    sweeps.reduce(plan.connections.count) { max($0, $1.connections ?? 0) }
  }

  init(_ command: Capacity, _ plan: LoadPlan) {
    let options = command.trials
    let short = options.trial.duration
    for count in options.connectionsSweep.values {
      sweeps.append(TrialRequest(purpose: .connections, seconds: short, connections: count))
    }
    if options.connectionsSweep.values.count >= 3, let most = options.connectionsSweep.values.max() {
      // Half as many again as were measured: further than that a check would say more about luck than about the law.
      let count = max(most + 1, most * 3 / 2)
      sweeps.append(TrialRequest(purpose: .check, seconds: short, connections: min(100_000, count)))
    }
    for size in options.batchSweep.values {
      sweeps.append(TrialRequest(purpose: .batch, seconds: short, batch: size))
    }
    // Without errors once more: what they cost is a small difference, and the machine may have changed since the burst.
    if !options.errorSweep.values.isEmpty {
      sweeps.append(TrialRequest(purpose: .errors, seconds: short, faultShare: 0))
    }
    for share in options.errorSweep.values {
      sweeps.append(TrialRequest(purpose: .errors, seconds: short, faultShare: share))
    }
    let (steps, long) = CapacitySearch.estimate(precision: options.precision.value)
    let settle = options.settle.duration
    let connections = counted(plan.connections.count, "connection")
    func seconds(_ time: Duration) -> String { TimeSpan(time).defaultValueDescription }
    var rows = [["trials", "for", "each", ""]]
    rows.append(["1", "burst", seconds(settle + short), "\(connections), as fast as possible"])
    rows.append(["about \(steps)", "search", seconds(settle + short), "at a set rate"])
    rows.append([
      "\(long)", "confirm, above", seconds(settle + options.confirm.duration), "at the rate found, and a step above",
    ])
    for purpose in [CapacityTrial.Purpose.connections, .check, .batch, .errors] {
      let part = sweeps.filter { $0.purpose == purpose }
      guard !part.isEmpty else { continue }
      let what =
        switch purpose {
        case .batch: "notifications of a write: \(part.compactMap(\.batch).map { "\($0)" }.joined(separator: ", "))"
        case .errors: "share of errors: \(part.compactMap(\.faultShare).map { "\($0)" }.joined(separator: ", "))"
        default: "connections: \(part.compactMap(\.connections).map { "\($0)" }.joined(separator: ", "))"
        }
      rows.append(["\(part.count)", purpose.rawValue, seconds(settle + short), what])
    }
    let total =
      (settle + short) * (1 + steps + sweeps.count) + (settle + options.confirm.duration) * long
    text =
      (aligned(rows) + [
        "about \(Unit.seconds.text(total / .seconds(1))) in all; void trials are made again, at most \(options.maxTrials.value) for the search"
      ])
      .joined(separator: "\n")
  }
}
