/// The longest lengths that the parts of a record may claim; above them the record counts as malformed.
///
/// The protocol names no maximum for a frame, and its length fields reach 4 GiB. Limits prevent damaged bytes from
/// passing as the start of an enormous record, and bound memory while a record is incomplete. The items of a command-2
/// frame have no separate limits: the length of the frame bounds them.
public struct ProtocolLimits: Sendable, Equatable {
  /// The longest command-2 frame, in bytes after its five-byte header. A longer frame is malformed.
  public var maximumFrameLength: Int
  /// Longest device token in bytes. Documented: 32 (2015), up to 100 (2018); the field holds up to 65,535.
  public var maximumTokenLength: Int
  /// The longest payload in bytes. Documented: 256, 2,048 or 4,096 by year and certificate; clients do send longer
  /// payloads.
  public var maximumPayloadLength: Int

  /// Makes limits. The defaults leave room for tokens and payloads longer than documented.
  public init(
    maximumFrameLength: Int = 131_072, maximumTokenLength: Int = 1_024, maximumPayloadLength: Int = 65_535
  ) {
    self.maximumFrameLength = maximumFrameLength
    self.maximumTokenLength = maximumTokenLength
    self.maximumPayloadLength = maximumPayloadLength
  }
}
