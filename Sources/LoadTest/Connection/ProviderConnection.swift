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
    /// The marker is written, and its answer is waited for.
    case closing
  }

  let number: Int
  let runner: LoopRunner
  private(set) var phase = Phase.down
  private var channel: (any Channel)?
  /// The channel's socket, which is its channel's: it is only asked whether there is something to read.
  private var socket: NIOBSDSocket.Handle?
  private let batchBytes: Int
  private let batchNotifications: Int
  /// What was written since the connection was opened.
  private var log = SentLog()
  private var session = ProviderSession()
  private var answer: [UInt8] = []
  /// What the gateway said: everything before is accepted but for what was rejected.
  private var settledEnd = 0
  private var rejections: [Int] = []
  private var isTerminated = false
  private var marker: (position: Int, written: Int64)?
  private var openedAt: Int64 = 0
  private var cause: LoadTally.Cause?
  private(set) var failures = 0

  /// The batch that is being collected.
  private var batch = ByteWriter(capacity: 20_000)
  private var pieces: [SentLog.Piece] = []
  private var batchCount = 0
  private var batchDue: Int64 = 0
  private var batchBegan: Int64 = 0

  init(_ number: Int, _ runner: LoopRunner) {
    self.number = number
    self.runner = runner
    batchBytes = runner.plan.batching.bytes
    batchNotifications = runner.plan.batching.notifications
  }

  var isWritable: Bool { channel?.isWritable ?? false }
  /// Takes notifications: its batch has room, and it is not at its end.
  var isReady: Bool { phase == .up && batch.count < batchBytes && batchCount < batchNotifications }
  var hasBatch: Bool { batchCount > 0 }
  /// Written and not settled.
  var unsettled: Int { log.count - settledEnd }

  /// The gateway has said something that is not read yet. Whoever goes on writing then loses what it writes.
  var hasInput: Bool {
    guard let socket else { return false }
    var request = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    // Safe: one structure, which lives through the call.
    return unsafe poll(&request, 1, 0) > 0
  }

  // MARK: out

  /// Puts notifications into the batch, as many as fit, and returns how many.
  func collect(_ piece: SentLog.Piece, due: Int64, now: Int64) -> Int {
    let runner = runner
    let room = batchBytes
    if batchCount == 0 {
      batchDue = due
      batchBegan = now
    }
    var session = self.session
    self.session = ProviderSession(maximumIdentifierRuns: 0)
    var taken = 0
    let most = min(piece.count, batchNotifications - batchCount)
    while taken < most, batch.count < room {
      let number = runner.workload.number(of: runner.globalIndex(piece.index + taken))
      let before = batch.count
      runner.workload.encode(number, into: &batch)
      // One that makes the batch longer than a record goes into the next, unless it is alone.
      if batch.count > room, batchCount + taken > 0 {
        batch.truncate(to: before)
        break
      }
      _ = session.write(identifier: Workload.identifier(of: number), isKnownBad: false)
      taken += 1
    }
    self.session = session
    if taken > 0 {
      pieces.append(SentLog.Piece(index: piece.index, count: taken, attempt: piece.attempt))
      batchCount += taken
    }
    return taken
  }

  func flush(_ reason: LoadTally.FlushReason) {
    guard batchCount > 0, let channel else { return }
    let now = runner.clock()
    var buffer = channel.allocator.buffer(capacity: batch.count)
    buffer.write(batch.bytes)
    for piece in pieces {
      log.append(piece, written: now)
      if piece.attempt > 0 { runner.tally.sendings.resent += piece.count }
    }
    runner.tally.sendings.written += batchCount
    runner.tally.writtenBytes += batch.count
    runner.tally.writes += 1
    runner.tally.flushReasons[reason, default: 0] += 1
    runner.measurements.sendLag.record(Int((now - batchDue) / 1_000), times: batchCount)
    runner.measurements.batchNotifications.record(batchCount)
    runner.measurements.batchBytes.record(batch.count)
    if pieces.contains(where: { $0.attempt > 0 }) { runner.noteResent(now) }
    dropBatch()
    channel.writeAndFlush(buffer, promise: nil)
    if let most = runner.plan.connections.notifications, log.count >= most { close(as: .lifetime) }
  }

  private func dropBatch() {
    batch.removeAll()
    pieces.removeAll(keepingCapacity: true)
    batchCount = 0
  }

  /// Writes the batch when it has waited long enough.
  func check(_ now: Int64) {
    if phase == .up {
      if hasBatch, isWritable { flush(.drain) }
      if hasBatch, now - batchBegan >= runner.lingerNanoseconds { flush(.linger) }
      if let lifetime = runner.lifetimeNanoseconds, now - openedAt >= lifetime { close(as: .lifetime) }
    } else if phase == .closing, let marker, now - marker.written > runner.markerTimeoutNanoseconds {
      channel?.close(promise: nil)
    }
  }

  /// Ends the connection in good order: a marker settles what was written, or without markers a close does not.
  func close(as cause: LoadTally.Cause) {
    guard phase == .up, let channel else { return }
    flush(.full)
    guard phase == .up else { return }
    phase = .closing
    self.cause = cause
    guard runner.plan.usesMarkers, unsettled > 0 else {
      channel.close(promise: nil)
      return
    }
    let position = session.write(identifier: Self.markerIdentifier, isKnownBad: true)
    marker = (position, runner.clock())
    runner.tally.sendings.markers += 1
    channel.writeAndFlush(ByteBuffer(bytes: Self.markerFrame), promise: nil)
  }

  static let markerIdentifier: UInt32 = 0xffff_ffff

  /// As pushy's: a frame of 24 bytes with an empty token and an empty payload.
  static let markerFrame: [UInt8] =
    [0x02, 0, 0, 0, 24, 0x01, 0, 0, 0x02, 0, 0, 0x03, 0, 4, 0xff, 0xff, 0xff, 0xff, 0x04, 0, 4, 0, 0, 0, 0, 0x05, 0, 1, 10]

  // MARK: in

  func receive(_ bytes: inout ByteBuffer) {
    answer += bytes.readBytes(length: bytes.readableBytes) ?? []
    var offset = 0
    while answer.count - offset >= ErrorResponse.length {
      let start = offset
      guard let response = try? ErrorResponse(parsing: answer.rawBytes, at: &offset) else {
        offset = start + 1
        continue
      }
      apply(response)
    }
    answer.removeFirst(offset)
    if isTerminated { channel?.close(promise: nil) }
  }

  private func apply(_ response: ErrorResponse) {
    let now = runner.clock()
    let verdict = session.receive(response)
    if let position = verdict.notification, position == marker?.position {
      settledEnd = position
      isTerminated = true
      if let marker { runner.measurements.drain.record(Int((now - marker.written) / 1_000)) }
      return
    }
    runner.tally.errorResponses[response.status.rawValue, default: 0] += 1
    guard let position = verdict.notification, position < log.count else {
      runner.tally.unresolvedResponses += 1
      // Whatever it meant, the gateway is done with this connection.
      if response.status != .noError { channel?.close(promise: nil) }
      return
    }
    let accepts = response.status == .shutdown || response.status == .noError
    settledEnd = max(settledEnd, position + 1)
    if !accepts { rejections.append(position) }
    if response.status != .noError {
      isTerminated = true
      cause = response.status == .shutdown ? .shutdown : .rejected
      runner.noteError(now)
      if let written = log.written(at: position), !accepts {
        runner.measurements.error.record(Int((now - written) / 1_000))
      }
      runner.measurements.lossWindow.record(log.count - settledEnd)
    }
  }

  // MARK: its life

  func open() {
    guard phase == .down else { return }
    phase = .connecting
    runner.tally.attempted += 1
    runner.connect(self)
  }

  func opened(_ channel: any Channel, isResumed: Bool) {
    guard phase == .connecting else { return }
    phase = .up
    self.channel = channel
    socket = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
    openedAt = runner.clock()
    failures = 0
    runner.tally.opened += 1
    runner.tally.up += 1
    if isResumed { runner.tally.resumed += 1 }
    runner.pump()
  }

  func failedToOpen() {
    guard phase == .connecting else { return }
    phase = .down
    failures += 1
    runner.tally.failed += 1
    runner.reopen(self)
  }

  /// The channel is gone: what it carried is settled.
  func ended(by peer: LoadTally.Cause) {
    guard phase == .up || phase == .closing else {
      if phase == .connecting { failedToOpen() }
      return
    }
    runner.tally.up -= 1
    runner.tally.closed[cause ?? peer, default: 0] += 1
    settle(sendsAgain: true)
    let unwritten = pieces
    let wasClosing = phase == .closing && cause == .local
    phase = .down
    (channel, socket) = (nil, nil)
    log = SentLog()
    session = ProviderSession()
    answer = []
    (settledEnd, rejections, isTerminated, marker, cause) = (0, [], false, nil, nil)
    dropBatch()
    runner.takeBack(unwritten)
    if !wasClosing || runner.hasWork { runner.reopen(self) }
  }

  /// The run is over: what was not answered by now stays open.
  func abandon() {
    guard phase == .up || phase == .closing else { return }
    settle(sendsAgain: false)
    runner.tally.abandoned += pieces.reduce(0) { $0 + $1.count }
    runner.tally.up -= 1
    runner.tally.closed[cause ?? .local, default: 0] += 1
    phase = .down
    channel?.close(promise: nil)
  }

  private func settle(sendsAgain: Bool) {
    let bad = Set(rejections).count
    let accepted = settledEnd - bad
    runner.tally.sendings.accepted += accepted
    runner.tally.sendings.rejected += bad
    runner.tally.accepted += accepted
    runner.tally.rejected += bad
    let rest = log.pieces(from: settledEnd)
    let count = rest.reduce(0) { $0 + $1.count }
    guard count > 0 else { return }
    if isTerminated {
      runner.tally.sendings.discarded += count
      if sendsAgain { runner.sendAgain(rest) } else { runner.tally.abandoned += count }
    } else {
      runner.tally.sendings.unknown += count
      if sendsAgain, runner.plan.resendsUnknown { runner.sendAgain(rest) } else { runner.tally.unknown += count }
    }
  }
}

extension ByteBuffer {
  fileprivate mutating func write(_ bytes: RawSpan) {
    _ = unsafe bytes.withUnsafeBytes { unsafe writeBytes($0) }
  }
}
