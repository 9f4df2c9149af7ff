import Dissection
import Measurement
import Reporting

/// The progress of a long reading, as one line on standard error; nothing if standard error is no terminal, or in the
/// first second.
struct Progress {
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
    guard isShown else { return }
    let now = clock.now
    guard start.duration(to: now) >= .seconds(1), last.duration(to: now) >= .milliseconds(250) else { return }
    last = now
    let seconds = max(0.001, start.duration(to: now) / .seconds(1))
    let rate = Double(progress.bytesRead) / seconds
    var line = StatusLine()
    if let size = progress.size, size > 0 {
      let left = max(0, Double(size - progress.bytesRead) / max(1, rate)).rounded(.up)
      let share = progress.bytesRead >= size ? 100 : progress.bytesRead / max(1, size / 100)
      line.add("\(Self.megabytes(progress.bytesRead)) of \(Self.megabytes(size)) (\(share) %)", rank: 0)
      line.add("\(span(left)) left", rank: 1)
    } else {
      line.add(Self.megabytes(progress.bytesRead), rank: 0)
    }
    line.add("\(Self.megabytes(Int(rate)))/s", rank: 2)
    if progress.packets > 0 { line.add("\(grouped(progress.packets)) packets", rank: 3) }
    ProgressLine.show(line)
    hasLine = true
  }

  mutating func end() {
    if hasLine { ProgressLine.remove() }
    hasLine = false
  }

  private static func megabytes(_ bytes: Int) -> String { "\(bytes / 1_000_000) MB" }
}
