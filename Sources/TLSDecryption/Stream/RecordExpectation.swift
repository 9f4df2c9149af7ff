import TLSFoundation

/// The properties of later records, from the keys in use.
struct RecordExpectation {
  /// The version of the keys; `nil` without keys.
  var keyVersion: TLSVersion?
  /// The handshake is not over: missing bytes may not be data.
  var isBeforeData: Bool

  /// Whether a record may begin so.
  func allows(_ header: RecordHeader) -> Bool {
    guard header.isPlausible else { return false }
    guard let keyVersion else { return true }
    return keyVersion >= .tls13 ? header.version <= .tls12 : header.version == keyVersion
  }
}
