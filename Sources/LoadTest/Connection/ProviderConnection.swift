import Bytes
import Glibc
import Measurement
import NIOCore
import NIOPosix
import TLSTransport

/// One of the load's connections: it is opened, writes batches, reads responses, and is opened again.
///
/// `ConnectionLife` keeps the record of the notifications; this class applies it to the channel and to the runner's
/// counters. Everything runs on the runner's event loop.
final class ProviderConnection {
  typealias Life = ConnectionLife<SpokenProtocol>

  enum State {
    case down
    /// `problem` is what went wrong so far.
    case connecting(problem: String?)
    case up(Link)
    /// No more writes: waiting for the proof that was asked for, or for the end of the channel.
    case closing(Link, Closing)

    /// The state in the timeline. Closing belongs to the life of the connection.
    var drawn: RunResult.Timeline.State? {
      switch self {
      case .down: nil
      case .connecting: .handshake
      case .up, .closing: .up
      }
    }
  }

  struct Closing {
    var since: Int64
    /// The proof did not come in time, so it was this side that ended the connection.
    var isOverdue = false
    /// Closed gracefully without asking for a proof: its notifications stay open.
    var leavesOpen = false
  }

  /// An open channel and the record of its notifications. One object, because reading a state retains its payload.
  final class Link {
    let life: Life
    let channel: any Channel
    /// The channel's descriptor, used only to poll for input.
    let socket: NIOBSDSocket.Handle?
    let tls: TLSHandler?
    /// No bytes are unsent. Updated by events of the channel, which is cheaper than querying it.
    var isWritable: Bool
    /// `false`: it takes no more notifications and closes. A write may signal writability before it returns, which
    /// would request more.
    var takesMore = true
    /// Unread input may be an error response, after which writes are lost. It is read when the loop polls its sockets;
    /// until then nothing is written and the socket is not polled again.
    var readsFirst = false
    /// Its last batch went after something unsent, because it had waited long enough.
    var hasLingered = false
    /// Until when nothing is written, to see whether the gateway closes the connection all the same.
    var isQuietUntil: Int64?

    init(_ channel: any Channel, _ life: Life) {
      (self.channel, self.life) = (channel, life)
      let pipeline = channel.pipeline.syncOperations
      tls = try? pipeline.handler(type: TLSHandler.self)
      socket = try? pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
      isWritable = channel.isWritable
    }
  }

  let number: Int
  let runner: LoopRunner
  private var state = State.down { didSet { runner.books.timeline.note(number, state.drawn, at: runner.clock()) } }
  /// Counts attempts to open it, to ignore late events of earlier attempts.
  private(set) var attempt = 0
  private var batch: ConnectionBatch
  /// The number of consecutive attempts that failed.
  private(set) var failures = 0
  /// The number of consecutive connections that ended without a response or a proof.
  private(set) var silences = 0
  private var (wasOpened, wasUp) = (false, false)
  /// When the error was read that ended its last life and caused resends, until it is up again.
  private var recoversSince: Int64?

  init(_ number: Int, _ runner: LoopRunner) {
    self.number = number
    self.runner = runner
    let batching = runner.plan.batching
    batch = ConnectionBatch(.init(bytes: batching.bytes, notifications: max(1, batching.notifications)))
  }

  // MARK: state

  var isDown: Bool { if case .down = state { true } else { false } }
  var isUp: Bool { if case .up = state { true } else { false } }
  /// Nothing is written on it for a while, by intention.
  var isQuiet: Bool { if case .up(let link) = state { link.isQuietUntil != nil } else { false } }

  private var open: Link? {
    switch state {
    case .up(let link), .closing(let link, _): link
    case .down, .connecting: nil
    }
  }

  func carries(_ channel: any Channel) -> Bool { open?.channel === channel }
  /// No bytes are unsent.
  var isWritable: Bool { open?.isWritable ?? false }
  /// Takes notifications: its batch has room, and it is not at its end.
  var isReady: Bool {
    guard case .up(let link) = state, link.takesMore, !link.readsFirst, link.isQuietUntil == nil else { return false }
    return !batch.isFull(room: link.life.room)
  }
  /// Notifications that are collected and not written.
  var batchCount: Int { batch.count }
  var hasBatch: Bool { batchCount > 0 }
  /// Whether the connection is open, and either has lasted or follows one that did not end silently.
  func isOfUse(_ now: Int64) -> Bool {
    guard let life = open?.life else { return false }
    return silences == 0 || now - life.openedAt >= LoadPlan.settling.nanoseconds
  }
  /// Written and not settled.
  var unsettled: Int { open?.life.unsettled ?? 0 }

  /// Later writes are of this phase of the run.
  func begin(_ phase: RunPhase) { open?.life.begin(phase) }

  /// Whether unread input waits on its socket. Writes may be lost in that case.
  var hasUnread: Bool {
    guard let socket = open?.socket else { return false }
    var request = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    // Safe: one structure, which lives through the call.
    return unsafe poll(&request, 1, 0) > 0
  }

  // MARK: out

  func changeWritability(_ isWritable: Bool) {
    open?.isWritable = isWritable
    if isWritable { runner.pump(self) }
  }

  /// Adds as many notifications to the batch as fit, and returns the number.
  ///
  /// - Parameter due: returns the due times of the first `taken` notifications; called only if `taken` is above 0.
  func collect(_ piece: SentLog.Piece, now: Int64, due: (_ taken: Int) -> DueTimes) -> Int {
    guard case .up(let link) = state else { return 0 }
    return link.life.collect(piece, into: &batch, now: now, due: due)
  }

  /// Writes the batch that was waiting for the socket, or that nothing is to wait for.
  func flushWhatWaits(_ now: Int64) {
    guard hasBatch, case .up(let link) = state, link.isWritable, !link.readsFirst else { return }
    flushUnlessAnswered(batch.isFull(room: link.life.room) ? .full : batch.began < now ? .drain : .idle)
  }

  /// Writes the batch unless there is unread input, which is then read first: writes after an error are lost. The poll
  /// is as late as possible and costs a system call. A batch that has lingered is written anyway, because a gateway
  /// that keeps sending could delay it forever.
  @discardableResult
  func flushUnlessAnswered(_ reason: LoadTally.FlushReason) -> Bool {
    guard !runner.environment.hasInput(self) else {
      open?.readsFirst = true
      return false
    }
    flush(reason)
    return true
  }

  func flush(_ reason: LoadTally.FlushReason) {
    guard hasBatch, case .up(let link) = state else { return }
    let now = runner.clock()
    link.hasLingered = reason == .linger
    runner.passTime(now)
    if runner.workload.hasTimes { runner.stamp(&batch, at: now) }
    for (piece, due) in batch.pieces {
      var written = piece
      written.due = nil
      link.life.wrote(written, at: now)
      runner.noteLag(written, due, at: now)
      runner.noteRecipients(of: written)
    }
    runner.note(batch.count, batch.bytes.count, reason, at: now)
    // With TLS the batch is encrypted directly from its memory.
    let plain = link.tls?.encrypt(batch.bytes.bytes) == true ? nil : ByteBuffer(copying: batch.bytes.bytes)
    batch.removeAll()
    // This may end the connection: check the state again after the write.
    if let plain { link.channel.writeAndFlush(plain, promise: nil) } else { link.channel.flush() }
    if link.life.isSpent { close(as: .lifetime) }
  }

  /// Writes only the suspects, even if the socket is not writable, and then closes the connection, to isolate their
  /// effect.
  func sendIsolated(_ suspects: [SentLog.Piece]) {
    let now = runner.clock()
    open?.takesMore = false
    for (number, piece) in suspects.enumerated() {
      var left = piece
      while left.count > 0 {
        guard isUp else { return runner.putBack([left] + suspects[(number + 1)...]) }
        let taken = collect(left, now: now) { _ in DueTimes(left.due ?? now) }
        left.index += taken
        left.count -= taken
        if left.count > 0 { flush(.full) }
      }
    }
    close(as: .local)
  }

  /// Writes the batch when it has lingered, and closes the connection at the end of its lifetime.
  func check(_ now: Int64) {
    switch state {
    case .down, .connecting: break
    case .up(let link):
      // Poll again, in case the detected input never arrives as a read.
      link.readsFirst = false
      if let end = link.isQuietUntil, now >= end { endQuiet(link) }
      if !wasUp { noteStanding(of: link.life, at: now) }
      // Only once: if the gateway does not read, unsent bytes would grow without bound.
      if hasBatch, !link.hasLingered, now - batch.began >= runner.lingerNanoseconds { flush(.linger) }
      if let lifetime = runner.lifetimeNanoseconds, now - link.life.openedAt >= lifetime { close(as: .lifetime) }
    case .closing(let link, var closing):
      link.readsFirst = false
      if !wasUp { noteStanding(of: link.life, at: now) }
      guard now - closing.since > link.life.limits.patience else { break }
      closing.isOverdue = true
      state = .closing(link, closing)
      link.channel.close(promise: nil)
    }
  }

  /// Closes the connection gracefully: a proof settles its notifications; without one they stay open. One that was never
  /// up asks for it in any case, because its refusal may be on its way.
  func close(as cause: LoadTally.Cause) {
    guard case .up(let link) = state else { return }
    // What waits is tried again on it.
    if link.isQuietUntil != nil, runner.machine.hasLeftovers { return }
    link.takesMore = false
    flush(.full)
    guard isUp else { return }
    // Else what follows would have the position of something else.
    assert(!hasBatch)
    let now = runner.clock()
    let action = link.life.close(as: cause, wasUp: wasUp, at: now)
    state = .closing(link, Closing(since: now, leavesOpen: action == .endOutput))
    switch action {
    case .close: link.channel.close(promise: nil)
    // Not immediately: unsent bytes would be lost.
    case .endOutput: link.channel.close(mode: .output, promise: nil)
    case .ask(let bytes):
      runner.tally.sendings.proofsAsked += 1
      link.channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    }
  }

  // MARK: in

  /// All that waited was read, and perhaps nothing in it ended the connection.
  func readComplete() {
    guard let link = open, link.readsFirst else { return }
    link.readsFirst = false
    if link.isWritable { runner.pump(self) }
  }

  func receive(_ bytes: inout ByteBuffer) {
    guard let life = open?.life else { return }
    let now = runner.clock()
    read(bytes.readBytes(length: bytes.readableBytes) ?? [], of: life, at: now)
    if !wasUp { noteStanding(of: life, at: now) }
    if life.isOver { leave() }
  }

  /// The other side has ended it: what would be written now is lost.
  func leave() {
    guard let link = open else { return }
    var closing = if case .closing(_, let closing) = state { closing } else { Closing(since: 0) }
    closing.since = runner.clock()
    state = .closing(link, closing)
    link.channel.close(promise: nil)
  }

  // MARK: opening and closing

  func connect() {
    guard isDown, runner.machine.wantsConnections else { return }
    state = .connecting(problem: nil)
    attempt += 1
    runner.tally.attempted += 1
    runner.environment.connect(self)
  }

  func opened(_ channel: any Channel, attempt: Int, isResumed: Bool) {
    // A host with several addresses can give two channels, and a run can end meanwhile.
    guard case .connecting = state, attempt == self.attempt, !runner.machine.isOver else {
      return channel.close(promise: nil)
    }
    let now = runner.clock()
    let life = Life(
      openedAt: now, observed: runner.machine.watch.observed(now), log: runner.plan.makeLog(),
      sending: runner.makeSending(),
      phase: runner.machine.phase, lastScheduled: runner.machine.lastScheduled)
    let link = Link(channel, life)
    state = .up(link)
    failures = 0
    runner.noteUp(number, attempt: attempt, isFirst: !wasOpened, isResumed: isResumed, at: now)
    wasOpened = true
    if silences > 0, runner.takesQuietOpening() {
      link.isQuietUntil = now + LoadPlan.settling.nanoseconds
    } else {
      runner.probe(self)
    }
    runner.pump()
    // The resends are written now, unless another connection has sent them.
    if let since = recoversSince {
      runner.measurements.latency.recoverUs.record(Int((runner.clock() - since) / 1_000))
      recoversSince = nil
    }
  }

  private func endQuiet(_ link: Link) {
    link.isQuietUntil = nil
    runner.probe(self)
    runner.pump()
  }

  private func noteStanding(of life: Life, at now: Int64, endedBy cause: LoadTally.Cause? = nil) {
    let standing = life.standing(atObserved: runner.machine.watch.observed(now), endedBy: cause)
    runner.noteStanding(standing, isFirst: !wasUp)
    if standing == .up { wasUp = true }
  }

  /// Takes what went wrong, in case that the attempt to connect ends of it.
  func note(_ error: any Error, attempt: Int) {
    runner.note(error)
    if case .connecting = state, attempt == self.attempt { state = .connecting(problem: runner.books.lastError) }
  }

  func failedToOpen(attempt: Int) {
    guard case .connecting(let problem) = state, attempt == self.attempt else { return }
    state = .down
    failures += 1
    let reason = problem ?? "closed before it was established"
    runner.tally.countFailure(reason)
    runner.books.events?.note(.connectFailed(number, attempt: attempt, reason: reason), at: runner.clock())
    runner.reopen(self)
  }

  /// The channel is closed: settles its notifications.
  func ended(_ channel: any Channel, attempt: Int, by peer: LoadTally.Cause) {
    guard let link = open else { return failedToOpen(attempt: attempt) }
    let life = link.life
    guard channel === link.channel else { return }
    let closing: Closing? = if case .closing(_, let closing) = state { closing } else { nil }
    let now = runner.clock()
    read(nil, of: life, at: now)
    // If the peer closed before it gave the proof, the close is attributed to the peer.
    let isOurs = !life.isAsked || life.isDecided || closing?.isOverdue == true
    let cause = isOurs ? life.cause ?? peer : peer
    runner.noteDown(number, attempt: attempt, cause, at: now)
    noteStanding(of: life, at: now, endedBy: cause)
    noteSilence(life, age: now - life.openedAt, leavesOpen: closing?.leavesOpen == true)
    settle(life, leavesOpen: closing?.leavesOpen == true, sendsAgain: true)
    let unwritten = batch.unwritten
    state = .down
    batch.removeAll()
    runner.putBack(unwritten)
    runner.reopen(self)
  }

  /// Counts consecutive connections that end without a response or a proof.
  private func noteSilence(_ life: Life, age: Int64, leavesOpen: Bool) {
    let isSilent = life.hasSettledNothing
    let wasEmpty = life.log.count == 0 && life.cause != nil
    silences = isSilent && !leavesOpen && !wasEmpty && age < 5_000_000_000 ? silences + 1 : 0
  }

  /// - Parameter bytes: `nil` at their end.
  private func read(_ bytes: [UInt8]?, of life: Life, at now: Int64) {
    for event in life.receive(bytes, at: now) { runner.note(event, of: life, on: number, at: now) }
  }

  /// The run is over: unanswered notifications stay open.
  func abandon() {
    guard let link = open else { return }
    let life = link.life
    read(nil, of: life, at: runner.clock())
    let leavesOpen = if case .closing(_, let closing) = state { closing.leavesOpen } else { false }
    settle(life, leavesOpen: leavesOpen, sendsAgain: false)
    let unwritten = batch.unwritten
    runner.noteNeverSent(unwritten.filter { $0.attempt == 0 })
    runner.abandon(unwritten)
    runner.noteDown(number, attempt: attempt, life.cause ?? .local, at: runner.clock())
    noteStanding(of: life, at: runner.clock(), endedBy: life.cause ?? .local)
    state = .down
    batch.removeAll()
    link.channel.close(promise: nil)
  }

  private func settle(_ life: Life, leavesOpen: Bool, sendsAgain: Bool) {
    let settlement = life.settlement
    runner.book(settlement)
    settle(discarded: settlement.pieces(.discarded), life, sendsAgain: sendsAgain)
    var pieces = settlement.pieces(.unknown)
    guard !pieces.isEmpty else { return }
    // Pieces that were open on an earlier connection stay open: the gateway may have accepted them there.
    for index in pieces.indices { pieces[index].isOpen = true }
    if leavesOpen || !runner.plan.resendsUnknown {
      runner.leaveUnknown(settlement)
    } else if sendsAgain {
      if life.cause != .shutdown {
        let count = settlement.count(.unknown)
        for index in pieces.indices { pieces[index].suspect(among: count) }
      }
      runner.sendAgain(pieces)
    } else if life.limits.canProve {
      // The pieces would have been resent.
      runner.abandon(pieces)
    } else {
      runner.leaveUnknown(settlement)
    }
  }

  private func settle(discarded: [SentLog.Piece], _ life: Life, sendsAgain: Bool) {
    guard !discarded.isEmpty else { return }
    guard sendsAgain else { return runner.abandon(discarded) }
    recoversSince = life.errorReadAt
    var pieces = discarded
    // The gateway did not read the discarded notifications: none of them ended the connection.
    for index in pieces.indices {
      (pieces[index].silences, pieces[index].alone, pieces[index].portion) = (0, 0, .max)
    }
    runner.sendAgain(pieces)
  }
}

extension ByteBuffer {
  fileprivate init(copying bytes: RawSpan) {
    self.init()
    writeBytes(bytes)
  }
}
