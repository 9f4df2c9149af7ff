/// How long the parts of a record may claim to be before the record counts as malformed.
///
/// The protocol names no maximum for a frame, and its length fields reach 4 GiB. Limits prevent damaged bytes from
/// passing as the start of an enormous record, and bound memory while a record is incomplete. The items of a command-2
/// frame have no separate limits: the length of the frame bounds them.
public struct ProtocolLimits: Sendable, Equatable {
  /// Longest command-2 frame, in bytes after its five-byte header. A longer one is malformed.
  public var maximumFrameLength: Int
  /// Longest device token in bytes. Documented: 32 (2015), up to 100 (2018); the field holds up to 65,535.
  public var maximumTokenLength: Int
  /// Longest payload in bytes. Documented: 256, 2,048 or 4,096 by year and certificate; clients do send longer ones.
  public var maximumPayloadLength: Int

  public init(
    maximumFrameLength: Int = 131_072, maximumTokenLength: Int = 1_024, maximumPayloadLength: Int = 65_535
  ) {
    self.maximumFrameLength = maximumFrameLength
    self.maximumTokenLength = maximumTokenLength
    self.maximumPayloadLength = maximumPayloadLength
  }
}
