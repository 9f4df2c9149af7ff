import Bytes
import PushModel

/// The identity of a notification: two sendings are of the same one if they have equal tokens, equal payloads, and both
/// or neither of them items that extend past the frame.
///
/// Identifier, expiration, priority, connection and time do not count: a provider that sends a notification again may
/// change them. An absent payload differs from an empty one. Providers with different topics send different
/// notifications; a topic is known only when its connection has ended, so that it is compared beside the identity.
///
/// Identities are compared by one of two digests, each made without copying a byte:
///
/// - `digest`, of 64 bits of which 63 vary, for inspections, which count notifications one by one and remember the
///   latest: a few instructions for 16 bytes. Two different notifications among n have the same digest with the odds
///   n²/2⁶⁴, which is 1 in 18 million for a million. It has no key: an author of payloads can make two with one digest.
/// - `keys`, of 128 bits and keyed, for stories, of every notification of a recording: the odds are n²/2¹²⁹, and nobody
///   can choose contents with one key.
struct NotificationIdentity: ~Escapable {
  private let token: RawSpan
  private let payload: RawSpan
  // Not the fields as a whole, which would be copied for each notification.
  private let hasToken: Bool
  private let hasPayload: Bool
  private let isMalformed: Bool

  /// - Parameters:
  ///   - fields: the positions of token and payload in the frame.
  ///   - isMalformed: the items extend past the frame.
  @inline(__always)
  @_lifetime(copy frame)
  init(_ fields: PushFields, _ frame: RawSpan, isMalformed: Bool = false) {
    (hasToken, hasPayload) = (fields.token.isPresent, fields.payload.isPresent)
    self.isMalformed = isMalformed
    token = frame.extracting(fields.token.range)
    payload = frame.extracting(fields.payload.range)
  }

  /// Whether a further sending can be recognised as the same notification.
  ///
  /// It cannot without a token, which is what clients send to learn what was accepted; nor in a malformed frame of which
  /// either token or payload is missing, as such frames have hardly anything that could differ.
  var isRecognisable: Bool {
    @inline(__always) get { token.byteCount > 0 && (!isMalformed || payload.byteCount > 0) }
  }

  /// 64 bits; 0: the notification is not recognisable.
  var digest: UInt64 {
    guard isRecognisable else { return 0 }
    let digest = Self.digest(token: token, payload: payload, hasPayload: hasPayload)
    // Every bit differs, but for the last one, which is set because 0 has a meaning.
    return isMalformed ? ~digest | 1 : digest
  }

  /// `digest` of a notification that is not malformed, for what counts notifications one by one: without a value in
  /// between, which costs more than the digest.
  ///
  /// - Parameter hasPayload: the payload is present, if perhaps empty.
  @inline(__always)
  static func digest(token: RawSpan, payload: RawSpan, hasPayload: Bool) -> UInt64 {
    guard token.byteCount > 0 else { return 0 }
    let digest = ContentDigest(payload, seed: ContentDigest.seed(from: token)).value
    return (hasPayload ? digest : digest.byteSwapped) | 1
  }

  /// The keys of the notification, and of its token and payload alone. That of a notification that is not recognisable
  /// says nothing: those that lack the same share it.
  var keys: (notification: ContentKey, token: ContentKey, payload: ContentKey) {
    // Absent and empty tokens differ.
    let token = ContentKey(token, in: hasToken ? .present : .absent)
    let payload = ContentKey(payload, in: hasPayload ? .present : .absent)
    return (ContentKey(token, payload, isMalformed: isMalformed), token, payload)
  }
}
