import Measurement
import Reporting

/// The progress of the simulator on a terminal, updated every second: a line, or a screen.
struct SimulatorStatus {
  let isShown: Bool
  private let clock = ContinuousClock()
  private let start: ContinuousClock.Instant
  private var last = Ledger()
  private var lastTime: ContinuousClock.Instant
  private var hasLine = false
  private let hasScreen: Bool
  private var screen = Screen()
  private var course = GatewayCourse()

  /// - Parameters:
  ///   - isQuiet: whether nothing is shown.
  ///   - hasScreen: whether it is a screen.
  init(isQuiet: Bool, hasScreen: Bool) {
    self.hasScreen = hasScreen
    isShown = !isQuiet && StandardError.isTerminal
    start = clock.now
    lastTime = start
  }

  mutating func show(_ ledger: Ledger, _ open: Int) {
    let now = clock.now
    let seconds = max(0.001, lastTime.duration(to: now) / .seconds(1))
    if hasScreen {
      course.add(ledger, open: open, after: seconds)
      screen.show(course.dashboard("apnscope simulate  \(Int(start.duration(to: now) / .seconds(1))) s"))
      lastTime = now
      return
    }
    let (gateway, before) = (ledger.gateway, last.gateway)
    let rate = Double(gateway.received - before.received) / seconds
    let opened = Double(gateway.connections - before.connections) / seconds
    let rejected = gateway.rejected.values.reduce(0, +)
    var line = StatusLine()
    line.add("\(Int(start.duration(to: now) / .seconds(1))) s", rank: 0)
    line.add("connections \(grouped(open)) (+\(Int(opened.rounded()))/s)", rank: 5)
    line.add("received \(grouped(gateway.received)) (\(grouped(Int(rate.rounded())))/s)", rank: 1)
    line.add("accepted \(grouped(gateway.accepted))", rank: 4)
    line.add("rejected \(grouped(rejected))", rank: 2)
    line.add("discarded \(grouped(gateway.discarded))", rank: 3)
    ProgressLine.show(line)
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
    if hasLine { ProgressLine.remove() }
    hasLine = false
    screen.end()
  }
}
