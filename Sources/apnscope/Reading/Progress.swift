import Dissection

/// The progress of a long reading, as one line on standard error; nothing if standard error is no terminal, or the file
/// is small.
struct Progress {
  private static let smallestFile = 64 << 20

  private let isShown: Bool
  private let clock = ContinuousClock()
  private let start: ContinuousClock.Instant
  private var last: ContinuousClock.Instant
  private var hasLine = false

  init() {
    isShown = StandardError.isTerminal
    start = clock.now
    last = start
  }

  mutating func show(_ progress: DissectionProgress) {
    guard isShown, progress.size ?? .max >= Self.smallestFile else { return }
    let now = clock.now
    guard last.duration(to: now) >= .milliseconds(250) else { return }
    last = now
    let seconds = max(0.001, start.duration(to: now) / .seconds(1))
    let rate = Double(progress.bytesRead) / seconds
    var line = "\(Self.megabytes(progress.bytesRead))"
    if let size = progress.size, size > 0 {
      let left = Int((Double(size - progress.bytesRead) / max(1, rate)).rounded(.up))
      line +=
        " of \(Self.megabytes(size)) (\(100 * progress.bytesRead / size) %), \(Self.megabytes(Int(rate)))/s, \(left) s left"
    } else {
      line += ", \(Self.megabytes(Int(rate)))/s"
    }
    if progress.packets > 0 { line += ", \(progress.packets) packets" }
    StandardError.write("\r\u{1b}[K\(line)")
    hasLine = true
  }

  mutating func end() {
    if hasLine { StandardError.write("\r\u{1b}[K") }
    hasLine = false
  }

  private static func megabytes(_ bytes: Int) -> String { "\(bytes / 1_000_000) MB" }
}
