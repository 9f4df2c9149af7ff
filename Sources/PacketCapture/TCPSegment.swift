/// A position in TCP's 32-bit sequence space, which wraps around.
public struct SequenceNumber: RawRepresentable, Sendable, Hashable {
  public let rawValue: UInt32
  @inlinable public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// How far this number lies after `other`, the shorter way round: −2³¹ … 2³¹−1 (RFC 9293 §3.4).
  @inlinable public func distance(from other: SequenceNumber) -> Int {
    Int(Int32(bitPattern: rawValue &- other.rawValue))
  }

  /// The position this many bytes later, or earlier if negative.
  @inlinable public func advanced(by count: Int) -> SequenceNumber {
    SequenceNumber(rawValue: rawValue &+ UInt32(truncatingIfNeeded: count))
  }
}

/// The header of a TCP segment, and how much payload it carried; the captured part of that comes beside it.
public struct TCPSegment: Sendable {
  /// The flags of the header that reassembly needs.
  public struct Flags: OptionSet, Sendable {
    public let rawValue: UInt8
    @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let fin = Flags(rawValue: 1)
    public static let syn = Flags(rawValue: 2)
    public static let rst = Flags(rawValue: 4)
    public static let ack = Flags(rawValue: 16)

    /// An acknowledgement, perhaps with PSH, URG, ECE or CWR, that opens and closes nothing.
    var isOrdinary: Bool { rawValue & 0b1_0111 == 0b1_0000 }
  }

  public var source: Endpoint
  public var destination: Endpoint
  public var sequence: SequenceNumber
  public var acknowledgement: SequenceNumber
  public var flags: Flags
  /// Payload bytes on the wire; more than were captured when the snap length cut the packet.
  public var payloadLength: Int
  /// What the sender can take beyond what it acknowledges, in units of its window scale.
  var window = UInt16.max
  /// The option of a SYN that says how far windows are shifted; `nil` on other segments, and without it.
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
