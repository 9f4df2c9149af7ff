import Measurement
import Testing

@testable import LoadTest

/// Conversations: what is written and read on one connection, and what follows for each notification.
@Suite("The record of a connection")
struct ConnectionLifeTests {
  private typealias BinaryLife = ConnectionLife<BinarySending>

  private let workload: Workload
  private let life: BinaryLife

  init() throws {
    workload = try Workload(WorkloadPlan())
    life = Self.makeLife(workload)
  }

  private static func makeLife(
    _ workload: Workload, openedAt: Int64 = 0, observed: Int64? = nil, in phase: RunPhase = .warmUp
  ) -> BinaryLife {
    let sending = BinarySending.maker(LoadPlan(), BinaryFrames(workload))
    return ConnectionLife(
      openedAt: openedAt, observed: observed, log: SentLog(), sending: sending(), phase: phase, lastScheduled: phase)
  }

  /// Collects notifications with identifiers from `index` + 1 on, in one batch.
  private func collect(_ index: Int, _ count: Int, on life: BinaryLife? = nil) -> SentLog.Piece {
    var batch = ConnectionBatch(.init(bytes: 1 << 20, notifications: count))
    let piece = SentLog.Piece(index: index, count: count, attempt: 0)
    #expect((life ?? self.life).collect(piece, into: &batch, now: 0) { _ in DueTimes(0) } == count)
    return piece
  }

  private func write(_ index: Int, _ count: Int, on life: BinaryLife? = nil, at now: Int64 = 0) {
    (life ?? self.life).wrote(collect(index, count, on: life), at: now)
  }

  /// The load ends the connection, and asks for a proof.
  private func ask(_ life: BinaryLife? = nil, at now: Int64) {
    #expect((life ?? self.life).close(as: .local, wasUp: false, at: now) == .ask(BinarySending.markerFrame))
  }

  private func answer(
    _ status: UInt8, _ identifier: UInt32, on life: BinaryLife? = nil, at now: Int64 = 1_000
  ) -> LifeEvent? {
    (life ?? self.life).receive(
      [8, status] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: identifier >> $0) }, at: now
    ).first
  }

  /// "accepted, rejected; rest", in total.
  private func fates(_ life: BinaryLife) -> String {
    let settlement = life.settlement
    let (discarded, unknown) = (settlement.count(.discarded), settlement.count(.unknown))
    return "\(settlement.count(.accepted)) accepted, \(settlement.count(.rejected)) rejected, "
      + (life.isDecided ? "\(discarded) discarded" : "\(unknown) unknown")
  }

  private var fates: String { fates(life) }

  /// "phase fate count", in the order in which they were written.
  private var parts: [String] { life.settlement.parts.map { "\($0.phase.rawValue) \($0.fate) \($0.count)" } }

  @Test("An error response rejects one, accepts all before it and discards all after it")
  func rejection() throws {
    write(0, 6, at: 100)
    write(6, 4, at: 200)
    #expect(life.unsettled == 10 && fates == "0 accepted, 0 rejected, 10 unknown")
    guard case .response(.status(.invalidToken), let named?) = answer(8, 8, at: 1_200) else { throw Unexpected() }
    #expect(named.phase == .warmUp && named.latencyNanoseconds == 1_000 && named.lossWindow == 2)
    #expect(life.isOver && life.isDecided && life.cause == .rejected && life.errorReadAt == 1_200)
    #expect(life.unsettled == 2 && fates == "7 accepted, 1 rejected, 2 discarded")
    #expect(life.settlement.pieces(.discarded).map { [$0.index, $0.count] } == [[8, 2]])
    #expect(life.settledPhases == [.warmUp])
  }

  @Test("A connection is up once something on it is settled, or it has lived for longer than the settling time")
  func up() {
    let settling = LoadPlan.settling.nanoseconds
    #expect(life.standing(atObserved: settling, endedBy: nil) == .open)
    #expect(life.standing(atObserved: settling + 1, endedBy: nil) == .up)
    for end in [LoadTally.Cause.peerFin, .peerRst, .rejected, .shutdown] {
      #expect(life.standing(atObserved: settling, endedBy: end) == .refused(.unused), "\(end)")
      #expect(life.standing(atObserved: settling + 1, endedBy: end) == .up, "\(end)")
    }
    // What the load closes itself was not refused.
    for end in [LoadTally.Cause.local, .lifetime, .idle] {
      #expect(life.standing(atObserved: 0, endedBy: end) == .up, "\(end)")
    }
    write(0, 10)
    #expect(life.standing(atObserved: 5, endedBy: .peerFin) == .refused(.silent))
    // A rejection is an answer about the connection's first notification, even where nothing is accepted.
    _ = answer(8, 1)
    #expect(fates.hasPrefix("0 accepted, 1 rejected"))
    #expect(
      life.standing(atObserved: 5, endedBy: nil) == .up && life.standing(atObserved: 5, endedBy: .rejected) == .up)
  }

  @Test("An error response that names nothing of the connection, and bytes that are none, do not make it up")
  func answeredAndRefused() {
    write(0, 10)
    _ = answer(10, 0)
    #expect(life.standing(atObserved: 5, endedBy: .shutdown) == .refused(.answered))
    let other = Self.makeLife(workload, openedAt: 7, in: .measured)
    _ = other.receive(Array("HTTP/1.1 400".utf8), at: 8)
    #expect(other.standing(atObserved: 9, endedBy: .peerFin) == .refused(.answered))
  }

  @Test("A marker that the gateway closes on proves nothing, and one that is answered does")
  func markerStanding() {
    ask(at: 0)
    #expect(life.standing(atObserved: 5, endedBy: .peerFin) == .refused(.silent))
    _ = answer(2, 0xffff_ffff)
    #expect(life.standing(atObserved: 5, endedBy: .peerFin) == .up)
  }

  @Test("The time in which the load stood still is not part of a connection's life")
  func standstill() {
    let life = Self.makeLife(workload, openedAt: 9_000_000_000, observed: 3, in: .measured)
    #expect(life.standing(atObserved: LoadPlan.settling.nanoseconds + 3, endedBy: .peerFin) == .refused(.unused))
    #expect(life.standing(atObserved: LoadPlan.settling.nanoseconds + 4, endedBy: .peerFin) == .up)
  }

  @Test("A shutdown accepts what it names, and is no error of it")
  func shutdown() throws {
    write(0, 10)
    guard case .response(.status(.shutdown), let named?) = answer(10, 6) else { throw Unexpected() }
    #expect(named.latencyNanoseconds == nil && named.lossWindow == 4 && life.cause == .shutdown && life.isOver)
    #expect(fates == "6 accepted, 0 rejected, 4 discarded")
  }

  @Test("Status 0 accepts what it names, and the connection goes on")
  func noError() throws {
    write(0, 10)
    guard case .response(.status(.noError), let named?) = answer(0, 6) else { throw Unexpected() }
    #expect(named.lossWindow == nil && !life.isOver && !life.isDecided && life.cause == nil)
    #expect(life.unsettled == 4 && fates == "6 accepted, 0 rejected, 4 unknown" && !life.hasSettledNothing)
    _ = answer(8, 9)
    #expect(fates == "8 accepted, 1 rejected, 1 discarded")
  }

  @Test("An answered marker proves everything before it, and is none of the notifications itself")
  func marker() throws {
    write(0, 10)
    ask(at: 500)
    #expect(life.isAsked && life.unsettled == 10)
    guard case .proven(.warmUp, afterNanoseconds: 700) = answer(2, 0xffff_ffff, at: 1_200) else { throw Unexpected() }
    #expect(life.isOver && life.isDecided && life.unsettled == 0 && life.cause == .local)
    #expect(fates == "10 accepted, 0 rejected, 0 discarded" && parts == ["warm-up accepted 10"])
  }

  @Test("A marker that is answered with identifier 0 is the marker, when nothing before it is as bad")
  func markerWithoutIdentifier() throws {
    write(0, 3)
    ask(at: 500)
    guard case .proven = answer(2, 0) else { throw Unexpected() }
    #expect(fates == "3 accepted, 0 rejected, 0 discarded")
  }

  @Test("Identifier 0 names the notification that is bad on purpose, and not the marker after it")
  func knownBad() throws {
    var plan = WorkloadPlan()
    plan.faults = [.missingToken: 0.2]
    let workload = try Workload(plan)
    let index = (0..<10_000).first { index in
      (0..<5).allSatisfy { (workload.fault(of: UInt64(index + $0)) != nil) == ($0 == 2) }
    }
    let life = Self.makeLife(workload)
    write(try #require(index), 5, on: life)
    ask(life, at: 500)
    guard case .response(.status(.missingDeviceToken), .some) = answer(2, 0, on: life) else { throw Unexpected() }
    #expect(fates(life) == "2 accepted, 1 rejected, 2 discarded")
  }

  @Test("An end without an answer leaves the fate of everything open")
  func silence() {
    write(0, 10)
    ask(at: 500)
    #expect(life.receive(nil, at: 1_000).isEmpty)
    #expect(life.hasSettledNothing && fates == "0 accepted, 0 rejected, 10 unknown")
  }

  @Test("A response that names nothing settles nothing, and ends the connection", arguments: [999, 0] as [UInt32])
  func unresolved(identifier: UInt32) throws {
    write(0, 10)
    guard case .response(.status(.invalidToken), named: nil) = answer(8, identifier) else { throw Unexpected() }
    #expect(life.isOver && !life.isDecided && life.cause == .rejected)
    #expect(fates == "0 accepted, 0 rejected, 10 unknown")
  }

  @Test("A response to what is collected and not written yet names nothing")
  func early() throws {
    write(0, 3)
    _ = collect(3, 1)
    guard case .response(.status(.invalidToken), named: nil) = answer(8, 4) else { throw Unexpected() }
    #expect(fates == "0 accepted, 0 rejected, 3 unknown")
  }

  @Test("Fates belong to the phase of the write; a marker proves the last one with a schedule")
  func phases() throws {
    write(0, 5)
    life.begin(.measured)
    write(5, 5)
    life.begin(.drain)
    write(10, 2)
    ask(at: 500)
    guard case .proven(.measured, _) = answer(2, 0xffff_ffff) else { throw Unexpected() }
    #expect(parts == ["warm-up accepted 5", "measured accepted 5", "drain accepted 2"])
  }

  @Test("A marker in a phase in which nothing was written yet proves the one before")
  func markerOfPhaseBefore() throws {
    write(0, 5)
    life.begin(.measured)
    ask(at: 500)
    guard case .proven(.warmUp, _) = answer(2, 0xffff_ffff) else { throw Unexpected() }
    #expect(life.settledPhases == [.warmUp])
  }

  @Test("Rejections are counted in the phase of their write, and each once")
  func rejectionsByPhase() throws {
    write(0, 5)
    life.begin(.measured)
    write(5, 5)
    _ = answer(8, 2)
    guard case .response(.status(.invalidToken), let named?) = answer(8, 8) else { throw Unexpected() }
    #expect(named.phase == .measured && named.lossWindow == 2)
    _ = answer(8, 8)
    #expect(
      parts == [
        "warm-up accepted 4", "warm-up rejected 1", "measured accepted 2", "measured rejected 1",
        "measured discarded 2",
      ])
    #expect(life.errorReadAt == 1_000)
  }

  @Test("What no gateway says ends the connection, and settles nothing")
  func foreign() throws {
    write(0, 3)
    let events = life.receive(Array("HTTP/1.1".utf8), at: 10)
    guard case .foreign(let bytes)? = events.first, events.count == 1 else { throw Unexpected() }
    #expect(bytes.count == 8 && life.isOver && life.isForeign && life.hasSettledNothing)
  }

  @Test("Fates need no order: what a protocol leaves open between settled notifications comes back as pieces")
  func withoutPrefix() {
    let sending = EveryThird()
    let life = ConnectionLife(
      openedAt: 0, log: SentLog(), sending: sending, phase: .measured, lastScheduled: .measured)
    life.wrote(SentLog.Piece(index: 100, count: 4, attempt: 0), at: 1)
    life.wrote(SentLog.Piece(index: 200, count: 3, attempt: 1), at: 2)
    let settlement = life.settlement
    #expect(settlement.count(.accepted) == 3 && settlement.count(.discarded) == 2 && settlement.count(.unknown) == 2)
    #expect(settlement.pieces(.discarded).map { [$0.index, $0.count, $0.attempt] } == [[101, 1, 0], [200, 1, 1]])
    #expect(settlement.pieces(.unknown).map { [$0.index, $0.count, $0.attempt] } == [[102, 1, 0], [201, 1, 1]])
    #expect(settlement.pieces(.accepted) == [] && life.unsettled == 4 && life.settledPhases == [.measured])
    #expect(life.close(as: .lifetime, wasUp: true, at: 3) == .endOutput && life.cause == .lifetime && !life.isAsked)
  }

  /// A protocol that answers each notification by itself: one in three was accepted, one came too late.
  private struct EveryThird: SendingProtocol {
    let limits = SendingLimits(notifications: 7, canProve: false, patience: 0)
    let readiness = SendingReadiness(room: 1, isDecided: false)

    func collect(
      _ piece: SentLog.Piece, into batch: inout ConnectionBatch, room: Int, now: Int64, due: (_ taken: Int) -> DueTimes
    ) -> Int { 0 }

    func receive(_ bytes: [UInt8]?, written: Int, at now: Int64) -> [SendingAnswer] { [] }

    func settlement(of positions: Range<Int>) -> [FateRun] {
      positions.map {
        FateRun(fate: [.accepted, .discarded, .unknown][$0 % 3], count: 1, positions: $0..<$0 + 1)
      }
    }

    func close(written: Int, isProofNeeded isNeeded: Bool, at now: Int64) -> CloseAction { .endOutput }
  }

  private struct Unexpected: Error {}
}
