/// Limits on what recorded TLS can make the decryptor hold or try.
public struct TLSLimits: Sendable {
  /// Longest handshake message, and all messages of a handshake together, in bytes. A longer message is passed over; if
  /// it was needed, the connection cannot be decrypted.
  public var maximumHandshakeLength: Int
  /// The most bytes of one direction that are held for the other direction's hello or for a secret; above, the
  /// direction is read without them.
  public var maximumHeldBytes: Int
  /// The most bytes that all connections together hold in this way.
  public var maximumTotalHeldBytes: Int
  /// Secrets of a kind that are tried for a direction of a connection.
  public var maximumCandidates: Int
  /// The most missing records, in a gap or before the capture, that are assumed in the search for a record's sequence
  /// number.
  public var maximumMissingRecords: Int
  /// The most failed attempts to decrypt records per direction, plus one for each kilobyte of the record; then the
  /// direction is abandoned. For guessed keys and distant sequence numbers all connections together have 8 times as
  /// many.
  public var maximumAttempts: Int

  public init(
    maximumHandshakeLength: Int = 256 << 10, maximumHeldBytes: Int = 1 << 20, maximumTotalHeldBytes: Int = 64 << 20,
    maximumCandidates: Int = 1_000,
    maximumMissingRecords: Int = 65_536, maximumAttempts: Int = 1 << 20
  ) {
    self.maximumHandshakeLength = maximumHandshakeLength
    self.maximumHeldBytes = maximumHeldBytes
    self.maximumTotalHeldBytes = maximumTotalHeldBytes
    self.maximumCandidates = maximumCandidates
    self.maximumMissingRecords = maximumMissingRecords
    self.maximumAttempts = maximumAttempts
  }
}
