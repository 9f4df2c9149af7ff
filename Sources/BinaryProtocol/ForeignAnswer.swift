import Bytes

/// The beginning of an answer that is not an error response, and the protocol that it resembles.
///
/// Used only for messages and their advice.
package struct ForeignAnswer: Sendable, Equatable, CustomStringConvertible {
  package enum Kind: Sendable, Equatable {
    case http
    case markup
    case tlsAlert
    case tlsHandshake
    case ssh
    /// A greeting of SMTP, FTP, POP3 or IMAP.
    case greeting
    case text
    case bytes
  }

  package let kind: Kind
  /// The answer's first bytes, at most `longest`.
  package let bytes: [UInt8]

  /// The most bytes that are kept.
  package static let longest = 16

  /// - Parameter answer: its beginning.
  package init(_ answer: some Sequence<UInt8>) {
    bytes = Array(answer.prefix(Self.longest))
    kind = Self.kind(of: bytes)
  }

  private static func kind(of bytes: [UInt8]) -> Kind {
    // | content type | version 3.x |
    if bytes.starts(with: [21, 3]) { return .tlsAlert }
    if bytes.starts(with: [22, 3]) { return .tlsHandshake }
    func begins(_ text: String) -> Bool { bytes.starts(with: text.utf8) }
    if begins("HTTP/") { return .http }
    if begins("<") { return .markup }
    if begins("SSH-") { return .ssh }
    if ["220 ", "220-", "+OK ", "* OK "].contains(where: begins) { return .greeting }
    let isText = !bytes.isEmpty && bytes.allSatisfy { (0x20...0x7e).contains($0) || [9, 10, 13].contains($0) }
    return isText ? .text : .bytes
  }

  /// The name of the protocol, and the first bytes in hexadecimal: "HTML or XML (3c21444f43545950)".
  package var description: String {
    let name =
      switch kind {
      case .http: "HTTP"
      case .markup: "HTML or XML"
      case .tlsAlert: "a TLS alert"
      case .tlsHandshake: "a TLS handshake"
      case .ssh: "SSH"
      case .greeting: "the greeting of a mail or file server"
      case .text: "text"
      case .bytes: "bytes of an unknown protocol"
      }
    var hex = ByteWriter(capacity: 2 * bytes.count)
    hex.write(hex: bytes.rawBytes)
    return "\(name) (\(String(decoding: Array(copying: hex.bytes), as: UTF8.self)))"
  }
}
