import BinaryProtocol
import Bytes
import DequeModule
import Measurement
import NIOCore

/// One event loop's part of a load: its connections, its share of the stream, its counts.
///
/// With n loops, loop i sends every n-th notification of the run, beginning with number i, at an n-th of the rate; with
/// several topics, every so many of its topic's (`LoopShare`). So loops share nothing, and need no locks.
final class LoopRunner {
  /// Records that are written before the loop handles other events.
  private static let burst = 64
  /// Consecutive writes to a socket that becomes writable after each: some milliseconds, because a return costs a
  /// timer, which is late.
  private static let longestStreak = 512

  let plan: LoadPlan
  let workload: Workload
  let loop: any EventLoop
  let share: LoopShare
  let environment: LoopEnvironment
  let lingerNanoseconds: Int64
  let lifetimeNanoseconds: Int64?
  /// Begins the protocol on a connection. The loop chooses the protocol nowhere else.
  let makeSending: () -> SpokenProtocol

  /// What is to be done when.
  var machine: LoopMachine
  var books: LoopBooks
  /// The tokens that the feedback service has listed so far; replaced between two batches.
  private(set) var listed: ListedTokens
  var connections: [ProviderConnection] = []
  /// Index of the next address to try; increases without wrapping.
  var addressIndex = 0

  /// The time of day when the loop was made, less the monotonic clock: clocks that are set later change no stamps.
  private let dayOfClock: Int64
  private var turn = 0
  private var isPumping = false
  private var isPumpScheduled = false
  /// How often sockets became writable since the loop handled anything else.
  var streak = 0

  init(
    _ plan: LoadPlan, _ workload: Workload, _ loop: any EventLoop, _ share: LoopShare, _ environment: LoopEnvironment
  ) {
    self.plan = plan
    self.workload = workload
    self.loop = loop
    self.share = share
    self.environment = environment
    dayOfClock = WallClock.system.nanoseconds() - environment.clock()
    machine = LoopMachine(.init(plan, share, jitter: environment.jitter), at: environment.clock())
    listed = ListedTokens(limit: 0)
    books = LoopBooks(timelineLimit: (max(0, plan.timelineLimit) - share.part + share.parts - 1) / share.parts)
    lingerNanoseconds = plan.batching.linger.nanoseconds
    let makeBinary = BinarySending.maker(plan, BinaryFrames(workload, share.numbers))
    makeSending = { .binary(makeBinary()) }
    lifetimeNanoseconds = plan.connections.lifetime.map { $0.nanoseconds }
  }

  func clock() -> Int64 { environment.clock() }

  /// Takes the tokens that the feedback service has listed. Notifications that are in batches are still written.
  func take(_ tokens: ListedTokens) { listed = tokens }

  var tally: LoadTally {
    _read { yield books.tally }
    _modify { yield &books.tally }
  }
  var measurements: LoadMeasurements {
    _read { yield books.measurements }
    _modify { yield &books.measurements }
  }
}

extension LoopMachine.Terms {
  init(_ plan: LoadPlan, _ share: LoopShare, jitter: UInt64) {
    most = plan.count.map { share.numbers.count(among: $0) } ?? .max
    (warmUp, duration) = (plan.warmUp.nanoseconds, plan.duration.nanoseconds)
    pacer = plan.pacer(share, limit: most)
    skipsLate = plan.behind == .skip
    maximumAttempts = plan.maximumAttempts
    self.jitter = SplitMix64(seed: jitter)
    (backoff, maximumBackoff) = (plan.connections.backoff, plan.connections.maximumBackoff)
    giveUp = plan.connections.giveUp.nanoseconds
  }
}

// MARK: - the run's phases

extension LoopRunner {
  /// The schedule begins, with the warm-up if there is one.
  ///
  /// - Parameter beginning: the same on all loops.
  func begin(_ beginning: Beginning) {
    if plan.start != nil { machine.renewPatience(at: beginning.run) }
    perform(machine.begin(beginning), at: beginning.run)
  }

  /// Nothing becomes due from `time` on; due notifications may still be written.
  func endSchedule(at time: Int64) { perform(machine.endSchedule(at: time), at: time) }

  /// Enters the next phase at the time that the plan has for it: figures belong to that phase from then on.
  @inline(__always)
  func passTime(_ now: Int64) { perform(machine.pass(now), at: now) }

  /// Performs the actions that the machine has returned.
  func perform(_ actions: [LoopMachine.Action], at now: Int64) {
    for action in actions {
      switch action {
      case .enter(let phase):
        books.enter(phase)
        for connection in connections { connection.begin(phase) }
      case .skip(let count): tally.skipped += count
      case .miss(let count):
        tally.skipped += count
        tally.missed += count
      case .leave(let count): tally.unsent += count
      case .neverSent(let count, let due): noteNeverSent(count, due, at: now)
      case .abandon(let pieces): abandon(pieces)
      case .send: pump()
      case .sendSoon: schedulePump()
      case .close: for connection in connections { connection.close(as: .local) }
      }
    }
  }
}

// MARK: - sending

extension LoopRunner {
  /// Whether notifications are in flight or to be resent.
  var isUnsettled: Bool { machine.hasLeftovers || connections.contains { $0.unsettled > 0 || $0.hasBatch } }

  /// Pumps after the loop has polled its sockets and read. Repeated requests are merged.
  func schedulePump() {
    guard !isPumpScheduled else { return }
    isPumpScheduled = true
    environment.afterSockets {
      self.isPumpScheduled = false
      self.streak = 0
      self.pump()
    }
  }

  /// Sends due notifications as batches over the writable connections.
  ///
  /// Called when time has passed; never waits.
  func pump() {
    pumping { now in
      var records = 0
      // Check for due notifications before advancing the round-robin index: otherwise an idle pass would consume a
      // turn, and every other connection would get nothing.
      while let next = machine.next(), let connection = nextReady(), fill(connection, next, now, &records) {}
      for connection in connections { connection.flushWhatWaits(now) }
    }
  }

  /// Sends due notifications over one connection, which can take more now, without a search among all connections.
  ///
  /// A socket that accepts everything signals writability after each write; answering with another write would starve
  /// the loop, so the streak is limited.
  func pump(_ connection: ProviderConnection) {
    pumping { now in
      streak += 1
      guard streak < Self.longestStreak else { return comeBack() }
      connection.flushWhatWaits(now)
      var records = 0
      while connection.isReady, let next = machine.next(), fill(connection, next, now, &records) {}
      connection.flushWhatWaits(now)
    }
  }

  private func pumping(_ body: (_ now: Int64) -> Void) {
    // A pump is already scheduled; return, otherwise each tick would add a burst and the loop would never read.
    guard !isPumping, !isPumpScheduled, machine.isSending else { return }
    isPumping = true
    defer { isPumping = false }
    let now = clock()
    books.pauses.notePoll(at: now)
    passTime(now)
    perform(machine.look(now), at: now)
    body(now)
  }

  /// Fills a connection with due notifications, up to a record, and writes it if the socket is writable; `false` to
  /// stop.
  private func fill(
    _ connection: ProviderConnection, _ next: SentLog.Piece, _ now: Int64, _ records: inout Int
  ) -> Bool {
    var next = next
    if leavesOutListed {
      switch leaveOutListed(next, now) {
      case .piece(let piece): next = piece
      case .nothing: return true
      case .tooMany:
        comeBack()
        return false
      }
    }
    let taken = connection.collect(next, now: now) { count in
      let (due, isNew) = machine.take(count, of: next, now)
      if isNew { tally.generated += count }
      return due
    }
    guard taken == 0 || !connection.isReady else { return true }
    if connection.isWritable {
      guard connection.flushUnlessAnswered(.full) else { return true }
    } else if taken == 0 {
      return false
    }
    records += 1
    guard records >= Self.burst else { return true }
    comeBack()
    return false
  }

  /// Writes the times into the payloads of a batch that is written now.
  ///
  /// What is sent again was due when it was due first, which only an evenly spaced schedule tells: then the content of a
  /// notification is the same each time but for when it was written.
  func stamp(_ batch: inout ConnectionBatch, at now: Int64) {
    batch.stamp(written: now + dayOfClock) { piece, due, place in
      if let first = machine.firstDue(of: piece.index + place) { return first + dayOfClock }
      guard piece.attempt == 0 else { return 0 }
      guard piece.count > 1 else { return due.first + dayOfClock }
      let part = Double(place) / Double(piece.count - 1)
      return due.first + Int64(Double(due.last - due.first) * part) + dayOfClock
    }
  }

  /// Schedules another pass, because notifications are due and a connection has room: until then, delays are this
  /// side's.
  private func comeBack() {
    books.pauses.isBusy = true
    schedulePump()
  }

  /// The next connection in turn that takes something; one that can write at once before one that collects.
  private func nextReady() -> ProviderConnection? {
    var collecting: ProviderConnection?
    for offset in connections.indices {
      let connection = connections[(turn + offset) % connections.count]
      guard connection.isReady else { continue }
      if connection.isWritable {
        turn = (turn + offset + (connection.hasBatch ? 0 : 1)) % connections.count
        return connection
      }
      if collecting == nil { collecting = connection }
    }
    return collecting
  }
}
