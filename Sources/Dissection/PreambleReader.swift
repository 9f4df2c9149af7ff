import Bytes
import Records

/// Finds the ends of preambles, of both ways of a connection.
///
/// ```
/// client  start ─ PROXY header ─ start          server  start
///           ├─ CONNECT … ─ http (again, when the         ├─ HTTP/1.1 407 … ─ start
///           │              proxy refuses) ─ over         ├─ HTTP/1.1 200 … ─ over
///           ├─ SOCKS 4 request ─ over                    ├─ SOCKS 4 reply ─ over
///           └─ SOCKS 5 greeting ─ socks5 ─ over          └─ SOCKS 5 choice ─ socks5 ─ reply ─ over
/// ```
struct PreambleReader {
  enum Step: Equatable {
    /// The next bytes are not part of a preamble.
    case none
    case needsMore
    /// The number of bytes that are part of a preamble.
    case taken(Int)
  }

  private enum Stage { case start, http, socks5, over }

  /// Longest preamble that is waited for, in bytes.
  static let longest = 16_384

  /// The first preamble that was found.
  private(set) var kind: Preamble?
  /// The server port that the client asked for, or that a balancer was asked for.
  private(set) var port: UInt16?
  /// A proxy has answered that the tunnel is open; a balancer and text have no answer.
  private(set) var isOpen = true
  private var client = Stage.start
  private var server = Stage.start
  /// The latest request to a proxy, whose answer comes next.
  private var request: Preamble?

  /// Notes leading text, in either order of directions: STARTTLS replaces plain text.
  mutating func noteText(_ kind: Preamble) {
    if self.kind == nil || self.kind == .text && kind == .startTLS { self.kind = kind }
  }

  /// Takes the next part from the beginning of `bytes`.
  ///
  /// - Parameters:
  ///   - fromClient: whether the client sent the bytes; `nil`: not known.
  ///   - isStart: the beginning of the direction was captured.
  mutating func next(_ bytes: RawSpan, fromClient: Bool?, isStart: Bool) -> Step {
    guard bytes.byteCount > 0 else { return .none }
    let step = fromClient == false ? nextOfServer(bytes) : nextOfClient(bytes, isStart: isStart)
    return step == .needsMore && bytes.byteCount > Self.longest ? .none : step
  }

  // MARK: client

  private mutating func nextOfClient(_ bytes: RawSpan, isStart: Bool) -> Step {
    switch client {
    case .over: return .none
    case .socks5: return socks5Request(bytes)
    case .start, .http: break
    }
    switch Self.compare(bytes, "CONNECT ") {
    case .needsMore: return .needsMore
    case .taken: return connect(bytes)
    case .none: break
    }
    guard client == .start else {
      client = .over
      return .none
    }
    switch Self.compare(bytes, "PROXY ") {
    case .needsMore: return .needsMore
    case .taken: return proxyV1(bytes)
    case .none: break
    }
    switch Self.compare(bytes, "\r\n\r\n\0\r\nQUIT\n") {
    case .needsMore: return .needsMore
    case .taken: return proxyV2(bytes)
    case .none: break
    }
    guard isStart else { return .none }
    switch bytes.byte(at: 0) {
    case 4: return socks4Request(bytes)
    case 5: return socks5Greeting(bytes)
    default: return .none
    }
  }

  private mutating func note(_ found: Preamble, port: UInt16?) {
    kind = kind ?? found
    self.port = port ?? self.port
  }

  private mutating func ask(_ proxy: Preamble) {
    request = proxy
    isOpen = false
  }

  /// `CONNECT host:port HTTP/1.1`, headers, a blank line.
  private mutating func connect(_ bytes: RawSpan) -> Step {
    guard let end = Self.endOfHeader(bytes) else { return .needsMore }
    let line = Self.line(bytes)
    let words = line.split(separator: " ")
    guard words.count >= 2 else { return .none }
    note(.httpConnect, port: words[1].split(separator: ":").last.flatMap { UInt16($0) })
    ask(.httpConnect)
    client = .http
    return .taken(end)
  }

  /// `PROXY TCP4 source destination port port`, CR, LF; 107 bytes at most.
  private mutating func proxyV1(_ bytes: RawSpan) -> Step {
    let limit = min(bytes.byteCount, 107)
    guard let end = (0..<limit).first(where: { bytes.byte(at: $0) == 0x0a }) else {
      return limit < 107 ? .needsMore : .none
    }
    let words = Self.line(bytes).split(separator: " ")
    guard words.count >= 2, ["TCP4", "TCP6", "UNKNOWN"].contains(words[1]) else { return .none }
    note(.proxyV1, port: words.count == 6 ? UInt16(words[5]) : nil)
    return .taken(end + 1)
  }

  /// Twelve bytes of signature, then `version and command u8 | family u8 | length u16 | addresses and more`.
  private mutating func proxyV2(_ bytes: RawSpan) -> Step {
    guard bytes.byteCount >= 16 else { return .needsMore }
    guard bytes.byte(at: 12) >> 4 == 2 else { return .none }
    let length = 16 + Int(bytes.uint16(at: 14))
    guard bytes.byteCount >= length else { return .needsMore }
    let place: Int? =
      switch bytes.byte(at: 13) >> 4 {
      case 1 where length >= 28: 26
      case 2 where length >= 52: 50
      default: nil
      }
    note(.proxyV2, port: place.map { bytes.uint16(at: $0) })
    return .taken(length)
  }

  /// `4 | command u8 | port u16 | address of 4 bytes | user, 0 |`, and for an address of 0.0.0.x `host, 0`.
  private mutating func socks4Request(_ bytes: RawSpan) -> Step {
    guard bytes.byteCount >= 9 else {
      return bytes.byteCount < 2 || (1...2).contains(bytes.byte(at: 1)) ? .needsMore : .none
    }
    guard (1...2).contains(bytes.byte(at: 1)) else { return .none }
    let isNamed = bytes.uint32(at: 4) < 256 && bytes.byte(at: 7) != 0
    var (end, zeros) = (8, 0)
    while end < bytes.byteCount {
      if bytes.byte(at: end) == 0 { zeros += 1 }
      end += 1
      if zeros == (isNamed ? 2 : 1) {
        note(.socks4, port: bytes.uint16(at: 2))
        ask(.socks4)
        client = .over
        return .taken(end)
      }
    }
    return bytes.byteCount < 1_024 ? .needsMore : .none
  }

  /// `5 | count u8 | methods`.
  private mutating func socks5Greeting(_ bytes: RawSpan) -> Step {
    guard bytes.byteCount >= 2 else { return .needsMore }
    let count = Int(bytes.byte(at: 1))
    guard (1...16).contains(count) else { return .none }
    // Methods that are assigned or private; 5 and 1 begin what the client may send at once.
    let methods = 2..<min(bytes.byteCount, 2 + count)
    guard methods.allSatisfy({ bytes.byte(at: $0) <= 9 || (0x80...0xfe).contains(bytes.byte(at: $0)) }) else {
      return .none
    }
    guard bytes.byteCount >= 2 + count else { return .needsMore }
    if bytes.byteCount > 2 + count, bytes.byte(at: 2 + count) != 5, bytes.byte(at: 2 + count) != 1 { return .none }
    note(.socks5, port: nil)
    ask(.socks5)
    client = .socks5
    return .taken(2 + count)
  }

  /// A user and a password, `1 | length u8, user | length u8, password`, or `5 | command u8 | 0 | address | port u16`.
  private mutating func socks5Request(_ bytes: RawSpan) -> Step {
    if bytes.byte(at: 0) == 1 {
      guard bytes.byteCount >= 2 else { return .needsMore }
      let user = 2 + Int(bytes.byte(at: 1))
      guard bytes.byteCount > user else { return .needsMore }
      let end = user + 1 + Int(bytes.byte(at: user))
      return bytes.byteCount >= end ? .taken(end) : .needsMore
    }
    guard bytes.byte(at: 0) == 5 else {
      client = .over
      return .none
    }
    guard let end = Self.endOfSOCKS5(bytes) else { return .needsMore }
    client = .over
    guard end > 0 else { return .none }
    port = bytes.uint16(at: end - 2)
    return .taken(end)
  }

  // MARK: server

  private mutating func nextOfServer(_ bytes: RawSpan) -> Step {
    guard let request, server != .over else { return .none }
    switch request {
    case .httpConnect: return httpAnswer(bytes)
    case .socks4:
      guard bytes.byte(at: 0) == 0 else { return .none }
      guard bytes.byteCount >= 8 else { return .needsMore }
      guard (0x5a...0x5d).contains(bytes.byte(at: 1)) else { return .none }
      isOpen = bytes.byte(at: 1) == 0x5a
      server = .over
      return .taken(8)
    case .socks5: return socks5Answer(bytes)
    default: return .none
    }
  }

  private mutating func httpAnswer(_ bytes: RawSpan) -> Step {
    switch Self.compare(bytes, "HTTP/1.") {
    case .none: return .none
    case .needsMore: return .needsMore
    case .taken: break
    }
    guard let end = Self.endOfHeader(bytes) else { return .needsMore }
    let words = Self.line(bytes).split(separator: " ")
    guard words.count >= 2, let status = Int(words[1]) else { return .none }
    if (200...299).contains(status) {
      isOpen = true
      server = .over
      return .taken(end)
    }
    if status < 200 { return .taken(end) }
    // A refusal has a text, and the client may send another request.
    let length = Self.contentLength(bytes.extracting(0..<end)) ?? 0
    guard length <= Self.longest else { return .none }
    return bytes.byteCount >= end + length ? .taken(end + length) : .needsMore
  }

  /// `5 | method u8`, after a password `1 | status u8`, then `5 | status u8 | 0 | address | port u16`.
  private mutating func socks5Answer(_ bytes: RawSpan) -> Step {
    guard bytes.byteCount >= 2 else { return .needsMore }
    if server == .start {
      guard bytes.byte(at: 0) == 5 else { return .none }
      server = .socks5
      return .taken(2)
    }
    if bytes.byte(at: 0) == 1 { return .taken(2) }
    guard bytes.byte(at: 0) == 5 else { return .none }
    guard let end = Self.endOfSOCKS5(bytes) else { return .needsMore }
    server = .over
    guard end > 0 else { return .none }
    isOpen = bytes.byte(at: 1) == 0
    return .taken(end)
  }

  // MARK: parts

  /// Behind `5 | u8 | 0 | kind of address u8 | address | port u16`; `nil` where more is needed, 0 where it is none.
  private static func endOfSOCKS5(_ bytes: RawSpan) -> Int? {
    guard bytes.byteCount >= 5 else { return nil }
    let end: Int
    switch bytes.byte(at: 3) {
    case 1: end = 10
    case 3: end = 7 + Int(bytes.byte(at: 4))
    case 4: end = 22
    default: return 0
    }
    return bytes.byteCount >= end ? end : nil
  }

  /// Whether bytes begin with a text: `.taken` if so.
  private static func compare(_ bytes: RawSpan, _ text: StaticString) -> Step {
    for index in 0..<min(text.utf8CodeUnitCount, bytes.byteCount) {
      // Safe: the text is a constant of that many bytes.
      if unsafe text.utf8Start[index] != bytes.byte(at: index) { return .none }
    }
    return bytes.byteCount < text.utf8CodeUnitCount ? .needsMore : .taken(text.utf8CodeUnitCount)
  }

  /// Behind the blank line that ends a header.
  private static func endOfHeader(_ bytes: RawSpan) -> Int? {
    var offset = 0
    while offset < bytes.byteCount {
      if bytes.byte(at: offset) == 0x0a {
        var next = offset + 1
        if next < bytes.byteCount, bytes.byte(at: next) == 0x0d { next += 1 }
        if next < bytes.byteCount, bytes.byte(at: next) == 0x0a { return next + 1 }
      }
      offset += 1
    }
    return nil
  }

  private static func line(_ bytes: RawSpan) -> String {
    let end = (0..<bytes.byteCount).first { bytes.byte(at: $0) == 0x0d || bytes.byte(at: $0) == 0x0a }
    return String(decoding: Array(copying: bytes.extracting(0..<(end ?? bytes.byteCount))), as: UTF8.self)
  }

  private static func contentLength(_ header: RawSpan) -> Int? {
    let lines = String(decoding: Array(copying: header), as: UTF8.self).split(whereSeparator: \.isNewline)
    for line in lines {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2, parts[0].lowercased() == "content-length" else { continue }
      return parts[1].split(separator: " ").first.flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }
    return nil
  }
}

/// Lines of text before TLS or frames, as of a protocol that starts TLS by a command.
struct LeadingText {
  /// Bytes of the text that end with a line or a tag; 0: it is none.
  let length: Int
  /// Whether all bytes so far are text.
  let isAll: Bool
  /// Whether the text may still become a preamble: all bytes are text, and it begins like a preamble.
  let mayGrow: Bool
  let kind: Preamble

  init(_ bytes: RawSpan) {
    var (end, boundary) = (0, 0)
    while end < bytes.byteCount, Self.isText(bytes.byte(at: end)) {
      if bytes.byte(at: end) == 0x0a || bytes.byte(at: end) == UInt8(ascii: ">") { boundary = end + 1 }
      end += 1
    }
    isAll = end == bytes.byteCount
    // Letters and digits begin the commands and answers of such protocols, and a few marks; JSON is none.
    let first = bytes.byteCount > 0 ? bytes.byte(at: 0) : 0
    let begins = (0x30...0x39).contains(first) || (0x41...0x5a).contains(first & 0xdf) || "*+-.<".utf8.contains(first)
    length = begins ? boundary : 0
    mayGrow = begins && isAll
    let text = String(decoding: Array(copying: bytes.extracting(0..<length)), as: UTF8.self).uppercased()
    kind = ["STARTTLS", "STLS", "AUTH TLS"].contains { text.contains($0) } ? .startTLS : .text
  }

  private static func isText(_ byte: UInt8) -> Bool { (0x20...0x7e).contains(byte) || (0x09...0x0d).contains(byte) }
}
