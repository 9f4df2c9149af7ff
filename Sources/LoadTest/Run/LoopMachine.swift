import Measurement

/// The rules of one event loop's part of a load: what is due, what is written next and what again, and when connections
/// open and close.
///
/// A value without sockets or a clock. Events go in with their times, and what the loop has to do comes out:
///
/// ```
/// connecting ── begin ──▶ running ── drain ──▶ draining ── finish ──▶ over
///      └─────────────────── drain ────────────────┘
/// ```
struct LoopMachine {
  enum State {
    case connecting
    case running(Running)
    case draining(Draining)
    case over
  }

  /// The state while the schedule runs, or notifications that were due in it are still written.
  struct Running {
    var timetable: Timetable
    /// Notifications that are due and not taken yet.
    var owed = 0
    /// The first notification that was never taken.
    var next = 0
    var resends = Resends()
  }

  /// Nothing new is written.
  struct Draining {
    var timetable: Timetable
    var resends = Resends()
  }

  /// An action that the loop has to perform.
  enum Action: Equatable {
    /// Counts are of this phase from now on.
    case enter(RunPhase)
    /// The number of notifications that are not sent because they would be late: they count as skipped.
    case skip(Int)
    /// The number of notifications that were due before a start that was late: they count as skipped.
    case miss(Int)
    /// The number of notifications that are not sent because no connection had room.
    case leave(Int)
    /// The lag of notifications that are never sent.
    case neverSent(Int, DueTimes)
    /// The notifications that are abandoned. The fate of the last sending of some is unknown.
    case abandon([SentLog.Piece])
    /// Due notifications may be written now.
    case send
    /// Due notifications may be written after the loop has handled its sockets.
    case sendSoon
    /// All connections are closed gracefully.
    case close
  }

  /// What the machine needs to know of a plan.
  struct Terms {
    /// Notifications of this loop.
    var most: Int
    var warmUp: Int64
    var duration: Int64
    /// `nil` without a schedule.
    var pacer: Pacer?
    var skipsLate: Bool
    var maximumAttempts: Int
    /// Of the waits before connections are opened again.
    var jitter: SplitMix64
    var backoff: Duration
    var maximumBackoff: Duration
    var giveUp: Int64
  }

  private var state = State.connecting
  private var terms: Terms
  /// The phase that counts belong to now.
  private(set) var phase = RunPhase.connect
  private var nextPhaseAt = Int64.max
  /// The last phase in which something became due.
  private(set) var lastScheduled = RunPhase.connect
  /// When the schedule began, or the run if it began after it, or the loop before that.
  private(set) var start: Int64
  private(set) var watch: LoopWatch

  init(_ terms: Terms, at now: Int64) {
    (self.terms, start) = (terms, now)
    watch = LoopWatch(at: now)
  }

  // MARK: what it is at

  var isConnecting: Bool { if case .connecting = state { true } else { false } }
  var isRunning: Bool { if case .running = state { true } else { false } }
  var isOver: Bool { if case .over = state { true } else { false } }
  /// Something may be written.
  var isSending: Bool {
    switch state {
    case .running, .draining: true
    case .connecting, .over: false
    }
  }

  /// Moves the state out, so that none of its parts is copied when it changes; the caller puts one back.
  private mutating func takeState() -> State { exchange(&state, with: .over) }

  private var resends: Resends? {
    switch state {
    case .running(let running): running.resends
    case .draining(let draining): draining.resends
    case .connecting, .over: nil
    }
  }

  private var timetable: Timetable? {
    switch state {
    case .running(let running): running.timetable
    case .draining(let draining): draining.timetable
    case .connecting, .over: nil
    }
  }

  /// Whether there are resends.
  var hasLeftovers: Bool { resends?.isEmpty == false }
  /// Whether there are resends that may go over any connection.
  var hasResends: Bool { resends?.hasNext == true }
  var hasSchedule: Bool { timetable?.hasSchedule == true }
  /// All of a count was taken.
  var isAllTaken: Bool {
    guard case .running(let running) = state else { return false }
    return running.next >= terms.most && running.resends.isEmpty
  }
  /// Something is due and not taken.
  var isOwing: Bool {
    guard case .running(let running) = state else { return false }
    return running.timetable.hasSchedule && running.owed > 0 && running.next < terms.most
  }
  /// Due notifications and resends that are not taken; 0 without a schedule.
  var backlog: Int {
    guard hasSchedule else { return 0 }
    let resends = resends?.count ?? 0
    guard case .running(let running) = state else { return resends }
    return resends + min(running.owed, terms.most - running.next)
  }
  /// The phase that a lag belongs to: sendings due in the schedule may be written, or given up, after it.
  var phaseOfDue: RunPhase { phase == .drain ? lastScheduled : phase }

  func isDueInSchedule(_ due: DueTimes) -> Bool { due.first < (timetable?.end ?? .max) }
}

// MARK: - the run's phases

extension LoopMachine {
  /// The schedule begins, with the warm-up if there is one.
  ///
  /// Of a run that begins later than its schedule, what was due before is late, or is left out.
  mutating func begin(_ beginning: Beginning) -> [Action] {
    start = beginning.run
    let time = beginning.schedule
    state = .running(
      Running(
        timetable: Timetable(
          start: time, end: time + terms.warmUp + terms.duration, terms.pacer, skipsLate: terms.skipsLate)))
    var actions = [enter(terms.warmUp > 0 ? .warmUp : .measured)]
    actions += pass(start)
    if beginning.leavesOut, case .running(var running) = takeState() {
      running.miss(start, &actions)
      state = .running(running)
    }
    return actions + [.send]
  }

  /// No gateway could be of use before this time, because nothing was to be sent.
  mutating func renewPatience(at time: Int64) { watch.lastOpen = max(watch.lastOpen, time) }

  /// Counts belong to another phase from the moment on that the plan has for it; to several ones, if the loop slept.
  @inline(__always)
  mutating func pass(_ now: Int64) -> [Action] { now < nextPhaseAt ? [] : enterDue(now) }

  @inline(never)
  private mutating func enterDue(_ now: Int64) -> [Action] {
    var actions: [Action] = []
    while now >= nextPhaseAt { actions.append(enter(phase == .warmUp ? .measured : .drain)) }
    return actions
  }

  /// Nothing becomes due from `time` on; due notifications may still be written.
  mutating func endSchedule(at time: Int64) -> [Action] {
    switch takeState() {
    case .running(var running):
      running.timetable.end(at: time)
      state = .running(running)
    case let other: state = other
    }
    return phase == .drain ? [] : [enter(.drain)]
  }

  private mutating func enter(_ next: RunPhase) -> Action {
    phase = next
    if next != .drain { lastScheduled = next }
    switch next {
    case .connect, .drain: nextPhaseAt = .max
    case .warmUp: nextPhaseAt = (timetable?.start ?? start) + terms.warmUp
    case .measured: nextPhaseAt = timetable?.end ?? .max
    }
    return .enter(next)
  }

  /// Only what was written before is still to be settled. What is due and was not taken never is sent.
  mutating func drain(at now: Int64) -> [Action] {
    switch takeState() {
    case .connecting:
      state = .draining(Draining(timetable: Timetable(start: now, end: now, nil, skipsLate: false)))
      return [.close]
    case .running(var running):
      var actions: [Action] = []
      if running.timetable.hasSchedule {
        // Notifications have become due since the last call of `look`.
        running.look(now, &actions)
        if running.owed > 0 { actions.append(.leave(running.owed)) }
        running.neverSend(running.owed, &actions)
      }
      state = .draining(Draining(timetable: running.timetable, resends: running.resends))
      return actions + [.close]
    case let other:
      state = other
      return []
    }
  }

  /// The run is over: what was to be sent again is given up.
  mutating func finish(at now: Int64) -> [Action] {
    let left = resends?.pieces ?? []
    // Pieces with attempt 0 were collected and never written.
    var actions = left.filter { $0.attempt == 0 }.map { Action.neverSent($0.count, due($0.count, of: $0, now)) }
    if !left.isEmpty { actions.append(.abandon(left)) }
    state = .over
    return actions
  }
}

// MARK: - sending

extension LoopMachine {
  /// Time has passed, and more may be due.
  mutating func look(_ now: Int64) -> [Action] {
    var actions: [Action] = []
    switch takeState() {
    case .running(var running):
      running.look(now, &actions)
      state = .running(running)
    case let other: state = other
    }
    return actions
  }

  /// The next piece: resends in order, then new notifications.
  mutating func next() -> SentLog.Piece? {
    switch takeState() {
    case .running(var running):
      defer { state = .running(running) }
      if let piece = running.resends.next() { return piece }
      guard running.owed > 0, running.next < terms.most else { return nil }
      return SentLog.Piece(
        index: running.next, count: min(running.owed, terms.most - running.next, 1 << 20), attempt: 0)
    case .draining(var draining):
      defer { state = .draining(draining) }
      return draining.resends.next()
    case let other:
      state = other
      return nil
    }
  }

  /// The first `count` of the piece that `next()` returned are written soon.
  ///
  /// - Returns: when they were due, and whether they are new.
  mutating func take(_ count: Int, of piece: SentLog.Piece, _ now: Int64) -> (due: DueTimes, isNew: Bool) {
    switch takeState() {
    case .running(var running):
      defer { state = .running(running) }
      guard !running.resends.hasNext else {
        running.resends.take(count)
        // One that was never written is late since it was due.
        return (running.timetable.due(count, of: piece, now), false)
      }
      running.next += count
      if running.owed != .max { running.owed -= count }
      // Without a schedule notifications are due when a connection has room.
      return (running.timetable.take(count) ?? DueTimes(now), true)
    case .draining(var draining):
      defer { state = .draining(draining) }
      draining.resends.take(count)
      return (draining.timetable.due(count, of: piece, now), false)
    case let other:
      state = other
      return (DueTimes(now), false)
    }
  }

  /// When a notification was due first; `nil` without a schedule, and in a random one.
  func firstDue(of index: Int) -> Int64? { timetable?.due(1, from: index)?.first }

  /// When the first `count` of a piece that was taken before were due.
  func due(_ count: Int, of piece: SentLog.Piece, _ now: Int64) -> DueTimes {
    timetable?.due(count, of: piece, now) ?? DueTimes(piece.due ?? now)
  }
}

extension LoopMachine.Running {
  fileprivate mutating func look(_ now: Int64, _ actions: inout [LoopMachine.Action]) {
    guard let more = timetable.due(at: now) else {
      owed = now < timetable.end ? .max : 0
      return
    }
    owed += more
    let late = min(owed, (timetable.late(at: now) ?? 0) - next)
    guard late > 0 else { return }
    next += late
    owed -= late
    actions.append(.skip(late))
    neverSend(late, &actions)
  }

  /// Notifications that are due by now are left out.
  fileprivate mutating func miss(_ now: Int64, _ actions: inout [LoopMachine.Action]) {
    guard let due = timetable.due(at: now), due > 0 else { return }
    next += due
    actions.append(.miss(due))
    neverSend(due, &actions)
  }

  /// So many that are due next are left out for good.
  fileprivate mutating func neverSend(_ count: Int, _ actions: inout [LoopMachine.Action]) {
    var left = count
    // In parts, since they may have become due over a long time, and at a rate that changed.
    let part = max(16, count / 64)
    while left > 0, let due = timetable.take(min(part, left)) {
      actions.append(.neverSent(min(part, left), due))
      left -= min(part, left)
    }
  }
}

extension Timetable {
  /// For a piece taken before: a resend is due since it became known.
  fileprivate func due(_ count: Int, of piece: SentLog.Piece, _ now: Int64) -> DueTimes {
    guard piece.attempt == 0, let due = due(count, from: piece.index) else { return DueTimes(piece.due ?? now) }
    return due
  }
}

// MARK: - resends

extension LoopMachine {
  /// The number of silently closed connections after which a notification is abandoned that was the only one on each:
  /// the notification is the cause.
  static let maximumAlone = 3

  /// Adds pieces that were discarded or left open: they are written before all new notifications, in their order.
  mutating func sendAgain(_ pieces: [SentLog.Piece], at now: Int64) -> [Action] {
    var (left, abandoned): ([SentLog.Piece], [SentLog.Piece]) = ([], [])
    for var piece in pieces {
      piece.attempt += 1
      if piece.attempt >= terms.maximumAttempts || piece.alone >= Self.maximumAlone {
        abandoned.append(piece)
      } else {
        left.append(piece)
      }
    }
    return (abandoned.isEmpty ? [] : [.abandon(abandoned)]) + putBack(left, at: now)
  }

  /// Adds pieces that are to be written before all new notifications.
  mutating func putBack(_ pieces: [SentLog.Piece], at now: Int64) -> [Action] {
    guard !pieces.isEmpty else { return [] }
    func add(to resends: inout Resends) {
      for var piece in pieces {
        piece.due = piece.due ?? now
        resends.add(piece)
      }
    }
    return changeResends { add(to: &$0) } == nil ? [.abandon(pieces)] : [.sendSoon]
  }

  /// A new connection takes these suspects alone.
  mutating func probe() -> [SentLog.Piece] { changeResends { $0.takeSuspects() } ?? [] }

  /// `nil` in a state without resends.
  private mutating func changeResends<Value>(_ body: (inout Resends) -> Value) -> Value? {
    switch takeState() {
    case .running(var running):
      defer { state = .running(running) }
      return body(&running.resends)
    case .draining(var draining):
      defer { state = .draining(draining) }
      return body(&draining.resends)
    case let other:
      state = other
      return nil
    }
  }

  /// Suspects need a connection of their own, which has to be made free.
  ///
  /// - Parameter isComing: such a connection is opening, or is about to take the suspects.
  func needsRoomForSuspects(isComing: Bool) -> Bool {
    guard !isComing, case .running(let running) = state else { return false }
    return running.resends.hasSuspects
  }
}

// MARK: - connections

extension LoopMachine {
  /// Whether closed connections are to be reopened; while draining only for resends.
  var wantsConnections: Bool {
    switch state {
    case .connecting, .running: true
    case .draining(let draining): !draining.resends.isEmpty
    case .over: false
    }
  }

  enum Reopening: Equatable {
    case never
    case now
    /// In so many nanoseconds.
    case after(Int64)
  }

  /// Silent closes before a connection backs off as after a failure. Fewer occur while a suspect is isolated.
  static let silencesWithoutWait = 6

  /// A connection has ended, or could not be made: it is opened again at once after an end, later after a failure or
  /// when all its ends are silent.
  mutating func reopening(failures: Int, silences: Int) -> Reopening {
    guard wantsConnections else { return .never }
    let failures = max(failures, silences - Self.silencesWithoutWait)
    guard failures > 0 else { return .now }
    let doubled = terms.backoff * Double(1 << min(16, failures - 1))
    let most = Double(min(doubled, terms.maximumBackoff).nanoseconds)
    return .after(Int64(Double.random(in: most / 2...max(most / 2, most), using: &terms.jitter)))
  }

  mutating func noteOpened() { watch.openedSinceOfUse += 1 }

  /// Whether nothing is to be written on a connection for a while.
  mutating func takesQuietOpening(_ tally: LoadTally) -> Bool { watch.takesQuietOpening(tally) }

  /// The loop's timer has fired before.
  var hasTicked: Bool { watch.lastTick != nil }

  /// The loop's timer has fired, `late` nanoseconds after its due time.
  mutating func tick(_ now: Int64, late: Int64) { watch.tick(now, late: late) }

  /// A connection is of use.
  mutating func noteUse(_ now: Int64) { (watch.lastOpen, watch.openedSinceOfUse) = (now, 0) }

  /// No connection was of use for as long as the plan allows.
  var isCutOff: Bool { watch.hasBeenCutOff(for: terms.giveUp) }
}
