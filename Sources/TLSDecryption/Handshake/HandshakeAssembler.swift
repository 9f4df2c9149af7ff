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
  /// - Parameter maximumLength: of a message; a longer one is passed over.
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
    /// Of the drafts of TLS 1.3; the standard disguises it as a ServerHello.
    static let helloRetryRequest = Kind(rawValue: 6)
    static let encryptedExtensions = Kind(rawValue: 8)
    static let certificate = Kind(rawValue: 11)
    static let serverHelloDone = Kind(rawValue: 14)
    static let clientKeyExchange = Kind(rawValue: 16)
    static let finished = Kind(rawValue: 20)
    static let keyUpdate = Kind(rawValue: 24)
  }

  /// With the header.
  var bytes: [UInt8]
  var kind: Kind { Kind(rawValue: bytes[0]) }
  var body: ArraySlice<UInt8> { bytes.dropFirst(4) }

  /// Of the body, from the header.
  static func length(_ header: RawSpan) -> Int { Int(header.uint32(at: 0) & 0xff_ffff) }
}

/// Reads the fields of a message one after the other; each is `nil` when the message ends before it does.
struct FieldReader {
  private var rest: ArraySlice<UInt8>
  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  var isEmpty: Bool { rest.isEmpty }

  mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
    guard count <= rest.count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  mutating func uint8() -> Int? { bytes(1)?.first.map(Int.init) }
  mutating func uint16() -> Int? { bytes(2).map { $0.reduce(0) { $0 << 8 | Int($1) } } }
  mutating func uint24() -> Int? { bytes(3).map { $0.reduce(0) { $0 << 8 | Int($1) } } }

  /// Bytes with their length before them.
  mutating func vector8() -> ArraySlice<UInt8>? { uint8().flatMap { bytes($0) } }
  mutating func vector16() -> ArraySlice<UInt8>? { uint16().flatMap { bytes($0) } }
  mutating func vector24() -> ArraySlice<UInt8>? { uint24().flatMap { bytes($0) } }
}
