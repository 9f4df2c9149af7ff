import COpenSSL

/// A throw-away authority that issues what a simulated gateway and its providers show.
///
/// Its certificates say what they are for, so a strict verifier takes them, and no other use.
public struct CertificateAuthority: Sendable {
  /// The authority's own key and self-signed certificate.
  public let identity: Identity

  /// Makes an authority that ends in ten years.
  public init(_ kind: KeyKind = .p256) throws(TLSError) { try self.init(KeyPair(kind)) }

  /// Takes an authority that was made before.
  public init(_ identity: Identity) { self.identity = identity }

  /// Makes the certificate for a key that is there already: the same name, so what was issued before stays good.
  init(_ keyPair: KeyPair) throws(TLSError) {
    let profile = CertificateProfile(
      subject: [(NID_commonName, "apnscope throw-away authority \(try keyPair.fingerprint())")],
      // From before the expired identities, so that nothing but their own end is wrong with them.
      validity: Validity(fromDays: -Validity.expiredDays - 1, toDays: Validity.maximumDays),
      extensions: [
        (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"), (NID_key_usage, "critical,keyCertSign,cRLSign"),
        (NID_subject_key_identifier, "hash"),
      ])
    identity = try Identity(keyPair, profile.certificate(for: keyPair, by: nil))
  }

  /// Issues a gateway's identity, for `localhost`, 127.0.0.1 and ::1.
  public func gateway(_ kind: KeyKind = .p256, _ validity: Validity = .usual) throws(TLSError) -> Identity {
    try issue(
      CertificateProfile(
        subject: [(NID_commonName, "apnscope gateway")], validity: validity,
        extensions: Self.leaf(kind, "serverAuth") + [
          (NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1,IP:0:0:0:0:0:0:0:1")
        ]), kind)
  }

  /// Issues the identity of a provider that may push to this topic, with a subject like Apple's:
  /// `UID=com.example.app,CN=Apple Push Services: com.example.app`.
  ///
  /// A common name has at most 64 characters (RFC 5280), so that of a long topic is cut; the UID never is.
  ///
  /// - Throws: when the topic is empty, holds NUL, or is longer than `maximumTopicLength`.
  public func provider(topic: String, _ kind: KeyKind = .p256, _ validity: Validity = .usual) throws(TLSError)
    -> Identity
  {
    try Self.check(topic: topic)
    return try issue(
      CertificateProfile(
        subject: [(NID_userId, topic), (NID_commonName, Self.commonName(of: topic))], validity: validity,
        extensions: Self.leaf(kind, "clientAuth")), kind)
  }

  /// Makes a revocation list that refuses these identities, and all that the earlier list refuses.
  public func revocationList(revoking identities: [Identity] = [], after earlier: RevocationList? = nil)
    throws(TLSError) -> RevocationList
  {
    try RevocationList(by: identity, revoking: identities.map(\.leaf), after: earlier)
  }

  /// Bytes of the longest topic.
  public static let maximumTopicLength = 128

  static func check(topic: String) throws(TLSError) {
    guard !topic.isEmpty else { throw TLSError(.configuration, "a topic cannot be empty") }
    guard topic.utf8.count <= maximumTopicLength else {
      throw TLSError(
        .configuration, "the topic \(topic) has \(topic.utf8.count) bytes; \(maximumTopicLength) are the most")
    }
    guard !topic.utf8.contains(0) else { throw TLSError(.configuration, "a topic cannot hold NUL") }
  }

  private static func commonName(of topic: String) -> String {
    String(String.UnicodeScalarView("Apple Push Services: \(topic)".unicodeScalars.prefix(Int(ub_common_name))))
  }

  private static func leaf(_ kind: KeyKind, _ purpose: String) -> [CertificateProfile.Extension] {
    [
      (NID_basic_constraints, "critical,CA:FALSE"),
      // With RSA key exchange the client encrypts to this key.
      (NID_key_usage, kind == .rsa2048 ? "critical,digitalSignature,keyEncipherment" : "critical,digitalSignature"),
      (NID_ext_key_usage, purpose), (NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid"),
    ]
  }

  private func issue(_ profile: CertificateProfile, _ kind: KeyKind) throws(TLSError) -> Identity {
    let keyPair = try KeyPair(kind)
    return try Identity(keyPair, profile.certificate(for: keyPair, by: identity))
  }
}

/// When a certificate is good, from the time it is made.
public struct Validity: Sendable, Equatable {
  var fromSeconds: Int
  var toSeconds: Int

  private init(fromSeconds: Int, toSeconds: Int) {
    self.fromSeconds = fromSeconds
    self.toSeconds = toSeconds
  }

  init(fromDays: Int, toDays: Int) { self.init(fromSeconds: fromDays * 86_400, toSeconds: toDays * 86_400) }

  /// From a day ago, for clocks that are behind, until that many days from now.
  public static func days(_ days: Int) -> Validity { Validity(fromDays: -1, toDays: days) }

  /// With the day before, 825 days: the most that Apple's systems take of a server.
  public static let usualDays = 824
  public static let usual = days(usualDays)

  /// The most that can be asked for, and what an authority has.
  public static let maximumDays = 3_650

  /// A month that ended yesterday.
  public static let expired = Validity(fromDays: -expiredDays, toDays: -1)
  static let expiredDays = 31
}
