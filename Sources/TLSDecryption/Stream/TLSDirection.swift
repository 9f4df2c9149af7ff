import Bytes

/// One direction of a TLS connection: how far its bytes are read, and with which keys.
final class TLSDirection {
  enum State {
    /// Records are not sealed yet.
    case clear
    /// Records are sealed.
    case sealed
  }

  let side: TLSSide
  var state = State.clear

  var records: RecordReader
  var handshake = HandshakeAssembler()

  // Keys
  /// The handshake that this direction is at.
  var negotiation: Negotiation
  /// Handshakes whose keys came into use.
  var keyedHandshakes = 0
  /// `nil` until the first sealed record needs them.
  var epochs: [KeyEpoch]?
  /// The keys in `epochs` are guessed among all; they are made anew for each record, as there may be thousands.
  var isGuessing = false
  /// The secrets that there were when the keys were collected.
  var generation = 0
  /// The keys that opened the last record.
  var active: KeyCandidate?
  /// Failed attempts to open records, and records that were tried with more than one number, since the last success.
  var attempts = 0
  var trials = 0
  /// The keys, when nothing is in doubt: data is being read, no number is missing, the suite is an AEAD.
  private(set) var straight: RecordDecryptor?

  // Waiting
  var input = DirectionInput()
  var isWaiting: Bool { input.isWaiting }

  // Results
  var tally = DirectionTally()
  /// The handshake's last message was opened: what follows is data.
  var hasFinished = false
  /// Of the last keys, for what is counted without them.
  var lastOverhead = 0

  init(_ side: TLSSide, _ negotiation: Negotiation, _ limits: TLSLimits) {
    self.side = side
    self.negotiation = negotiation
    records = RecordReader(isFromClient: side == .client, maximumMissingRecords: limits.maximumMissingRecords)
  }

  /// What the records to come look like.
  var expectation: RecordExpectation {
    RecordExpectation(keyVersion: active?.decryptor.version, isBeforeData: !hasFinished)
  }

  /// Bytes of the shortest record that may be missing.
  var shortestRecord: Int { active?.decryptor.shortestRecord ?? 22 }

  /// What it says in a handshake before its keys change may still come.
  func mayBring(_ negotiation: Negotiation) -> Bool {
    !input.isOver && !records.hadGap && !records.hasFailed && keyedHandshakes <= negotiation.number
  }

  /// Decides whether the next bytes can be read straight on.
  func settleStraight() {
    let isStraight =
      records.isAligned && records.region == nil && !isWaiting && active?.stage == .data
    straight = isStraight && active?.decryptor.isAEAD == true ? active?.decryptor : nil
  }

  /// Notes the bytes before a record, for all keys that may open it.
  func noteEnd(_ bytes: RawSpan) {
    active?.decryptor.noteEnd(bytes)
    for epoch in epochs ?? [] { for candidate in epoch.candidates { candidate.decryptor.noteEnd(bytes) } }
  }
}
