import Measurement
import Testing

@Suite("Trials of a search for capacity")
struct CapacityTrialTests {
  @Test("A trial was interrupted when it is void for that alone")
  func interrupted() {
    for (verdict, reasons, wasInterrupted) in [
      (.void, ["interrupted"], true), (.void, [], false), (.void, ["stalled"], false),
      (.void, ["interrupted", "stalled"], false), (.failed, ["interrupted"], false), (.measured, [], false),
    ] as [(CapacityTrial.Verdict, [String], Bool)] {
      var trial = CapacityTrial()
      (trial.verdict, trial.reasons) = (verdict, reasons)
      #expect(trial.wasInterrupted == wasInterrupted, "\(verdict) \(reasons)")
    }
  }

  @Test("The share of errors is of the sendings that were looked at")
  func errorShare() {
    for (accepted, rejected, share) in [(0, 0, 0.0), (3, 1, 0.25), (0, 2, 1), (7, 0, 0), (1, 0, 0), (0, 1, 1)] {
      var trial = CapacityTrial()
      (trial.sendings.accepted, trial.sendings.rejected, trial.sendings.discarded) = (accepted, rejected, 90)
      #expect(trial.errorShare == share)
    }
  }

  @Test("What was held is what was offered over the time until all was proven")
  func held() {
    for (offered, settle, measured, drain, held) in [
      (nil, 1, 1, 1, nil), (100, 0, 0, 5, 100), (100, 1, 3, 1, 80), (100, 0, 1, -1, 100), (100, 2, 0, 0, 100),
      (100, 0.5, 0, 0.5, 50),
    ] as [(Double?, Double, Double, Double, Double?)] {
      var trial = CapacityTrial()
      (trial.offeredPerS, trial.settleS, trial.measuredS, trial.drainS) = (offered, settle, measured, drain)
      #expect(trial.heldPerS == held)
    }
  }
}
