import COpenSSL
import TLSFoundation

/// A throw-away authority that issues the certificates of a simulated gateway and its providers.
///
/// Its certificates state their purpose, so strict verifiers accept them only for that.
public struct CertificateAuthority: Sendable {
  /// The authority's own key and self-signed certificate.
  public let identity: Identity

  /// The name of an authority, which is the issuer of its certificates.
  ///
  /// Some providers require Apple's name there. With any name, the organizational unit is "apnscope throw-away
  /// authority".
  public struct Name: Sendable, Equatable {
    /// 1 to 64 characters without NUL; `nil`: "apnscope throw-away authority" with the beginning of its key's digest.
    public var commonName: String?
    /// 1 to 64 characters without NUL; `nil`: no organization.
    public var organization: String?

    /// Makes a name, which is checked when an authority is made with it.
    ///
    /// - Parameters:
    ///   - commonName: 1 to 64 characters without NUL, or `nil`.
    ///   - organization: 1 to 64 characters without NUL, or `nil`.
    public init(commonName: String? = nil, organization: String? = nil) {
      self.commonName = commonName
      self.organization = organization
    }
  }

  /// Makes an authority with a new key, valid for ten years.
  ///
  /// - Throws: a `TLSError` if the name is invalid, or OpenSSL fails.
  public init(_ kind: KeyKind = .p256, name: Name = Name()) throws(TLSError) {
    try self.init(KeyPair(kind), name: name)
  }

  /// Uses the identity of an existing authority.
  public init(_ identity: Identity) { self.identity = identity }

  /// Creates the certificate for an existing key, with the same name, so issued certificates stay valid.
  init(_ keyPair: KeyPair, name: Name = Name()) throws(TLSError) {
    try Self.check(name)
    let own = "apnscope throw-away authority \(try keyPair.fingerprint())"
    var subject: [(number: Int32, value: String)] = []
    if let organization = name.organization { subject.append((NID_organizationName, organization)) }
    if name != Name() { subject.append((NID_organizationalUnitName, own)) }
    subject.append((NID_commonName, name.commonName ?? own))
    let profile = CertificateProfile(
      subject: subject,
      // Valid from before the expired identities, so that only their own end date invalidates them.
      validity: Validity(fromDays: -Validity.expiredDays - 1, toDays: Validity.maximumDays),
      extensions: [
        (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"), (NID_key_usage, "critical,keyCertSign,cRLSign"),
        (NID_subject_key_identifier, "hash"),
      ])
    identity = try Identity(keyPair, profile.certificate(for: keyPair, by: nil))
  }

  /// Issues the identity of a gateway, for `localhost`, 127.0.0.1, ::1, and the names and addresses in `names`.
  ///
  /// - Throws: a `TLSError` if one of `names` is neither a host name nor an IP address.
  public func gateway(_ kind: KeyKind = .p256, _ validity: Validity = .usual, names: [String] = []) throws(TLSError)
    -> Identity
  {
    var alternatives = "DNS:localhost,IP:127.0.0.1,IP:0:0:0:0:0:0:0:1"
    for name in names { alternatives += try Self.isAddress(checking: name) ? ",IP:\(name)" : ",DNS:\(name)" }
    return try issue(
      CertificateProfile(
        subject: [(NID_commonName, "apnscope gateway")], validity: validity,
        extensions: Self.leaf(kind, "serverAuth") + [
          (NID_subject_alt_name, alternatives)
        ]), kind)
  }

  /// Issues the identity of a provider that may push to this topic, with a subject like Apple's:
  /// `UID=com.example.app,CN=Apple Push Services: com.example.app`.
  ///
  /// It has the extensions for both environments that Apple's certificates have and some providers require. A common
  /// name has at most 64 characters (RFC 5280), so a long topic is truncated there, but never in the UID.
  ///
  /// - Throws: a `TLSError` if the topic is empty, contains NUL, or is longer than 128 bytes.
  public func provider(topic: String, _ kind: KeyKind = .p256, _ validity: Validity = .usual) throws(TLSError)
    -> Identity
  {
    try Self.check(topic: topic)
    return try issue(
      CertificateProfile(
        subject: [(NID_userId, topic), (NID_commonName, Self.commonName(of: topic))], validity: validity,
        extensions: Self.leaf(kind, "clientAuth"), marks: Self.environments), kind)
  }

  /// Makes a revocation list that refuses these identities, and all that the earlier list refuses.
  public func revocationList(revoking identities: [Identity] = [], after earlier: RevocationList? = nil)
    throws(TLSError) -> RevocationList
  {
    try RevocationList(by: identity, revoking: identities.map(\.leaf), after: earlier)
  }

  /// Bytes of the longest topic.
  package static let maximumTopicLength = 128

  static func check(topic: String) throws(TLSError) {
    guard !topic.isEmpty else { throw TLSError(.configuration, "a topic cannot be empty") }
    guard topic.utf8.count <= maximumTopicLength else {
      throw TLSError(
        .configuration, "the topic \(topic) has \(topic.utf8.count) bytes; the limit is \(maximumTopicLength)")
    }
    guard !topic.utf8.contains(0) else { throw TLSError(.configuration, "a topic cannot contain NUL") }
  }

  private static let environments = [Certificate.developmentExtension, Certificate.productionExtension]

  /// Throws if the name is not valid for an authority.
  static func check(_ name: Name) throws(TLSError) {
    for part in [name.commonName, name.organization].compactMap({ $0 })
    where !(1...Int(ub_common_name) ~= part.unicodeScalars.count) || part.utf8.contains(0) {
      throw TLSError(.configuration, "an authority's name has 1 to \(ub_common_name) characters and no NUL")
    }
  }

  /// Whether a name is an IP address; throws if it is neither an IP address nor a host name.
  static func isAddress(checking name: String) throws(TLSError) -> Bool {
    if let address = unsafe a2i_IPADDRESS(name) {
      unsafe ASN1_OCTET_STRING_free(address)
      return true
    }
    ERR_clear_error()
    let isName = (1...253 ~= name.utf8.count) && !name.hasPrefix(".") && !name.hasPrefix("-")
    guard isName, name.utf8.allSatisfy(Self.mayBeInHostName) else {
      throw TLSError(.configuration, "'\(name)' is neither a host name nor an IP address")
    }
    return false
  }

  private static func mayBeInHostName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
      true
    default: false
    }
  }

  private static func commonName(of topic: String) -> String {
    String(String.UnicodeScalarView("Apple Push Services: \(topic)".unicodeScalars.prefix(Int(ub_common_name))))
  }

  private static func leaf(_ kind: KeyKind, _ purpose: String) -> [CertificateProfile.Extension] {
    [
      (NID_basic_constraints, "critical,CA:FALSE"),
      // With RSA key exchange the client encrypts with this key.
      (NID_key_usage, kind == .rsa2048 ? "critical,digitalSignature,keyEncipherment" : "critical,digitalSignature"),
      (NID_ext_key_usage, purpose), (NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid"),
    ]
  }

  private func issue(_ profile: CertificateProfile, _ kind: KeyKind) throws(TLSError) -> Identity {
    let keyPair = try KeyPair(kind)
    return try Identity(keyPair, profile.certificate(for: keyPair, by: identity))
  }
}

/// The validity period of a certificate, relative to its creation.
public struct Validity: Sendable, Equatable {
  var fromSeconds: Int
  var toSeconds: Int

  private init(fromSeconds: Int, toSeconds: Int) {
    self.fromSeconds = fromSeconds
    self.toSeconds = toSeconds
  }

  init(fromDays: Int, toDays: Int) { self.init(fromSeconds: fromDays * 86_400, toSeconds: toDays * 86_400) }

  /// From a day ago, for slow clocks, until this many days from now.
  public static func days(_ days: Int) -> Validity { Validity(fromDays: -1, toDays: days) }

  /// From a day ago until so many seconds from now; 0: it has ended.
  package static func seconds(_ seconds: Int) -> Validity { Validity(fromSeconds: -86_400, toSeconds: seconds) }

  /// With the day before, 825 days: the longest validity of a server certificate that Apple's systems accept.
  package static let usualDays = 824
  /// 825 days including the day before now: the longest validity of a server certificate that Apple's systems accept.
  public static let usual = days(usualDays)

  /// The maximum, and the validity of an authority.
  package static let maximumDays = 3_650

  /// A month that ended yesterday.
  public static let expired = Validity(fromDays: -expiredDays, toDays: -1)
  static let expiredDays = 31
}
