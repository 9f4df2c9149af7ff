/// A conversation of SSL 3.0 to TLS 1.2 written record by record, for what libssl no longer speaks: SSL 3.0, RC4, single
/// and triple DES, a ClientHello in SSL 2.0's form. The key exchange is RSA.
///
///     let recorded = HandMadeTLS(version: .ssl30, suite: .rc4MD5).record()
///
/// Everything is real: the certificate, the encrypted premaster, the MACs, the Finished messages. It shares no code with
/// the product; libcrypto gives the primitives. All but the RSA keys and paddings is the same in every run of a seed.
public struct HandMadeTLS: Sendable {
  public typealias Side = RecordedConversation.Side

  public enum Version: UInt16, Sendable, CaseIterable, Comparable {
    case ssl30 = 0x0300
    case tls10 = 0x0301
    case tls11 = 0x0302
    case tls12 = 0x0303

    public static func < (a: Version, b: Version) -> Bool { a.rawValue < b.rawValue }
  }

  public struct Suite: Sendable, Equatable {
    public var number: UInt16
    /// OpenSSL's name.
    public var name: String
    /// libcrypto's name of the cipher.
    var cipher: String
    var keyLength: Int
    /// 0 for a stream cipher.
    var blockLength: Int
    /// `MD5` or `SHA1`.
    var digest: String
    var macLength: Int { digest == "MD5" ? 16 : 20 }

    public static let rc4MD5 = Suite(0x0004, "RC4-MD5", "RC4", key: 16, block: 0, digest: "MD5")
    public static let rc4SHA = Suite(0x0005, "RC4-SHA", "RC4", key: 16, block: 0)
    public static let desSHA = Suite(0x0009, "DES-CBC-SHA", "DES-CBC", key: 8, block: 8)
    public static let tripleDESSHA = Suite(0x000a, "DES-CBC3-SHA", "DES-EDE3-CBC", key: 24, block: 8)
    public static let aes128SHA = Suite(0x002f, "AES128-SHA", "AES-128-CBC", key: 16, block: 16)
    public static let aes256SHA = Suite(0x0035, "AES256-SHA", "AES-256-CBC", key: 32, block: 16)
    public static let seedSHA = Suite(0x0096, "SEED-SHA", "SEED-CBC", key: 16, block: 16)
    public static let all = [rc4MD5, rc4SHA, desSHA, tripleDESSHA, aes128SHA, aes256SHA, seedSHA]

    private init(_ number: UInt16, _ name: String, _ cipher: String, key: Int, block: Int, digest: String = "SHA1") {
      self.number = number
      self.name = name
      self.cipher = cipher
      self.keyLength = key
      self.blockLength = block
      self.digest = digest
    }
  }

  /// What happens after the handshake.
  public enum Action: Sendable {
    case write(Side, [UInt8])
    /// close_notify.
    case close(Side)
  }

  public var version: Version
  public var suite: Suite
  /// The version in the ClientHello and the premaster; nil for `version`.
  public var offeredVersion: Version?
  /// The first message of the client is in SSL 2.0's form, with a challenge of this many bytes (16 to 32).
  public var ssl2Challenge: Int?
  /// The server asks for a certificate, and the client gives the one of a push provider and signs.
  public var givesClientCertificate = false
  /// Plaintext bytes in a record at most; handshake messages are cut too.
  public var maxFragment = 1 << 14
  /// Blocks of padding more than needed, TLS and CBC only.
  public var extraPaddingBlocks = 0
  /// An empty record before each record of data.
  public var insertsEmptyFragments = false
  public var seed: UInt64 = 1
  public var script: [Action]

  public init(version: Version, suite: Suite, script: [Action] = HandMadeTLS.sampleScript) {
    self.version = version
    self.suite = suite
    self.script = script
  }

  /// A few writes of both sides, from one byte to more than a record takes.
  public static let sampleScript: [Action] = TLSConversation.sampleScript.compactMap {
    switch $0 {
    case .write(let side, let bytes): .write(side, bytes)
    case .close(let side): .close(side)
    default: nil
    }
  }

  /// Makes the conversation. Throws where OpenSSL's legacy provider is not installed, as does `recordResumption`.
  public func record() throws -> RecordedConversation {
    try LegacyCrypto.load()
    var exchange = HandMadeExchange(self, seed: seed)
    exchange.handshake()
    exchange.talk()
    return exchange.recorded
  }

  /// Makes the conversation, and then one that resumes its session by session id.
  public func recordResumption() throws -> (first: RecordedConversation, second: RecordedConversation) {
    try LegacyCrypto.load()
    var first = HandMadeExchange(self, seed: seed)
    first.handshake()
    first.talk()
    var second = HandMadeExchange(self, seed: seed &+ 1)
    second.resume(first)
    second.talk()
    return (first.recorded, second.recorded)
  }
}
