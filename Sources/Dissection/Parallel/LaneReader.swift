import Bytes
import Dispatch
import PacketCapture
import TLSDecryption

/// The thread that the connection in a slot belongs to; 0 is the dissector's. A single connection is another's, so that
/// two threads work on it.
enum LaneOwner {
  @inline(__always)
  static func of(_ slot: Int, _ count: Int) -> Int { (slot + 1) % count }
}

/// A batch of packets on its way through a lane, and what the lane found.
///
/// `@unchecked Sendable` is valid because it has one owner: the lane's thread from `submit` until `done` is signalled,
/// otherwise the dissector's.
final class LaneJob<Lane: RecordLane>: @unchecked Sendable {
  /// What was read of an event's bytes.
  struct Outcome {
    /// The event's number in the batch.
    var event: Int
    /// Bytes that were read; the dissector reads the others.
    var taken: Int
    var notifications: Int
    /// Ends in the lane's batch and among the others.
    var end: Int
    var others: Int
  }

  /// The connections of earlier turns are the lane's again.
  var turn = 0
  var events: EventBatch?
  var found: Lane.Batch
  var others: [(position: Int, record: LaneSink<Lane>.Other)] = []
  var outcomes: [Outcome] = []
  var summary = SummaryRecord()
  let done = DispatchSemaphore(value: 0)

  init(_ found: Lane.Batch) { self.found = found }
}

/// One thread's part of the reading: the bytes of its connections for which nothing is needed but their client stream.
/// Everything else is left to the dissector, with all that follows on the same connection until the next turn.
///
/// `@unchecked Sendable` is valid because its state belongs to its queue while jobs are there, and otherwise to the
/// dissector's thread; of the streams each thread touches its own.
final class LaneReader<Lane: RecordLane>: @unchecked Sendable {
  private let queue = DispatchQueue(label: "apnscope.lane", qos: .userInitiated)
  private var work: LaneWork<Lane>

  init(_ work: LaneWork<Lane>) { self.work = work }

  /// Call it while no job is on its way.
  func withLane(_ body: (inout Lane) -> Void) { body(&work.output.sink.lane) }

  func makeBatch() -> Lane.Batch { work.output.sink.lane.makeBatch() }
  func makeJob() -> LaneJob<Lane> { LaneJob(makeBatch()) }

  /// - Parameter other: the queue to use instead of its own; another than before only while no job is on its way.
  func submit(_ job: LaneJob<Lane>, on other: DispatchQueue?) {
    (other ?? queue).async { [self] in
      if let events = job.events.take() { work.read(events, job) }
      job.done.signal()
    }
  }
}

/// The state of a lane's thread: a value, because access to a class is checked at run time.
struct LaneWork<Lane: RecordLane> {
  private let number: Int
  private let count: Int
  private let streams: ClientStreams
  private let workspace = TLSWorkspace()
  fileprivate var output: RecordEmitter<LaneSink<Lane>>
  private var outcomes: [LaneJob<Lane>.Outcome] = []
  /// The turn in which a connection was left to the dissector, by slot.
  private var left: [Int] = []
  private var turn = 0

  /// - Parameters:
  ///   - number: that of `LaneOwner`.
  ///   - count: of all threads.
  init(_ number: Int, of count: Int, _ lane: Lane, _ streams: ClientStreams) {
    self.number = number
    self.count = count
    self.streams = streams
    output = RecordEmitter(sink: LaneSink(lane))
  }

  fileprivate mutating func read(_ batch: consuming EventBatch, _ job: LaneJob<Lane>) {
    turn = job.turn
    swap(&outcomes, &job.outcomes)
    swap(&output.sink.others, &job.others)
    outcomes.removeAll(keepingCapacity: true)
    output.sink.others.removeAll(keepingCapacity: true)
    output.summary = SummaryRecord()
    batch.withBlock { output.sink.lane.begin(&job.found, $0) }
    var event = 0
    batch.forEachEvent { change, position in
      if LaneOwner.of(position.slot, count) == number { take(change, event, at: position) }
      event += 1
    }
    output.sink.lane.end(&job.found)
    swap(&outcomes, &job.outcomes)
    swap(&output.sink.others, &job.others)
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
            event: event, taken: taken, notifications: notifications, end: output.sink.lane.position,
            others: output.sink.others.count))
      } else {
        left[slot] = turn
      }
    case .gap, .end, .connection: left[slot] = turn
    }
  }
}
