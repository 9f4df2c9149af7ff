import Measurement

/// The limits that a trial must keep to pass.
public struct TrialLimits: Sendable {
  /// The maximum send lag (99th percentile) in microseconds. A gateway may at least be as far behind at the end.
  public var lag = 50_000
  /// The maximum share of rejected notifications among processed ones, from 0 to 1.
  public var errorShare = 0.01
  /// The maximum share of second and later sendings among all sendings, from 0 to 1.
  public var resentShare = 0.1
  /// The growth of the unread backlog that a trial must detect, as a share of the rate: half a step of the search.
  public var drift = 0.015

  public init() {}

  /// Fills in the verdict. With a rate it passes, fails, or is void; without one it is measured, or void.
  ///
  /// A trial that keeps all limits has passed, even if the generator was busy. One that does not is void if the
  /// generator had too little processor time or stalled, which may be the cause.
  package func judge(_ trial: inout CapacityTrial, thresholds: [RunResult.Verdict.Threshold] = []) {
    if trial.purpose == .storm {
      // What is measured is over when the last connection is open.
      let waited = trial.opening?.waitedShare ?? 0
      trial.verdict = waited > Self.tolerableWait ? .void : .measured
      trial.reasons =
        waited > Self.tolerableWait
        ? ["the generator waited for a processor \(share(waited)) of the time until all connections were open"] : []
      return
    }
    let trouble = generatorTrouble(trial)
    guard trial.offeredPerS != nil else {
      // In a trial as fast as possible the generator may be busy; other processes may not.
      let stood = trial.measuredS > 0 ? (trial.stalledS ?? 0) / trial.measuredS : 0
      trial.verdict = max(trial.waitedShare ?? 0, stood) > Self.tolerableWait ? .void : .measured
      trial.reasons = trouble
      return
    }
    let failures = failures(trial, thresholds)
    trial.verdict = failures.isEmpty ? .passed : trouble.isEmpty ? .failed : .void
    trial.reasons = failures.isEmpty ? [] : trouble + failures
  }

  private func generatorTrouble(_ trial: CapacityTrial) -> [String] {
    var reasons: [String] = []
    if let cores = trial.cpuCores, cores > 0.9 * Double(trial.availableCores) {
      reasons.append("the generator used more than 90 % of its available processor time")
    }
    if trial.limitedBy == .generator { reasons.append("the generator was the limit, at least in one segment") }
    if let waited = trial.waitedShare, waited > Self.tolerableWait {
      reasons.append("the generator waited for a processor \(share(waited)) of the time")
    }
    if let stalledS = trial.stalledS, let longestMs = trial.longestStallMs {
      // A stall delays sendings due meanwhile by up to its length, regardless of the gateway.
      if stalledS > Self.tolerableStall * trial.measuredS || longestMs * 1e3 > Double(lag) {
        reasons.append(
          "the generator stalled for \(seconds(stalledS)) of a trial that measures \(seconds(trial.measuredS)), at most \(Int(nearest: longestMs.rounded())) ms at a time"
        )
      }
    } else if trial.loopLagP99Us > Self.tolerableLoopLag {
      reasons.append("the generator's clock was late by \(milliseconds(trial.loopLagP99Us))")
    }
    return reasons
  }

  private func failures(_ trial: CapacityTrial, _ thresholds: [RunResult.Verdict.Threshold]) -> [String] {
    var reasons: [String] = []
    let rate = trial.offeredPerS ?? 0
    if trial.sendLagP99Us > lag {
      reasons.append("send lag p99 was \(milliseconds(trial.sendLagP99Us)), more than \(milliseconds(lag))")
    }
    // A backlog that grows by less in the whole trial is within the lag that is allowed.
    if let growth = trial.backlogPerS, growth * trial.measuredS > rate * Double(lag) / 1e6 {
      reasons.append("the backlog grew by \(Int(growth.rounded()))/s")
    }
    let allowed = max(Double(lag) / 1e3, drift * (trial.settleS + trial.measuredS) * 1e3)
    if let behind = trial.behindMs, behind > allowed {
      reasons.append("the gateway was \(Int(behind.rounded())) ms behind at the end, more than \(Int(allowed)) ms")
    }
    if trial.sendings.unknown > 0 {
      reasons.append("\(trial.sendings.unknown) sendings were lost without an error")
    }
    if trial.notifications.abandoned > 0 {
      reasons.append("\(trial.notifications.abandoned) notifications were abandoned")
    }
    if trial.errorShare > errorShare { reasons.append("a share of \(share(trial.errorShare)) was refused") }
    if trial.sendings.written > 0 {
      let resent = Double(trial.sendings.resent) / Double(trial.sendings.written)
      if resent > resentShare { reasons.append("a share of \(share(resent)) was sent again") }
    }
    if trial.sendings.accepted == 0 { reasons.append("nothing was accepted") }
    reasons += thresholds.filter { !$0.passed }.map { "threshold \($0.expression)" }
    return reasons
  }

  private func milliseconds(_ microseconds: Int) -> String {
    microseconds < 10_000
      ? "\((Double(microseconds) / 100).rounded() / 10) ms"
      : "\(Int(nearest: (Double(microseconds) / 1_000).rounded())) ms"
  }

  private func seconds(_ value: Double) -> String {
    if value < 0.1 { return "\(Int(nearest: (value * 1e3).rounded())) ms" }
    let tenths = (value * 10).rounded() / 10
    return tenths == tenths.rounded() ? "\(Int(nearest: tenths)) s" : "\(tenths) s"
  }

  private func share(_ value: Double) -> String { "\((value * 10_000).rounded() / 100) %" }

  private static let tolerableWait = 0.1
  /// Share of the measured phase.
  private static let tolerableStall = 0.01
  /// Microseconds; of trials from before stalls were noted.
  private static let tolerableLoopLag = 10_000
}
