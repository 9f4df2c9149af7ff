/// Keys that may decrypt records, all of the same stage of a connection.
struct KeyEpoch {
  enum Stage: Int { case early, handshake, data }
  var stage: Stage
  var candidates: [KeyCandidate]
}

/// Keys that may open records, with the secret they come from.
final class KeyCandidate {
  let decryptor: RecordDecryptor
  let stage: KeyEpoch.Stage
  let suite: CipherSuite
  /// The key log line as found, or as it would be; `nil` if the keys follow from keys already noted.
  let line: KeyLogLine?
  /// Up to TLS 1.2 the master secret, in TLS 1.3 the traffic secret.
  let secret: [UInt8]
  var isProven = false

  init(
    _ decryptor: RecordDecryptor, _ stage: KeyEpoch.Stage, _ suite: CipherSuite, line: KeyLogLine?, secret: [UInt8]
  ) {
    self.decryptor = decryptor
    self.stage = stage
    self.suite = suite
    self.line = line
    self.secret = secret
  }

  /// The keys that follow when the sender updates these, in TLS 1.3.
  ///
  /// - Parameter draft: of the standard that is spoken, 0 for the standard itself.
  func updated(draft: Int) -> KeyCandidate? {
    let secret = KeySchedule.nextTrafficSecret(after: secret, suite, draft: draft)
    guard let keys = KeySchedule.keys(trafficSecret: secret, suite, draft: draft),
      let decryptor = RecordDecryptor(keys, suite, .tls13, draft: draft)
    else { return nil }
    return KeyCandidate(decryptor, .data, suite, line: nil, secret: secret)
  }
}
