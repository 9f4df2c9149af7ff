import BinaryProtocol
import Measurement
import NIOCore

/// How connections open and close, and the resends after their end.
extension LoopRunner {
  /// Opens this loop's connections, spread over the stagger.
  func openAll() {
    let total = plan.connections.count
    connections = share.connections.map { ProviderConnection($0, self) }
    for connection in connections {
      let share = Double(connection.number) / Double(max(1, total))
      let wait = Int64(Double(plan.connections.stagger.nanoseconds) * share)
      loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait)) { connection.connect() }
    }
  }

  /// Opens a connection again: at once after an end, later after a failure or when all its ends are silent.
  func reopen(_ connection: ProviderConnection) {
    switch machine.reopening(failures: connection.failures, silences: connection.silences) {
    case .never: break
    case .now: loop.assumeIsolated().execute { connection.connect() }
    case .after(let wait):
      books.timeline.note(connection.number, .backOff, at: clock())
      loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait)) { connection.connect() }
    }
  }

  func note(_ error: any Error) {
    let failure = ConnectFailure(error)
    books.lastError = failure.reason
    guard failure.isPermanent else { return }
    tally.obstacles += 1
    if books.permanentFailure == nil { books.permanentFailure = .refused(failure.reason) }
  }

  /// The gateway sent something other than an error response.
  func noteForeign(_ answer: [UInt8]) {
    tally.foreignAnswers += 1
    tally.obstacles += 1
    if books.permanentFailure == nil { books.permanentFailure = .foreign(ForeignAnswer(answer)) }
  }

  // MARK: resends

  /// Adds pieces that were discarded or left open: they are written before all new notifications, in their order.
  func sendAgain(_ pieces: [SentLog.Piece]) {
    let now = clock()
    perform(machine.sendAgain(pieces, at: now), at: now)
  }

  /// Abandons notifications. The fate of the last sending of some is unknown.
  func abandon(_ pieces: some Sequence<SentLog.Piece>) {
    for piece in pieces {
      tally.abandoned += piece.count
      if piece.isOpen { tally.abandonedOpen += piece.count }
    }
  }

  /// Adds pieces that are to be written before all new notifications.
  func putBack(_ pieces: [SentLog.Piece]) {
    let now = clock()
    perform(machine.putBack(pieces, at: now), at: now)
  }

  /// A new connection takes some of the suspects alone.
  func probe(_ connection: ProviderConnection) {
    let suspects = leavingOutListed(machine.probe())
    if !suspects.isEmpty { connection.sendIsolated(suspects) }
  }

  /// Suspects need separate connections; when none is opening, one is reopened.
  private func makeRoomForSuspects() {
    guard machine.needsRoomForSuspects(isComing: connections.contains { !$0.isUp || $0.isQuiet }) else { return }
    connections.first?.close(as: .local)
  }

  // MARK: time

  /// Whether nothing is to be written on a connection for a while: once, when the gateway has closed some silently and
  /// has answered nothing. This distinguishes a gateway that closes every connection from one that does so because of a
  /// notification.
  func takesQuietOpening() -> Bool {
    machine.takesQuietOpening(books.tallies.reduce(into: LoadTally()) { $0 += $1 })
  }

  /// Nanoseconds between two ticks.
  static let tick: Int64 = 1_000_000

  /// Called every millisecond; how much later it comes is how long the loop, or the machine, was busy with other things.
  func tick() {
    let now = clock()
    passTime(now)
    let late = books.stalls.tick(now, processor: environment.processor(), interval: Self.tick)
    if machine.hasTicked { measurements.noteLoopLag(late) }
    machine.tick(now, late: late)
    streak = 0
    pump()
    makeRoomForSuspects()
    for connection in connections { connection.check(now) }
    if connections.contains(where: { $0.isOfUse(now) }) { machine.noteUse(now) }
  }

  /// All of a count was sent.
  var isAllSent: Bool { machine.isAllTaken && !connections.contains { $0.hasBatch } }

  /// The end: writes due notifications as far as possible; the rest is never sent.
  func drain() {
    guard machine.isConnecting || machine.isRunning else { return }
    endSchedule(at: clock())
    if machine.hasSchedule { pump() }
    let now = clock()
    perform(machine.drain(at: now), at: now)
  }

  /// While draining: everything is settled.
  func drainStep() -> Bool {
    pump()
    if !machine.hasResends { for connection in connections { connection.close(as: .local) } }
    return !isUnsettled && !connections.contains { !$0.isDown }
  }

  func finish() {
    for connection in connections { connection.abandon() }
    connections.removeAll()
    let now = clock()
    perform(machine.finish(at: now), at: now)
  }
}
