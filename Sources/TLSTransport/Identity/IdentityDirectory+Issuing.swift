import COpenSSL
import Glibc
import TLSFoundation

extension IdentityDirectory {
  /// The requested contents of a directory.
  public struct Order: Sendable {
    /// The topics that get an identity of a provider.
    public var topics: [String]
    /// The kind of new keys.
    public var keyKind = KeyKind.p256
    /// The validity of new certificates, from now.
    public var days = Validity.usualDays
    /// The kinds of identity that each topic gets.
    public var states: Set<ProviderState> = [.valid]
    /// Whether existing identities of the gateway and the topics are replaced; the authority never is.
    public var replacesExisting = false
    /// The name of a new authority; `nil` for the existing or the default name.
    public var authorityName: CertificateAuthority.Name?
    /// Names and addresses of the gateway beside localhost, 127.0.0.1 and ::1. A certificate that lacks any is
    /// replaced.
    public var serverNames: [String] = []
    /// The encryption of the topics' PKCS#12 files; `nil`: existing files stay, new files have an empty pass phrase.
    public var pkcs12: Identity.PKCS12Form?

    /// Makes an order with the default settings.
    public init(topics: [String]) { self.topics = topics }
  }

  /// Files that are in the directory now.
  public struct Entry: Sendable, Equatable {
    /// The purpose of the files.
    public enum Subject: Sendable, Equatable {
      case authority, gateway
      case provider(topic: String, ProviderState)
      case revocationList(count: Int)
    }

    /// The purpose of the files.
    public var subject: Subject
    /// A certificate or the revocation list.
    public var file: String
    /// The private key; `nil` for the revocation list.
    public var keyFile: String?
    /// Certificate and key in other forms: one PEM file, and PKCS#12. Only providers have them.
    public var combinedFiles: [String] = []
    /// Whether the file was written by this call; `false` if it existed and stayed unchanged.
    public var isNew: Bool
    /// `nil` for the revocation list.
    public var notAfterUnixSeconds: Int?
  }

  /// Creates the missing files, and the directory; existing files stay unless the order requests new ones.
  ///
  /// Each file is written atomically, and keys are readable only by their owner from their creation on. After an
  /// interruption, the next call continues. The revocation list is always written again with its earlier entries.
  /// Concurrent calls wait for each other.
  ///
  /// - Returns: the directory's entries for the order: the authority, the gateway, the topics, the revocation list.
  /// - Throws: a `TLSError` if the order is invalid, or a file cannot be read or written.
  public func issue(_ order: Order) throws(TLSError) -> [Entry] {
    for topic in order.topics { try Self.check(topic: topic) }
    for name in order.serverNames { try Self.check(serverName: name) }
    guard 1...Validity.maximumDays ~= order.days else {
      throw TLSError(
        .configuration, "a certificate is valid for 1 to \(Validity.maximumDays) days, not for \(order.days)")
    }
    guard (unsafe mkdir(path, 0o755)) == 0 || errno == EEXIST else { throw .file(path, errno) }
    let lock = try DirectoryLock(path)
    defer { withExtendedLifetime(lock) {} }

    let (authority, authorityEntry) = try authority(order)
    var entries = [authorityEntry]
    let validity = Validity.days(order.days)
    entries.append(
      try provide(.gateway, "gateway", order, authority) { () throws(TLSError) in
        try authority.gateway(order.keyKind, validity, names: order.serverNames)
      })
    var done: Set<String> = []
    for topic in order.topics where done.insert(topic).inserted {
      for state in ProviderState.allCases where order.states.contains(state) {
        entries.append(
          try provide(.provider(topic: topic, state), Self.name(of: topic, state), order, authority) {
            () throws(TLSError) in
            try authority.provider(topic: topic, order.keyKind, state == .expired ? .expired : validity)
          })
      }
    }
    entries.append(try renewRevocationList(authority))
    return entries
  }

  /// The authority of this directory, created if missing.
  private func authority(_ order: Order) throws(TLSError) -> (CertificateAuthority, Entry) {
    if let name = order.authorityName { try CertificateAuthority.check(name) }
    let keyFile = file("ca.key")
    let (hasCertificate, hasKey) = (CredentialFile.exists(authorityFile), CredentialFile.exists(keyFile))
    guard !hasCertificate || hasKey else {
      throw TLSError(
        .file, "\(keyFile): not found; it is needed to add to the authority of \(authorityFile)")
    }
    let authority: CertificateAuthority
    if hasCertificate {
      authority = CertificateAuthority(try read("ca"))
      try check(authority, isCalled: order.authorityName)
    } else {
      // A key without a certificate is left by an interruption.
      let keyPair =
        hasKey ? try KeyPair.first(in: CredentialSource(file: keyFile), passPhrase: nil) : try KeyPair(order.keyKind)
      authority = try CertificateAuthority(keyPair, name: order.authorityName ?? .init())
      try write(authority.identity, "ca", withKey: !hasKey)
    }
    let entry = Entry(
      subject: .authority, file: authorityFile, keyFile: keyFile, isNew: !hasCertificate,
      notAfterUnixSeconds: authority.identity.notAfterUnixSeconds)
    return (authority, entry)
  }

  /// Throws if the authority has another name, which everything it has issued contains.
  private func check(_ authority: CertificateAuthority, isCalled name: CertificateAuthority.Name?) throws(TLSError) {
    guard let name else { return }
    let certificate = unsafe authority.identity.certificate
    for (part, number) in [(name.commonName, NID_commonName), (name.organization, NID_organizationName)] {
      guard let part, unsafe part != Certificate.text(of: certificate, number) else { continue }
      throw TLSError(
        .configuration,
        "\(authorityFile): is named \(authority.identity.subject), which cannot be changed; use another directory")
    }
  }

  /// Returns the existing identity with this name, or issues one.
  private func provide(
    _ subject: Entry.Subject, _ name: String, _ order: Order, _ authority: CertificateAuthority,
    _ make: () throws(TLSError) -> Identity
  ) throws(TLSError) -> Entry {
    let keyFile = file("\(name).key")
    var entry = Entry(subject: subject, file: file("\(name).pem"), keyFile: keyFile, isNew: true)
    if case .provider = subject { entry.combinedFiles = [file("\(name).combined.pem"), file("\(name).p12")] }
    if let present = try present(entry, order, authority) {
      entry.isNew = false
      entry.notAfterUnixSeconds = present.notAfterUnixSeconds
      for file in entry.combinedFiles
      where !CredentialFile.exists(file) || (order.pkcs12 != nil && file.hasSuffix(".p12")) {
        try writeCombined(try read(name), to: file, order)
      }
    } else {
      let made = try make()
      try write(made, name, entry.combinedFiles, order)
      entry.notAfterUnixSeconds = made.notAfterUnixSeconds
    }
    return entry
  }

  /// The existing certificate, which stays.
  private func present(_ entry: Entry, _ order: Order, _ authority: CertificateAuthority) throws(TLSError)
    -> Certificate?
  {
    guard !order.replacesExisting, CredentialFile.exists(entry.file), let keyFile = entry.keyFile,
      CredentialFile.exists(keyFile)
    else { return nil }
    let present = try Certificate.first(in: entry.file)
    guard authority.identity.hasIssued(present) else {
      throw TLSError(.credentials, "\(entry.file): is not from the authority of \(authorityFile)")
    }
    if entry.subject == .gateway, !order.serverNames.allSatisfy(present.isFor) { return nil }
    return present
  }

  /// The certificate is written last and old ones are removed first, so that no certificate is ever next to another
  /// one's key.
  private func write(
    _ identity: Identity, _ name: String, _ combinedFiles: [String] = [], _ order: Order = Order(topics: []),
    withKey: Bool = true
  ) throws(TLSError) {
    if withKey {
      for old in [file("\(name).pem")] + combinedFiles {
        guard (unsafe unlink(old)) == 0 || errno == ENOENT else { throw .file(old, errno) }
      }
      try CredentialFile.write(try identity.keyPEM(), to: file("\(name).key"), mode: 0o600)
    }
    for file in combinedFiles { try writeCombined(identity, to: file, order) }
    try CredentialFile.write(try identity.certificatePEM(), to: file("\(name).pem"), mode: 0o644)
  }

  private func writeCombined(_ identity: Identity, to file: String, _ order: Order) throws(TLSError) {
    let bytes =
      file.hasSuffix(".p12") ? try identity.pkcs12(order.pkcs12 ?? .init()) : try identity.combinedPEM()
    try CredentialFile.write(bytes, to: file, mode: 0o600)
  }

  /// Revokes the certificates of the previous list, and those of all identities marked as revoked: one may have been
  /// written just before an interruption.
  private func renewRevocationList(_ authority: CertificateAuthority) throws(TLSError) -> Entry {
    var earlier: RevocationList?
    if CredentialFile.exists(revocationListFile) {
      let list = try RevocationList(file: revocationListFile)
      guard list.isSigned(by: authority.identity) else {
        throw TLSError(.credentials, "\(revocationListFile): is not from the authority of \(authorityFile)")
      }
      earlier = list
    }
    var revoked: [Certificate] = []
    for name in try names().sorted() where name.hasSuffix(".revoked.pem") {
      let certificate = try Certificate.first(in: file(name))
      if authority.identity.hasIssued(certificate) { revoked.append(certificate) }
    }
    let list = try RevocationList(by: authority.identity, revoking: revoked, after: earlier)
    try CredentialFile.write(try list.pem(), to: revocationListFile, mode: 0o644)
    return Entry(subject: .revocationList(count: list.count), file: revocationListFile, isNew: true)
  }
}

/// Keeps other processes from writing into a directory, until it goes.
private final class DirectoryLock {
  private let descriptor: Int32

  /// Waits until it is free.
  init(_ path: String) throws(TLSError) {
    descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .file(path, errno) }
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw .file(path, errno) }
    }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }
}
