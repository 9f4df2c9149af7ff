/// The secrets of a hand-made conversation: SSL 3.0 (RFC 6101 §5.6.8, §6) or TLS up to 1.2 (RFC 2246, 5246 §5, §6.3, §8.1).
struct HandMadeKeys {
  /// What one direction is protected with.
  struct Direction {
    var mac: [UInt8]
    var key: [UInt8]
    var iv: [UInt8]
  }

  let version: HandMadeTLS.Version
  let master: [UInt8]
  private let clientRandom: [UInt8]
  private let serverRandom: [UInt8]

  init(version: HandMadeTLS.Version, premaster: [UInt8], clientRandom: [UInt8], serverRandom: [UInt8]) {
    let seed = clientRandom + serverRandom
    let master =
      if version == .ssl30 {
        Self.ssl3Expansion(premaster, seed, count: 48)
      } else {
        LegacyCrypto.shared.prf(version.prfDigest, secret: premaster, label: "master secret", seed: seed, count: 48)
      }
    self.init(version: version, master: master, clientRandom: clientRandom, serverRandom: serverRandom)
  }

  init(version: HandMadeTLS.Version, master: [UInt8], clientRandom: [UInt8], serverRandom: [UInt8]) {
    self.version = version
    self.master = master
    self.clientRandom = clientRandom
    self.serverRandom = serverRandom
  }

  // MARK: record keys

  /// The key block in its order: MAC secrets, keys, IVs, each the client's first.
  func directions(_ suite: HandMadeTLS.Suite) -> (client: Direction, server: Direction) {
    let seed = serverRandom + clientRandom
    let ivLength = version >= .tls11 ? 0 : suite.blockLength
    let count = 2 * (suite.macLength + suite.keyLength + ivLength)
    var block =
      if version == .ssl30 {
        Self.ssl3Expansion(master, seed, count: count)
      } else {
        LegacyCrypto.shared.prf(version.prfDigest, secret: master, label: "key expansion", seed: seed, count: count)
      }
    func take(_ count: Int) -> [UInt8] {
      defer { block.removeFirst(count) }
      return Array(block.prefix(count))
    }
    let macs = (take(suite.macLength), take(suite.macLength))
    let keys = (take(suite.keyLength), take(suite.keyLength))
    let ivs = (take(ivLength), take(ivLength))
    return (Direction(mac: macs.0, key: keys.0, iv: ivs.0), Direction(mac: macs.1, key: keys.1, iv: ivs.1))
  }

  /// MD5(secret + SHA1("A" + secret + seed)) + MD5(secret + SHA1("BB" + secret + seed)) + …
  private static func ssl3Expansion(_ secret: [UInt8], _ seed: [UInt8], count: Int) -> [UInt8] {
    var output: [UInt8] = []
    var letters = 1
    while output.count < count {
      let label = [UInt8](repeating: UInt8(ascii: "A") + UInt8(letters - 1), count: letters)
      let inner = LegacyCrypto.shared.digest("SHA1", label + secret + seed)
      output += LegacyCrypto.shared.digest("MD5", secret + inner)
      letters += 1
    }
    return Array(output.prefix(count))
  }

  // MARK: handshake proofs

  /// The body of a side's Finished message after `messages`.
  func verifyData(of side: RecordedConversation.Side, _ messages: [UInt8]) -> [UInt8] {
    if version == .ssl30 { return ssl3Proof(messages, Array(side == .client ? "CLNT".utf8 : "SRVR".utf8)) }
    return LegacyCrypto.shared.prf(
      version.prfDigest, secret: master, label: "\(side) finished", seed: transcriptDigest(messages), count: 12)
  }

  /// What a client signs in its CertificateVerify after `messages`.
  func signedDigest(_ messages: [UInt8]) -> [UInt8] {
    version == .ssl30 ? ssl3Proof(messages, []) : transcriptDigest(messages)
  }

  private func transcriptDigest(_ messages: [UInt8]) -> [UInt8] {
    version == .tls12
      ? LegacyCrypto.shared.digest("SHA256", messages)
      : LegacyCrypto.shared.digest("MD5", messages) + LegacyCrypto.shared.digest("SHA1", messages)
  }

  /// hash(master + pad2 + hash(messages + sender + master + pad1)), with MD5 and with SHA-1.
  private func ssl3Proof(_ messages: [UInt8], _ sender: [UInt8]) -> [UInt8] {
    ["MD5", "SHA1"].flatMap { name in
      let padding = name == "MD5" ? 48 : 40
      let inner = LegacyCrypto.shared.digest(
        name, messages + sender + master + [UInt8](repeating: 0x36, count: padding))
      return LegacyCrypto.shared.digest(name, master + [UInt8](repeating: 0x5c, count: padding) + inner)
    }
  }
}

extension HandMadeTLS.Version {
  var prfDigest: String { self == .tls12 ? "SHA256" : "MD5-SHA1" }
}
