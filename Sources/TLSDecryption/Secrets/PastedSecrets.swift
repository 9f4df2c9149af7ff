/// Converts secrets in other forms to lines of a key log: a key log in UTF-16, as PowerShell writes it, or the output
/// of `openssl s_client` or `openssl sess_id`, which has the sessions of TLS up to 1.2.
struct PastedSecrets {
  private(set) var keyLog: [UInt8]
  private(set) var isOfSessions = false

  /// `nil` when it is neither.
  init?(_ bytes: [UInt8]) {
    let text = Self.utf16(bytes)
    let sessions = Self.sessions(text ?? bytes)
    if !sessions.isEmpty {
      (keyLog, isOfSessions) = (sessions, true)
    } else if let text {
      keyLog = text
    } else {
      return nil
    }
  }

  /// The text of UTF-16, which is detected by its byte order mark or by zeros beside letters.
  private static func utf16(_ bytes: [UInt8]) -> [UInt8]? {
    guard bytes.count >= 4 else { return nil }
    let isBig: Bool
    switch (bytes[0], bytes[1]) {
    case (0xff, 0xfe): isBig = false
    case (0xfe, 0xff): isBig = true
    case (0, 1...): isBig = true
    case (1..., 0): isBig = false
    default: return nil
    }
    var units: [UInt16] = []
    for index in stride(from: 0, to: bytes.count - 1, by: 2) {
      let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
      units.append(isBig ? first << 8 | second : second << 8 | first)
    }
    return Array(String(decoding: units.first == 0xfeff ? units.dropFirst() : units[...], as: UTF16.self).utf8)
  }

  /// `Session-ID: …` and, lines below it, `Master-Key: …`. With tickets the identifier may be empty.
  private static func sessions(_ text: [UInt8]) -> [UInt8] {
    var lines: [UInt8] = []
    var identifier: ArraySlice<UInt8> = []
    for line in text.split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) {
      let line = line.drop { $0 == 0x20 || $0 == 0x09 }
      func value(_ name: String) -> ArraySlice<UInt8>? {
        guard line.starts(with: Array(name.utf8)) else { return nil }
        let digits = line.dropFirst(name.utf8.count).drop { $0 == 0x20 }
        return digits.prefix { (0x30...0x39).contains($0) || (0x41...0x46).contains($0 & 0xdf) }
      }
      if let found = value("Session-ID:") {
        identifier = found
      } else if let master = value("Master-Key:"), master.count == 96 {
        let key = identifier.isEmpty ? Array(repeating: UInt8(ascii: "0"), count: 64)[...] : identifier
        lines += Array("RSA Session-ID:".utf8) + key + Array(" Master-Key:".utf8) + master + [0x0a]
        identifier = []
      }
    }
    return lines
  }
}
