import Foundation
import TestSupport
import Testing

@testable import TLSTransport

/// Files that `openssl pkcs12 -export` makes.
@Suite("identities in PKCS#12", .waiting)
struct PKCS12Tests {
  private func inFolder(_ body: (URL, (String...) throws -> String) throws -> Void) throws {
    try withTemporaryFolder { folder in
      try folder.write(TLSIdentity.rsaClient.certificatePEM + TLSIdentity.rsaClient.pkcs8KeyPEM, "provider.pem")
      try folder.write(TLSIdentity.rsaServer.certificatePEM, "above.pem")
      try body(folder) { (options: String...) in
        let answer = try OpenSSLCommand(folder: folder).run(
          ["pkcs12", "-export", "-in", "provider.pem", "-out", "provider.p12"] + options)
        try #require(answer.status == 0, "\(answer.text)")
        return folder.appending(path: "provider.p12").path
      }
    }
  }

  @Test(
    "With a pass phrase, in today's form and in Keychain's (40-bit RC2, 3DES)",
    arguments: [[], ["-legacy"], ["-certpbe", "PBE-SHA1-3DES", "-keypbe", "PBE-SHA1-3DES", "-macalg", "sha1"]])
  func passPhrase(form: [String]) throws {
    try withTemporaryFolder { folder in
      try folder.write(TLSIdentity.rsaClient.certificatePEM + TLSIdentity.rsaClient.pkcs8KeyPEM, "provider.pem")
      let answer = try OpenSSLCommand(folder: folder).run(
        ["pkcs12", "-export", "-in", "provider.pem", "-out", "a.p12", "-passout", "pass:schön"] + form)
      try #require(answer.status == 0, "\(answer.text)")
      let file = folder.appending(path: "a.p12").path
      expectUsable(try Identity(pkcs12File: file, passPhrase: Array("schön".utf8)))
      expectUsable(try Identity(file: file, passPhrase: Array("schön".utf8)))
      let wrong = expectError(.credentials) { try Identity(pkcs12File: file, passPhrase: Array("schon".utf8)) }
      #expect(wrong.hasPrefix("\(file): cannot be decrypted with this pass phrase: mac verify failure"))
      let missing = expectError(.credentials) { try Identity(pkcs12File: file) }
      #expect(missing.hasPrefix("\(file): is encrypted, and no pass phrase was given"))
    }
  }

  @Test("Without one: the empty pass phrase, and no encryption at all") func noPassPhrase() throws {
    try inFolder { _, export in
      let empty = try export("-passout", "pass:")
      expectUsable(try Identity(pkcs12File: empty))
      expectUsable(try Identity(pkcs12File: empty, passPhrase: []))
      let open = try export("-passout", "pass:", "-keypbe", "NONE", "-certpbe", "NONE", "-nomac")
      expectUsable(try Identity(pkcs12File: open))
      expectUsable(try Identity(file: open))
    }
  }

  @Test("With the certificates above") func chain() throws {
    try inFolder { _, export in
      let file = try export("-passout", "pass:x", "-certfile", "above.pem")
      let identity = try Identity(file: file, passPhrase: Array("x".utf8))
      expectUsable(identity)
      #expect(identity.chainCount == 1)
    }
  }

  @Test("Without a key, without a certificate, cut short, with a key file beside it") func wrong() throws {
    try inFolder { folder, export in
      var file = try export("-passout", "pass:", "-nokeys")
      #expect(expectError(.credentials) { try Identity(file: file) } == "\(file): holds no private key")
      file = try export("-passout", "pass:", "-nocerts", "-inkey", "provider.pem")
      #expect(expectError(.credentials) { try Identity(file: file) } == "\(file): holds no certificate")
      file = try export("-passout", "pass:")
      let key = folder.appending(path: "provider.pem").path
      #expect(
        expectError(.credentials) { try Identity(file: file, keyFile: key) }
          == "\(file): is PKCS#12, which contains its key; remove the key file \(key)")
      let bytes = try Data(contentsOf: URL(filePath: file))
      for length in [1, 2, 40, bytes.count / 2, bytes.count - 1] {
        try bytes.prefix(length).write(to: URL(filePath: file))
        #expect(expectError(.credentials) { try Identity(file: file) }.hasPrefix("\(file): is not PKCS#12: "))
      }
    }
  }

  @Test("No damaged byte brings it down") func damaged() throws {
    try inFolder { folder, export in
      let bytes = try Data(contentsOf: URL(filePath: try export("-passout", "pass:", "-iter", "1", "-maciter")))
      let file = folder.appending(path: "damaged.p12")
      var refused = 0
      for position in stride(from: 0, to: bytes.count, by: 7) {
        var copy = bytes
        copy[position] ^= 0x41
        try copy.write(to: file)
        do { _ = try Identity(pkcs12File: file.path) } catch { refused += 1 }
      }
      #expect(refused > bytes.count / 7 / 2)
    }
  }
}
