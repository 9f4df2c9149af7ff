import Dispatch
import Glibc
import Synchronization

/// A file of lines, to whose end any number of threads add lines without waiting for the disk.
///
/// A thread of its own writes when 64 KiB wait, every 250 ms, and at the end. When it cannot keep up, lines are dropped
/// and counted, and a line reports how many.
package final class LineLog: Sendable {
  /// Why the file cannot be opened.
  package struct OpenError: Error {
    package let code: Int32
  }

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

  /// The line that reports how many lines were dropped, with its end.
  private let droppedLine: @Sendable (Int) -> [UInt8]

  /// Opens the file, or makes it with mode 0644. A named pipe is waited for until somebody reads it.
  ///
  /// - Parameters:
  ///   - limit: the most bytes of lines that wait to be written; lines that come then are dropped.
  ///   - droppedLine: the line, with its end, that reports how many lines were dropped.
  package static func open(
    path: String, limit: Int, droppedLine: @escaping @Sendable (Int) -> [UInt8]
  ) throws(OpenError) -> LineLog {
    let descriptor = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw OpenError(code: errno) }
    let log = LineLog(path: path, descriptor: descriptor, limit: limit, droppedLine: droppedLine)
    startThread { log.run() }
    return log
  }

  private init(path: String, descriptor: Int32, limit: Int, droppedLine: @escaping @Sendable (Int) -> [UInt8]) {
    (self.path, self.descriptor, self.limit, self.droppedLine) = (path, descriptor, limit, droppedLine)
    var status = stat()
    // Anything but a file may be a pipe. It is written only when it is ready, and no more than it accepts at once:
    // so the thread never blocks in `write`, and can give up at the end.
    let isFile = unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    piece = isFile ? .max : 4096
  }

  /// Lines that were not written, because there was no room for them or because writing failed.
  package var dropped: Int { state.withLock { $0.dropped } }
  /// The first error of writing, in words; nothing was written after it.
  package var failure: String? { state.withLock { $0.failure } }

  // MARK: producers

  /// Adds lines, each with its end.
  package func add(_ line: RawSpan) {
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

  /// Writes the lines that wait, and closes the file; later lines are dropped. Blocks until it is done, or until a pipe was
  /// not read for 5 seconds.
  package func end() {
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

  private func run() {
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
      lines += droppedLine(batch.dropped)
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
