import APNSProtocol
import Bytes
import PacketCapture

/// The counts of an inspection over all connections.
struct SharedTally {
  var findings = Findings()
  var payloadLengths = Counts(highest: 65_535)
  var perSecond = PerSecond()
  var lost: LostNotifications
  var history: SentHistory

  init(_ limits: Inspection.Limits) {
    lost = LostNotifications(limit: limits.remembered)
    history = SentHistory(maximum: limits.history)
  }

  @inline(__always)
  mutating func note(
    _ layout: PushNotification.Layout, _ token: RawSpan, _ payload: RawSpan, _ place: RecordPlace
  ) {
    payloadLengths.add(payload.byteCount)
    note(time: place.time)
    let isUsual =
      token.byteCount == 32 && payload.byteCount <= 2_048 && !layout.hasUnknownItems && Self.looksLikeObject(payload)
      && !Self.isStrange(layout.expiration)
    if !isUsual { noteForm(layout, token, payload, packet: place.packet) }
  }

  @inline(__always)
  mutating func note(time: Timestamp) { if time.isKnown { perSecond.add(1, at: time) } }

  @inline(__always)
  private static func looksLikeObject(_ payload: RawSpan) -> Bool {
    payload.byteCount > 0 && payload.byte(at: 0) == UInt8(ascii: "{")
      && payload.byte(at: payload.byteCount - 1) == UInt8(ascii: "}")
  }

  /// Before 2001, or the end of time.
  private static func isStrange(_ expiration: UInt32?) -> Bool {
    guard let expiration else { return false }
    return expiration != 0 && expiration < 1_000_000_000 || expiration == .max
  }

  @inline(never)
  private mutating func noteForm(
    _ layout: PushNotification.Layout, _ token: RawSpan, _ payload: RawSpan, packet: Int
  ) {
    if token.byteCount != 32 { findings.note(token.byteCount == 0 ? .knownBad : .unusualTokenLength, packet: packet) }
    if payload.byteCount > 2_048 {
      findings.note(payload.byteCount > 4_096 ? .payloadOver4096 : .payloadOver2048, packet: packet)
    }
    if payload.byteCount > 0 && !Self.looksLikeObject(payload) { findings.note(.notAnObject, packet: packet) }
    if Self.isStrange(layout.expiration) { findings.note(.strangeExpiration, packet: packet) }
    if layout.hasUnknownItems { findings.note(.unknownItems, packet: packet) }
  }
}
