/// The kind of secret of a key log line, by its NSS label, which other libraries adopted (RFC
/// draft-ietf-tls-keylogfile).
enum KeyLogLabel: UInt8, CaseIterable {
  /// Client random, master secret: up to TLS 1.2.
  case clientRandom = 1
  /// The first 8 bytes of the encrypted premaster secret, premaster secret.
  case rsa
  /// Session id, master secret: `RSA Session-ID:… Master-Key:…`.
  case sessionID
  /// Client random, premaster secret.
  case premaster
  case clientEarlyTraffic
  case clientHandshakeTraffic
  case serverHandshakeTraffic
  case clientTraffic
  case serverTraffic

  var text: String {
    switch self {
    case .clientRandom: "CLIENT_RANDOM"
    case .rsa, .sessionID: "RSA"
    case .premaster: "PMS_CLIENT_RANDOM"
    case .clientEarlyTraffic: "CLIENT_EARLY_TRAFFIC_SECRET"
    case .clientHandshakeTraffic: "CLIENT_HANDSHAKE_TRAFFIC_SECRET"
    case .serverHandshakeTraffic: "SERVER_HANDSHAKE_TRAFFIC_SECRET"
    case .clientTraffic: "CLIENT_TRAFFIC_SECRET_0"
    case .serverTraffic: "SERVER_TRAFFIC_SECRET_0"
    }
  }
}

/// One line of a key log.
struct KeyLogLine: Equatable {
  var label: KeyLogLabel
  /// The key that the secret is found by: a client random, or as the label says.
  var key: [UInt8]
  var secret: [UInt8]

  init(_ label: KeyLogLabel, key: [UInt8], secret: [UInt8]) {
    self.label = label
    self.key = key
    self.secret = secret
  }

  /// Reads a line without its end; `nil` for comments, other labels and damage.
  init?(parsing line: Span<UInt8>) {
    guard let start = KeyLogLineStart(line) else { return nil }
    var position = start.keyStart
    let key = Self.hex(line, &position)
    var secretStart = position
    if start.label == .sessionID {
      let mark = Array(" Master-Key:".utf8)
      guard position + mark.count <= line.count else { return nil }
      for (index, byte) in mark.enumerated() where line[position + index] != byte { return nil }
      secretStart = position + mark.count
    } else {
      while secretStart < line.count, line[secretStart] == 0x20 { secretStart += 1 }
      guard secretStart > position else { return nil }
    }
    position = secretStart
    let secret = Self.hex(line, &position)
    while position < line.count, line[position] == 0x20 || line[position] == 0x0d || line[position] == 0x09 {
      position += 1
    }
    // Anything but blanks after the secret, or an odd digit, is damage.
    guard position == line.count, !secret.isEmpty else { return nil }
    switch start.label {
    case .clientRandom, .sessionID: guard secret.count == 48 else { return nil }
    case .rsa, .premaster: break
    default: guard (32...64).contains(secret.count) else { return nil }
    }
    guard key.count == start.keyLength else { return nil }
    self.init(start.label, key: key, secret: secret)
  }

  private static func hex(_ line: Span<UInt8>, _ position: inout Int) -> [UInt8] {
    var bytes: [UInt8] = []
    while position + 1 < line.count {
      let high = hexDigit(line[position])
      let low = hexDigit(line[position + 1])
      guard high < 16, low < 16 else { break }
      bytes.append(high << 4 | low)
      position += 2
    }
    return bytes
  }

  /// The line as in a key log, with its line feed.
  var text: String {
    func hex(_ bytes: [UInt8]) -> String {
      var text = ""
      for byte in bytes {
        text.append(byte < 16 ? "0" : "")
        text += String(byte, radix: 16)
      }
      return text
    }
    if label == .sessionID { return "RSA Session-ID:\(hex(key)) Master-Key:\(hex(secret))\n" }
    return "\(label.text) \(hex(key)) \(hex(secret))\n"
  }
}

/// The parts of a line that an index of millions of lines needs.
struct KeyLogLineStart {
  var label: KeyLogLabel
  /// The offset of the key's hexadecimal digits.
  var keyStart: Int
  /// Bytes of the key.
  var keyLength: Int
  /// The hash of the key, for the index.
  var hash: UInt64

  init?(_ line: Span<UInt8>) {
    var start = 0
    while start < line.count, line[start] == 0x20 || line[start] == 0x09 { start += 1 }
    guard let (found, labelLength) = Self.label(line, start) else { return nil }
    var label = found
    keyStart = start + labelLength + 1
    while keyStart < line.count, line[keyStart] == 0x20 { keyStart += 1 }
    if label == .rsa, keyStart + 11 <= line.count, line[keyStart] == 0x53 {
      for (index, byte) in "Session-ID:".utf8.enumerated() where line[keyStart + index] != byte { return nil }
      label = .sessionID
      keyStart += 11
    }
    self.label = label
    // The hash covers the first 16 bytes, which are random enough. The other digits are validated when the line is
    // used.
    var hash = KeyLogHash()
    var position = keyStart
    while position < min(line.count, keyStart + 32) {
      let digit = hexDigit(line[position])
      guard digit < 16 else { break }
      hash.add(digit)
      position += 1
    }
    switch label {
    case .rsa: guard position == keyStart + 16 else { return nil }
    case .sessionID: while position < line.count, hexDigit(line[position]) < 16 { position += 1 }
    default:
      guard position == keyStart + 32 else { return nil }
      position = keyStart + 64
    }
    let digits = position - keyStart
    guard digits % 2 == 0, digits <= 64, position < line.count, line[position] == 0x20 else { return nil }
    keyLength = digits / 2
    self.hash = hash.value
  }

  /// Identifies a label by its length; labels of equal length by their first letter.
  private static func label(_ line: Span<UInt8>, _ start: Int) -> (KeyLogLabel, Int)? {
    var end = start
    while end < line.count, line[end] != 0x20, end - start < 32 { end += 1 }
    let label: KeyLogLabel
    switch end - start {
    case 3: label = .rsa
    case 13: label = .clientRandom
    case 17: label = .premaster
    case 27: label = .clientEarlyTraffic
    case 31: label = line[start] == 0x43 ? .clientHandshakeTraffic : .serverHandshakeTraffic
    case 23: label = line[start] == 0x43 ? .clientTraffic : .serverTraffic
    default: return nil
    }
    var position = start
    for byte in label.text.utf8 {
      guard line[position] == byte else { return nil }
      position += 1
    }
    return (label, end - start)
  }
}

/// A hash of a key's hexadecimal digits.
struct KeyLogHash {
  private(set) var value: UInt64 = 0
  private var digits: UInt64 = 0
  private var count = 0

  mutating func add(_ digit: UInt8) {
    digits = digits << 4 | UInt64(digit)
    count += 1
    if count % 16 == 0 { value = (value ^ digits) &* 0x9e37_79b9_7f4a_7c15 ^ value >> 29 }
  }

  static func of(_ key: [UInt8]) -> UInt64 {
    var hash = KeyLogHash()
    for byte in key.prefix(16) {
      hash.add(byte >> 4)
      hash.add(byte & 15)
    }
    return hash.value
  }
}

/// 0–15, or 255 for other characters.
@inline(__always)
private func hexDigit(_ byte: UInt8) -> UInt8 {
  switch byte {
  case 0x30...0x39: byte &- 0x30
  case 0x41...0x46: byte &- 0x37
  case 0x61...0x66: byte &- 0x57
  default: 255
  }
}
