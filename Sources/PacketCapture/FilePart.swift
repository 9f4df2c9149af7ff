/// The part of a batch that one file of a recording contributed.
public struct FilePart: Sendable {
  /// The index of the file in the recording, from 0.
  public let file: Int
  /// The number of packets.
  public internal(set) var packets = 0
  /// The number of packets that passed the filter.
  public internal(set) var matchingPackets = 0
  /// The number of packets truncated by the snap length.
  public internal(set) var cutPackets = 0
  /// The earliest packet time of this part.
  public internal(set) var firstTime = Timestamp.none
  /// The latest packet time of the file so far.
  public internal(set) var lastTime: Timestamp
  /// The number of packets with a time before the latest one so far.
  public internal(set) var latePackets = 0
  /// The longest time, in nanoseconds, by which a packet is before the latest one so far.
  public internal(set) var longestDelay: Int64 = 0
  /// The link types of packets in the order in which they appear, at most 64.
  public var linkTypes: [LinkType] { packetTypes.all }
  private var packetTypes = LinkTypeList()
  /// The summary of the file in the batch in which its reading ended; otherwise `nil`.
  public internal(set) var end: CaptureFileEnd?

  /// - Parameter latest: the latest packet time of the file before this part.
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
