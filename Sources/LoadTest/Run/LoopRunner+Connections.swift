import BinaryProtocol
import Measurement
import NIOCore

/// How connections open and close, and the resends after their end.
extension LoopRunner {
  /// Opens this loop's connections, spread over the stagger.
  func openAll(_ numbers: [Int], of total: Int) {
    connections = numbers.map { ProviderConnection($0, self) }
    for connection in connections {
      let share = Double(connection.number) / Double(max(1, total))
      let wait = Int64(Double(plan.connections.stagger.nanoseconds) * share)
      loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait)) { connection.connect() }
    }
  }

  /// Silent closes before a connection backs off as after a failure. Fewer occur while a suspect is isolated.
  static let silencesWithoutWait = 6

  /// Opens a connection again: at once after an end, later after a failure or when all its ends are silent.
  func reopen(_ connection: ProviderConnection) {
    guard wantsConnections else { return }
    let failures = max(connection.failures, connection.silences - Self.silencesWithoutWait)
    guard failures > 0 else { return loop.assumeIsolated().execute { connection.connect() } }
    timeline.note(connection.number, .backOff, at: clock())
    let doubled = plan.connections.backoff * Double(1 << min(16, failures - 1))
    let most = Double(min(doubled, plan.connections.maximumBackoff).nanoseconds)
    let wait = Int64(Double.random(in: most / 2...max(most / 2, most), using: &jitter))
    loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait)) { connection.connect() }
  }

  func note(_ error: any Error) {
    let failure = ConnectFailure(error)
    lastError = failure.reason
    guard failure.isPermanent else { return }
    tally.obstacles += 1
    if permanentFailure == nil { permanentFailure = .refused(failure.reason) }
  }

  /// The gateway sent something other than an error response.
  func noteForeign(_ answer: [UInt8]) {
    tally.foreignAnswers += 1
    tally.obstacles += 1
    if permanentFailure == nil { permanentFailure = .foreign(ForeignAnswer(answer)) }
  }

  // MARK: resends

  /// The number of silently closed connections after which a notification that was alone on them is abandoned: it is
  /// the cause.
  static let maximumAlone = 3

  /// Discarded, or left open: it goes before everything new, in its order.
  func sendAgain(_ pieces: [SentLog.Piece]) {
    var left: [SentLog.Piece] = []
    for var piece in pieces {
      piece.attempt += 1
      if piece.attempt >= plan.maximumAttempts || piece.alone >= Self.maximumAlone {
        abandon([piece])
      } else {
        left.append(piece)
      }
    }
    putBack(left)
  }

  /// Abandons these. The fate of the last sending of some is unknown.
  func abandon(_ pieces: some Sequence<SentLog.Piece>) {
    for piece in pieces {
      tally.abandoned += piece.count
      if piece.isOpen { tally.abandonedOpen += piece.count }
    }
  }

  /// These are to be written, before everything new. Several connections may give back theirs in any order, so they are
  /// sorted when they are looked at.
  func putBack(_ pieces: [SentLog.Piece]) {
    guard !pieces.isEmpty else { return }
    let now = clock()
    for var piece in pieces {
      piece.due = piece.due ?? now
      if piece.isSuspect { suspects.append(piece) } else { resendQueue.append(piece) }
    }
    isResendQueueSorted = false
    schedulePump()
  }

  /// A new connection takes some of the suspects alone.
  func probe(_ connection: ProviderConnection) {
    guard phase == .running || phase == .draining, let first = suspects.first else { return }
    var portion = first.portion
    var taken: [SentLog.Piece] = []
    while portion > 0, var piece = suspects.popFirst() {
      portion = min(portion, piece.portion)
      let count = min(portion, piece.count)
      if count < piece.count {
        var rest = piece
        rest.index += count
        rest.count -= count
        suspects.prepend(rest)
        piece.count = count
      }
      if count > 0 { taken.append(piece) }
      portion -= count
    }
    connection.sendIsolated(taken)
  }

  /// Suspects need separate connections; when none is opening, one is reopened.
  private func makeRoomForSuspects() {
    guard phase == .running, !suspects.isEmpty, !connections.contains(where: { !$0.isUp || $0.isQuiet }) else { return }
    connections.first?.close(as: .local)
  }

  // MARK: time

  /// Nanoseconds between two looks at the clock up to which a loop is not held to have stood still.
  private static let longestLook: Int64 = 100_000_000

  /// A time without that in which this loop stood still, and connections went unread.
  func observed(_ now: Int64) -> Int64 {
    now - stoodStill - max(0, now - (lastTick ?? now) - Self.longestLook)
  }

  /// Silent closes before a connection is opened quietly.
  private static let silencesBeforeQuiet = 2

  /// Whether nothing is to be written on a connection for a while: once, when the gateway has closed some silently and has
  /// answered nothing, to tell a gateway that closes every connection from one that does so because of a notification.
  func takesQuietOpening() -> Bool {
    guard !hasOpenedQuietly else { return false }
    let tally = tallies.reduce(into: LoadTally()) { $0 += $1 }
    guard tally.endedSilently >= Self.silencesBeforeQuiet, tally.endedUnused == 0, !tally.hasProof else { return false }
    hasOpenedQuietly = true
    return true
  }

  /// Nanoseconds between two ticks.
  static let tick: Int64 = 1_000_000

  /// Called every millisecond; how much later it comes is how long the loop, or the machine, was busy with other things.
  func tick() {
    let now = clock()
    passTime(now)
    let late = stalls.tick(now, processor: environment.processor(), interval: Self.tick)
    if lastTick != nil {
      measurements.noteLoopLag(late)
      // No connects are attempted while the process is stopped.
      if late > Self.longestLook {
        lastOpen += late
        stoodStill += late
      }
    }
    lastTick = now
    streak = 0
    pump()
    makeRoomForSuspects()
    for connection in connections { connection.check(now) }
    if connections.contains(where: { $0.isOfUse(now) }) { (lastOpen, openedSinceOfUse) = (now, 0) }
  }

  /// No connection was of use for as long as the plan allows, in the time that this loop saw pass: none could be made, or
  /// all were ended at once.
  var isCutOff: Bool {
    guard let lastTick else { return false }
    return lastTick - lastOpen > plan.connections.giveUp.nanoseconds
  }

  /// All of a count was sent.
  var isAllSent: Bool { next >= most && !hasLeftovers && !connections.contains { $0.hasBatch } }

  /// Something is due and not written.
  var isOwing: Bool { phase == .running && pacer != nil && owed > 0 && next < most }

  func drain() {
    guard phase == .running || phase == .connecting else { return }
    endSchedule(at: clock())
    leaveOwed()
    phase = .draining
    for connection in connections { connection.close(as: .local) }
  }

  /// While draining: everything is settled.
  func drainStep() -> Bool {
    pump()
    if resendQueue.isEmpty { for connection in connections { connection.close(as: .local) } }
    return !isUnsettled && !connections.contains { !$0.isDown }
  }

  func finish() {
    phase = .over
    for connection in connections { connection.abandon() }
    connections.removeAll()
    noteNeverSent(resendQueue.filter { $0.attempt == 0 })
    abandon(resendQueue)
    abandon(suspects)
    resendQueue.removeAll()
    suspects.removeAll()
  }
}
