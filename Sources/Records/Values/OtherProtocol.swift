import Bytes
import TLSDecryption

/// A protocol other than this one, recognised by the first bytes of a direction.
///
/// The cases are protocols that their first bytes identify beyond doubt, or that both ends negotiated.
public enum OtherProtocol: String, Sendable {
  case http1, http2, ssh
  /// The device channel of the simulator, which is read.
  case devices
  /// Local push connectivity, which is read.
  case localPush = "local_push"
  /// TLS on a port of neither service, with nothing that could be read. Further facts about it, and about TLS on other
  /// ports, are in a connection's `tls`.
  case tls

  /// Bytes that suffice.
  package static let longest = 16

  private static let beginnings: [(OtherProtocol, [String])] = [
    (.http2, ["PRI * HTTP/2.0\r\n"]), (.ssh, ["SSH-2.0-", "SSH-1."]),
    (
      .http1,
      // The first four bytes of a feedback tuple are a time, and may be any.
      [
        "HTTP/1.", "GET /", "POST /", "HEAD /", "PUT /", "DELETE /", "OPTIONS /", "OPTIONS *", "CONNECT ", "PATCH /",
        "TRACE /",
      ]
    ),
  ]

  /// The SETTINGS frame that a server of HTTP/2 begins with:
  /// `length u24, of entries of 6 | type 4 | flags 0 | stream 0`.
  private static func isSettings(_ bytes: [UInt8]) -> Bool {
    bytes.count >= 9 && bytes[0] == 0 && bytes[1] == 0 && bytes[2] % 6 == 0 && bytes[3] == 4
      && bytes[4..<9].allSatisfy { $0 == 0 }
  }

  /// The protocol negotiated in TLS (ALPN): the server's choice, or, if that was not seen and the client offered HTTP
  /// alone, HTTP/2 if it is among the offers: whatever their order, servers that have it choose it.
  package init?(_ tls: TLSSummary) {
    let names = tls.chosenProtocol.map { [$0] } ?? tls.offeredProtocols
    let known = ["h2": OtherProtocol.http2, "http/1.1": .http1, "http/1.0": .http1]
    let kinds = names.map { known[$0] }
    guard let first = kinds.first, let kind = first, kinds.allSatisfy({ $0 != nil }) else { return nil }
    self = kinds.contains(.http2) ? .http2 : kind
  }

  package init?(beginning bytes: [UInt8]) {
    if Self.isSettings(bytes) {
      self = .http2
      return
    }
    let found = Self.beginnings.first { $0.1.contains { bytes.starts(with: Array($0.utf8)) } }
    guard let found else { return nil }
    self = found.0
  }

  /// The end of a finding's sentence that names the protocol.
  package var advice: String {
    switch self {
    case .http1: "; apnscope does not decode it, Wireshark does"
    case .http2: "; notifications in it are read where it is in clear or decrypted"
    case .ssh, .tls: ""
    case .devices, .localPush: "; no message was found"
    }
  }

  /// The protocol's common name.
  public var name: String {
    switch self {
    case .http1: "HTTP"
    case .http2: "HTTP/2"
    case .ssh: "SSH"
    case .tls: "TLS"
    case .devices: "device channel"
    case .localPush: "local push"
    }
  }
}
