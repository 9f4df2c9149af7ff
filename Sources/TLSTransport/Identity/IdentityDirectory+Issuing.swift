import Glibc

extension IdentityDirectory {
  /// What is to be in a directory.
  public struct Order: Sendable {
    public var topics: [String]
    public var keyKind = KeyKind.p256
    /// How long what is made is good, from now.
    public var days = Validity.usualDays
    /// Which identities each topic gets.
    public var states: Set<ProviderState> = [.valid]
    /// Whether the gateway's and the topics' identities are made anew when they are there; the authority never is.
    public var replacesExisting = false

    public init(topics: [String]) { self.topics = topics }
  }

  /// Files that are in the directory now.
  public struct Entry: Sendable, Equatable {
    public enum Subject: Sendable, Equatable {
      case authority, gateway
      case provider(topic: String, ProviderState)
      case revocationList(count: Int)
    }

    public var subject: Subject
    /// A certificate or the revocation list.
    public var file: String
    public var keyFile: String?
    /// `false` when it was there before and stayed as it was.
    public var isNew: Bool
    /// `nil` for the revocation list.
    public var notAfterUnixSeconds: Int?
  }

  /// Makes what is missing, and the directory too; what is there stays, unless the order says otherwise.
  ///
  /// Every file appears whole or not at all, and keys can be read by their owner only from the moment they are created.
  /// When it is interrupted, the next call goes on where it ended. The revocation list is always made anew and holds
  /// what it held before. Of two calls at the same time one waits for the other.
  ///
  /// - Returns: what the directory holds of the order: the authority, the gateway, the topics, the revocation list.
  public func issue(_ order: Order) throws(TLSError) -> [Entry] {
    for topic in order.topics { try Self.check(topic: topic) }
    guard 1...Validity.maximumDays ~= order.days else {
      throw TLSError(
        .configuration, "a certificate is made for 1 to \(Validity.maximumDays) days, not for \(order.days)")
    }
    guard (unsafe mkdir(path, 0o755)) == 0 || errno == EEXIST else { throw .file(path, errno) }
    let lock = try DirectoryLock(path)
    defer { withExtendedLifetime(lock) {} }

    let (authority, authorityEntry) = try authority(order.keyKind)
    var entries = [authorityEntry]
    let validity = Validity.days(order.days)
    entries.append(
      try provide(.gateway, "gateway", order, authority) { () throws(TLSError) in
        try authority.gateway(order.keyKind, validity)
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

  /// The authority of this directory, made if there is none.
  private func authority(_ kind: KeyKind) throws(TLSError) -> (CertificateAuthority, Entry) {
    let keyFile = file("ca.key")
    let (hasCertificate, hasKey) = (CredentialFile.exists(authorityFile), CredentialFile.exists(keyFile))
    guard !hasCertificate || hasKey else {
      throw TLSError(
        .file, "\(keyFile): is missing; without it nothing can be added to the authority of \(authorityFile)")
    }
    let authority: CertificateAuthority
    if hasCertificate {
      authority = CertificateAuthority(try read("ca"))
    } else {
      // A key alone is what an interruption leaves.
      let keyPair =
        hasKey ? try KeyPair.first(in: CredentialSource(file: keyFile), passPhrase: nil) : try KeyPair(kind)
      authority = try CertificateAuthority(keyPair)
      try write(authority.identity, "ca", withKey: !hasKey)
    }
    let entry = Entry(
      subject: .authority, file: authorityFile, keyFile: keyFile, isNew: !hasCertificate,
      notAfterUnixSeconds: authority.identity.notAfterUnixSeconds)
    return (authority, entry)
  }

  /// Keeps the identity that has this name, or makes one.
  private func provide(
    _ subject: Entry.Subject, _ name: String, _ order: Order, _ authority: CertificateAuthority,
    _ make: () throws(TLSError) -> Identity
  ) throws(TLSError) -> Entry {
    let keyFile = file("\(name).key")
    var entry = Entry(subject: subject, file: file("\(name).pem"), keyFile: keyFile, isNew: true)
    if !order.replacesExisting && CredentialFile.exists(entry.file) && CredentialFile.exists(keyFile) {
      let present = try Certificate.first(in: entry.file)
      guard authority.identity.hasIssued(present) else {
        throw TLSError(.credentials, "\(entry.file): is not from the authority of \(authorityFile)")
      }
      entry.isNew = false
      entry.notAfterUnixSeconds = present.notAfterUnixSeconds
    } else {
      let made = try make()
      try write(made, name)
      entry.notAfterUnixSeconds = made.notAfterUnixSeconds
    }
    return entry
  }

  /// The certificate comes last and an old one goes first, so that it never stands beside another's key.
  private func write(_ identity: Identity, _ name: String, withKey: Bool = true) throws(TLSError) {
    if withKey {
      let old = file("\(name).pem")
      guard (unsafe unlink(old)) == 0 || errno == ENOENT else { throw .file(old, errno) }
      try CredentialFile.write(try identity.keyPEM(), to: file("\(name).key"), mode: 0o600)
    }
    try CredentialFile.write(try identity.certificatePEM(), to: file("\(name).pem"), mode: 0o644)
  }

  /// Revokes what the last list did, and every identity that is called revoked: one may have been written just before
  /// an interruption.
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

  /// Waits until nobody else has it.
  init(_ path: String) throws(TLSError) {
    descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .file(path, errno) }
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw .file(path, errno) }
    }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }
}
