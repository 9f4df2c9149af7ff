import PacketCapture

/// Packets that the capturing program did not receive or could not write.
public struct CaptureLossRecord: Sendable {
  /// The file's number, from 1; `nil` if there is only one file.
  public var file: Int?
  /// The numbers of lost packets, as the capturing program reported them.
  public var loss: CaptureLoss

  package init(
    file: Int? = nil, loss: CaptureLoss
  ) {
    self.file = file
    self.loss = loss
  }
}

/// The summary of one input after it was read.
public struct CaptureOutcome: Sendable {
  /// The file's number, from 1; `nil` if there is only one file.
  public var file: Int?
  /// The name of the file in records.
  public var source: String
  /// The recognised format.
  public var format: CaptureFormat
  /// The link types of the file's interfaces, at most 64.
  public var linkTypes: [LinkType] = []
  /// The file's bytes on disk; `nil` for pipes.
  public var size: Int?
  /// The packets that were read.
  public var packets = 0
  /// Packets that the snap length cut.
  public var cutPackets = 0
  /// Packets without a TCP segment that is read.
  public var unread = UnreadTraffic()
  /// The earliest time of a packet; `.none` without times.
  public var firstTime = Timestamp.none
  /// The latest time of a packet; `.none` without times.
  public var lastTime = Timestamp.none
  /// The number of packets whose time is before an earlier packet's.
  public var latePackets = 0
  /// The most nanoseconds by which a packet's time is before the latest time of earlier packets.
  public var longestDelay: Int64 = 0
  /// Warnings about the file; everything before the damage was read.
  public var warnings: [String] = []
  /// Why the file was not read to its end, or not at all; `nil` if the operating system reported no error.
  public var failure: CaptureError?

  /// Adds the link types that are missing, up to `listedLinkTypes`.
  package mutating func add(_ others: [LinkType]) {
    for linkType in others where linkTypes.count < Self.listedLinkTypes && !linkTypes.contains(linkType) {
      linkTypes.append(linkType)
    }
  }

  private static let listedLinkTypes = 64

  package mutating func add(_ part: FilePart) {
    add(part.linkTypes)
    packets += part.packets
    cutPackets += part.cutPackets
    if part.firstTime.isKnown && (!firstTime.isKnown || part.firstTime < firstTime) { firstTime = part.firstTime }
    if part.lastTime > lastTime { lastTime = part.lastTime }
    latePackets += part.latePackets
    longestDelay = max(longestDelay, part.longestDelay)
  }

  package init(
    file: Int? = nil, source: String, format: CaptureFormat, linkTypes: [LinkType] = [], size: Int? = nil,
    packets: Int = 0, cutPackets: Int = 0, unread: UnreadTraffic = UnreadTraffic(), firstTime: Timestamp = .none,
    lastTime: Timestamp = .none, latePackets: Int = 0, longestDelay: Int64 = 0, warnings: [String] = [],
    failure: CaptureError? = nil
  ) {
    self.file = file
    self.source = source
    self.format = format
    self.linkTypes = linkTypes
    self.size = size
    self.packets = packets
    self.cutPackets = cutPackets
    self.unread = unread
    self.firstTime = firstTime
    self.lastTime = lastTime
    self.latePackets = latePackets
    self.longestDelay = longestDelay
    self.warnings = warnings
    self.failure = failure
  }
}
