import GatewaySimulator
import Measurement
import Synchronization
import Testing

@testable import LoadTest

@Suite("Timelines of connections")
struct ConnectionTimelineTests {
  @Test("A span ends when another state begins; what is still on ends with the run")
  func spans() {
    var timeline = ConnectionTimeline(limit: 100)
    let second: Int64 = 1_000_000_000
    timeline.note(0, .handshake, at: 10 * second)
    timeline.note(7, .handshake, at: 11 * second)
    timeline.note(0, .up, at: 12 * second)
    timeline.note(7, nil, at: 12 * second)
    timeline.note(7, .backOff, at: 12 * second)
    timeline.note(0, .up, at: 13 * second)
    timeline.note(7, .handshake, at: 14 * second)
    timeline.note(0, nil, at: 15 * second)
    timeline.note(7, .up, at: 16 * second)
    let ended = timeline.end(since: 10 * second, at: 20 * second)
    #expect(ended.omitted == 0)
    #expect(
      ended.spans.filter { $0.connection == 0 } == [
        .init(connection: 0, .handshake, fromS: 0, toS: 2), .init(connection: 0, .up, fromS: 2, toS: 5),
      ])
    #expect(
      ended.spans.filter { $0.connection == 7 } == [
        .init(connection: 7, .handshake, fromS: 1, toS: 2), .init(connection: 7, .backOff, fromS: 2, toS: 4),
        .init(connection: 7, .handshake, fromS: 4, toS: 6), .init(connection: 7, .up, fromS: 6, toS: 10),
      ])
  }

  @Test("Beyond the limit spans are counted", arguments: [0, 1, 5])
  func limit(limit: Int) {
    var timeline = ConnectionTimeline(limit: limit)
    for time in 0..<4 {
      timeline.note(1, .handshake, at: Int64(3 * time))
      timeline.note(1, .up, at: Int64(3 * time + 1))
      timeline.note(1, nil, at: Int64(3 * time + 2))
    }
    let ended = timeline.end(since: 0, at: 100)
    #expect(ended.spans.count == limit)
    #expect(ended.omitted == 8 - limit)
  }
}

@Suite("Series of runs")
struct SeriesOfRunTests {
  @Test("Spans are the connections that were opened; handshakes are counted as full or resumed")
  func connections() async throws {
    let simulation = try await LoadSimulation(tls: true)
    let plan = simulation.plan {
      $0.count = 600
      $0.connections.count = 3
      $0.connections.notifications = 50
      $0.threads = 2
    }
    let outcome = try await simulation.runner(plan).run()
    expectBalance(outcome, await simulation.books())
    let result = outcome.result(Environment())
    #expect(result.timeline.spans.count { $0.state == .up } == result.connections.opened)
    #expect(result.timeline.spans.count { $0.state == .handshake } == result.connections.attempted)
    #expect(Set(result.timeline.spans.map(\.connection)) == [0, 1, 2])
    #expect(result.timeline.spans.map(\.fromS) == result.timeline.spans.map(\.fromS).sorted())
    #expect(result.ofWholeRun(\.tlsResumedUs).count == result.connections.resumed)
    #expect(result.ofWholeRun(\.tlsHandshakeUs).count == result.connections.opened - result.connections.resumed)
    #expect(result.connections.resumed > 0)
  }

  /// What the samples say is for `SimulatedRunTests`.
  @Test("Progress is told with each sample, and samples have the process's memory")
  func progress() async throws {
    let simulation = try await LoadSimulation()
    let plan = simulation.plan {
      $0.count = nil
      $0.pace = .scheduled(.constant(2_000), isPoisson: false)
    }
    let runner = try simulation.runner(plan)
    let told = Mutex<[LoadProgress]>([])
    let outcome = try await runner.run { progress in
      let count = told.withLock { told in
        told.append(progress)
        return told.count
      }
      if count == 2 { runner.stop() }
    }
    expectBalance(outcome, await simulation.books())
    #expect(runner.snapshot().phase == LoadSnapshot.over)
    let (series, shown) = (outcome.series, told.withLock { $0 })
    #expect(series.count >= 2 && shown.count == series.count)
    #expect(shown.map(\.written).last == series.reduce(0) { $0 + $1.written })
    for sample in series { #expect(sample.rssBytes > 1 << 20 && sample.errorsByStatus.isEmpty) }
  }
}
