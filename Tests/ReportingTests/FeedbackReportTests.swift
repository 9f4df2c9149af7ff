import Measurement
import Testing

@testable import Reporting

/// What a load's report says of the feedback service, and what it does not.
@Suite("Feedback in reports")
struct FeedbackReportTests {
  /// A run of which the first list is read after `first` seconds; before it one in so many is rejected, and after it.
  private static func run(
    seconds: Int = 60, first: Int? = 25, rejectedBefore: Int, rejectedAfter: Int, prunes: Bool = true
  ) -> RunResult {
    var run = syntheticRun(seconds: 0, connections: 2)
    (run.plan["poll_feedback"], run.plan["no_prune"]) = (.text("127.0.0.1:2196,every=25s"), .flag(!prunes))
    var feedback = RunResult.Feedback()
    (feedback.prunes, feedback.polls, feedback.complete) = (prunes, 2, 2)
    if first != nil { (feedback.tuples, feedback.listed, feedback.tokens, feedback.listedTokens) = (40, 40, 40, 40) }
    run.notifications.pruned = 0
    run.measuredS = Double(seconds)
    run.rates.writtenPerS = 1_000
    run.rates.acceptedPerS = 990
    run.rates.writtenBytesPerS = 200_000
    for second in 0..<seconds {
      var sample = RunResult.Sample()
      (sample.tS, sample.written, sample.pruned, sample.feedbackTuples) = (Double(second), 1_000, 0, 0)
      let isAfter = first.map { second > $0 } ?? false
      let rejected = isAfter ? rejectedAfter : rejectedBefore
      // Not the same in each second.
      let errors = max(0, rejected + [0, 1, -1][second % 3])
      if errors > 0 { sample.errorsByStatus = ["8": errors] }
      sample.errors = errors
      if second == first { sample.feedbackTuples = 40 }
      if isAfter, prunes {
        sample.pruned = 50
        run.notifications.pruned? += 50
      }
      run.series.append(sample)
      run.sendings.written += 1_000
      run.sendings.rejected += errors
      run.notifications.generated += 1_000 + (sample.pruned ?? 0)
    }
    if !prunes, first != nil {
      (feedback.sentToListed, feedback.rejectedListed, feedback.discardedByListed) = (900, 30, 400)
    }
    run.feedback = feedback
    return run
  }

  private func text(_ run: RunResult, baseline: RunResult? = nil) -> String {
    RunReport(run, baseline: baseline).page.markdown().text
  }

  private let gained = "without and with pruning"

  @Test("A gain is claimed where the shares are apart, and nowhere else")
  func gain() throws {
    let better = Self.run(rejectedBefore: 20, rejectedAfter: 2)
    let gain = try #require(PruningGain(better, baseline: nil))
    #expect(gain.contrast == .beforeFirstList)
    #expect(abs(gain.without.share - 0.02) < 0.001 && abs(gain.with.share - 0.002) < 0.001)
    #expect(gain.with.range.upperBound < gain.without.range.lowerBound)
    #expect(text(better).contains(gained))
    for (name, run) in [
      ("the same", Self.run(rejectedBefore: 20, rejectedAfter: 20)),
      ("worse", Self.run(rejectedBefore: 2, rejectedAfter: 20)),
      ("within chance", Self.run(rejectedBefore: 3, rejectedAfter: 2)),
      ("too short before", Self.run(first: 10, rejectedBefore: 20, rejectedAfter: 2)),
      ("too short after", Self.run(first: 50, rejectedBefore: 20, rejectedAfter: 2)),
      ("no list", Self.run(first: nil, rejectedBefore: 20, rejectedAfter: 2)),
      ("not pruned", Self.run(rejectedBefore: 20, rejectedAfter: 2, prunes: false)),
    ] {
      #expect(PruningGain(run, baseline: nil) == nil, "\(name)")
      #expect(!text(run).contains(gained), "\(name)")
    }
  }

  @Test("A baseline that differs in nothing but pruning is what a run is compared with")
  func baseline() throws {
    let run = Self.run(first: 10, rejectedBefore: 20, rejectedAfter: 2)
    let without = Self.run(first: 10, rejectedBefore: 20, rejectedAfter: 20, prunes: false)
    let gain = try #require(PruningGain(run, baseline: without))
    #expect(gain.contrast == .baseline)
    #expect(text(run, baseline: without).contains(gained))
    var neverPolled = without
    (neverPolled.feedback, neverPolled.notifications.pruned) = (nil, nil)
    (neverPolled.plan["poll_feedback"], neverPolled.plan["no_prune"]) = (nil, nil)
    #expect(PruningGain(run, baseline: neverPolled)?.contrast == .baseline)
    // A baseline of another load, or one that prunes, says nothing; and this run is too short for itself.
    var faster = without
    faster.plan["rate"] = .text("9000.0/s")
    var pruning = without
    pruning.feedback?.prunes = true
    for other in [faster, pruning, run] { #expect(PruningGain(run, baseline: other) == nil) }
  }

  @Test("The page has the section of polls when there were any, and no row of it otherwise")
  func section() {
    let run = Self.run(rejectedBefore: 20, rejectedAfter: 2)
    let page = text(run)
    #expect(page.contains("## Feedback") && page.contains("Share of sendings that were rejected with status 8"))
    #expect(page.contains("Left out, because feedback lists the token") && page.contains("1,700 of"))
    #expect(page.contains("1,700 pruned"))
    let other = text(Self.run(rejectedBefore: 20, rejectedAfter: 20, prunes: false))
    #expect(other.contains("Sent to tokens that feedback lists") && other.contains("Connections lost to such tokens"))
    #expect(!other.contains("Left out") && !other.contains("Notifications left out"))
    let nothing = text(syntheticRun(seconds: 30, connections: 2))
    #expect(!nothing.contains("Feedback") && !nothing.contains("pruned"))
    let noList = text(Self.run(first: nil, rejectedBefore: 20, rejectedAfter: 2))
    #expect(!noList.contains("Left out, because feedback lists the token"))
    #expect(noList.contains("No list was read that had a token."))
  }

  @Test("A poll that failed, or was cut off, is said on the page")
  func warned() {
    var run = Self.run(rejectedBefore: 2, rejectedAfter: 2)
    run.feedback?.failed = 1
    run.feedback?.incomplete = 1
    run.feedback?.polls = 4
    run.feedback?.failures = ["Connection refused": 1]
    let page = text(run)
    #expect(page.contains("not reachable in 1 of 4 polls: Connection refused"))
    #expect(page.contains("1 of 4 polls of the feedback service were cut off"))
    let summary = LoadSummary(run).text
    #expect(summary.contains("4 polls: 2 complete, 1 incomplete, 1 failed; 40 tuples: 40 listed"))
    #expect(!LoadSummary(syntheticRun(seconds: 3, connections: 1)).text.contains("feedback"))
  }

  @Test("Tuples are compared with the service's books, and each difference breaks its line and no other")
  func agreement() {
    var run = Self.run(rejectedBefore: 2, rejectedAfter: 2)
    var good = Ledger()
    (good.feedback.connections, good.feedback.completed, good.feedback.tuplesSent) = (2, 2, 40)
    func differing(_ change: (inout Ledger.Feedback) -> Void) -> [String] {
      var ledger = good
      change(&ledger.feedback)
      return Agreement(run, ledger).lines.filter { $0.name.hasPrefix("feedback") && !$0.holds }.map(\.name)
    }
    #expect(differing { _ in } == [])
    for more in [-1, 1] {
      #expect(differing { $0.tuplesSent += more } == ["feedback tuples"])
      #expect(differing { $0.connections += more } == ["feedback polls"])
      #expect(differing { $0.completed += more } == ["feedback lists read"])
    }
    // A list that was cut off: the service may have sent more, and read by the kernel means nothing here.
    run.feedback?.polls = 3
    run.feedback?.incomplete = 1
    run.feedback?.tuplesCutOff = 5
    good.feedback.connections = 3
    #expect(differing { _ in } == [])
    #expect(differing { $0.tuplesSent += 3 } == [] && differing { $0.completed += 1 } == [])
    #expect(differing { $0.tuplesSent -= 1 } == ["feedback tuples"])
    #expect(differing { $0.connections += 1 } == ["feedback polls"])
    let without = Agreement(syntheticRun(seconds: 3, connections: 1), good).lines
    #expect(!without.contains { $0.name.hasPrefix("feedback") })
  }
}
