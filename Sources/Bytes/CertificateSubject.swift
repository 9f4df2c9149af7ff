/// A certificate's subject, read from its text: `UID=com.example.app,CN=Apple Push Services: com.example.app`.
///
/// The text is as in RFC 4514: parts are separated by commas, or by plus signs within a multi-valued part, and
/// backslashes escape literal characters. The parts may be in either order.
package struct CertificateSubject {
  private let parts: [(name: String, value: String)]

  /// - Parameter text: the subject; anything that is not a part with a name is skipped.
  package init(_ text: String) {
    var parts: [(String, String)] = []
    var (name, value): (String?, [UInt8]) = (nil, [])
    func end() {
      if let name { parts.append((name, String(decoding: value, as: UTF8.self))) }
      (name, value) = (nil, [])
    }
    var bytes = text.utf8.makeIterator()
    while let byte = bytes.next() {
      switch byte {
      case UInt8(ascii: ","), UInt8(ascii: "+"): end()
      case UInt8(ascii: "=") where name == nil:
        name = String(decoding: value.drop { $0 == UInt8(ascii: " ") }, as: UTF8.self)
        value = []
      case UInt8(ascii: "\\"):
        guard let escaped = bytes.next() else { break }
        // A byte in hexadecimal digits, or a character as it is.
        if let high = Self.digit(escaped) {
          if let low = bytes.next().flatMap(Self.digit) { value.append(high << 4 | low) }
        } else {
          value.append(escaped)
        }
      default: value.append(byte)
      }
    }
    end()
    self.parts = parts
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// The topics that a provider may push to: the UIDs, as Apple's certificates have them; without one, the app's
  /// identifier that Apple writes at the end of the CN, as `Apple Push Services: com.example.app`.
  package var topics: [String] {
    let identifiers = values(of: "UID").filter { !$0.isEmpty }
    if !identifiers.isEmpty { return identifiers }
    let last = values(of: "CN").first.flatMap { name in
      name.split(separator: ": ", omittingEmptySubsequences: false).dropFirst().last
    }
    return last.map { $0.contains(".") && !$0.contains(" ") ? [String($0)] : [] } ?? []
  }

  /// The name that reports show of a certificate: its topics, otherwise its CN.
  package var name: String? { topics.isEmpty ? values(of: "CN").first : topics.joined(separator: ", ") }

  private func values(of name: String) -> [String] { parts.filter { $0.name == name }.map(\.value) }
}
