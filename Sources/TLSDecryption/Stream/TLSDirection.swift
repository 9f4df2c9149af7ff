/// One direction of a TLS connection. Its members are values that are independent of each other; `TLSStream` connects
/// them.
final class TLSDirection {
  let side: TLSSide
  /// The input: read as it arrives, or held.
  var input = DirectionInput()
  /// Finds the records.
  var records: TLSRecordReader
  /// Finds the keys that decrypt them.
  var keys = KeySearch()
  /// The handshake that this direction is at.
  var negotiation: Negotiation
  var handshake = HandshakeAssembler()
  /// Handshakes whose keys came into use.
  var keyedHandshakes = 0
  /// The counts of received and delivered bytes.
  var tally = DirectionTally()
  /// Where the pieces came from in which the next record is searched, and the bytes of each.
  var searched: [(count: Int, point: CapturePoint)] = []
  /// The keys, when nothing is in doubt: data is being read, no number is missing, the suite is an AEAD.
  private(set) var straight: RecordDecryptor?

  init(_ side: TLSSide, _ negotiation: Negotiation, _ limits: TLSLimits) {
    self.side = side
    self.negotiation = negotiation
    records = TLSRecordReader(isFromClient: side == .client, maximumMissingRecords: limits.maximumMissingRecords)
  }

  /// TLS 1.3 is spoken: the keys in use say so, or the server's hello.
  var isModern: Bool { (keys.active?.decryptor.version ?? negotiation.version ?? .tls12) >= .tls13 }

  /// The draft of TLS 1.3 that is spoken, 0 for the standard.
  var draft: Int { negotiation.serverHello?.draft ?? 0 }

  /// Its handshake messages before the change of keys may still come.
  func mayBring(_ negotiation: Negotiation) -> Bool {
    !input.isOver && !records.hadGap && !records.hasFailed && keyedHandshakes <= negotiation.number
  }

  /// Bytes of records and messages that have begun.
  var heldBytes: Int {
    records.keptBytes + handshake.heldBytes + searched.count * MemoryLayout<(Int, CapturePoint)>.stride
  }

  /// Frees memory that is kept for later records.
  func freeSpare() {
    if records.keptBytes == 0 { _ = records.takePartial() }
    if handshake.isEmpty { handshake.reset() }
  }

  /// Records are sealed from here on.
  func seal() {
    keys.seal()
    keyedHandshakes = negotiation.number + 1
  }

  /// Decides whether the next bytes can be read straight on.
  func updateFastPath() {
    straight = nil
    guard records.isAligned, records.region == nil, !input.isWaiting, let active = keys.active, active.stage == .data,
      active.decryptor.isAEAD
    else { return }
    straight = active.decryptor
  }
}
