import ArgumentParser
import Bytes
import Glibc
import PacketCapture
import TLSDecryption

/// The secrets that decrypt TLS connections.
struct SecretsOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Key log (NSS format) with the secrets of TLS connections, as written by clients and servers with SSLKEYLOGFILE, or text of openssl s_client with the session. Repeatable. Secrets inside a pcapng capture are used automatically.",
      valueName: "file"), completion: .file())
  var keys: [String] = []

  @Option(
    help: ArgumentHelp(
      "The server's RSA private key (PEM). It decrypts only connections whose cipher suite begins with TLS_RSA_WITH_; others need a key log. Repeatable.",
      valueName: "file"), completion: .file())
  var serverKey: [String] = []

  @Option(
    help: ArgumentHelp("File whose first line is the pass phrase of an encrypted --server-key.", valueName: "file"),
    completion: .file())
  var passPhraseFile: String?

  /// The files that are read.
  var files: [String] { keys + serverKey + (passPhraseFile.map { [$0] } ?? []) }

  func validate() throws {
    if passPhraseFile != nil && serverKey.isEmpty {
      throw ValidationError("--pass-phrase-file needs --server-key.")
    }
  }

  private static func isEmpty(_ path: String) -> Bool {
    var status = stat()
    return unsafe stat(path, &status) == 0 && status.st_size == 0
  }

  /// Reads all files of secrets. An unusable file is reported and ends the command, because the result would be
  /// incomplete without it.
  ///
  /// - Parameter mayGrow: of a live capture, whose key log is empty until the first handshake.
  func read(_ limits: LimitOptions, mayGrow: Bool = false) throws -> Secrets {
    let secrets = Secrets(limits: limits.dissection.tls)
    for path in keys {
      let keyLog = try using(path) { () throws(SecretsError) in
        try KeyLog(contentsOf: path, maximumLength: limits.maxSecretsLength.bytes, maximumLines: limits.maxKeyLogLines)
      }
      if keyLog.count == 0, !(mayGrow && Self.isEmpty(path)) {
        complain("\(path): contains no secrets; expected an NSS key log, or the sessions of openssl s_client")
      }
      if keyLog.isCut { complain("\(path): only the first \(keyLog.count) lines are used (--max-key-log-lines)") }
      secrets.add(keyLog)
    }
    let passPhrase = try passPhraseFile.map { path in
      try using(path) { () throws(SecretsError) in Self.firstLine(try SecretsFile.read(path, maximumLength: 1 << 16)) }
    }
    for path in serverKey {
      secrets.add(
        try using(path) { () throws(SecretsError) in
          try PrivateKey(pem: try SecretsFile.read(path, maximumLength: 1 << 20), passPhrase: passPhrase)
        })
    }
    return secrets
  }

  private static func firstLine(_ bytes: [UInt8]) -> [UInt8] {
    Array(bytes.prefix { $0 != 0x0a && $0 != 0x0d })
  }

  private func using<T>(_ path: String, _ body: () throws(SecretsError) -> T) throws -> T {
    do {
      return try body()
    } catch {
      complain("\(path): \(error.message)")
      throw ExitStatus.code(for: error)
    }
  }
}
