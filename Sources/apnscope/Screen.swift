import ArgumentParser
import Glibc
import Measurement
import Reporting
import Synchronization

/// Whether progress is a screen that is redrawn.
struct ScreenOption: ParsableArguments {
  @Flag(
    help:
      "Show progress as a screen that is redrawn every second, on a terminal; the summary is left behind."
  )
  var screen = false
}

/// A terminal's other screen, which is left when it ends: what was there before comes back.
struct Screen {
  private var isOn = false

  /// Whether there is a terminal for it.
  static var isPossible: Bool { StandardError.isTerminal }

  /// The size of the terminal.
  static var size: (columns: Int, rows: Int) { Terminal.size(of: STDERR_FILENO) ?? (80, 24) }

  mutating func show(_ dashboard: Dashboard) {
    let size = Self.size
    show(dashboard.lines(columns: size.columns, rows: size.rows))
  }

  /// Shows as many of the first lines as there is room for.
  mutating func show(_ lines: [String]) {
    let lines = lines.prefix(Self.size.rows)
    // Each line is cleared behind its text, and the rest of the screen at the end, so that nothing flickers.
    let text = lines.map { "\($0)\u{1b}[K" }.joined(separator: "\r\n")
    StandardError.write((isOn ? "" : "\u{1b}[?1049h\u{1b}[?25l") + "\u{1b}[H\(text)\u{1b}[J")
    isOn = true
  }

  mutating func end() {
    if isOn { StandardError.write("\u{1b}[?25h\u{1b}[?1049l") }
    isOn = false
  }
}

/// The seconds of a load, as a screen shows them.
struct LoadCourse: Sendable {
  /// More than the widest terminal has columns.
  private static let most = 1_000

  private var seconds: [LoadProgress] = []

  mutating func add(_ progress: LoadProgress) {
    if seconds.count == Self.most { seconds.removeFirst(Self.most / 2) }
    seconds.append(progress)
  }

  /// - Parameter title: what runs, and how far it is.
  func dashboard(_ title: String) -> Dashboard {
    guard let last = seconds.last else { return Dashboard(title: title, rows: [], footer: "") }
    func perSecond(_ value: Double) -> String { "\(grouped(Int(nearest: value.rounded())))/s" }
    let errors = zip(seconds, [0] + seconds.map(\.errors)).map { Double($0.errors - $1) }
    var rows = [
      Dashboard.Row("written", perSecond(last.writtenPerSecond), seconds.map(\.writtenPerSecond)),
      Dashboard.Row("accepted", perSecond(last.acceptedPerSecond), seconds.map(\.acceptedPerSecond)),
      Dashboard.Row("errors", perSecond(errors.last ?? 0), errors),
      Dashboard.Row("connections", grouped(last.connections), seconds.map { Double($0.connections) }),
      Dashboard.Row(
        "lag p99", Unit.microseconds.text(Double(last.sendLag99)), seconds.map { Double($0.sendLag99) }),
      Dashboard.Row("processor", "\(Int(nearest: (last.cpu * 100).rounded())) %", seconds.map(\.cpu)),
    ]
    if last.askedPerSecond != nil {
      rows.insert(
        Dashboard.Row("asked", perSecond(last.askedPerSecond ?? 0), seconds.map { $0.askedPerSecond ?? 0 }), at: 0)
    }
    return Dashboard(
      title: title, rows: rows,
      footer:
        "written \(grouped(last.written))  accepted \(grouped(last.accepted))  errors \(grouped(last.errors))  Ctrl-C ends"
    )
  }
}

/// The seconds of a gateway, as a screen shows them.
struct GatewayCourse: Sendable {
  private static let most = 1_000

  private var seconds: [(received: Double, accepted: Double, rejected: Double, discarded: Double, open: Double)] = []
  private var last = Ledger()

  /// - Parameter time: the seconds since the one before.
  mutating func add(_ ledger: Ledger, open: Int, after time: Double) {
    if seconds.count == Self.most { seconds.removeFirst(Self.most / 2) }
    let (now, before) = (ledger.gateway, last.gateway)
    func rate(_ count: (Ledger.Gateway) -> Int) -> Double { Double(count(now) - count(before)) / max(0.001, time) }
    seconds.append(
      (
        rate { $0.received }, rate { $0.accepted }, rate { $0.rejected.values.reduce(0, +) }, rate { $0.discarded },
        Double(open)
      ))
    last = ledger
  }

  func dashboard(_ title: String) -> Dashboard {
    func row(_ name: String, _ value: (Int) -> Double) -> Dashboard.Row {
      let values = seconds.indices.map(value)
      return Dashboard.Row(name, "\(grouped(Int(nearest: (values.last ?? 0).rounded())))/s", values)
    }
    let open = seconds.map(\.open)
    let gateway = last.gateway
    return Dashboard(
      title: title,
      rows: [
        row("received") { seconds[$0].received }, row("accepted") { seconds[$0].accepted },
        row("rejected") { seconds[$0].rejected }, row("discarded") { seconds[$0].discarded },
        Dashboard.Row("connections", grouped(Int(nearest: open.last ?? 0)), open),
      ],
      footer:
        "received \(grouped(gateway.received))  accepted \(grouped(gateway.accepted))  rejected \(grouped(gateway.rejected.values.reduce(0, +)))  discarded \(grouped(gateway.discarded))  Ctrl-C ends"
    )
  }
}
