import BinaryProtocol
import Bytes
import DequeModule
import Measurement
import NIOCore

/// One event loop's part of a load: its connections, its share of the stream, its counts.
///
/// With n loops, loop i sends every n-th notification of the run, beginning with number i, at an n-th of the rate. So
/// loops share nothing, and need no locks.
final class LoopRunner {
  /// Records that are written before the loop looks at other things.
  private static let burst = 64
  /// The same where a socket asks for more after each: some milliseconds, because to come back costs a timer, which is
  /// late.
  private static let longestStreak = 512

  enum Phase { case connecting, running, draining, over }

  let plan: LoadPlan
  let workload: Workload
  let loop: any EventLoop
  let part: Int
  let parts: Int
  let environment: LoopEnvironment
  var jitter: SplitMix64
  var pacer: Pacer?
  /// The schedule delayed by the maximum lateness: sendings due in it that were not sent are skipped; `nil` without
  /// skipping.
  var latePacer: Pacer?
  /// The schedule up to the sendings taken: it knows when the next one was due.
  var takenPacer: Pacer?
  /// Nothing is due at it or after it.
  private(set) var scheduleEnd = Int64.max
  var phase = Phase.connecting
  var connections: [ProviderConnection] = []

  /// The phase that counts belong to now; `phase` is the state of the runner.
  private(set) var runPhase = RunPhase.connect
  private var nextPhaseAt = Int64.max
  /// The last phase in which something became due.
  private(set) var lastScheduled = RunPhase.connect
  /// Totals of the current phase, and of earlier ones.
  private var current = PhaseTotals()
  private var earlier = [PhaseTotals](repeating: PhaseTotals(), count: RunPhase.allCases.count)
  var tally: LoadTally {
    _read { yield current.tally }
    _modify { yield &current.tally }
  }
  var measurements: LoadMeasurements {
    _read { yield current.measurements }
    _modify { yield &current.measurements }
  }
  var bins = WriteBins()
  var pauses = LoopPauses()
  var stalls = StallWatch(shortest: Int64(RunResult.Stalls.shortestMs * 1e6))
  var timeline: ConnectionTimeline
  var lastError = ""
  /// The first permanent failure.
  var permanentFailure: PermanentFailure?
  /// Index of the next address to try; increases without wrapping.
  var addressIndex = 0

  /// Resends, which go before anything new.
  var resendQueue: Deque<SentLog.Piece> = []
  var isResendQueueSorted = true
  /// Pieces with a notification suspected of silently ending connections. They are sent on separate connections.
  var suspects: Deque<SentLog.Piece> = []
  /// Due and not sent yet.
  private(set) var owed = 0
  var next = 0
  /// When the last batch was written; 0: none was.
  var lastWrite: Int64 = 0
  private var turn = 0
  private var isPumping = false
  private var isPumpScheduled = false
  /// How often sockets became writable since the loop handled anything else.
  var streak = 0
  /// When the loop's timer fired last.
  var lastTick: Int64?
  /// Nanoseconds in which this loop stood still.
  var stoodStill: Int64 = 0
  /// Connections opened since one was of use.
  var openedSinceOfUse = 0
  var hasOpenedQuietly = false
  let most: Int
  var start: Int64
  var lastOpen: Int64

  let lingerNanoseconds: Int64
  let markerTimeoutNanoseconds: Int64
  let lifetimeNanoseconds: Int64?

  init(
    _ plan: LoadPlan, _ workload: Workload, _ loop: any EventLoop, part: Int, of parts: Int,
    _ environment: LoopEnvironment
  ) {
    self.plan = plan
    self.workload = workload
    self.loop = loop
    self.part = part
    self.parts = parts
    self.environment = environment
    jitter = SplitMix64(seed: environment.jitter)
    start = environment.clock()
    lastOpen = start
    timeline = ConnectionTimeline(limit: (max(0, plan.timelineLimit) - part + parts - 1) / parts)
    most = plan.count.map { ($0 - part + parts - 1) / parts } ?? .max
    lingerNanoseconds = plan.batching.linger.nanoseconds
    markerTimeoutNanoseconds = plan.markerTimeout.nanoseconds
    lifetimeNanoseconds = plan.connections.lifetime.map { $0.nanoseconds }
  }

  func clock() -> Int64 { environment.clock() }
}

// MARK: - the run's phases

extension LoopRunner {
  /// The schedule begins, with the warm-up if there is one.
  ///
  /// - Parameter time: the same on all loops, nanoseconds of the monotonic clock.
  func begin(at time: Int64) {
    start = time
    phase = .running
    let warmUp = plan.warmUp.nanoseconds
    scheduleEnd = time + warmUp + plan.duration.nanoseconds
    nextPhaseAt = time
    enterPhase(warmUp > 0 ? .warmUp : .measured)
    pacer = plan.pacer(part: part, of: parts, limit: most)
    takenPacer = pacer
    if plan.behind == .skip { latePacer = pacer }
    pump()
  }

  /// Nothing becomes due from `time` on; due notifications may still be written.
  func endSchedule(at time: Int64) {
    scheduleEnd = min(scheduleEnd, time)
    if runPhase != .drain { enterPhase(.drain) }
  }

  /// Figures belong to another phase from the moment on that the plan has for it.
  @inline(__always)
  func passTime(_ now: Int64) {
    if now >= nextPhaseAt { enterPhase(runPhase == .warmUp ? .measured : .drain) }
  }

  private func enterPhase(_ next: RunPhase) {
    earlier[runPhase.index].merge(current)
    current = PhaseTotals()
    runPhase = next
    if next != .drain { lastScheduled = next }
    for connection in connections { connection.begin(next) }
    switch next {
    case .connect, .drain: nextPhaseAt = .max
    case .warmUp: nextPhaseAt = start + plan.warmUp.nanoseconds
    case .measured: nextPhaseAt = scheduleEnd
    }
    // The loop may have slept through a whole phase.
    passTime(clock())
  }

  /// Changes the totals of a phase, possibly an earlier one.
  func book(_ phase: RunPhase, _ change: (inout PhaseTotals) -> Void) {
    if phase == runPhase { change(&current) } else { change(&earlier[phase.index]) }
  }

  /// Counts of each phase so far, in their order.
  var tallies: [LoadTally] {
    var all = earlier.map(\.tally)
    all[runPhase.index] += current.tally
    return all
  }

  /// When the last thing was settled that was written in the phase; 0: nothing was.
  func settledAt(_ phase: RunPhase) -> Int64 {
    max(earlier[phase.index].settledAt, phase == runPhase ? current.settledAt : 0)
  }

  /// The measurements of each phase since the last call.
  func takeMeasurements() -> [LoadMeasurements] {
    var all: [LoadMeasurements] = []
    for phase in RunPhase.allCases {
      all.append(earlier[phase.index].measurements)
      earlier[phase.index].measurements = LoadMeasurements()
    }
    all[runPhase.index].merge(current.measurements)
    current.measurements = LoadMeasurements()
    return all
  }
}

// MARK: - sending

extension LoopRunner {
  /// Whether there are resends.
  var hasLeftovers: Bool { !resendQueue.isEmpty || !suspects.isEmpty }

  /// Whether notifications are in flight or to be resent.
  var isUnsettled: Bool { hasLeftovers || connections.contains { $0.unsettled > 0 || $0.hasBatch } }

  /// Whether closed connections are to be reopened; while draining only for resends.
  var wantsConnections: Bool {
    switch phase {
    case .connecting, .running: true
    case .draining: hasLeftovers
    case .over: false
    }
  }

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
      while let next = nextPiece(), let connection = nextReady(), fill(connection, next, now, &records) {}
      for connection in connections { connection.flushWhatWaits(now) }
    }
  }

  /// The same over a connection that can take more now. The others, which may be many, are not looked at.
  ///
  /// A socket that accepts everything signals writability after each write; answering with another write would starve
  /// the loop, so the streak is limited.
  func pump(_ connection: ProviderConnection) {
    pumping { now in
      streak += 1
      guard streak < Self.longestStreak else { return comeBack() }
      connection.flushWhatWaits(now)
      var records = 0
      while connection.isReady, let next = nextPiece(), fill(connection, next, now, &records) {}
      connection.flushWhatWaits(now)
    }
  }

  private func pumping(_ body: (_ now: Int64) -> Void) {
    // A pump is already scheduled; return, otherwise each tick would add a burst and the loop would never read.
    guard !isPumping, !isPumpScheduled, phase == .running || phase == .draining else { return }
    isPumping = true
    defer { isPumping = false }
    let now = clock()
    pauses.notePoll(at: now)
    passTime(now)
    if phase == .running { updateOwed(now) }
    body(now)
  }

  /// Fills a connection with due notifications, up to a record, and writes it if the socket is writable; `false` to
  /// stop.
  private func fill(
    _ connection: ProviderConnection, _ next: SentLog.Piece, _ now: Int64, _ records: inout Int
  ) -> Bool {
    let taken = connection.collect(next, now: now) { take($0, of: next, now) }
    consume(next, taken)
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

  /// There is more to be sent, and room for it: until the loop comes back to it, it is this side that is late.
  private func comeBack() {
    pauses.isBusy = true
    schedulePump()
  }

  private func updateOwed(_ time: Int64) {
    guard pacer != nil else {
      owed = time < scheduleEnd ? .max : 0
      return
    }
    // A sending that would be due at the very end is not.
    let now = min(time, scheduleEnd - 1)
    owed += pacer?.due(at: Double(now - start) / 1e9) ?? 0
    if latePacer != nil { skipLate(now) }
  }

  /// The end: writes due notifications as far as possible; the rest is never sent.
  func leaveOwed() {
    guard phase == .running, pacer != nil else { return }
    pump()
    // Notifications became due since the last look, when it could not look now.
    updateOwed(clock())
    tally.unsent += owed
    neverSent(owed, at: clock())
    owed = 0
  }

  private func skipLate(_ now: Int64) {
    _ = latePacer?.due(at: Double(now - start) / 1e9 - LoadPlan.lateness / .seconds(1))
    let late = min(owed, (latePacer?.count ?? 0) - next)
    guard late > 0 else { return }
    next += late
    owed -= late
    tally.skipped += late
    neverSent(late, at: now)
  }

  /// The next piece: resends in order, then new notifications.
  private func nextPiece() -> SentLog.Piece? {
    if !isResendQueueSorted { sortAgain() }
    if let piece = resendQueue.first { return piece }
    guard phase == .running, owed > 0, next < most else { return nil }
    return SentLog.Piece(index: next, count: min(owed, most - next, 1 << 20), attempt: 0)
  }

  private func sortAgain() {
    resendQueue = Deque(SentLog.Piece.sorted(resendQueue))
    suspects = Deque(SentLog.Piece.sorted(suspects))
    isResendQueueSorted = true
  }

  private func consume(_ piece: SentLog.Piece, _ taken: Int) {
    guard taken > 0 else { return }
    if !resendQueue.isEmpty {
      resendQueue[resendQueue.startIndex].index += taken
      resendQueue[resendQueue.startIndex].count -= taken
      if resendQueue[resendQueue.startIndex].count == 0 { resendQueue.removeFirst() }
    } else {
      next += taken
      tally.generated += taken
      if owed != .max { owed -= taken }
    }
  }

  /// When the first `count` of the next piece were due; new ones count as taken.
  private func take(_ count: Int, of piece: SentLog.Piece, _ now: Int64) -> DueTimes {
    if resendQueue.isEmpty {
      // Without a schedule they are due when there is room for them.
      return takenPacer?.take(count).map { DueTimes($0, since: start) } ?? DueTimes(now)
    }
    // One that was never written is late since it was due.
    return dueTimes(ofFirst: count, of: piece)
  }

  /// For a piece taken before: a resend is due since it became known.
  func dueTimes(ofFirst count: Int, of piece: SentLog.Piece) -> DueTimes {
    guard piece.attempt == 0, let first = pacer?.time(of: piece.index),
      let last = pacer?.time(of: piece.index + count - 1)
    else { return DueTimes(piece.due ?? clock()) }
    return DueTimes((first, last), since: start)
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
