import TLSFoundation

/// The parameters that a handshake agreed on; comes as a user inbound event when it is over.
public struct TLSConnectionInfo: Sendable, Equatable {
  public var version: TLSVersion
  /// OpenSSL's name: "ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_AES_128_GCM_SHA256".
  public var cipherSuite = ""
  /// An earlier session was resumed.
  public var isResumed: Bool
  /// Whom the client asked for (SNI). Legacy clients do not say.
  public var serverName: String?
  /// Whom the peer's certificate names; `nil` when it showed none.
  public var peer: Peer?

  package init(version: TLSVersion, isResumed: Bool) {
    self.version = version
    self.isResumed = isResumed
  }

  /// The subject and topic of the peer's certificate.
  public struct Peer: Sendable, Equatable {
    /// The subject in the form of RFC 4514, in the certificate's own order.
    public var subject: String
    /// The first topic that a provider's certificate is for.
    public var topic: String?
  }
}
