/// The part of one file of a recording in a batch.
public struct FilePart: Sendable {
  /// Which of the recording's files, from 0.
  public let file: Int
  /// Packets of it; those that passed the filter; those that the snap length cut.
  public internal(set) var packets = 0
  public internal(set) var matchingPackets = 0
  public internal(set) var cutPackets = 0
  public internal(set) var firstTime = Timestamp.none
  /// The latest time of the file so far.
  public internal(set) var lastTime: Timestamp
  /// Packets whose time is before that of one that came before them, and how far it is before the latest of these.
  public internal(set) var latePackets = 0
  public internal(set) var longestDelay: Int64 = 0
  /// Link types that packets had, in the order in which they appeared, 64 at most.
  public var linkTypes: [LinkType] { packetTypes.all }
  private var packetTypes = LinkTypeList()
  /// The file's summary when it has been read; `nil` while there is more of it.
  public internal(set) var end: CaptureFileEnd?

  /// - Parameter latest: the file's latest time before this part.
  init(file: Int, latest: Timestamp = .none) {
    self.file = file
    lastTime = latest
  }

  @inline(__always)
  mutating func note(_ packet: Packet) {
    packets += 1
    if packet.capturedLength < packet.originalLength { cutPackets += 1 }
    if packet.time.isKnown {
      if !firstTime.isKnown || packet.time < firstTime { firstTime = packet.time }
      if packet.time >= lastTime { lastTime = packet.time } else { noteDelay(of: packet) }
    }
    packetTypes.add(packet.linkType)
  }

  @inline(never)
  private mutating func noteDelay(of packet: Packet) {
    latePackets += 1
    longestDelay = max(longestDelay, lastTime.nanoseconds(since: packet.time) ?? .max)
  }
}
