import TLSFoundation

/// The configuration of one side of TLS connections, for a `TLSContext`.
public struct TLSConfiguration: Sendable {
  /// The side of a connection.
  public enum Side: Sendable { case client, server }

  /// The certificate that the peer has to present.
  public enum PeerCertificate: Sendable {
    case notAsked
    /// Requested: a peer without a certificate is accepted, a peer with an invalid one is not.
    case optional
    case required
  }

  /// The side for which the configuration is.
  public var side: Side
  /// The certificate to present; a server needs one.
  public var identity: Identity?
  /// The protocol versions that are allowed.
  public var versions: ClosedRange<TLSVersion>
  /// OpenSSL's cipher string for versions up to TLS 1.2; `nil`: OpenSSL's default.
  public var cipherList: String?
  /// OpenSSL's list of suites for TLS 1.3; `nil`: OpenSSL's default.
  public var cipherSuites: String?
  /// The certificate that the peer has to present.
  public var peerCertificate: PeerCertificate
  /// The SHA-256 of the peer's public key (its SubjectPublicKeyInfo); another key fails the handshake. `nil`: any key. It holds
  /// beside `peerCertificate`, which may then be `notAsked`.
  public var pinnedKey: [UInt8]?
  /// A PEM file with trusted certificates; the peer's chain must lead to one of them.
  public var authorityFile: String?
  /// A PEM file with revocation lists; a revoked certificate fails the handshake.
  public var revocationListFile: String?
  /// The number of session tickets that a server sends after a TLS 1.3 handshake. None by default, because legacy
  /// clients take them for an error response. The ticket of TLS 1.2 is part of the handshake and harmless.
  public var ticketCount = 0
  /// Whether sessions may be resumed by ticket; if not, a server keeps sessions itself and resumes them by id (up to
  /// TLS 1.2).
  public var usesTickets = true
  /// Whether sessions may be resumed at all.
  public var resumesSessions = true
  /// The most sessions that a server keeps for resumption by id; the oldest are dropped. Each needs about 5 KB.
  public var sessionCacheSize = 20_480
  /// The application protocols that a server takes, by ALPN; none: a client's offer is not answered. A client that offers
  /// none of them is refused with an alert, and one that offers nothing is accepted.
  public var applicationProtocols: [String] = []
  /// The file to which secrets are written, so that a recording of the connections can be decrypted.
  public var keyLog: KeyLogFile?

  /// A server for old clients as well: TLS 1.0 to 1.3, OpenSSL's default suites, no tickets in TLS 1.3; clients must
  /// present a certificate.
  public static func server(identity: Identity) -> TLSConfiguration {
    TLSConfiguration(
      side: .server, identity: identity, versions: .tls10 ... .tls13, peerCertificate: .required)
  }

  /// A client with TLS 1.2 and 1.3 that verifies the server's certificate.
  public static func client(identity: Identity?) -> TLSConfiguration {
    TLSConfiguration(
      side: .client, identity: identity, versions: .tls12 ... .tls13, peerCertificate: .required)
  }

  private init(
    side: Side, identity: Identity?, versions: ClosedRange<TLSVersion>, peerCertificate: PeerCertificate
  ) {
    self.side = side
    self.identity = identity
    self.versions = versions
    self.peerCertificate = peerCertificate
  }
}
