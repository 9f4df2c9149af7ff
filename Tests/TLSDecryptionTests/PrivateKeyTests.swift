import Foundation
import TLSFoundation
import TestSupport
import Testing

@testable import TLSDecryption

/// Server keys in every form that they are kept in. The keys are made here and are nobody's.
@Suite(.waiting, .enabled(if: ExternalTool.isInstalled("openssl"))) struct PrivateKeyTests {
  /// One RSA key for all tests, unencrypted PKCS#8.
  private static let key: Result<[UInt8], any Error> = Result {
    try openssl(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
  }

  /// How to make each form of the key, and whether it takes a pass phrase ("of the day").
  static let forms: [(name: String, arguments: [String], begin: String, isEncrypted: Bool)] = [
    ("PKCS#8", ["pkcs8", "-topk8", "-nocrypt"], "BEGIN PRIVATE KEY", false),
    ("PKCS#1", ["rsa", "-traditional"], "BEGIN RSA PRIVATE KEY", false),
    ("PKCS#8 with AES", ["pkcs8", "-topk8", "-v2", "aes256"], "BEGIN ENCRYPTED PRIVATE KEY", true),
    ("PKCS#8 with scrypt", ["pkcs8", "-topk8", "-scrypt"], "BEGIN ENCRYPTED PRIVATE KEY", true),
    ("PKCS#8 with triple DES", ["pkcs8", "-topk8", "-v2", "des3"], "BEGIN ENCRYPTED PRIVATE KEY", true),
    ("PKCS#8 with PKCS#5 1.5", ["pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES"], "BEGIN ENCRYPTED PRIVATE KEY", true),
    ("traditional with AES", ["rsa", "-traditional", "-aes128"], "Proc-Type: 4,ENCRYPTED", true),
    ("traditional with triple DES", ["rsa", "-traditional", "-des3"], "Proc-Type: 4,ENCRYPTED", true),
  ]

  private static let phrase = "of the day"

  private static func openssl(_ arguments: [String], input: [UInt8] = []) throws -> [UInt8] {
    try ExternalTool.run("openssl", arguments, input: input)
  }

  private static func pem(_ name: String) throws -> [UInt8] {
    let form = try #require(forms.first { $0.name == name })
    let pem = try openssl(
      form.arguments + (form.isEncrypted ? ["-passout", "pass:\(phrase)"] : []), input: try key.get())
    try #require(String(decoding: pem, as: UTF8.self).contains(form.begin))
    return pem
  }

  /// Opens what OpenSSL encrypts to the key.
  private func expectOpens(_ key: PrivateKey) throws {
    let premaster: [UInt8] = [3, 3] + (0..<46)
    let encrypted = try withFile(try Self.key.get()) {
      try Self.openssl(["pkeyutl", "-encrypt", "-inkey", $0, "-pkeyopt", "rsa_padding_mode:pkcs1"], input: premaster)
    }
    #expect(key.decrypt(encrypted) == premaster)
    var damaged = encrypted
    damaged[100] ^= 1
    #expect(key.decrypt(damaged) != premaster)
    #expect(key.decrypt([]) == nil)
    #expect(key.decrypt([UInt8](encrypted.dropLast())) != premaster)
  }

  @Test("Every form of a key opens premaster secrets", arguments: forms.map(\.name))
  func everyFormOfAKeyOpensPremasterSecrets(name: String) throws {
    try expectOpens(PrivateKey(pem: try Self.pem(name), passPhrase: Array(Self.phrase.utf8)))
  }

  @Test("A key that is not encrypted needs no pass phrase", arguments: forms.filter { !$0.isEncrypted }.map(\.name))
  func aKeyThatIsNotEncryptedNeedsNoPassPhrase(name: String) throws {
    try expectOpens(PrivateKey(pem: try Self.pem(name), passPhrase: nil))
  }

  @Test(
    "An encrypted key says whether its pass phrase is missing or wrong",
    arguments: forms.filter(\.isEncrypted).map(\.name))
  func anEncryptedKeySaysWhetherItsPassPhraseIs(name: String) throws {
    let pem = try Self.pem(name)
    #expect(throws: SecretsError("is encrypted, and no pass phrase was given")) {
      try PrivateKey(pem: pem, passPhrase: nil)
    }
    for wrong in ["", "of the Day", Self.phrase + " ", String(repeating: "x", count: 5_000)] {
      #expect(throws: SecretsError("cannot be decrypted with this pass phrase")) {
        try PrivateKey(pem: pem, passPhrase: Array(wrong.utf8))
      }
    }
  }

  @Test("Text around a key does not matter") func textAroundAKeyDoesNotMatter() throws {
    let before = Array("Bag Attributes\n    friendlyName: gateway\n".utf8)
    try expectOpens(PrivateKey(pem: before + (try Self.pem("PKCS#8")) + Array("\nrest".utf8), passPhrase: nil))
    let windows = String(decoding: try Self.pem("PKCS#1"), as: UTF8.self).replacing("\n", with: "\r\n")
    try expectOpens(PrivateKey(pem: Array(windows.utf8), passPhrase: nil))
  }

  /// Certificate and key in one file, as servers keep them.
  @Test("A key behind its certificate is found, and is that certificate's")
  func aKeyBehindItsCertificateIsFoundAndIsThat() throws {
    let (pem, der) = try withFile(try Self.key.get()) { path in
      let certificate = try Self.openssl([
        "req", "-x509", "-new", "-key", path, "-days", "1", "-subj", "/CN=gateway.example/UID=com.example.app",
      ])
      return (certificate, try Self.openssl(["x509", "-outform", "DER"], input: certificate))
    }
    let key = try PrivateKey(pem: pem + (try Self.key.get()), passPhrase: nil)
    try expectOpens(key)
    let certificate = try #require(Certificate(der: der))
    #expect(key.matches(certificate) == true)
    #expect(certificate.subject == "CN=gateway.example,UID=com.example.app")
    let other = try PrivateKey(
      pem: try Self.openssl(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"]), passPhrase: nil)
    #expect(other.matches(certificate) == false)
    #expect(Certificate(der: Array(der.dropLast(der.count / 2))) == nil)
    #expect(Certificate(der: []) == nil)
  }

  /// What was encrypted to another key, or holds no premaster secret, opens nothing.
  @Test("What is no premaster secret is none") func whatIsNoPremasterSecretIsNone() throws {
    let key = try PrivateKey(pem: try Self.key.get(), passPhrase: nil)
    try withFile(try Self.key.get()) { path in
      for length in [0, 47, 49, 200] {
        let encrypted = try Self.openssl(
          ["pkeyutl", "-encrypt", "-inkey", path, "-pkeyopt", "rsa_padding_mode:pkcs1"],
          input: [UInt8](repeating: 3, count: length))
        #expect(key.decrypt(encrypted) == nil, "\(length) bytes")
      }
    }
    #expect(key.decrypt([UInt8](repeating: 0xff, count: 5_000)) == nil)
  }

  @Test(
    "A key that is not RSA is refused with the reason",
    arguments: [
      ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], ["genpkey", "-algorithm", "ED25519"],
      ["ecparam", "-name", "prime256v1", "-genkey", "-noout"],
    ])
  func aKeyThatIsNotRSAIsRefusedWithTheReason(arguments: [String]) throws {
    let pem = try Self.openssl(arguments)
    #expect(
      throws: SecretsError("is not an RSA key; only RSA key exchange can be opened with the server's key")
    ) { try PrivateKey(pem: pem, passPhrase: nil) }
  }

  @Test("What is no private key is refused with OpenSSL's reason") func whatIsNoPrivateKeyIsRefusedWithOpenSSLReason()
    throws
  {
    let key = try Self.key.get()
    let publicKey = try Self.openssl(["pkey", "-pubout"], input: key)
    let der = try Self.openssl(["pkey", "-outform", "DER"], input: key)
    var damaged = key
    damaged[200] = 0x21
    let inputs: [(name: String, bytes: [UInt8])] = [
      ("nothing", []), ("text", Array("CLIENT_RANDOM 00 00\n".utf8)), ("a public key", publicKey), ("DER", der),
      ("half a key", Array(key.prefix(key.count / 2))), ("a damaged key", damaged),
      ("zeros", [UInt8](repeating: 0, count: 9_999)),
    ]
    for (name, bytes) in inputs {
      let error = #expect(throws: SecretsError.self, "\(name)") { try PrivateKey(pem: bytes, passPhrase: nil) }
      let message = error?.message ?? ""
      #expect(message.hasPrefix("is not a private key in PEM: "), "\(name): \(message)")
      #expect(message.count > 30 && !message.contains("no reason"), "\(name): \(message)")
    }
  }

  // MARK: files

  @Test("A secrets file is read whole, and not beyond its limit") func aSecretsFileIsReadWholeAndNotBeyondItsLimit()
    throws
  {
    let bytes = [UInt8](repeating: 0x61, count: 200_000)
    try withFile(bytes) { path in
      let whole = try SecretsFile.read(path, maximumLength: 200_000)
      #expect(whole == bytes)
      #expect(throws: SecretsError("exceeds 199999 bytes")) {
        try SecretsFile.read(path, maximumLength: 199_999)
      }
    }
    let nothing = try withFile([]) { try SecretsFile.read($0, maximumLength: 0) }
    #expect(nothing == [])
  }

  @Test("A secrets file that cannot be read says why") func aSecretsFileThatCannotBeReadSaysWhy() {
    #expect(throws: SecretsError("No such file or directory", kind: .cannotOpen)) {
      try SecretsFile.read("/nonexistent/key.pem", maximumLength: 1)
    }
    #expect(throws: SecretsError("Is a directory", kind: .readFailed)) {
      try SecretsFile.read("/tmp", maximumLength: 1)
    }
    // Endless, and the limit holds.
    #expect(throws: SecretsError("exceeds 1000000 bytes")) {
      try SecretsFile.read("/dev/zero", maximumLength: 1_000_000)
    }
  }
}
