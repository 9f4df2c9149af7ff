import Bytes
import Dispatch
import PacketCapture
import Records

/// Reads batches of packets on several threads, with the same result as on one.
///
/// The connections are divided among lanes, of which the first is the dissector's own. The other lanes are a few
/// batches ahead of the dissector and read what needs nothing but a client stream: whole frames, and TLS records whose
/// keys are proven, which is nearly everything. The dissector takes the batches in packet order, merges the lanes'
/// results, and reads the rest: beginnings and ends, error responses, gaps, handshakes. So the dissector alone decides
/// everything that concerns more than one connection, in the same order for any number of lanes.
///
/// A connection that a lane has left to the dissector is the dissector's until the turn ends, when it has read the
/// batches that the lanes have read. If the lanes leave much, they get no batches until then.
struct ParallelReading {
  private struct Lane {
    let reader: LaneReader
    /// The job of the batch that is being merged.
    var job = LaneJob()
    /// Finished jobs whose memory is reused.
    var spare: [LaneJob] = []

    mutating func keepJob() {
      var kept = LaneJob()
      swap(&kept, &job)
      spare.append(kept)
    }
  }

  /// How many of a lane's results for the batch are merged.
  private struct Progress {
    var outcomes = 0
    var position = 0
    var others = 0
  }

  /// The lanes of the other threads.
  private var lanes: [Lane]
  /// Each lane's outcomes for the batch that is being merged. Not in the lanes' jobs, because every event is looked up
  /// here and copying a lane would take longer.
  private var outcomes: [[LaneJob.Outcome]]
  private var found: [LaneBatch]
  private var progress: [Progress]
  private let cost: LaneCost
  private let count: Int
  private let leastWeight: Int
  /// Threads are used even if they are not expected to save time (`Threads.exactly`).
  private let isForced: Bool
  private var turn = 0
  /// Events of the lanes' connections: how many the lanes read, and how many they left to the dissector.
  private(set) var totals = (ahead: 0, left: 0)
  private var leftBefore = 0
  /// The queue that reads files, which the first lane shares; `nil`: the lane uses its own.
  var readingQueue: DispatchQueue?
  /// Whether the first lane has so little work that it needs no separate thread.
  var sharesReadingThread: Bool { !isForced && cost == .medium }
  /// Batches that the lanes were given and the dissector has not read yet.
  private(set) var waiting = 0

  /// Uses the number of threads in the dissector's options, the dissector's own included. The number must be at least
  /// 2.
  init(_ dissector: Dissector) {
    let threads = dissector.options.threads.maximum
    count = threads
    cost = dissector.output.sink.makeLane().cost
    isForced = if case .exactly = dissector.options.threads { true } else { false }
    leastWeight = dissector.options.leastWeightForThreads
    lanes = (1..<threads).map {
      Lane(
        reader: LaneReader(LaneWork($0, of: threads, dissector.output.sink.makeLane(), dissector.clientStreams)))
    }
    outcomes = lanes.map { _ in [] }
    found = lanes.map { _ in LaneBatch() }
    progress = lanes.map { _ in Progress() }
  }

  /// Reads the first of consecutive batches, and passes all batches to the lanes.
  ///
  /// - Parameters:
  ///   - batches: the next call has the same ones without the first, and perhaps further ones at the end.
  ///   - isEnding: the lanes get no further batches.
  mutating func readFirst(of batches: [EventBatch], isEnding: Bool, into dissector: inout Dissector) {
    guard let batch = batches.first else { return }
    if !isEnding { submit(batches, dissector) }
    guard waiting > 0 else {
      dissector.consume(batch)
      return
    }
    for index in lanes.indices {
      lanes[index].job = lanes[index].reader.take()
      exchange(index)
      progress[index] = Progress()
      dissector.output.add(lanes[index].job.summary)
    }
    var event = 0
    batch.withBlock { block in
      batch.forEachEvent { change, position in
        let lane = LaneOwner.of(position.slot, count) - 1
        if lane < 0 {
          dissector.consume(change, at: position)
        } else {
          play(change, event, at: position, lane, in: block, into: &dissector)
        }
        event += 1
      }
    }
    for index in lanes.indices {
      exchange(index)
      lanes[index].keepJob()
    }
    waiting -= 1
  }

  /// A second thread that only finds notifications in clear text costs more than it saves, unless it is the one that
  /// reads files.
  private func isWorthwhile(_ dissector: Dissector) -> Bool {
    isForced || count > 2 || cost == .high || dissector.tlsConnections > 0 || readingQueue != nil
  }

  private mutating func submit(_ batches: [EventBatch], _ dissector: Dissector) {
    if waiting == 0 {
      guard isWorthwhile(dissector), batches.reduce(0, { $0 + $1.weight }) >= leastWeight else { return }
      turn += 1
      leftBefore = totals.left
      let knowledge = dissector.output.sink.laneKnowledge
      for lane in lanes { lane.reader.take(knowledge) }
    } else if totals.left - leftBefore >= 8 * leastWeight {
      // Further batches would cost more than catching up.
      return
    }
    var growth = batches.prefix(waiting).reduce(0) { $0 + $1.growth }
    for batch in batches.dropFirst(waiting) {
      // Memory is checked while the lanes have no job.
      if waiting > 0, dissector.memory.isDue(after: growth) { return }
      growth += batch.growth
      // The dissector applies secrets before the batch that they belong to, while the lanes have no job.
      if waiting > 0, !batch.secrets.isEmpty { return }
      for index in lanes.indices {
        var job = lanes[index].spare.popLast() ?? LaneJob()
        (job.events, job.turn) = (batch, turn)
        lanes[index].reader.submit(job, on: index == 0 ? readingQueue : nil)
      }
      waiting += 1
    }
  }

  /// Merges a lane's results for one event, or reads the event if the lane left it.
  @inline(__always)
  private mutating func play(
    _ change: borrowing StreamEvent, _ event: Int, at position: StreamPosition, _ lane: Int, in block: RawSpan,
    into dissector: inout Dissector
  ) {
    let next = progress[lane].outcomes
    guard next < outcomes[lane].count, outcomes[lane][next].event == event else {
      totals.left += 1
      return dissector.consume(change, at: position)
    }
    let outcome = outcomes[lane][next]
    progress[lane].outcomes = next + 1
    totals.ahead += 1
    while progress[lane].others < outcome.others { playOther(lane, in: block, into: &dissector.output.sink) }
    playNotifications(lane, to: outcome.end, in: block, into: &dissector.output.sink)
    switch change {
    case .bytes(let bytes) where outcome.taken < bytes.byteCount:
      dissector.consumeRest(bytes, after: outcome.taken, notifications: outcome.notifications, at: position)
    case .bytes, .gap, .end, .connection:
      dissector.output.sink.segment(notifications: outcome.notifications, at: position.time)
    }
  }

  @inline(__always)
  private mutating func playNotifications(_ lane: Int, to end: Int, in block: RawSpan, into sink: inout any RecordSink)
  {
    let start = progress[lane].position
    guard end > start else { return }
    progress[lane].position = end
    sink.receive(&found[lane], start..<end, in: block)
  }

  private mutating func playOther(_ lane: Int, in block: RawSpan, into sink: inout any RecordSink) {
    let (position, record) = lanes[lane].job.others[progress[lane].others]
    progress[lane].others += 1
    playNotifications(lane, to: position, in: block, into: &sink)
    switch record {
    case .gap(let gap): sink.receive(gap)
    case .malformed(let malformed): sink.receive(malformed)
    }
  }

  private mutating func exchange(_ lane: Int) {
    swap(&outcomes[lane], &lanes[lane].job.outcomes)
    swap(&found[lane], &lanes[lane].job.found)
  }
}
