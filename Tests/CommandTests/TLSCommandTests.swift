import Foundation
import TestSupport
import Testing

/// The commands with what opens recorded TLS: nothing that opens it may ever be shown.
@Suite("TLS", .waiting)
struct TLSCommandTests {
  // MARK: key logs

  @Test("A key log opens what stays closed without it") func keys() throws {
    try Command.inFolder { command in
      try command.trace("tls-gateway.pcap")
      let keys = try command.keyLog(of: "tls-gateway.pcap")
      let closed = try command.run("decode", "tls-gateway.pcap")
      #expect(closed.status == 0)
      #expect(closed.errors == "")
      #expect(closed.output.contains(#""decrypted":false,"problem":"no key log or server key was given""#))
      let opened = try command.run("decode", "--keys", keys, "tls-gateway.pcap")
      #expect(opened.status == 0)
      #expect(opened.errors == "")
      #expect(opened.output == (try command.baseline("tls-gateway.pcap")))
      try command.expectNoSecrets(of: keys, in: [closed, opened])
    }
  }

  @Test("Of several key logs each opens its own connections") func severalKeys() throws {
    try Command.inFolder { command in
      for trace in ["tls-gateway.pcap", "tls13.pcap"] { try command.trace(trace) }
      let (one, other) = (try command.keyLog(of: "tls-gateway.pcap"), try command.keyLog(of: "tls13.pcap"))
      let outcome = try command.run("decode", "--keys", one, "--keys", other, "tls-gateway.pcap", "tls13.pcap")
      #expect(outcome.status == 0)
      #expect(outcome.notifications == 12 + 30)
      let first = try command.run("decode", "--keys", one, "tls-gateway.pcap", "tls13.pcap")
      #expect(first.notifications == 12)
      #expect(first.output.contains(#"client random a9bc9b7c… is not in the key log (1 line)"#))
      for keys in [one, other] { try command.expectNoSecrets(of: keys, in: [outcome, first]) }
    }
  }

  @Test(
    "A key log that cannot be read ends the command: less would be decoded than was asked for",
    arguments: ["decode", "inspect"])
  func missingKeys(subcommand: String) throws {
    try Command.inFolder { command in
      try command.trace("tls-gateway.pcap")
      let outcome = try command.run(subcommand, "--keys", "missing.log", "tls-gateway.pcap")
      #expect(outcome.status == 66)
      #expect(outcome.output == "")
      #expect(outcome.errors == "apnscope: missing.log: No such file or directory\n")
    }
  }

  @Test("A file that is no key log is warned about, by name and not by contents") func noKeyLog() throws {
    try Command.inFolder { command in
      try command.trace("tls-gateway.pcap")
      let keys = try command.keyLog(of: "tls-gateway.pcap")
      let key = TLSIdentity.rsaServer.pkcs8KeyPEM
      try command.write(Array("CLIENT_RANDOM is what I was looking for\n".utf8), "notes.txt")
      try command.write(Array(key.utf8), "key.pem")
      let outcome = try command.run("decode", "--keys", "notes.txt", "--keys", "key.pem", "tls-gateway.pcap")
      #expect(outcome.status == 0)
      #expect(
        outcome.errors == """
          apnscope: notes.txt: contains no secrets; expected an NSS key log, or the sessions of openssl s_client
          apnscope: key.pem: contains no secrets; expected an NSS key log, or the sessions of openssl s_client

          """)
      #expect(outcome.output.contains(#""decrypted":false"#))
      // The right one beside it is used all the same.
      let both = try command.run("decode", "--keys", "notes.txt", "--keys", keys, "tls-gateway.pcap")
      #expect(both.notifications == 12)
      command.expectNoLines(of: key, in: [outcome, both])
    }
  }

  @Test("A key log may come through a pipe") func fifo() throws {
    try Command.inFolder { command in
      try command.trace("tls13.pcap")
      let keys = try command.keyLog(of: "tls13.pcap")
      let expected = try command.baseline("tls13.pcap")
      let substituted = try command.shell(#""$apnscope" decode --keys <(cat \#(keys)) tls13.pcap"#)
      #expect(substituted.status == 0)
      #expect(substituted.output == expected)
      let named = try command.shell(
        #"mkfifo pipe && { cat \#(keys) >pipe & } && timeout 240 "$apnscope" decode --keys pipe tls13.pcap"#)
      #expect(named.status == 0)
      #expect(named.output == expected)
      try command.expectNoSecrets(of: keys, in: [substituted, named])
    }
  }

  @Test("Capture from standard input, key log from a file") func standardInput() throws {
    try Command.inFolder { command in
      try command.trace("tls10.pcap")
      let keys = try command.keyLog(of: "tls10.pcap")
      let outcome = try command.shell(#"gzip -c tls10.pcap | "$apnscope" decode --fates --keys \#(keys) -"#)
      #expect(outcome.status == 0)
      #expect(
        outcome.lines.dropFirst()
          == (try command.baseline("tls10.pcap")).split(separator: "\n").map(String.init).dropFirst())
    }
  }

  // MARK: secrets in the capture

  @Test(
    "Secrets in a capture open it from a file and through a pipe, before the packets or behind them",
    arguments: ["tls-known-bad.pcapng", "tls-secrets-behind.pcapng"])
  func secretsInside(trace: String) throws {
    try Command.inFolder { command in
      try command.trace(trace)
      let file = try command.run("decode", trace)
      #expect(file.status == 0)
      #expect(file.errors == "")
      #expect(file.output == (try command.baseline(trace)))
      let pipe = try command.shell(#"cat \#(trace) | "$apnscope" decode --no-fates --strict -"#)
      let without = try command.run("decode", "--no-fates", trace)
      #expect(pipe.status == 0)
      #expect(pipe.lines.dropFirst() == without.lines.dropFirst())
      let waited = try command.shell(#"cat \#(trace) | "$apnscope" decode --fates -"#)
      #expect(waited.lines.dropFirst() == file.lines.dropFirst())
      // A capture that is still being made: half of it, then in one write the connection's end and what is behind it.
      let (bytes, input) = (try Data(contentsOf: command.folder.appending(path: trace)), Pipe())
      let slow = try RunningProcess(Command.path, ["decode", "--no-fates", "-"], in: command.folder, pipe: input)
      try input.fileHandleForWriting.write(contentsOf: bytes.prefix(20_000))
      #expect(waitUntil { slow.waitsForInput })
      try input.fileHandleForWriting.write(contentsOf: bytes.dropFirst(20_000))
      try input.fileHandleForWriting.close()
      #expect(try slow.end().lines.dropFirst() == without.lines.dropFirst())
    }
  }

  // MARK: server keys

  /// A connection that a server's RSA key opens, with four notifications and a refusal of the second.
  private static func rsaRecording() throws -> RecordedConversation {
    let pushes = (1...4).map { number -> [UInt8] in
      let payload = Array(#"{"aps":{"alert":"number \#(number)"}}"#.utf8)
      let token = [UInt8](repeating: UInt8(number), count: 32)
      return [1, 0, 0, 0, UInt8(number), 0x7f, 0, 0, 0, 0, 32] + token + [0, UInt8(payload.count)] + payload
    }
    return try TLSConversation(
      version: .tls12, suite: "AES128-SHA",
      script: pushes.map { .write(.client, $0) } + [
        .write(.server, [8, 8, 0, 0, 0, 2]), .close(.server), .close(.client),
      ]
    ).record()
  }

  private static func capture(_ recording: RecordedConversation) -> [UInt8] {
    RecordingCapture.file(of: SegmentedRecording(recording))
  }

  @Test("The server's key opens RSA key exchange, in every form of a PEM file") func serverKeys() throws {
    try Command.inFolder { command in
      let recording = try Self.rsaRecording()
      try command.write(Self.capture(recording), "rsa.pcap")
      try command.write(Array("correct horse\nsecond line\n".utf8), "phrase")
      let identity = TLSIdentity.rsaServer
      let forms = [
        ("pkcs1.pem", identity.traditionalKeyPEM, []), ("pkcs8.pem", identity.pkcs8KeyPEM, []),
        (
          "pkcs8-encrypted.pem", identity.encryptedPKCS8KeyPEM(passPhrase: "correct horse"),
          ["--pass-phrase-file", "phrase"]
        ),
        (
          "pkcs1-encrypted.pem", identity.encryptedTraditionalKeyPEM(passPhrase: "correct horse"),
          ["--pass-phrase-file", "phrase"]
        ),
      ]
      var outputs: Set<String> = []
      for (name, pem, options) in forms {
        try command.write(Array(pem.utf8), name)
        let outcome = try command.run(["decode", "--strict", "--server-key", name] + options + ["rsa.pcap"])
        #expect(outcome.status == 0, "\(name)")
        #expect(outcome.errors == "")
        #expect(outcome.notifications == 4)
        #expect(outcome.output.contains(#""notification":1,"accepted":1,"discarded":2"#))
        command.expectNoLines(of: pem + recording.keyLogText, in: [outcome])
        #expect(!(outcome.output + outcome.errors).contains("correct horse"))
        outputs.insert(outcome.output)
      }
      #expect(outputs.count == 1)
    }
  }

  @Test("A key that cannot be read is an error with a reason, which is no part of the key") func unreadableServerKeys()
    throws
  {
    try Command.inFolder { command in
      try command.trace("tls-rsa-cbc.pcap")
      let encrypted = TLSIdentity.rsaServer.encryptedPKCS8KeyPEM(passPhrase: "correct horse")
      let ec = TLSIdentity.ecServer.pkcs8KeyPEM
      try command.write(Array(encrypted.utf8), "encrypted.pem")
      try command.write(Array(ec.utf8), "ec.pem")
      try command.write(Array("battery staple\n".utf8), "phrase")
      try command.write(Array("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".utf8), "damaged.pem")
      let cases: [([String], Int32, String)] = [
        (["--server-key", "missing.pem"], 66, "apnscope: missing.pem: No such file or directory\n"),
        (
          ["--server-key", "encrypted.pem"], 65, "apnscope: encrypted.pem: is encrypted, and no pass phrase was given\n"
        ),
        (
          ["--server-key", "encrypted.pem", "--pass-phrase-file", "phrase"], 65,
          "apnscope: encrypted.pem: cannot be decrypted with this pass phrase\n"
        ),
        (
          ["--server-key", "encrypted.pem", "--pass-phrase-file", "missing"], 66,
          "apnscope: missing: No such file or directory\n"
        ),
        (
          ["--server-key", "ec.pem"], 65,
          "apnscope: ec.pem: is not an RSA key; only RSA key exchange can be opened with the server's key\n"
        ),
      ]
      for (options, status, message) in cases {
        let outcome = try command.run(["decode"] + options + ["tls-rsa-cbc.pcap"])
        #expect(outcome.status == status, "\(options)")
        #expect(outcome.output == "")
        #expect(outcome.errors == message)
        #expect(!outcome.errors.contains("battery staple"))
      }
      let damaged = try command.run("decode", "--server-key", "damaged.pem", "tls-rsa-cbc.pcap")
      #expect(damaged.status == 65)
      #expect(damaged.errors.hasPrefix("apnscope: damaged.pem: is not a private key in PEM: "))
    }
  }

  @Test("A wrong server key, and one that is of no use, give their reason in the connection's record")
  func wrongServerKey() throws {
    try Command.inFolder { command in
      let stranger = try TLSIdentity(.rsa, subject: [("CN", "stranger")])
      try command.write(Array(stranger.pkcs8KeyPEM.utf8), "key.pem")
      let reasons = [
        "tls-rsa-cbc.pcap": "wrong server key: it is not that of the server's certificate",
        "tls-gateway.pcap": "a server key does not open ECDHE_RSA key exchange; a key log does",
        "tls13.pcap": "a server key opens no TLS 1.3; a key log does",
      ]
      for (trace, reason) in reasons {
        try command.trace(trace)
        let outcome = try command.run("decode", "--server-key", "key.pem", trace)
        #expect(outcome.status == 0)
        #expect(outcome.errors == "")
        #expect(outcome.lines.contains { $0.contains(#""decrypted":false,"problem":"\#(reason)""#) }, "\(trace)")
        let strict = try command.run("decode", "--strict", "--server-key", "key.pem", trace)
        #expect(strict.status == 65)
        #expect(strict.output == outcome.output)
        let text = try command.run("inspect", "--server-key", "key.pem", trace)
        #expect(text.output.contains("not decrypted: \(reason)"))
        command.expectNoLines(of: stranger.pkcs8KeyPEM, in: [outcome, strict, text])
      }
    }
  }

  // MARK: keys for others

  @Test("--export-keys writes what opened something, for its owner's eyes only, and it opens the capture alone")
  func exportedKeys() throws {
    try Command.inFolder { command in
      let recording = try Self.rsaRecording()
      try command.write(Self.capture(recording), "rsa.pcap")
      try command.write(Array(TLSIdentity.rsaServer.pkcs8KeyPEM.utf8), "key.pem")
      let traces = ["tls13.pcap", "tls-feedback.pcap", "tls10.pcap", "tls13-mid-session.pcap", "tls-known-bad.pcapng"]
      var cases = [("rsa.pcap", ["--server-key", "key.pem"])]
      for trace in traces {
        try command.trace(trace)
        cases.append((trace, trace == "tls-known-bad.pcapng" ? [] : ["--keys", try command.keyLog(of: trace)]))
      }
      for (capture, options) in cases {
        let file = "\(capture).keys"
        let path = command.folder.appending(path: file).path
        let isNew = capture != "tls13.pcap"
        if !isNew {
          // Others can read what was there before.
          try command.write(Array((String(repeating: "something else", count: 1_000) + "\n").utf8), file)
          #expect(unsafe chmod(path, 0o644) == 0)
        }
        let export = try command.run(["decode"] + options + ["--export-keys", file, capture])
        #expect(export.status == 0)
        #expect(export.errors == "")
        #expect(export.output.contains(#""decrypted":true"#))
        if capture != "rsa.pcap" { #expect(export.output == (try command.baseline(capture))) }
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(try !command.read(file).contains("something else"))
        let again = try command.run("decode", "--keys", file, capture)
        #expect(again.output == export.output, "\(capture)")
        #expect(again.errors == "")
        try command.expectNoSecrets(of: file, in: [export, again])
      }
      // The master secret is that of the connection; the server's key is no part of it.
      let exported = try command.read("rsa.pcap.keys")
      let logged = recording.keyLog.filter { $0.hasPrefix("CLIENT_RANDOM") }.map { $0.lowercased() }
      #expect(exported.split(separator: "\n").map { $0.lowercased() } == logged)
    }
  }

  @Test("Only what opened something is exported") func exportsOnlyUsed() throws {
    try Command.inFolder { command in
      try command.trace("tls13-keys-missing.pcap")
      let keys = try command.keyLog(of: "tls13-keys-missing.pcap")
      let export = try command.run("decode", "--keys", keys, "--export-keys", "used", "tls13-keys-missing.pcap")
      #expect(export.status == 0)
      // Two of the five connections in the key log are in this capture, with four secrets each.
      #expect(try command.read("used").split(separator: "\n").count == 8)
      let nothing = try command.run("decode", "--export-keys", "nothing", "tls13-keys-missing.pcap")
      #expect(nothing.status == 0)
      #expect(try command.read("nothing") == "")
    }
  }

  @Test("Keys that cannot be written are an error of input and output", arguments: ["missing/keys", "folder"])
  func unwritableKeys(path: String) throws {
    try Command.inFolder { command in
      try command.trace("tls13.pcap")
      let keys = try command.keyLog(of: "tls13.pcap")
      try FileManager.default.createDirectory(
        at: command.folder.appending(path: "folder"), withIntermediateDirectories: true)
      let outcome = try command.run("decode", "--keys", keys, "--export-keys", path, "tls13.pcap")
      #expect(outcome.status == 74)
      #expect(outcome.errors.hasPrefix("apnscope: \(path): "))
    }
  }

  // MARK: strictness and inspection

  @Test(
    "--strict exits with 65 when a connection was not decrypted, or something under TLS is missing",
    arguments: [
      ("tls-gateway.pcap", true, 0), ("tls-gateway.pcap", false, 65), ("tls13-keys-missing.pcap", true, 65),
      ("tls-mid-session.pcap", true, 65), ("tls13-mid-session.pcap", true, 0), ("tls-gcm-loss.pcap", true, 65),
      ("tls10-shuffled-duplicated.pcap", true, 0), ("tls13-snap-length-600.pcap", true, 65),
      ("tls-known-bad.pcapng", false, 0),
    ] as [(String, Bool, Int32)])
  func strict(trace: String, hasKeys: Bool, status: Int32) throws {
    try Command.inFolder { command in
      try command.trace(trace)
      let options = hasKeys ? ["--keys", try command.keyLog(of: trace)] : []
      let (usual, strict) = (
        try command.run(["decode"] + options + [trace]), try command.run(["decode", "--strict"] + options + [trace])
      )
      #expect(usual.status == 0)
      #expect(strict.status == status)
      #expect(strict.output == usual.output)
    }
  }

  @Test("Text shows version, suite, key exchange, session and what TLS costs") func inspectText() throws {
    try Command.inFolder { command in
      for (trace, facts) in [
        (
          "tls-split-error.pcap",
          [
            "TLS            2 connections, 2 decrypted, 1 resumed, 1.60 TLS bytes per payload byte",
            "TLS 1.2  ECDHE_RSA_WITH_AES_256_GCM_SHA384  ECDHE_RSA     new               1.74  com.example.capture",
            "TLS 1.2  ECDHE_RSA_WITH_AES_256_GCM_SHA384  ECDHE_RSA     resumed           1.42  com.example.capture",
            "fates          40 accepted, 1 rejected, 60 discarded, 79 unknown",
          ]
        ),
        (
          "tls13-keys-missing.pcap",
          [
            "TLS            3 connections, 2 decrypted, 0 resumed, ",
            "TLS 1.3  AES_256_GCM_SHA384  x25519        new  ",
            "not decrypted: client random 61b40b60… is not in the key log (20 lines)",
          ]
        ),
        ("tls10.pcap", ["TLS 1.0  ECDHE_RSA_WITH_AES_256_CBC_SHA  ECDHE_RSA     new  "]),
      ] {
        try command.trace(trace)
        let keys = try command.keyLog(of: trace)
        let outcome = try command.run("inspect", "--keys", keys, trace)
        #expect(outcome.status == 0)
        #expect(outcome.errors == "")
        for fact in facts { #expect(outcome.output.contains(fact), "\(trace): \(fact)") }
        try command.expectNoSecrets(of: keys, in: [outcome])
      }
    }
  }

  @Test("JSON holds the same") func inspectJSON() throws {
    try Command.inFolder { command in
      try command.trace("tls-split-error.pcap")
      let keys = try command.keyLog(of: "tls-split-error.pcap")
      let outcome = try command.run("inspect", "--format", "json", "--keys", keys, "tls-split-error.pcap")
      let report = try #require(try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
      let rows = try #require(report["connections"] as? [[String: Any]]).compactMap { $0["tls"] as? [String: Any] }
      #expect(rows.count == 2)
      #expect(rows.map { $0["version"] as? String } == ["TLS 1.2", "TLS 1.2"])
      #expect(rows.allSatisfy { $0["cipher_suite"] as? String == "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384" })
      #expect(rows.allSatisfy { $0["key_exchange"] as? String == "ECDHE_RSA" })
      #expect(rows.map { $0["resumed"] as? Bool } == [false, true])
      #expect(rows.allSatisfy { $0["decrypted"] as? Bool == true })
      // What was said, 12,396 and 6 bytes, then 9,777; and what tshark adds up as tcp.len, without a retransmission of 31 bytes.
      #expect(rows.map { $0["payload_bytes"] as? Int } == [12_402, 9_777])
      let wire = try #require(rows.map { $0["tls_bytes"] as? Int } as? [Int])
      for (row, (bytes, payload)) in zip(rows, zip(wire, [12_402, 9_777])) {
        let ratio = try #require(row["tls_bytes_per_payload_byte"] as? Double)
        #expect(abs(ratio - Double(bytes) / Double(payload)) < 1e-9)
      }
      #expect(wire == [21_589, 13_851])
      try command.expectNoSecrets(of: keys, in: [outcome])
    }
  }
}

extension Outcome {
  fileprivate var notifications: Int { lines.count { $0.hasPrefix(#"{"type":"notification""#) } }
}

extension Command {
  /// Copies a trace's key log into the folder, under another name than the project's.
  fileprivate func keyLog(of trace: String) throws -> String {
    let name = "secrets-of-\(trace).log"
    try self.trace(trace + ".keys", as: name)
    return name
  }

  fileprivate func baseline(_ trace: String) throws -> String {
    try String(contentsOf: Command.traces.appending(path: trace + ".jsonl"), encoding: .utf8)
  }

  /// No secret of a key log stands in what was printed.
  fileprivate func expectNoSecrets(
    of keyLog: String, in outcomes: [Outcome], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let secrets = try read(keyLog).split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap {
      $0.split(separator: " ").last?.lowercased()
    }
    #expect(!secrets.isEmpty, sourceLocation: sourceLocation)
    for outcome in outcomes {
      let printed = (outcome.output + outcome.errors).lowercased()
      // Not even a part of one.
      for secret in secrets { #expect(!printed.contains(secret.prefix(16)), sourceLocation: sourceLocation) }
    }
  }

  /// No line of a text stands in what was printed.
  fileprivate func expectNoLines(
    of text: String, in outcomes: [Outcome], sourceLocation: SourceLocation = #_sourceLocation
  ) {
    for line in text.split(separator: "\n") where line.count > 30 {
      for outcome in outcomes {
        #expect(!(outcome.output + outcome.errors).contains(line), sourceLocation: sourceLocation)
      }
    }
  }
}
