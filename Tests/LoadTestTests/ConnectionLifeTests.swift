import BinaryProtocol
import Testing

@testable import LoadTest

/// Conversations: what is written and read on one connection, and what follows for each notification.
@Suite("The record of a connection")
struct ConnectionLifeTests {
  private let life = ConnectionLife(
    openedAt: 0, log: SentLog(), session: BinarySession(), phase: .warmUp, lastScheduled: .warmUp)

  /// Writes notifications with identifiers from `index` + 1 on, in one batch.
  private func write(_ index: Int, _ count: Int, faults: [Int: WorkloadPlan.Fault] = [:], at now: Int64 = 0) {
    _ = life.collecting { session in
      for number in index..<index + count {
        session.write(faults[number], identifier: UInt32(number + 1), isOnlyLong: true)
      }
      return count
    }
    life.wrote(SentLog.Piece(index: index, count: count, attempt: 0), at: now)
  }

  private func answer(_ status: UInt8, _ identifier: UInt32, at now: Int64 = 1_000) -> ConnectionLife.Event? {
    life.receive([8, status] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: identifier >> $0) }, at: now).first
  }

  /// "accepted, rejected; rest", in total.
  private var fates: String {
    let settlement = life.settlement
    let settled = settlement.settled.reduce((0, 0)) { ($0.0 + $1.accepted, $0.1 + $1.rejected) }
    return "\(settled.0) accepted, \(settled.1) rejected, \(settlement.restCount) "
      + (settlement.isDiscarded ? "discarded" : "unknown")
  }

  @Test("An error response rejects one, accepts all before it and discards all after it")
  func rejection() throws {
    write(0, 6, at: 100)
    write(6, 4, at: 200)
    #expect(life.unsettled == 10 && fates == "0 accepted, 0 rejected, 10 unknown")
    guard case .response(.invalidToken, let named?) = answer(8, 8, at: 1_200) else { throw Unexpected() }
    #expect(named.phase == .warmUp && named.latencyNanoseconds == 1_000 && named.lossWindow == 2)
    #expect(life.isOver && life.isTerminated && life.cause == .rejected && life.errorReadAt == 1_200)
    #expect(life.unsettled == 2 && fates == "7 accepted, 1 rejected, 2 discarded")
    #expect(life.settlement.pieces.map { [$0.index, $0.count] } == [[8, 2]])
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
    let other = ConnectionLife(
      openedAt: 7, log: SentLog(), session: BinarySession(), phase: .measured, lastScheduled: .measured)
    _ = other.receive(Array("HTTP/1.1 400".utf8), at: 8)
    #expect(other.standing(atObserved: 9, endedBy: .peerFin) == .refused(.answered))
  }

  @Test("A marker that the gateway closes on proves nothing, and one that is answered does")
  func markerStanding() {
    life.wroteMarker(identifier: 0xffff_ffff, at: 0)
    #expect(life.standing(atObserved: 5, endedBy: .peerFin) == .refused(.silent))
    _ = answer(2, 0xffff_ffff)
    #expect(life.standing(atObserved: 5, endedBy: .peerFin) == .up)
  }

  @Test("The time in which the load stood still is not part of a connection's life")
  func standstill() {
    let life = ConnectionLife(
      openedAt: 9_000_000_000, observed: 3, log: SentLog(), session: BinarySession(), phase: .measured,
      lastScheduled: .measured)
    #expect(life.standing(atObserved: LoadPlan.settling.nanoseconds + 3, endedBy: .peerFin) == .refused(.unused))
    #expect(life.standing(atObserved: LoadPlan.settling.nanoseconds + 4, endedBy: .peerFin) == .up)
  }

  @Test("A shutdown accepts what it names, and is no error of it")
  func shutdown() throws {
    write(0, 10)
    guard case .response(.shutdown, let named?) = answer(10, 6) else { throw Unexpected() }
    #expect(named.latencyNanoseconds == nil && named.lossWindow == 4 && life.cause == .shutdown && life.isOver)
    #expect(fates == "6 accepted, 0 rejected, 4 discarded")
  }

  @Test("Status 0 accepts what it names, and the connection goes on")
  func noError() throws {
    write(0, 10)
    guard case .response(.noError, let named?) = answer(0, 6) else { throw Unexpected() }
    #expect(named.lossWindow == nil && !life.isOver && !life.isTerminated && life.cause == nil)
    #expect(life.unsettled == 4 && fates == "6 accepted, 0 rejected, 4 unknown" && !life.hasSettledNothing)
    _ = answer(8, 9)
    #expect(fates == "8 accepted, 1 rejected, 1 discarded")
  }

  @Test("An answered marker proves everything before it, and is none of the notifications itself")
  func marker() throws {
    write(0, 10)
    life.wroteMarker(identifier: 0xffff_ffff, at: 500)
    #expect(life.hasMarker && life.unsettled == 10)
    guard case .proven(.warmUp, afterNanoseconds: 700) = answer(2, 0xffff_ffff, at: 1_200) else { throw Unexpected() }
    #expect(life.isOver && life.isTerminated && life.unsettled == 0 && life.cause == nil)
    #expect(fates == "10 accepted, 0 rejected, 0 discarded" && life.settlement.pieces == [])
  }

  @Test("A marker that is answered with identifier 0 is the marker, when nothing before it is as bad")
  func markerWithoutIdentifier() throws {
    write(0, 3)
    life.wroteMarker(identifier: 0xffff_ffff, at: 500)
    guard case .proven = answer(2, 0) else { throw Unexpected() }
    #expect(fates == "3 accepted, 0 rejected, 0 discarded")
  }

  @Test("Identifier 0 names the notification that is bad on purpose, and not the marker after it")
  func knownBad() throws {
    write(0, 5, faults: [2: .missingToken])
    life.wroteMarker(identifier: 0xffff_ffff, at: 500)
    guard case .response(.missingDeviceToken, .some) = answer(2, 0) else { throw Unexpected() }
    #expect(fates == "2 accepted, 1 rejected, 2 discarded")
  }

  @Test("An end without an answer leaves the fate of everything open")
  func silence() {
    write(0, 10)
    life.wroteMarker(identifier: 0xffff_ffff, at: 500)
    #expect(life.finishReading(at: 1_000) == nil)
    #expect(life.hasSettledNothing && fates == "0 accepted, 0 rejected, 10 unknown")
  }

  @Test("A response that names nothing settles nothing, and ends the connection", arguments: [999, 0] as [UInt32])
  func unresolved(identifier: UInt32) throws {
    write(0, 10)
    guard case .response(.invalidToken, named: nil) = answer(8, identifier) else { throw Unexpected() }
    #expect(life.isOver && !life.isTerminated && life.cause == .rejected)
    #expect(fates == "0 accepted, 0 rejected, 10 unknown")
  }

  @Test("A response to what is collected and not written yet names nothing")
  func early() throws {
    write(0, 3)
    _ = life.collecting { session in
      session.write(nil, identifier: 4, isOnlyLong: true)
      return 1
    }
    guard case .response(.invalidToken, named: nil) = answer(8, 4) else { throw Unexpected() }
    #expect(fates == "0 accepted, 0 rejected, 3 unknown")
  }

  @Test("Fates belong to the phase of the write; a marker proves the last one with a schedule")
  func phases() throws {
    write(0, 5)
    life.begin(.measured)
    write(5, 5)
    life.begin(.drain)
    write(10, 2)
    life.wroteMarker(identifier: 0xffff_ffff, at: 500)
    guard case .proven(.measured, _) = answer(2, 0xffff_ffff) else { throw Unexpected() }
    #expect(life.settlement.settled.map(\.phase) == [.warmUp, .measured, .drain])
    #expect(life.settlement.settled.map(\.accepted) == [5, 5, 2])
  }

  @Test("A marker in a phase in which nothing was written yet proves the one before")
  func markerOfPhaseBefore() throws {
    write(0, 5)
    life.begin(.measured)
    life.wroteMarker(identifier: 0xffff_ffff, at: 500)
    guard case .proven(.warmUp, _) = answer(2, 0xffff_ffff) else { throw Unexpected() }
    #expect(life.settledPhases == [.warmUp])
  }

  @Test("Rejections are counted in the phase of their write, and each once")
  func rejectionsByPhase() throws {
    write(0, 5)
    life.begin(.measured)
    write(5, 5)
    _ = answer(8, 2)
    guard case .response(.invalidToken, let named?) = answer(8, 8) else { throw Unexpected() }
    #expect(named.phase == .measured && named.lossWindow == 2)
    _ = answer(8, 8)
    #expect(life.settlement.settled.map { [$0.accepted, $0.rejected] } == [[4, 1], [2, 1]])
    #expect(life.settlement.rest.map(\.phase) == [.measured])
    #expect(life.errorReadAt == 1_000)
  }

  @Test("What no gateway says ends the connection, and settles nothing")
  func foreign() throws {
    write(0, 3)
    let events = life.receive(Array("HTTP/1.1".utf8), at: 10)
    guard case .foreign(let bytes)? = events.first, events.count == 1 else { throw Unexpected() }
    #expect(bytes.count == 8 && life.isOver && life.isForeign && life.hasSettledNothing)
  }

  private struct Unexpected: Error {}
}
