import Measurement
import TestSupport
import Testing

@testable import Reporting

/// The report of a load run.
@Suite("Report of a run")
struct RunReportTests {
  private static let run = syntheticRun(seconds: 30, connections: 4)

  private func text(_ report: RunReport) -> String { report.page.markdown().text }

  @Test("A short run's report is as it is kept")
  func golden() throws {
    var baseline = syntheticRun(seconds: 30, connections: 4, rate: 4_000)
    baseline.environment.kernel = "Linux 5"
    let report = RunReport(
      Self.run, ledger: ledger(of: Self.run), baseline: baseline, command: ["apnscope", "report", "a b.json"])
    try expectGolden(text(report), "run.md")
    #expect(report.booksAgree == true)
    #expect(report.page.sections.map(\.title).first == "Verdict")
    #expect(report.page.charts.allSatisfy { !$0.isEmpty }, "a section without data says so instead")
  }

  @Test("A result with nothing in it makes a report that says so, without an empty chart")
  func nothing() {
    let page = RunReport(RunResult()).page
    #expect(page.charts.isEmpty)
    let text = page.markdown().text
    for words in [
      "Nothing was written", "No connection was attempted", "No error responses", "no series", "no phases",
      "does not say where it was made", "gave no warnings",
    ] { #expect(text.contains(words), "\(words)") }
    #expect(!page.html.contains("nan") && !text.contains("inf"))
  }

  @Test("Topics are shown apart on the page and in the summary, and only when there are any")
  func topics() {
    #expect(!text(RunReport(Self.run)).contains("## Topics") && !LoadSummary(Self.run).text.contains("\ntopic "))
    var run = Self.run
    var (one, other) = (RunResult.Topic("com.example.one", share: 0.75), RunResult.Topic("com.example.two", share: nil))
    (one.notifications.generated, one.notifications.accepted, one.connections.asked) = (1_234, 1_200, 3)
    (other.notifications.rejected, other.schedule.unsent, other.errorResponses) = (17, 5, ["8": 17])
    run.topics = [one, other]
    let page = text(RunReport(run))
    #expect(page.contains("| com.example.one | 3 | 75 % | 1,234 | 1,200 | 0 | 0 | 0 | 0 |"), "\(page)")
    #expect(page.contains("| com.example.two | 0 | – | 0 | 0 | 17 | 0 | 0 | 5 |") && page.contains("17 × 8"))
    let lines = LoadSummary(run).text.split(separator: "\n").filter { $0.hasPrefix("topic ") }
    #expect(lines.count == 2 && lines[0].contains("com.example.one: 1,234 = 1,200 accepted"))
    #expect(lines[1].contains("5 never sent"))
  }

  @Test("A threshold without a value is shown in words, and with no number")
  func thresholdsWithoutValues() {
    var run = Self.run
    run.verdict.thresholds = [
      .init(expression: "recover_max<1m", value: nil, passed: true),
      .init(expression: "error_p99>1ms", value: nil, passed: false, reason: "there was none to measure"),
    ]
    let lines = LoadSummary(run).text.split(separator: "\n")
    #expect(lines.contains("✓ recover_max<1m  (there was none)"))
    #expect(lines.contains("✗ error_p99>1ms  (there was none to measure)"))
    let report = RunReport(run).page.markdown().text
    #expect(report.contains("there was none | kept") && report.contains("was not kept: there was none to measure."))
  }

  @Test("A failed threshold, a broken invariant and a warning are on the first screen")
  func failures() {
    var run = Self.run
    run.verdict.thresholds = [.init(expression: "accepted_per_s>100k", value: 4_000, passed: false)]
    run.verdict.invariants[0].holds = false
    run.warnings = ["first", "second"]
    guard let blocks = RunReport(run).page.sections.first?.blocks else {
      Issue.record("the first section is another")
      return
    }
    let callouts = blocks.compactMap { block in
      if case .callout(let tone, let prose) = block { (tone, prose.text) } else { nil }
    }
    #expect(callouts.map(\.0) == [.bad, .bad, .warning])
    #expect(callouts[0].1.hasSuffix(" Another failure is below."))
    #expect(callouts[0].1.contains("do not balance") && callouts[1].1.contains("4,000/s"))
    #expect(callouts[2].1 == "first (and 1 more, see Warnings)")
    guard case .callout = blocks[0], case .charts = blocks[1], case .figures(let figures) = blocks[2] else {
      Issue.record("the first section is another")
      return
    }
    #expect(figures.contains { $0.value == "2 failed" && $0.tone == .bad })
  }

  @Test("The gateway's books are compared line by line; each difference breaks its line and no other")
  func books() {
    let run = Self.run
    let good = ledger(of: run)
    #expect(Agreement(run, good).lines.allSatisfy { $0.holds })
    #expect(RunReport(run).booksAgree == nil)
    let changes: [(String, (inout Ledger) -> Void)] = [
      ("accepted", { $0.gateway.accepted -= 1 }), ("accepted", { $0.gateway.accepted += 1 }),
      ("rejected", { $0.gateway.rejected["8", default: 0] += run.sendings.binary.markers + 1 }),
      ("rejected", { $0.gateway.rejected["2"] = 0 }),
      ("discarded", { $0.gateway.discarded += run.sendings.binary.markers + 1 }),
      ("written, received", { $0.gateway.received += 1 }),
      ("responses of status 8", { $0.gateway.binary.errorResponses["8", default: 0] -= 1 }),
      ("connections with a handshake", { $0.gateway.handshakes += 1 }),
      ("sessions resumed", { $0.gateway.resumed -= 1 }), ("malformed frames", { $0.gateway.binary.malformed = 1 }),
    ]
    for (name, change) in changes {
      var ledger = good
      change(&ledger)
      #expect(Agreement(run, ledger).lines.filter { !$0.holds }.map(\.name) == [name])
      #expect(RunReport(run, ledger: ledger).booksAgree == false)
    }
    // What was left open may have been accepted.
    var open = run
    open.sendings.unknown = 5
    open.sendings.accepted -= 5
    #expect(Agreement(open, good).lines.filter { !$0.holds }.isEmpty)
  }

  @Test("A capture beside its gateway: every difference is seen, and what the capture may not know is allowed")
  func captured() {
    var ledger = Ledger()
    (ledger.gateway.received, ledger.gateway.accepted, ledger.gateway.discarded) = (1_005, 999, 3)
    ledger.gateway.rejected = ["2": 2, "8": 1]
    ledger.gateway.binary.errorResponses = ["2": 2, "8": 1, "10": 1]
    (ledger.gateway.connections, ledger.feedback.connections, ledger.feedback.tuplesSent) = (5, 2, 7)
    var good = InspectionReport()
    (good.fates.accepted, good.fates.rejected, good.fates.discarded) = (999, 3, 3)
    (good.summary.notifications, good.summary.connections, good.summary.feedbackTuples) = (1_005, 7, 7)
    good.errorsByStatus = [2: 2, 8: 1, 10: 1]
    good.feedbackConnections = 2
    let books = RunReport.books(of: good, with: ledger)
    #expect(books.holds && !books.text.contains("✗"))
    #expect(books.text.contains("capture  gateway") && books.lines.count == 10)
    let changes: [(String, (inout InspectionReport) -> Void)] = [
      ("accepted", { $0.fates.accepted -= 1 }), ("accepted", { $0.fates.accepted += 1 }),
      ("rejected", { $0.fates.rejected -= 1 }), ("discarded", { $0.fates.discarded -= 1 }),
      ("sent, received", { $0.summary.notifications -= 1 }),
      ("responses of status 8", { $0.errorsByStatus[8] = nil }),
      ("responses of status 5", { $0.errorsByStatus[5] = 1 }),
      ("connections", { $0.summary.connections += 1 }), ("connections", { $0.summary.connections -= 1 }),
      ("feedback tuples", { $0.summary.feedbackTuples = 6 }),
    ]
    for (name, change) in changes {
      var report = good
      change(&report)
      let books = RunReport.books(of: report, with: ledger)
      #expect(!books.holds && books.text.contains("✗"))
      #expect(books.lines.filter { !$0.holds }.map(\.name) == [name])
    }
    // Sent behind an error response, and never read by the gateway.
    var unread = good
    (unread.fates.discarded, unread.summary.notifications) = (10, 1_012)
    #expect(RunReport.books(of: unread, with: ledger).holds)
    // Of connections that ended without a word the gateway may have accepted some.
    var open = good
    (open.fates.accepted, open.fates.unknown) = (990, 9)
    #expect(RunReport.books(of: open, with: ledger).holds)
  }

  /// "discarded 30,340 30,341: the gateway's is not more" stood behind a ✓: a marker was allowed for, and not told of.
  @Test("The words of a rule tell the bound that is checked, to the last one")
  func rules() {
    typealias Rule = Agreement.Rule
    let rules: [(Rule, String, ClosedRange<Int>)] = [
      (.more([(0, "unknown")]), "equal", 100...100),
      (
        .more([(4, "markers"), (1_500, "unknown")]), "the gateway's is more by 4 markers and 1,500 unknown at most",
        100...1_604
      ),
      (.more([(4, "markers"), (0, "unknown")]), "the gateway's is more by 4 markers at most", 100...104),
      (
        .near(less: [(3, "that failed there")], more: [(2, "that failed here")]),
        "the gateway's is less by 3 that failed there at most, or more by 2 that failed here at most", 97...102
      ),
      (
        .near(less: [(3, "that failed there")], more: []), "the gateway's is less by 3 that failed there at most",
        97...100
      ),
      (.near(less: [], more: [(0, "that failed here")]), "equal", 100...100),
      (.lessOrMore([(1, "marker")]), "the gateway's is more by 1 marker at most; less, if some never arrived", 0...101),
      (.lessOrMore([]), "the gateway's is not more; less, if some never arrived", 0...100),
    ]
    for (rule, words, range) in rules {
      #expect(rule.text == words)
      for theirs in [range.lowerBound, range.upperBound] { #expect(rule.holds(100, theirs), "\(words)") }
      for theirs in [range.lowerBound - 1, range.upperBound + 1] where theirs >= 0 {
        #expect(!rule.holds(100, theirs), "\(words)")
      }
    }
    #expect(Rule.none.holds(0, 0) && !Rule.none.holds(0, 1))
    var run = Self.run
    (run.sendings.binary.markers, run.sendings.unknown) = (1, 7)
    let lines = Agreement(run, ledger(of: run)).lines
    let rejected = lines.first { $0.name == "rejected" }?.rule
    #expect(rejected == "the gateway's is more by 1 marker and 7 unknown at most")
  }

  @Test("A run compared with itself has ratio 1 everywhere, and differs in nothing")
  func same() {
    let text = text(RunReport(Self.run, baseline: Self.run))
    #expect(text.contains("same machine"))
    let section = text.components(separatedBy: "## Compared with the baseline").last?.components(
      separatedBy: "## Throughput")
    let rows = section?.first?.split(separator: "\n").filter { $0.hasPrefix("| `") } ?? []
    #expect(rows.count >= 10 && rows.allSatisfy { $0.hasSuffix("| 1 |") }, "\(rows)")
  }

  @Test("One run a side is shown with ratios and no verdict, however far they are apart")
  func compared() {
    var other = syntheticRun(seconds: 30, connections: 4, rate: 10_000)
    other.latency.sendLagUs = LatencyHistogram(.microseconds)
    for value in 0..<10_000 { other.latency.sendLagUs.record(400 + value % 300) }
    let text = text(RunReport(Self.run, baseline: other))
    #expect(text.split(separator: "\n").contains { $0.hasPrefix("| `written_per_s` |") && $0.hasSuffix("| 0.5 |") })
    #expect(text.contains("One run of each side cannot separate a difference from chance"))
    for word in ["better |", "worse |", "✗ ", "\\~"] { #expect(!text.contains(word), "\(word)") }
    var old = other
    old.measuredBy = nil
    let mixed = self.text(RunReport(Self.run, baseline: old))
    #expect(mixed.contains("apnscope 0.2.0 or later (this run)") && mixed.contains("apnscope 0.1.0 (baseline)"))
    #expect(!text.contains("computed differently"))
  }

  @Test("The interval of the rate is that of the bins in the measured phase, within this run")
  func interval() {
    var run = Self.run
    run.rates.acceptedPerS = run.rates.writtenPerS
    let text = text(RunReport(run))
    #expect(text.contains("| 95 % interval within this run |"))
    #expect(text.contains("batch means of 300 times of 100 ms"))
    let names = text.split(separator: "\n").filter { $0.hasPrefix("|") && $0.contains("± ") }.compactMap { row in
      row.split(separator: "|").first.map { $0.dropFirst().dropLast() }
    }
    #expect(
      names == [
        "Written per second", "Accepted per second", "Written per second and connection",
      ])
    // 1/x of the ends is no ±.
    let campaign = text.split(separator: "\n").first { $0.hasPrefix("| A campaign of a million takes |") }
    #expect(campaign?.contains(" to ") == true, "\(campaign ?? "")")
    // What is lost varies by more than the rate.
    #expect(self.text(RunReport(Self.run)).contains("/s** | – | the accepted part of that; losses exceed"))
    run.rates.basis = .measuredAndDrain
    #expect(self.text(RunReport(run)).contains("/s** | – | over the measured phase and the drain"))
    // The last two of three phases of ten seconds are not measured.
    var phases = run
    phases.phases = [RunPhase.measured, .drain].map { name in
      var phase = RunResult.Phase()
      (phase.name, phase.seconds) = (name, name == .measured ? 10 : 20)
      return phase
    }
    phases.measuredS = 10
    #expect(self.text(RunReport(phases)).contains("| – | 10 s are too short for an interval, which takes 16 s |"))
    for index in phases.bins?.written.indices ?? 0..<0 { phases.bins?.written[index] = 100 + index }
    phases.phases[0].seconds = 30
    #expect(self.text(RunReport(phases)).contains("| – | no interval: the rate drifts through the phase |"))
    #expect(self.text(RunReport(phases)).contains("The rate never settled (MSER-5)"))
    phases.bins = nil
    #expect(self.text(RunReport(phases)).contains("| – | no interval: the result is of a version that kept no times"))
  }

  @Test("A rate that settles in the measured phase names the warm-up that leaves it out, with that of the plan")
  func settles() {
    var run = Self.run
    run.plan["warm_up"] = .text("1500ms")
    for index in 0..<30 { run.bins?.written[index] = 100 + 10 * index }
    let text = text(RunReport(run))
    #expect(text.contains("The rate settled 3 s into the measured phase (MSER-5)"), "\(text)")
    #expect(text.contains("`--warm-up 5s`"))
  }

  @Test(
    "Percentiles and means of what comes in bursts have no interval; the seconds' p99 has one, when there are enough")
  func bursts() {
    let text = text(RunReport(Self.run))
    for name in [
      "Send lag p50", "Send lag p99", "Send lag p99.9", "An error discards", "An error stops a connection for",
    ] {
      let row = text.split(separator: "\n").first { $0.hasPrefix("| \(name) |") }
      #expect(row?.contains("| – |") == true, "\(name): \(row ?? "missing")")
    }
    func ofSeconds(_ report: RunReport) -> Substring? {
      self.text(report).split(separator: "\n").first { $0.hasPrefix("| Send lag p99 of a second, median |") }
    }
    #expect(ofSeconds(RunReport(Self.run))?.contains(" ms to ") == true)
    let short = RunReport(syntheticRun(seconds: 20, connections: 4))
    #expect(ofSeconds(short)?.contains("| – | of 20 seconds: too short for an interval") == true)
  }

  @Test("A run whose batches differ has the curve of their cost; one whose do not says so, with its mean")
  func batchCost() {
    // Its seconds tell F; V might as well be 0, so nothing is concluded.
    let fitted = text(RunReport(Self.run))
    #expect(fitted.contains("- F, a write: ") && !fitted.contains("larger batches can save"))
    var run = Self.run
    for index in run.series.indices {
      let writes = max(1, run.series[index].written / (1 + index % 8))
      run.series[index].writes = writes
      run.series[index].cpu = Double(writes) * 12e-6 + Double(run.series[index].written) * 1.5e-6
    }
    let clear = text(RunReport(run))
    #expect(clear.contains("- F, a write: 12") && clear.contains("larger batches can save"))
    for index in run.series.indices { run.series[index].cpu = index % 2 == 0 ? 0.1 : 0.9 }
    let unclear = text(RunReport(run))
    #expect(unclear.contains("F and V are not shown: R² is 0") && !unclear.contains("- F, a write: "))
    run = Self.run
    for index in run.series.indices { run.series[index].writes = run.series[index].written / 4 }
    let alike = text(RunReport(run))
    #expect(
      alike.contains("Every second had 4 per write") && alike.contains("with a mean of 4 notifications per write"))
    #expect(!alike.contains("- F, a write: "))
    // A document from before writes were told of each second.
    for index in run.series.indices { run.series[index].writes = nil }
    let old = RunReport(run).page
    #expect(old.markdown().text.contains("Processor time for each notification"))
    #expect(!old.charts.contains { $0.title.hasPrefix("Processor time") })
  }

  @Test("Stages that change the rate have a mean without an interval, and are not told to settle")
  func stages() {
    func text(_ stages: [String]) -> String {
      var run = Self.run
      run.plan["rate"] = nil
      run.plan["stage"] = .list(stages)
      return self.text(RunReport(run))
    }
    let varying = text(["10s:500.0..500.0/s", "20s:500.0..9000.0/s"])
    #expect(varying.contains("| Written per second | **5,001/s** | – | the mean of all stages"))
    #expect(varying.contains("asked: 500 to 9,000/s") && varying.contains("Request more with `--stage`"))
    #expect(!varying.contains("settle"))
    let even = text(["30s:5000.0..5000.0/s"])
    #expect(even.contains("asked: 5,000/s") && !even.contains("the mean of all stages"))
    #expect(text(["nonsense", "..:/s"]).contains("asked: 2 stages"))
  }

  @Test("Of stages only what was measured counts: a ramp in the warm-up changes nothing")
  func measuredStages() {
    func text(_ stages: [String], warmUp: String, length: String) -> String {
      var run = Self.run
      run.plan["rate"] = nil
      run.plan["stage"] = .list(stages)
      (run.plan["warm_up"], run.plan["for"]) = (.text(warmUp), .text(length))
      return self.text(RunReport(run))
    }
    let (ramp, plateau) = ("1s:0.0..2000.0/s", "10s:2000.0..2000.0/s")
    let steady = text([ramp, plateau], warmUp: "1s", length: "10s")
    #expect(steady.contains("asked: 2,000/s;") && steady.contains("batch means of"))
    // Half of the ramp is measured, or a fall behind the plateau.
    #expect(text([ramp, plateau], warmUp: "500ms", length: "10500ms").contains("asked: 1,000 to 2,000/s;"))
    let falling = text([ramp, plateau, "1s:2000.0..0.0/s"], warmUp: "1s", length: "11s")
    #expect(falling.contains("asked: 0 to 2,000/s;") && !falling.contains("batch means of"))
    #expect(
      text([ramp, plateau, "1s:2000.0..0.0/s"], warmUp: "1000000us", length: "10s").contains("asked: 2,000/s;"))
    // Times that cannot be read leave nothing out.
    #expect(text([ramp, plateau], warmUp: "soon", length: "10 apples").contains("asked: 0 to 2,000/s;"))
  }

  @Test("A replay is told of as one: its pace, what changes it, and that its own rate has no interval")
  func replays() {
    func text(_ speed: RunResult.PlanValue?) -> String {
      var run = Self.run
      (run.plan["rate"], run.plan["replay"], run.plan["speed"]) = (nil, .text("a.jsonl"), speed)
      for index in run.series.indices { run.series[index].backlog = 0 }
      return self.text(RunReport(run))
    }
    for speed in [.text("1.0"), .number(1), nil] as [RunResult.PlanValue?] {
      let recorded = text(speed)
      #expect(recorded.hasPrefix("# Load run: as recorded over 4 connections"))
      #expect(recorded.contains("asked: as recorded;") && recorded.contains("There was never a backlog"))
      #expect(recorded.contains("Request more with `--speed`, or for all that is taken with `--speed max`."))
      #expect(recorded.contains("| – | the mean of the recording, whose own rate changes, so it has no interval"))
      #expect(!recorded.contains("settle") && !recorded.contains("`--rate`"))
    }
    #expect(text(.text("0.5")).contains("asked: 0.5 times as fast as recorded;"))
    let fast = text(.text("max"))
    #expect(fast.contains("asked: a recording as fast as taken;") && fast.contains("batch means of"))
    #expect(!fast.contains("Request more") && !fast.contains("never a backlog"))
  }

  @Test("A merged result is not measured by the rate and the connections of one of its parts")
  func merged() throws {
    var parts: [RunResult.Part] = []
    for number in 1...4 {
      var run = Self.run
      run.plan["segment"] = .text("\(number)/4")
      parts.append(.init("part \(number)", run))
    }
    #expect(text(RunReport(parts[0].result)).contains("asked: 5,000/s; over 30 s"))
    for count in 2...4 {
      let merged = text(RunReport(try RunResult.merging(Array(parts.prefix(count)))))
      // The plan of the whole, and of what is there of it.
      let title = count == 4 ? " from 4 segments" : ""
      let which = count == 4 ? "" : "\(count) of 4 segments of "
      #expect(merged.hasPrefix("# Load run: \(which)20,000/s over 16 connections for 30s\(title)"))
      #expect(merged.contains("asked: \(5 * count),000/s; over 30 s"))
      #expect(merged.contains("\n## Segments\n") && merged.contains("2/4"))
    }
    // Parts that were not to send the same have no plan together.
    parts[1].result.plan["rate"] = .text("4000.0/s")
    let apart = text(RunReport(try RunResult.merging(parts)))
    #expect(!apart.contains("asked:") && !apart.contains("Written per second and connection"))
    #expect(apart.hasPrefix("# Load run: 5,000/s over 4 connections for 30s in the first of its segments"))
    // A segment of a whole has its share of the plan.
    var divided = parts[2].result
    (divided.plan["of_whole"], divided.plan["rate"]) = (.flag(true), .text("20000.0/s"))
    let one = text(RunReport(divided))
    #expect(one.hasPrefix("# Load run: segment 3/4 of 20,000/s over 4 connections for 30s"))
    #expect(one.contains("asked: 5,000/s; over 30 s") && !one.contains("## Segments"))
  }

  @Test("What the chart of causes leaves out is said, and documents that do not tell causes have none")
  func causes() {
    let chart = RunReport(Self.run).page.charts.first { $0.title == "Connections opened, and closed by cause" }
    let shown = chart?.marks.first { $0.name == "rejected" }?.points.reduce(0) { $0 + $1.y }
    #expect(shown == Double(Self.run.connections.closed[.rejected] ?? 0))
    #expect(text(RunReport(Self.run)).contains("4 more were closed after the last whole second"))
    var old = Self.run
    for index in old.series.indices { old.series[index].closedByCause = nil }
    #expect(!RunReport(old).page.charts.contains { $0.title == "Connections opened, and closed by cause" })
    // Nor a merged one with some of them: the bars would be of the others alone.
    old.series[29].closedByCause = Self.run.series[29].closedByCause
    old.series[28].closedByCause = [.rejected: 1]
    let charts = RunReport(old).page.charts.map(\.title)
    #expect(charts.contains("Connections opened and closed"))
    #expect(!charts.contains("Connections opened, and closed by cause"))
  }

  @Test("Hostile text in any part of a result stays text")
  func hostile() {
    let bad = "<script>x</script>|`\n"
    var run = Self.run
    run.environment.host = bad
    run.environment.command = ["apnscope", bad, "it's"]
    run.plan[bad] = .text(bad)
    run.plan["for"] = .text(bad)
    run.warnings = [bad]
    run.binary.errorResponses[bad] = 3
    run.connections.closed.byName[bad] = 3
    run.batches.flushReasons.byName[bad] = 3
    run.series[0].closedByCause = NamedCounts(byName: [bad: 3])
    run.verdict.thresholds = [.init(expression: bad, value: 1, passed: false)]
    run.verdict.invariants = [.init(bad, holds: false, detail: bad)]
    run.series[0].errorsByStatus[bad] = 3
    let report = RunReport(run, ledger: ledger(of: run), baseline: Self.run, command: [bad])
    let html = report.page.html
    #expect(html.split(separator: "<script").count == 2, "the page's own")
    #expect(report.page.charts.allSatisfy { problem(inXML: $0.svg) == nil })
    #expect(html.contains("&#39;it&#39;\\&#39;&#39;s&#39;"), "quoted as the shell wants it")
  }

  @Test("Counts that no run can have make a report too")
  func absurd() {
    var run = Self.run
    run.binary.errorResponses = ["8": .max, "2": .max]
    run.batches.flushReasons = [.full: .max, .idle: .max]
    run.sendings.accepted = .min
    run.sendings.binary.markers = .max
    run.sendings.unknown = .max
    run.measuredS = .infinity
    run.rates.writtenPerS = .nan
    run.phases[0].seconds = -.infinity
    run.plan["connections"] = .number(.infinity)
    run.series[3].tS = .infinity
    run.series[4].tS = -1e300
    run.series[5].written = .max
    run.series[6].written = .min
    run.series[7].errors = .max
    run.series[8].errors = .max
    run.series[9].cpu = .nan
    run.series[10].writes = .max
    run.series[11].writes = .min
    run.series[12].closedByCause = [.rejected: .max]
    run.series[13].closedByCause = [.rejected: .max, .local: .min]
    run.connections.closed = [.rejected: .max, .local: .max, .idle: .min]
    run.timeline.spans.append(.init(connection: .max, .up, fromS: .nan, toS: .infinity))
    var ledger = ledger(of: Self.run)
    ledger.gateway.rejected = ["1": .max, "2": .max]
    ledger.gateway.accepted = .min
    #expect(RunReport(run, ledger: ledger, baseline: run).page.html.contains("</html>"))
    #expect(RunReport(Self.run, baseline: run).page.html.contains("</html>"))
  }

  /// A whole run of the tests has an hour over 500.
  @Test("A long run over many connections makes a page below 3 MB that shows every connection")
  func large() {
    let (seconds, connections) = TestRun.isWhole ? (3_600, 500) : (1_200, 100)
    var run = syntheticRun(seconds: seconds, connections: connections)
    // Also those that live in fits and starts.
    for connection in 0..<connections {
      for life in 0..<20 {
        let at = Double(life * seconds) / 20 + Double(connection) / 10
        run.timeline.spans.append(.init(connection: connection, .handshake, fromS: at, toS: at + 0.002))
      }
    }
    let page = RunReport(run).page
    #expect(page.html.utf8.count < 3_000_000, "\(page.html.utf8.count)")
    #expect(page.markdown().charts.map(\.text.utf8.count).reduce(0, +) < 3_000_000)
    let strip = page.charts.first { $0.strip != nil }
    #expect(strip?.strip?.rows.count == connections)
  }
}
