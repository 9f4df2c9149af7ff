/// The metadata of one packet; its bytes are passed separately, borrowed.
public struct Packet: Sendable {
  /// The number of the packet in its file, from 1, as Wireshark's frame number.
  public var number: Int
  /// The time of capture.
  public var time: Timestamp
  /// The link type, which says how `PacketDecoder` reads the bytes.
  public var linkType: LinkType
  /// The length on the wire in bytes; more than captured if the snap length truncated the packet.
  public var originalLength: Int
  /// The number of bytes in the file.
  public var capturedLength: Int
}

/// The format of the file in which packets or bytes are stored.
public enum CaptureFormat: String, Sendable {
  case pcap, pcapng, snoop
  /// The bytes of one direction of a connection, in binary.
  case raw
  /// The bytes of one direction of a connection, shown as text.
  case hex
  /// The bytes that a gateway's connections received and sent, as it knows them itself.
  case gateway
}
