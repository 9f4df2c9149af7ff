import Bytes

/// One direction of a TLS connection: how far its bytes are read, and with which keys.
final class TLSDirection {
  enum State {
    /// Records are not sealed yet.
    case clear
    /// Records are sealed.
    case sealed
    /// Nothing more can be opened.
    case failed
  }

  let side: TLSSide
  var state = State.clear

  // Records
  /// The beginning of a record; while `isSearching`, bytes in which one is looked for.
  var partial: [UInt8] = []
  /// Where the next record begins is not known.
  var isSearching = false
  /// Bytes that `partial` must have before it is searched again.
  var wanted = 0
  /// Bytes to the end of a record that a gap cut.
  var skip = 0
  /// The last bytes that were passed over: TLS 1.0 needs a block of them for the next record, before a MAC.
  var tail: [UInt8] = []
  var records = 0
  var region: SkippedRegion?
  var hadGap = false
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

  init(_ side: TLSSide, _ negotiation: Negotiation) {
    self.side = side
    self.negotiation = negotiation
  }

  /// What it says in a handshake before its keys change may still come.
  func mayBring(_ negotiation: Negotiation) -> Bool {
    !input.isOver && !hadGap && state != .failed && keyedHandshakes <= negotiation.number
  }

  /// Decides whether the next bytes can be read straight on.
  func settleStraight() {
    let isStraight =
      state == .sealed && region == nil && !isSearching && skip == 0 && !isWaiting && active?.stage == .data
    straight = isStraight && active?.decryptor.isAEAD == true ? active?.decryptor : nil
  }

  /// Notes the bytes before a record, for all keys that may open it.
  func noteEnd(_ bytes: RawSpan) {
    active?.decryptor.noteEnd(bytes)
    for epoch in epochs ?? [] { for candidate in epoch.candidates { candidate.decryptor.noteEnd(bytes) } }
  }

  func keepTail(_ bytes: RawSpan) {
    let wanted = 64
    let count = min(bytes.byteCount, wanted)
    tail.append(copying: bytes.extracting(bytes.byteCount - count..<bytes.byteCount))
    if tail.count > wanted { tail.removeFirst(tail.count - wanted) }
  }
}
