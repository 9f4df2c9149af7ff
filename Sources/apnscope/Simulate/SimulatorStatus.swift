import Measurement

/// One line a second on a terminal that says how the simulator stands.
struct SimulatorStatus {
  let isShown = StandardError.isTerminal
  private let clock = ContinuousClock()
  private let start: ContinuousClock.Instant
  private var last = Ledger()
  private var lastTime: ContinuousClock.Instant
  private var hasLine = false

  init() {
    start = clock.now
    lastTime = start
  }

  mutating func show(_ ledger: Ledger, _ open: Int) {
    let now = clock.now
    let seconds = max(0.001, lastTime.duration(to: now) / .seconds(1))
    let (gateway, before) = (ledger.gateway, last.gateway)
    let rate = Double(gateway.received - before.received) / seconds
    let opened = Double(gateway.connections - before.connections) / seconds
    let rejected = gateway.rejected.values.reduce(0, +)
    StandardError.write(
      "\r\u{1b}[K\(Int(start.duration(to: now) / .seconds(1))) s  connections \(open) (+\(Int(opened.rounded()))/s)  received \(grouped(gateway.received)) (\(grouped(Int(rate.rounded())))/s)  accepted \(grouped(gateway.accepted))  rejected \(grouped(rejected))  discarded \(grouped(gateway.discarded))"
    )
    hasLine = true
    last = ledger
    lastTime = now
  }

  /// Takes the line away for something else that is to be written.
  mutating func interrupt(_ body: () -> Void) {
    end()
    body()
  }

  mutating func end() {
    if hasLine { StandardError.write("\r\u{1b}[K") }
    hasLine = false
  }
}

/// The books on a few lines, for people.
struct SimulatorSummary {
  let text: String

  init(_ ledger: Ledger) {
    let gateway = ledger.gateway
    let rejected = gateway.rejected.sorted { (Int($0.key) ?? 0) < (Int($1.key) ?? 0) }
      .map { "\(grouped($0.value)) x status \($0.key)" }
    let (devices, feedback) = (ledger.devices, ledger.feedback)
    text = """
      notifications  \(grouped(gateway.received)) received = \(grouped(gateway.accepted)) accepted + \(grouped(gateway.rejected.values.reduce(0, +))) rejected + \(grouped(gateway.discarded)) discarded
      rejected       \(rejected.isEmpty ? "-" : rejected.joined(separator: ", "))\(gateway.malformed > 0 ? ", \(grouped(gateway.malformed)) of them malformed" : "")
      devices        \(grouped(devices.delivered)) delivered, \(grouped(devices.stored)) stored, \(grouped(devices.coalesced)) coalesced, \(grouped(devices.expired)) expired, \(grouped(devices.dropped)) dropped, \(grouped(devices.uninstalled)) uninstalled
      connections    \(grouped(gateway.connections)), \(grouped(gateway.resumed)) resumed, \(grouped(gateway.handshakeFailures)) failed handshakes, \(grouped(gateway.refused)) refused, \(grouped(gateway.incomplete)) ended inside a frame
      feedback       \(grouped(feedback.connections)) connections, \(grouped(feedback.tuplesSent)) tuples sent, \(grouped(feedback.waiting)) waiting
      """
  }
}
