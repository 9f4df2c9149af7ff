import Bytes

/// The times that a sender writes into a notification's payload, so that a device can tell how long it took.
///
/// A member `apnscope` of the payload's object, with members that may each be missing:
///
/// ```json
/// {"aps":{"alert":"…"},"apnscope":{"due_ns":1790000000000000000,"written_ns":1790000000000004321,"campaign":"spring"}}
/// ```
package struct PushStamp: Sendable, Equatable {
  /// The member of a payload.
  package static let key = "apnscope"
  /// Digits of a time. UNIX nanoseconds have 19 until the year 2286.
  package static let digits = 19
  /// The longest name of a campaign, in bytes; a longer one is not read.
  package static let longestName = 128

  /// When the notification was due, in UNIX nanoseconds; `nil`: it is not known.
  package var due: Int64?
  /// When it was written, in UNIX nanoseconds; `nil`: it is not known.
  package var written: Int64?
  /// The campaign it belongs to; `nil`: none.
  package var campaign: String?

  package init(due: Int64? = nil, written: Int64? = nil, campaign: String? = nil) {
    (self.due, self.written, self.campaign) = (due, written, campaign)
  }

  /// Reads the stamp of a payload; `nil`: it has none. Linear in the payload's length.
  ///
  /// - Parameters:
  ///   - payload: anything.
  ///   - object: memory that is reused for the next one.
  package init?(of payload: RawSpan, _ object: inout JSONObject) {
    // Few payloads have one: no other is read as JSON.
    guard payload.contains(Self.quotedKey.rawBytes), object.read(payload), let member = object.value(Self.key, payload),
      object.tape.kind(member) == .object
    else { return nil }
    let text = payload.extracting(object.tape.range(member))
    guard object.read(text) else { return nil }
    // A sender that does not know a time writes 0.
    due = object.integer("due_ns", text).flatMap { $0 > 0 ? Int64($0) : nil }
    written = object.integer("written_ns", text).flatMap { $0 > 0 ? Int64($0) : nil }
    campaign = object.string("campaign", text).flatMap { (1...Self.longestName).contains($0.utf8.count) ? $0 : nil }
    if due == nil, written == nil, campaign == nil { return nil }
  }

  private static let quotedKey = Array("\"\(key)\"".utf8)
}

extension RawSpan {
  /// Whether these bytes are anywhere in it. Linear, unless both repeat themselves.
  fileprivate func contains(_ bytes: RawSpan) -> Bool {
    guard bytes.byteCount > 0 else { return true }
    var start = 0
    while let next = firstOffset(of: bytes.byte(at: 0), from: start), next + bytes.byteCount <= byteCount {
      if extracting(next..<next + bytes.byteCount).elementsEqual(bytes) { return true }
      start = next + 1
    }
    return false
  }
}
