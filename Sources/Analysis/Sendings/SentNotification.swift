import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import Records

/// A sending of a notification.
struct SentNotification {
  /// `NotificationIdentity.digest`.
  let digest: UInt64
  let time: Timestamp
  let connection: Int
  let index: Int
  /// UNIX seconds; 0: none.
  let expiration: UInt32
  /// It is among the selected records.
  let isSelected: Bool
  /// It is a request of the HTTP/2 provider API.
  let isRequest: Bool

  var isRecognisable: Bool { digest != 0 }

  /// It was written after its expiration.
  @inline(__always)
  var isLate: Bool { expiration != 0 && time.nanoseconds > Int64(expiration) * 1_000_000_000 }

  @inline(__always)
  init(_ fields: PushFields, digest: UInt64, at place: RecordPlace, index: Int, isSelected: Bool) {
    self.digest = digest
    (self.isSelected, isRequest) = (isSelected, false)
    (time, connection, self.index) = (place.time, place.connection, index)
    expiration = fields.expiration ?? 0
  }

  init(
    digest: UInt64, time: Timestamp, connection: Int, index: Int, expiration: UInt32, isSelected: Bool = true,
    isRequest: Bool = false
  ) {
    (self.digest, self.time, self.connection, self.index) = (digest, time, connection, index)
    (self.expiration, self.isSelected, self.isRequest) = (expiration, isSelected, isRequest)
  }

  init(_ record: borrowing ProviderNotificationRecord, isSelected: Bool) {
    self.init(
      digest: record.identityDigest, time: record.place.time, connection: record.place.connection, index: record.index,
      expiration: record.clampedExpiration, isSelected: isSelected, isRequest: true)
  }
}

/// The beginning of a notification's token and payload, for people.
struct NotificationBeginning {
  static let tokenBytes = 32
  static let payloadBytes = 60

  /// The first bytes, and how many there are in all.
  var token: [UInt8]
  var tokenLength: Int
  var payload: [UInt8]
  var payloadLength: Int

  /// The token in hexadecimal.
  var tokenText: String {
    var text = ByteWriter(capacity: 2 * token.count)
    text.write(hex: token.rawBytes)
    return String(decoding: Array(copying: text.bytes), as: UTF8.self) + (tokenLength > token.count ? "…" : "")
  }

  var payloadText: String {
    var whole = payload[...]
    // The last character may be cut.
    if payloadLength > payload.count {
      while let last = whole.last, last & 0xc0 == 0x80 { whole.removeLast() }
      if let last = whole.last, last >= 0xc0 { whole.removeLast() }
    }
    let text = TableText.preview(Array(whole).rawBytes)
    return payloadLength > payload.count && text.last != "…" ? text + "…" : text
  }
}
