import SQLite
import Synchronization

/// The tokens of uninstalled apps, per topic, until the provider has read them.
///
/// It survives the end of the process at any moment, `kill -9` too: failures reported as durable are kept, and those
/// removed after a transfer are gone; only those in transfer at that moment may be sent again. (A power failure may
/// lose the last moments.)
///
/// Every failure gets a sequence, higher than all before it, when it is written. A token that fails again moves to the
/// end of its topic's list: so a transfer that was sent everything up to a sequence removes exactly that, and what failed
/// since stays.
///
/// All work is done on a private queue; calls do not wait for it, except `init`, and `close()` for the caller's task.
/// Thread-safe.
public final class FeedbackList: Sendable {
  /// An app that was found uninstalled from a device.
  public struct Failure: Sendable, Equatable {
    public var topic: String
    /// 0 to 65,535 bytes, as the notification had them.
    public var token: [UInt8]
    /// UNIX seconds UTC.
    public var time: UInt32

    public init(topic: String, token: [UInt8], time: UInt32) {
      self.topic = topic
      self.token = token
      self.time = time
    }

    /// Topic and token as bytes: Swift strings that are canonically equivalent would be equal.
    fileprivate struct Key: Hashable {
      let topic: String
      let token: [UInt8]

      static func == (a: Key, b: Key) -> Bool {
        a.token == b.token && a.topic.utf8.elementsEqual(b.topic.utf8)
      }

      func hash(into hasher: inout Hasher) { hasher.combine(token) }
    }

    fileprivate var key: Key { Key(topic: topic, token: token) }
  }

  /// Limits on memory and on the file, in bytes.
  public struct Limits: Sendable, Equatable {
    /// Bytes of failures that wait to be written, each counted with 96 bytes beside its token; then more are refused.
    public var maximumPendingBytes: Int
    /// Bytes of the file without its log; then failures are refused as on a full disk.
    public var maximumFileBytes: Int

    public init(maximumPendingBytes: Int = 64 << 20, maximumFileBytes: Int = 4 << 30) {
      self.maximumPendingBytes = maximumPendingBytes
      self.maximumFileBytes = maximumFileBytes
    }
  }

  /// Called on the list's queue, once: with `nil` when all failures of the call are durable, or with the reason why
  /// none of them is.
  public typealias Completion = @Sendable (FeedbackListError?) -> Void

  /// The file, as messages name it.
  let name: String
  private let limits: Limits
  private let database: SQLDatabase
  let state: Mutex<State>

  /// Opens a list, or creates one. Reads the whole index to count it, so do not call it on an event loop.
  ///
  /// The file has mode 0600, and so has the log `-wal` beside it; only one list at a time can have it open.
  ///
  /// - Parameter path: a file; `nil`: the list is kept in memory only.
  /// - Throws: `.cannotOpen`, `.notAFeedbackList`, `.unknownVersion`, `.inUse`, `.failed`.
  public convenience init(path: String?, limits: Limits = Limits()) throws(FeedbackListError) {
    // 32 MB of log. A checkpoint waits for the disk, and tokens fall on all pages of the index.
    try self.init(path: path, limits: limits, checkpointPages: 8_000)
  }

  /// - Parameter checkpointPages: pages in the log after which they are moved to the file; 0: never.
  init(path: String?, limits: Limits, checkpointPages: Int) throws(FeedbackListError) {
    self.limits = limits
    if let path {
      name = path
      database = try FeedbackFile.open(
        path, maximumBytes: limits.maximumFileBytes, checkpointPages: checkpointPages)
    } else {
      name = "feedback list"
      database = try FeedbackFile.inMemory(maximumBytes: limits.maximumFileBytes)
    }
    do {
      let (last, waiting) = try database.perform {
        (try FeedbackFile.lastSequence($0), try FeedbackFile.waiting($0))
      }
      state = Mutex(State(lastSequence: last, waiting: waiting))
    } catch {
      throw FeedbackListError(error, file: name)
    }
  }

  // MARK: adding

  /// Puts failures on the list. The failures of all waiting calls are written together, in the order of the calls.
  ///
  /// - Returns: the pending bytes, as `Limits.maximumPendingBytes` counts them: if they are many, the caller should
  ///   slow down.
  /// - Throws: `.tooMuchPending` or `.closed`: then nothing is put on the list, and the completion is never called.
  @discardableResult
  public func add(
    _ failures: [Failure], completion: @escaping Completion = { _ in }
  ) throws(FeedbackListError) -> Int {
    let batch = Batch(failures: failures, completion: completion)
    let (pending, isFirst) = try state.withLock { (state) throws(FeedbackListError) in
      if state.isClosed { throw closedError }
      guard state.pendingBytes + batch.bytes <= limits.maximumPendingBytes else {
        throw FeedbackListError(.tooMuchPending, name, "\(state.pendingBytes) bytes of failures wait to be written")
      }
      state.pending.append(batch)
      state.pendingBytes += batch.bytes
      let isFirst = !state.isWriterCalled
      state.isWriterCalled = true
      return (state.pendingBytes, isFirst)
    }
    if isFirst { callWriter() }
    return pending
  }

  /// Bytes of failures that wait to be written, as `Limits.maximumPendingBytes` counts them.
  package var pendingBytes: Int { state.withLock { $0.pendingBytes } }

  /// Failures on the lists of all topics, without pending ones.
  public var waiting: Int { state.withLock { $0.waiting.values.reduce(0, +) } }

  /// Failures on a topic's list, without pending ones.
  public func waiting(topic: String) -> Int { state.withLock { $0.waiting[Array(topic.utf8)] ?? 0 } }

  /// The most failures in one transaction, unless one call has more: concurrent reads and removals wait for it.
  private static let maximumFailuresInTransaction = 8_192

  private func callWriter() {
    database.enqueue {
      self.writePending()
      let goesOn = self.state.withLock { state in
        state.isWriterCalled = !state.pending.isEmpty
        return state.isWriterCalled
      }
      // By a new call, so that pending reads run first.
      if goesOn { self.callWriter() }
    }
  }

  /// Writes pending failures, up to the limit, in one transaction.
  private func writePending() {
    let (batches, first) = state.withLock { ($0.takePending(Self.maximumFailuresInTransaction), $0.lastSequence) }
    var last = first
    // If a token failed several times, only its last failure is written, which would replace the earlier ones.
    var places: [Failure.Key: Int64] = [:]
    for failure in batches.lazy.flatMap(\.failures) {
      last += 1
      places[failure.key] = last
    }
    var inserted: [[UInt8]: Int] = [:]
    var problem: FeedbackListError?
    do {
      inserted = try database.perform { [places] database in
        try database.transaction(.immediate) {
          var sequence = first
          var inserted: [[UInt8]: Int] = [:]
          for failure in batches.lazy.flatMap(\.failures) {
            sequence += 1
            guard places[failure.key] == sequence else { continue }
            if try FeedbackFile.put(failure, sequence: sequence, database) {
              inserted[Array(failure.topic.utf8), default: 0] += 1
            }
          }
          return inserted
        }
      }
    } catch {
      problem = FeedbackListError(error, file: name)
    }
    let bytes = batches.reduce(0) { $0 + $1.bytes }
    state.withLock { state in
      state.pendingBytes -= bytes
      state.lastSequence = last
      if problem == nil { state.waiting.merge(inserted, uniquingKeysWith: +) }
    }
    for batch in batches { batch.completion(problem) }
  }

  /// Waits until everything that was added before is durable, or has failed.
  public func flush() async {
    await withCheckedContinuation { continuation in
      do throws(FeedbackListError) { try add([]) { _ in continuation.resume() } } catch { continuation.resume() }
    }
  }

  // MARK: closing

  /// Writes pending failures and closes the file; afterwards all other calls throw `.closed`. Idempotent.
  public func close() async throws(FeedbackListError) {
    state.withLock { $0.isClosed = true }
    await withCheckedContinuation { continuation in
      database.enqueue {
        while self.state.withLock({ !$0.pending.isEmpty }) { self.writePending() }
        self.database.close()
        continuation.resume()
      }
    }
  }

  var closedError: FeedbackListError { FeedbackListError(.closed, name, "the feedback list is closed") }

  /// Runs a job on the list's queue, after earlier ones.
  func perform<Result: Sendable>(
    _ work: @escaping @Sendable (SQLConnection) throws -> Result
  ) async throws(FeedbackListError) -> Result {
    do {
      return try await withCheckedThrowingContinuation { continuation in
        database.enqueue { continuation.resume(with: Swift.Result { try self.database.perform(work) }) }
      }
    } catch {
      throw FeedbackListError(error, file: name)
    }
  }

  // MARK: state

  struct Batch: Sendable {
    let failures: [Failure]
    let completion: Completion
    let bytes: Int

    init(failures: [Failure], completion: @escaping Completion) {
      self.failures = failures
      self.completion = completion
      // Beside the token: the failure, the array's header, and a share of what SQLite needs for it.
      bytes = failures.reduce(96) { $0 + $1.token.count + 96 }
    }
  }

  struct State: Sendable {
    /// Given to a failure last; changed on the list's queue only.
    var lastSequence: Int64
    /// Failures on the lists, by the bytes of the topic.
    var waiting: [[UInt8]: Int]
    var pending: [Batch] = []
    var pendingBytes = 0
    /// A job that writes pending failures is on the queue.
    var isWriterCalled = false
    var isClosed = false

    init(lastSequence: Int64, waiting: [[UInt8]: Int]) {
      self.lastSequence = lastSequence
      self.waiting = waiting
    }

    mutating func takePending(_ limit: Int) -> [Batch] {
      var failures = 0
      let end = pending.firstIndex { batch in
        defer { failures += batch.failures.count }
        return failures > 0 && failures + batch.failures.count > limit
      }
      guard let end else {
        defer { pending = [] }
        return pending
      }
      defer { pending.removeFirst(end) }
      return Array(pending[..<end])
    }
  }
}
