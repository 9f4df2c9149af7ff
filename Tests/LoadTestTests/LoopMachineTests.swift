import Measurement
import Testing

@testable import LoadTest

/// Conversations: what happens to a loop, and what it is to do.
@Suite("The rules of a loop's part of a load")
struct LoopMachineTests {
  /// A second, in nanoseconds.
  private static let second: Int64 = 1_000_000_000
  private static let start = 5 * second

  /// A loop whose schedule has a notification each millisecond from the fifth second on, for ten seconds.
  private func machine(_ change: (inout LoadPlan) -> Void = { _ in }) -> LoopMachine {
    var plan = LoadPlan()
    plan.pace = .scheduled(.constant(1_000), isPoisson: false)
    (plan.warmUp, plan.duration) = (.zero, .seconds(10))
    change(&plan)
    return LoopMachine(.init(plan, plan.shares(of: 1)[0], jitter: 1), at: 0)
  }

  /// The same after the beginning of its schedule.
  private func running(_ change: (inout LoadPlan) -> Void = { _ in }) -> LoopMachine {
    var machine = machine(change)
    _ = machine.begin(Beginning(Self.start))
    return machine
  }

  private func time(_ milliseconds: Int64) -> Int64 { Self.start + milliseconds * 1_000_000 }

  private func piece(_ index: Int, _ count: Int, attempt: Int = 0, due: Int64? = nil) -> SentLog.Piece {
    SentLog.Piece(index: index, count: count, attempt: attempt, due: due)
  }

  // MARK: phases

  @Test("A schedule has a warm-up, a measured phase and an end, each at the time of the plan")
  func phases() {
    var loop = machine { $0.warmUp = .seconds(2) }
    #expect(loop.isConnecting && !loop.isSending && loop.pass(.max - 1) == [])
    #expect(loop.begin(Beginning(Self.start)) == [.enter(.warmUp), .send])
    #expect(loop.isRunning && loop.isSending)
    #expect(loop.pass(time(1_999)) == [])
    #expect(loop.pass(time(2_000)) == [.enter(.measured)])
    #expect(loop.pass(time(11_999)) == [])
    #expect(loop.pass(time(12_000)) == [.enter(.drain)])
    #expect(loop.pass(time(99_000)) == [] && loop.lastScheduled == .measured && loop.phaseOfDue == .measured)
    #expect(loop.isRunning, "what was due may still be written")
  }

  @Test("A loop that slept through a phase passes it all the same")
  func sleep() {
    var loop = machine { $0.warmUp = .seconds(2) }
    _ = loop.begin(Beginning(Self.start))
    #expect(loop.pass(time(60_000)) == [.enter(.measured), .enter(.drain)])
  }

  @Test("A run that begins late leaves out what was due, or sends it late; its phases end with their schedule")
  func lateBeginning() {
    var loop = machine { $0.warmUp = .seconds(2) }
    let beginning = Beginning(schedule: Self.start, run: time(2_500), leavesOut: true)
    let actions = loop.begin(beginning)
    #expect(Array(actions.prefix(3)) == [.enter(.warmUp), .enter(.measured), .miss(2_501)])
    let never = actions.compactMap { if case .neverSent(let count, _) = $0 { count } else { nil } }
    #expect(never.reduce(0, +) == 2_501 && actions.last == .send)
    #expect(loop.start == time(2_500) && loop.look(time(2_510)) == [])
    #expect(loop.next() == piece(2_501, 10))
    #expect(loop.pass(time(11_999)) == [] && loop.pass(time(12_000)) == [.enter(.drain)])

    var other = machine()
    #expect(
      other.begin(Beginning(schedule: Self.start, run: time(50), leavesOut: false)) == [.enter(.measured), .send])
    #expect(other.look(time(50)) == [] && other.next() == piece(0, 51))
  }

  @Test("A schedule that ends early ends once, and nothing becomes due after it")
  func earlyEnd() {
    var loop = running()
    #expect(loop.endSchedule(at: time(3)) == [.enter(.drain)])
    #expect(loop.endSchedule(at: time(5)) == [] && loop.pass(time(20_000)) == [])
    #expect(loop.look(time(9_000)) == [])
    #expect(loop.next() == piece(0, 3))
  }

  // MARK: what is next

  @Test("What is due and not taken is offered as one piece, with the times at which it was due")
  func due() {
    var loop = running()
    #expect(loop.next() == nil && !loop.isOwing && loop.backlog == 0)
    #expect(loop.look(time(9)) == [])
    #expect(loop.next() == piece(0, 10) && loop.isOwing && loop.backlog == 10)
    let first = loop.take(4, of: piece(0, 10), time(9))
    #expect(first.isNew && first.due == DueTimes(time(0), time(3)))
    #expect(loop.next() == piece(4, 6) && loop.backlog == 6)
    let second = loop.take(6, of: piece(4, 6), time(9))
    #expect(second.due == DueTimes(time(4), time(9)) && loop.next() == nil && !loop.isOwing)
  }

  @Test("A count ends what is offered, and is over when all was taken and nothing is to be sent again")
  func count() {
    var loop = running { $0.count = 6 }
    _ = loop.look(time(5_000))
    #expect(loop.next() == piece(0, 6) && !loop.isAllTaken)
    _ = loop.take(6, of: piece(0, 6), time(5_000))
    #expect(loop.next() == nil && loop.isAllTaken && !loop.isOwing)
    #expect(loop.putBack([piece(2, 1)], at: time(5_001)) == [.sendSoon])
    #expect(!loop.isAllTaken && loop.hasLeftovers)
  }

  @Test("Without a schedule there is always something due, until the end")
  func unlimited() {
    var loop = running { $0.pace = .unlimited }
    _ = loop.look(time(0))
    #expect(loop.next() == piece(0, 1 << 20) && !loop.isOwing && loop.backlog == 0)
    let taken = loop.take(7, of: piece(0, 1 << 20), time(3))
    #expect(taken.isNew && taken.due == DueTimes(time(3)))
    #expect(loop.next()?.index == 7)
    _ = loop.look(time(10_000))
    #expect(loop.next() == nil)
  }

  @Test("What would be later than the plan allows is skipped, and has a lag in parts")
  func skipping() {
    var loop = running { $0.behind = .skip }
    #expect(loop.look(time(100) + 500_000) == [.skip(1), .neverSent(1, DueTimes(time(0)))])
    #expect(loop.next() == piece(1, 100))
    #expect(
      loop.look(time(120) + 500_000) == [
        .skip(20), .neverSent(16, DueTimes(time(1), time(16))), .neverSent(4, DueTimes(time(17), time(20))),
      ])
    #expect(loop.next() == piece(21, 100))
  }

  // MARK: again

  @Test("What is sent again goes before everything new, in its order and joined, late since it came back")
  func again() {
    var loop = running()
    _ = loop.look(time(9))
    _ = loop.take(10, of: piece(0, 10), time(9))
    #expect(loop.look(time(10)) == [] && loop.next() == piece(10, 1))
    #expect(loop.sendAgain([piece(6, 2), piece(2, 1)], at: time(20)) == [.sendSoon])
    #expect(loop.sendAgain([piece(3, 3)], at: time(20)) == [.sendSoon])
    #expect(loop.next() == piece(2, 6, attempt: 1, due: time(20)) && loop.backlog == 7)
    let taken = loop.take(5, of: piece(2, 6, attempt: 1, due: time(20)), time(22))
    #expect(!taken.isNew && taken.due == DueTimes(time(20)))
    #expect(loop.next() == piece(7, 1, attempt: 1, due: time(20)))
    _ = loop.take(1, of: piece(7, 1, attempt: 1, due: time(20)), time(22))
    #expect(loop.next() == piece(10, 1))
  }

  @Test("What was collected and never written keeps the time at which it was due")
  func unwritten() {
    var loop = running()
    _ = loop.look(time(9))
    _ = loop.take(10, of: piece(0, 10), time(9))
    #expect(loop.putBack([piece(4, 2)], at: time(50)) == [.sendSoon])
    let taken = loop.take(2, of: piece(4, 2, due: time(50)), time(60))
    #expect(!taken.isNew && taken.due == DueTimes(time(4), time(5)))
  }

  @Test("A notification that was sent as often as the plan allows is given up, and the others go again")
  func attempts() {
    var loop = running { $0.maximumAttempts = 3 }
    #expect(
      loop.sendAgain([piece(0, 2, attempt: 2), piece(5, 1, attempt: 1)], at: time(1))
        == [.abandon([piece(0, 2, attempt: 3)]), .sendSoon])
    #expect(loop.next() == piece(5, 1, attempt: 2, due: time(1)))
    #expect(loop.sendAgain([piece(9, 1, attempt: 2)], at: time(1)) == [.abandon([piece(9, 1, attempt: 3)])])
  }

  @Test("Suspects go over no connection that carries others, and so many as their portion over one of their own")
  func suspects() {
    var loop = running()
    var suspect = piece(0, 10, attempt: 1)
    for _ in 0..<2 { suspect.suspect(among: 32) }
    #expect(suspect.isSuspect && suspect.portion == 4)
    #expect(loop.putBack([suspect], at: time(1)) == [.sendSoon])
    #expect(loop.next() == nil && loop.hasLeftovers && !loop.hasResends && loop.backlog == 10)
    #expect(loop.needsRoomForSuspects(isComing: false) && !loop.needsRoomForSuspects(isComing: true))
    #expect(loop.probe().map { [$0.index, $0.count] } == [[0, 4]])
    #expect(loop.probe().map { [$0.index, $0.count] } == [[4, 4]])
    #expect(loop.probe().map { [$0.index, $0.count] } == [[8, 2]])
    #expect(loop.probe() == [] && !loop.hasLeftovers && !loop.needsRoomForSuspects(isComing: false))
  }

  @Test("A notification that was alone on connections which ended is given up at the third")
  func alone() {
    var loop = running()
    var culprit = piece(3, 1, attempt: 5)
    for _ in 0..<LoopMachine.maximumAlone { culprit.suspect(among: 1) }
    var abandoned = culprit
    abandoned.attempt = 6
    #expect(loop.sendAgain([culprit], at: time(1)) == [.abandon([abandoned])] && !loop.hasLeftovers)
  }

  // MARK: the end

  @Test("The end leaves what is due and was not taken, and goes on with what is sent again")
  func drain() {
    var loop = running()
    _ = loop.look(time(9))
    _ = loop.take(6, of: piece(0, 10), time(9))
    _ = loop.putBack([piece(2, 1)], at: time(9))
    #expect(loop.endSchedule(at: time(10)) == [.enter(.drain)])
    #expect(loop.drain(at: time(12)) == [.leave(4), .neverSent(4, DueTimes(time(6), time(9))), .close])
    #expect(loop.isSending && !loop.isRunning && loop.wantsConnections && loop.backlog == 1)
    #expect(loop.isDueInSchedule(DueTimes(time(9))) && !loop.isDueInSchedule(DueTimes(time(10))))
    #expect(loop.look(time(20)) == [] && loop.next() == piece(2, 1, due: time(9)))
    let taken = loop.take(1, of: piece(2, 1, due: time(9)), time(20))
    #expect(!taken.isNew && taken.due == DueTimes(time(2)))
    #expect(loop.next() == nil && !loop.wantsConnections && loop.drain(at: time(21)) == [])
  }

  @Test("Without a schedule nothing that was not taken is missed")
  func drainUnlimited() {
    var loop = running { $0.pace = .unlimited }
    _ = loop.look(time(9))
    #expect(loop.drain(at: time(12)) == [.close] && loop.next() == nil)
  }

  @Test("A loop that never began to send drains as well")
  func drainEarly() {
    var loop = machine()
    #expect(loop.endSchedule(at: 7) == [.enter(.drain)] && loop.drain(at: 7) == [.close])
    #expect(!loop.wantsConnections && loop.finish(at: 9) == [] && loop.isOver)
  }

  @Test("When it is over, what was to be sent again is given up, and what was never written has a lag")
  func finish() {
    var loop = running()
    _ = loop.look(time(9))
    _ = loop.take(10, of: piece(0, 10), time(9))
    _ = loop.putBack([piece(4, 2)], at: time(9))
    _ = loop.sendAgain([piece(1, 1)], at: time(9))
    _ = loop.drain(at: time(12))
    #expect(
      loop.finish(at: time(30)) == [
        .neverSent(2, DueTimes(time(4), time(5))),
        .abandon([piece(4, 2, due: time(9)), piece(1, 1, attempt: 1, due: time(9))]),
      ])
    #expect(loop.isOver && !loop.isSending && !loop.wantsConnections && loop.next() == nil && !loop.hasLeftovers)
    #expect(loop.probe() == [] && loop.reopening(failures: 0, silences: 0) == .never && loop.look(time(99)) == [])
    #expect(loop.putBack([piece(7, 1)], at: time(31)) == [.abandon([piece(7, 1)])])
  }

  // MARK: connections

  @Test("A connection is opened again at once, and after failures in half to all of a time that doubles up to the most")
  func reopening() {
    var loop = machine {
      ($0.connections.backoff, $0.connections.maximumBackoff) = (.milliseconds(100), .milliseconds(1_000))
    }
    #expect(loop.reopening(failures: 0, silences: 0) == .now)
    #expect(loop.reopening(failures: 0, silences: LoopMachine.silencesWithoutWait) == .now)
    for (failures, silences, most) in [
      (1, 0, 100), (2, 0, 200), (4, 0, 800), (5, 0, 1_000), (60, 0, 1_000), (0, 8, 200),
    ] {
      guard case .after(let wait) = loop.reopening(failures: failures, silences: silences) else {
        Issue.record("\(failures) failures, \(silences) silences: no wait")
        continue
      }
      #expect((Int64(most) * 500_000...Int64(most) * 1_000_000).contains(wait), "\(failures), \(silences): \(wait)")
    }
  }

  @Test("Only once, and only where a gateway closes without a word, a connection is opened quietly")
  func quiet() {
    var loop = running()
    var tally = LoadTally()
    tally.endedSilently = 1
    var isQuiet = [loop.takesQuietOpening(tally)]
    tally.endedSilently = 2
    var proven = tally
    proven.accepted = 1
    var unused = tally
    unused.endedUnused = 1
    isQuiet += [loop.takesQuietOpening(proven), loop.takesQuietOpening(unused)]
    isQuiet += [loop.takesQuietOpening(tally), loop.takesQuietOpening(tally)]
    #expect(isQuiet == [false, false, false, true, false])
  }

  @Test("A loop is cut off when no connection was of use for longer than the plan allows")
  func cutOff() {
    var loop = machine { $0.connections.giveUp = .seconds(3) }
    #expect(!loop.isCutOff && !loop.hasTicked)
    loop.tick(Self.second, late: 0)
    loop.noteOpened()
    #expect(!loop.isCutOff && loop.hasTicked && loop.watch.openedSinceOfUse == 1)
    loop.noteUse(2 * Self.second)
    #expect(loop.watch.openedSinceOfUse == 0)
    loop.tick(5 * Self.second, late: 0)
    #expect(!loop.isCutOff)
    loop.tick(5 * Self.second + 1, late: 0)
    #expect(loop.isCutOff)
  }

  @Test("The time in which a loop stood still is none in which it saw connections")
  func standstill() {
    var loop = machine { $0.connections.giveUp = .seconds(3) }
    loop.tick(Self.second, late: 0)
    loop.tick(9 * Self.second, late: 8 * Self.second)
    #expect(!loop.isCutOff && loop.watch.observed(9 * Self.second) == Self.second)
    // A look at the clock that comes late does not count before the tick that tells of it.
    #expect(loop.watch.observed(12 * Self.second) == Self.second + 100_000_000)
    loop.tick(12 * Self.second, late: 100_000_000)
    #expect(loop.watch.observed(12 * Self.second) == 4 * Self.second)
  }
}
