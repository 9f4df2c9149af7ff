import TLSFoundation

/// The protection of a connection's records, as the ServerHello names it.
///
/// All parameters of decryption are derived from the registered name: `TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256` has key
/// exchange, cipher and MAC.
public struct CipherSuite: Sendable, Hashable {
  /// The registered number.
  public var code: UInt16
  /// Makes a suite from its number.
  ///
  /// - Parameter code: a registered number, or any other.
  public init(code: UInt16) { self.code = code }

  /// The protection of records.
  enum Protection: Sendable, Equatable {
    /// Authenticated, but not encrypted.
    case null
    case rc4
    /// CBC with a MAC.
    case block(cipher: String, keyLength: Int, blockLength: Int)
    /// `explicitLength` bytes of the nonce are sent with each record in TLS 1.2.
    case aead(cipher: String, keyLength: Int, tagLength: Int, explicitLength: Int)

    /// OpenSSL's name for the cipher.
    var cipher: String? {
      switch self {
      case .null: nil
      case .rc4: "RC4"
      case .block(let cipher, _, _), .aead(let cipher, _, _, _): cipher
      }
    }

    var keyLength: Int {
      switch self {
      case .null: 0
      case .rc4: 16
      case .block(_, let length, _), .aead(_, let length, _, _): length
      }
    }
  }

  /// The registered name; for an unregistered suite, a text with its number.
  public var name: String {
    CipherSuiteRegistry.names[code] ?? "unknown suite 0x" + String(Int(code) + 0x1_0000, radix: 16).dropFirst()
  }

  /// The suite with this name; `nil` if none is registered with it.
  public init?(name: String) {
    guard let code = CipherSuiteRegistry.names.first(where: { $0.value == name })?.key else { return nil }
    self.init(code: code)
  }

  /// "ECDHE_RSA", "RSA", "PSK"…; `nil` for TLS 1.3, whose suites do not say.
  public var keyExchange: String? {
    let name = name
    guard let end = name.firstRange(of: "_WITH_"), let start = name.firstRange(of: "TLS_") else { return nil }
    return String(name[start.upperBound..<end.lowerBound])
  }

  /// `nil` when this program cannot open it.
  var protection: Protection? {
    let text = name
    let part = text.firstRange(of: "_WITH_").map { text[$0.upperBound...] } ?? text.dropFirst("TLS_".count)
    if text.contains("EXPORT") || text.hasSuffix("_DRAFT") { return nil }
    guard let protection = Self.protections.first(where: { part.hasPrefix($0.prefix) })?.protection else { return nil }
    if case .aead = protection { return protection }
    // Without a MAC that can be verified, as with GOST, any record would count as genuine.
    return namedHash == nil ? nil : protection
  }

  /// The hash of the record MAC; `nil` with an AEAD.
  var macHash: HashFunction? {
    if case .aead? = protection { return nil }
    return namedHash
  }

  /// The end of the name.
  private var namedHash: HashFunction? {
    switch name {
    case let name where name.hasSuffix("_MD5"): .md5
    case let name where name.hasSuffix("_SHA"): .sha1
    case let name where name.hasSuffix("_SHA256"): .sha256
    case let name where name.hasSuffix("_SHA384"): .sha384
    default: nil
    }
  }

  /// The hash that keys are derived with in a version.
  func derivationHash(_ version: TLSVersion) -> HashFunction {
    if version < .tls12 { return .md5sha1 }
    return name.hasSuffix("_SHA384") ? .sha384 : .sha256
  }

  /// Whether the server's private key opens the key exchange.
  var usesRSAKeyExchange: Bool { keyExchange == "RSA" }

  /// The suites of TLS 1.3 whose secrets have this many bytes, the usual one first.
  static func modern(secretLength: Int) -> [CipherSuite] {
    let codes: [UInt16] =
      switch secretLength {
      case 32: [0x1301, 0x1303, 0x1304, 0x1305]
      case 48: [0x1302]
      default: []
      }
    return codes.map(CipherSuite.init(code:))
  }

  /// The longer prefix before the shorter.
  private static let protections: [(prefix: String, protection: Protection)] = {
    func aead(_ prefix: String, _ cipher: String, _ keyLength: Int, tag: Int = 16, explicit: Int = 8)
      -> (prefix: String, protection: Protection)
    {
      (prefix, .aead(cipher: cipher, keyLength: keyLength, tagLength: tag, explicitLength: explicit))
    }
    func block(_ prefix: String, _ cipher: String, _ keyLength: Int, _ blockLength: Int)
      -> (prefix: String, protection: Protection)
    {
      (prefix, .block(cipher: cipher, keyLength: keyLength, blockLength: blockLength))
    }
    return [
      aead("AES_128_GCM", "AES-128-GCM", 16), aead("AES_256_GCM", "AES-256-GCM", 32),
      aead("AES_128_CCM_8", "AES-128-CCM", 16, tag: 8), aead("AES_256_CCM_8", "AES-256-CCM", 32, tag: 8),
      aead("AES_128_CCM", "AES-128-CCM", 16), aead("AES_256_CCM", "AES-256-CCM", 32),
      aead("ARIA_128_GCM", "ARIA-128-GCM", 16), aead("ARIA_256_GCM", "ARIA-256-GCM", 32),
      aead("CHACHA20_POLY1305", "ChaCha20-Poly1305", 32, explicit: 0),
      block("AES_128_CBC", "AES-128-CBC", 16, 16), block("AES_256_CBC", "AES-256-CBC", 32, 16),
      block("3DES_EDE_CBC", "DES-EDE3-CBC", 24, 8),
      block("CAMELLIA_128_CBC", "CAMELLIA-128-CBC", 16, 16), block("CAMELLIA_256_CBC", "CAMELLIA-256-CBC", 32, 16),
      block("ARIA_128_CBC", "ARIA-128-CBC", 16, 16), block("ARIA_256_CBC", "ARIA-256-CBC", 32, 16),
      block("SEED_CBC", "SEED-CBC", 16, 16), block("DES_CBC", "DES-CBC", 8, 8), block("IDEA_CBC", "IDEA-CBC", 16, 8),
      ("RC4_128", .rc4), ("NULL", .null),
    ]
  }()
}
