import Dispatch
import Dissection
import Foundation
import GatewaySimulator
import Glibc
import Measurement
import Records
import Synchronization

/// Makes records of what a simulator's connections receive and send, on a thread of its own.
///
/// ```swift
/// let recorder = GatewayRecorder(into: RecorderOutput(sink: writer) { nil }, source: "127.0.0.1:2195")
/// let simulator = try await Simulator.start(options, feedbackList: list, log: nil, observer: recorder.observer)
/// // …
/// var ledger = await simulator.stop()
/// (ledger.records, failure) = recorder.finish()
/// ```
package final class GatewayRecorder: Sendable {
  /// The limits on what waits for the thread, and on what connections hold.
  package struct Options: Sendable {
    /// Bytes of memory for events that wait.
    package var maximumWaitingBytes = 64 << 20
    package var dissection = DissectionOptions()
    package init() {}
  }

  private struct State {
    var records: ObservedRecords
    let output: RecorderOutput
  }

  /// Why records are missing at the end.
  package enum Failure: Sendable {
    /// The output's own reason.
    case writing(String)
    /// The output took nothing for so long that the rest was given up.
    case stalled
  }

  private let queue: EventQueue
  /// The thread's, for as long as it runs.
  private let state: Mutex<State>
  /// Events that the thread has recorded, and notifications that it has flushed: for whoever waits for it.
  private let recorded = Atomic<Int>(0)
  private let flushed = Atomic<Int>(0)
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
  ///   - output: where records go; the recorder's thread uses it alone.
  ///   - source: the name of the gateway in records.
  package init(into output: sending RecorderOutput, source: String, options: Options = Options()) {
    queue = EventQueue(maximumBytes: options.maximumWaitingBytes)
    state = Mutex(
      State(
        records: ObservedRecords(into: output.sink, source: source, options: options.dissection), output: output))
    Thread.detachNewThread { [self] in
      // The gateway's loops come first, and providers on the same machine. On Linux this is the calling thread's.
      _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Self.niceness)
      state.withLock { run(&$0.records) }
      done.signal()
    }
  }

  private func run(_ records: inout ObservedRecords) {
    var items: [EventQueue.Item] = []
    var mayFollow = true
    while mayFollow {
      mayFollow = queue.take(&items, within: Self.pause)
      for item in items {
        records.receive(item)
        recorded.add(1, ordering: .relaxed)
      }
      queue.release(items)
      // Few events are passed on at once; with many there are few batches.
      records.flush()
      flushed.store(records.written, ordering: .relaxed)
    }
    records.finish()
  }

  /// Ends the thread, after it has recorded all events, or could record nothing for 5 seconds. To be called once, when
  /// the simulator has stopped; blocks.
  ///
  /// - Returns: the counts of notifications, and why records are missing.
  package func finish() -> (records: Ledger.Records, failure: Failure?) {
    queue.end()
    var counts = Ledger.Records()
    var before = -1
    while done.wait(timeout: .now() + Self.patience) == .timedOut {
      let now = recorded.load(ordering: .relaxed)
      if now == before {
        counts.notifications = flushed.load(ordering: .relaxed)
        counts.lost = max(0, queue.counts.received - counts.notifications)
        return (counts, .stalled)
      }
      before = now
    }
    return state.withLock { state in
      counts.notifications = state.records.written
      counts.lost = queue.counts.lost + state.records.summary.notifications - state.records.written
      return (counts, state.output.failure().map(Failure.writing))
    }
  }
}

/// Where a recorder's records go.
package struct RecorderOutput {
  package let sink: any RecordSink
  /// Why something could not be written; `nil`: all was. Called at the end.
  package let failure: () -> String?

  package init(sink: any RecordSink, failure: @escaping () -> String?) {
    (self.sink, self.failure) = (sink, failure)
  }
}
