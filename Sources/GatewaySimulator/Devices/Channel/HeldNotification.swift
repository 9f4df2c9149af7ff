import Bytes

/// An accepted notification for a registered device that has not acknowledged it.
struct HeldNotification: Sendable, Equatable {
  /// Its number among all that were accepted for registered devices, from 1.
  let number: UInt64
  let origin: DeviceOutcome.Origin
  let payload: [UInt8]
  /// 10, 5 or 1.
  let priority: UInt8
  let pushType: String?
  let expiration: UInt32?
  /// Empty: without.
  let collapseID: [UInt8]
  let isBackground: Bool
  /// UNIX ns at which it was read.
  let sent: Int64
  /// The last UNIX ms at which it can be sent.
  let lastMoment: Int64
  /// UNIX ms before which it is not sent by itself.
  var releasedAt: Int64
  /// It was not sent when it was accepted.
  var hasWaited = false
  /// It was sent on a connection that ended.
  var wasSent = false
  /// The device was awake while it waited: it is sent as soon as the device takes more.
  var isReleased = false

  /// Bytes that count for the limit.
  var size: Int { payload.count + collapseID.count + 32 }
}

/// A notification that a provider sends to a token.
struct OfferedPush: ~Escapable {
  /// The topic's number.
  let topic: UInt32
  let token: RawSpan
  let payload: RawSpan
  var priority: UInt8 = 10
  var pushType: String?
  var expiration: UInt32?
  var collapseID: [UInt8] = []
  var isBackground = false
  /// Its place among those that the gateway has received.
  var origin = DeviceOutcome.Origin()
  /// UNIX ns at which it was read.
  var sent: Int64

  @_lifetime(copy token, copy payload)
  init(topic: UInt32, token: RawSpan, payload: RawSpan, sent: Int64) {
    (self.topic, self.token, self.payload, self.sent) = (topic, token, payload, sent)
  }
}
