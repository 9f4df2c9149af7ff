import Foundation
import TestSupport
import Testing

@testable import TLSTransport

/// What real providers want of a certificate and its files before they connect, as `openssl` sees it.
@Suite("identities for providers that are particular", .waiting)
struct IdentityFormsTests {
  private static let topic = "com.example.app"

  private func inDirectory(
    _ change: (inout IdentityDirectory.Order) -> Void = { _ in },
    _ body: (IdentityDirectory, URL, OpenSSLCommand) throws -> Void
  ) throws {
    try withTemporaryFolder { folder in
      let url = folder.appending(path: "ids")
      let directory = IdentityDirectory(url.path)
      _ = try directory.issue(Self.order(change))
      try body(directory, url, OpenSSLCommand(folder: url))
    }
  }

  private static func order(_ change: (inout IdentityDirectory.Order) -> Void = { _ in }) -> IdentityDirectory.Order {
    var order = IdentityDirectory.Order(topics: [topic])
    change(&order)
    return order
  }

  /// node-apn: "certificate does not support configured environment"; libcapn: "created for usage in <UNKNOWN>".
  @Test("A provider's certificate has Apple's extensions for both environments, with the value NULL")
  func environments() throws {
    try inDirectory { _, _, openssl in
      let structure = try openssl.run("asn1parse", "-in", "\(Self.topic).pem").text.split(separator: "\n")
      for number in 1...2 {
        let line = try #require(structure.firstIndex { $0.hasSuffix(":1.2.840.113635.100.6.3.\(number)") })
        #expect(structure[line + 1].hasSuffix("OCTET STRING      [HEX DUMP]:0500"), "\(structure[line + 1])")
      }
      #expect(try !openssl.run("asn1parse", "-in", "gateway.pem").text.contains("113635"))
    }
  }

  @Test("One PEM file has certificate and key, in this order")
  func combined() throws {
    try inDirectory { directory, url, openssl in
      let text = try url.text(of: "\(Self.topic).combined.pem")
      #expect(text == (try url.text(of: "\(Self.topic).pem")) + (try url.text(of: "\(Self.topic).key")))
      expectUsable(try Identity(file: "\(url.path)/\(Self.topic).combined.pem"))
      #expect(try directory.topics() == [Self.topic])
    }
  }

  @Test(
    "PKCS#12 opens with its pass phrase and no other, in today's form and in that of the protocol's time",
    arguments: ["", "schön", "correct horse"], [false, true])
  func pkcs12(passPhrase: String, isLegacy: Bool) throws {
    try inDirectory {
      $0.pkcs12 = .init(passPhrase: Array(passPhrase.utf8), isLegacy: isLegacy)
    } _: { _, url, openssl in
      let file = "\(Self.topic).p12"
      let answer = try openssl.run("pkcs12", "-in", file, "-passin", "pass:\(passPhrase)", "-nodes", "-info")
      #expect(answer.status == 0, "\(answer.text)")
      #expect(answer.text.contains("MAC: \(isLegacy ? "sha1" : "sha256"), Iteration 2048"))
      #expect(answer.text.contains("pbeWithSHA1And3-KeyTripleDES-CBC") == isLegacy)
      #expect(answer.text.contains("AES-256-CBC") == !isLegacy)
      #expect(answer.text.contains("friendlyName: Apple Push Services: \(Self.topic)"))
      for part in [".pem", ".key"] { #expect(answer.text.contains(try url.text(of: "\(Self.topic)\(part)"))) }
      #expect(try openssl.run("pkcs12", "-in", file, "-passin", "pass:wrong", "-nodes").status != 0)
      expectUsable(try Identity(file: "\(url.path)/\(file)", passPhrase: Array(passPhrase.utf8)))
    }
  }

  @Test("PKCS#12 that is there stays until another form is asked for; the key stays then, too")
  func pkcs12Again() throws {
    try inDirectory { directory, url, openssl in
      let file = url.appending(path: "\(Self.topic).p12")
      let (first, key) = (try Data(contentsOf: file), try url.text(of: "\(Self.topic).key"))
      _ = try directory.issue(Self.order())
      #expect(try Data(contentsOf: file) == first)
      let entries = try directory.issue(Self.order { $0.pkcs12 = .init(passPhrase: Array("x".utf8), isLegacy: true) })
      #expect(entries.filter(\.isNew).map(\.subject) == [.revocationList(count: 0)])
      #expect(try openssl.run("pkcs12", "-in", file.path, "-passin", "pass:x", "-nodes").text.contains(key))
    }
    #expect(throws: TLSError.self) { try CertificateAuthority().identity.pkcs12(.init(passPhrase: [65, 0, 66])) }
  }

  /// PushSharp 4 wants "Apple" in the issuer, notificato the organization "Apple Inc."
  @Test("An authority has the name that it is given, and says what it is")
  func authorityName() throws {
    let name = CertificateAuthority.Name(
      commonName: "Apple Worldwide Developer Relations Certification Authority", organization: "Apple Inc.")
    try inDirectory {
      $0.authorityName = name
    } _: { directory, _, openssl in
      let issuer = try openssl.run("x509", "-in", "\(Self.topic).pem", "-noout", "-issuer").text
      #expect(
        issuer.wholeMatch(
          of:
            #/issuer=O = Apple Inc\., OU = apnscope throw-away authority [0-9a-f]{8}, CN = Apple Worldwide Developer Relations Certification Authority\n/#
        ) != nil, "\(issuer)")
      #expect(
        try openssl.run(
          "verify", "-x509_strict", "-CAfile", "ca.pem", "-crl_check", "-CRLfile", "crl.pem", "\(Self.topic).pem",
          "gateway.pem"
        ).status == 0)
      // It keeps its name, and takes no other.
      _ = try directory.issue(Self.order())
      _ = try directory.issue(Self.order { $0.authorityName = name })
      for other in [
        CertificateAuthority.Name(commonName: "Other"), .init(organization: "Other"),
        .init(commonName: name.commonName, organization: "apple Inc."),
      ] {
        let message = expectError(.configuration) { try directory.issue(Self.order { $0.authorityName = other }) }
        #expect(
          message.hasPrefix("\(directory.path)/ca.pem: is named O=Apple Inc.,OU=apnscope throw-away"), "\(message)")
      }
    }
    try inDirectory { directory, _, _ in
      #expect(
        try directory.gateway().subject == "CN=apnscope gateway")
      let authority = try Identity(
        certificateFile: directory.authorityFile, keyFile: "\(directory.path)/ca.key")
      #expect(authority.subject.hasPrefix("CN=apnscope throw-away authority "))
    }
    for bad in ["", "a\0b", String(repeating: "x", count: 65)] {
      _ = expectError(.configuration) { try CertificateAuthority(name: .init(commonName: bad)) }
      _ = expectError(.configuration) { try CertificateAuthority(name: .init(organization: bad)) }
    }
  }

  @Test("A gateway is good for the names and addresses that are asked for; it is made anew when it lacks one")
  func serverNames() throws {
    try inDirectory { directory, url, openssl in
      func isFor(_ option: String, _ name: String) throws -> Bool {
        try openssl.run("verify", "-x509_strict", "-CAfile", "ca.pem", option, name, "gateway.pem").status == 0
      }
      let plain = try url.text(of: "gateway.key")
      #expect(try !isFor("-verify_hostname", "gateway.push.apple.com"))
      let names = Self.order { $0.serverNames = ["gateway.push.apple.com", "10.0.0.7", "fd00::7"] }
      let entries = try directory.issue(names)
      #expect(entries.first { $0.subject == .gateway }?.isNew == true)
      for name in ["gateway.push.apple.com", "localhost"] { #expect(try isFor("-verify_hostname", name), "\(name)") }
      for address in ["10.0.0.7", "fd00::7", "127.0.0.1", "::1"] {
        #expect(try isFor("-verify_ip", address), "\(address)")
      }
      #expect(try !isFor("-verify_hostname", "feedback.push.apple.com"))
      let named = try url.text(of: "gateway.key")
      #expect(named != plain)
      // It has them all, and an order without names asks for none.
      for order in [names, Self.order(), Self.order { $0.serverNames = ["localhost", "127.0.0.1"] }] {
        #expect(try directory.issue(order).first { $0.subject == .gateway }?.isNew == false)
      }
      #expect(try url.text(of: "gateway.key") == named)
      for name in ["", "a b", "a,DNS:b", "-a", ".a", "ü", "*", String(repeating: "a", count: 254)] {
        let message = expectError(.configuration) { try directory.issue(Self.order { $0.serverNames = [name] }) }
        #expect(message == "'\(name)' is neither a host name nor an IP address")
      }
    }
  }
}
