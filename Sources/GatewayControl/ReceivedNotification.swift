import Bytes
import GatewayRecords
import PacketCapture
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
  /// The topic of its connection; `nil`: the certificate names none.
  public let topic: String?
  /// What the gateway decided; never `.unknown`.
  public let fate: Fate
  /// Why it was rejected; `nil`: it was not.
  public let rejection: Rejection?
  /// `nil`: it has none.
  public let identifier: UInt32?
  /// UNIX seconds; `nil`: it has none.
  public let expiration: UInt32?
  /// `nil`: it has none.
  public let priority: UInt8?
  /// Empty: it has none.
  public let token: [UInt8]
  /// Empty: it has none.
  public let payload: [UInt8]

  init(_ facts: ReceivedFacts, _ fields: PushFields, _ frame: RawSpan) {
    (number, time, connection) = (facts.number, facts.time, Int(clamping: facts.connection))
    (topic, fate, rejection) = (facts.topic, facts.fate, facts.rejection)
    (identifier, expiration, priority) = (fields.identifier, fields.expiration, fields.priority)
    token = Array(copying: frame.extracting(fields.token.range))
    payload = Array(copying: frame.extracting(fields.payload.range))
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
    output.field("identifier", optional: identifier.map(Int.init))
    output.field("expiration", optional: expiration.map(Int.init))
    output.field("priority", optional: priority.map(Int.init))
    if !token.isEmpty { output.field("token", hex: token.rawBytes) }
    output.field("payload_length", payload.count)
    if !payload.isEmpty { output.field("payload", payload: payload.rawBytes) }
    output.end()
  }
}

/// Which received notifications are meant: those that meet all conditions.
public struct NotificationQuery: Sendable, Equatable {
  /// The beginning of the token; `nil`: any.
  public var token: RecordSelection.TokenPrefix?
  /// The topic of the connection; `nil`: any.
  public var topic: String?
  /// A part of any string in the payload, as it is after JSON's escapes are resolved; of a payload that is not JSON, a
  /// part of its bytes. `nil`: any.
  public var text: String?
  /// The gateway's decision; empty: any.
  public var fates: Set<Fate> = []
  /// The number after which the notifications come.
  public var after = 0

  /// All notifications.
  public init() {}

  func matches(_ facts: ReceivedFacts, _ fields: PushFields, _ frame: RawSpan) -> Bool {
    if facts.number <= after { return false }
    if let topic, topic != facts.topic { return false }
    if !fates.isEmpty, !fates.contains(facts.fate) { return false }
    if let token, !token.begins(frame.extracting(fields.token.range)) { return false }
    guard let text, !text.isEmpty else { return true }
    return Self.has(Array(text.utf8), in: frame.extracting(fields.payload.range))
  }

  private static func has(_ text: [UInt8], in payload: RawSpan) -> Bool {
    var tape = JSONTape()
    guard tape.read(payload) == nil else { return contains(text, in: Array(copying: payload)) }
    for index in tape.indices where tape.kind(index) == .string {
      if contains(text, in: tape.stringBytes(index, payload)) { return true }
    }
    return false
  }

  private static func contains(_ text: [UInt8], in bytes: [UInt8]) -> Bool {
    guard let first = text.first, bytes.count >= text.count else { return false }
    for start in 0...bytes.count - text.count where bytes[start] == first {
      if bytes[start..<start + text.count].elementsEqual(text) { return true }
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

  /// - Parameters:
  ///   - limit: the number of matching notifications at which it ends.
  ///   - maximumBytes: bytes of memory for those that are listed.
  ///   - endsWhenFull: whether it ends there, too, or goes on counting.
  init(_ query: NotificationQuery, limit: Int, maximumBytes: Int, endsWhenFull: Bool) {
    (self.query, self.limit, self.maximumBytes, self.endsWhenFull) = (query, limit, maximumBytes, endsWhenFull)
    position = query.after
  }

  /// Looks at what has come since.
  mutating func goOn(in recorder: GatewayRecorder) {
    var isAtLimit = false
    let range = recorder.eachReceived(after: position) { facts, fields, frame in
      isAtLimit = found.matching >= limit || isFull && endsWhenFull
      if !isAtLimit { look(facts, fields, frame) }
      return !isAtLimit
    }
    if !isAtLimit { position = max(position, range.last) }
    if !isFull { found.last = position }
    found.isCut = isAtLimit || isFull
    found.forgotten = range.forgottenThrough - range.lastAtReset
  }

  private mutating func look(_ facts: ReceivedFacts, _ fields: PushFields, _ frame: RawSpan) {
    if query.matches(facts, fields, frame) {
      let bytes = Self.notificationBytes + fields.token.range.count + fields.payload.range.count
      isFull = isFull || !found.notifications.isEmpty && heldBytes + bytes > maximumBytes
      found.matching += 1
      if !isFull {
        heldBytes += bytes
        found.notifications.append(ReceivedNotification(facts, fields, frame))
      }
    }
    // What is left out comes after `last`.
    if !isFull { found.last = facts.number }
    position = facts.number
  }
}
