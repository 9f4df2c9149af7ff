import Bytes
import HTTP2
import PushModel

/// What a session knows of its streams: the part of it that follows the connection's events.
struct SessionState: Sendable, ConnectionHandler {
  /// A request and its answer, until both are over. Changed in place: it is large.
  struct Exchange: Sendable {
    /// Whether a stream has the slot.
    var isOpen = true
    var request: ProviderRequest
    /// The bytes that the request's ranges refer to; given back when the request was handed out.
    var requestBytes: [UInt8]
    var isRequestOut = false
    /// The losses in the client's direction before the request's HEADERS; `nil` while these are not there.
    var clientLosses: Int?
    /// The losses in the server's direction before the stream's first frame.
    var serverLosses: Int
    var response: ProviderResponse?
    var responseBytes: [UInt8] = []
    /// The losses in the server's direction before the answer's HEADERS; `nil` while these are not there.
    var answerLosses: Int?
    /// Whether nothing was lost between them and the answer's END_STREAM.
    var isAnswerWhole = false
    /// DATA frames of the request and of the answer.
    var dataFrames = 0
    var bodyFrames = 0
    /// The client had received something when it reset the stream that was not read by then.
    var mayHideAnswer = false
    /// What the reset of the stream says of the notification, if nothing else does.
    var reset: ResetMeaning?
    /// It began before the counts did.
    var isForgotten = false

    mutating func read(_ fields: FieldList, isWhole: Bool, _ tokens: inout TokenList) {
      var reading = RequestReading(isWhole: isWhole)
      reading.read(fields, into: &request, &requestBytes, &tokens)
    }

    mutating func keep(_ content: RawSpan, _ isWhole: Bool, _ origin: FrameOrigin, limit: Int) {
      request.latest = origin.arrival
      dataFrames += 1
      // Content before which the fields are lost.
      if request.length == 0 { request.offset = origin.offset }
      request.length += origin.length
      request.payloadLength += content.byteCount
      if !isWhole { request.uncertain.insert(.payload) }
      request.payload = SessionState.append(content, to: &requestBytes, after: request.payload, limit: limit)
    }

    /// What becomes of the notification when the stream is closed. Changes nothing: a function that does not mutate would
    /// be called on a copy.
    ///
    /// - Parameters:
    ///   - serverLosses: the losses in the server's direction so far.
    ///   - excluded: the server has not processed streams above this one.
    mutating func decision(
      on notification: Int, at now: Arrival, serverLosses: Int, excludedAfter excluded: UInt32?
    ) -> FateDecision {
      var decision = FateDecision(notification: notification, stream: request.stream, fate: .unknown, arrival: now)
      if let status = response?.status {
        decision.fate = (200...299).contains(status) ? .accepted : .rejected
        decision.status = status
        if decision.fate == .rejected { decision.reason = response?.reason }
      } else if response == nil {
        // A response whose status is lost says that the stream was processed.
        if reset == .refused {
          decision.cause = .refusedStream
        } else if mayHideAnswer || self.serverLosses != serverLosses {
          // An answer may be among what is missing.
        } else if let excluded, request.stream > excluded {
          decision.cause = .goAway
        } else if request.completion == .incomplete {
          decision.cause = .incomplete
        }
        if decision.cause != nil { decision.fate = .discarded }
      }
      return decision
    }

    mutating func keepBody(_ content: RawSpan, _ isWhole: Bool, _ origin: FrameOrigin, limit: Int) {
      if !isWhole { response?.isUncertain = true }
      bodyFrames += 1
      response?.length += origin.length
      response?.bodyLength += content.byteCount
      let body = response?.body ?? ByteField()
      response?.body = SessionState.append(content, to: &responseBytes, after: body, limit: limit)
    }
  }

  enum ResetMeaning: Sendable {
    case refused, cancelledBeforeEnd
    /// By the server: no answer follows, nor more of one.
    case ended
    case other
  }

  /// An event that is to be handed out, and the bytes that its ranges refer to.
  private struct Queued: Sendable {
    var event: ProviderEvent
    var bytes: [UInt8]
  }

  /// Bytes in the queue at which reading pauses until they are handed out.
  private static let fullQueue = 1 << 16

  let limits: ProviderSession.Limits
  /// The arrival of what is being read.
  var now = Arrival(time: 0, packet: 0)
  /// The number of times that frames of each side may be missing, or cannot be read.
  private var (clientLosses, serverLosses) = (0, 0)
  /// Each side may have sent more than was recorded.
  var (mayClientContinue, mayServerContinue) = (false, false)
  /// Whether the sender of what is being read had received bytes of the other side that were not read yet.
  var isAhead = false
  private(set) var fates = FateCounts()
  private(set) var notifications = 0
  private(set) var responses = 0
  private(set) var tokens: TokenList
  private(set) var service: ProviderSession.Service?
  private var mostOpen = 0
  /// Whether all that opens and closes streams was read.
  private var areStreamsCounted: Bool
  private(set) var streamLimit: Int?
  private(set) var firstStreamLimit: Int?
  private(set) var areSettingsKnown = true
  private(set) var goAways = 0
  private(set) var resets = 0
  private(set) var priorityFrames = 0

  private var exchanges: [Exchange] = []
  /// The bytes kept of all open requests and answers.
  private var keptBytes = 0
  /// The headers of all open requests.
  private var keptHeaders = 0
  private var openCount = 0
  /// The lowest last stream of the server's GOAWAY frames.
  private var lastStream: UInt32?
  /// The highest stream with an answer. A lower last stream is untrue, and proves nothing of the streams up to this one.
  private var highestAnswered: UInt32 = 0
  private var queue: [Queued] = []
  private var queuedBytes = 0
  /// Memory for the bytes of requests and answers to come.
  private var spare: [[UInt8]] = []
  private var text = JSONObject()

  init(_ limits: ProviderSession.Limits, isFromStart: Bool) {
    self.limits = limits
    (areSettingsKnown, areStreamsCounted) = (isFromStart, isFromStart)
    tokens = TokenList(limit: limits.providerTokens, isFromStart: isFromStart)
  }

  var heldBytes: Int {
    exchanges.count * MemoryLayout<Exchange>.stride + tokens.heldBytes + keptBytes
      + keptHeaders * MemoryLayout<ProviderRequest.Header>.stride
  }

  /// The most streams that were open at once; `nil` if frames may be missing.
  var openStreamsMaximum: Int? { areStreamsCounted ? mostOpen : nil }

  var isFull: Bool { queuedBytes >= Self.fullQueue }

  /// Notifications that have begun, and were not handed out.
  var unfinishedNotifications: Int {
    exchanges.count { $0.isOpen && !$0.isRequestOut && $0.request.notification != nil }
  }

  /// Begins anew with all counts. Header tables, settings and open streams stay; requests that are open are none of the
  /// notifications that are counted from now on.
  mutating func restart() {
    (fates, notifications, responses, goAways, resets, priorityFrames) = (FateCounts(), 0, 0, 0, 0, 0)
    (mostOpen, firstStreamLimit) = (openCount, areSettingsKnown ? streamLimit : nil)
    tokens.restart()
    for slot in exchanges.indices where exchanges[slot].isOpen {
      exchanges[slot].isForgotten = true
      (exchanges[slot].request.notification, exchanges[slot].request.target) = (nil, .other)
    }
  }

  mutating func giveUpTokens() { tokens.giveUp() }

  mutating func freeSpare() {
    spare = []
    queue = []
    if openCount == 0 { exchanges = [] }
  }

  // MARK: events

  /// Hands out the queued events.
  mutating func handOut(_ body: (ProviderEvent, RawSpan) -> Void) {
    guard !queue.isEmpty else { return }
    showQueued(body)
    for place in queue.indices {
      var bytes: [UInt8] = []
      swap(&bytes, &queue[place].bytes)
      giveBack(bytes)
    }
    queue.removeAll(keepingCapacity: true)
    queuedBytes = 0
  }

  /// Events are large: they are borrowed from the queue, not copied.
  private func showQueued(_ body: (ProviderEvent, RawSpan) -> Void) {
    let events = queue.span
    for place in events.indices { body(events[place].event, events[place].bytes.rawBytes) }
  }

  private mutating func giveBack(_ memory: consuming [UInt8]) {
    var bytes = memory
    guard bytes.capacity > 0, bytes.capacity <= 1 << 14, spare.count < 64 else { return }
    bytes.removeAll(keepingCapacity: true)
    spare.append(bytes)
  }

  private mutating func post(_ event: ProviderEvent, _ bytes: [UInt8] = []) {
    queue.append(Queued(event: event, bytes: bytes))
    queuedBytes += bytes.count
  }

  /// Memory whose first byte is no field's, as offset 0 stands for an absent one.
  private mutating func freshBytes() -> [UInt8] {
    var bytes = spare.popLast() ?? []
    bytes.append(0)
    return bytes
  }

  // MARK: requests

  /// Makes sure that the stream has an exchange.
  private mutating func begin(_ place: StreamPlace, _ origin: FrameOrigin) {
    guard place.slot >= exchanges.count || !exchanges[place.slot].isOpen else { return }
    openCount += 1
    mostOpen = max(mostOpen, openCount)
    // What the client has received and is not read yet may close streams, and change the limit; of an answer that comes
    // first the request is missing, or late.
    let isAhead = isAhead || origin.side == .server
    if isAhead { areStreamsCounted = false }
    var request = ProviderRequest(
      target: .unknown, stream: place.stream, offset: origin.offset, openStreams: areStreamsCounted ? openCount : nil,
      streamLimit: areSettingsKnown && !isAhead ? streamLimit : nil)
    request.uncertain = .all
    if !areStreamsCounted { request.uncertain.insert(.openStreams) }
    if !areSettingsKnown || isAhead { request.uncertain.insert(.streamLimit) }
    request.latest = origin.arrival
    let exchange = Exchange(request: request, requestBytes: freshBytes(), serverLosses: serverLosses)
    keptBytes += exchange.requestBytes.count
    // Slots are numbered in the order in which they are first used.
    if place.slot < exchanges.count { exchanges[place.slot] = exchange } else { exchanges.append(exchange) }
  }

  /// Numbers a notification, once it is known to be one.
  private mutating func number(_ slot: Int) {
    guard exchanges[slot].request.notification == nil else { return }
    let target = exchanges[slot].request.target
    switch target {
    case .device, .broadcast, .badPath: service = .gateway
    case .channel: if service != .gateway { service = .channels }
    case .other: if service == nil { service = .other }
    case .unknown: break
    }
    // A request whose path is lost is a notification only where others are: other services have requests as well.
    guard target.isNotification || target == .unknown && service == .gateway else { return }
    exchanges[slot].request.notification = notifications
    exchanges[slot].response?.notification = notifications
    notifications += 1
  }

  mutating func receive(_ section: FieldSection, _ fields: FieldList, on place: StreamPlace, _ origin: FrameOrigin) {
    begin(place, origin)
    switch section.kind {
    case .request: receiveRequest(section, fields, place, origin)
    case .response: receiveResponse(section, fields, place, origin)
    case .trailers:
      if origin.side == .client {
        exchanges[place.slot].request.length += origin.length
      } else {
        exchanges[place.slot].response?.length += origin.length
      }
    case .interimResponse: return
    }
    if section.endsStream { end(place, origin) }
  }

  private mutating func receiveRequest(
    _ section: FieldSection, _ fields: FieldList, _ place: StreamPlace, _ origin: FrameOrigin
  ) {
    let slot = place.slot
    if exchanges[slot].request.length == 0 { exchanges[slot].request.offset = origin.offset }
    exchanges[slot].request.length += origin.length
    exchanges[slot].clientLosses = clientLosses
    exchanges[slot].request.latest = origin.arrival
    if section.extent != .lost {
      exchanges[slot].request.started = origin.arrival
      let (before, known) = (exchanges[slot].requestBytes.count, tokens.list.count)
      exchanges[slot].read(fields, isWhole: section.extent == .whole, &tokens)
      keptBytes += exchanges[slot].requestBytes.count - before
      keptHeaders += exchanges[slot].request.headers.count
      if exchanges[slot].request.uncertain.contains(.trust), !exchanges[slot].request.hasAuthorization { tokens.miss() }
      if tokens.list.count > known, let token = tokens.list.last {
        post(.providerToken(token, number: tokens.list.count))
      }
    } else {
      tokens.miss()
    }
    let target = exchanges[slot].request.target
    exchanges[slot].response?.target = target
    number(place.slot)
  }

  mutating func receive(
    content: RawSpan, isWhole: Bool, endsStream: Bool, on place: StreamPlace, _ origin: FrameOrigin
  ) {
    begin(place, origin)
    if origin.side == .client {
      number(place.slot)
      let before = exchanges[place.slot].requestBytes.count
      exchanges[place.slot].keep(content, isWhole, origin, limit: limits.content)
      keptBytes += exchanges[place.slot].requestBytes.count - before
    } else {
      if exchanges[place.slot].response == nil { beginLostResponse(place.slot, origin) }
      let before = exchanges[place.slot].responseBytes.count
      exchanges[place.slot].keepBody(content, isWhole, origin, limit: limits.content)
      keptBytes += exchanges[place.slot].responseBytes.count - before
    }
    if endsStream { end(place, origin) }
  }

  /// Appends content to what is kept, up to the limit.
  fileprivate static func append(
    _ content: RawSpan, to bytes: inout [UInt8], after kept: ByteField, limit: Int
  ) -> ByteField {
    let start = kept.isPresent ? kept.offset : bytes.count
    let length = kept.isPresent ? kept.length : 0
    // Fields come before content, and trailers are not kept, so content is in one place.
    guard start + length == bytes.count else { return kept }
    let taken = min(content.byteCount, limit - length)
    bytes.append(copying: content.extracting(0..<taken))
    return ByteField(offset: start, length: length + taken)
  }

  // MARK: answers

  private mutating func receiveResponse(
    _ section: FieldSection, _ fields: FieldList, _ place: StreamPlace, _ origin: FrameOrigin
  ) {
    let slot = place.slot
    var response = emptyResponse(slot, origin)
    response.length = origin.length
    response.isUncertain = section.extent != .whole
    response.status = section.status
    var bytes = freshBytes()
    exchanges[slot].answerLosses = serverLosses
    if let ended = exchanges[slot].request.ended, origin.arrival.time >= ended.time {
      response.latency = origin.arrival.time - ended.time
    }
    for field in fields.fields {
      guard field.isNameKnown, field.isValueKnown else {
        response.isUncertain = true
        continue
      }
      let (name, value) = (fields.name(of: field), fields.value(of: field))
      // A credential that comes back is one.
      guard !ProviderToken.isInside(value) else {
        response.isUncertain = true
        continue
      }
      switch name.byteCount {
      case 7 where name.holds("apns-id", at: 0): response.apnsID = Self.keep(value, in: &bytes)
      case 14 where name.holds("apns-unique-id", at: 0):
        response.apnsUniqueID = Self.keep(value, in: &bytes)
      case 15 where name.holds("apns-request-id", at: 0):
        response.requestID = Self.keep(value, in: &bytes)
      case 15 where name.holds("apns-channel-id", at: 0):
        response.channelID = Self.keep(value, in: &bytes)
      default: break
      }
    }
    // Only answers to notifications have these.
    if service == nil, response.apnsID.isPresent || response.apnsUniqueID.isPresent { service = .gateway }
    exchanges[slot].response = response
    keptBytes += bytes.count - exchanges[slot].responseBytes.count
    exchanges[slot].responseBytes = bytes
    highestAnswered = max(highestAnswered, response.stream)
  }

  private func emptyResponse(_ slot: Int, _ origin: FrameOrigin) -> ProviderResponse {
    ProviderResponse(
      stream: exchanges[slot].request.stream, target: exchanges[slot].request.target,
      notification: exchanges[slot].request.notification, started: origin.arrival, offset: origin.offset, length: 0)
  }

  /// An answer whose fields are lost: the status is not known, but the reason may be.
  private mutating func beginLostResponse(_ slot: Int, _ origin: FrameOrigin) {
    var response = emptyResponse(slot, origin)
    response.isUncertain = true
    exchanges[slot].answerLosses = nil
    exchanges[slot].response = response
    keptBytes -= exchanges[slot].responseBytes.count
    exchanges[slot].responseBytes = freshBytes()
    highestAnswered = max(highestAnswered, response.stream)
    keptBytes += exchanges[slot].responseBytes.count
  }

  private static func keep(_ value: RawSpan, in bytes: inout [UInt8]) -> ByteField {
    let start = bytes.count
    bytes.append(copying: value)
    return ByteField(offset: start, length: value.byteCount)
  }

  // MARK: ends

  /// END_STREAM of one side.
  private mutating func end(_ place: StreamPlace, _ origin: FrameOrigin) {
    if origin.side == .client {
      exchanges[place.slot].request.ended = origin.arrival
      exchanges[place.slot].request.completion = .complete
      number(place.slot)
      if !exchanges[place.slot].isRequestOut { handOutRequest(place.slot) }
    } else {
      exchanges[place.slot].response?.ended = origin.arrival
      exchanges[place.slot].isAnswerWhole = exchanges[place.slot].answerLosses == serverLosses
    }
  }

  private mutating func handOutRequest(_ slot: Int) {
    exchanges[slot].isRequestOut = true
    keptHeaders -= exchanges[slot].request.headers.count
    var bytes: [UInt8] = []
    swap(&bytes, &exchanges[slot].requestBytes)
    keptBytes -= bytes.count
    // Frames may be missing that are the request's; its content-length tells whether content is among them.
    if exchanges[slot].clientLosses != clientLosses,
      exchanges[slot].request.contentLength != exchanges[slot].request.payloadLength, !isWholeObject(slot, bytes)
    {
      exchanges[slot].request.uncertain.insert(.payload)
    }
    post(.request(exchanges[slot].request), bytes)
    exchanges[slot].request.headers = []
  }

  /// Whether the content proves itself to be whole: one DATA frame with END_STREAM that is a JSON object. Content in
  /// another frame before it, which may be lost, would not leave one.
  private mutating func isWholeObject(_ slot: Int, _ bytes: [UInt8]) -> Bool {
    let request = exchanges[slot].request
    guard request.completion == .complete, exchanges[slot].dataFrames == 1, request.contentLength == nil,
      request.isPayloadWhole
    else { return false }
    return text.read(bytes.rawBytes.extracting(request.payload.range))
  }

  mutating func receive(reset code: ErrorCode?, on place: StreamPlace, _ origin: FrameOrigin) {
    resets += 1
    guard isOpen(place) else {
      return post(.reset(stream: place.stream, error: code, notification: nil, origin))
    }
    let isComplete = exchanges[place.slot].request.completion == .complete
    // The client may have answered what it received with its reset.
    if isAhead, origin.side == .client { exchanges[place.slot].mayHideAnswer = true }
    exchanges[place.slot].reset =
      origin.side == .server && code == .refusedStream
      ? .refused : origin.side == .server ? .ended : isComplete ? .other : .cancelledBeforeEnd
    post(
      .reset(
        stream: place.stream, error: code, notification: exchanges[place.slot].request.notification, origin))
  }

  mutating func receive(reset code: ErrorCode?, onClosed stream: UInt32, _ origin: FrameOrigin) {
    resets += 1
    post(.reset(stream: stream, error: code, notification: nil, origin))
  }

  private func isOpen(_ place: StreamPlace) -> Bool { place.slot < exchanges.count && exchanges[place.slot].isOpen }

  mutating func closed(_ place: StreamPlace, _ reason: StreamEnd) {
    guard isOpen(place) else { return }
    let slot = place.slot
    openCount -= 1
    // It may go on.
    if reason == .limit { areStreamsCounted = false }
    if !exchanges[slot].isRequestOut {
      exchanges[slot].request.completion = completion(slot, reason)
      if exchanges[slot].request.completion == .unknown { exchanges[slot].request.uncertain.insert(.payload) }
      // An answer without any trace of a request is one to a request that is lost.
      number(slot)
      handOutRequest(slot)
    }
    if exchanges[slot].response != nil { handOutResponse(slot, reason) }
    if let notification = exchanges[slot].request.notification { decide(notification, slot) }
    exchanges[slot].isOpen = false
    exchanges[slot].response = nil
    exchanges[slot].reset = nil
  }

  /// Whether a request has certainly not ended, or its end may be missing.
  private func completion(_ slot: Int, _ reason: StreamEnd) -> ProviderRequest.Completion {
    let isCertain =
      exchanges[slot].clientLosses == clientLosses && exchanges[slot].request.started != nil && !mayClientContinue
    let neverEnds =
      switch exchanges[slot].reset {
      case .cancelledBeforeEnd: true
      case .refused, .ended, .other: false
      case nil: reason == .connectionEnd
      }
    return neverEnds && isCertain ? .incomplete : .unknown
  }

  private mutating func handOutResponse(_ slot: Int, _ reason: StreamEnd) {
    guard var response = exchanges[slot].response else { return }
    var bytes: [UInt8] = []
    swap(&bytes, &exchanges[slot].responseBytes)
    keptBytes -= bytes.count
    guard !exchanges[slot].isForgotten else { return }
    responses += 1
    let body = bytes.rawBytes.extracting(response.body.range)
    let isObject = body.byteCount > 0 && body.byteCount == response.bodyLength && text.read(body)
    if !isBodyWhole(slot, response, isObject: isObject, reason) { response.isUncertain = true }
    if isObject {
      response.reason = text.string("reason", body).map(ProviderReason.init(rawValue:))
      response.timestamp = text.integer("timestamp", body)
    }
    exchanges[slot].response?.reason = response.reason
    post(.response(response), bytes)
  }

  /// Whether no content of an answer can be missing.
  private func isBodyWhole(_ slot: Int, _ response: ProviderResponse, isObject: Bool, _ reason: StreamEnd) -> Bool {
    // A loss of its HEADERS has made it uncertain.
    guard let losses = exchanges[slot].answerLosses else { return true }
    guard response.ended == nil else {
      // As with requests: another DATA frame would not leave a whole object in the last one.
      return exchanges[slot].isAnswerWhole || isObject && exchanges[slot].bodyFrames == 1
    }
    let isOver = exchanges[slot].reset == .ended || reason == .connectionEnd && !mayServerContinue
    return isOver && losses == serverLosses
  }

  private mutating func decide(_ notification: Int, _ slot: Int) {
    let decision = exchanges[slot].decision(
      on: notification, at: now, serverLosses: serverLosses, excludedAfter: lastStream.map { max($0, highestAnswered) })
    switch decision.fate {
    case .accepted: fates.accepted += 1
    case .rejected: fates.rejected += 1
    case .discarded: fates.discarded += 1
    case .unknown: fates.unknown += 1
    }
    post(.fate(decision))
  }

  // MARK: the connection

  mutating func receive(
    goAway lastStream: UInt32, _ code: ErrorCode, debugData: RawSpan, _ origin: FrameOrigin
  ) {
    var (discarded, open) = (0, 0)
    var isCounted = areStreamsCounted && !isAhead
    if origin.side == .server {
      goAways += 1
      self.lastStream = min(self.lastStream ?? lastStream, lastStream)
      for slot in exchanges.indices where exchanges[slot].isOpen && exchanges[slot].response == nil {
        guard exchanges[slot].request.notification != nil else {
          // Its path is lost: whether it is a notification is not known yet.
          if exchanges[slot].request.target == .unknown { isCounted = false }
          continue
        }
        if exchanges[slot].request.stream > max(lastStream, highestAnswered) { discarded += 1 } else { open += 1 }
      }
    }
    let reason = text.read(debugData) ? text.string("reason", debugData).map(ProviderReason.init(rawValue:)) : nil
    post(
      .goAway(
        lastStream: lastStream, error: code, reason: reason, discarded: isCounted ? discarded : nil,
        open: isCounted ? open : nil, origin))
  }

  mutating func receive(settings: [Setting], _ origin: FrameOrigin) { post(.settings(settings, origin)) }

  mutating func receiveAcknowledgement(inForce settings: Settings, _ origin: FrameOrigin) {
    guard origin.side == .client else { return }
    streamLimit = settings.maximumConcurrentStreams
    if firstStreamLimit == nil, areSettingsKnown { firstStreamLimit = streamLimit }
  }

  /// An acknowledgement of SETTINGS that were not seen shows that frames are missing, before the gap is noticed.
  mutating func receiveLossOfSettings() { (areSettingsKnown, areStreamsCounted) = (false, false) }

  mutating func receiveLossOfTable(of side: FrameReader.Side) { post(.tableLost(side)) }

  mutating func receivePriority(_ origin: FrameOrigin) { if origin.side == .client { priorityFrames += 1 } }

  mutating func receive(ping: UInt64, isAcknowledgement: Bool, _ origin: FrameOrigin) {
    post(.ping(ping, isAcknowledgement: isAcknowledgement, origin))
  }

  mutating func receive(_ violation: Violation, _ origin: FrameOrigin) { post(.violation(violation, origin)) }

  mutating func receive(missing origin: FrameOrigin, losesFrames: Bool, losesTable: Bool) {
    if losesFrames { noteLoss(origin.side) }
    post(.missing(origin, losesTable: losesTable))
  }

  mutating func receive(unread cause: FrameReader.UnreadCause, _ origin: FrameOrigin) {
    noteLoss(origin.side)
    post(.unread(cause, origin))
  }

  /// Notes that frames may be missing, or cannot be read.
  private mutating func noteLoss(_ side: FrameReader.Side) {
    areStreamsCounted = false
    guard side == .client else {
      serverLosses += 1
      return
    }
    clientLosses += 1
    tokens.miss()
  }
}
