import COpenSSL
import Foundation
import TLSFoundation
import TestSupport
import Testing

@testable import TLSTransport

@Suite("identities in PEM", .waiting)
struct IdentityTests {
  static let provider = TLSIdentity.ecClient

  @Test("Certificate and key in two files, and in one, in either order") func files() throws {
    try withTemporaryFolder { folder in
      let (certificate, key) = (Self.provider.certificatePEM, Self.provider.pkcs8KeyPEM)
      try folder.write(certificate, "certificate.pem")
      try folder.write(key, "key.pem")
      try folder.write("Bag Attributes\n  friendlyName: mine\n" + certificate + key, "both.pem")
      try folder.write(key + certificate, "turned.pem")
      let two = try Identity(
        certificateFile: folder.appending(path: "certificate.pem").path, keyFile: folder.appending(path: "key.pem").path
      )
      expectUsable(two)
      for name in ["both.pem", "turned.pem"] {
        expectUsable(try Identity(certificateFile: folder.appending(path: name).path))
        expectUsable(try Identity(file: folder.appending(path: name).path))
      }
      #expect(try two.certificatePEM() == Array(certificate.utf8))
      #expect(try two.keyPEM() == Array(key.utf8))
    }
  }

  @Test("Every form of a key, RSA and EC", arguments: TLSIdentity.KeyKind.allCases)
  func forms(kind: TLSIdentity.KeyKind) throws {
    let identity = TLSIdentity.client(kind)
    let certificate = Array(identity.certificatePEM.utf8)
    for key in [identity.traditionalKeyPEM, identity.pkcs8KeyPEM] {
      expectUsable(try Identity(pem: certificate, key: Array(key.utf8)))
      // A pass phrase that is not needed does no harm.
      expectUsable(try Identity(pem: certificate, key: Array(key.utf8), passPhrase: Array("unused".utf8)))
    }
    let phrase = "correct horse"
    for key in [
      identity.encryptedTraditionalKeyPEM(passPhrase: phrase), identity.encryptedPKCS8KeyPEM(passPhrase: phrase),
    ] {
      expectUsable(try Identity(pem: certificate, key: Array(key.utf8), passPhrase: Array(phrase.utf8)))
      let wrong = expectError(.credentials) {
        try Identity(pem: certificate, key: Array(key.utf8), passPhrase: Array("incorrect horse".utf8))
      }
      #expect(wrong.hasPrefix("private key: cannot be decrypted with this pass phrase: "))
      #expect(!wrong.contains("horse"))
      let missing = expectError(.credentials) { try Identity(pem: certificate, key: Array(key.utf8)) }
      #expect(missing.hasPrefix("private key: is encrypted, and no pass phrase was given"))
    }
  }

  @Test("A file of openssl ecparam, with its parameters before the key") func parameters() throws {
    try withTemporaryFolder { folder in
      let openssl = OpenSSLCommand(folder: folder)
      try openssl.run("ecparam", "-name", "prime256v1", "-genkey", "-out", "key.pem")
      #expect(try folder.text(of: "key.pem").hasPrefix("-----BEGIN EC PARAMETERS-----"))
      try openssl.run("req", "-x509", "-key", "key.pem", "-subj", "/UID=com.example.app", "-out", "certificate.pem")
      let (certificate, key) = ("certificate.pem", "key.pem")
      expectUsable(
        try Identity(
          certificateFile: folder.appending(path: certificate).path, keyFile: folder.appending(path: key).path))
    }
  }

  @Test("A chain: the certificate is the one of the key, the others are above it", arguments: [false, true])
  func chain(isLeafLast: Bool) throws {
    let others = TLSIdentity.rsaServer.certificatePEM + TLSIdentity.ecServer.certificatePEM
    let certificates =
      isLeafLast ? others + Self.provider.certificatePEM : Self.provider.certificatePEM + others
    let identity = try Identity(pem: Array((certificates + Self.provider.pkcs8KeyPEM).utf8))
    expectUsable(identity)
    #expect(identity.chainCount == 2)
    let names = try (0..<2).map { index in
      unsafe Certificate.subject(of: try #require(unsafe apnscope_sk_X509_value(identity.chain, Int32(index))))
    }
    #expect(names == ["CN=gateway.push.apple.com", "CN=gateway.push.apple.com"])
    #expect(try Identity(pem: Array((Self.provider.certificatePEM + Self.provider.pkcs8KeyPEM).utf8)).chainCount == 0)
  }

  // MARK: names

  @Test("Subject, topic and end, as openssl reads them") func names() throws {
    try withTemporaryFolder { folder in
      let openssl = OpenSSLCommand(folder: folder)
      for (subject, text, topic) in [
        (
          "/UID=com.example.app/CN=Apple Push Services: com.example.app",
          "UID=com.example.app,CN=Apple Push Services: com.example.app", "com.example.app"
        ), ("/CN=Dear, diary/UID=a+b", "CN=Dear\\, diary,UID=a\\+b", "a+b"), ("/CN=no topic", "CN=no topic", nil),
        ("/UID=first/UID=second/O=Überall", "UID=first,UID=second,O=Überall", "first"),
      ] as [(String, String, String?)] {
        try openssl.run(
          "req", "-x509", "-newkey", "rsa:1024", "-nodes", "-utf8", "-keyout", "both.pem", "-out", "certificate.pem",
          "-days", "9", "-subj", subject.replacing("+", with: "\\+"))
        let identity = try Identity(
          certificateFile: folder.appending(path: "certificate.pem").path,
          keyFile: folder.appending(path: "both.pem").path)
        #expect(identity.subject == text)
        #expect(identity.topic == topic)
        #expect(unsafe Certificate.subject(of: identity.certificate) == text)
        #expect(unsafe Certificate.topic(of: identity.certificate) == topic)
        let end = Int(Date().timeIntervalSince1970) + 9 * 86_400
        #expect(abs(identity.notAfterUnixSeconds - end) < 60)
      }
    }
  }

  // MARK: what is wrong

  @Test("A key that does not belong: both files are named") func mismatch() throws {
    try withTemporaryFolder { folder in
      let certificate = try folder.write(Self.provider.certificatePEM, "certificate.pem")
      let key = try folder.write(TLSIdentity.ecServer.pkcs8KeyPEM, "key.pem")
      let both = try folder.write(Self.provider.certificatePEM + TLSIdentity.rsaServer.pkcs8KeyPEM, "both.pem")
      let two = expectError(.credentials) { try Identity(certificateFile: certificate, keyFile: key) }
      #expect(two == "\(key): the private key does not belong to the certificate in \(certificate)")
      let one = expectError(.credentials) { try Identity(certificateFile: both) }
      #expect(one == "\(both): the private key does not belong to the certificate")
    }
  }

  @Test("Files that cannot be read: the path and the reason") func unreadable() throws {
    try withTemporaryFolder { folder in
      let missing = folder.appending(path: "missing.pem").path
      let certificate = try folder.write(Self.provider.certificatePEM, "certificate.pem")
      let large = try folder.write(String(repeating: " ", count: 1 << 20) + "\n", "large.pem")
      for (path, reason) in [
        (missing, "No such file or directory"), (folder.path, "Is a directory"),
        (large, "exceeds 1 MiB, too long for a certificate or key"),
      ] {
        for make in [
          { try Identity(certificateFile: path) }, { try Identity(file: path) }, { try Identity(pkcs12File: path) },
          { try Identity(certificateFile: certificate, keyFile: path) },
        ] { #expect(expectError(.file, make) == "\(path): \(reason)") }
      }
      // As much as may be.
      let full = try folder.write(
        String(repeating: "\n", count: (1 << 20) - Self.provider.certificatePEM.utf8.count)
          + Self.provider.certificatePEM, "full.pem")
      let key = try folder.write(Self.provider.pkcs8KeyPEM, "key.pem")
      expectUsable(try Identity(certificateFile: full, keyFile: key))
    }
  }

  @Test("Files with something else inside: the path and the reason") func somethingElse() throws {
    try withTemporaryFolder { folder in
      let (certificate, key) = (Self.provider.certificatePEM, Self.provider.pkcs8KeyPEM)
      let damaged = certificate.split(separator: "\n").enumerated().map { $0 == 3 ? "AAAA" : String($1) }.joined(
        separator: "\n")
      for (text, reason, isExact) in [
        ("", "is empty", true), ("Dear diary", "is neither PEM nor PKCS#12", true),
        (key, "holds no certificate in PEM", true), (certificate, "holds no private key in PEM", true),
        (damaged + "\n" + key, "holds a damaged certificate: ", false),
        (certificate + damaged + "\n" + key, "holds a damaged certificate: ", false),
        (certificate + key.replacing("M", with: "N"), "the private key cannot be read: ", false),
        ("0 is how PKCS#12 begins", "is not PKCS#12: ", false),
      ] {
        let file = try folder.write(text, "file.pem")
        let message = expectError(.credentials) { try Identity(file: file) }
        #expect(isExact ? message == "\(file): \(reason)" : message.hasPrefix("\(file): \(reason)"), "\(message)")
        #expect(isExact || message.count > "\(file): \(reason)".count + 5, "nothing from OpenSSL: \(message)")
      }
    }
  }
}

/// A pair that TLS takes, of the topic com.example.app.
func expectUsable(_ identity: Identity, sourceLocation: SourceLocation = #_sourceLocation) {
  let context = unsafe SSL_CTX_new(TLS_method())
  defer { unsafe SSL_CTX_free(context) }
  let isTaken = unsafe SSL_CTX_use_cert_and_key(context, identity.certificate, identity.key, identity.chain, 1)
  #expect(isTaken == 1, sourceLocation: sourceLocation)
  #expect(unsafe SSL_CTX_check_private_key(context) == 1, sourceLocation: sourceLocation)
  #expect(identity.topic == "com.example.app", sourceLocation: sourceLocation)
}

/// The message of the error that `body` must throw. OpenSSL's error queue has to be empty afterwards.
@discardableResult
func expectError<T>(
  _ kind: TLSError.Kind, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> T
) -> String {
  do {
    _ = try body()
    Issue.record("nothing was thrown", sourceLocation: sourceLocation)
    return ""
  } catch {
    #expect((error as? TLSError)?.kind == kind, "\(error)", sourceLocation: sourceLocation)
    #expect(ERR_peek_error() == 0, sourceLocation: sourceLocation)
    return "\(error)"
  }
}
