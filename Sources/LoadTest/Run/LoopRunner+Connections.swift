import NIOCore
import NIOPosix
import TLSTransport

/// How connections come and go, and what their ends leave to be sent again.
extension LoopRunner {
  /// Opens this loop's connections, spread over the stagger.
  func openAll(_ numbers: [Int], of total: Int) {
    connections = numbers.map { ProviderConnection($0, self) }
    for connection in connections {
      let wait = Int64(plan.connections.stagger / .nanoseconds(1)) * Int64(connection.number) / Int64(max(1, total))
      loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait)) { connection.open() }
    }
  }

  func connect(_ connection: ProviderConnection) {
    let bound = NIOLoopBound(connection, eventLoop: loop)
    let (tls, sessions, plan) = (tls, sessions, plan)
    var bootstrap = ClientBootstrap(group: loop)
      .connectTimeout(.nanoseconds(Int64(plan.connections.connectTimeout / .nanoseconds(1))))
      .channelOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
      .channelOption(.allowRemoteHalfClosure, value: true)
    for (option, value) in plan.connections.socket.channelOptions {
      bootstrap = bootstrap.channelOption(option, value: value)
    }
    bootstrap
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls {
            try channel.pipeline.syncOperations.addHandler(
              TLSHandler(
                client: tls, serverName: plan.gateway.host, verifiesName: plan.verifiesName,
                sessions: plan.resumesSessions ? sessions : nil,
                handshakeTimeout: .nanoseconds(Int64(plan.connections.handshakeTimeout / .nanoseconds(1)))))
          }
          try channel.pipeline.syncOperations.addHandler(ProviderHandler(bound.value, usesTLS: tls != nil))
        }
      }
      .connect(host: plan.gateway.host, port: plan.gateway.port)
      .whenFailure { error in
        bound.value.runner.note(error)
        bound.value.failedToOpen()
      }
  }

  /// Opens a connection again: at once after an end, later after a failure.
  func reopen(_ connection: ProviderConnection) {
    guard phase != .over else { return }
    if phase == .draining, !hasWork { return }
    guard connection.failures > 0 else { return loop.assumeIsolated().execute { connection.open() } }
    let doubled = plan.connections.backoff * Double(1 << min(16, connection.failures - 1))
    let most = Double(min(doubled, plan.connections.maximumBackoff) / .nanoseconds(1))
    let wait = Int64(Double.random(in: most / 2...max(most / 2, most)))
    loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait)) { connection.open() }
  }

  func note(_ error: any Error) { lastError = "\(error)" }

  // MARK: what is left

  /// Discarded, or left open: it goes before everything new, in its order.
  func sendAgain(_ pieces: [SentLog.Piece]) {
    var left: [SentLog.Piece] = []
    for var piece in pieces {
      piece.attempt += 1
      if piece.attempt >= plan.maximumAttempts { tally.abandoned += piece.count } else { left.append(piece) }
    }
    putBack(left)
  }

  /// Collected, but never written.
  func takeBack(_ pieces: [SentLog.Piece]) { putBack(pieces) }

  private func putBack(_ pieces: [SentLog.Piece]) {
    guard !pieces.isEmpty else { return }
    againSince = clock()
    again.prepend(contentsOf: pieces)
    loop.assumeIsolated().execute { self.pump() }
  }

  func noteError(_ now: Int64) { errorAt = errorAt ?? now }

  func noteResent(_ now: Int64) {
    guard let errorAt else { return }
    measurements.recover.record(Int((now - errorAt) / 1_000))
    self.errorAt = nil
  }

  // MARK: time

  /// Called every millisecond; how much later it comes is how long the loop, or the machine, was busy with other things.
  func tick() {
    let now = clock()
    if ticked > 0 { measurements.loopLag.record(Int((now - ticked) / 1_000) - 1_000) }
    ticked = now
    pump()
    for connection in connections { connection.check(now) }
    if tally.up > 0 { lastOpen = now }
  }

  /// No connection could be made for as long as the plan allows.
  var isCutOff: Bool { clock() - lastOpen > Int64(plan.connections.giveUp / .nanoseconds(1)) }

  /// The schedule begins.
  func begin(at time: Int64) {
    start = time
    phase = .running
    if case .scheduled(let whole, let isPoisson) = plan.pace {
      let mine = whole.scaled(by: 1 / Double(parts))
      schedule = mine
      pacer = Pacer(mine, isPoisson ? .poisson(seed: plan.workload.seed &+ UInt64(part)) : .even, limit: most)
      if plan.behind == .skip { latePacer = pacer }
    }
    pump()
  }

  /// What was measured since the last call.
  func takeMeasurements() -> LoadMeasurements {
    defer { measurements = LoadMeasurements() }
    return measurements
  }

  /// All of a count was sent.
  var isAllSent: Bool { next >= most && again.isEmpty && !connections.contains { $0.hasBatch } }

  func drain() {
    guard phase == .running else { return }
    phase = .draining
    for connection in connections { connection.close(as: .local) }
  }

  /// While draining: everything is settled.
  func drainStep() -> Bool {
    pump()
    if again.isEmpty { for connection in connections { connection.close(as: .local) } }
    return !hasWork && !connections.contains { $0.phase != .down }
  }

  func finish() {
    phase = .over
    for connection in connections { connection.abandon() }
    connections.removeAll()
    tally.abandoned += again.reduce(0) { $0 + $1.count }
    again.removeAll()
  }
}
