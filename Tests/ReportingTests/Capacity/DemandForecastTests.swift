import Measurement
import Reporting
import Testing

/// A demand over a capacity that was searched, and storms: what the trials prove.
@Suite("Forecasts from trials")
struct DemandForecastTests {
  /// 9,000/s over one connection, held for 100 s.
  private func document(peak: Double, ending: CapacityDocument.Ending = .found) -> CapacityDocument {
    var document = CapacityAnalysisTests.document
    document.ending = ending
    document.sustainedRange = SustainedRange(lowerPerS: 8_800, upperPerS: 10_100)
    document.demand = Demand(
      steps: [(fromS: 0, perS: 100), (fromS: 20, perS: peak), (fromS: 30, perS: 100)], endS: 60, source: "d",
      origin: .table)
    return document
  }

  private func forecast(_ document: CapacityDocument) throws -> DemandForecast {
    try #require(CapacityAnalysis(document).demand)
  }

  @Test("It fits below the range, does not above it, and between the ends nothing is proven")
  func verdicts() throws {
    for (peak, verdict) in [
      (8_799.0, DemandForecast.Verdict.fits), (8_800, .fits), (8_801, .uncertain), (10_100, .uncertain),
      (10_101, .late),
    ] {
      #expect(try forecast(document(peak: peak)).verdict == verdict, "\(peak)")
    }
    let late = try forecast(document(peak: 18_000))
    #expect(late.peakPerS == 18_000 && late.peakAtS == 20 && late.headroom == -1)
    #expect(late.atSustained.largest == 90_000 && late.atSustained.longestDelayS == 10)
    #expect(try #require(late.atLower).largest == 92_000 && #require(late.atUpper).largest == 79_000)
    #expect(late.notifications == 3_000 + 180_000 + 2_000 && late.meanPerS == 185_000.0 / 60)
    #expect(late.sentence.hasPrefix("it does not fit: up to 90,000 notifications wait, at most 10 s each"))
    let fits = try forecast(document(peak: 4_500))
    #expect(fits.headroom == 0.5 && fits.sentence == "it fits: the peak, 4,500/s, leaves 50 % of the sustained rate")
    #expect(fits.atSustained.largest == 0 && fits.atSustained.lastOutS == 60)
  }

  @Test("A search that was not completed proves nothing, and one that the generator limited nothing above its rate")
  func doubts() throws {
    for ending in [CapacityDocument.Ending.unsettled, .interrupted] {
      for peak in [100.0, 20_000] {
        let forecast = try forecast(document(peak: peak, ending: ending))
        #expect(forecast.verdict == .uncertain && forecast.sentence.contains("the search was not completed"))
      }
    }
    var limited = document(peak: 8_800, ending: .generatorLimited)
    limited.sustainedRange?.upperPerS = nil
    #expect(try forecast(limited).verdict == .fits)
    limited.demand?.factor = 3
    let above = try forecast(limited)
    #expect(above.verdict == .uncertain && above.sentence.contains("the generator was too slow"))
    #expect(above.atUpper == nil)
    // A trial as fast as possible took 10,000/s, and the search says no more than 9,500/s.
    var contradicted = document(peak: 9_900)
    contradicted.sustainedRange?.upperPerS = 9_500
    #expect(try forecast(contradicted).sentence.contains("trial 1 took 10,000/s as fast as possible"))
    contradicted.demand?.factor = 1.2
    #expect(try forecast(contradicted).verdict == .late)
    contradicted.sustainedPerS = nil
    #expect(CapacityAnalysis(contradicted).demand == nil)
  }

  @Test("Without a range the sustained rate alone decides")
  func noRange() throws {
    var document = document(peak: 9_000)
    document.sustainedRange = nil
    #expect(try forecast(document).verdict == .fits)
    document.demand?.factor = 1.001
    #expect(try forecast(document).verdict == .late)
    #expect(try forecast(document).atLower == nil)
  }

  @Test("That a rate lasts, and what more errors cost, is assumed, and said")
  func assumptions() throws {
    var document = document(peak: 1_000)
    // Trials of 100 s, a demand of 60 s.
    #expect(try !forecast(document).notes.contains { $0.contains("is assumed") })
    document.demand = Demand(
      steps: [(fromS: 0, perS: 100)], endS: 101, source: "d", origin: .inspection, errorShare: 0.01,
      notes: ["of the file"])
    let notes = try forecast(document).notes
    #expect(notes.contains { $0.contains("held the rate for 100 s, the demand lasts 101 s") })
    #expect(notes.contains { $0.hasPrefix("1 % of the demand was rejected") })
    #expect(notes.last == "of the file")
    // 1 % is what a trial may have.
    #expect(try forecast(document).verdict == .fits)
    document.settings.errorLimit = 0.009
    let doubtful = try forecast(document)
    #expect(
      doubtful.verdict == .uncertain && doubtful.sentence.contains("1 % of it was rejected"), "\(doubtful.sentence)")
    document.demand?.factor = 1_000
    #expect(try forecast(document).verdict == .late)
  }

  // MARK: connections

  @Test("How many connections are measured, between measured ones, or predicted; and without a law none beyond")
  func connections() throws {
    var document = document(peak: 6_000)
    #expect(try forecast(document).connections == 1 && forecast(document).connectionsBasis == .measured)
    document.demand?.factor = 4
    let between = try forecast(document)
    #expect(try #require(between.connections) > 1 && between.connectionsBasis == .interpolated)
    // One connection and no other was measured.
    document.trials.removeAll { $0.purpose == .connections || $0.purpose == .check }
    let unknown = try forecast(document)
    #expect(unknown.connections == nil && unknown.connectionsBasis == nil)
    #expect(unknown.notes.contains { $0.contains("how many it needs is unknown (see --connections-sweep)") })
    document.target = .init(notifications: 24_000_000, withinS: 1_000)
    let plan = try #require(CapacityAnalysis(document).plan)
    #expect(plan.cases.allSatisfy { $0.connections == nil && $0.connectionsBasis == nil && $0.hosts == nil })
    #expect(plan.notes.contains { $0.contains("24,000/s is more than any trial took (10,000/s)") })
    let text = CapacitySummary(document).text
    #expect(text.contains("within 16.7 min: 24,000/s, no trial proves how many connections"), "\(text)")
    #expect(text.contains("24,000,000 take 44.4 min at that rate, which a trial held for 100 s"), "\(text)")
  }

  @Test("Rates beyond the shares of errors that were tried are predicted, and hosts need a measured cost")
  func evidence() throws {
    var document = CapacityAnalysisTests.document
    document.target = .init(notifications: 1_000, withinS: 1)
    let bases = try #require(CapacityAnalysis(document).plan).cases.map(\.basis)
    #expect(bases == [.measured, .interpolated, .interpolated, .interpolated, .interpolated])
    #expect(CapacityAnalysis(document).plan?.cases[0].hosts == 2)
    document.trials.removeAll { $0.faultShare > 2e-4 }
    let plan = try #require(CapacityAnalysis(document).plan)
    #expect(plan.cases.map(\.basis).last == .extrapolated && plan.cases.count == 5)
    #expect(
      plan.notes.contains { $0.contains("at a share of errors of 0.1 % and more are predicted") }, "\(plan.notes)")
    for index in document.trials.indices { document.trials[index].cpuPerNotificationUs = nil }
    #expect(CapacityAnalysis(document).plan?.cases[0].hosts == nil)
    (document.sustainedPerS, document.ending) = (nil, .nothingPassed)
    #expect(CapacitySummary(document).text.contains("target         no answer: no rate passed"))
  }

  // MARK: storms

  private func storm(_ connections: Int, _ seconds: Double) -> CapacityTrial {
    var trial = CapacityAnalysisTests.trial(.storm, rate: 1, connections: connections)
    trial.number = 99
    var opening = CapacityTrial.Opening()
    opening.seconds = seconds
    (opening.opened, opening.up) = (connections, connections)
    (opening.handshakeP50Us, opening.handshakeP99Us) = (20_000, 50_000)
    trial.opening = opening
    return trial
  }

  @Test("A storm takes what a trial shows, its part of that for fewer, and in proportion for up to twice as many")
  func storms() throws {
    var document = CapacityAnalysisTests.document
    #expect(CapacityAnalysis(document).storms == nil)
    document.trials += [storm(100, 2), storm(1_000, 10)]
    var storms = try #require(CapacityAnalysis(document).storms)
    #expect(storms.map(\.connections) == [100, 1_000] && storms.map(\.seconds) == [2, 10])
    #expect(storms.allSatisfy { $0.basis == .measured && $0.notes.isEmpty && $0.trial == 99 })
    #expect(storms[1].handshakesPerS == 100 && storms[1].handshakeP99Us == 50_000)
    document.storms = [50, 500, 2_000, 2_001]
    storms = try #require(CapacityAnalysis(document).storms)
    #expect(storms.map(\.seconds) == [1, 5, 20, nil])
    #expect(storms.map(\.basis) == [.interpolated, .interpolated, .extrapolated, nil])
    #expect(storms[1].notes == ["no trial opened so few: the time is at most that of 1,000, 10 s"])
    #expect(storms[3].notes.first?.contains("no prediction is made for more than twice as many") == true)
    #expect(storms[3].trial == nil && storms[3].handshakesPerS == nil)
    // Numbers of a document may be any.
    document.storms = [.max, .min, 0, -1]
    #expect(CapacityAnalysis(document).storms?.allSatisfy { $0.seconds == nil } == true)
    var huge = document
    huge.trials = [storm(.max, 10)]
    huge.storms = [.max]
    #expect(CapacityAnalysis(huge).storms?.first?.seconds == 10)
    // It is a trial of its own kind: laws and doubts do not see it.
    var without = document
    without.trials.removeAll { $0.purpose == .storm }
    #expect(CapacityAnalysis(document).scalability == CapacityAnalysis(without).scalability)
    #expect(CapacityAnalysis(document).goodput == CapacityAnalysis(without).goodput)
    document.sustainedRange = SustainedRange(lowerPerS: 8_000, upperPerS: 10_100)
    document.trials.append(CapacityAnalysisTests.trial(.storm, rate: 20_000))
    #expect(CapacityAnalysis(document).contradiction == nil)
  }

  @Test("A storm that was not one proves no time")
  func noStorm() throws {
    var document = CapacityAnalysisTests.document
    document.storms = [100]
    func answer(_ change: (inout CapacityTrial.Opening) -> Void) throws -> StormForecast {
      var trial = storm(100, 2)
      if var opening = trial.opening {
        change(&opening)
        trial.opening = opening
      }
      document.trials = [trial]
      return try #require(CapacityAnalysis(document).storms?.first)
    }
    #expect(try answer { _ in }.seconds == 2)
    #expect(
      try answer { $0.opened = 99 }.notes == ["not all connections were back: 99 of 100 after 2 s, 0 failed attempts"])
    #expect(try answer { $0.up = 99 }.seconds == nil)
    #expect(try answer { $0.resumed = 1 }.seconds == nil)
    #expect(try answer { $0.staggerS = 0.1 }.seconds == nil)
    #expect(try answer { $0.failed = 3 }.notes == ["3 attempts failed in that trial, and its back-off is in the time"])
    // The last try of several counts, and what disturbed it is said.
    var again = storm(100, 3)
    (again.number, again.reasons) = (100, ["the generator waited"])
    document.trials = [storm(100, 2), again]
    let last = try #require(CapacityAnalysis(document).storms?.first)
    #expect(last.seconds == 3 && last.trial == 100 && last.notes.first?.hasPrefix("other processes disturbed") == true)
    #expect(try answer { $0.cpuCores = 1.9 }.notes.first?.contains("the gateway may be faster") == true)
    document.trials = []
    #expect(
      CapacityAnalysis(document).storms?.first?.notes == [
        "no trial opened connections at once: 'apnscope capacity --storm' makes one"
      ])
  }

  @Test("A storm at the peak leaves what was due meanwhile, and is over when that has left")
  func stormAtPeak() throws {
    var document = document(peak: 4_500)
    document.trials.append(storm(10, 2))
    let storm = try #require(try forecast(document).storm)
    // 2 s of 4,500/s, and 4,500/s of room.
    #expect(storm.seconds == 2 && storm.largest == 9_000 && storm.overAfterS == 4 && storm.basis == .measured)
  }

  @Test("What a file is named and says is shown without control characters")
  func hostile() throws {
    var document = CapacityAnalysisTests.document
    document.demand = Demand(
      steps: [(fromS: 0, perS: 100)], endS: 1, source: "a\u{1B}[31m", origin: .table, notes: ["b\u{1B}[2J"])
    let text = CapacitySummary(document).text
    #expect(text.contains("a\\u001b[31m") && text.contains("! b\\u001b[2J") && !text.contains("\u{1B}"), "\(text)")
  }

  // MARK: the page

  @Test("The page has the verdict, the demand over the capacity, and the backlog if there is one")
  func page() throws {
    var document = document(peak: 18_000)
    document.trials.append(storm(10, 2))
    let page = document.page(footer: "")
    #expect(page.sections.map(\.title).prefix(4) == ["Result", "Demand", "Reconnect storms", "Search"])
    #expect(page.charts.map(\.title).prefix(3) == ["Trials of the search", "Demand over capacity", "Backlog"])
    #expect(page.charts.allSatisfy { !$0.isEmpty })
    #expect(page.html.contains("It does not fit: up to 90,000") && !page.html.contains("nan"))
    let fits = self.document(peak: 1_000).page(footer: "")
    #expect(
      fits.charts.map(\.title).prefix(2).last == "Demand over capacity"
        && !fits.charts.contains { $0.title == "Backlog" })
    document.sustainedPerS = nil
    #expect(document.page(footer: "").html.contains("nothing is known about the demand"))
  }
}
