import PacketCapture
import Records

/// The state of one reading of a recording: the outcomes of its files so far, and the progress.
///
/// `Dissection` begins a pass, takes batches with it, and ends it.
struct RecordingPass {
  /// The longest time for which records of packets from a pipe wait in a writer.
  private static var longestDelay: Duration { .milliseconds(200) }

  var outcomes: [CaptureOutcome]
  /// The number of files whose records were passed to the sink. pcapng names link types in blocks before the first
  /// packet of each interface, so a file is announced with its first packet.
  var announced = 0
  /// Packets that passed the filter.
  var matching = 0
  var progress: DissectionProgress
  /// Whether no more batches are wanted.
  var isEnding = false
  let late: LateSecrets
  /// Batches that lanes read at a time.
  let ahead: Int

  /// The number of the first file among all that were read.
  private let firstNumber: Int
  private let isPipe: Bool
  private var paused = ContinuousClock.now

  init(_ recording: Recording, _ outcomes: [CaptureOutcome], firstNumber: Int, ahead: Int, _ late: LateSecrets) {
    self.outcomes = outcomes
    self.firstNumber = firstNumber
    self.ahead = ahead
    self.late = late
    isPipe = recording.size == nil
    progress = DissectionProgress(bytesRead: 0, size: recording.size, packets: 0)
  }

  /// Adds the packets of one file's part of a batch.
  mutating func count(_ part: FilePart) {
    outcomes[part.file].add(part)
    matching += part.matchingPackets
    progress.packets += part.packets
  }

  /// Adds the packets that are not read to the files that they are in.
  mutating func note(_ unread: UnreadTraffic) {
    for row in unread.rows {
      let index = max(0, PacketNumber.file(row.first) - firstNumber)
      if outcomes.indices.contains(index) { outcomes[index].unread.add(row) }
    }
  }

  /// Adds how the reading of a file ended.
  mutating func note(_ end: CaptureFileEnd, ofFile file: Int) {
    outcomes[file].add(end.linkTypes)
    outcomes[file].warnings += end.warnings
    outcomes[file].failure = end.failure
  }

  /// The sink is paused because no input comes.
  mutating func notePause() { paused = .now }

  /// Whether the sink is due for a pause: packets that come one by one from a pipe leave no moment without input.
  mutating func isPauseDue() -> Bool {
    guard isPipe, case let now = ContinuousClock.now, paused.duration(to: now) >= Self.longestDelay else {
      return false
    }
    paused = now
    return true
  }
}
