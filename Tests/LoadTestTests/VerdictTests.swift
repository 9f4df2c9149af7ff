import Measurement
import TestSupport
import Testing

@testable import LoadTest

/// A run calls proven only what is: each of these once had three ✓ and mostly exit status 0.
@Suite("Verdicts")
struct VerdictTests {
  private func verdict(_ outcome: LoadOutcome) -> RunResult.Verdict { outcome.result(Environment()).verdict }

  private func markersHold(_ verdict: RunResult.Verdict) -> Bool? {
    verdict.invariants.first { $0.isAboutProof }?.holds
  }

  @Test("A run of which everything is answered is proven")
  func proven() throws {
    let run = try SimulatedRun()
    let verdict = verdict(try run.run())
    #expect(verdict.outcome == .proven && verdict.reasons == [])
    #expect(markersHold(verdict) == true)
  }

  @Test("A gateway that closes right after the handshake (simulate --accept-then-close 1) fails the run, with a guess")
  func closedAtOnce() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.closesOneIn = 1
    let run = try SimulatedRun(behavior) {
      ($0.count, $0.duration, $0.drain) = (nil, .seconds(3), .seconds(2))
      $0.pace = .scheduled(.constant(1_000), isPoisson: false)
    }
    var outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let opened = outcome.books.opened
    let ended = outcome.books.endedSilently
    #expect(ended > 0 && (0...1).contains(opened - ended))
    // On some the load has written before it saw the end.
    let unused = outcome.books.endedUnused
    #expect(unused > 0 && unused <= ended)
    #expect(verdict(outcome).outcome == .failed)
    #expect(
      verdict(outcome).reasons?.first?.hasSuffix(
        "\(unused) of \(opened) connections were closed right after they were opened: does the gateway take connections from here?"
      ) == true)
    outcome.usesTLS = true
    #expect(
      verdict(outcome).reasons?.first?.hasSuffix(
        "\(unused) of \(opened) connections were closed right after the handshake: certificate of the other environment, or revoked?"
      ) == true)
  }

  @Test("A count that a gateway never takes is given up, not tried for ever")
  func countAtClosedDoor() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.closesOneIn = 1
    let run = try SimulatedRun(behavior) {
      ($0.count, $0.duration) = (1_000, .seconds(86_400))
      $0.connections.giveUp = .seconds(2)
    }
    let outcome = try run.run(longest: .seconds(60))
    expectBalance(outcome, run.environment.books)
    #expect(verdict(outcome).outcome == .failed)
    #expect(verdict(outcome).reasons?.contains { $0.contains("closed right after they were opened") } == true)
  }

  @Test("A gateway that never answers fails the run, and no marker's tick is given", arguments: [true, false])
  func silent(isReading: Bool) throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.ending = .nothing
    (behavior.receiveBuffer, behavior.room) = (16_384, 32_768)
    let run = try SimulatedRun(behavior) {
      ($0.count, $0.duration, $0.drain) = (nil, .seconds(2), .seconds(1))
      $0.pace = .scheduled(.constant(1_000), isPoisson: false)
      $0.markerTimeout = .milliseconds(300)
      $0.connections.notifications = 500
    }
    run.environment.isReading = isReading
    let outcome = try run.run()
    expectBalance(outcome, isReading ? run.environment.books : nil)
    #expect(outcome.books.abandonedOpen > 0)
    #expect(verdict(outcome).outcome == .failed)
    #expect(markersHold(verdict(outcome)) == false)
    let reason = try #require(verdict(outcome).reasons?.first)
    #expect(reason.hasPrefix("nothing was proven accepted"))
    if isReading {
      #expect(reason.contains("none of \(outcome.books.sendings.proofsAsked) markers was answered within 300 ms"))
      #expect(reason.contains("--markers off"))
    }
  }

  @Test("Without markers a run is neither proven nor failed, as long as something was written")
  func withoutMarkers() throws {
    let run = try SimulatedRun { $0.usesMarkers = false }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(verdict(outcome).outcome == .unproven)
    #expect(verdict(outcome).reasons?.first?.hasPrefix("written, not proven: ") == true)
    #expect(markersHold(verdict(outcome)) == nil)

    var behavior = SimulatedLink.GatewayBehavior()
    behavior.closesOneIn = 1
    let closed = try SimulatedRun(behavior) {
      $0.usesMarkers = false
      ($0.count, $0.duration, $0.drain) = (nil, .seconds(2), .seconds(1))
      $0.pace = .scheduled(.constant(1), isPoisson: false)
      $0.connections.giveUp = .milliseconds(500)
    }
    #expect(verdict(try closed.run()).outcome == .failed)

    // A gateway of the other environment takes the first batch, and closes: that is no writing either.
    let quick = try SimulatedRun(behavior) {
      $0.usesMarkers = false
      ($0.count, $0.duration, $0.drain) = (nil, .seconds(2), .seconds(1))
      $0.pace = .scheduled(.constant(1_000), isPoisson: false)
    }
    let second = try quick.run()
    #expect(verdict(second).outcome == .failed)
  }

  @Test("What was skipped because it would have been late is due and not sent, so that the run is not proven")
  func skipped() throws {
    let run = try SimulatedRun(.init(), step: 10_000...500_000) {
      ($0.count, $0.duration, $0.behind) = (nil, .seconds(2), .skip)
      $0.pace = .scheduled(.constant(1_000), isPoisson: false)
    }
    run.at(.milliseconds(300)) { $0.environment.goAway() }
    run.at(.milliseconds(900)) { $0.environment.comeBack() }
    let outcome = try run.run()
    #expect(outcome.books.skipped > 0 && verdict(outcome).outcome == .unproven)
    #expect(
      verdict(outcome).reasons?.contains { $0.hasPrefix("\(outcome.books.skipped) notifications were due and skipped") }
        == true)
  }

  @Test("An answer that is no error response is the reason also when it comes in the drain of a short run")
  func foreignInTheDrain() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    (behavior.page, behavior.answerDelay) = (Array("<!DOCTYPE HTML>\n".utf8), 200_000_000...200_000_000)
    let run = try SimulatedRun(behavior) { $0.count = 1 }
    let outcome = try run.run()
    #expect(verdict(outcome).outcome == .failed)
    #expect(verdict(outcome).reasons?.count == 1)
    #expect(verdict(outcome).reasons?.first?.hasPrefix("the server is not a gateway") == true)
  }

  @Test("A sending that may have been accepted stays open when a later one is discarded")
  func openBefore() throws {
    var log = SentLog()
    var piece = SentLog.Piece(index: 0, count: 10, attempt: 3)
    piece.isOpen = true
    for turn in 0..<20_000 {
      var next = piece
      next.index = turn * 20
      log.append(next, written: Int64(turn))
    }
    #expect(log.oldMemory > 0)
    #expect(log.pieces(from: 0).allSatisfy { $0.isOpen && $0.attempt == 3 })
  }

  @Test("What is due and still unsent 100 ms after the schedule's end is a warning, and what goes in that time is not")
  func unsent() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    (behavior.bytesPerSecond, behavior.receiveBuffer, behavior.room) = (20_000, 4_096, 8_192)
    let slow = try SimulatedRun(behavior) {
      ($0.count, $0.duration, $0.drain) = (nil, .seconds(1), .seconds(60))
      $0.pace = .scheduled(.constant(1_000), isPoisson: false)
      $0.markerTimeout = .seconds(60)
    }
    let outcome = try slow.run()
    expectBalance(outcome, slow.environment.books)
    #expect(outcome.books.unsent > 0 && outcome.books.accepted == outcome.books.generated)
    #expect(verdict(outcome).outcome == .unproven)
    #expect(
      verdict(outcome).reasons == [
        "\(outcome.books.unsent) notifications were due and not sent within 100 ms of the schedule's end"
      ])

    // It stands still for the last 50 ms of the schedule, and takes everything in the next 20.
    let late = try SimulatedRun(.init(), step: 10_000...500_000) {
      ($0.count, $0.duration) = (nil, .seconds(1))
      $0.pace = .scheduled(.constant(5_000), isPoisson: false)
      $0.connections.stagger = .zero
    }
    late.at(.milliseconds(960)) { $0.environment.isReading = false }
    late.at(.milliseconds(1_050)) { $0.environment.isReading = true }
    let second = try late.run()
    #expect(second.books.unsent == 0 && verdict(second).outcome == .proven)
    #expect((4_990...5_060).contains(second.books.accepted))
  }

  @Test("Fewer connections than were asked for fail a run whose notifications are all accepted")
  func tooFewConnections() throws {
    let run = try SimulatedRun {
      $0.count = 100
      $0.connections.count = 3
      $0.connections.giveUp = .milliseconds(200)
    }
    run.environment.maximumConnections = 2
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.accepted == 100 && outcome.books.everUp == 2)
    #expect(verdict(outcome).outcome == .failed)
    #expect(verdict(outcome).reasons == ["2 of 3 connections came up: Connection refused"])
  }

  @Test("A notification whose connections all end silently is open, and the tick for markers is not given")
  func openEnd() throws {
    let run = try SimulatedRun {
      $0.count = 10_000
      $0.connections.count = 2
      $0.workload.commands = .init(0)
      $0.workload.faults = [.oversize: 0.0005]
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.abandonedOpen == outcome.books.abandoned && outcome.books.abandoned > 0)
    #expect(verdict(outcome).outcome == .unproven && markersHold(verdict(outcome)) == false)
  }

  // MARK: what does not mend itself

  @Test("When nobody ever listens the run gives up after 3 seconds, and says at once that it tries again")
  func nobody() throws {
    let run = try SimulatedRun()
    run.environment.door = .refusing
    var saidAt: [Int64] = []
    run.notice = { text in
      #expect(text == "trying again: Connection refused")
      saidAt.append(run.environment.now)
    }
    let failure = #expect(throws: LoadRunner.Failure.self) { try run.run() }
    #expect(failure?.description == "Connection refused")
    #expect(run.length > .seconds(3) && run.length < .milliseconds(3_010))
    #expect(saidAt.count == 1 && (saidAt.first ?? .max) < 1_000_000_000 + 30_000_000)
  }

  @Test(
    "An answer that is no error response ends the run at its first bytes, and is named",
    arguments: ["<!DOCTYPE HTML>\n<p>\u{8}\u{8}", "HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n"])
  func foreign(page: String) throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.page = Array(page.utf8)
    let run = try SimulatedRun(behavior) { $0.connections.count = 2 }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.foreignAnswers > 0)
    #expect(outcome.books.errorResponses.isEmpty && outcome.books.closed[.shutdown] == nil)
    #expect(verdict(outcome).outcome == .failed && verdict(outcome).reasons?.count == 1)
    #expect(verdict(outcome).reasons?.first?.hasPrefix("the server is not a gateway: it sent ") == true)
    // Not for as long as the run would have taken.
    #expect(run.length < .seconds(1))
  }

  @Test("Bytes that are no error response, from a gateway that is one, end their connection and not the run")
  func foreignLate() throws {
    let run = try SimulatedRun {
      ($0.count, $0.duration) = (nil, .seconds(2))
      $0.pace = .scheduled(.constant(1_000), isPoisson: false)
      $0.connections.notifications = 300
    }
    run.at(.seconds(1)) { $0.environment.say(Array("HTTP".utf8) + [UInt8](repeating: 0, count: 20)) }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.givenUp == nil && outcome.books.foreignAnswers == 1)
    #expect(outcome.books.accepted == outcome.books.generated)
    #expect(verdict(outcome).outcome == .unproven)
  }

  // MARK: identifier 0

  @Test("A gateway that answers an oversize payload with identifier 0 does not cost three times the load")
  func oversizeAndZero() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.identifier = .zeroWhenOversize
    let run = try SimulatedRun(behavior) {
      $0.count = 20_000
      $0.connections.count = 2
      $0.workload.faults = [.oversize: 5e-4, .missingToken: 1e-3]
    }
    let workload = try Workload(run.plan.workload)
    let bad = (0..<20_000).count { workload.fault(of: UInt64($0)) != nil }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(bad > 0 && outcome.books.rejected == bad && outcome.books.abandoned == 0)
    #expect(outcome.books.accepted == 20_000 - bad)
    #expect(outcome.books.unresolvedResponses == 0 && outcome.books.sendings.unknown == 0)
  }

  @Test("Where usual payloads may be too long for a gateway as well, identifier 0 with status 7 names none")
  func oversizeAmongLongOnes() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.identifier = .zeroWhenOversize
    let run = try SimulatedRun(behavior) {
      $0.count = 3_000
      $0.workload.payload = .sizes(.init(100...2_049))
      $0.workload.faults = [.oversize: 1e-3]
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.unresolvedResponses > 0)
  }
}
