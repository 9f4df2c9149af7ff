import Bytes
import Dispatch
import Glibc
import Measurement
import Synchronization

/// Writes events to a file, one JSON object per line, from any number of event loops at a time.
///
/// ```
/// {"time":"2015-09-16T01:02:03.123456789Z","event":"rejected","client":"127.0.0.1:50000","topic":"com.example.app",
///  "connection":7,"status":8,"identifier":42,"notification":41}                        (in one line)
/// ```
///
/// `write` does not wait for the disk: a separate thread writes when 64 KiB are buffered, every 250 ms, and at the end.
/// When it cannot keep up, lines are dropped and counted, and a line reports how many:
/// `{"time":…,"event":"dropped","count":…}`.
public final class EventLog: Sendable {
  /// Something that happened. A field that is `nil` is left out of the line.
  package struct Event: Sendable {
    /// Nanoseconds since 1970-01-01 UTC.
    package var time: Int64
    package var name: String
    /// Version of the contract (Documentation/records.md).
    package var schema: Int?
    /// Address and port.
    package var client: String?
    package var topic: String?
    /// The connection's number in this run.
    package var connection: Int?
    package var status: Int?
    package var identifier: UInt32?
    /// The notification's number on its connection, from 0.
    package var notification: Int?
    package var accepted: Int?
    package var discarded: Int?
    /// Feedback tuples that were sent.
    package var tuples: Int?
    package var reason: String?
    /// The error of TLS or the system that ended a connection.
    package var error: String?
    /// The TLS version.
    package var tls: String?
    package var suite: String?
    package var resumed: Bool?

    package init(_ name: String, time: Int64) {
      self.name = name
      self.time = time
    }

    /// The first event of a run.
    package static func started(at time: Int64) -> Event {
      var event = Event("started", time: time)
      event.schema = 1
      return event
    }
  }

  /// Why the file cannot be opened.
  public struct OpenError: Error, CustomStringConvertible {
    public let path: String
    public let code: Int32
    public var description: String { "\(path): \(SystemError.text(code))" }
  }

  private let output: Output

  /// Opens the file, or makes it with mode 0644; lines go to its end. A named pipe is waited for until somebody reads
  /// it. Not more than `maximumWaitingBytes` of lines wait to be written; lines that come then are dropped.
  public init(path: String, maximumWaitingBytes: Int = 16 << 20) throws(OpenError) {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw OpenError(path: path, code: errno) }
    let output = Output(path: path, descriptor: descriptor, limit: maximumWaitingBytes)
    self.output = output
    startThread { output.run() }
  }

  deinit { close() }

  package func write(_ event: Event) {
    var line = ByteWriter(capacity: 512)
    line.write(event)
    output.add(line.bytes)
  }

  /// Writes buffered lines and closes the file; later lines are dropped. Blocks until it is done, or until a pipe was
  /// not read for 5 seconds.
  public func close() { output.end() }

  /// Lines that were not written, because there was no room for them or because writing failed.
  public var droppedLines: Int { output.dropped }

  /// The first error of writing, in words; nothing was written after it.
  public var failure: String? { output.failure }
}

// MARK: - the file

/// The lines that wait, and the thread that writes them.
private final class Output: Sendable {
  private struct State {
    var waiting: [UInt8] = []
    /// Taken by the thread and not written yet.
    var unwritten = 0
    /// Dropped lines not yet reported in the file, and all dropped lines.
    var untold = 0
    var dropped = 0
    /// The thread was woken and has not come by.
    var isWoken = false
    var isFull = false
    var hasEnded = false
    var failure: String?
  }

  private static let block = 1 << 16
  private static let pause = DispatchTimeInterval.milliseconds(250)
  private static let patience = 5_000

  private let path: String
  private let descriptor: Int32
  private let limit: Int
  /// Bytes that are written at once.
  private let piece: Int
  private let state = Mutex(State())
  /// Something waits. It is signalled once until the thread comes by.
  private let work = DispatchSemaphore(value: 0)
  /// A full block waits, or the log is closing: write now.
  private let hurry = DispatchSemaphore(value: 0)
  private let done = DispatchSemaphore(value: 0)

  init(path: String, descriptor: Int32, limit: Int) {
    self.path = path
    self.descriptor = descriptor
    self.limit = limit
    var status = stat()
    // Anything but a file may be a pipe. It is written only when it is ready, and no more than it accepts at once:
    // so the thread never blocks in `write`, and can give up at the end.
    let isFile = unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    piece = isFile ? .max : 4096
  }

  var dropped: Int { state.withLock { $0.dropped } }
  var failure: String? { state.withLock { $0.failure } }

  // MARK: producers

  func add(_ line: RawSpan) {
    let length = line.byteCount
    // One lock, held while the line is copied.
    let (wakes, hurries) = state.withLock { state in
      if state.waiting.count + state.unwritten + length > limit || state.failure != nil || state.hasEnded {
        state.dropped += 1
        state.untold += 1
      } else {
        state.waiting.append(copying: line)
      }
      if state.hasEnded || state.failure != nil { return (false, false) }
      let wakes = !state.isWoken
      let hurries = !state.isFull && state.waiting.count >= Self.block
      state.isWoken = true
      state.isFull = state.isFull || hurries
      return (wakes, hurries)
    }
    if wakes { work.signal() }
    if hurries { hurry.signal() }
  }

  func end() {
    let isFirst = state.withLock { state in
      defer { state.hasEnded = true }
      return !state.hasEnded
    }
    if isFirst {
      work.signal()
      hurry.signal()
    }
    done.wait()
    done.signal()
  }

  // MARK: the thread

  func run() {
    // A pipe without a reader is an ordinary error, not the end of the program.
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    unsafe sigaddset(&signals, SIGPIPE)
    unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)

    var isLast = false
    while !isLast {
      work.wait()
      _ = hurry.wait(timeout: .now() + Self.pause)
      let batch = take()
      writeOut(batch)
      isLast = batch.isLast
    }
    Glibc.close(descriptor)
    done.signal()
  }

  private struct Batch {
    var lines: [UInt8]
    /// Lines that were dropped meanwhile.
    var dropped: Int
    var isLast: Bool
  }

  private func take() -> Batch {
    state.withLock { state in
      let batch = Batch(lines: state.waiting, dropped: state.untold, isLast: state.hasEnded)
      state.waiting = []
      state.unwritten = batch.lines.count
      state.untold = 0
      state.isWoken = false
      state.isFull = false
      return batch
    }
  }

  private func writeOut(_ batch: Batch) {
    var lines = batch.lines
    if batch.dropped > 0 {
      var line = ByteWriter(capacity: 128)
      line.writeDropped(batch.dropped)
      lines.append(copying: line.bytes)
    }
    var offset = 0
    while offset < lines.count && state.withLock({ $0.failure == nil }) {
      let count = write(lines, from: offset)
      offset += count
      state.withLock { $0.unwritten = max(0, $0.unwritten - count) }
    }
    // The line about dropped lines is not counted itself.
    let lost = lines[offset...].count { $0 == UInt8(ascii: "\n") } - (offset < lines.count && batch.dropped > 0 ? 1 : 0)
    state.withLock { state in
      state.unwritten = 0
      state.dropped += lost
    }
  }

  /// Writes a piece, and returns how much of it was taken.
  private func write(_ lines: [UInt8], from offset: Int) -> Int {
    guard isWritable() else { return 0 }
    let length = min(lines.count - offset, piece)
    let count = unsafe lines.withUnsafeBytes { bytes in
      // Safe: the piece lies in the array.
      unsafe bytes.baseAddress.map { base in unsafe Glibc.write(descriptor, base + offset, length) } ?? 0
    }
    if count >= 0 { return count }
    if errno != EINTR && errno != EAGAIN { fail(SystemError.text(errno)) }
    return 0
  }

  /// Waits until the file can be written to. `false`, and a failure, when the log is to end and it cannot for too long.
  private func isWritable() -> Bool {
    var waited = 0
    var place = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    while unsafe poll(&place, 1, 100) <= 0 {
      guard state.withLock({ $0.hasEnded }) else { continue }
      waited += 100
      if waited >= Self.patience {
        fail("the pipe has no reader")
        return false
      }
    }
    return true
  }

  private func fail(_ reason: String) {
    // The first is the last: nothing is written afterwards.
    state.withLock { $0.failure = "\(path): \(reason)" }
  }
}

// MARK: - a line

extension ByteWriter {
  fileprivate mutating func write(_ event: EventLog.Event) {
    write("{\"time\":\"")
    write(rfc3339: event.time)
    write("\",\"event\":")
    write(jsonString: event.name, onlyRequired: true)
    field("schema", event.schema)
    field("client", event.client)
    field("topic", event.topic)
    field("connection", event.connection)
    field("status", event.status)
    field("identifier", event.identifier.map { Int($0) })
    field("notification", event.notification)
    field("accepted", event.accepted)
    field("discarded", event.discarded)
    field("tuples", event.tuples)
    field("reason", event.reason)
    field("error", event.error)
    field("tls", event.tls)
    field("suite", event.suite)
    if let resumed = event.resumed {
      key("resumed")
      if resumed { write("true") } else { write("false") }
    }
    write("}\n")
  }

  fileprivate mutating func writeDropped(_ count: Int) {
    write("{\"time\":\"")
    write(rfc3339: WallClock.system.nanoseconds())
    write("\",\"event\":\"dropped\"")
    field("count", count)
    write("}\n")
  }

  private mutating func key(_ name: StaticString) {
    write(",\"")
    write(name)
    write("\":")
  }

  private mutating func field(_ name: StaticString, _ value: Int?) {
    guard let value else { return }
    key(name)
    write(decimal: value)
  }

  private mutating func field(_ name: StaticString, _ value: String?) {
    guard let value else { return }
    key(name)
    // Topics come from strangers' certificates: any text.
    write(jsonString: value, onlyRequired: true)
  }
}
