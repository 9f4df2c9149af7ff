import LoadTest
import Measurement
import Testing

@Suite("Verdict of a trial")
struct TrialLimitsTests {
  private func judged(_ change: (inout CapacityTrial) -> Void) -> CapacityTrial {
    var trial = CapacityTrial()
    trial.offeredPerS = 1_000
    (trial.settleS, trial.measuredS) = (2, 10)
    trial.sendings.written = 12_000
    trial.sendings.accepted = 12_000
    trial.sendLagP99Us = 1_200
    trial.behindMs = 3
    trial.backlogPerS = 0.5
    trial.availableCores = 1
    trial.cpuCores = 0.2
    change(&trial)
    TrialLimits().judge(&trial)
    return trial
  }

  @Test("One that keeps all limits has passed, also with a busy generator")
  func passed() {
    #expect(judged { _ in }.verdict == .passed)
    #expect(judged { $0.cpuCores = 0.99 }.verdict == .passed)
    #expect(judged { $0.cpuCores = 0.99 }.reasons.isEmpty)
  }

  @Test("Processor time that was not measured is absent, and no reason", arguments: [0.5, 3.0])
  func unmeasuredProcessor(seconds: Double) {
    var result = RunResult()
    for name in [RunPhase.connect, .warmUp, .measured] {
      var phase = RunResult.Phase()
      (phase.name, phase.seconds) = (name, name == .measured ? seconds : 0.25)
      result.phases.append(phase)
    }
    result.rates.writtenPerS = 1_000
    result.series = (0..<Int(seconds + 1)).map { second in
      var sample = RunResult.Sample()
      (sample.tS, sample.cpu) = (Double(second), 0.75)
      return sample
    }
    var trial = CapacityTrial(result, of: LoadPlan())
    // Whole seconds after the first half, which is no part of what is measured.
    #expect(trial.cpuCores == (seconds < 1 ? nil : 0.75))
    #expect(trial.cpuPerNotificationUs == (seconds < 1 ? nil : 750))
    trial.availableCores = 1
    TrialLimits().judge(&trial)
    #expect(!trial.reasons.contains { $0.contains("processor") })
  }

  private static let breaches: [(change: @Sendable (inout CapacityTrial) -> Void, reason: String)] = [
    ({ $0.sendLagP99Us = 50_001 }, "send lag"), ({ $0.backlogPerS = 5.1 }, "backlog"),
    // Half a step of 12 s.
    ({ $0.behindMs = 181 }, "behind"), ({ $0.sendings.unknown = 1 }, "without an error"),
    ({ $0.notifications.abandoned = 1 }, "abandoned"), ({ $0.sendings.rejected = 122 }, "refused"),
    ({ $0.sendings.resent = 1_201 }, "sent again"), ({ $0.sendings.accepted = 0 }, "nothing was accepted"),
  ]

  @Test("Each limit fails it, with its reason", arguments: breaches.indices)
  func failed(index: Int) {
    let (change, reason) = Self.breaches[index]
    let trial = judged(change)
    #expect(trial.verdict == .failed)
    #expect(trial.reasons.count == 1 && trial.reasons[0].contains(reason), "\(trial.reasons)")
    // The same with a generator that was late is its own fault.
    let void = judged {
      change(&$0)
      $0.loopLagP99Us = 20_000
    }
    #expect(void.verdict == .void)
    let waited = judged {
      change(&$0)
      $0.waitedShare = 0.2
    }
    #expect(waited.verdict == .void && waited.reasons[0].contains("waited for a processor 20.0 %"))
    #expect(void.reasons[0].contains("clock was late") && void.reasons[1].contains(reason))
  }

  @Test("One that fails while the generator stood still is void, and says for how long; one that passes has passed")
  func stalls() {
    let long = judged {
      ($0.sendLagP99Us, $0.stalledS, $0.longestStallMs) = (160_000, 1.24, 251)
    }
    #expect(long.verdict == .void)
    #expect(
      long.reasons.first
        == "the generator stalled for 1.2 s of a trial that measures 10 s, at most 251 ms at a time")
    // 1 % of the phase, and the limit of the lag: up to there it does not explain a failure.
    for (stalledS, longestMs, verdict) in [
      (0.101, 12, .void), (0.1, 50, .failed), (0.051, 50.5, .void), (0, 0, .failed),
    ] as [(Double, Double, CapacityTrial.Verdict)] {
      let trial = judged {
        ($0.sendLagP99Us, $0.stalledS, $0.longestStallMs) = (160_000, stalledS, longestMs)
      }
      #expect(trial.verdict == verdict, "\(trial.reasons)")
    }
    // Many short stalls, which the loop's own lag (p99) does not show, and one that does with none of note.
    let unnoted = judged {
      ($0.sendLagP99Us, $0.stalledS, $0.longestStallMs, $0.loopLagP99Us) = (160_000, 0, 0, 20_000)
    }
    #expect(unnoted.verdict == .failed)
    let passed = judged { ($0.stalledS, $0.longestStallMs) = (3, 2_000) }
    #expect(passed.verdict == .passed && passed.reasons.isEmpty)
    let burst = judged { ($0.offeredPerS, $0.stalledS, $0.longestStallMs) = (nil, 1.1, 251) }
    #expect(burst.verdict == .void && burst.reasons.count == 1)
  }

  @Test("A trial's lag limit decides which stall explains it")
  func stallBeyondLagLimit() {
    var limits = TrialLimits()
    limits.lag = 300_000
    var trial = judged { ($0.sendLagP99Us, $0.stalledS, $0.longestStallMs) = (400_000, 0.09, 90) }
    limits.judge(&trial)
    #expect(trial.verdict == .failed)
  }

  @Test("What is just within a limit passes")
  func borders() {
    #expect(judged { $0.sendLagP99Us = 50_000 }.verdict == .passed)
    #expect(judged { $0.backlogPerS = 5 }.verdict == .passed)
    #expect(judged { $0.behindMs = 180 }.verdict == .passed)
    #expect(judged { $0.sendings.resent = 1_200 }.verdict == .passed)
  }

  @Test("Of a storm the time until all connections are open counts, and not what is sent afterwards")
  func storms() {
    func storm(opening: Double, sending: Double) -> CapacityTrial {
      judged { trial in
        (trial.purpose, trial.offeredPerS, trial.waitedShare) = (.storm, nil, sending)
        trial.opening = CapacityTrial.Opening()
        trial.opening?.waitedShare = opening
      }
    }
    #expect(storm(opening: 0.1, sending: 0.9).verdict == .measured)
    #expect(storm(opening: 0.1, sending: 0.9).reasons.isEmpty)
    let void = storm(opening: 0.11, sending: 0)
    #expect(void.verdict == .void && void.reasons.first?.contains("11.0 % of the time until all connections") == true)
  }

  @Test("The user's thresholds count, and without a rate there is nothing to pass")
  func others() {
    var trial = judged { _ in }
    TrialLimits().judge(&trial, thresholds: [.init(expression: "send_lag_p99<1ms", value: 1_200, passed: false)])
    #expect(trial.verdict == .failed && trial.reasons == ["threshold send_lag_p99<1ms"])
    let burst = judged {
      $0.offeredPerS = nil
      $0.cpuCores = 1
      $0.sendLagP99Us = 999_999
    }
    #expect(burst.verdict == .measured && burst.reasons.count == 1)
    let disturbed = judged {
      $0.offeredPerS = nil
      $0.waitedShare = 0.3
    }
    #expect(disturbed.verdict == .void && disturbed.reasons.count == 1)
  }
}
