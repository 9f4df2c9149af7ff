import TLSFoundation

/// What is known of the records to come, from the keys in use.
struct RecordExpectation {
  /// Of the keys; `nil` while there are none.
  var keyVersion: TLSVersion?
  /// The handshake is not over: what is missing may be no data.
  var isBeforeData: Bool

  /// Whether a record may begin so.
  func allows(_ header: RecordHeader) -> Bool {
    guard header.isPlausible else { return false }
    guard let keyVersion else { return true }
    return keyVersion >= .tls13 ? header.version <= .tls12 : header.version == keyVersion
  }
}
