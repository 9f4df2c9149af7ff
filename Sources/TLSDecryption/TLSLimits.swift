/// Limits on what recorded TLS can make the decryptor hold or try.
public struct TLSLimits: Sendable {
  /// The longest handshake message, and all messages of a handshake together, in bytes. A longer message is skipped; if
  /// it is needed, the connection cannot be decrypted. Default: 256 KiB.
  public var maximumHandshakeLength: Int
  /// The most bytes of one direction that are held for the other direction's hello or for a secret; above, the
  /// direction is read without them. Default: 1 MiB.
  public var maximumHeldBytes: Int
  /// The most bytes that all connections together hold in this way. Default: 64 MiB.
  public var maximumTotalHeldBytes: Int
  /// The most secrets of one kind that are tried for a direction of a connection. Default: 1,000.
  public var maximumCandidates: Int
  /// The most missing records, in a gap or before the capture, that are assumed in the search for a record's sequence
  /// number. Default: 65,536.
  public var maximumMissingRecords: Int
  /// The most failed attempts to decrypt records per direction, plus one for each kilobyte of the record; then the
  /// direction is abandoned. For guessed keys and distant sequence numbers all connections together have 8 times as
  /// many. Default: 1,048,576.
  public var maximumAttempts: Int

  /// Makes limits; each has the default value that is stated at its property.
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
