import Bytes
import Dispatch
import Glibc
import PacketCapture
import Synchronization

/// Passes a capture from one pipe to another, and writes it to a ring of files.
///
/// The ring is moved to the relay's thread as a value; everything that both threads access is constant or protected by
/// a lock.
final class CaptureRelay: Sendable {
  private struct State {
    var secrets: [UInt8] = []
    var hasFailed = false
  }

  /// The bytes that are passed on.
  let output: Int32
  private let input: Int32
  private let next: Int32
  private let state = Mutex(State())
  private let finishing = DispatchSemaphore(value: 0)
  private let finished = DispatchSemaphore(value: 0)
  private let onFailure: @Sendable (any Error) -> Void

  /// Takes ownership of `input`.
  ///
  /// - Parameter onFailure: called once when the ring cannot be written, by the relay's thread.
  init(
    _ input: Int32, to ring: CaptureRing, _ ends: (read: Int32, write: Int32),
    onFailure: @escaping @Sendable (any Error) -> Void
  ) {
    self.input = input
    (output, next) = ends
    self.onFailure = onFailure
    DispatchQueue(label: "apnscope.relay", qos: .userInitiated).async { self.run(ring) }
  }

  /// Adds lines of a key log, to be written into the files.
  func add(secrets lines: String) { state.withLock { $0.secrets += Array(lines.utf8) } }

  /// Waits until all that came is in files; `false` after a failure, which has been reported.
  func finish() -> Bool {
    finishing.signal()
    finished.wait()
    return state.withLock { !$0.hasFailed }
  }

  // MARK: the relay's thread

  private func run(_ ring: CaptureRing) {
    var ring: CaptureRing? = ring
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    while true {
      // Safe: at most the array's length is written.
      let count = unsafe read(input, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0, pass(buffer.rawBytes.extracting(0..<count)) else { break }
      addSecrets(to: &ring)
      keep(in: &ring) { try $0.take(buffer.rawBytes.extracting(0..<count)) }
    }
    close(input)
    close(next)
    finishing.wait()
    addSecrets(to: &ring)
    keep(in: &ring) { try $0.end() }
    finished.signal()
  }

  /// `false` if the reading end is closed.
  private func pass(_ bytes: RawSpan) -> Bool {
    var offset = 0
    while offset < bytes.byteCount {
      let rest = bytes.extracting(offset..<bytes.byteCount)
      let count = unsafe rest.withUnsafeBytes { unsafe write(next, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      if count < 0 { return false }
      offset += count
    }
    return true
  }

  private func addSecrets(to ring: inout CaptureRing?) {
    let lines = state.withLock { state in
      defer { state.secrets = [] }
      return state.secrets
    }
    if !lines.isEmpty { keep(in: &ring) { try $0.add(secrets: lines) } }
  }

  /// Writes to the ring. After a failure nothing more is kept, but decoding continues.
  private func keep(in ring: inout CaptureRing?, _ body: (inout CaptureRing) throws -> Void) {
    guard var kept = ring.take() else { return }
    do {
      try body(&kept)
      ring = kept
    } catch {
      kept.close()
      onFailure(error)
      state.withLock { $0.hasFailed = true }
    }
  }
}
