import Bytes
import PacketCapture
import ProviderAPI
import PushModel
import Records

/// The identity of notifications of the HTTP/2 provider API: token, payload and topic; of broadcasts the channel instead
/// of the token. Identifier, expiration, priority and connection do not count, as for those of the binary protocol.
///
/// A field that is uncertain makes two notifications neither equal nor different: such a notification is recognised in no
/// other one, and any other one may be it (`UnseenSendings.noteUncertain`).
extension ProviderNotificationRecord {
  /// The recipient in the path: the token's bytes, the bundle identifier of a broadcast, or a
  /// path that is none of theirs.
  var targetField: ByteField {
    switch request.target {
    case .device: request.token.isPresent ? request.token : request.path
    case .broadcast: request.bundle
    case .badPath: request.path
    case .channel, .other, .unknown: ByteField()
    }
  }

  /// Whether target and payload are known to the last byte.
  var isContentCertain: Bool {
    guard request.isPayloadWhole, targetField.isPresent else { return false }
    return request.target != .broadcast || request.channelID.isPresent
  }

  /// Whether another sending of the notification can be recognised, as far as the topic is concerned as well.
  var isRecognisable: Bool { isContentCertain && !request.uncertain.contains(.topic) }

  /// A digest like `NotificationIdentity.digest`, which differs for each notification that cannot be recognised.
  var identityDigest: UInt64 {
    guard isRecognisable else { return Self.digest(ofConnection: place.connection, index: index) }
    return ContentDigest(bytes(of: request.payload), seed: addresseeDigest).value | 1
  }

  /// A digest of target and topic.
  var addresseeDigest: UInt64 {
    // Targets of different kinds may have the same bytes.
    let kind: UInt64 = request.target == .broadcast ? 0x9fb2_1c65_1e98_df25 : request.token.isPresent ? 0 : 1
    var digest = ContentDigest(bytes(of: request.topic), seed: ContentDigest.seed(from: bytes(of: targetField)) ^ kind)
      .value
    if request.target == .broadcast { digest = ContentDigest(bytes(of: request.channelID), seed: digest).value }
    // An absent topic differs from an empty one.
    return request.topic.isPresent ? digest : digest.byteSwapped
  }

  /// The keys of the notification, as those of `NotificationIdentity`, and of its token and payload alone. A notification
  /// that cannot be recognised has a key of its own. The topic is compared beside them.
  var identityKeys: (notification: ContentKey, token: ContentKey, payload: ContentKey) {
    let payload = ContentKey(bytes(of: request.payload), in: request.isPayloadWhole ? .present : .absent)
    let target: ContentKey =
      switch request.target {
      case .broadcast:
        ContentKey(bytes(of: request.channelID), in: ContentKey(bytes(of: request.bundle), in: .broadcast))
      case .device where request.token.isPresent: ContentKey(bytes(of: request.token), in: .present)
      default: ContentKey(bytes(of: targetField), in: .path)
      }
    guard isRecognisable else { return (ContentKey(ofSending: index, on: place.connection), target, payload) }
    return (ContentKey(target, payload, isMalformed: false), target, payload)
  }

  /// The finalizer of SplitMix64: different numbers have different digests, but for their last bit.
  private static func digest(ofConnection connection: Int, index: Int) -> UInt64 {
    var digest = UInt64(truncatingIfNeeded: connection) << 32 ^ UInt64(truncatingIfNeeded: index)
    digest = (digest ^ digest >> 30) &* 0xbf58_476d_1ce4_e5b9
    digest = (digest ^ digest >> 27) &* 0x94d0_49bb_1331_11eb
    return (digest ^ digest >> 31) | 1
  }

  /// The expiration in the binary protocol's range; 0: none, or one attempt.
  var clampedExpiration: UInt32 { UInt32(clamping: request.expiration ?? 0) }

  /// When its fields were sent, or else when it ended.
  var firstTime: Timestamp { started.isKnown ? started : place.time }
}

extension ContentKey {
  /// Contexts of what is no token.
  fileprivate static let broadcast = ContentKey(high: 0, low: 3)
  fileprivate static let path = ContentKey(high: 0, low: 4)
  private static let uncertain = ContentKey(high: 0, low: 5)

  /// The key of one sending, which no other has: that of a notification that cannot be recognised.
  init(ofSending index: Int, on connection: Int) {
    let own = ContentKey(high: UInt64(truncatingIfNeeded: connection), low: UInt64(truncatingIfNeeded: index))
    self.init(.uncertain, own, isMalformed: true)
  }
}
