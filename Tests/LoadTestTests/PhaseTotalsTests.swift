import Measurement
import TestSupport
import Testing

@testable import LoadTest

@Suite("Books of phases")
struct PhaseTotalsTests {
  @Test("A connection's positions are each of one phase, of the one that was on when they were written")
  func marks() {
    var marks = PhaseMarks(in: .connect)
    marks.begin(.warmUp, at: 0)
    marks.begin(.measured, at: 10)
    #expect(marks.counts(of: 0..<25).map(\.count) == [10, 15])
    marks.begin(.drain, at: 25)
    #expect((0..<30).map { marks.phase(of: $0) }.filter { $0 == .measured }.count == 15)
    #expect(
      marks.counts(of: 5..<27).map { "\($0.phase.rawValue) \($0.count)" } == ["warm-up 5", "measured 15", "drain 2"])
    #expect(marks.counts(of: 12..<12).isEmpty)
    // One that is opened later carries nothing of before.
    #expect(PhaseMarks(in: .measured).counts(of: 0..<7).map { "\($0.phase.rawValue) \($0.count)" } == ["measured 7"])
    // A phase that was left out has nothing.
    var short = PhaseMarks(in: .connect)
    short.begin(.drain, at: 4)
    #expect(short.counts(of: 0..<6).map { "\($0.phase.rawValue) \($0.count)" } == ["connect 4", "drain 2"])
  }

  @Test("Bins count each write once, in twice as long bins when there would be too many")
  func bins() {
    var (bins, other) = (WriteBins(most: 8), WriteBins(most: 8))
    for tenth in 0..<8 { bins.add(tenth, at: Int64(tenth) * 100_000_000 + 99_999_999) }
    #expect(bins.counts == Array(0..<8) && bins.length == 100_000_000)
    other.add(5, at: 1_700_000_000)
    #expect(other.length == 400_000_000 && other.counts == [0, 0, 0, 0, 5])
    bins.merge(other)
    #expect(bins.length == 400_000_000 && bins.counts == [6, 22, 0, 0, 5])
    bins.add(1, at: -1)
    #expect(bins.counts.reduce(0, +) == 33)
  }

  @Test("A loop that comes late has stood still, unless it was busy")
  func stalls() {
    var watch = StallWatch(shortest: 10_000_000)
    #expect(watch.tick(0, processor: 0, interval: 1_000_000) == 0)
    #expect(watch.tick(1_000_000, processor: 50_000, interval: 1_000_000) == 0)
    // Late by 40 ms, of which it ran 35.
    #expect(watch.tick(42_000_000, processor: 35_050_000, interval: 1_000_000) == 40_000_000)
    #expect(watch.take() == [])
    #expect(watch.tick(93_000_000, processor: 36_050_000, interval: 1_000_000) == 50_000_000)
    #expect(watch.take() == [.init(from: 44_000_000, to: 93_000_000)] && watch.take() == [])
  }

  @Test("Stalls of several loops at one time are one; the measured phase has its part of them")
  func stallBooks() {
    let ms: Int64 = 1_000_000
    var books = StallRecorder(began: 0)
    books.note([.init(from: 100 * ms, to: 120 * ms)])
    books.measured = (1_000 * ms, 3_000 * ms)
    books.note([.init(from: 900 * ms, to: 1_100 * ms), .init(from: 950 * ms, to: 1_150 * ms)])
    books.note([.init(from: 1_100 * ms, to: 1_200 * ms), .init(from: 2_990 * ms, to: 3_050 * ms)])
    books.note([.init(from: 4_000 * ms, to: 4_100 * ms)])
    #expect(books.result.listed.map(\.ms) == [20, 300, 60, 100])
    #expect(books.result.listed.map(\.tS) == [0.1, 0.9, 2.99, 4])
    #expect(books.result.count == 2 && books.result.longestMs == 200 && abs(books.result.totalS - 0.21) < 1e-9)
    var series = (0..<5).map { second in
      var sample = RunResult.Sample()
      sample.tS = Double(second)
      return sample
    }
    books.mark(&series, until: 5_000 * ms)
    #expect(series.map { $0.stalledMs ?? 0 } == [120, 200, 10, 50, 100])
  }

  @Test("What was due while a loop did not look is its own; what waits while it looks is not")
  func pauses() {
    let ms: Int64 = 1_000_000
    var pauses = LoopPauses()
    for time in 0...100 { pauses.notePoll(at: Int64(time) * ms) }
    #expect(pauses.share(from: 50 * ms, to: 100 * ms) == 0)
    // Due since the look before: it is written as soon as it is seen.
    #expect(pauses.share(from: 99 * ms + 1, to: 100 * ms + 5) == 1_000_004 - 0)
    pauses.notePoll(at: 400 * ms)
    for time in 401...500 { pauses.notePoll(at: Int64(time) * ms) }
    pauses.notePoll(at: 550 * ms)
    pauses.notePoll(at: 551 * ms)
    // 300 ms and 50 ms of it; of one that became due in the first absence, what was left of that.
    #expect(pauses.share(from: 90 * ms, to: 551 * ms) == 350 * ms)
    #expect(pauses.share(from: 250 * ms, to: 551 * ms) == 200 * ms)
    #expect(pauses.share(from: 450 * ms, to: 551 * ms) == 50 * ms)
    #expect(pauses.share(from: 600 * ms, to: 551 * ms) == 0)
    // Who leaves work that could be done, again and again, is late however often it looks.
    for time in 1...1_000 {
      pauses.isBusy = true
      pauses.notePoll(at: 551 * ms + Int64(time) * 100_000)
    }
    #expect(pauses.share(from: 551 * ms, to: 651 * ms) == 100 * ms)
    pauses.notePoll(at: 652 * ms)
    pauses.notePoll(at: 653 * ms)
    #expect(pauses.share(from: 650 * ms, to: 653 * ms) == 1 * ms)
  }

  @Test("A delay of the loop's clock counts for each of its milliseconds, with what was left of it")
  func loopLag() {
    var measurements = LoadMeasurements()
    for _ in 0..<400 { measurements.noteLoopLag(100_000) }
    measurements.noteLoopLag(600_000_000)
    // 600 of 1000 ms: less than the two fifths without it are below, the rest evenly.
    #expect(measurements.loopLag.count == 1_000 && measurements.loopLag.maximum == 600_000)
    #expect(measurements.loopLag.quantile(0.4) == 100)
    #expect(abs(measurements.loopLag.quantile(0.7) - 300_000) < 2_000)
    #expect(abs(measurements.loopLag.quantile(0.99) - 590_000) < 2_000)
  }

  @Test("Every histogram that is measured is merged")
  func measurements() {
    var measurements = LoadMeasurements()
    for child in Mirror(reflecting: measurements).children where child.label != "latency" {
      #expect(child.value is LatencyHistogram, "\(child.label ?? "")")
    }
    measurements.batchNotifications.record(1)
    measurements.batchBytes.record(1)
    measurements.lossWindow.record(1)
    measurements.loopLag.record(1)
    measurements.latency.errorUs.record(1)
    measurements.latency.sendLagOwnUs?.record(1)
    let once = measurements
    measurements.merge(once)
    let children = Mirror(reflecting: measurements).children
    #expect(children.compactMap { ($0.value as? LatencyHistogram)?.count } == [2, 2, 2, 2])
    #expect(measurements.latency.errorUs.count == 2 && measurements.latency.sendLagOwnUs?.count == 2)
  }
}
