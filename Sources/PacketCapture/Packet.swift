/// The metadata of one packet; its bytes are passed separately, borrowed.
public struct Packet: Sendable {
  /// Counts from 1 in the order of the file, as Wireshark's frame number does.
  public var number: Int
  public var time: Timestamp
  public var linkType: LinkType
  /// Bytes the packet had on the wire; more than were captured when the snap length cut it.
  public var originalLength: Int
  /// Bytes in the file.
  public var capturedLength: Int
}

/// The container that the packets or bytes came in.
public enum CaptureFormat: String, Sendable {
  case pcap, pcapng, snoop
  /// One direction of a connection, as it is.
  case raw
  /// The same, written in hexadecimal.
  case hex
}
