import Foundation
import TestSupport
import Testing

@testable import TLSTransport

@Suite("identity directories", .waiting)
struct IdentityDirectoryTests {
  static let topic = "com.example.app"

  /// A directory with one topic, and `openssl` in it.
  private func inDirectory(
    _ order: IdentityDirectory.Order = .init(topics: [topic]),
    _ body: (IdentityDirectory, URL, OpenSSLCommand) throws -> Void
  ) throws {
    try withTemporaryFolder { folder in
      let url = folder.appending(path: "ids")
      let directory = IdentityDirectory(url.path)
      _ = try directory.issue(order)
      try body(directory, url, OpenSSLCommand(folder: url))
    }
  }

  private static func order(_ change: (inout IdentityDirectory.Order) -> Void) -> IdentityDirectory.Order {
    var order = IdentityDirectory.Order(topics: [topic])
    change(&order)
    return order
  }

  private static let everything = order { $0.states = Set(IdentityDirectory.ProviderState.allCases) }

  static let verify = ["verify", "-x509_strict", "-CAfile", "ca.pem", "-crl_check", "-CRLfile", "crl.pem"]

  // MARK: what openssl says

  @Test("A strict verifier takes what is right, for its own purpose only", arguments: KeyKind.allCases)
  func verifies(kind: KeyKind) throws {
    try inDirectory(Self.order { $0.keyKind = kind }) { _, _, openssl in
      let (gateway, provider) = ("gateway.pem", "\(Self.topic).pem")
      for arguments in [
        ["-purpose", "sslserver", "-verify_hostname", "localhost", gateway],
        ["-purpose", "sslserver", "-verify_ip", "127.0.0.1", gateway],
        ["-purpose", "sslserver", "-verify_ip", "::1", gateway], ["-purpose", "sslclient", provider],
      ] {
        let answer = try openssl.run(Self.verify + arguments)
        #expect(answer.status == 0, "\(arguments) \(answer.text)")
      }
      for arguments in [
        ["-verify_hostname", "gateway.push.apple.com", gateway], ["-verify_ip", "127.0.0.2", gateway],
        ["-purpose", "sslclient", gateway], ["-purpose", "sslserver", provider],
      ] { #expect(try openssl.run(Self.verify + arguments).status == 2, "\(arguments)") }
      let key = try openssl.run("x509", "-in", provider, "-noout", "-text").text
      #expect(key.contains(kind == .p256 ? "NIST CURVE: P-256" : "Public-Key: (2048 bit)"))
      // RSA key exchange encrypts to the gateway's key.
      #expect(
        try openssl.run("x509", "-in", gateway, "-noout", "-text").text.contains("Key Encipherment")
          == (kind == .rsa2048))
    }
  }

  @Test("The revoked and the expired are refused, each for that reason alone") func refused() throws {
    try inDirectory(Self.everything) { directory, _, openssl in
      let revoked = try openssl.run(Self.verify + ["\(Self.topic).revoked.pem"])
      #expect(revoked.status == 2)
      #expect(revoked.text.contains("certificate revoked"))
      #expect(try openssl.run("verify", "-x509_strict", "-CAfile", "ca.pem", "\(Self.topic).revoked.pem").status == 0)
      let expired = try openssl.run(Self.verify + ["\(Self.topic).expired.pem"])
      #expect(expired.status == 2)
      #expect(expired.text.contains("certificate has expired"))
      let before = "\(Int(Date().timeIntervalSince1970) - 2 * 86_400)"
      let atItsTime = try openssl.run(
        "verify", "-x509_strict", "-attime", before, "-CAfile", "ca.pem", "\(Self.topic).expired.pem")
      #expect(atItsTime.status == 0, "\(atItsTime.text)")
      #expect(try openssl.run(Self.verify + ["\(Self.topic).pem"]).status == 0)

      for state in IdentityDirectory.ProviderState.allCases {
        expectUsable(try directory.provider(topic: Self.topic, state))
      }
      let list = try RevocationList(file: directory.revocationListFile)
      #expect(list.count == 1)
      #expect(list.holds(try directory.provider(topic: Self.topic, .revoked)))
      #expect(!list.holds(try directory.provider(topic: Self.topic)))
    }
  }

  @Test("Subjects are like Apple's, serial numbers are random and positive") func contents() throws {
    try inDirectory(Self.everything) { directory, _, openssl in
      #expect(try directory.gateway().subject == "CN=apnscope gateway")
      #expect(try directory.gateway().topic == nil)
      #expect(
        try directory.provider(topic: Self.topic).subject
          == "UID=com.example.app,CN=Apple Push Services: com.example.app")
      var serials: Set<String> = []
      let names = ["ca", "gateway", Self.topic, "\(Self.topic).revoked", "\(Self.topic).expired"]
      for name in names {
        let serial = try openssl.run("x509", "-in", "\(name).pem", "-noout", "-serial").text.dropFirst(7).dropLast()
        #expect(serial.count == 40, "\(serial)")
        serials.insert(String(serial))
      }
      #expect(serials.count == names.count)
    }
  }

  @Test("A certificate is good for the days asked for, from a day ago", arguments: [1, 824, 3_650]) func days(days: Int)
    throws
  {
    try inDirectory(Self.order { $0.days = days }) { directory, _, openssl in
      let now = Int(Date().timeIntervalSince1970)
      for name in ["gateway.pem", "\(Self.topic).pem"] {
        for (day, isGood) in [(-2, false), (0, true), (days - 1, true), (days + 1, false)] {
          let time = "\(now + day * 86_400 + (day == -2 ? 0 : 3_600))"
          let status = try openssl.run("verify", "-attime", time, "-CAfile", "ca.pem", name).status
          // The authority ends after ten years itself.
          #expect(status == (isGood ? 0 : 2), "\(name) on day \(day)")
        }
      }
      #expect(abs(try directory.gateway().notAfterUnixSeconds - now - days * 86_400) < 60)
    }
  }

  // MARK: files

  @Test("Keys can be read by their owner only; nothing else is left") func modes() throws {
    try inDirectory(Self.everything) { _, url, _ in
      let names = try FileManager.default.contentsOfDirectory(atPath: url.path)
      let providers = [Self.topic, "\(Self.topic).revoked", "\(Self.topic).expired"]
      let pairs = (["ca", "gateway"] + providers).flatMap { ["\($0).pem", "\($0).key"] }
      let combined = providers.flatMap { ["\($0).combined.pem", "\($0).p12"] }
      #expect(Set(names) == Set(pairs + combined + ["crl.pem"]))
      for name in names where name.hasSuffix(".key") || combined.contains(name) {
        #expect(try url.mode(of: name) == 0o600, "\(name)")
      }
      for name in names where name.hasSuffix(".pem") && !combined.contains(name) {
        #expect(try !url.text(of: name).contains("PRIVATE"), "\(name)")
      }
    }
  }

  @Test("Again in the same directory: files stay, topics come, revocations stay") func again() throws {
    try inDirectory(Self.everything) { directory, url, openssl in
      let before = try Self.contents(of: url)
      var order = IdentityDirectory.Order(topics: ["com.example.other", Self.topic, Self.topic])
      order.states = Set(IdentityDirectory.ProviderState.allCases)
      let entries = try directory.issue(order)
      let after = try Self.contents(of: url)
      for (name, text) in before where name != "crl.pem" { #expect(after[name] == text, "\(name)") }
      #expect(after.count == before.count + 12)
      #expect(
        entries.filter(\.isNew).map(\.subject) == [
          .provider(topic: "com.example.other", .valid), .provider(topic: "com.example.other", .revoked),
          .provider(topic: "com.example.other", .expired), .revocationList(count: 2),
        ])
      #expect(entries.count == 2 + 3 + 3 + 1)
      for name in ["com.example.other.pem", "\(Self.topic).pem", "gateway.pem"] {
        #expect(try openssl.run(Self.verify + [name]).status == 0)
      }
      for name in ["com.example.other.revoked.pem", "\(Self.topic).revoked.pem"] {
        #expect(try openssl.run(Self.verify + [name]).text.contains("certificate revoked"))
      }
      #expect(try directory.topics() == [Self.topic, "com.example.other"])
    }
  }

  @Test("Replaced on request: the old revocation stays, the authority too") func replaces() throws {
    try inDirectory(Self.everything) { directory, url, openssl in
      try FileManager.default.copyItem(
        at: url.appending(path: "\(Self.topic).revoked.pem"), to: url.appending(path: "old.pem"))
      let before = try Self.contents(of: url)
      var order = IdentityDirectory.Order(topics: [Self.topic])
      order.states = Set(IdentityDirectory.ProviderState.allCases)
      order.replacesExisting = true
      let entries = try directory.issue(order)
      #expect(entries.filter { !$0.isNew }.map(\.subject) == [.authority])
      let after = try Self.contents(of: url)
      #expect(Set(after.keys) == Set(before.keys))
      for name in after.keys {
        #expect((after[name] == before[name]) == ["ca.pem", "ca.key", "old.pem"].contains(name))
      }
      for state in IdentityDirectory.ProviderState.allCases {
        expectUsable(try directory.provider(topic: Self.topic, state))
      }
      for name in ["old.pem", "\(Self.topic).revoked.pem"] {
        #expect(try openssl.run(Self.verify + [name]).text.contains("certificate revoked"))
      }
      #expect(try openssl.run("crl", "-in", "crl.pem", "-noout", "-crlnumber").text == "crlNumber=0x02\n")
    }
  }

  private static func contents(of url: URL) throws -> [String: Data] {
    let names = try FileManager.default.contentsOfDirectory(atPath: url.path)
    return Dictionary(uniqueKeysWithValues: try names.map { ($0, try Data(contentsOf: url.appending(path: $0))) })
  }

  // MARK: after an interruption

  @Test(
    "What an interruption left is completed",
    arguments: [
      ["gateway.pem"], ["gateway.key"], ["com.example.app.pem"], ["crl.pem"], ["com.example.app.p12"],
      ["com.example.app.combined.pem", "com.example.app.p12", "com.example.app.revoked.p12"],
      ["com.example.app.revoked.pem", "com.example.app.revoked.key"],
      ["ca.pem"], ["ca.pem", "gateway.pem", "gateway.key", "com.example.app.pem", "com.example.app.key", "crl.pem"],
    ])
  func completes(missing: [String]) throws {
    try inDirectory(Self.everything) { directory, url, openssl in
      for name in missing { try FileManager.default.removeItem(at: url.appending(path: name)) }
      // Half a file under its first name, readable by all.
      try url.write("-----BEGIN PRIV", ".gateway.key.new")
      try url.write("-----BEGIN PRIV", ".com.example.app.key.new")
      var order = IdentityDirectory.Order(topics: [Self.topic])
      order.states = Set(IdentityDirectory.ProviderState.allCases)
      order.replacesExisting = missing == ["crl.pem"]
      _ = try directory.issue(order)
      #expect(try directory.gateway().subject == "CN=apnscope gateway")
      for state in IdentityDirectory.ProviderState.allCases {
        let identity = try directory.provider(topic: Self.topic, state)
        expectUsable(identity)
        let stem = url.appending(path: IdentityDirectory.name(of: Self.topic, state)).path
        for file in ["\(stem).combined.pem", "\(stem).p12"] {
          #expect(try Identity(file: file).certificatePEM() == identity.certificatePEM())
        }
      }
      for name in ["gateway.key", "com.example.app.key", "ca.key"] { #expect(try url.mode(of: name) == 0o600) }
      for name in ["gateway.pem", "\(Self.topic).pem"] { #expect(try openssl.run(Self.verify + [name]).status == 0) }
      #expect(try openssl.run(Self.verify + ["\(Self.topic).revoked.pem"]).text.contains("certificate revoked"))
      for name in [".gateway.key.new", ".com.example.app.key.new"]
      where missing.contains(String(name.dropFirst().dropLast(4))) {
        #expect(!FileManager.default.fileExists(atPath: url.appending(path: name).path))
      }
    }
  }

  // MARK: what is wrong

  @Test("An authority without its key, or another's files, stop it; nothing is overwritten") func foreign() throws {
    try inDirectory(Self.everything) { directory, url, _ in
      let other = try CertificateAuthority()
      let order = IdentityDirectory.Order(topics: [Self.topic])

      let key = try url.text(of: "ca.key")
      try FileManager.default.removeItem(at: url.appending(path: "ca.key"))
      #expect(
        expectError(.file) { try directory.issue(order) }.hasPrefix("\(url.path)/ca.key: not found; it is needed "))
      try url.write(String(decoding: try other.identity.keyPEM(), as: UTF8.self), "ca.key")
      #expect(
        expectError(.credentials) { try directory.issue(order) }
          .hasPrefix("\(url.path)/ca.key: the private key does not belong to the certificate in \(url.path)/ca.pem"))
      try url.write(key, "ca.key")

      for (name, text) in [
        ("gateway.pem", try other.gateway().certificatePEM()), ("crl.pem", try other.revocationList().pem()),
      ] {
        let good = try url.text(of: name)
        try url.write(String(decoding: text, as: UTF8.self), name)
        #expect(
          expectError(.credentials) { try directory.issue(order) }
            == "\(url.path)/\(name): is not from the authority of \(url.path)/ca.pem")
        #expect(try url.text(of: name) == String(decoding: text, as: UTF8.self))
        try url.write("Dear diary", name)
        #expect(expectError(.credentials) { try directory.issue(order) }.hasPrefix("\(url.path)/\(name): "))
        #expect(try url.text(of: name) == "Dear diary")
        try url.write(good, name)
      }
      _ = try directory.issue(order)
    }
  }

  @Test("A place that cannot be written or read") func places() throws {
    try withTemporaryFolder { folder in
      let order = IdentityDirectory.Order(topics: [Self.topic])
      let deep = folder.appending(path: "missing/ids").path
      #expect(
        expectError(.file) { try IdentityDirectory(deep).issue(order) } == "\(deep): No such file or directory")
      let file = try folder.write("", "file")
      #expect(expectError(.file) { try IdentityDirectory(file).issue(order) } == "\(file): Not a directory")
      let missing = IdentityDirectory(folder.appending(path: "missing").path)
      #expect(expectError(.file) { try missing.topics() } == "\(missing.path): No such file or directory")
      #expect(
        expectError(.file) { try missing.gateway() } == "\(missing.path)/gateway.pem: No such file or directory")
      #expect(
        expectError(.file) { try missing.provider(topic: "a") } == "\(missing.path)/a.pem: No such file or directory")
    }
  }

  // MARK: topics

  @Test(
    "Topics that cannot be file names, or are others'",
    arguments: [
      ("", "empty"), ("../etc", "characters"), ("a/b", "characters"), ("a\0b", "NUL"), ("a b", "characters"),
      ("naïve", "characters"), (".hidden", "begins"), ("-rf", "begins"), ("ca", "name of a file"),
      ("gateway", "name of a file"), ("crl", "name of a file"), ("com.example.revoked", "ends with .revoked"),
      ("com.example.expired", "ends with .expired"), ("com.example.combined", "ends with .combined"),
      (String(repeating: "a", count: 129), "the limit is 128"),
    ])
  func badTopic(topic: String, reason: String) throws {
    try withTemporaryFolder { folder in
      let directory = IdentityDirectory(folder.appending(path: "ids").path)
      for message in [
        expectError(.configuration) { try directory.issue(.init(topics: ["fine", topic])) },
        expectError(.configuration) { try directory.provider(topic: topic) },
      ] { #expect(message.contains(reason), "\(message)") }
      #expect(!FileManager.default.fileExists(atPath: directory.path))
    }
  }

  @Test("The longest topic: whole in the UID, and a common name of the 64 characters that may be")
  func longTopic() throws {
    let topic = "com.example." + String(repeating: "x", count: 115) + "z"
    try inDirectory(Self.order { $0.topics = [topic, "CA", "gateway.x", "_"] }) { directory, _, openssl in
      let identity = try directory.provider(topic: topic)
      #expect(identity.topic == topic)
      #expect(identity.topic?.count == CertificateAuthority.maximumTopicLength)
      #expect(identity.subject == "UID=\(topic),CN=" + "Apple Push Services: \(topic)".prefix(64))
      #expect(try openssl.run(Self.verify + ["\(topic).pem"]).status == 0)
      #expect(try directory.topics() == ["CA", "_", topic, "gateway.x"])
    }
  }

  @Test("An authority in memory issues for topics that are no file names") func inMemory() throws {
    let authority = try CertificateAuthority()
    let provider = try authority.provider(topic: "münchen/ü " + String(repeating: "ü", count: 50))
    #expect(provider.topic == "münchen/ü " + String(repeating: "ü", count: 50))
    #expect(provider.subject.hasSuffix("CN=Apple Push Services: münchen/ü " + String(repeating: "ü", count: 33)))
    let first = try authority.revocationList(revoking: [provider])
    let second = try authority.revocationList(revoking: [provider, try authority.gateway()], after: first)
    #expect((first.count, second.count) == (1, 2))
    #expect(second.holds(provider))
    #expect(!second.holds(try authority.gateway()))
    #expect(try authority.revocationList().count == 0)
  }

  @Test("Days that cannot be", arguments: [0, -1, 3_651, .max]) func badDays(days: Int) throws {
    try withTemporaryFolder { folder in
      var order = IdentityDirectory.Order(topics: [Self.topic])
      order.days = days
      let directory = IdentityDirectory(folder.appending(path: "ids").path)
      #expect(expectError(.configuration) { try directory.issue(order) }.contains("1 to 3650 days"))
      #expect(!FileManager.default.fileExists(atPath: directory.path))
    }
  }
}
