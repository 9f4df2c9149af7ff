/// A TLS conversation to be made in this process by libssl itself, and recorded.
///
///     let recorded = try TLSConversation(version: .tls12, suite: "AES128-SHA", script: [
///       .write(.client, push), .write(.server, refusal), .close(.server),
///     ]).record()
///
/// Client and server are joined by memory, not by sockets: what one sends the other has read before anything else
/// happens. Everything but the keys and nonces is the same in every run.
public struct TLSConversation: Sendable {
  public typealias Side = RecordedConversation.Side

  public enum Version: UInt16, Sendable, CaseIterable {
    case tls10 = 0x0301
    case tls11 = 0x0302
    case tls12 = 0x0303
    case tls13 = 0x0304
  }

  /// What happens after the handshake.
  public enum Action: Sendable {
    /// Application bytes; the peer reads them at once.
    case write(Side, [UInt8])
    /// Application bytes in a flush whose last bit was turned over: the peer refuses with a fatal alert.
    case writeTampered(Side, [UInt8])
    /// A new handshake in the encrypted connection, up to TLS 1.2. A client's needs `allowsClientRenegotiation`.
    case renegotiate(Side, abbreviated: Bool = false)
    /// New keys for what `Side` sends, and if `asksPeer` for the other direction too; TLS 1.3.
    case updateKey(Side, asksPeer: Bool)
    /// close_notify. The other side may still write.
    case close(Side)
  }

  public enum ClientAuthentication: Sendable {
    case none
    /// The server asks for a certificate, and the client has one with the subject of a push provider.
    case given
    /// The server insists on a certificate, and the client has none: the server refuses with a fatal alert.
    case missing
  }

  public struct PreSharedKey: Sendable {
    public var identity: String
    public var key: [UInt8]

    public init(identity: String = "provider", key: [UInt8] = Array(0..<32)) {
      self.identity = identity
      self.key = key
    }
  }

  public var version: Version
  /// OpenSSL's name of the only suite the client offers; nil for its usual offer.
  public var suite: String?
  /// The only suite the server takes, if it is not the client's.
  public var serverSuite: String?
  /// The key of the server's certificate.
  public var serverKey: TLSIdentity.KeyKind = .rsa
  public var clientAuthentication: ClientAuthentication = .none
  /// The key of the client's certificate.
  public var clientKey: TLSIdentity.KeyKind = .rsa
  /// For the PSK suites up to TLS 1.2, and as an external key in TLS 1.3 (suites with SHA-256).
  public var preSharedKey: PreSharedKey?
  /// The name in the ClientHello.
  public var serverName: String?
  /// What the client offers in ALPN, of which the server takes the first; none: nothing is offered.
  public var applicationProtocols: [String] = []
  public var usesExtendedMasterSecret = true
  public var usesEncryptThenMAC = true
  /// Without tickets sessions are kept by the server: under a session id, or in TLS 1.3 under a PSK identity.
  public var usesTickets = true
  public var allowsClientRenegotiation = false
  /// Sends the ChangeCipherSpec records of TLS 1.3 that mean nothing.
  public var usesMiddleboxCompatibility = true
  /// Up to TLS 1.0, CBC suites: an empty record before each record of data.
  public var insertsEmptyFragments = true
  /// The server does not take the client's first key share, so that it asks again; TLS 1.3.
  public var asksForAnotherKeyShare = false
  /// Plaintext bytes in a record at most, 512 to 16384; handshake messages are cut too.
  public var maxFragment: Int?
  /// Pads each TLS 1.3 record to a multiple of this length.
  public var paddingBlock: Int?
  /// What the client of a resumed TLS 1.3 conversation sends with its first flight.
  public var earlyData: [UInt8] = []
  /// The server passes over the early data.
  public var rejectsEarlyData = false
  public var script: [Action]
  /// Whether a conversation that breaks is what the test wants. Else `record()` throws.
  public var mayFail = false

  public init(version: Version, suite: String? = nil, script: [Action] = TLSConversation.sampleScript) {
    self.version = version
    self.suite = suite
    self.script = script
  }

  /// A few writes of both sides, from one byte to more than a record takes.
  public static let sampleScript: [Action] = [
    .write(.client, Array("first words of the client".utf8)),
    .write(.server, Array("first words of the server".utf8)),
    .write(.client, [0x2a]),
    .write(.client, (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }),
    .write(.server, (0..<300).map { UInt8(truncatingIfNeeded: $0 &* 7) }),
    .close(.client), .close(.server),
  ]

  /// Makes the conversation.
  public func record() throws -> RecordedConversation {
    let contexts = try TLSContexts(for: self)
    return try TLSExchange(self, in: contexts, resuming: nil).run().recorded
  }

  /// Makes the conversation, and then a second one that resumes its session: by ticket, by session id (`usesTickets`
  /// false) or by TLS 1.3's PSK. `earlyData` belongs to the second, which says `script` if given.
  public func recordResumption(
    script: [Action]? = nil
  ) throws -> (first: RecordedConversation, second: RecordedConversation) {
    let contexts = try TLSContexts(for: self)
    var beginning = self
    beginning.earlyData = []
    let (first, session) = try TLSExchange(beginning, in: contexts, resuming: nil).run()
    var rest = self
    rest.script = script ?? self.script
    let (second, _) = try TLSExchange(rest, in: contexts, resuming: session).run()
    return (first, second)
  }
}
