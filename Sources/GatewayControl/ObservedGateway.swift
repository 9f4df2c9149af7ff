import Analysis
import Bytes
import GatewayRecords
import GatewaySimulator
import Measurement
import NIOPosix
import PushModel
import Records
import Synchronization

/// A simulated gateway that keeps what it has received, for the tests of providers.
///
/// ```swift
/// let gateway = try await ObservedGateway.start(options)
/// try await gateway.simulator.reject(.init(.prefix([0xbb]), status: .invalidToken, times: 1))
/// // … the provider pushes …
/// let received = try await gateway.waitForNotifications(3, within: .seconds(5))
/// let verdict = try await gateway.verdict()
/// ```
public final class ObservedGateway: Sendable {
  /// Limits on what is kept, and what is taken for granted.
  public struct Options: Sendable {
    /// Bytes of memory for what was received and answered, some 350 for a short notification that is read alone. Above,
    /// the oldest is forgotten: it is in no list, and the verdict says how much it lacks. What was read last is kept.
    public var maximumBytes = 64 << 20
    /// The time within which providers send again what was discarded.
    public var resendWithin = Duration.nanoseconds(StoryCollector.Options().resendWithin)
    /// Bytes of memory for a verdict; what exceeds it goes to unnamed files in `temporaryFolder`.
    public var verdictBytes = 256 << 20
    public var temporaryFolder = "/tmp"
    public init() {}
  }

  /// Why a question has no answer.
  public enum Failure: Error, Sendable, CustomStringConvertible {
    /// The number of notifications did not come in time; what came matches.
    case notReceived(wanted: Int, received: ReceivedNotifications)
    /// The gateway receives faster than notifications can be listed, or has ended.
    case behind
    /// A temporary file of a verdict cannot be used.
    case temporaryFile(String)

    public var description: String {
      switch self {
      case .notReceived(let wanted, let received):
        "\(received.matching) of \(wanted) notifications came in time"
      case .behind: "the gateway receives faster than its notifications can be listed, or has ended"
      case .temporaryFile(let reason): reason
      }
    }
  }

  /// The gateway: its faults and devices can be changed.
  public let simulator: Simulator
  let recorder: GatewayRecorder
  private let judging: ProviderInspection.Options
  private let verdicts = Mutex(Verdicts())

  /// The verdict that is being computed, and the one after it, which all who ask meanwhile share: each may need much
  /// memory, so there is one at a time.
  private struct Verdicts {
    var running: Task<Result<ProviderVerdict, Failure>, Never>?
    var next: Task<Result<ProviderVerdict, Failure>, Never>?
  }

  /// The latest verdict of `recentVerdict`, when it was asked for, and how long that took.
  private let recent = Mutex<(verdict: ProviderVerdict, asked: ContinuousClock.Instant, cost: Duration)?>(nil)

  /// The time that a question waits for the gateway's own thread.
  private static let patience = Duration.seconds(10)
  /// The time between two looks for notifications.
  private static let pause = Duration.milliseconds(5)

  /// Starts a gateway.
  ///
  /// - Parameters:
  ///   - options: its behavior and limits.
  ///   - feedbackList: the lists of its feedback service; `nil`: new ones in memory.
  ///   - keeping: limits on what is kept.
  /// - Throws: a `SimulatorError` when a port cannot be had, or a `FeedbackListError`.
  public static func start(
    _ options: SimulatorOptions, feedbackList: FeedbackList? = nil, log: EventLog? = nil, keeping: Options = Options()
  ) async throws -> ObservedGateway {
    var judging = ProviderInspection.Options()
    judging.stories.memory = keeping.verdictBytes
    judging.stories.folder = keeping.temporaryFolder
    judging.stories.resendWithin = keeping.resendWithin.nanoseconds
    var recording = GatewayRecorder.Options()
    recording.historyBytes = keeping.maximumBytes
    recording.plainTopic = options.plainTopic
    recording.dissection.limits = options.rules.limits
    let recorder = GatewayRecorder(into: nil, source: GatewayRecorder.source(options), options: recording)
    let list = try feedbackList ?? FeedbackList(path: nil)
    do {
      let simulator = try await Simulator.start(options, feedbackList: list, log: log, observer: recorder.observer)
      return ObservedGateway(simulator, recorder, judging: judging)
    } catch {
      _ = recorder.finish(observedUntil: 0)
      throw error
    }
  }

  /// - Parameter recorder: keeps a history.
  package init(_ simulator: Simulator, _ recorder: GatewayRecorder, judging: ProviderInspection.Options) {
    (self.simulator, self.recorder, self.judging) = (simulator, recorder, judging)
  }

  // MARK: what was received

  /// The notifications received so far that match.
  ///
  /// - Parameters:
  ///   - query: which are meant; all by default.
  ///   - limit: the most that are returned.
  ///   - maximumBytes: bytes of memory for them; the first one is returned in any case.
  /// - Throws: `Failure.behind`.
  public func notifications(
    _ query: NotificationQuery = NotificationQuery(), limit: Int = 1_000, maximumBytes: Int = .max
  ) async throws(Failure) -> ReceivedNotifications {
    guard await recorder.catchUp(within: Self.patience) else { throw .behind }
    var search = NotificationSearch(query, limit: limit, maximumBytes: maximumBytes, endsWhenFull: true)
    await search.goOn(in: recorder)
    return search.found
  }

  /// Waits until this many notifications have come that match, and returns them.
  ///
  /// - Parameters:
  ///   - count: how many, those of before included.
  ///   - query: which are meant; all by default.
  ///   - time: the longest time to wait.
  ///   - maximumBytes: bytes of memory for what is returned: those that exceed it are counted, and not returned.
  /// - Throws: `Failure.notReceived` with those that have come when the time is over; `Failure.behind`.
  public func waitForNotifications(
    _ count: Int, _ query: NotificationQuery = NotificationQuery(), within time: Duration, maximumBytes: Int = .max
  ) async throws -> ReceivedNotifications {
    let deadline = ContinuousClock.now + time
    guard await recorder.catchUp(within: Self.patience) else { throw Failure.behind }
    var search = NotificationSearch(query, limit: count, maximumBytes: maximumBytes, endsWhenFull: false)
    await search.goOn(in: recorder)
    while search.found.matching < count {
      guard ContinuousClock.now < deadline else { throw Failure.notReceived(wanted: count, received: search.found) }
      try await Task.sleep(for: Self.pause)
      await search.goOn(in: recorder)
    }
    return search.found
  }

  // MARK: books

  /// The gateway's counts since the latest reset or, without one, since the start; without the list of connections.
  public func counts() async -> Ledger { await simulator.counts() }

  /// The verdict on the providers since the latest reset, from what is kept.
  ///
  /// Cost: that of reading all that is kept again, once for all who ask meanwhile.
  ///
  /// - Throws: `Failure.behind` or `Failure.temporaryFile`.
  public func verdict() async throws(Failure) -> ProviderVerdict {
    let task = verdicts.withLock { verdicts in
      if let next = verdicts.next { return next }
      let task = Task { [earlier = verdicts.running] in
        _ = await earlier?.value
        // A later question may know of more than this verdict sees.
        self.verdicts.withLock { ($0.running, $0.next) = ($0.next, nil) }
        return await Self.verdict(recorder, judging)
      }
      verdicts.next = task
      return task
    }
    return try await task.value.get()
  }

  private static func verdict(
    _ recorder: GatewayRecorder, _ judging: ProviderInspection.Options
  ) async -> Result<ProviderVerdict, Failure> {
    // Until then everything that happened is there.
    let now = WallClock.system.nanoseconds()
    guard await recorder.catchUp(within: patience) else { return .failure(.behind) }
    do {
      let verdict = try await NIOThreadPool.singleton.runIfActive { try recorder.verdictSoFar(judging, at: now) }
      return verdict.map { .success($0) } ?? .failure(.behind)
    } catch {
      return .failure(.temporaryFile("\(error)"))
    }
  }

  /// A verdict that may be some seconds old, for questions that come again and again: making them takes at most a tenth of
  /// the time.
  ///
  /// - Returns: `nil` when there is none.
  public func recentVerdict() async -> ProviderVerdict? {
    let asked = ContinuousClock.now
    if let recent = recent.withLock({ $0 }), asked - recent.asked < max(.seconds(2), recent.cost * 10) {
      return recent.verdict
    }
    guard let verdict = try? await verdict() else { return nil }
    recent.withLock { $0 = (verdict, asked, ContinuousClock.now - asked) }
    return verdict
  }

  // MARK: reset and end

  /// Begins anew between two tests: no notification is listed, `counts()` and `verdict()` begin at 0, and faults and
  /// devices are those of the start. Open connections stay open.
  ///
  /// - Throws: when the feedback list cannot be written; all else is done.
  public func reset() async throws {
    defer {
      recorder.resetHistory()
      recent.withLock { $0 = nil }
    }
    try await simulator.reset()
    guard await recorder.catchUp(within: Self.patience) else { throw Failure.behind }
  }

  /// Ends the gateway, as `Simulator.stop()` does, and returns its ledger. To be called once.
  public func stop() async -> Ledger {
    let end = WallClock.system.nanoseconds()
    let ledger = await simulator.stop()
    _ = recorder.finish(observedUntil: end)
    return ledger
  }
}
