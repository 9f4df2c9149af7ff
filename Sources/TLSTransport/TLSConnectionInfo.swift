import TLSFoundation

/// The parameters that a handshake negotiated: a user inbound event of `TLSHandler` after the handshake.
public struct TLSConnectionInfo: Sendable, Equatable {
  /// The protocol version.
  public var version: TLSVersion
  /// OpenSSL's name of the suite: "ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_AES_128_GCM_SHA256".
  public var cipherSuite = ""
  /// The registered number of the suite; 0 if unknown.
  public var suiteNumber: UInt16 = 0
  /// Whether an earlier session was resumed.
  public var isResumed: Bool
  /// The server name that the client requested (SNI); legacy clients send none.
  public var serverName: String?
  /// The application protocol that was negotiated (ALPN), such as `h2`; `nil` without one.
  public var applicationProtocol: String?
  /// The certificate of the peer; `nil` if it presented none.
  public var peer: Peer?

  package init(version: TLSVersion, isResumed: Bool) {
    self.version = version
    self.isResumed = isResumed
  }

  /// The subject and topic of the peer's certificate.
  public struct Peer: Sendable, Equatable {
    /// The subject in the form of RFC 4514, in the certificate's own order.
    public var subject: String
    /// The first topic of a provider's certificate.
    public var topic: String?
    /// All topics of a provider's certificate: those of its subject, and of Apple's extension
    /// 1.2.840.113635.100.6.3.6.
    public var topics: [String] = []
  }
}
