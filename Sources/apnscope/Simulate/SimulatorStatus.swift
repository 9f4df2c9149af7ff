import Measurement
import Reporting

/// The status line of the simulator on a terminal, updated every second.
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

  /// Removes the line while something else is written.
  mutating func interrupt(_ body: () -> Void) {
    end()
    body()
  }

  mutating func end() {
    if hasLine { StandardError.write("\r\u{1b}[K") }
    hasLine = false
  }
}
