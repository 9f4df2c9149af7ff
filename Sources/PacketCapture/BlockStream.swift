import Bytes

/// Splits a capture that arrives through a pipe into whole pcapng blocks, so that it can be written to several files.
/// Records of a pcap are converted to blocks.
///
/// Pieces passed to `take(_:_:)` may have any length. A new file can begin at any packet, if the current section header
/// and its interface descriptions are written first.
public struct BlockStream: Sendable {
  /// The type of a block, as far as a writer of files needs it.
  public enum Kind: Sendable {
    /// A section header. A new section has its own byte order and interfaces.
    case section
    /// An interface description, which each file needs before its packets.
    case interface
    /// A packet: an enhanced, simple or obsolete packet block.
    case packet
    /// Any other block, such as name resolutions, statistics or secrets.
    case other
  }

  private enum Format: Sendable {
    case undecided
    case pcapng(bigEndian: Bool)
    /// `digits`: the decimal digits of the fraction of a second, 6 or 9.
    case pcap(bigEndian: Bool, digits: Int)
  }

  private var format = Format.undecided
  private var bytes: [UInt8] = []
  private let maximumBlockLength: Int

  /// Makes a splitter of a stream of which nothing was read.
  ///
  /// - Parameter maximumBlockLength: the longest block or packet record in bytes; a longer one is thrown as damage.
  public init(maximumBlockLength: Int) { self.maximumBlockLength = maximumBlockLength }

  /// The bytes that are held because their block is not complete.
  public var pendingBytes: Int { bytes.count }

  /// Takes the next bytes of the stream, and calls `body` with each block that they complete.
  ///
  /// The block is borrowed for the call. A pcap yields a section header and one interface description first.
  ///
  /// - Throws: a `CaptureError` of kind `notACapture` if the stream begins as neither pcapng nor pcap, or of kind
  ///   `damaged` if a block is longer than the limit or its length is invalid; and what `body` throws.
  public mutating func take(_ more: RawSpan, _ body: (Kind, RawSpan) throws -> Void) throws {
    var held: [UInt8] = []
    swap(&held, &bytes)
    held.append(copying: more)
    var offset = 0
    defer {
      held.removeFirst(offset)
      bytes = held
    }
    while let length = try Self.next(held.rawBytes, at: offset, &format, maximumBlockLength, body) { offset += length }
  }

  /// Passes the block or record at `offset` to `body`. Returns its length; `nil` if it is not complete.
  private static func next(
    _ bytes: RawSpan, at offset: Int, _ format: inout Format, _ longest: Int, _ body: (Kind, RawSpan) throws -> Void
  ) throws -> Int? {
    let window = bytes.extracting(offset..<bytes.byteCount)
    switch format {
    case .undecided: return window.byteCount < 4 ? nil : try begin(window, &format, body)
    case .pcapng(let bigEndian): return try block(window, bigEndian, longest, body)
    case .pcap(let bigEndian, let digits): return try record(window, bigEndian, digits, longest, body)
    }
  }

  // MARK: pcapng

  /// Passes a pcapng block to `body`: type u32, length u32, body, length u32.
  private static func block(
    _ window: RawSpan, _ bigEndian: Bool, _ longest: Int, _ body: (Kind, RawSpan) throws -> Void
  ) throws -> Int? {
    guard window.byteCount >= 12 else { return nil }
    let length = Int(window.uint32(at: 4, bigEndian: bigEndian))
    guard length >= 12, length % 4 == 0, length <= longest else {
      throw CaptureError(.damaged, "a block claims a length of \(length)")
    }
    guard window.byteCount >= length else { return nil }
    let kind: Kind =
      switch window.uint32(at: 0, bigEndian: bigEndian) {
      case PcapngBlock.sectionType: .section
      case 1: .interface
      case 2, 3, 6: .packet
      default: .other
      }
    try body(kind, window.extracting(0..<length))
    return length
  }

  // MARK: pcap

  /// Detects the format at the beginning of the stream; the file header of pcap has 24 bytes.
  private static func begin(
    _ window: RawSpan, _ format: inout Format, _ body: (Kind, RawSpan) throws -> Void
  ) throws -> Int? {
    let magic = window.uint32(at: 0)
    if magic == PcapngBlock.sectionType {
      guard window.byteCount >= 12 else { return nil }
      format = .pcapng(bigEndian: window.uint32(at: 8) == 0x1a2b_3c4d)
      return 0
    }
    guard window.byteCount >= 24 else { return nil }
    let bigEndian: Bool
    let digits: Int
    switch magic {
    case 0xa1b2_c3d4: (bigEndian, digits) = (true, 6)
    case 0xa1b2_3c4d: (bigEndian, digits) = (true, 9)
    case 0xd4c3_b2a1: (bigEndian, digits) = (false, 6)
    case 0x4d3c_b2a1: (bigEndian, digits) = (false, 9)
    default: throw CaptureError(.notACapture, "neither pcapng nor pcap comes from it")
    }
    format = .pcap(bigEndian: bigEndian, digits: digits)
    try body(.section, PcapngBlock.section().rawBytes)
    let interface = PcapngBlock.interface(
      linkType: UInt16(truncatingIfNeeded: window.uint32(at: 20, bigEndian: bigEndian)),
      snapLength: window.uint32(at: 16, bigEndian: bigEndian), digits: digits)
    try body(.interface, interface.rawBytes)
    return 24
  }

  /// Converts a pcap record and passes the block to `body`: seconds u32, fraction u32, captured length u32, length u32,
  /// bytes.
  private static func record(
    _ window: RawSpan, _ bigEndian: Bool, _ digits: Int, _ longest: Int, _ body: (Kind, RawSpan) throws -> Void
  ) throws -> Int? {
    guard window.byteCount >= 16 else { return nil }
    let captured = Int(window.uint32(at: 8, bigEndian: bigEndian))
    guard captured <= longest else { throw CaptureError(.damaged, "a packet claims a length of \(captured)") }
    guard window.byteCount >= 16 + captured else { return nil }
    let units: UInt64 = digits == 9 ? 1_000_000_000 : 1_000_000
    let time =
      UInt64(window.uint32(at: 0, bigEndian: bigEndian)) * units
      + UInt64(window.uint32(at: 4, bigEndian: bigEndian))
    let packet = PcapngBlock.packet(
      time: time, length: window.uint32(at: 12, bigEndian: bigEndian), window.extracting(16..<16 + captured))
    try body(.packet, packet.rawBytes)
    return 16 + captured
  }
}
