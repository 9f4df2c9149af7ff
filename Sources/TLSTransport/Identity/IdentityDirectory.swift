import Glibc

/// A directory with the identities of one throw-away authority.
///
///     ca.pem   ca.key              the authority
///     gateway.pem   gateway.key    a gateway, for localhost
///     TOPIC.pem   TOPIC.key        a provider of this topic; TOPIC.revoked.* and TOPIC.expired.* are refused
///     TOPIC.combined.pem           its certificate and key in one file
///     TOPIC.p12                    the same as PKCS#12
///     crl.pem                      what the authority has revoked
public struct IdentityDirectory: Sendable {
  /// The path of the directory.
  public let path: String

  /// Refers to a directory, of which nothing is read yet.
  ///
  /// - Parameter path: the directory, which need not exist before `issue(_:)`.
  public init(_ path: String) { self.path = path }

  /// The state of a provider's certificate.
  public enum ProviderState: String, Sendable, CaseIterable {
    case valid, revoked, expired
  }

  /// The authority's certificate, which both sides trust.
  public var authorityFile: String { file("ca.pem") }
  /// The certificates that the authority revoked.
  public var revocationListFile: String { file("crl.pem") }

  /// Reads the identity of the gateway.
  ///
  /// - Throws: a `TLSError` if there is none, or it cannot be read.
  public func gateway() throws(TLSError) -> Identity { try read("gateway") }

  /// Reads the authority, whose key issues certificates.
  ///
  /// - Throws: a `TLSError` if its certificate or its key cannot be read.
  package func authority() throws(TLSError) -> CertificateAuthority { CertificateAuthority(try read("ca")) }

  /// Reads the identity of the provider of a topic, with a certificate in this state.
  ///
  /// - Throws: a `TLSError` if there is none, or it cannot be read.
  public func provider(topic: String, _ state: ProviderState = .valid) throws(TLSError) -> Identity {
    try Self.check(topic: topic)
    return try read(Self.name(of: topic, state))
  }

  /// Throws when a gateway's certificate cannot be for that, and says why.
  package static func check(serverName: String) throws(TLSError) {
    _ = try CertificateAuthority.isAddress(checking: serverName)
  }

  /// Throws if the name is not valid for an authority; the error states the reason.
  package static func check(authorityName: CertificateAuthority.Name) throws(TLSError) {
    try CertificateAuthority.check(authorityName)
  }

  /// The topics with a provider's identity, sorted.
  ///
  /// - Throws: a `TLSError` if the directory cannot be read.
  public func topics() throws(TLSError) -> [String] {
    let names = Set(try names())
    return names.compactMap { name -> String? in
      guard name.hasSuffix(".pem") else { return nil }
      let topic = String(name.dropLast(4))
      return Self.problem(withTopic: topic) == nil && names.contains("\(topic).key") ? topic : nil
    }.sorted()
  }

  // MARK: names

  /// Throws when no identity in a directory can have this topic, and says why.
  package static func check(topic: String) throws(TLSError) {
    try CertificateAuthority.check(topic: topic)
    if let problem = problem(withTopic: topic) { throw TLSError(.configuration, "the topic \(topic) \(problem)") }
  }

  /// A topic is part of a file's name, which must be no other's.
  private static func problem(withTopic topic: String) -> String? {
    let letters = topic.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    if !letters { return "has characters other than A–Z, a–z, 0–9, period, hyphen and underscore" }
    if topic.hasPrefix(".") || topic.hasPrefix("-") { return "begins with a period or a hyphen" }
    if ["ca", "gateway", "crl"].contains(topic) { return "is the name of a file that is not a provider's" }
    if topic.hasSuffix(".combined") { return "ends with .combined, which marks files with certificate and key" }
    for state in [ProviderState.revoked, .expired] where topic.hasSuffix(".\(state.rawValue)") {
      return "ends with .\(state.rawValue), which marks identities that are refused"
    }
    return nil
  }

  static func name(of topic: String, _ state: ProviderState) -> String {
    state == .valid ? topic : "\(topic).\(state.rawValue)"
  }

  func file(_ name: String) -> String { path.hasSuffix("/") ? path + name : "\(path)/\(name)" }

  func read(_ name: String) throws(TLSError) -> Identity {
    try Identity(certificateFile: file("\(name).pem"), keyFile: file("\(name).key"))
  }

  /// The names of all files.
  func names() throws(TLSError) -> [String] {
    guard let stream = unsafe opendir(path) else { throw .file(path, errno) }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(stream) else {
        if errno != 0 { throw .file(path, errno) }
        return names
      }
      // Safe: the name ends with NUL; the entry may be shorter than its type, so it is never copied.
      guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return names }
      let name = unsafe UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self)
      names.append(unsafe String(cString: name))
    }
  }
}
