import LoadTest
import Measurement
import Reporting
import Synchronization

/// The trials of a capacity run, as far as known in advance.
struct CapacitySchedule {
  /// The trials after the search.
  private let sweeps: [TrialRequest]
  let text: String
  /// The usual number of trials, and the usual length of all.
  let usual: (trials: Int, time: Duration)

  /// The most connections of any trial.
  func maximumConnections(_ load: LoadPlan) -> Int {
    sweeps.reduce(load.connections.count) { max($0, $1.connections ?? 0) }
  }

  init(_ plan: CapacityPlan, _ load: LoadPlan) {
    sweeps = plan.sweeps
    let (steps, long) = CapacitySearch.estimate(precision: plan.precision)
    let (settle, short) = (plan.settling, plan.trial)
    let connections = counted(load.connections.count, "connection")
    func seconds(_ time: Duration) -> String { TimeSpan(time).defaultValueDescription }
    var rows = [["trials", "for", "each", ""]]
    rows.append(["1", "burst", seconds(settle + short), "\(connections), as fast as possible"])
    rows.append(["about \(steps)", "search", seconds(settle + short), "at a set rate"])
    rows.append([
      "\(long)", "confirm, above", seconds(settle + plan.confirmation), "at the rate found, and one step above",
    ])
    for purpose in [CapacityTrial.Purpose.connections, .check, .batch, .errors, .storm] {
      let part = sweeps.filter { $0.purpose == purpose }
      guard !part.isEmpty else { continue }
      let what =
        switch purpose {
        case .batch: "notifications per write: \(part.compactMap(\.batch).map { "\($0)" }.joined(separator: ", "))"
        case .errors: "share of errors: \(part.compactMap(\.faultShare).map { "\($0)" }.joined(separator: ", "))"
        case .storm: "connections at once: \(part.compactMap(\.connections).map { "\($0)" }.joined(separator: ", "))"
        default: "connections: \(part.compactMap(\.connections).map { "\($0)" }.joined(separator: ", "))"
        }
      let each = purpose == .storm ? part[0].seconds : settle + short
      rows.append(["\(part.count)", purpose.rawValue, seconds(each), what])
    }
    let storms = sweeps.filter { $0.purpose == .storm }
    let total =
      (settle + short) * (1 + steps + sweeps.count - storms.count) + (settle + plan.confirmation) * long
      + storms.reduce(.zero) { $0 + $1.seconds }
    usual = (1 + steps + 1 + sweeps.count, total)
    text =
      (aligned(rows) + [
        "about \(Unit.seconds.text(total / .seconds(1))) in all; void trials are repeated, at most \(plan.maximumTrials) for the search"
      ])
      .joined(separator: "\n")
  }
}

/// The place of the running trial among all, for the status line.
final class TrialNumbers: Sendable {
  private let usual: (trials: Int, time: Duration)
  private let started = ContinuousClock.now
  private let latest = Atomic<Int>(0)

  init(_ schedule: CapacitySchedule) { usual = schedule.usual }

  /// The number of trials that have begun.
  var made: Int { latest.load(ordering: .relaxed) }

  /// Begins the next trial: "trial 7 of about 12, 2 min left". A search that needs more trials than usual has no time left
  /// that is known.
  func next() -> String {
    let number = latest.wrappingAdd(1, ordering: .relaxed).newValue
    guard number <= usual.trials else { return "trial \(number)" }
    let left = usual.time - started.duration(to: .now)
    let rest = left > .zero ? ", \(span((left / .seconds(1)).rounded(.up))) left" : ""
    return "trial \(number) of about \(usual.trials)\(rest)"
  }
}
