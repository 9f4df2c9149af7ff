import Analysis
import Bytes
import Dispatch
import Dissection
import GatewaySimulator
import Glibc
import Measurement
import PacketCapture
import Records
import Synchronization

/// Makes records of what a simulator's connections receive and send, on a thread of its own.
///
/// ```swift
/// let recorder = GatewayRecorder(into: RecorderOutput(writer: writer) { nil }, source: "127.0.0.1:2195")
/// let simulator = try await Simulator.start(options, feedbackList: list, log: nil, observer: recorder.observer)
/// // …
/// let end = WallClock.system.nanoseconds()
/// var ledger = await simulator.stop()
/// let outcome = recorder.finish(observedUntil: end)
/// ```
package final class GatewayRecorder: Sendable {
  /// The limits on what waits for the thread, and on what connections hold.
  package struct Options: Sendable {
    /// Bytes of memory for events that wait.
    package var maximumWaitingBytes = 64 << 20
    package var dissection = DissectionOptions()
    /// Bytes of memory for what is kept of the run; `nil`: nothing is.
    package var historyBytes: Int?
    /// The topic of connections without TLS, in the history.
    package var plainTopic: String?
    package init() {}
  }

  private struct State {
    /// `nil`: only the history is kept.
    var records: ObservedRecords?
    let output: RecorderOutput?
  }

  /// Why records are missing at the end.
  package enum Failure: Sendable {
    /// The output's own reason.
    case writing(String)
    /// The output took nothing for so long that the rest was given up.
    case stalled
    /// A temporary file of the verdict.
    case temporaryFile(UnnamedFile.Failure)
  }

  /// The results of a recorder.
  package struct Outcome: Sendable {
    /// The notifications in records; `nil`: none were to be written.
    package var records: Ledger.Records?
    /// `nil`: none was asked for, or it failed.
    package var verdict: ProviderVerdict?
    package var failures: [Failure] = []
  }

  let queue: EventQueue
  /// What was received and answered; `nil`: it is not kept.
  let history: EventHistory?
  /// The thread's, for as long as it runs.
  private let state: Mutex<State>
  /// Events that the thread has recorded, and notifications that it has flushed: for whoever waits for it.
  private let recorded = Atomic<Int>(0)
  private let flushed = Atomic<Int>(0)
  /// Written before the queue ends, and read after.
  private let observedUntil = Atomic<Int64>(0)
  private let done = DispatchSemaphore(value: 0)
  /// The thread's priority, as of nice(1).
  private static let niceness: Int32 = 10
  /// How long the thread waits for an event before it looks for the end.
  private static let pause = DispatchTimeInterval.seconds(1)
  /// How long the thread may record nothing, after the end, before the rest is given up.
  private static let patience = DispatchTimeInterval.seconds(5)

  /// To be passed to the simulator.
  package var observer: ConnectionObserver { { [queue] in queue.receive($0) } }

  /// Begins to wait for events.
  ///
  /// - Parameters:
  ///   - output: where records go; the recorder's thread uses it alone. `nil`: nowhere, only the history is kept.
  ///   - source: the name of the gateway in records.
  package init(into output: sending RecorderOutput?, source: String, options: Options = Options()) {
    queue = EventQueue(maximumBytes: options.maximumWaitingBytes)
    history = options.historyBytes.map {
      EventHistory(
        maximumBytes: $0, source: source, plainTopic: options.plainTopic, dissection: options.dissection)
    }
    state = Mutex(
      State(
        records: output.map { ObservedRecords(into: $0, source: source, options: options.dissection) },
        output: output))
    startThread { [self] in
      // The gateway's loops come first, and providers on the same machine. On Linux this is the calling thread's.
      _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Self.niceness)
      state.withLock { run(&$0.records) }
      done.signal()
    }
  }

  /// The name of a simulator in records: where it listens.
  package static func source(_ options: SimulatorOptions) -> String {
    let places = [options.gateway.map { "gateway \($0)" }, options.http2.map { "http2 \($0.address)" }].compactMap {
      $0
    }
    return places.isEmpty ? "gateway" : places.joined(separator: ", ")
  }

  private func run(_ records: inout ObservedRecords?) {
    var items: [EventQueue.Item] = []
    var mayFollow = true
    while mayFollow {
      mayFollow = queue.take(&items, within: Self.pause)
      for item in items {
        records?.receive(item)
        recorded.add(1, ordering: .relaxed)
      }
      history?.append(items)
      queue.release(items)
      // Few events are passed on at once; with many there are few batches.
      records?.flush()
      flushed.store(records?.written ?? 0, ordering: .relaxed)
      for case .request(let done) in items { done() }
    }
    records?.finish(
      observedUntil: Timestamp(nanoseconds: observedUntil.load(ordering: .acquiring)), lost: queue.counts.unseenLost)
  }

  /// Returns when all events of before are in the records and the history, as far as they are not left out.
  ///
  /// - Returns: `false` when it took longer than this time, or the recorder has finished.
  package func catchUp(within time: Duration) async -> Bool {
    // The thread may be behind by any time, and the caller goes on.
    let (ticks, source) = AsyncStream.makeStream(of: Bool.self)
    guard queue.request({ source.yield(true) }) else { return false }
    let limit = Task {
      try await Task.sleep(for: time)
      source.yield(false)
    }
    defer { limit.cancel() }
    for await isDone in ticks { return isDone }
    return false
  }

  /// Ends the thread, after it has recorded all events, or could record nothing for 5 seconds. To be called once, when
  /// the simulator has stopped; blocks.
  ///
  /// - Parameter end: when the simulator began to stop, in nanoseconds since 1970: until then nothing was missed.
  package func finish(observedUntil end: Int64) -> Outcome {
    observedUntil.store(end, ordering: .releasing)
    queue.end()
    var outcome = Outcome()
    var counts = Ledger.Records()
    var before = -1
    while done.wait(timeout: .now() + Self.patience) == .timedOut {
      let now = recorded.load(ordering: .relaxed)
      if now == before {
        counts.notifications = flushed.load(ordering: .relaxed)
        counts.lost = max(0, queue.counts.received - counts.notifications)
        outcome.records = counts
        outcome.failures = [.stalled]
        return outcome
      }
      before = now
    }
    return state.withLock { state in
      if let output = state.output, output.writes, let records = state.records {
        counts.notifications = records.written
        counts.lost = queue.counts.lost + records.summary.notifications - records.written
        if queue.lostOutcomes > 0 { counts.outcomesLost = queue.lostOutcomes }
        outcome.records = counts
        if let failure = output.failure() { outcome.failures.append(.writing(failure)) }
      }
      do throws(UnnamedFile.Failure) {
        outcome.verdict = try state.output?.verdict()
        outcome.verdict?.notObserved = queue.counts.lost
      } catch {
        outcome.failures.append(.temporaryFile(error))
      }
      return outcome
    }
  }
}

/// Where a recorder's records go: to a writer, to an inspection of the providers, or to both.
package struct RecorderOutput {
  let sink: any RecordSink
  /// Whether records are to be written.
  let writes: Bool
  /// Whether all records so far were written.
  let isWriting: () -> Bool
  /// Why something could not be written; `nil`: all was. Called at the end.
  let failure: () -> String?
  /// Called at the end.
  let verdict: () throws(UnnamedFile.Failure) -> ProviderVerdict?

  /// Writes records, and judges the providers if there are options for that.
  ///
  /// - Parameter failure: why something could not be written; called at the end.
  package init(
    writer: JSONLinesWriter, judging options: ProviderInspection.Options? = nil, failure: @escaping () -> String?
  ) {
    (writes, isWriting, self.failure) = (true, { writer.isOpen }, failure)
    guard let options else {
      (sink, verdict) = (writer, { () throws(UnnamedFile.Failure) in nil })
      return
    }
    let inspection = ProviderInspection(options)
    sink = RecordFork(writer, inspection.trace)
    verdict = { () throws(UnnamedFile.Failure) in try inspection.finish() }
  }

  /// Only judges the providers.
  package init(judging options: ProviderInspection.Options) {
    let inspection = ProviderInspection(options)
    (sink, writes, isWriting, failure) = (inspection.trace, false, { false }, { nil })
    verdict = { () throws(UnnamedFile.Failure) in try inspection.finish() }
  }
}
