import Bytes
import Dispatch
import PacketCapture
import Records
import Synchronization
import TLSDecryption

/// The thread that the connection in a slot belongs to; 0 is the dissector's. A single connection is another's, so that
/// two threads work on it.
enum LaneOwner {
  @inline(__always)
  static func of(_ slot: Int, _ count: Int) -> Int { (slot + 1) % count }
}

/// A batch of packets for a lane, and what the lane found in it.
///
/// The value is passed to the lane's thread (`LaneReader.submit`) and back (`LaneReader.take`).
struct LaneJob: Sendable {
  /// How far a lane read one event's bytes.
  struct Outcome: Sendable {
    /// The event's number in the batch.
    var event: Int
    /// The number of bytes that were read; the dissector reads the rest.
    var taken: Int
    var notifications: Int
    /// Where the event's findings end, in the lane's batch (`end`) and in `others`.
    var end: Int
    var others: Int
  }

  /// The connections of earlier turns are the lane's again.
  var turn = 0
  var events: EventBatch?
  var found = LaneBatch()
  var others: [(position: Int, record: LaneSink.Other)] = []
  var outcomes: [Outcome] = []
  var summary = SummaryRecord()
}

/// One thread's part of the reading: the bytes of its connections that need nothing but their client stream. All other
/// bytes are left to the dissector, with all that follows on the same connection until the next turn.
///
/// The lane's state is protected by a lock, which is taken once per batch and never contended: the lane's queue reads
/// one job at a time, and the dissector's thread takes the lock only between turns. A job is owned by one thread at a
/// time. Only `ClientStreams` is used by both threads at the same time.
final class LaneReader: Sendable {
  private let queue = DispatchQueue(label: "apnscope.lane", qos: .userInitiated)
  private let work: Mutex<LaneWork>
  /// Not captured by closures for the queue: these would keep a second reference to a job's memory, which is written
  /// to.
  private let submitted = Handover<LaneJob>()
  private let read = Handover<LaneJob>()

  init(_ work: sending LaneWork) { self.work = Mutex(work) }

  /// Passes the sink's knowledge to the lane.
  func take(_ knowledge: LaneKnowledge) { work.withLock { $0.sink.lane.take(knowledge) } }

  /// - Parameter other: the queue to use instead of the lane's own; it may change only while the lane has no job.
  func submit(_ job: consuming LaneJob, on other: DispatchQueue?) {
    submitted.put(job)
    (other ?? queue).async { [self] in
      var job = submitted.take()
      work.withLock { $0.read(&job) }
      read.put(job)
    }
  }

  /// Waits for the oldest submitted job that was not taken yet.
  func take() -> LaneJob { read.take() }
}

/// The state of a lane's thread: a value, because access to a class is checked at run time.
struct LaneWork {
  private let number: Int
  private let count: Int
  private let streams: ClientStreams
  private let workspace = TLSWorkspace()
  /// What `output` passes to.
  fileprivate let sink: LaneSink
  private var output: RecordEmitter
  private var outcomes: [LaneJob.Outcome] = []
  /// The turn in which a connection was left to the dissector, by slot.
  private var left: [Int] = []
  private var turn = 0

  /// - Parameters:
  ///   - number: the lane's number, as in `LaneOwner`.
  ///   - count: the number of threads.
  init(_ number: Int, of count: Int, _ lane: any RecordLane, _ streams: ClientStreams) {
    self.number = number
    self.count = count
    self.streams = streams
    sink = LaneSink(lane)
    output = RecordEmitter(sink: sink)
  }

  fileprivate mutating func read(_ job: inout LaneJob) {
    guard let batch = job.events.take() else { return }
    turn = job.turn
    swap(&outcomes, &job.outcomes)
    swap(&sink.others, &job.others)
    outcomes.removeAll(keepingCapacity: true)
    sink.others.removeAll(keepingCapacity: true)
    output.summary = SummaryRecord()
    batch.withBlock { sink.lane.begin(&job.found, $0) }
    var event = 0
    batch.forEachEvent { change, position in
      if LaneOwner.of(position.slot, count) == number { take(change, event, at: position) }
      event += 1
    }
    sink.lane.end(&job.found)
    swap(&outcomes, &job.outcomes)
    swap(&sink.others, &job.others)
    job.summary = output.summary
  }

  @inline(__always)
  private mutating func take(_ change: borrowing StreamEvent, _ event: Int, at position: StreamPosition) {
    let slot = position.slot
    while left.count <= slot { left.append(0) }
    guard left[slot] != turn else { return }
    switch change {
    case .bytes(let bytes):
      if let (taken, notifications) = streams[slot].readAhead(bytes, at: position, workspace, into: &output) {
        if taken < bytes.byteCount { left[slot] = turn }
        outcomes.append(
          LaneJob.Outcome(
            event: event, taken: taken, notifications: notifications, end: sink.lane.position,
            others: sink.others.count))
      } else {
        left[slot] = turn
      }
    case .gap, .end, .connection: left[slot] = turn
    }
  }
}
