import TLSFoundation

/// Derives keys from secrets (RFC 6101 section 6; RFC 5246 sections 6.3 and 8; RFC 7627; RFC 8446 section 7).
enum KeySchedule {
  /// The master secret.
  ///
  /// - Parameter sessionHash: of the handshake up to the ClientKeyExchange, when the extended master secret was agreed
  ///   on; `nil` otherwise.
  static func master(
    premaster: [UInt8], _ suite: CipherSuite, _ version: TLSVersion, clientRandom: [UInt8], serverRandom: [UInt8],
    sessionHash: [UInt8]?
  ) -> [UInt8] {
    if version == .ssl3 {
      return KeyDerivation.ssl3(secret: premaster, seed: clientRandom + serverRandom, length: 48)
    }
    let hash = suite.derivationHash(version)
    if let sessionHash {
      return KeyDerivation.prf(
        hash, secret: premaster, label: "extended master secret", seed: sessionHash, length: 48)
    }
    return KeyDerivation.prf(
      hash, secret: premaster, label: "master secret", seed: clientRandom + serverRandom, length: 48)
  }

  /// Both directions' keys up to TLS 1.2; `nil` when the suite is not supported.
  static func keys(
    master: [UInt8], _ suite: CipherSuite, _ version: TLSVersion, clientRandom: [UInt8], serverRandom: [UInt8]
  ) -> (client: DirectionKeys, server: DirectionKeys)? {
    guard let protection = suite.protection else { return nil }
    let macLength = suite.macHash?.length ?? 0
    let vectorLength =
      switch protection {
      case .null, .rc4: 0
      case .block(_, _, let length): version >= .tls11 ? 0 : length
      case .aead(_, _, _, let explicitLength): 12 - explicitLength
      }
    let length = 2 * (macLength + protection.keyLength + vectorLength)
    let seed = serverRandom + clientRandom
    let block =
      version == .ssl3
      ? KeyDerivation.ssl3(secret: master, seed: seed, length: length)
      : KeyDerivation.prf(
        suite.derivationHash(version), secret: master, label: "key expansion", seed: seed, length: length)
    guard block.count == length else { return nil }
    var rest = block[...]
    func take(_ count: Int) -> [UInt8] {
      defer { rest = rest.dropFirst(count) }
      return Array(rest.prefix(count))
    }
    let macs = (take(macLength), take(macLength))
    let keys = (take(protection.keyLength), take(protection.keyLength))
    let vectors = (take(vectorLength), take(vectorLength))
    return (
      DirectionKeys(mac: macs.0, key: keys.0, vector: vectors.0),
      DirectionKeys(mac: macs.1, key: keys.1, vector: vectors.1)
    )
  }

  /// The keys of one direction in TLS 1.3; `nil` if the suite is not supported.
  static func keys(trafficSecret: [UInt8], _ suite: CipherSuite, draft: Int = 0) -> DirectionKeys? {
    guard let protection = suite.protection else { return nil }
    let hash = suite.derivationHash(.tls13)
    let prefix = prefix(draft)
    let key = KeyDerivation.expandLabel(
      hash, secret: trafficSecret, label: "key", length: protection.keyLength, prefix: prefix)
    let vector = KeyDerivation.expandLabel(hash, secret: trafficSecret, label: "iv", length: 12, prefix: prefix)
    guard !key.isEmpty, !vector.isEmpty else { return nil }
    return DirectionKeys(key: key, vector: vector)
  }

  /// The traffic secret after a KeyUpdate.
  static func nextTrafficSecret(after secret: [UInt8], _ suite: CipherSuite, draft: Int = 0) -> [UInt8] {
    let label = draft == 0 || draft >= 20 ? "traffic upd" : "application traffic secret"
    return KeyDerivation.expandLabel(
      suite.derivationHash(.tls13), secret: secret, label: label, length: secret.count, prefix: prefix(draft))
  }

  private static func prefix(_ draft: Int) -> String { draft == 0 || draft >= 20 ? "tls13 " : "TLS 1.3, " }
}
