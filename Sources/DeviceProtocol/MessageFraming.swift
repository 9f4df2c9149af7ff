import Bytes

/// The messages of one direction of a connection: JSON objects, each behind its length in four bytes.
///
/// The device channel sends lengths in network order. Clients of local push write them in the order of their processor,
/// so the order is told from the content: a length is right if the object ends where it says. No beginning of a JSON
/// object is one, so only an object with white space behind it can be read in both orders: the shorter reading is taken.
public struct MessageFraming: Sendable, Equatable {
  /// The order of a length's bytes.
  public enum ByteOrder: String, Sendable, CaseIterable {
    case bigEndian = "big_endian"
    case littleEndian = "little_endian"
  }

  /// Why bytes are no message. The connection cannot be read on.
  public enum Fault: Error, Sendable, Equatable {
    /// The length, in the order that is known or in both, is above the limit or below that of `{}`.
    case length(UInt32)
    /// The body does not begin with a brace.
    case noObject
    /// In neither order a JSON object ends where its length says.
    case noOrder
  }

  /// Bytes of a length.
  public static let headerLength = 4

  /// The longest body in bytes.
  public let longestBody: Int
  /// The order of the lengths; `nil`: no message has told it yet.
  public private(set) var order: ByteOrder?
  private var tape = JSONTape()

  /// Makes the framing of a direction that is at its beginning.
  ///
  /// - Parameters:
  ///   - order: the order of all lengths; `nil`: it is told from the content of the first message.
  ///   - longestBody: the longest body in bytes, at least 2.
  public init(order: ByteOrder? = nil, longestBody: Int = 64 << 10) {
    self.order = order
    self.longestBody = max(2, min(longestBody, Int(UInt32.max >> 1)))
  }

  /// The range of the body of the message at the beginning; `nil` if more bytes are needed.
  ///
  /// The next message begins behind it. O(1) once the order is known; before, at most two times the message's length.
  ///
  /// - Parameter bytes: what was sent, from the first byte of a message on.
  public mutating func next(_ bytes: RawSpan) throws(Fault) -> Range<Int>? {
    guard bytes.byteCount >= Self.headerLength else { return nil }
    if let order { return try body(bytes, Self.length(bytes, order)) }
    let lengths = ByteOrder.allCases.map { (order: $0, length: Self.length(bytes, $0)) }
    let possible = lengths.filter { isAllowed($0.length) }.sorted { $0.length < $1.length }
    guard let shortest = possible.first else { throw .length(lengths[0].length) }
    guard let range = try body(bytes, shortest.length) else { return nil }
    // Read the same in both orders: the message is whole, and the next one may tell.
    if possible.count == 2, possible[0].length == possible[1].length { return range }
    if tape.read(bytes.extracting(range)) == nil {
      order = shortest.order
      return range
    }
    guard possible.count == 2 else { throw .noOrder }
    guard let longer = try body(bytes, possible[1].length) else { return nil }
    guard tape.read(bytes.extracting(longer)) == nil else { throw .noOrder }
    order = possible[1].order
    return longer
  }

  private static func length(_ bytes: RawSpan, _ order: ByteOrder) -> UInt32 {
    bytes.uint32(at: 0, bigEndian: order == .bigEndian)
  }

  private func isAllowed(_ length: UInt32) -> Bool { length >= 2 && Int(length) <= longestBody }

  private func body(_ bytes: RawSpan, _ length: UInt32) throws(Fault) -> Range<Int>? {
    guard isAllowed(length) else { throw .length(length) }
    if bytes.byteCount > Self.headerLength, bytes.byte(at: Self.headerLength) != UInt8(ascii: "{") { throw .noObject }
    let end = Self.headerLength + Int(length)
    return bytes.byteCount >= end ? Self.headerLength..<end : nil
  }

  public static func == (one: MessageFraming, other: MessageFraming) -> Bool {
    one.longestBody == other.longestBody && one.order == other.order
  }
}

extension ByteWriter {
  /// Writes a message: its length, and then its body.
  package mutating func write(
    framed order: MessageFraming.ByteOrder = .bigEndian, _ body: (inout ByteWriter) -> Void
  ) {
    let start = count
    write(bigEndian: UInt32(0))
    body(&self)
    let length = UInt32(truncatingIfNeeded: count - start - MessageFraming.headerLength)
    overwrite(bigEndian: order == .bigEndian ? length : length.byteSwapped, at: start)
  }
}
