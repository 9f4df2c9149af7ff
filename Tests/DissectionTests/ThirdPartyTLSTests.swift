import Bytes
import Foundation
import PacketCapture
import TLSDecryption
import TestSupport
import Testing

@testable import Records

/// Compares plaintext with what tshark follows in captures of other projects.
///
/// The environment variable APNSCOPE_THIRD_PARTY names the folder; `expected.json` in it holds, per TCP stream, the
/// length and SHA-256 of what each end sent under TLS, as tshark 4.0.17 reads it with the same secrets.
@Suite(.waiting, .enabled(if: ThirdPartyTLS.folder != nil)) struct ThirdPartyTLSTests {
  @Test("Plaintext is the one that others read", arguments: try ThirdPartyTLS.captures())
  func plaintextIsTheOneThatOthersRead(capture: String) throws {
    let run = try TLSCaptureRun(of: ThirdPartyTLS.path(capture), secrets: try ThirdPartyTLS.secrets(of: capture))
    try ThirdPartyTLS.expect(run, of: capture, \.followTls)
    for connection in run.connections {
      #expect(connection.summary.isDecrypted)
      #expect(connection.summary.problem == nil)
      for direction in connection.directions.values { #expect(direction.hasEnded) }
      #expect(connection.directions.values.reduce(0) { $0 + $1.missing } == ThirdPartyTLS.unfinished[capture] ?? 0)
    }
  }

  @Test(
    "Captures that hold their secrets open", .enabled(if: ExternalTool.isInstalled("tshark")),
    arguments: ThirdPartyTLS.overlooked)
  func capturesThatHoldTheirSecretsOpen(capture: String) throws {
    let run = try TLSCaptureRun(of: ThirdPartyTLS.path(capture), secrets: Secrets())
    let connection = try #require(run.connections.first)
    #expect(run.violations.isEmpty && run.connections.count == 1 && connection.summary.problem == nil)
    let output = try ExternalTool.run(
      "tshark",
      ["-q", "-o", "tcp.reassemble_out_of_order:true", "-r", ThirdPartyTLS.path(capture), "-z", "follow,tls,raw,0"])
    let followed = try #require(FollowedStream.all(in: String(decoding: output, as: UTF8.self)).first)
    let first = followed.first.node
    #expect(!followed.first.bytes.isEmpty && !followed.second.bytes.isEmpty)
    #expect(connection.plaintext(from: first) == followed.first.bytes)
    #expect(
      connection.plaintext(from: first == connection.client ? connection.server : connection.client)
        == followed.second.bytes)
  }

  @Test("Bytes that come one by one carry the same", arguments: try ThirdPartyTLS.captures())
  func bytesThatComeOneByOneCarryTheSame(capture: String) throws {
    let run = try TLSCaptureRun(
      of: ThirdPartyTLS.path(capture), secrets: try ThirdPartyTLS.secrets(of: capture), pieceLength: 1)
    try ThirdPartyTLS.expect(run, of: capture, \.followTls)
  }

  @Test("Early data without its secret stay closed, and what follows them opens")
  func earlyDataWithoutItsSecretStayClosedAndWhat() throws {
    let secrets = Secrets()
    secrets.add(try ThirdPartyTLS.keyLog("tls13-rfc8446-noearly.keys"))
    let run = try TLSCaptureRun(of: ThirdPartyTLS.path("tls13-rfc8446.pcap"), secrets: secrets)
    try ThirdPartyTLS.expect(run, of: "tls13-rfc8446.pcap", \.followTlsNoearly)
    let resumed = try #require(run.connections.last)
    // 47 bytes with the secret: 23 of early data, 24 behind them.
    #expect(resumed.directions[.client]?.missing == 23)
    #expect(resumed.summary.isResumed == true)
  }

  @Test("Secrets of other connections open nothing", arguments: try ThirdPartyTLS.captures())
  func secretsOfOtherConnectionsOpenNothing(capture: String) throws {
    let run = try TLSCaptureRun(
      of: ThirdPartyTLS.path(capture), secrets: try ThirdPartyTLS.secrets(withoutThoseOf: capture))
    let holdsItsSecrets = ThirdPartyTLS.keys[capture]?.isEmpty == true
    for connection in run.connections where !holdsItsSecrets {
      #expect(connection.directions.values.allSatisfy { $0.bytes.isEmpty })
      #expect(!connection.summary.isDecrypted)
      #expect(connection.summary.problem != nil)
    }
  }

  @Test("No capture breaks a decryptor, and nothing opens without its secrets", arguments: ThirdPartyTLS.allFiles)
  func noCaptureBreaksADecryptorAndNothingOpens(capture: String) throws {
    guard let run = try? TLSCaptureRun(of: ThirdPartyTLS.path(capture), secrets: try ThirdPartyTLS.allSecrets()) else {
      // No capture file: then others refuse it too, or it is a key.
      let expected = try ThirdPartyTLS.expected()[capture]
      #expect(expected?.packets ?? 0 == 0 || expected?.tsharkExit != 0)
      return
    }
    #expect(run.violations.isEmpty)
    guard try !ThirdPartyTLS.captures().contains(capture), !ThirdPartyTLS.overlooked.contains(capture) else { return }
    for connection in run.connections { #expect(connection.directions.values.allSatisfy { $0.bytes.isEmpty }) }
  }

  @Test("Secrets before the packets open what a dissection reads") func secretsBeforeThePacketsOpenWhatADissection()
    throws
  {
    let name = "tls12-dsb.pcapng"
    let streams = try #require(ThirdPartyTLS.expected()[name]?.streams)
    let read = try dissect(ThirdPartyTLS.path(name)).connections
    #expect(read.count == streams.count)
    for (number, connection) in read.enumerated() {
      let tls = try #require(connection.tls)
      #expect(tls.isDecrypted && tls.problem == nil)
      #expect(tls.plaintextBytes == streams["\(number)"]?.followTls?.reduce(0) { $0 + $1.bytes })
    }
  }

  @Test(
    "Secrets far behind the packets open them too", arguments: ["tls_nss_example.pcap", "http2-data-reassembly.pcap"])
  func secretsFarBehindThePacketsOpenThemToo(capture: String) throws {
    guard case .keyLog(let keyLog)? = ThirdPartyTLS.keys[capture]?.first else { return }
    let pcapng = ThirdPartyTLS.pcapng(
      try SecretsFile.read(ThirdPartyTLS.path(capture), maximumLength: 1 << 20),
      keyLog: try SecretsFile.read(ThirdPartyTLS.path(keyLog), maximumLength: 1 << 20))
    let streams = try #require(ThirdPartyTLS.expected()[capture]?.streams)
    try withTemporaryFile(pcapng) { path in
      // Read once only, as from a pipe, the secrets come too late.
      for connection in try TLSCaptureRun(of: path, secrets: Secrets()).connections {
        #expect(connection.directions.values.allSatisfy { $0.bytes.isEmpty })
        #expect(connection.summary.problem == "no key log or server key was given")
      }
      let read = try dissect(path).connections
      #expect(read.count == streams.count)
      for connection in read {
        let tls = try #require(connection.tls)
        let stream = streams.values.first { $0.directions.contains { $0.node == connection.client?.description } }
        #expect(tls.isDecrypted && tls.problem == nil)
        #expect(tls.plaintextBytes == stream?.followTls?.reduce(0) { $0 + $1.bytes })
      }
    }
  }
}

/// The folder's captures with TLS, and what opens them.
enum ThirdPartyTLS {
  struct Capture: Decodable {
    var tsharkExit: Int
    var packets: Int
    var streams: [String: Stream]?
  }

  struct Stream: Decodable {
    var directions: [Direction]
    var followTls: [Followed]?
    var followTlsNoearly: [Followed]?
  }

  struct Direction: Decodable { var node: String }

  /// The first of a stream names its end, the second is the other's.
  struct Followed: Decodable {
    var node: String
    var bytes: Int
    var sha256NoPlaceholders: String
  }

  static let folder = ProcessInfo.processInfo.environment["APNSCOPE_THIRD_PARTY"]

  static func path(_ name: String) -> String { (folder ?? "") + "/" + name }

  private static let contents = Result {
    guard let folder else { return [String: Capture]() }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(
      [String: Capture].self, from: Data(contentsOf: URL(filePath: folder + "/expected.json")))
  }

  static func expected() throws -> [String: Capture] { try contents.get() }

  static func captures() throws -> [String] {
    try expected().filter { $0.value.streams?.values.contains { $0.followTls != nil } == true }.keys.sorted()
  }

  /// Captures with secrets blocks of which `expected.json` says nothing; both their streams open.
  static let overlooked = ["challenge01_ooo_stream.pcapng.gz", "tls-fragmented-over-tcp-segmented.pcapng.gz"]

  /// Captures that end inside a record. tshark says nothing of it; we report a gap as long as the plaintext that its
  /// captured bytes would be: here 745 of 8245 bytes without header, vector, MAC and padding length, which take 42.
  static let unfinished = ["tls-over-tls.pcapng.gz": 703]

  static let allFiles = folder.map { Folder.names(in: URL(filePath: $0), ending: "") } ?? []

  // MARK: secrets

  enum Key {
    case keyLog(String)
    case server(String)
    /// With its password.
    case pkcs12(String, String)
    /// A pre-shared key.
    case shared(String)
  }

  /// What opens each capture; nothing for those that hold their secrets.
  static let keys: [String: [Key]] = [
    "dhe1.pcapng.gz": [.keyLog("dhe1_keylog.dat")],
    "dmgr.pcapng": [.pkcs12("dmgr-key.p12", "WebAS")],
    "http2-data-reassembly.pcap": [.keyLog("http2-data-reassembly.keys")],
    "rsa-p-lt-q.pcap": [.server("rsa-p-lt-q.key")],
    "rsasnakeoil2.pcap": [.server("rsasnakeoil2.key")],
    "tls-1.2-stream-keylog.pcap": [.keyLog("tls-1.2-stream-keylog.keys")],
    "tls-over-tls.pcapng.gz": [.server("tls-over-tls.key")],
    "tls-renegotiation.pcap": [.server("rsasnakeoil2.key")],
    "tls12-aes128ccm.pcap": [.shared("ca19e028a8a372ad2d325f950fcaceed")],
    "tls12-aes256gcm.pcap": [.shared("ca19e028a8a372ad2d325f950fcaceed")],
    "tls12-chacha20poly1305.pcap": [.keyLog("tls12-chacha20poly1305.keys")],
    "tls12-decryption.pcap": [.keyLog("tls12-decryption.keys")],
    "tls12-dsb.pcapng": [],
    "tls13-20-chacha20poly1305.pcap": [.keyLog("tls13-20-chacha20poly1305.keys")],
    "tls13-rfc8446.pcap": [.keyLog("tls13-rfc8446.keys")],
    "tls_nss_example.pcap": [.keyLog("tls_nss_example.keys.txt")],
  ]

  static func secrets(of capture: String) throws -> Secrets {
    let secrets = Secrets()
    for key in try #require(keys[capture], "\(capture): what opens it is not known") {
      try add(key, for: capture, to: secrets)
    }
    return secrets
  }

  /// Everything that does not belong to the capture.
  static func secrets(withoutThoseOf capture: String) throws -> Secrets {
    let own = keys[capture, default: []].map { "\($0)" }
    let secrets = Secrets()
    for (other, keys) in keys where other != capture {
      for key in keys where !own.contains("\(key)") { try add(key, for: other, to: secrets) }
    }
    return secrets
  }

  static func allSecrets() throws -> Secrets {
    let secrets = Secrets()
    for (capture, keys) in keys { for key in keys { try add(key, for: capture, to: secrets) } }
    for name in ["tls12-dsb-1.keys", "tls12-dsb-2.keys", "tls13-rfc8446-noearly.keys"] { secrets.add(try keyLog(name)) }
    return secrets
  }

  static func keyLog(_ name: String) throws -> KeyLog {
    let keyLog = KeyLog(try SecretsFile.read(path(name), maximumLength: 1 << 20), maximumLines: 1_000)
    try #require(keyLog.count > 0)
    return keyLog
  }

  private static func add(_ key: Key, for capture: String, to secrets: Secrets) throws {
    switch key {
    case .keyLog(let name): secrets.add(try keyLog(name))
    case .server(let name):
      secrets.add(try PrivateKey(pem: try SecretsFile.read(path(name), maximumLength: 1 << 20), passPhrase: nil))
    case .pkcs12(let name, let password):
      let pem = try ExternalTool.run(
        "openssl", ["pkcs12", "-legacy", "-in", path(name), "-nocerts", "-nodes", "-passin", "pass:" + password])
      secrets.add(try PrivateKey(pem: pem, passPhrase: nil))
    case .shared(let key):
      // The premaster secret of RFC 4279, section 2: length u16 | zeros | length u16 | key
      let length = String(key.count / 2 + 0x1_0000, radix: 16).dropFirst()
      let premaster = length + String(repeating: "0", count: key.count) + length + key
      let lines = try TLSCaptureRun(of: path(capture), secrets: Secrets()).connections.map {
        "PMS_CLIENT_RANDOM \(hex($0.clientRandom)) \(premaster)\n"
      }
      let keyLog = KeyLog(Array(lines.joined().utf8), maximumLines: 1_000)
      try #require(keyLog.count > 0)
      secrets.add(keyLog)
    }
  }

  private static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { String(Int($0) + 0x100, radix: 16).dropFirst() }.joined()
  }

  // MARK: comparison

  /// Expects every stream's plaintext, both ways, to be the one in `expected.json`.
  static func expect(
    _ run: TLSCaptureRun, of capture: String, _ followed: KeyPath<Stream, [Followed]?>,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    #expect(run.violations.isEmpty, sourceLocation: sourceLocation)
    let streams = try #require(expected()[capture]?.streams, sourceLocation: sourceLocation)
    #expect(run.connections.count == streams.count, sourceLocation: sourceLocation)
    var contents: [[UInt8]] = []
    var digests: [(theirs: String, name: Comment)] = []
    for (number, connection) in run.connections.enumerated() {
      guard let nodes = streams["\(number)"]?[keyPath: followed], nodes.count == 2 else {
        Issue.record("stream \(number) is not in expected.json", sourceLocation: sourceLocation)
        continue
      }
      let first = nodes[0].node
      let second = first == connection.client ? connection.server : connection.client
      for (end, node) in [(first, nodes[0]), (second, nodes[1])] {
        contents.append(connection.plaintext(from: end))
        let count = connection.plaintext(from: end).count
        digests.append(
          (
            node.sha256NoPlaceholders,
            "stream \(number) from \(end): \(count) bytes, \(node.bytes) expected; \(connection.summary)"
          ))
      }
    }
    for (ours, digest) in zip(try sha256(contents), digests) {
      #expect(ours == digest.theirs, digest.name, sourceLocation: sourceLocation)
    }
  }

  /// A pcap file of this machine's byte order as pcapng, with its key log at the end, three megabytes behind the packets.
  static func pcapng(_ pcap: [UInt8], keyLog: [UInt8]) -> [UInt8] {
    func u32(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(value >> (8 * $0) & 255) } }
    func number(_ offset: Int) -> Int { (0..<4).reduce(0) { $0 | Int(pcap[offset + $1]) << (8 * $1) } }
    func block(_ type: Int, _ body: [UInt8]) -> [UInt8] {
      let padded = body + [UInt8](repeating: 0, count: -body.count & 3)
      let length = u32(padded.count + 12)
      return u32(type) + length + padded + length
    }
    // byte order | version 1.0 | length unknown; then link type, snap length
    var file = block(0x0a0d_0d0a, u32(0x1a2b_3c4d) + u32(1) + u32(-1) + u32(-1)) + block(1, u32(number(20)) + u32(0))
    var start = 24
    while start + 16 <= pcap.count {
      let time = number(start) * 1_000_000 + number(start + 4)
      let length = number(start + 8)
      file += block(
        6, u32(0) + u32(time >> 32) + u32(time) + pcap[start + 8..<start + 16] + pcap[start + 16..<start + 16 + length])
      start += 16 + length
    }
    // A custom block, which says nothing to us.
    file += block(0x0bad, [UInt8](repeating: 0, count: 3 << 20))
    return file + block(10, u32(0x544c_534b) + u32(keyLog.count) + keyLog)
  }
}
