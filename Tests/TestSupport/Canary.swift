/// Secrets that no redacted output may hold, and what of them would tell.
public struct Canary: Sendable {
  public let text: String
  /// Pieces of it that nobody writes by chance.
  private let pieces: [String]

  private init(_ text: String, pieces: [String]? = nil) {
    self.text = text
    self.pieces = pieces ?? [text]
  }

  /// Twenty shapes: words of several scripts, numbers, addresses and names of things.
  public static let all: [Canary] = [
    Canary("Zebrafinch", pieces: ["Zebra", "finch"]), Canary("Quokka Wombat", pieces: ["Quokka", "Wombat"]),
    Canary("Привет Анна", pieces: ["Привет", "Анна"]), Canary("张伟欠五百元", pieces: ["张伟", "五百"]),
    Canary("สวัสดีอันนา", pieces: ["สวัสดี", "อันนา"]), Canary("مرحبا بك يا", pieces: ["مرحبا"]), Canary("🦓🐦🦘🐨"),
    Canary("482913", pieces: ["482913"]), Canary("+49 171 2349876", pieces: ["2349876"]),
    Canary("anna.quoll@example.org", pieces: ["anna.q", "quoll"]),
    Canary("b7e94d1c80f35a26b7e94d1c80f35a26b7e94d1c80f35a26b7e94d1c80f35a26", pieces: ["b7e94d1c", "80f35a26"]),
    Canary("7d3c9b52-4e81-4f06-a9d7-15b8c2e60f43", pieces: ["7d3c9b52", "15b8c2e60f43"]),
    Canary("DE44500105175407324931", pieces: ["5001051754", "07324931"]),
    Canary("https://kiwi.example/r/9f2Qx?u=7731905", pieces: ["kiwi.ex", "9f2Qx", "7731905"]),
    Canary("/home/numbat/letters.txt", pieces: ["numbat", "letters"]),
    Canary("203.0.113.77", pieces: ["203.0.113.77"]), Canary("2001:db8:77::beef", pieces: ["2001:db8:77"]),
    Canary("4929 7712 5562 8830", pieces: ["4929 7712", "5562 8830"]), Canary("48291.3705", pieces: ["48291.37"]),
    Canary("Müller-Lüdenscheidt", pieces: ["Müller", "denscheidt"]),
  ]

  /// Whether a piece of it is in `bytes` as UTF-8, UTF-16 or UTF-32 in either order, ISO 8859-1, hexadecimal digits of
  /// UTF-8, or escapes of JSON.
  public func isIn(_ bytes: [UInt8]) -> Bool {
    pieces.contains { piece in Self.forms(of: piece).contains { Self.holds(bytes, $0) } }
  }

  /// Those of all shapes that are in an output.
  public static func found(in bytes: [UInt8]) -> [String] { all.filter { $0.isIn(bytes) }.map(\.text) }
  public static func found(in text: String) -> [String] { found(in: Array(text.utf8)) }

  private static func forms(of piece: String) -> [[UInt8]] {
    let hex = piece.utf8.map { String(Int($0) + 0x100, radix: 16).dropFirst() }.joined()
    var forms = [Encoding.escapes, .utf8, .utf16LE, .utf16BE, .utf32LE, .utf32BE].map { $0.bytes(of: piece) }
    forms.append(Array(hex.utf8))
    if piece.unicodeScalars.allSatisfy({ $0.value < 0x100 }) { forms.append(Encoding.latin1.bytes(of: piece)) }
    return forms
  }

  private static func holds(_ bytes: [UInt8], _ form: [UInt8]) -> Bool {
    guard let first = form.first, bytes.count >= form.count else { return false }
    var offset = 0
    while let place = bytes[offset...].firstIndex(of: first), place + form.count <= bytes.count {
      if bytes[place..<place + form.count].elementsEqual(form) { return true }
      offset = place + 1
    }
    return false
  }

  /// How a text may stand in a payload.
  public enum Encoding: CaseIterable, Sendable {
    case utf8, utf8BOM, utf16LE, utf16BE, utf32LE, utf32BE, latin1, escapes

    /// - Returns: characters that ISO 8859-1 lacks become their lowest eight bits; escapes are of all but ASCII marks.
    public func bytes(of text: String) -> [UInt8] {
      func split(_ value: UInt32, _ count: Int, bigEndian: Bool) -> [UInt8] {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) }
        return bigEndian ? bytes.reversed() : bytes
      }
      switch self {
      case .utf8: return Array(text.utf8)
      case .utf8BOM: return [0xef, 0xbb, 0xbf] + Array(text.utf8)
      case .utf16LE: return text.utf16.flatMap { split(UInt32($0), 2, bigEndian: false) }
      case .utf16BE: return text.utf16.flatMap { split(UInt32($0), 2, bigEndian: true) }
      case .utf32LE: return text.unicodeScalars.flatMap { split($0.value, 4, bigEndian: false) }
      case .utf32BE: return text.unicodeScalars.flatMap { split($0.value, 4, bigEndian: true) }
      case .latin1: return text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
      case .escapes:
        return text.utf16.flatMap { unit -> [UInt8] in
          let isMark = unit < 0x80 && !Character(Unicode.Scalar(UInt8(unit))).isLetter
          if isMark { return [UInt8(unit)] }
          let digits = String(Int(unit) + 0x1_0000, radix: 16).dropFirst()
          return Array("\\u\(digits)".utf8)
        }
      }
    }
  }
}
