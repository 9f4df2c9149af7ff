import Bytes
import GatewayRecords
import PacketCapture
import ProviderAPI
import PushModel
import Records

/// A notification that a gateway has received, and its decision on it.
public struct ReceivedNotification: Sendable, Equatable {
  /// Its number among all that the gateway has received, from 1, in the order of reading.
  public let number: Int
  /// When it was read, in nanoseconds since 1970-01-01 UTC.
  public let time: Int64
  /// The number of its connection, from 1.
  public let connection: Int
  /// Over HTTP/2 its own topic, else that of its connection; `nil`: the certificate names none.
  public let topic: String?
  /// The gateway's decision; never `.unknown`.
  public let fate: Fate
  /// Why it was rejected; `nil`: it was not, or it came over HTTP/2.
  public let rejection: Rejection?
  /// `nil`: it has none.
  public let identifier: UInt32?
  /// UNIX seconds; `nil`: it has none.
  public let expiration: UInt64?
  /// `nil`: it has none.
  public let priority: UInt8?
  /// Empty: it has none.
  public let token: [UInt8]
  /// Empty: it has none, or it is longer than what is kept, 8 KiB.
  public let payload: [UInt8]
  /// The length of the payload in bytes.
  public let payloadLength: Int
  /// Its fields and its answer over HTTP/2; `nil`: it came over the binary protocol.
  public let request: Request?

  /// A request of the HTTP/2 provider API. Texts are as they were sent; `nil`: there is none.
  public struct Request: Sendable, Equatable {
    public let stream: Int
    /// The HTTP status of the gateway's answer; `nil`: the request is not processed.
    public let status: Int?
    /// Why it was rejected, such as `BadDeviceToken`; `nil`: it was not.
    public let reason: String?
    public let pushType: String?
    public let apnsID: String?
    public let collapseID: String?
    /// The path, if it is not that of a device.
    public let path: String?

    init(_ request: ProviderRequest, _ facts: ReceivedFacts, _ bytes: RawSpan) {
      func text(_ field: ByteField) -> String? {
        field.isPresent ? String(decoding: Array(copying: bytes.extracting(field.range)), as: UTF8.self) : nil
      }
      stream = Int(request.stream)
      (status, reason) = (facts.status, facts.reason?.rawValue)
      (pushType, apnsID) = (text(request.pushType), text(request.apnsID))
      collapseID = text(request.collapseID)
      path = request.target == .device && request.token.isPresent ? nil : text(request.path)
    }
  }

  init(_ facts: ReceivedFacts, _ fields: ReceivedFields, _ bytes: RawSpan) {
    (number, time, connection) = (facts.number, facts.time, Int(clamping: facts.connection))
    (topic, fate, rejection) = (facts.topic, facts.fate, facts.rejection)
    (identifier, expiration, priority) = (fields.identifier, fields.expiration, fields.priority)
    token = Array(copying: bytes.extracting(fields.token.range))
    payload = fields.isPayloadWhole ? Array(copying: bytes.extracting(fields.payload.range)) : []
    payloadLength = fields.payloadLength
    request = fields.request.map { Request($0, facts, bytes) }
  }

  /// Writes it with the names of a `notification` record.
  func write(to output: inout JSONFieldWriter) {
    output.begin("notification")
    output.field("number", number)
    output.field("time", time: Timestamp(nanoseconds: time))
    output.field("connection", connection)
    if let topic { output.field("topic", topic) }
    output.field("fate", word: fate.word)
    if let rejection { output.field("status", Int(rejection.status.rawValue)) }
    if let status = request?.status { output.field("status", status) }
    if let reason = request?.reason { output.field("reason", reason) }
    output.field("identifier", optional: identifier.map(Int.init))
    output.field("expiration", optional: expiration.map { Int(clamping: $0) })
    output.field("priority", optional: priority.map(Int.init))
    if !token.isEmpty { output.field("token", hex: token.rawBytes) }
    output.field("payload_length", payloadLength)
    if !payload.isEmpty { output.field("payload", payload: payload.rawBytes) }
    if let request {
      output.field("stream", request.stream)
      for (name, text) in [
        ("push_type", request.pushType), ("apns_id", request.apnsID), ("collapse_id", request.collapseID),
        ("path", request.path),
      ] as [(StaticString, String?)] {
        if let text { output.field(name, text) }
      }
    }
    output.end()
  }
}

/// Which received notifications are meant: those that meet all conditions.
public struct NotificationQuery: Sendable, Equatable {
  /// The beginning of the token; `nil`: any.
  public var token: RecordSelection.TokenPrefix?
  /// The topic, over the binary protocol that of the connection; `nil`: any.
  public var topic: String?
  /// A part of any string in the payload, as it is after JSON's escapes are resolved; of a payload that is not JSON, a
  /// part of its bytes. `nil`: any.
  public var text: String?
  /// The gateway's decision; empty: any.
  public var fates: Set<Fate> = []
  /// `apns-id`, whatever the case of its letters; `nil`: any.
  public var apnsID: String?
  /// `apns-collapse-id`; `nil`: any.
  public var collapseID: String?
  /// `apns-push-type`; `nil`: any.
  public var pushType: String?
  /// The number after which the notifications come.
  public var after = 0

  /// All notifications.
  public init() {}

  func matches(_ facts: ReceivedFacts, _ fields: ReceivedFields, _ frame: RawSpan) -> Bool {
    if facts.number <= after { return false }
    if let topic, topic != facts.topic { return false }
    if !fates.isEmpty, !fates.contains(facts.fate) { return false }
    if let token, !token.begins(frame.extracting(fields.token.range)) { return false }
    guard matches(fields.request, frame) else { return false }
    guard let text, !text.isEmpty else { return true }
    return Self.has(SearchedText(text), in: frame.extracting(fields.payload.range))
  }

  private func matches(_ request: ProviderRequest?, _ bytes: RawSpan) -> Bool {
    func text(_ path: KeyPath<ProviderRequest, ByteField>) -> String? {
      guard let field = request?[keyPath: path], field.isPresent else { return nil }
      return String(decoding: Array(copying: bytes.extracting(field.range)), as: UTF8.self)
    }
    if let apnsID, text(\.apnsID)?.lowercased() != apnsID.lowercased() { return false }
    if let collapseID, text(\.collapseID) != collapseID { return false }
    if let pushType, text(\.pushType) != pushType { return false }
    return true
  }

  private static func has(_ text: SearchedText, in payload: RawSpan) -> Bool {
    var tape = JSONTape()
    guard tape.read(payload) == nil else { return text.isPart(of: Array(copying: payload)) }
    for index in tape.indices where tape.kind(index) == .string {
      if text.isPart(of: tape.stringBytes(index, payload)) { return true }
    }
    return false
  }
}

/// Text that is looked for by the algorithm of Knuth, Morris and Pratt: in linear time, whatever repeats in the text and
/// in the payload, for both come from outside.
private struct SearchedText {
  private let bytes: [UInt8]
  /// For each length of a beginning of the text: that of the longest shorter one which it ends with.
  private var borders: [Int]

  init(_ text: String) {
    bytes = Array(text.utf8)
    borders = [0]
    for byte in bytes.dropFirst() { borders.append(length(after: borders[borders.count - 1], byte)) }
  }

  /// The length of the beginning of the text that bytes end with, when another one comes behind them.
  private func length(after length: Int, _ byte: UInt8) -> Int {
    var length = length
    while length > 0, bytes[length] != byte { length = borders[length - 1] }
    return bytes[length] == byte ? length + 1 : 0
  }

  func isPart(of payload: [UInt8]) -> Bool {
    var found = 0
    for byte in payload {
      found = length(after: found, byte)
      if found == bytes.count { return true }
    }
    return false
  }
}

/// A part of the received notifications.
public struct ReceivedNotifications: Sendable {
  /// In the order of their numbers.
  public var notifications: [ReceivedNotification] = []
  /// The number of the last one that was looked at: what follows is after it.
  public var last = 0
  /// Whether there may be more after `last` already: a limit was reached.
  public var isCut = false
  /// The number of notifications that match, as far as was looked: those that are listed, and those that a limit on
  /// memory has left out.
  public var matching = 0
  /// The number of notifications since the latest reset that are not kept any more, for lack of memory: they match no
  /// query.
  public var forgotten = 0
}

/// A search for notifications that goes on as they come, in bounded memory.
struct NotificationSearch {
  private let query: NotificationQuery
  private let limit: Int
  private let maximumBytes: Int
  private let endsWhenFull: Bool
  private(set) var found = ReceivedNotifications()
  /// The number of the last one that was looked at.
  private var position = 0
  private var heldBytes = 0
  /// Whether one was left out for lack of memory: then all that follow are.
  private var isFull = false

  /// The memory of a notification without its token and payload.
  private static let notificationBytes = 256
  /// Bytes that are looked at in one go: other tasks of the process have their turn after them, also when many search.
  private static let sliceBytes = 256 << 10

  /// - Parameters:
  ///   - limit: the number of matching notifications at which it ends.
  ///   - maximumBytes: bytes of memory for those that are listed.
  ///   - endsWhenFull: whether it ends there, too, or goes on counting.
  init(_ query: NotificationQuery, limit: Int, maximumBytes: Int, endsWhenFull: Bool) {
    (self.query, self.limit, self.maximumBytes, self.endsWhenFull) = (query, limit, maximumBytes, endsWhenFull)
    position = query.after
  }

  /// Looks at what has come since, and ends early when the task is cancelled.
  mutating func goOn(in recorder: GatewayRecorder) async {
    // Notifications may come faster than they can be looked at.
    let end = recorder.range.last
    while lookOn(in: recorder, upTo: end), !Task.isCancelled { await Task.yield() }
  }

  private enum Stop { case atEnd, atLimit, afterSlice }

  /// Looks at a slice; returns whether there is another one.
  private mutating func lookOn(in recorder: GatewayRecorder, upTo end: Int) -> Bool {
    var (stop, length) = (Stop.atEnd, 0)
    let range = recorder.eachReceived(after: position) { facts, fields, frame in
      if found.matching >= limit || isFull && endsWhenFull {
        stop = .atLimit
      } else if length >= Self.sliceBytes, facts.number <= end {
        stop = .afterSlice
      }
      guard stop == .atEnd, facts.number <= end else { return false }
      length += frame.byteCount
      look(facts, fields, frame)
      return true
    }
    if stop == .atEnd { position = max(position, end) }
    if !isFull { found.last = position }
    found.isCut = stop == .atLimit || isFull
    found.forgotten = range.forgottenThrough - range.lastAtReset
    return stop == .afterSlice
  }

  private mutating func look(_ facts: ReceivedFacts, _ fields: ReceivedFields, _ frame: RawSpan) {
    if query.matches(facts, fields, frame) {
      let bytes =
        Self.notificationBytes + (fields.request == nil ? fields.token.length + fields.payload.length : frame.byteCount)
      isFull = isFull || !found.notifications.isEmpty && heldBytes + bytes > maximumBytes
      found.matching += 1
      if !isFull {
        heldBytes += bytes
        found.notifications.append(ReceivedNotification(facts, fields, frame))
      }
    }
    // The notifications that are left out come after `last`.
    if !isFull { found.last = facts.number }
    position = facts.number
  }
}
