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
/// let recorder = GatewayRecorder(into: RecorderOutput(sink: writer), source: "127.0.0.1:2195")
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

  private let queue: EventQueue
  /// The thread's, for as long as it runs.
  private let state: Mutex<State>
  private let done = DispatchSemaphore(value: 0)
  /// The thread's priority, as of nice(1).
  private static let niceness: Int32 = 10
  /// How long the thread waits for an event before it looks for the end.
  private static let pause = DispatchTimeInterval.seconds(1)

  /// To be passed to the simulator.
  package var observer: some ConnectionObserver { queue }

  /// Begins to wait for events.
  ///
  /// - Parameters:
  ///   - output: where records go; the recorder's thread uses it alone.
  ///   - source: the name of the gateway in records.
  package init(into output: sending RecorderOutput, source: String, options: Options = Options()) {
    let queue = EventQueue(maximumBytes: options.maximumWaitingBytes)
    self.queue = queue
    state = Mutex(
      State(
        records: ObservedRecords(into: output.sink, source: source, options: options.dissection), output: output))
    Thread.detachNewThread { [self] in
      // The gateway's loops come first, and providers on the same machine. On Linux this is the calling thread's.
      _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Self.niceness)
      state.withLock { Self.run(&$0.records, queue) }
      done.signal()
    }
  }

  private static func run(_ records: inout ObservedRecords, _ queue: EventQueue) {
    var items: [EventQueue.Item] = []
    var mayFollow = true
    while mayFollow {
      mayFollow = queue.take(&items, within: pause)
      for item in items { records.receive(item) }
      queue.release(items)
      // Few events are passed on at once; with many there are few batches.
      records.pause()
    }
    records.finish()
  }

  /// Ends the thread, after it has recorded all events. To be called when the simulator has stopped; blocks.
  ///
  /// - Returns: what has been recorded, and why records could not be written.
  package func finish() -> (records: Ledger.Records, failure: String?) {
    queue.end()
    done.wait()
    done.signal()
    return state.withLock { state in
      var records = Ledger.Records()
      records.notifications = state.records.written
      records.lost = queue.lost + state.records.summary.notifications - state.records.written
      return (records, state.output.failure())
    }
  }
}

/// Where a recorder's records go.
package struct RecorderOutput {
  package let sink: any RecordSink
  /// Why something could not be written; `nil`: all was. Called at the end.
  package let failure: () -> String?

  package init(sink: any RecordSink, failure: @escaping () -> String? = { nil }) {
    (self.sink, self.failure) = (sink, failure)
  }
}
