import APNSProtocol
import Bytes
import DequeModule
import NIOCore

/// One event loop's part of a load: its connections, its share of the stream, its books.
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
  let world: World
  var jitter: SplitMix
  var pacer: Pacer?
  /// The same schedule as late as may be: what it tells of and was not sent is skipped; `nil` when nothing is.
  var latePacer: Pacer?
  /// When the first of those that are owed was due, where chance decides over that.
  private var owedSince: Double?
  /// Nothing is due after it; `nil` while the schedule runs.
  var scheduleEnd: Int64?
  var phase = Phase.connecting
  var connections: [ProviderConnection] = []

  var tally = LoadTally()
  var measurements = LoadMeasurements()
  var timeline: ConnectionTimeline
  var lastError = ""
  /// The first thing that another attempt does not overcome.
  var obstacle: Obstacle?
  /// Which of the gateway's addresses is tried first, counted on and on.
  var addressIndex = 0

  /// What is to be sent again, before anything new.
  var again: Deque<SentLog.Piece> = []
  var isAgainSorted = true
  /// Of these, one may be what ends connections without a word. They go on connections of their own.
  var suspects: Deque<SentLog.Piece> = []
  var againSince: Int64 = 0
  /// Due and not sent yet.
  private(set) var owed = 0
  var next = 0
  private var turn = 0
  private var isPumping = false
  private var isPumpScheduled = false
  /// How often sockets asked for more since the loop came to look at other things.
  var streak = 0
  var lastTick: Int64?
  let most: Int
  var start: Int64
  var lastOpen: Int64

  let lingerNanoseconds: Int64
  let markerTimeoutNanoseconds: Int64
  let lifetimeNanoseconds: Int64?

  init(_ plan: LoadPlan, _ workload: Workload, _ loop: any EventLoop, part: Int, of parts: Int, _ world: World) {
    self.plan = plan
    self.workload = workload
    self.loop = loop
    self.part = part
    self.parts = parts
    self.world = world
    jitter = SplitMix(seed: world.jitter)
    start = world.clock()
    lastOpen = start
    timeline = ConnectionTimeline(limit: (max(0, plan.timelineLimit) - part + parts - 1) / parts)
    most = plan.count.map { ($0 - part + parts - 1) / parts } ?? .max
    lingerNanoseconds = Int64(plan.batching.linger / .nanoseconds(1))
    markerTimeoutNanoseconds = Int64(plan.markerTimeout / .nanoseconds(1))
    lifetimeNanoseconds = plan.connections.lifetime.map { Int64($0 / .nanoseconds(1)) }
  }

  func clock() -> Int64 { world.clock() }
}

// MARK: - sending

extension LoopRunner {
  /// Something is to be sent again.
  var hasLeftovers: Bool { !again.isEmpty || !suspects.isEmpty }

  /// Something is on its way, or is to be sent again.
  var isUnsettled: Bool { hasLeftovers || connections.contains { $0.unsettled > 0 || $0.hasBatch } }

  /// A connection that is down has to be made again. At the end only for what is left.
  var wantsConnections: Bool {
    switch phase {
    case .connecting, .running: true
    case .draining: hasLeftovers
    case .over: false
    }
  }

  /// Soon, and not at once: first the loop comes to its sockets, and reads. However often it is asked for, it is done once.
  func schedulePump() {
    guard !isPumpScheduled else { return }
    isPumpScheduled = true
    world.afterSockets {
      self.isPumpScheduled = false
      self.streak = 0
      self.pump()
    }
  }

  /// Sends what is due, as batches, over the connections that can take them.
  ///
  /// Called when time has passed; never waits.
  func pump() {
    pumping { now in
      var records = 0
      // Whose turn it is, is asked for only when there is something: else that would be a turn as well, and every other
      // connection got nothing.
      while let next = nextPiece(now), let connection = nextReady(), fill(connection, next, now, &records) {}
      for connection in connections { connection.flushWhatWaits(now) }
    }
  }

  /// The same over a connection that can take more now. The others, which may be many, are not looked at.
  ///
  /// A socket that takes whatever it is given says so at once, and again after each write: as long as it is answered with
  /// another one, its loop comes to nothing else. So there is an end to it.
  func pump(_ connection: ProviderConnection) {
    pumping { now in
      streak += 1
      guard streak < Self.longestStreak else { return schedulePump() }
      connection.flushWhatWaits(now)
      var records = 0
      while connection.isReady, let next = nextPiece(now), fill(connection, next, now, &records) {}
      connection.flushWhatWaits(now)
    }
  }

  private func pumping(_ body: (_ now: Int64) -> Void) {
    // Who pumps again in a moment pumps then: else each tick would add a burst, and the loop would never come to read.
    guard !isPumping, !isPumpScheduled, phase == .running || phase == .draining else { return }
    isPumping = true
    defer { isPumping = false }
    let now = clock()
    if phase == .running { updateOwed(now) }
    body(now)
  }

  /// Gives a connection what is due, a record at most, and writes it if the socket takes it; `false` when it is time to
  /// stop.
  private func fill(_ connection: ProviderConnection, _ next: NextPiece, _ now: Int64, _ records: inout Int) -> Bool {
    let taken = connection.collect(next.piece, due: next.due, now: now)
    consume(next.piece, taken)
    guard taken == 0 || !connection.isReady else { return true }
    if connection.isWritable {
      guard connection.flushUnlessAnswered(.full) else { return true }
    } else if taken == 0 {
      return false
    }
    records += 1
    guard records >= Self.burst else { return true }
    schedulePump()
    return false
  }

  private func updateOwed(_ time: Int64) {
    let now = min(time, scheduleEnd ?? time)
    guard pacer != nil else {
      owed = .max
      return
    }
    if owed == 0 { owedSince = pacer?.dueTime() }
    owed += pacer?.due(at: Double(now - start) / 1e9) ?? 0
    if latePacer != nil { skipLate(now) }
  }

  /// The end: what is due by now goes out if there is room, and what does not never will.
  func leaveOwed() {
    guard phase == .running, pacer != nil else { return }
    pump()
    tally.unsent += owed
    owed = 0
  }

  private func skipLate(_ now: Int64) {
    _ = latePacer?.due(at: Double(now - start) / 1e9 - LoadPlan.lateness / .seconds(1))
    let late = min(owed, (latePacer?.count ?? 0) - next)
    guard late > 0 else { return }
    next += late
    owed -= late
    tally.skipped += late
    owedSince = latePacer?.dueTime()
  }

  private typealias NextPiece = (piece: SentLog.Piece, due: Int64)

  /// What is to go next: what has to be sent again, in order, then what is new.
  private func nextPiece(_ now: Int64) -> NextPiece? {
    if !isAgainSorted { sortAgain() }
    // One that was never written is late since it was due.
    if let piece = again.first {
      guard piece.attempt == 0, let due = dueTime(of: piece.index) else { return (piece, againSince) }
      // What chance owes now may be due later than this one was.
      return (piece, min(due, againSince))
    }
    guard phase == .running, owed > 0, next < most else { return nil }
    let count = min(owed, most - next, 1 << 20)
    return (SentLog.Piece(index: next, count: count, attempt: 0), dueTime(of: next) ?? now)
  }

  private func sortAgain() {
    again = Deque(SentLog.Piece.sorted(Array(again)))
    suspects = Deque(SentLog.Piece.sorted(Array(suspects)))
    isAgainSorted = true
  }

  private func consume(_ piece: SentLog.Piece, _ taken: Int) {
    guard taken > 0 else { return }
    if !again.isEmpty {
      again[again.startIndex].index += taken
      again[again.startIndex].count -= taken
      if again[again.startIndex].count == 0 { again.removeFirst() }
    } else {
      next += taken
      tally.generated += taken
      if owed != .max { owed -= taken }
    }
  }

  private func dueTime(of index: Int) -> Int64? {
    guard let seconds = pacer?.time(of: index) ?? owedSince else { return nil }
    return start + Int64(seconds * 1e9)
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
