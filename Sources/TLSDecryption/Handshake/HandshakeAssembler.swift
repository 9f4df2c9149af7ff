import Bytes

/// Joins handshake messages, which records may cut anywhere: type u8 | length u24 | body.
struct HandshakeAssembler {
  /// A message with its header.
  private var partial: [UInt8] = []
  /// Bytes still to pass over of a message that is too long to keep.
  private var passing = 0

  var isEmpty: Bool { partial.isEmpty && passing == 0 }

  /// Calls `body` with every message that `bytes` complete.
  ///
  /// - Parameter maximumLength: the longest message in bytes; longer ones are skipped.
  mutating func add(_ bytes: RawSpan, maximumLength: Int, _ body: (HandshakeMessage) -> Void) {
    var offset = 0
    while offset < bytes.byteCount {
      let rest = bytes.byteCount - offset
      if passing > 0 {
        let count = min(passing, rest)
        passing -= count
        offset += count
        continue
      }
      let length = partial.count < 4 ? 4 : 4 + HandshakeMessage.length(partial.rawBytes)
      let count = min(length - partial.count, rest)
      partial.append(copying: bytes.extracting(offset..<offset + count))
      offset += count
      guard partial.count >= 4 else { return }
      let whole = 4 + HandshakeMessage.length(partial.rawBytes)
      if whole > 4 + maximumLength {
        passing = whole - partial.count
        partial.removeAll()
      } else if partial.count == whole {
        let message = HandshakeMessage(bytes: partial)
        partial.removeAll(keepingCapacity: true)
        body(message)
      }
    }
  }

  /// Bytes of a message that has begun.
  var heldBytes: Int { partial.count }

  /// Forgets a message that cannot be completed.
  mutating func reset() {
    partial.removeAll()
    passing = 0
  }
}

/// A whole handshake message.
struct HandshakeMessage {
  struct Kind: RawRepresentable, Equatable {
    var rawValue: UInt8
    static let helloRequest = Kind(rawValue: 0)
    static let clientHello = Kind(rawValue: 1)
    static let serverHello = Kind(rawValue: 2)
    static let newSessionTicket = Kind(rawValue: 4)
    static let endOfEarlyData = Kind(rawValue: 5)
    /// Only in drafts of TLS 1.3; the standard encodes it as a ServerHello.
    static let helloRetryRequest = Kind(rawValue: 6)
    static let encryptedExtensions = Kind(rawValue: 8)
    static let certificate = Kind(rawValue: 11)
    static let serverHelloDone = Kind(rawValue: 14)
    static let clientKeyExchange = Kind(rawValue: 16)
    static let finished = Kind(rawValue: 20)
    static let keyUpdate = Kind(rawValue: 24)
  }

  /// The whole message, header included.
  let bytes: [UInt8]
  let kind: Kind
  let body: ArraySlice<UInt8>

  /// - Parameter bytes: header and body, complete.
  init(bytes: [UInt8]) {
    self.bytes = bytes
    kind = Kind(rawValue: bytes[0])
    body = bytes[4...]
  }

  /// The length of the body, from the header.
  static func length(_ header: RawSpan) -> Int { Int(header.uint32(at: 0) & 0xff_ffff) }
}

/// Reads the fields of a message one after the other; each is `nil` if the message ends before the field does.
struct FieldReader {
  private let data: ArraySlice<UInt8>
  private var position: Int

  init(_ bytes: ArraySlice<UInt8>) {
    data = bytes
    position = bytes.startIndex
  }

  mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
    guard count <= data.endIndex - position else { return nil }
    let start = position
    position += count
    return data[start..<position]
  }

  mutating func uint8() -> Int? { number(1) }
  mutating func uint16() -> Int? { number(2) }

  private mutating func number(_ count: Int) -> Int? {
    guard let digits = bytes(count) else { return nil }
    return digits.reduce(0) { $0 << 8 | Int($1) }
  }

  /// Bytes with their length before them.
  mutating func vector8() -> ArraySlice<UInt8>? { vector(1) }
  mutating func vector16() -> ArraySlice<UInt8>? { vector(2) }
  mutating func vector24() -> ArraySlice<UInt8>? { vector(3) }

  private mutating func vector(_ lengthBytes: Int) -> ArraySlice<UInt8>? {
    guard let length = number(lengthBytes) else { return nil }
    return bytes(length)
  }
}
