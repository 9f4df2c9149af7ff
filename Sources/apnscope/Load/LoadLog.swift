import ArgumentParser
import Bytes
import LoadTest
import Measurement
import Reporting
import Synchronization

/// The log of a load: a JSON object a line, of what has happened, appended to a file while the load runs.
///
/// Lines about connections, errors and stalls are limited in number a second and in bytes; what is left out is counted by
/// name, in a line of its own when the second is over, and at the end. So the lines and these counts together are all that
/// has happened. The other lines are few, and always written. Nobody waits for the disk (`LineLog`).
final class LoadLog: Sendable {
  private struct State {
    var limits: LogLimits
    /// Nanoseconds since 1970 at the start of the run; `nil` before the first event.
    var began: Int64?
  }

  private let path: String
  private let lines: LineLog
  private let state: Mutex<State>

  /// Complains and throws an exit code when the file cannot be opened.
  init(path: String, rate: Int, size: Int) throws {
    self.path = path
    state = Mutex(State(limits: LogLimits(rate: rate, size: size)))
    do {
      lines = try LineLog.open(path: path, limit: 16 << 20) { count in
        LogLine("dropped", time: WallClock.system.nanoseconds(), seconds: nil) { $0.field("count", count) }.bytes
      }
    } catch {
      complain("\(path): \(SystemError.text(error.code))")
      throw ExitStatus.inputOutput
    }
    write(LogLine("started", time: WallClock.system.nanoseconds(), seconds: nil) { $0.field("schema", 1) })
  }

  func receive(_ events: [LoadEvent]) {
    let texts = state.withLock { state in
      var texts: [LogLine] = []
      for event in events {
        if state.began == nil { state.began = event.time - Int64(event.seconds * 1e9) }
        if case .leftOut(let counts) = event.kind {
          state.limits.leaveOut(counts)
          continue
        }
        if let counts = state.limits.pass(event.seconds) { texts.append(LogLine(leftOut: counts, event)) }
        let line = LogLine(event)
        if !event.isLimited || state.limits.takes(line.bytes.count, event.name) { texts.append(line) }
      }
      return texts
    }
    for text in texts { write(text) }
  }

  /// A threshold with `,abort` does not hold, and ends the run.
  func abort(_ entry: RunResult.Verdict.Threshold) { write(line("abort", entry)) }

  /// The run is over: its thresholds, what was left out, and its outcome. Waits until the lines are written; complains and
  /// returns `false` when they could not be.
  func end(_ result: RunResult?) -> Bool {
    for entry in result?.verdict.thresholds ?? [] { write(line("threshold", entry)) }
    let now = WallClock.system.nanoseconds()
    let (counts, seconds) = state.withLock { state in
      (state.limits.takeLeftOut(), state.began.map { Double(now - $0) / 1e9 })
    }
    if !counts.isEmpty { write(LogLine(leftOut: counts, time: now, seconds: seconds)) }
    write(
      LogLine("ended", time: now, seconds: seconds) { line in
        line.field("outcome", result?.verdict.outcome?.rawValue)
      })
    lines.end()
    if let failure = lines.failure { complain(failure) }
    if lines.dropped > 0 { complain("\(path): \(grouped(lines.dropped)) lines could not be written") }
    return lines.failure == nil && lines.dropped == 0
  }

  private func line(_ name: StaticString, _ entry: RunResult.Verdict.Threshold) -> LogLine {
    let now = WallClock.system.nanoseconds()
    let seconds = state.withLock { state in state.began.map { Double(now - $0) / 1e9 } }
    return LogLine(name, time: now, seconds: seconds) { line in
      line.field("expression", entry.expression)
      line.field("passed", entry.passed)
      line.field("value", entry.value)
      line.field("reason", entry.reason)
    }
  }

  private func write(_ line: LogLine) { lines.add(line.bytes.rawBytes) }
}

/// The limits of a log, and the count of what they left out.
struct LogLimits {
  private let rate: Int
  /// Bytes that are left.
  private var room: Int
  private var second = 0
  private var written = 0
  private var leftOut: [String: Int] = [:]

  /// - Parameters:
  ///   - rate: lines a second.
  ///   - size: bytes in all.
  init(rate: Int, size: Int) { (self.rate, room) = (rate, size) }

  /// The time of the next event; returns what was left out in a second that is over, if there is room for a line about it.
  mutating func pass(_ seconds: Double) -> [String: Int]? {
    // Events come nearly in order; one that is late counts in the second that goes on.
    let next = Int(max(0, min(seconds, 1e12)))
    guard next > second else { return nil }
    (second, written) = (next, 0)
    return leftOut.isEmpty || room <= 0 ? nil : takeLeftOut()
  }

  /// Whether a line of this length may be written; it is counted if not.
  mutating func takes(_ length: Int, _ name: String) -> Bool {
    guard written < rate, length <= room else {
      // Shorter lines that would have room are left out as well: the log has a beginning, and nothing from later.
      if length > room { room = 0 }
      leftOut[name, default: 0] += 1
      return false
    }
    written += 1
    room -= length
    return true
  }

  mutating func leaveOut(_ counts: [String: Int]) { leftOut.merge(counts, uniquingKeysWith: +) }

  mutating func takeLeftOut() -> [String: Int] {
    defer { leftOut = [:] }
    return leftOut
  }
}

extension LoadEvent {
  /// Whether the limits of a log hold for it: of phases and stages there are as many as the plan has.
  fileprivate var isLimited: Bool {
    switch kind {
    case .phase, .stage: false
    default: true
    }
  }
}

/// A line of the log, with its end.
struct LogLine {
  let bytes: [UInt8]

  /// - Parameter seconds: since the start of the run; `nil` before it.
  init(_ name: StaticString, time: Int64, seconds: Double?, _ fields: (inout ByteWriter) -> Void) {
    var output = ByteWriter(capacity: 256)
    output.write("{\"time\":\"")
    output.write(rfc3339: time)
    output.write("\"")
    // Microseconds: finer times are meaningless.
    output.field("t_s", seconds.map { ($0 * 1e6).rounded() / 1e6 })
    output.write(",\"event\":\"")
    output.write(name)
    output.write("\"")
    fields(&output)
    output.write("}\n")
    bytes = Array(copying: output.bytes)
  }

  init(leftOut counts: [String: Int], _ event: LoadEvent) {
    self.init(leftOut: counts, time: event.time, seconds: event.seconds)
  }

  init(leftOut counts: [String: Int], time: Int64, seconds: Double?) {
    self.init("left_out", time: time, seconds: seconds) { line in
      line.write(",\"events\":{")
      for (place, (name, count)) in counts.sorted(by: { $0.key < $1.key }).enumerated() {
        if place > 0 { line.write(",") }
        line.write(jsonString: name, onlyRequired: true)
        line.write(":")
        line.write(decimal: count)
      }
      line.write("}")
    }
  }

  init(_ event: LoadEvent) {
    let (time, seconds) = (event.time, event.seconds)
    switch event.kind {
    case .phase(let phase):
      self.init("phase", time: time, seconds: seconds) { $0.field("phase", phase.rawValue) }
    case .stage(let number, let stage):
      self.init("stage", time: time, seconds: seconds) {
        $0.field("stage", number)
        $0.field("from_per_s", stage.from)
        $0.field("to_per_s", stage.to)
        $0.field("length_s", stage.length)
      }
    case .connected(let connection, let attempt, let isResumed):
      self.init("connected", time: time, seconds: seconds) {
        $0.field("connection", connection)
        $0.field("attempt", attempt)
        $0.field("resumed", isResumed)
      }
    case .connectFailed(let connection, let attempt, let reason):
      self.init("connect_failed", time: time, seconds: seconds) {
        $0.field("connection", connection)
        $0.field("attempt", attempt)
        $0.field("reason", reason)
      }
    case .closed(let connection, let attempt, let cause):
      self.init("closed", time: time, seconds: seconds) {
        $0.field("connection", connection)
        $0.field("attempt", attempt)
        $0.field("cause", cause.rawValue)
      }
    case .errorResponse(let connection, let status, let notification):
      self.init("error_response", time: time, seconds: seconds) {
        $0.field("connection", connection)
        $0.field("status", Int(status))
        $0.field("notification", notification.flatMap { Int(exactly: $0) })
      }
    case .foreignAnswer(let connection, let reason):
      self.init("foreign_answer", time: time, seconds: seconds) {
        $0.field("connection", connection)
        $0.field("reason", reason)
      }
    case .stall(let milliseconds):
      self.init("stall", time: time, seconds: seconds) { $0.field("ms", (milliseconds * 1e3).rounded() / 1e3) }
    case .leftOut(let counts):
      self.init(leftOut: counts, event)
    }
  }
}

extension ByteWriter {
  private mutating func key(_ name: StaticString) {
    write(",\"")
    write(name)
    write("\":")
  }

  fileprivate mutating func field(_ name: StaticString, _ value: Int?) {
    guard let value else { return }
    key(name)
    write(decimal: value)
  }

  /// A number that is not finite is left out.
  fileprivate mutating func field(_ name: StaticString, _ value: Double?) {
    guard let value, value.isFinite else { return }
    key(name)
    write(text: "\(value)")
  }

  fileprivate mutating func field(_ name: StaticString, _ value: Bool) {
    key(name)
    if value { write("true") } else { write("false") }
  }

  fileprivate mutating func field(_ name: StaticString, _ value: String?) {
    guard let value else { return }
    key(name)
    write(jsonString: value, onlyRequired: true)
  }
}
