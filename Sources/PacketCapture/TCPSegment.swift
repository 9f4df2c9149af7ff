/// A number in TCP's 32-bit sequence space, which wraps around.
public struct SequenceNumber: RawRepresentable, Sendable, Hashable {
  public let rawValue: UInt32
  @inlinable public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// The signed distance from `other` to this number, the shorter way around: −2³¹ … 2³¹−1 (RFC 9293 §3.4).
  @inlinable public func distance(from other: SequenceNumber) -> Int {
    Int(Int32(bitPattern: rawValue &- other.rawValue))
  }

  /// The number this many bytes later, or earlier if negative.
  @inlinable public func advanced(by count: Int) -> SequenceNumber {
    SequenceNumber(rawValue: rawValue &+ UInt32(truncatingIfNeeded: count))
  }
}

/// The header of a TCP segment and the length of its payload; the captured payload is passed separately, borrowed.
public struct TCPSegment: Sendable {
  /// The header flags that reassembly needs.
  public struct Flags: OptionSet, Sendable {
    public let rawValue: UInt8
    @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }
    /// The sender has no more data.
    public static let fin = Flags(rawValue: 1)
    /// The first segment of a direction.
    public static let syn = Flags(rawValue: 2)
    /// The connection is reset.
    public static let rst = Flags(rawValue: 4)
    /// The acknowledgement number is valid.
    public static let ack = Flags(rawValue: 16)

    /// Whether the segment is an acknowledgement, possibly with PSH, URG, ECE or CWR, that neither opens nor closes.
    var isOrdinary: Bool { rawValue & 0b1_0111 == 0b1_0000 }
  }

  /// The sending endpoint.
  public var source: Endpoint
  /// The receiving endpoint.
  public var destination: Endpoint
  /// The sequence number of the first byte, or of the SYN.
  public var sequence: SequenceNumber
  /// The acknowledgement number; meaningless without the ACK flag.
  public var acknowledgement: SequenceNumber
  /// The flags that are set.
  public var flags: Flags
  /// The length of the payload on the wire in bytes; more than captured if the snap length truncated the packet.
  public var payloadLength: Int
  /// The receive window of the sender, in units of its window scale.
  var window = UInt16.max
  /// The window scale option of a SYN; `nil` without it, and on other segments.
  var windowScale: UInt8?

  package init(
    source: Endpoint, destination: Endpoint, sequence: SequenceNumber, acknowledgement: SequenceNumber, flags: Flags,
    payloadLength: Int
  ) {
    self.source = source
    self.destination = destination
    self.sequence = sequence
    self.acknowledgement = acknowledgement
    self.flags = flags
    self.payloadLength = payloadLength
  }
}
