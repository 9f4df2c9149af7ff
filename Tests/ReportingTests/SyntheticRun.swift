import Measurement

/// A run as a load could have written it, from a seed; its books balance.
func syntheticRun(seconds: Int, connections: Int, rate: Int = 5_000) -> RunResult {
  var state: UInt64 = 11
  func random(_ count: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(state >> 33) % max(1, count)
  }
  var run = RunResult()
  run.measuredBy = RunResult.currentMeasure
  run.started = "2026-01-02T03:04:05.678Z"
  run.environment.host = "machine"
  run.environment.kernel = "Linux 6"
  run.environment.cpu = "Processor"
  run.environment.cores = 4
  run.environment.memoryBytes = 8 << 30
  run.environment.openssl = "OpenSSL 3"
  run.environment.apnscope = "0.2.0"
  run.environment.command = ["apnscope", "load", "--rate", "\(rate)/s", "--threshold", "send_lag_p99<5ms"]
  run.plan = [
    "rate": .text("\(rate).0/s"), "connections": .number(Double(connections)), "for": .text("\(seconds)s"),
    "seed": .number(1), "tls": .text("1.2..1.2"), "buffers": .text("small"), "plain": .flag(false),
  ]
  var lives = [Double](repeating: 0, count: connections)
  var bins: [Int] = []
  for second in 0..<seconds {
    var sample = RunResult.Sample()
    sample.tS = Double(second)
    sample.written = rate - 50 + random(100)
    sample.errors = random(3)
    for _ in 0..<sample.errors {
      let status = random(4) == 0 ? "2" : "8"
      sample.errorsByStatus[status, default: 0] += 1
      run.binary.errorResponses[status, default: 0] += 1
      run.latency.errorUs.record(200 + random(2_000))
      run.latency.recoverUs.record(400 + random(3_000))
      run.latency.tlsResumedUs.record(500 + random(1_000))
      run.latency.tcpConnectUs.record(100 + random(300))
      let discarded = random(60)
      run.binary.lossWindow.record(discarded)
      run.sendings.rejected += 1
      run.sendings.discarded += discarded
      let (connection, at) = (random(connections), Double(second) + Double(random(1_000)) / 1_000)
      guard at > lives[connection] else { continue }
      run.timeline.spans.append(.init(connection: connection, .up, fromS: lives[connection], toS: at))
      run.timeline.spans.append(.init(connection: connection, .backOff, fromS: at, toS: at + 0.05))
      run.timeline.spans.append(.init(connection: connection, .handshake, fromS: at + 0.05, toS: at + 0.052))
      lives[connection] = at + 0.052
    }
    bins += (0..<10).map { sample.written * ($0 + 1) / 10 - sample.written * $0 / 10 }
    sample.accepted = sample.written - sample.errors
    (sample.opened, sample.closed, sample.up) = (sample.errors, sample.errors, connections)
    sample.closedByCause = sample.errors > 0 ? [.rejected: sample.errors] : [:]
    let writes = sample.written / (1 + second % 8)
    sample.writes = writes
    sample.backlog = second % 10 == 3 ? random(200) : 0
    sample.sendLagP99Us = 1_100 + random(900)
    sample.loopLagP99Us = 300 + random(400)
    // 40 µs a write and 90 µs a notification, or a little more.
    sample.cpu = Double(writes) * 40e-6 + Double(sample.written) * 90e-6 * (1 + Double(random(100)) / 1_000)
    sample.rssBytes = 40 << 20
    run.series.append(sample)
    for _ in 0..<20 { run.latency.sendLagUs.record(900 + random(700), times: rate / 20) }
    run.resources.loopLagUs.record(100 + random(500), times: 100)
    run.batches.notifications.record(1 + random(40), times: 100)
    run.batches.bytes.record(200 + random(8_000), times: 100)
    run.sendings.written += sample.written
    run.connections.opened += sample.opened
  }
  run.bins = RunResult.Bins()
  run.bins?.written = bins
  for (connection, life) in lives.enumerated() {
    run.timeline.spans.append(.init(connection: connection, .up, fromS: life, toS: Double(seconds)))
    run.latency.tlsHandshakeUs.record(2_000 + random(3_000))
  }
  run.connections.opened += connections
  run.connections.attempted = run.connections.opened
  run.connections.resumed = run.sendings.rejected
  run.connections.suites = ["TLS 1.2 ECDHE-ECDSA-AES128-GCM-SHA256": 3, "TLS 1.3 TLS_AES_256_GCM_SHA384": connections]
  run.connections.closed = [.rejected: run.sendings.rejected, .local: connections]
  run.sendings.resent = run.sendings.discarded
  run.sendings.accepted = run.sendings.written - run.sendings.rejected - run.sendings.discarded
  run.sendings.binary.markers = connections
  run.notifications.accepted = run.sendings.accepted
  run.notifications.rejected = run.sendings.rejected
  run.notifications.generated = run.sendings.accepted + run.sendings.rejected
  run.measuredS = Double(seconds)
  run.rates.writtenPerS = Double(run.sendings.written) / Double(seconds)
  run.rates.acceptedPerS = Double(run.sendings.accepted) / Double(seconds)
  run.rates.writtenBytesPerS = (run.rates.writtenPerS ?? 0) * 211
  run.batches.flushReasons = [.full: 10, .linger: 20, .idle: 30, .drain: 0]
  var phase = RunResult.Phase()
  (phase.name, phase.seconds) = (.measured, Double(seconds))
  (phase.notifications, phase.sendings, phase.connections) = (run.notifications, run.sendings, run.connections)
  phase.sendLagUs = run.latency.sendLagUs
  (phase.rates, phase.latency, phase.batches) = (run.rates, run.latency, run.batches)
  phase.binary.lossWindow = run.binary.lossWindow
  run.phases = [phase]
  (run.resources.cpuUserS, run.resources.cpuSystemS) = (Double(seconds) * 0.4, Double(seconds) * 0.1)
  run.resources.maxRssBytes = 41 << 20
  run.verdict.thresholds = [.init(expression: "send_lag_p99<5ms", value: 1_590, passed: true)]
  run.verdict.invariants = run.invariants(usesMarkers: true)
  return run
}

/// The books of a gateway that took all of it.
func ledger(of run: RunResult) -> Ledger {
  var ledger = Ledger()
  ledger.gateway.connections = run.connections.opened
  ledger.gateway.handshakes = run.connections.opened
  ledger.gateway.resumed = run.connections.resumed
  ledger.gateway.accepted = run.sendings.accepted
  ledger.gateway.discarded = run.sendings.discarded
  ledger.gateway.rejected = run.binary.errorResponses
  ledger.gateway.rejected["2", default: 0] += run.sendings.binary.markers
  ledger.gateway.binary.errorResponses = ledger.gateway.rejected
  ledger.gateway.received = run.sendings.written + run.sendings.binary.markers
  return ledger
}
