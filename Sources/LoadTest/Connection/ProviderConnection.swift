import APNSProtocol
import Bytes
import Glibc
import NIOCore
import NIOPosix
import TLSTransport

/// One of the load's connections: it is opened, carries batches, reads what the gateway says, and is opened again.
///
/// What it has written and what became of it is settled when it ends, or as soon as the gateway answers. Everything here
/// happens on its event loop.
final class ProviderConnection {
  enum Phase {
    case down, connecting, up
    /// Nothing is written any more: a marker's answer is waited for, or the channel's end.
    case closing
  }

  let number: Int
  let runner: LoopRunner
  private(set) var phase = Phase.down { didSet { runner.timeline.note(number, phase, at: runner.clock()) } }
  /// Counts the attempts to open it, so that what is left of an earlier one is not taken for this one.
  private(set) var life = 0
  private var channel: (any Channel)?
  /// The channel's socket, which is its channel's: it is only asked whether there is something to read.
  private var socket: NIOBSDSocket.Handle?
  /// Its TLS, if it has.
  private var tls: TLSHandler?
  private let batchBytes: Int
  private let batchNotifications: Int
  /// What was written since the connection was opened.
  private var log: SentLog
  private var marks: PhaseMarks
  private var session: ProviderSession
  private var answer: [UInt8] = []
  /// A response was read.
  private var hasAnswered = false
  /// Something else was read: what follows is no response either.
  private var isForeign = false
  /// What the gateway said: everything before is accepted but for what was rejected.
  private var settledEnd = 0
  private var rejections: [Int] = []
  private var isTerminated = false
  private var marker: (position: Int, written: Int64)?
  private var openedAt: Int64 = 0
  private var closingSince: Int64 = 0
  private var errorReadAt: Int64?
  /// When the error was read that ended its last life and left something to be sent again, until it is up again.
  private var recoversSince: Int64?
  private var cause: LoadTally.Cause?
  /// Its marker was not answered in time, so it was this side that ended it.
  private var isOverdue = false
  /// Ended in good order, and without a marker: what it carried stays open for good.
  private var leavesOpen = false
  /// In a row: attempts that failed, and connections that ended without anything said or proven.
  private(set) var failures = 0
  private(set) var silences = 0
  private var wasUp = false
  /// What went wrong while it is connecting.
  private var problem: String?

  /// The batch that is being collected.
  private var batch = ByteWriter(capacity: 20_000)
  private var pieces: [(piece: SentLog.Piece, due: DueTimes)] = []
  private(set) var batchCount = 0
  /// The next notification would have made it longer than it may be.
  private var isOutOfRoom = false
  private var batchBegan: Int64 = 0
  /// Its last batch went behind something unsent, because it had waited long enough.
  private var hasLingered = false

  private let maximumNotifications: Int
  private let hasBadTokenSizes: Bool
  private let hasUsualPayloadSizes: Bool

  init(_ number: Int, _ runner: LoopRunner) {
    self.number = number
    self.runner = runner
    batchBytes = runner.plan.batching.bytes
    batchNotifications = max(1, runner.plan.batching.notifications)
    maximumNotifications = max(1, runner.plan.connections.notifications ?? .max)
    hasBadTokenSizes = runner.workload.hasBadTokenSizes
    hasUsualPayloadSizes = runner.workload.hasUsualPayloadSizes
    log = runner.makeLog()
    marks = PhaseMarks(in: runner.runPhase)
    session = runner.makeSession()
  }

  /// Later writes are of this phase of the run.
  func begin(_ phase: RunPhase) { marks.begin(phase, at: log.count) }

  func carries(_ channel: any Channel) -> Bool { channel === self.channel }
  /// Nothing of ours is unsent. The channel tells of every change, which costs less than to ask it.
  private(set) var isWritable = false
  /// Takes notifications: its batch has room, and it is not at its end.
  var isReady: Bool { phase == .up && !isFull && !isSpokenFor && !readsFirst }
  /// It carries what it has and no more, and ends. A write may find the socket ready for another one, and ask for that
  /// before it returns.
  private var isSpokenFor = false
  /// Something waits to be read that may say that what is written now is lost. The loop comes to it only when nothing else
  /// is to be done at once, so until then it is not asked again.
  private var readsFirst = false
  /// The batch waits for nothing but the socket.
  var isFull: Bool { isOutOfRoom || batch.count >= batchBytes || batchCount >= mostInBatch }
  private var mostInBatch: Int { min(batchNotifications, maximumNotifications - log.count) }
  var hasBatch: Bool { batchCount > 0 }
  /// It has lasted, or its end is not yet one of those that say nothing.
  func isOfUse(_ now: Int64) -> Bool {
    (phase == .up || phase == .closing) && (silences == 0 || now - openedAt >= 1_000_000_000)
  }
  /// Written and not settled.
  var unsettled: Int { log.count - settledEnd }

  /// Something waits on its socket that is not read yet. Whoever goes on writing then may lose what it writes.
  var hasUnread: Bool {
    guard let socket else { return false }
    var request = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    // Safe: one structure, which lives through the call.
    return unsafe poll(&request, 1, 0) > 0
  }

  // MARK: out

  func changeWritability(_ isWritable: Bool) {
    self.isWritable = isWritable
    if isWritable { runner.pump(self) }
  }

  /// Puts notifications into the batch, as many as fit, and returns how many.
  ///
  /// - Parameter due: is asked when so many of them were due; only when there are any.
  func collect(_ piece: SentLog.Piece, now: Int64, due: (_ taken: Int) -> DueTimes) -> Int {
    if batchCount == 0 { batchBegan = now }
    // Both are lent for the whole batch: an object's properties are else looked after at every use.
    let taken = encode(runner.workload, piece, at: runner.part, of: runner.parts, into: &batch, &session)
    if taken > 0 {
      var part = piece
      part.count = taken
      pieces.append((part, due(taken)))
      batchCount += taken
    }
    return taken
  }

  /// How many of the piece fit. One that makes the batch longer than a record goes into the next, unless it is alone.
  private func encode(
    _ workload: Workload, _ piece: SentLog.Piece, at part: Int, of parts: Int, into batch: inout ByteWriter,
    _ session: inout ProviderSession
  ) -> Int {
    let (room, before) = (batchBytes, batchCount)
    let most = min(piece.count, mostInBatch - before)
    var taken = 0
    while taken < most, batch.count < room {
      let number = workload.number(of: (piece.index + taken) * parts + part)
      let length = batch.count
      let fault = workload.encode(number, into: &batch)
      if batch.count > room, before + taken > 0 {
        batch.truncate(to: length)
        isOutOfRoom = true
        break
      }
      note(fault, Workload.identifier(of: number), &session)
      taken += 1
    }
    return taken
  }

  /// Tells the books of a notification. Some gateways give up before they come to the identifier of one that is bad, and
  /// answer 0; so the books know which ones are.
  @inline(__always)
  private func note(_ fault: WorkloadPlan.Fault?, _ identifier: UInt32, _ session: inout ProviderSession) {
    guard let fault else {
      _ = session.write(identifier: identifier, isKnownBad: false)
      return
    }
    if fault == .malformed {
      _ = session.write(malformedWith: identifier)
    } else {
      _ = session.write(identifier: identifier, isKnownBad: fault == .missingToken)
      if fault == .oversize, hasUsualPayloadSizes { session.noteOversize() }
    }
  }

  /// Writes the batch that was waiting for the socket, or that nothing is to wait for.
  func flushWhatWaits(_ now: Int64) {
    guard hasBatch, isWritable, phase == .up, !readsFirst else { return }
    flushUnlessAnswered(isFull ? .full : batchBegan < now ? .drain : .idle)
  }

  /// Writes the batch, unless the gateway has said something, which is then read first: what is written after an error is
  /// lost. It is asked as late as can be, and costs a system call. A batch that has lingered is written all the same: a
  /// gateway that never stops talking could else keep it back for good.
  @discardableResult
  func flushUnlessAnswered(_ reason: LoadTally.FlushReason) -> Bool {
    guard !runner.world.hasInput(self) else {
      readsFirst = true
      return false
    }
    flush(reason)
    return true
  }

  func flush(_ reason: LoadTally.FlushReason) {
    guard batchCount > 0, phase == .up, let channel else { return }
    let now = runner.clock()
    hasLingered = reason == .linger
    runner.passTime(now)
    for index in pieces.indices {
      let due = pieces[index].due
      pieces[index].piece.due = nil
      log.append(pieces[index].piece, written: now)
      runner.noteLag(pieces[index].piece, due, at: now)
    }
    runner.note(batchCount, batch.count, reason, at: now)
    // With TLS the batch is encrypted from where it stands.
    let plain = tls?.encrypt(batch.bytes) == true ? nil : ByteBuffer(copying: batch.bytes)
    dropBatch()
    // This may end the connection: nothing that was read before holds behind it.
    if let plain { channel.writeAndFlush(plain, promise: nil) } else { channel.flush() }
    if log.count >= maximumNotifications || log.isFull { close(as: .lifetime) }
  }

  /// Writes these, whether or not the socket takes them, and ends the connection behind them, to see what it makes of
  /// them alone.
  func carryOnly(_ suspects: [SentLog.Piece]) {
    let now = runner.clock()
    isSpokenFor = true
    for (number, piece) in suspects.enumerated() {
      var left = piece
      while left.count > 0 {
        guard phase == .up else { return runner.putBack([left] + suspects[(number + 1)...]) }
        let taken = collect(left, now: now) { _ in DueTimes(left.due ?? now) }
        left.index += taken
        left.count -= taken
        if left.count > 0 { flush(.full) }
      }
    }
    close(as: .local)
  }

  private func dropBatch() {
    batch.removeAll()
    pieces.removeAll(keepingCapacity: true)
    batchCount = 0
    isOutOfRoom = false
  }

  /// Writes the batch when it has waited long enough.
  func check(_ now: Int64) {
    // Asked again, should what was seen never come as something read.
    readsFirst = false
    if phase == .up {
      // Once only: behind what is unsent it would grow without end when the gateway does not read.
      if hasBatch, !hasLingered, now - batchBegan >= runner.lingerNanoseconds { flush(.linger) }
      if let lifetime = runner.lifetimeNanoseconds, now - openedAt >= lifetime { close(as: .lifetime) }
    } else if phase == .closing, now - closingSince > runner.markerTimeoutNanoseconds {
      isOverdue = true
      channel?.close(promise: nil)
    }
  }

  /// Ends the connection in good order: a marker settles what was written, or without markers a close does not.
  func close(as cause: LoadTally.Cause) {
    guard phase == .up, let channel else { return }
    isSpokenFor = true
    flush(.full)
    guard phase == .up else { return }
    // Else the marker's position would be that of something else.
    assert(!hasBatch)
    phase = .closing
    closingSince = runner.clock()
    self.cause = cause
    guard unsettled > 0 else { return channel.close(promise: nil) }
    guard runner.plan.usesMarkers else {
      // Not at once: what is still unsent would be lost.
      leavesOpen = true
      return channel.close(mode: .output, promise: nil)
    }
    let position = session.write(identifier: Self.markerIdentifier, isKnownBad: true)
    marker = (position, runner.clock())
    runner.tally.sendings.markers += 1
    channel.writeAndFlush(ByteBuffer(bytes: Self.markerFrame), promise: nil)
  }

  static let markerIdentifier: UInt32 = 0xffff_ffff

  /// As pushy's: a frame of 24 bytes with an empty token and an empty payload.
  static let markerFrame: [UInt8] =
    [
      0x02, 0, 0, 0, 24, 0x01, 0, 0, 0x02, 0, 0, 0x03, 0, 4, 0xff, 0xff, 0xff, 0xff, 0x04, 0, 4, 0, 0, 0, 0, 0x05, 0, 1,
      10,
    ]

  // MARK: in

  /// All that waited was read, and perhaps nothing in it ended the connection.
  func readComplete() {
    guard readsFirst else { return }
    readsFirst = false
    if isWritable { runner.pump(self) }
  }

  func receive(_ bytes: inout ByteBuffer) {
    guard phase == .up || phase == .closing else { return }
    answer += bytes.readBytes(length: bytes.readableBytes) ?? []
    guard !isForeign else { return dropAnswer() }
    var offset = 0
    var isOver = false
    reading: while offset < answer.count {
      switch ErrorResponse.extent(of: answer.rawBytes, at: offset) {
      case .incomplete: break reading
      case .complete:
        guard let response = try? ErrorResponse(parsing: answer.rawBytes, at: &offset) else { break reading }
        hasAnswered = true
        if apply(response) { isOver = true }
      case .malformed:
        // A response with another command byte is one when nothing follows it, which its connection's end tells.
        if !hasAnswered, ErrorResponse.mayBecomeWholeAnswer(answer.rawBytes) { break reading }
        isForeign = true
        break reading
      }
    }
    answer.removeFirst(offset)
    if isForeign {
      noteForeign()
      isOver = true
    }
    if isOver { leave() }
  }

  /// Bytes that are no response: their boundaries are lost, and a gateway that says such things is none.
  private func noteForeign() {
    runner.noteForeign(answer)
    dropAnswer()
  }

  private func dropAnswer() {
    runner.tally.strayBytes += answer.count
    answer.removeAll()
  }

  /// What is left of the answer when its connection ends.
  private func readRest() {
    guard !answer.isEmpty else { return }
    if !hasAnswered, let response = ErrorResponse(wholeAnswer: answer.rawBytes) {
      answer.removeAll()
      _ = apply(response)
    } else if hasAnswered || answer.first == ErrorResponse.documentedCommand {
      // A part of a response.
      dropAnswer()
    } else {
      noteForeign()
    }
  }

  /// The other side has ended it: what would be written now is lost.
  func leave() {
    guard phase == .up || phase == .closing else { return }
    phase = .closing
    closingSince = runner.clock()
    channel?.close(promise: nil)
  }

  /// Returns whether the gateway is done with this connection.
  private func apply(_ response: ErrorResponse) -> Bool {
    let now = runner.clock()
    let verdict = session.receive(response)
    let named = isNaming(response) ? verdict.notification : nil
    if let marker, named == marker.position {
      settledEnd = marker.position
      isTerminated = true
      runner.tally.sendings.markersAnswered += 1
      runner.book(phase(ofMarkerAt: marker.position)) {
        $0.measurements.drain.record(Int((now - marker.written) / 1_000))
      }
      noteSettled(at: now)
      return true
    }
    runner.tally.errorResponses[response.status.rawValue, default: 0] += 1
    guard let position = named, position < log.count else {
      runner.tally.unresolvedResponses += 1
      // Whatever it meant, the gateway is done with this connection.
      if response.status != .noError { cause = response.status == .shutdown ? .shutdown : .rejected }
      return response.status != .noError
    }
    let accepts = response.status == .shutdown || response.status == .noError
    settledEnd = max(settledEnd, position + 1)
    if !accepts { rejections.append(position) }
    if response.status != .noError {
      isTerminated = true
      cause = response.status == .shutdown ? .shutdown : .rejected
      errorReadAt = errorReadAt ?? now
      let written = accepts ? nil : log.written(at: position)
      runner.book(marks.phase(of: position)) {
        if let written { $0.measurements.error.record(Int((now - written) / 1_000)) }
        $0.measurements.lossWindow.record(log.count - settledEnd)
      }
    }
    noteSettled(at: now)
    return isTerminated
  }

  /// A marker is of the phase that it settles: of the last one with a schedule, when it proves anything of that. What was
  /// due then goes out up to some milliseconds behind its end.
  private func phase(ofMarkerAt position: Int) -> RunPhase {
    let phases = marks.counts(of: 0..<position).map(\.phase)
    return phases.contains(runner.lastScheduled) ? runner.lastScheduled : phases.last ?? runner.runPhase
  }

  /// The gateway has said what became of what is settled, or will now never be looked at.
  private func noteSettled(at now: Int64) {
    for (phase, _) in marks.counts(of: 0..<(isTerminated ? log.count : settledEnd)) {
      runner.book(phase) { $0.settledAt = max($0.settledAt, now) }
    }
  }

  /// Identifier 0 can be a marker or a notification that is bad on purpose, but any other that the gateway could not name
  /// as well. Only a status that is about such a fault makes it one of these: a mistake here would call others accepted.
  private func isNaming(_ response: ErrorResponse) -> Bool {
    switch response.status {
    case _ where response.identifier != 0: true
    // To these two the books give only a notification that they know to be bad.
    case .missingDeviceToken, .invalidPayloadSize, .protocolError: true
    case .invalidTokenSize: !hasBadTokenSizes
    default: false
    }
  }

  // MARK: its life

  func open() {
    guard phase == .down, runner.wantsConnections else { return }
    phase = .connecting
    life += 1
    runner.tally.attempted += 1
    runner.world.connect(self)
  }

  func opened(_ channel: any Channel, life: Int, isResumed: Bool) {
    // A host with several addresses can give two channels, and a run can end meanwhile.
    guard phase == .connecting, life == self.life, runner.phase != .over else { return channel.close(promise: nil) }
    phase = .up
    self.channel = channel
    tls = try? channel.pipeline.syncOperations.handler(type: TLSHandler.self)
    isWritable = channel.isWritable
    socket = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
    openedAt = runner.clock()
    failures = 0
    if !wasUp {
      wasUp = true
      runner.tally.everUp += 1
    }
    runner.tally.opened += 1
    runner.tally.up += 1
    if isResumed { runner.tally.resumed += 1 }
    runner.probe(self)
    runner.pump()
    // What was to be sent again is on its way, unless another connection has taken it before.
    if let since = recoversSince {
      runner.measurements.recover.record(Int((runner.clock() - since) / 1_000))
      recoversSince = nil
    }
  }

  /// Takes what went wrong, in case that the attempt to connect ends of it.
  func note(_ error: any Error, life: Int) {
    runner.note(error)
    if phase == .connecting, life == self.life { problem = runner.lastError }
  }

  func failedToOpen(life: Int) {
    guard phase == .connecting, life == self.life else { return }
    phase = .down
    failures += 1
    runner.tally.countFailure(problem ?? "closed before it was open")
    problem = nil
    runner.reopen(self)
  }

  /// The channel is gone: what it carried is settled.
  func ended(_ channel: any Channel, life: Int, by peer: LoadTally.Cause) {
    guard phase == .up || phase == .closing else { return failedToOpen(life: life) }
    guard channel === self.channel else { return }
    runner.tally.up -= 1
    readRest()
    // Who meant to end it did not, when the other side has done it before it answered the marker.
    let isOurs = marker == nil || isTerminated || isOverdue
    runner.tally.closed[isOurs ? cause ?? peer : peer, default: 0] += 1
    let age = runner.clock() - openedAt
    if settledEnd == 0, !isTerminated, !isForeign, age < 1_000_000_000, !isOurs || cause == nil {
      runner.tally.endedSilently += 1
    }
    let wasEmpty = log.count == 0 && cause != nil
    let wasShort = age < 5_000_000_000
    silences = settledEnd == 0 && !isTerminated && !leavesOpen && !wasEmpty && wasShort ? silences + 1 : 0
    settle(sendsAgain: true)
    let unwritten = unwritten
    phase = .down
    (self.channel, socket, tls, isWritable) = (nil, nil, nil, false)
    log = runner.makeLog()
    marks = PhaseMarks(in: runner.runPhase)
    session = runner.makeSession()
    answer = []
    (settledEnd, rejections, isTerminated, marker, cause) = (0, [], false, nil, nil)
    (errorReadAt, leavesOpen, hasLingered, isSpokenFor, readsFirst) = (nil, false, false, false, false)
    (hasAnswered, isForeign, isOverdue) = (false, false, false)
    dropBatch()
    runner.putBack(unwritten)
    runner.reopen(self)
  }

  /// The run is over: what was not answered by now stays open.
  func abandon() {
    guard phase == .up || phase == .closing else { return }
    readRest()
    settle(sendsAgain: false)
    runner.noteNeverSent(unwritten.filter { $0.attempt == 0 })
    runner.abandon(unwritten)
    runner.tally.up -= 1
    runner.tally.closed[cause ?? .local, default: 0] += 1
    phase = .down
    dropBatch()
    channel?.close(promise: nil)
    (channel, socket, tls, isWritable) = (nil, nil, nil, false)
  }

  /// The pieces of the batch that is not written.
  private var unwritten: [SentLog.Piece] {
    pieces.map { piece, due in
      var piece = piece
      piece.due = due.first
      return piece
    }
  }

  private func settle(sendsAgain: Bool) {
    let bad = Set(rejections)
    for (phase, count) in marks.counts(of: 0..<settledEnd) {
      let rejected = bad.count { marks.phase(of: $0) == phase }
      runner.book(phase) { $0.tally.settled(accepted: count - rejected, rejected: rejected) }
    }
    let open = marks.counts(of: settledEnd..<log.count)
    var rest = log.pieces(from: settledEnd)
    let count = rest.reduce(0) { $0 + $1.count }
    guard count > 0 else { return }
    // Those that were open on an earlier connection stay so: they may have been accepted there.
    if !isTerminated { for index in rest.indices { rest[index].isOpen = true } }
    if isTerminated {
      for (phase, count) in open { runner.book(phase) { $0.tally.sendings.discarded += count } }
      guard sendsAgain else { return runner.abandon(rest) }
      recoversSince = errorReadAt
      // They were not looked at: it was not one of them that ended the connection.
      for index in rest.indices { (rest[index].silences, rest[index].alone, rest[index].portion) = (0, 0, .max) }
      runner.sendAgain(rest)
    } else {
      for (phase, count) in open { runner.book(phase) { $0.tally.sendings.unknown += count } }
      if leavesOpen || !runner.plan.resendsUnknown {
        leaveUnknown(open)
      } else if sendsAgain {
        if cause != .shutdown { for index in rest.indices { rest[index].suspect(among: count) } }
        runner.sendAgain(rest)
      } else if runner.plan.usesMarkers {
        // It would have been sent again.
        runner.abandon(rest)
      } else {
        leaveUnknown(open)
      }
    }
  }

  private func leaveUnknown(_ open: [(phase: RunPhase, count: Int)]) {
    for (phase, count) in open { runner.book(phase) { $0.tally.unknown += count } }
  }
}

extension LoopRunner {
  /// A batch is about to be written. All at once: what belongs to another object is looked after at every use.
  fileprivate func note(_ count: Int, _ bytes: Int, _ reason: LoadTally.FlushReason, at now: Int64) {
    lastWrite = now
    tally.wrote(count, bytes, reason)
    measurements.wrote(count, bytes)
    if runPhase == .measured || runPhase == .warmUp { bins.add(count, at: now - start) }
  }
}

extension LoadTally {
  fileprivate mutating func settled(accepted more: Int, rejected bad: Int) {
    sendings.accepted += more
    sendings.rejected += bad
    accepted += more
    rejected += bad
  }

  fileprivate mutating func wrote(_ count: Int, _ bytes: Int, _ reason: FlushReason) {
    sendings.written += count
    writtenBytes += bytes
    flushReasons[reason] += 1
  }
}

extension LoadMeasurements {
  fileprivate mutating func wrote(_ count: Int, _ bytes: Int) {
    batchNotifications.record(count)
    batchBytes.record(bytes)
  }
}

extension ByteBuffer {
  fileprivate init(copying bytes: RawSpan) {
    self.init()
    writeBytes(bytes)
  }
}
