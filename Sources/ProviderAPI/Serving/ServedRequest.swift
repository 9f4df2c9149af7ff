import Bytes
import HTTP2

/// The fields of one request as a service keeps them until its content is there.
///
/// The memory is reused for the next request in the same place, so nothing is allocated once it is large enough. The
/// provider token is not in it.
package struct ServedRequest: Sendable {
  /// What the request is for.
  package private(set) var target = RequestTarget.other
  /// `apns-priority`; `nil` if it is absent or wrong.
  package private(set) var priority: UInt8?
  /// `apns-expiration`; `nil` if it is absent or wrong.
  package private(set) var expiration: UInt64?
  /// The place of `authorization` in the fields; `nil` without one.
  package private(set) var authorization: Int?
  private var isPost = false
  /// The method is HEAD: its answer has no content (RFC 9110 section 9.3.2).
  package private(set) var isHead = false
  private var seen: Seen = []
  private var faults: Faults = []
  private var bytes: [UInt8] = []
  private var tokenRange = 0..<0
  private var topicRange = 0..<0
  private var typeRange = 0..<0
  private var identifierRange = 0..<0
  private var collapseRange = 0..<0
  /// Of broadcasts and channel management: the app in the path, `apns-channel-id` and `apns-request-id`.
  private var bundleRange = 0..<0
  private var channelRange = 0..<0
  private var requestRange = 0..<0
  /// Of a request that is no notification to a device.
  private var isGet = false
  private var isOfChannels = false
  /// The length of the token in the path in digits.
  private var tokenDigits = 0

  private struct Seen: OptionSet {
    let rawValue: UInt16
    static let topic = Seen(rawValue: 1 << 0)
    static let pushType = Seen(rawValue: 1 << 1)
    static let identifier = Seen(rawValue: 1 << 2)
    static let expiration = Seen(rawValue: 1 << 3)
    static let priority = Seen(rawValue: 1 << 4)
    static let collapseID = Seen(rawValue: 1 << 5)
    static let authorization = Seen(rawValue: 1 << 6)
    static let channelID = Seen(rawValue: 1 << 7)
    static let requestID = Seen(rawValue: 1 << 8)
  }

  private struct Faults: OptionSet {
    let rawValue: UInt16
    static let duplicates = Faults(rawValue: 1 << 0)
    static let token = Faults(rawValue: 1 << 1)
    static let identifier = Faults(rawValue: 1 << 2)
    static let upperCaseIdentifier = Faults(rawValue: 1 << 3)
    static let expiration = Faults(rawValue: 1 << 4)
    static let priority = Faults(rawValue: 1 << 5)
    static let collapseID = Faults(rawValue: 1 << 6)
    /// A field of a notification, which makes a request to an unknown path one.
    static let isNotification = Faults(rawValue: 1 << 7)
  }

  package init() {}

  // MARK: reading

  /// Takes the fields of a request.
  ///
  /// - Parameter fields: all of them, without a fault of HTTP.
  package mutating func read(_ fields: FieldList) {
    authorization = nil
    (target, priority, expiration, isPost, isHead, seen, faults) = (.other, nil, nil, false, false, [], [])
    (tokenRange, topicRange, typeRange, identifierRange, tokenDigits) = (0..<0, 0..<0, 0..<0, 0..<0, 0)
    collapseRange = 0..<0
    bytes.removeAll(keepingCapacity: true)
    for (place, field) in fields.fields.enumerated() {
      let name = fields.name(of: field)
      switch name.byteCount {
      case 5 where name.holds(":path", at: 0): readPath(fields.value(of: field))
      case 7 where name.holds(":method", at: 0):
        let value = fields.value(of: field)
        isPost = value.byteCount == 4 && value.holds("POST", at: 0)
        isHead = value.byteCount == 4 && value.holds("HEAD", at: 0)
      case 7 where name.holds("apns-id", at: 0):
        guard isFirst(.identifier) else { continue }
        identifierRange = keep(fields.value(of: field))
        faults.formUnion(Self.faults(ofIdentifier: fields.value(of: field)))
      case 10 where name.holds("apns-topic", at: 0):
        faults.insert(.isNotification)
        if isFirst(.topic) { topicRange = keep(fields.value(of: field)) }
      case 13 where name.holds("authorization", at: 0):
        if isFirst(.authorization) { authorization = place }
      case 13 where name.holds("apns-priority", at: 0):
        guard isFirst(.priority) else { continue }
        priority = DecimalText.number(fields.value(of: field)).flatMap { UInt8(exactly: $0) }
        if priority != 10, priority != 5, priority != 1 { faults.insert(.priority) }
      case 14 where name.holds("apns-push-type", at: 0):
        faults.insert(.isNotification)
        if isFirst(.pushType) { typeRange = keep(fields.value(of: field)) }
      case 15 where name.holds("apns-expiration", at: 0):
        guard isFirst(.expiration) else { continue }
        expiration = DecimalText.number(fields.value(of: field))
        if expiration == nil { faults.insert(.expiration) }
      case 16 where name.holds("apns-collapse-id", at: 0):
        faults.insert(.isNotification)
        guard isFirst(.collapseID) else { continue }
        if fields.value(of: field).byteCount > ServingRules.longestCollapseID {
          faults.insert(.collapseID)
        } else {
          collapseRange = keep(fields.value(of: field))
        }
      default: break
      }
    }
    if target == .other { readOther(fields) }
    // As `RequestReading` does for an observer, so that both count the same requests.
    if target == .other, faults.contains(.isNotification) { target = .badPath }
  }

  private mutating func isFirst(_ field: Seen) -> Bool {
    guard !seen.contains(field) else {
      faults.insert(.duplicates)
      return false
    }
    seen.insert(field)
    return true
  }

  private mutating func keep(_ text: RawSpan) -> Range<Int> {
    let start = bytes.count
    bytes.append(copying: text)
    return start..<bytes.count
  }

  private mutating func readPath(_ path: RawSpan) {
    let prefix: StaticString = "/3/device/"
    guard path.holds(prefix, at: 0) else { return }
    target = .device
    let text = path.extracting(prefix.utf8CodeUnitCount..<path.byteCount)
    tokenDigits = text.byteCount
    let digits = keep(text)
    let start = bytes.count
    if !digits.isEmpty, !bytes.appendBytes(ofHexadecimal: digits) { faults.insert(.token) }
    tokenRange = start..<bytes.count
  }

  /// Reads what only broadcasts and channel management have: a notification to a device does not wait for it.
  private mutating func readOther(_ fields: FieldList) {
    (bundleRange, channelRange, requestRange) = (0..<0, 0..<0, 0..<0)
    var (path, method) = (0..<0, 0..<0)
    for field in fields.fields {
      let name = fields.name(of: field)
      switch name.byteCount {
      case 5 where name.holds(":path", at: 0): path = keep(fields.value(of: field))
      case 7 where name.holds(":method", at: 0): method = keep(fields.value(of: field))
      case 15 where name.holds("apns-channel-id", at: 0):
        if isFirst(.channelID) { channelRange = keep(fields.value(of: field)) }
      case 15 where name.holds("apns-request-id", at: 0):
        guard isFirst(.requestID) else { continue }
        let value = fields.value(of: field)
        if !Self.faults(ofIdentifier: value).contains(.identifier) { requestRange = keep(value) }
      default: break
      }
    }
    let (found, bundle) = RequestTarget.read(bytes.rawBytes, path: path, method: method)
    target = found
    isGet = bytes[method].elementsEqual("GET".utf8)
    isOfChannels = bytes[path].starts(with: "/1/apps/".utf8) && bytes[path].suffix(9).elementsEqual("/channels".utf8)
    bundleRange = path.lowerBound + bundle.lowerBound..<path.lowerBound + bundle.upperBound
  }

  /// The faults of `apns-id`. Canonical: 8-4-4-4-12 digits.
  private static func faults(ofIdentifier text: RawSpan) -> Faults {
    guard text.byteCount == 36 else { return .identifier }
    var found: Faults = []
    for offset in 0..<36 {
      let byte = text.byte(at: offset)
      switch offset {
      case 8, 13, 18, 23: if byte != UInt8(ascii: "-") { return .identifier }
      default:
        switch byte {
        case 0x30...0x39, 0x61...0x66: break
        case 0x41...0x46: found = .upperCaseIdentifier
        default: return .identifier
        }
      }
    }
    return found
  }

  // MARK: what is known

  /// The token's bytes; empty if its text is not hexadecimal.
  package var token: RawSpan {
    @_lifetime(borrow self)
    get { bytes.rawBytes.extracting(tokenRange) }
  }

  /// `apns-topic`; empty without one.
  package var topic: RawSpan {
    @_lifetime(borrow self)
    get { bytes.rawBytes.extracting(topicRange) }
  }

  /// `apns-id` as it was sent; empty without one, or with a wrong one.
  package var identifier: RawSpan {
    @_lifetime(borrow self)
    get { bytes.rawBytes.extracting(faults.contains(.identifier) ? 0..<0 : identifierRange) }
  }

  /// `apns-collapse-id`; empty without one, or with one that is too long.
  package var collapseID: [UInt8] { Array(bytes[collapseRange]) }

  /// `apns-push-type`; `nil` without one.
  package var pushType: PushType? {
    seen.contains(.pushType) ? PushType(rawValue: String(decoding: bytes[typeRange], as: UTF8.self)) : nil
  }

  /// The app in the path of a broadcast, or of channel management.
  package var bundle: String { String(decoding: bytes[bundleRange], as: UTF8.self) }
  /// `apns-channel-id`; `nil` without one.
  package var channelID: String? {
    seen.contains(.channelID) ? String(decoding: bytes[channelRange], as: UTF8.self) : nil
  }
  /// `apns-request-id`; empty without one, or with one that is no canonical UUID.
  package var requestID: RawSpan {
    @_lifetime(borrow self)
    get { bytes.rawBytes.extracting(requestRange) }
  }

  // MARK: rules

  /// Whether a field that may come once has come again.
  package var hasDuplicates: Bool { faults.contains(.duplicates) }

  /// The rule that method and path of a request to channel management break.
  package var managementFault: ProviderReason? {
    guard case .channel(let action) = target else { return isOfChannels ? .methodNotAllowed : .badPath }
    return action == .readAll && !isGet ? .methodNotAllowed : nil
  }

  /// The first rule that the fields of a broadcast break, besides its channel and its expiration.
  ///
  /// The order: apns-channel-id, apns-priority, apns-push-type. Apple requires all of them and documents no order.
  package var broadcastFault: ProviderReason? {
    guard let channelID else { return .missingChannelID }
    if Base64URL.standard(channelID) == nil { return .badChannelID }
    if priority == nil || faults.contains(.priority) { return .badPriority }
    guard let pushType else { return .missingPushType }
    return pushType.rawValue.lowercased() == "liveactivity" ? nil : .invalidPushType
  }

  /// The first rule that path and method break: of those that come before the trust.
  package var targetFault: ProviderReason? {
    if target != .device && target != .broadcast { return .badPath }
    if !isPost { return .methodNotAllowed }
    return faults.contains(.duplicates) ? .duplicateHeaders : nil
  }

  /// The first rule that the fields and the content break, besides the topic.
  ///
  /// The order: token, apns-id, apns-expiration, apns-priority, apns-push-type, apns-collapse-id. Apple documents none.
  package func fieldFault(_ rules: ServingRules) -> ProviderReason? {
    if tokenDigits == 0 { return .missingDeviceToken }
    if faults.contains(.token) || !rules.tokenLengths.contains(tokenRange.count) { return .badDeviceToken }
    if !faults.isDisjoint(with: [.identifier, .expiration, .priority, .collapseID, .upperCaseIdentifier]) {
      if faults.contains(.identifier) { return .badMessageID }
      if faults.contains(.upperCaseIdentifier), !rules.allowsUpperCaseID { return .badMessageID }
      if faults.contains(.expiration) { return .badExpirationDate }
      if faults.contains(.priority) { return .badPriority }
    }
    if let reason = typeFault(rules) { return reason }
    return faults.contains(.collapseID) ? .badCollapseID : nil
  }

  private func typeFault(_ rules: ServingRules) -> ProviderReason? {
    guard seen.contains(.pushType) else { return rules.missingPushType }
    let type = bytes.rawBytes.extracting(typeRange)
    // The usual type costs no look-up.
    if type.byteCount == 5, type.holds("alert", at: 0) { return nil }
    if type.byteCount == 10, type.holds("background", at: 0) {
      return priority == 10 ? rules.backgroundPriority : nil
    }
    guard let reason = rules.unknownPushType, pushType?.isDocumented != true else { return nil }
    return reason
  }

  /// The rule that a topic breaks with the request's push type; of a missing topic nothing is said.
  ///
  /// - Parameter end: the type that the topic's end belongs to, `PushType.type(ofTopic:)`.
  package func topicFault(_ end: PushType?, _ rules: ServingRules) -> ProviderReason? {
    guard let reason = rules.topicSuffix, seen.contains(.pushType) else { return nil }
    let type = bytes.rawBytes.extracting(typeRange)
    if end == nil, type.byteCount == 5, type.holds("alert", at: 0) { return nil }
    guard let pushType, let suffix = pushType.topicSuffix else { return nil }
    if suffix.isEmpty {
      // The topic of device management is a certificate's UID, of any form.
      return end == nil || pushType.rawValue == "mdm" ? nil : reason
    }
    return end?.rawValue == pushType.rawValue.lowercased() ? nil : reason
  }

  /// The rule that the length of the content breaks.
  package func contentFault(_ length: Int) -> ProviderReason? {
    if length == 0 { return .payloadEmpty }
    // The usual length costs no look-up.
    if length <= 4_096 { return nil }
    return length > longestPayload ? .payloadTooLarge : nil
  }

  /// The longest payload of the request's type in bytes.
  package var longestPayload: Int {
    if target == .broadcast { return ServingRules.longestBroadcast }
    guard seen.contains(.pushType) else { return 4_096 }
    let type = bytes.rawBytes.extracting(typeRange)
    // The usual type costs no look-up.
    if type.byteCount == 5, type.holds("alert", at: 0) { return 4_096 }
    return pushType?.longestPayload ?? 4_096
  }
}
