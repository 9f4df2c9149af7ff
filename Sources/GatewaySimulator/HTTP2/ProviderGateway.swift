import Bytes
import HTTP2
import HTTP2Server
import Measurement
import Payload
import ProviderAPI
import PushModel

/// One provider's connection over HTTP/2: its session, whom it is trusted as, and the decisions on its notifications.
///
/// A value without sockets and clock. Checks come in this order, which Apple documents nowhere: path, method, repeated
/// fields, trust, token, apns-id, expiration, priority, push type, collapse id, topic, payload; then the rules of
/// `--reject`, and the device.
struct ProviderGateway: ~Copyable {
  /// The trust of a connection.
  enum Trust: Sendable {
    case any
    /// The topics of its certificate; `nil`: it has shown none.
    case certificate([String]?)
    case token
  }

  var session: ServerSession
  /// Since the last `takeCounts`.
  var counts = ServedCounts()
  /// The frames that were told by then.
  private var told = ServerCounts()
  /// Notifications whose HEADERS were read so far: records number them so.
  private var begun = 0
  /// The decisions since the last `takeServed`; `nil`: nobody observes them.
  var served: [ObservedEvent.Served]?
  private(set) var tokens: ProviderTokens
  /// Why the connection has failed.
  private(set) var failureCode: ErrorCode?

  let service: HTTP2Service
  let trust: Trust
  /// The channels of broadcasts; `nil`: there are none.
  let channels: BroadcastChannels?
  private let store: StoredNotifications
  /// The registered devices; `nil`: there is no device channel.
  private let devices: DeviceDirectory?
  /// UNIX time in ns of the bytes of a read, for registered devices.
  var nanoseconds: Int64 = 0
  /// `nil`: payloads are not judged.
  private let payloads: PayloadTally?
  let connection: UInt64
  private(set) var policy: RejectionPolicy
  var requests: [Waiting] = []
  /// The topics of the connection, by their texts.
  private var topics: [[UInt8]: Int] = [:]
  private var deciders: [Topic] = []
  private var latestTopic = -1
  private var generator: SplitMix64
  /// UNIX time in ms; set once for all bytes of a read.
  private(set) var now: Int64 = 0
  /// The faults of the connection; `nil`: none is set, and nothing waits because of an earlier one.
  var faults: ConnectionFaults?
  /// UNIX ms at which devices became unregistered, unless they were changed since then.
  let unregisteredAt: Int64

  /// A request that waits for its end.
  struct Waiting {
    var request = ServedRequest()
    /// Its provider token; `nil` without one, or if none is asked for.
    var token: ProviderTokens.Entry?
    var progress = Progress.reading
    /// Its number among the notifications of the connection, from 0.
    var index = 0
  }

  /// How far a request is.
  enum Progress: Equatable {
    case reading
    /// It was decided on, and its answer is not begun.
    case decided(isAccepted: Bool)
    /// Its answer was begun.
    case answered
  }

  private struct Topic {
    var text: [UInt8]
    var name: String
    /// The type that its end belongs to.
    var end: PushType?
    /// The kind of topic by which payloads are judged.
    var kind: PayloadTopic
    var decider: PushDecider
  }

  init(
    _ service: HTTP2Service, _ trust: Trust, _ policy: RejectionPolicy, _ store: StoredNotifications,
    devices: DeviceDirectory? = nil, channels: BroadcastChannels? = nil, payloads: PayloadTally? = nil,
    connection: UInt64, generator: SplitMix64,
    unregisteredAt: Int64,
    isObserved: Bool = false
  ) {
    (self.channels, self.devices) = (channels, devices)
    served = isObserved ? [] : nil
    (self.service, self.trust, self.policy, self.store, self.payloads) = (service, trust, policy, store, payloads)
    (self.connection, self.generator, self.unregisteredAt) = (connection, generator, unregisteredAt)
    var options = service.session
    if case .token = trust { options.streamLimit = min(service.firstStreamLimit, options.streamLimit ?? .max) }
    session = ServerSession(options)
    tokens = ProviderTokens(
      service.providerKeys, service.rules, limit: service.maximumTokens, isSandbox: service.isSandbox)
  }

  /// Decides by another policy from now on.
  mutating func adopt(_ policy: RejectionPolicy) {
    self.policy = policy
    for place in deciders.indices { deciders[place].decider.adopt(policy) }
  }

  // MARK: reading

  /// Reads all whole frames, and returns their length. Answers are in the session's output.
  ///
  /// - Parameters:
  ///   - bytes: what the client sent, from the first byte on that was not read.
  ///   - now: UNIX time in ms.
  ///   - tick: ns of the loop's clock; of no meaning without faults.
  mutating func receive(_ bytes: RawSpan, now: Int64, tick: Int64 = 0) -> Int {
    self.now = now
    faults?.noteRead(at: tick)
    var offset = 0
    while let event = session.next(bytes, &offset, second: now / 1_000) { take(event, bytes) }
    if faults != nil { settleOutput() }
    return offset
  }

  /// Does what is due without a read.
  mutating func advance(now: Int64, tick: Int64) {
    guard faults != nil else { return }
    self.now = now
    doWhatIsDue(at: tick)
  }

  /// The counts since the last call.
  mutating func takeCounts() -> ServedCounts {
    var latest = counts
    counts = ServedCounts()
    let frames = session.counts
    latest.goAways = frames.goAways - told.goAways
    latest.resetsSent = frames.resetsSent - told.resetsSent
    latest.resetsReceived = frames.resetsReceived - told.resetsReceived
    latest.pings = frames.pings - told.pings
    told = frames
    return latest
  }

  private mutating func take(_ event: ServerEvent, _ bytes: RawSpan) {
    switch event {
    case .began(let stream):
      while requests.count <= stream.slot { requests.append(Waiting()) }
      read(stream.slot)
    case .ended(let stream, .bytes(let range), let length):
      end(stream, bytes.extracting(range), length)
    case .ended(let stream, .kept, let length):
      let content = session.takeContent(stream.slot)
      end(stream, content.rawBytes, length)
    case .refused(let stream, _): refuse(stream, isMalformed: false)
    case .abandoned(let stream, _, .client): abandon(stream, isMalformed: false)
    case .abandoned(let stream, _, .violation(let rule)):
      counts.violations[rule, default: 0] += 1
      abandon(stream, isMalformed: rule.isOfMessages)
    case .violated(let violation):
      counts.violations[violation.rule, default: 0] += 1
      if violation.rule.isOfMessages { refuse(violation.stream, isMalformed: true) }
    case .failed(.violation(let violation)):
      counts.violations[violation.rule, default: 0] += 1
      failureCode = violation.code
    case .failed(.flood(let flood)):
      counts.floods[flood, default: 0] += 1
      failureCode = .enhanceYourCalm
    case .goAway: break
    }
  }

  private mutating func read(_ slot: Int) {
    requests[slot].request.read(session.fields)
    requests[slot].progress = .reading
    requests[slot].token = nil
    if requests[slot].request.target.isNotification {
      requests[slot].index = begun
      begun += 1
    }
    guard case .token = trust, let place = requests[slot].request.authorization else { return }
    // The copy shares its memory, and is gone before the next block is decoded.
    let fields = session.fields
    let field = fields.fields[place]
    let token = tokens.entry(of: fields.value(of: field), field.origin)
    requests[slot].token = token
  }

  /// A request that is not processed counts by its path. The reset of a malformed one does not tell that.
  private mutating func refuse(_ stream: UInt32, isMalformed: Bool) {
    var request = ServedRequest()
    request.read(session.fields)
    guard request.target.isNotification else {
      counts.otherRequests += 1
      return
    }
    begun += 1
    discard(stream, isUnknown: isMalformed)
  }

  private mutating func discard(_ stream: UInt32, isUnknown: Bool) {
    counts.received += 1
    counts.discarded += 1
    if isUnknown { counts.unknownDiscarded += 1 }
    served?.append(.init(stream: stream, fate: .discarded))
  }

  /// - Parameter isMalformed: the end of the request came, and the request is reset for what it is.
  private mutating func abandon(_ stream: ServerStream, isMalformed: Bool) {
    guard stream.slot < requests.count else { return }
    let waiting = requests[stream.slot]
    switch waiting.progress {
    case .answered: counts.unanswered += 1
    case .decided(let isAccepted): counts.noteUnknown(isAccepted: isAccepted)
    case .reading where !waiting.request.target.isNotification: counts.otherRequests += 1
    case .reading: if isMalformed { discard(stream.number, isUnknown: true) } else { counts.incomplete += 1 }
    }
  }

  // MARK: decisions

  enum Verdict {
    case accepted
    case rejected(ProviderReason, status: Int)
    /// Since a UNIX ms.
    case unregistered(since: Int64)

    func served(_ stream: UInt32) -> ObservedEvent.Served {
      switch self {
      case .accepted: .init(stream: stream, fate: .accepted, status: 200)
      case .rejected(let reason, let status):
        .init(stream: stream, fate: .rejected, status: status, reason: reason)
      case .unregistered: .init(stream: stream, fate: .rejected, status: 410, reason: .unregistered)
      }
    }
  }

  private mutating func end(_ stream: ServerStream, _ content: RawSpan, _ length: Int) {
    let slot = stream.slot
    let isNotification = requests[slot].request.target.isNotification
    if isNotification { counts.received += 1 } else { counts.otherRequests += 1 }
    if service.purpose == .channels { return manage(slot, content) }
    if faults != nil, endDisturbed(slot, content, length, isNotification) { return }
    let verdict = decide(slot, content, length)
    if isNotification { served?.append(verdict.served(stream.number)) }
    switch verdict {
    case .accepted:
      counts.accepted += 1
      answer(slot, 200, nil)
    case .rejected(let reason, let status): reject(slot, reason, status, isNotification, timestamp: nil)
    case .unregistered(let time): reject(slot, .unregistered, 410, isNotification, timestamp: time)
    }
  }

  private mutating func reject(
    _ slot: Int, _ reason: ProviderReason, _ status: Int, _ isNotification: Bool, timestamp: Int64?
  ) {
    if isNotification { counts.rejected[reason, default: 0] += 1 }
    answer(slot, status, Self.content(reason, timestamp))
  }

  /// The content of an answer, or of a GOAWAY.
  static func content(_ reason: ProviderReason, _ timestamp: Int64? = nil) -> [UInt8] {
    var content = ByteWriter(capacity: 64)
    content.write("{\"reason\":")
    content.write(jsonString: reason.rawValue, onlyRequired: true)
    if let timestamp {
      content.write(",\"timestamp\":")
      content.write(decimal: Int(timestamp))
    }
    content.write("}")
    return Array(copying: content.bytes)
  }

  mutating func decide(_ slot: Int, _ content: RawSpan, _ length: Int) -> Verdict {
    func documented(_ reason: ProviderReason) -> Verdict { .rejected(reason, status: reason.documentedStatus ?? 400) }
    // The copy shares its memory, and is gone before the next request is read into this place.
    let request = requests[slot].request
    if let reason = request.targetFault { return documented(reason) }
    if let reason = trustFault(slot) { return documented(reason) }
    if request.target == .broadcast { return decideBroadcast(slot, content, length) }
    if let reason = request.fieldFault(service.rules) { return documented(reason) }
    let place: Int
    switch topic(of: request) {
    case .success(let known): place = known
    case .failure(let fault): return documented(fault.reason)
    }
    if let token = requests[slot].token, !tokens.allows(deciders[place].name, token) {
      return documented(service.rules.keyTopic)
    }
    if let reason = request.topicFault(deciders[place].end, service.rules) { return documented(reason) }
    if let reason = payloadFault(request, content, length, deciders[place].kind) { return documented(reason) }
    let token = request.token
    if DeviceToken.isInvalid(token) { return documented(.badDeviceToken) }
    guard !policy.acceptsEverything || devices != nil else { return .accepted }
    let decision = deciders[place].decider.decide(token)
    if case .rejected(let rule) = decision {
      if rule.reason == .unregistered { return .unregistered(since: unregisteredAt) }
      return .rejected(rule.reason, status: rule.httpStatus)
    }
    if let devices, let verdict = offer(request, place, content, requests[slot].index, to: devices) { return verdict }
    switch decision {
    case .active, .rejected: return .accepted
    case .unknown: return documented(.badDeviceToken)
    case .uninstalled: return .unregistered(since: deciders[place].decider.timeOfChange(of: token) ?? unregisteredAt)
    case .offline: return keep(request, place, content, requests[slot].index)
    }
  }

  /// Why the payload of a notification is refused. It counts in any case, if it is there as a whole.
  func payloadFault(
    _ request: ServedRequest, _ content: RawSpan, _ length: Int, _ topic: PayloadTopic
  ) -> ProviderReason? {
    if let reason = request.contentFault(length) {
      payloads?.note(reason == .payloadEmpty ? .payloadEmpty : .payloadTooLarge)
      return reason
    }
    guard let payloads, content.byteCount == length else { return nil }
    return payloads.refusal(
      of: content, priority: request.priority, topic: topic, longest: request.longestPayload)
  }

  /// Takes a notification for a registered device; `nil` if the token is none of one.
  private mutating func offer(
    _ request: ServedRequest, _ topic: Int, _ content: RawSpan, _ index: Int, to devices: DeviceDirectory
  ) -> Verdict? {
    let name = deciders[topic].name
    // A topic that no device has registered has no number.
    let number = store.knownNumber(of: name) ?? .max
    var push = OfferedPush(topic: number, token: request.token, payload: content, sent: nanoseconds)
    push.priority = request.priority ?? 10
    push.pushType = request.pushType?.rawValue
    push.expiration = request.expiration.map { UInt32(clamping: $0) }
    push.collapseID = service.rules.keepsCollapseIDs ? request.collapseID : []
    push.isBackground = push.pushType.map { $0 == "background" } ?? PayloadRules.isSilent(content)
    push.origin = .init(connection: connection, index: index)
    switch devices.accept(push, topic: name, now: now) {
    case .decided(.unknown): return nil
    case .decided(.accepted):
      counts.offline += 1
      return .accepted
    case .decided(.otherTopic):
      return .rejected(
        .deviceTokenNotForTopic, status: ProviderReason.deviceTokenNotForTopic.documentedStatus ?? 400)
    case .decided(.unregistered(let time)): return .unregistered(since: time)
    case .unkept: return .rejected(.serviceUnavailable, status: 503)
    }
  }

  /// Keeps a notification for a device that is offline.
  private mutating func keep(
    _ request: ServedRequest, _ topic: Int, _ content: RawSpan, _ index: Int
  ) -> Verdict {
    guard let number = store.number(of: deciders[topic].name, limit: StoredNotifications.maximumTopics) else {
      return .rejected(.serviceUnavailable, status: 503)
    }
    counts.offline += 1
    store.accept(
      topic: number, token: request.token, payload: content,
      expiration: request.expiration.map { UInt32(clamping: $0) },
      collapseID: service.rules.keepsCollapseIDs ? request.collapseID : [], now: now,
      origin: .init(connection: connection, index: index))
    return .accepted
  }

  mutating func trustFault(_ slot: Int) -> ProviderReason? {
    switch trust {
    case .any: return nil
    case .certificate(let topics): return topics == nil ? .missingProviderToken : nil
    case .token:
      guard let token = requests[slot].token else { return .missingProviderToken }
      let hadAccepted = tokens.hasAccepted
      let fault = tokens.judge(token, now: Int(now / 1_000))
      if !hadAccepted, tokens.hasAccepted, let limit = service.session.streamLimit, limit > service.firstStreamLimit {
        session.setStreamLimit(limit)
      }
      return fault
    }
  }

  private struct TopicFault: Error { var reason: ProviderReason }

  /// The topic of a request, among those of the connection.
  private mutating func topic(of request: ServedRequest) -> Result<Int, TopicFault> {
    let text = request.topic
    if latestTopic >= 0, text.byteCount > 0 {
      let latest = deciders[latestTopic].text
      if latest.rawBytes.elementsEqual(text) { return .success(latestTopic) }
    }
    var key = Array(copying: text)
    if key.isEmpty {
      // With a certificate of one topic that is the default.
      guard case .certificate(let topics?) = trust, topics.count == 1 else {
        return .failure(TopicFault(reason: .missingTopic))
      }
      key = Array(topics[0].utf8)
    }
    if let known = topics[key] {
      latestTopic = known
      return .success(known)
    }
    let name = String(decoding: key, as: UTF8.self)
    guard Self.isTopic(key) else { return .failure(TopicFault(reason: .badTopic)) }
    if case .certificate(let allowed?) = trust, !allowed.contains(name) {
      return .failure(TopicFault(reason: .topicDisallowed))
    }
    guard deciders.count < service.maximumTopics else { return .failure(TopicFault(reason: .serviceUnavailable)) }
    let decider = PushDecider(policy, topic: name, stream: connection &+ UInt64(deciders.count) << 40)
    topics[key] = deciders.count
    deciders.append(
      Topic(
        text: key, name: name, end: PushType.type(ofTopic: name), kind: PayloadTopic(name: name), decider: decider))
    latestTopic = deciders.count - 1
    return .success(latestTopic)
  }

  /// At most 255 letters, digits, full stops, hyphens or underscores.
  static func isTopic(_ text: [UInt8]) -> Bool {
    text.count <= 255
      && text.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  // MARK: answers

  private mutating func answer(_ slot: Int, _ status: Int, _ content: [UInt8]?) {
    noteAnswer(status)
    writeAnswer(slot, status, content)
  }

  mutating func noteAnswer(_ status: Int) {
    if status == 200 { counts.successes += 1 } else { counts.answers[status, default: 0] += 1 }
  }

  /// Writes an answer that is counted elsewhere.
  ///
  /// - Parameters:
  ///   - isHTML: the content is no JSON.
  ///   - isBroken: a field has a name that no field may have.
  ///   - channel: a channel that was created.
  /// - Returns: the length of the output up to the end of the status.
  @discardableResult
  mutating func writeAnswer(
    _ slot: Int, _ status: Int, _ content: [UInt8]?, isHTML: Bool = false, isBroken: Bool = false,
    channel: String? = nil
  ) -> Int {
    requests[slot].progress = .answered
    let request = requests[slot].request
    // Broadcasts and channel management have an identifier of their own.
    let isToDevice = request.target != .broadcast && service.purpose == .notifications
    let hasUnique = status == 200 && (isToDevice ? service.isSandbox : request.target == .broadcast)
    let given = isToDevice ? request.identifier.byteCount : request.requestID.byteCount
    let made = given == 0 ? (generator.next(), generator.next()) : nil
    let unique = hasUnique ? (generator.next(), generator.next()) : nil
    let sendsType = content != nil && service.rules.sendsContentType
    return session.answer(slot, status: status, content: request.isHead ? [] : content ?? []) { block in
      let name: StaticString = isToDevice ? "apns-id" : "apns-request-id"
      if let made {
        block.writeField(name, uuid: made)
      } else {
        block.writeField(name, isToDevice ? request.identifier : request.requestID)
      }
      if let channel { block.writeField("apns-channel-id", Array(channel.utf8).rawBytes) }
      if let unique { block.writeField("apns-unique-id", uuid: unique) }
      if sendsType {
        let type = Array((isHTML ? "text/html" : "application/json").utf8)
        block.writeField("content-type", type.rawBytes)
      }
      if isBroken {
        let one: [UInt8] = [0x31]
        block.writeField("X-Upper-Case", one.rawBytes)
      }
    }
  }

  /// The decisions since the last call, if they are observed.
  mutating func takeServed() -> [ObservedEvent.Served] {
    guard served?.isEmpty == false else { return [] }
    defer { served = [] }
    return served ?? []
  }

  /// Provider tokens that were accepted for the first time since the last call.
  mutating func takeAcceptedTokens() -> [ProviderTokens.Entry] { tokens.takeAccepted() }

  /// The connection ends: requests that are open never end.
  mutating func finish() {
    for slot in session.openSlots {
      abandon(ServerStream(number: session.stream(of: slot), slot: slot), isMalformed: false)
    }
  }
}

extension ByteWriter {
  /// Writes a field whose value is a UUID of version 4 of these random bits, with letters of upper case.
  fileprivate mutating func writeField(_ name: StaticString, uuid bits: (UInt64, UInt64)) {
    writeField(name, length: 36)
    let first = bits.0 & ~0xf000 | 0x4000
    let second = bits.1 & ~(0xc000 << 48) | 0x8000 << 48
    let (one, two) = (
      Self.digits(UInt32(truncatingIfNeeded: first >> 32)), Self.digits(UInt32(truncatingIfNeeded: first))
    )
    let (three, four) = (
      Self.digits(UInt32(truncatingIfNeeded: second >> 32)), Self.digits(UInt32(truncatingIfNeeded: second))
    )
    let dash = UInt8(ascii: "-")
    write(bigEndian: one)
    write(dash)
    write(bigEndian: UInt32(truncatingIfNeeded: two >> 32))
    write(dash)
    write(bigEndian: UInt32(truncatingIfNeeded: two))
    write(dash)
    write(bigEndian: UInt32(truncatingIfNeeded: three >> 32))
    write(dash)
    write(bigEndian: UInt32(truncatingIfNeeded: three))
    write(bigEndian: four)
  }

  /// The eight hexadecimal digits of a number, the first one in the highest byte.
  private static func digits(_ number: UInt32) -> UInt64 {
    var spread = UInt64(number)
    spread = (spread & 0xffff_0000) << 16 | spread & 0xffff
    spread = (spread & 0x0000_ff00_0000_ff00) << 8 | spread & 0x0000_00ff_0000_00ff
    spread = (spread & 0x00f0_00f0_00f0_00f0) << 4 | spread & 0x000f_000f_000f_000f
    let letters = (spread &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return spread &+ 0x3030_3030_3030_3030 &+ letters &* 7
  }
}
