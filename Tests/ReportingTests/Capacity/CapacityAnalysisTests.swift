import Foundation
import Measurement
import Reporting
import Testing

@Suite("Capacity analysis")
struct CapacityAnalysisTests {
  /// A gateway whose laws are known, and the trials that would be made of it.
  private static let law = GoodputLaw(streamingRate: 10_000, discarded: 40, downtime: 0.02)!

  static func trial(
    _ purpose: CapacityTrial.Purpose, rate: Double, offered: Double? = nil, connections: Int = 1, share: Double = 0,
    cost: Double = 2, batch: Double = 60
  ) -> CapacityTrial {
    var trial = CapacityTrial()
    trial.purpose = purpose
    trial.connections = connections
    trial.offeredPerS = offered
    trial.verdict = offered == nil ? .measured : .passed
    trial.faultShare = share
    (trial.settleS, trial.measuredS) = (0, 100)
    trial.acceptedPerS = rate
    trial.notifications.accepted = Int(rate * 100)
    trial.sendings.accepted = trial.notifications.accepted
    trial.errors = Int((share / (1 - share) * rate * 100).rounded())
    trial.sendings.rejected = trial.errors
    trial.sendings.discarded = trial.errors * 40
    trial.sendings.written = trial.sendings.accepted + trial.sendings.rejected + trial.sendings.discarded
    trial.writtenBytes = trial.sendings.written * 200
    if trial.errors > 0 { (trial.lossMean, trial.recoverMeanMs) = (40, 20) }
    trial.cpuPerNotificationUs = cost
    trial.perWriteMean = batch
    trial.availableCores = 2
    return trial
  }

  private static func scaled(_ count: Double) -> Double {
    10_000 * count / (1 + 0.05 * (count - 1) + 0.002 * count * (count - 1))
  }

  static var document: CapacityDocument {
    var document = CapacityDocument()
    document.started = "2026-11-21T10:00:00.000Z"
    document.ending = .found
    document.sustainedPerS = 9_000
    document.environment.cores = 2
    document.trials = [trial(.burst, rate: 10_000), trial(.search, rate: 9_000, offered: 9_000)]
    for count in [1, 2, 4, 8, 16, 32] {
      document.trials.append(trial(.connections, rate: scaled(Double(count)), connections: count))
    }
    document.trials.append(trial(.check, rate: scaled(48), connections: 48))
    for size in [1.0, 4, 16, 64] {
      document.trials.append(trial(.batch, rate: 9_000, cost: 3.2 / size + 0.2, batch: size))
    }
    for share in [0, 1e-4, 1e-3] {
      document.trials.append(trial(.errors, rate: law.goodput(errorShare: share), share: share))
    }
    for index in document.trials.indices { document.trials[index].number = index + 1 }
    return document
  }

  @Test("Trials that follow the laws give the laws, and their checks come out")
  func laws() throws {
    let analysis = CapacityAnalysis(Self.document)
    let scalability = try #require(analysis.scalability)
    #expect(abs(scalability.alpha - 0.05) < 1e-4 && abs(scalability.beta - 0.002) < 1e-5)
    let check = try #require(scalability.check)
    #expect(check.at == 48 && abs(check.deviation) < 1e-3)
    let goodput = try #require(analysis.goodput)
    #expect(abs(goodput.streamingPerS - 10_000) < 1)
    #expect(goodput.discardedPerError == 40 && abs(goodput.downtimeMs - 20) < 0.2)
    let errors = try #require(goodput.check)
    #expect(abs(errors.at - 1e-3) < 1e-5 && abs(errors.deviation) < 0.01)
    let batching = try #require(analysis.batching)
    #expect(abs(batching.perWriteUs - 3.2) < 1e-6 && abs(batching.perNotificationUs - 0.2) < 1e-6)
    #expect(analysis.warnings.isEmpty)
  }

  @Test("Processor time that was not measured is shown as such, and never as 0")
  func unmeasuredProcessor() {
    var trial = Self.trial(.search, rate: 9_000, offered: 9_000)
    #expect(CapacitySummary.line(trial).contains(", cpu unknown"))
    trial.cpuCores = 0.426
    #expect(CapacitySummary.line(trial).contains(", cpu 43 %"))
  }

  @Test("A campaign's arithmetic: 18 million in ten minutes at 9,000/s a connection")
  func campaign() throws {
    var document = Self.document
    document.target = .init(notifications: 18_000_000, withinS: 600)
    let plan = try #require(CapacityAnalysis(document).plan)
    #expect(plan.demandPerS == 30_000)
    let measured = plan.cases[0]
    #expect(abs(try #require(measured.secondsForTarget) - 18e6 / 9_000) < 1e-6)
    // The law over connections, sustained as 9 to 10, with 70 %: the first N with X(N)·0.63 ≥ 50,000.
    let needed = try #require(measured.connections)
    #expect(Self.scaled(Double(needed)) * 0.63 >= 30_000 * 0.999)
    #expect(Self.scaled(Double(needed - 1)) * 0.63 < 30_000)
    // 2 µs each on two cores at 70 %: 0.07 of a host, and one more.
    #expect(measured.hosts == 2)
    // 200 B, a TLS record's and TCP/IP's headers: 5 % more.
    #expect(abs(plan.networkBitsPerS / (30_000 * 200 * 8) - 1.0475) < 0.001)
    #expect(plan.cases.dropFirst().map(\.errorShare) == [1e-6, 1e-5, 1e-4, 1e-3])
    let dear = try #require(plan.cases.last)
    #expect(abs(dear.acceptedPerS - 9_000 * Self.law.goodput(errorShare: 1e-3) / 10_000) < 10)
    #expect(abs(dear.sendingsEach - 1.04) < 1e-9)
    #expect(abs(dear.reconnectsPerS - 30) < 1e-9)
    #expect(try #require(dear.connections) > needed)

    // Every connection and rate was tried.
    #expect(plan.notes.isEmpty)

    // More than the law gives anybody.
    document.target = .init(notifications: 300_000_000, withinS: 60)
    let impossible = try #require(CapacityAnalysis(document).plan)
    #expect(impossible.cases[0].connections == nil)
    #expect(impossible.notes.contains { $0.contains("no prediction is made") })
    #expect(impossible.notes.contains { $0.contains("5,000,000/s is more than any trial took") })
  }

  @Test("The first case is as it was measured, and no other is better")
  func measuredCase() throws {
    var document = Self.document
    var trial = Self.trial(.confirm, rate: 8_950, offered: 9_000, share: 5e-4)
    trial.sendings.written = 1_000_000
    document.trials.append(trial)
    let plan = try #require(CapacityAnalysis(document).plan)
    let measured = plan.cases[0]
    #expect(measured.acceptedPerS == 8_950 && measured.perConnectionPerS == 8_950)
    #expect(abs(measured.sendingsEach - 1_000_000.0 / 895_000) < 1e-9)
    #expect(abs(measured.reconnectsPerS - Double(trial.errors) / 100) < 1e-9)
    // With fewer errors than were measured the law would be faster.
    #expect(plan.cases.dropFirst().map(\.errorShare) == [1e-6, 1e-5, 1e-4, 1e-3])
    #expect(plan.cases[1...3].allSatisfy { $0.acceptedPerS == 8_950 })
    #expect(plan.cases[4].acceptedPerS < 8_950)
  }

  @Test("The goodput law predicts no more than trials of the same kind took")
  func ceiling() throws {
    var document = Self.document
    // Some errors came without any made on purpose: the line through both trials goes up to fewer.
    document.trials.removeAll { $0.offeredPerS == nil }
    var base = Self.trial(.errors, rate: 9_000, share: 2e-4)
    base.faultShare = 0
    document.trials += [base, Self.trial(.errors, rate: 7_000, share: 1e-3)]
    let (law, _) = try #require(CapacityAnalysis.goodputLaw(document.trials))
    #expect(law.streamingRate > 9_500 && law.ceiling == 9_000)
    for share in [0, 1e-9, 1e-5, 1e-4] {
      #expect(law.goodput(errorShare: share, connections: 1, cores: nil) == 9_000)
    }
    #expect(law.goodput(errorShare: 1e-3, connections: 1, cores: nil) < 7_100)
  }

  @Test("Connections that no trial had are said to be predicted")
  func predictedConnections() throws {
    var document = Self.document
    document.trials.removeAll { $0.connections > 8 }
    document.target = .init(notifications: 18_000_000, withinS: 400)
    let plan = try #require(CapacityAnalysis(document).plan)
    #expect(try #require(plan.cases[0].connections) > 8)
    #expect(plan.notes.contains { $0.contains("connections are predicted: no trial had more than 8") }, "\(plan.notes)")
  }

  @Test("Laws are shown with their errors, and F and V not when they explain too little")
  func errors() throws {
    var document = Self.document
    var analysis = CapacityAnalysis(document)
    #expect(analysis.scalability?.alphaHalfWidth != nil && analysis.batching?.perWriteHalfWidthUs != nil)
    #expect(analysis.batching?.notShown == nil)
    var html = document.page().html
    #expect(
      html.contains("± are 95 % intervals (Student&#39;s t)") || html.contains("± are 95 % intervals (Student's t)"))
    #expect(html.contains("F, a write") && html.contains("fastest with"))
    for (index, cost) in zip(document.trials.indices.filter { document.trials[$0].purpose == .batch }, [3, 2, 4, 3.0]) {
      document.trials[index].cpuPerNotificationUs = cost
    }
    analysis = CapacityAnalysis(document)
    #expect(analysis.batching?.notShown?.hasPrefix("F and V are not shown: R² is 0") == true)
    html = document.page().html
    #expect(html.contains("F and V are not shown") && !html.contains("F, a write"))
  }

  @Test("A document comes back as it was, with its analysis worked out again")
  func roundTrip() throws {
    var document = Self.document
    document.target = .init(notifications: 5, withinS: nil)
    document.plan = ["seed": .number(1)]
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    let data = try encoder.encode(document)
    let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    #expect(object["kind"] as? String == "capacity" && object["schema"] as? Int == 2)
    #expect((object["trials"] as? [[String: Any]])?.count == document.trials.count)
    let goodput = (object["analysis"] as? [String: Any])?["goodput"] as? [String: Any]
    #expect(goodput?["discarded_per_error"] as? Double == 40)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    #expect(try decoder.decode(CapacityDocument.self, from: data) == document)
    // A document of 0.1.0.
    var earlier = object
    earlier["campaign"] = earlier.removeValue(forKey: "target")
    earlier["schema"] = 1
    let old = try JSONSerialization.data(withJSONObject: earlier)
    #expect(try decoder.decode(CapacityDocument.self, from: old) == document)
  }

  @Test("Little is said of little: no trials, no errors, few points, nothing passed, all void")
  func little() throws {
    var document = CapacityDocument()
    var analysis = CapacityAnalysis(document)
    #expect(analysis.plan == nil && analysis.scalability == nil && analysis.goodput == nil && analysis.batching == nil)
    #expect(analysis.warnings.count == 1 && analysis.warnings[0].hasPrefix("it was interrupted"))
    #expect(document.conclusion == "it was interrupted before a rate had passed")
    document = Self.document
    document.trials.removeAll { $0.purpose == .errors || $0.connections > 4 }
    analysis = CapacityAnalysis(document)
    #expect(analysis.goodput == nil)
    #expect(analysis.plan?.cases.count == 1)
    #expect(analysis.plan?.notes.contains { $0.contains("no trial with intentional errors was run") } == true)
    #expect(analysis.warnings.contains { $0.contains("3 points") })
    for index in document.trials.indices { document.trials[index].verdict = .void }
    (document.ending, document.sustainedPerS) = (.nothingPassed, nil)
    analysis = CapacityAnalysis(document)
    #expect(analysis.plan == nil && analysis.scalability == nil)
    #expect(analysis.warnings.contains { $0.contains("are void") })
    #expect(document.page().html.contains("no rate passed"))
  }

  /// Of the sentence that the page begins with.
  private static func tone(of document: CapacityDocument) -> Tone? {
    guard case .callout(let tone, _) = document.page().sections.first?.blocks.first else { return nil }
    return tone
  }

  @Test("The rate stands with its range, and what took more than that makes it doubtful")
  func range() throws {
    var document = Self.document
    #expect(document.conclusion == "the gateway sustains 9,000/s over 1 connection; 3 % more failed")
    document.sustainedRange = SustainedRange(lowerPerS: 8_870.4, upperPerS: 10_010)
    #expect(
      document.conclusion == "the gateway sustains 9,000/s (8,870/s to 10,010/s) over 1 connection; 3 % more failed")
    // The burst over the same connection took 10,000/s.
    #expect(CapacityAnalysis(document).contradiction == nil)
    #expect(document.page().html.contains("found, 8,870/s to 10,010/s"))
    #expect(Self.tone(of: document) == .good)
    document.sustainedRange?.upperPerS = 9_990
    let analysis = CapacityAnalysis(document)
    #expect(analysis.contradiction?.trial == 1 && analysis.contradiction?.acceptedPerS == 10_000)
    #expect(
      analysis.warnings == [
        "trial 1 (burst) took 10,000/s over the same connections as fast as possible: the search's limit, 9,000/s, is doubtful"
      ])
    #expect(Self.tone(of: document) == .warning)
    // More connections, other batches and a trial that is void say nothing about it.
    document.trials[0].verdict = .void
    document.trials.removeAll { [.connections, .errors].contains($0.purpose) && $0.connections == 1 }
    #expect(CapacityAnalysis(document).contradiction == nil)
    document.sustainedRange?.upperPerS = nil
    document.ending = .generatorLimited
    #expect(
      document.conclusion
        == "the gateway sustains 9,000/s (8,870/s at least) over 1 connection; this generator cannot try more")
  }

  @Test("What was interrupted says so, and plans with the rate that is left and no other")
  func interrupted() throws {
    var document = Self.document
    document.ending = .interrupted
    document.trials.removeAll { $0.offeredPerS == nil && $0.purpose != .burst }
    var contradicted = Self.trial(.search, rate: 9_900, offered: 9_900)
    contradicted.writtenBytes *= 3
    document.trials.append(contradicted)
    var failed = Self.trial(.confirm, rate: 9_900, offered: 9_900)
    failed.verdict = .failed
    document.trials.append(failed)
    var cut = Self.trial(.search, rate: 9_500, offered: 9_500)
    (cut.verdict, cut.reasons) = (.void, [CapacityTrial.interruption])
    document.trials.append(cut)
    #expect(
      document.conclusion == "the gateway passed 9,000/s over 1 connection in a short trial; then it was interrupted")
    let analysis = CapacityAnalysis(document)
    // It was no want of processor time, and who was stopped is not told to sweep.
    #expect(!analysis.warnings.contains { $0.contains("void") })
    #expect(analysis.plan?.bytesEach == 200)
    #expect(analysis.plan?.notes == ["it was interrupted before a trial with errors, so the cost of errors is unknown"])
    #expect(document.page().html.contains("The gateway passed 9,000/s"))
    document.trials.append(Self.trial(.confirm, rate: 9_000, offered: 9_000))
    #expect(document.conclusion == "the gateway sustained 9,000/s over 1 connection; then it was interrupted")
    (document.ending, document.sustainedPerS) = (.unsettled, nil)
    #expect(document.conclusion == "no rate was found: trials ran out")
    #expect(CapacityAnalysis(document).warnings.contains { $0.contains("interrupted after the search") })
  }

  @Test("The page has the answer first, a chart of each law, and every trial")
  func page() throws {
    var document = Self.document
    document.target = .init(notifications: 30_000_000, withinS: 600)
    document.trials[1].reasons = ["<because>"]
    let page = document.page(footer: "made by a test")
    #expect(
      page.sections.map(\.title) == ["Result", "Search", "Connections", "Errors", "Batches", "All trials", "Set-up"])
    #expect(page.charts.count == 4 && page.charts.allSatisfy { !$0.isEmpty })
    guard case .table(let table) = page.sections[5].blocks.first else { return #expect(Bool(false), "no table") }
    #expect(table.rows.count == document.trials.count)
    let html = page.html
    #expect(html.contains("sustains 9,000/s over 1 connection") && html.contains("&lt;because&gt;"))
    #expect(html.contains("<tr class=\"note") && html.contains("<td colspan=\"11\">&lt;because&gt;</td>"))
    #expect(!html.contains("nan") && !html.contains("inf<"))
    let (text, charts) = page.markdown()
    #expect(charts.count == 4 && text.contains("30,000,000 take"))
  }
}
