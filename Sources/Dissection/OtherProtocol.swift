import Bytes

/// Another protocol than this one, recognised by the first bytes of a direction.
///
/// Only what its first bytes tell beyond doubt.
public enum OtherProtocol: String, Sendable {
  case http1, http2, ssh
  /// TLS on a port of neither service, and nothing in it that could be read. What else is known of it, and of TLS on
  /// other ports, is in a connection's `tls`.
  case tls

  /// Bytes that suffice.
  static let longest = 16

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

  init?(beginning bytes: [UInt8]) {
    let found = Self.beginnings.first { $0.1.contains { bytes.starts(with: Array($0.utf8)) } }
    guard let found else { return nil }
    self = found.0
  }

  /// As people call it.
  public var name: String {
    switch self {
    case .http1: "HTTP"
    case .http2: "HTTP/2"
    case .ssh: "SSH"
    case .tls: "TLS"
    }
  }
}
