import BinaryProtocol
import Bytes
import PacketCapture
import PushModel

/// A type of records. Its raw value is the `type` in JSON, and the name of the file when each type has one.
public enum RecordType: String, CaseIterable, Sendable {
  case capture, notification
  case errorResponse = "error_response"
  case response
  case goAway = "goaway"
  case reset, settings
  case channelRequest = "channel_request"
  case device
  case localPush = "local_push"
  case fate, feedback, gap, malformed, connection
  case captureLoss = "capture_loss"
  case delivery
  case summary
}

/// Criteria that select records. A record must match one value of every criterion that has values.
public struct RecordSelection: Sendable, Equatable {
  /// A time in a recording, absolute or relative to its beginning.
  public enum Moment: Sendable, Equatable {
    /// A time since 1970.
    case at(Timestamp)
    /// A time of day in nanoseconds, in UTC, on the day when the first connection was opened.
    case timeOfDay(Int64)
    /// Nanoseconds after the first connection was opened.
    case offset(Int64)
  }

  /// The beginning of a token, in hexadecimal digits.
  public struct TokenPrefix: Sendable, Equatable {
    private let bytes: [UInt8]
    /// The last digit of an odd number of digits.
    private let half: UInt8?
    /// The digits in lower case.
    public let text: String

    /// Parses 1 to 131,070 hexadecimal digits of either case; `nil` for any other text.
    public init?(_ text: String) {
      let digits = text.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue.map(UInt8.init) }
      guard !digits.isEmpty, digits.count == text.utf8.count, digits.count <= 2 * 65_535 else { return nil }
      bytes = stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
      half = digits.count.isMultiple(of: 2) ? nil : digits.last
      self.text = text.lowercased()
    }

    @inline(__always)
    package func begins(_ token: RawSpan) -> Bool {
      guard token.byteCount >= bytes.count + (half == nil ? 0 : 1) else { return false }
      for offset in bytes.indices where token.byte(at: offset) != bytes[offset] { return false }
      return half.map { token.byte(at: bytes.count) >> 4 == $0 } ?? true
    }
  }

  /// The earliest time of selected records.
  public var from: Moment?
  /// The time that all selected records are before.
  public var to: Moment?
  /// Tokens of notifications, tuples and messages; for error responses, of the notification that the response names.
  public var tokens: [TokenPrefix] = []
  /// Identifiers of notifications, error responses, and messages of local push.
  public var identifiers: [UInt32] = []
  /// Numbers of connections, from 1.
  public var connections: [ClosedRange<Int>] = []
  /// Statuses of error responses and of answers over HTTP/2; for notifications, of the response that names the
  /// notification.
  public var statuses: Set<Int> = []
  /// Fates of notifications; for error responses, of the notification that the response names.
  public var fates: Set<Fate> = []
  /// Topics of the connection's client certificate; of a notification of the provider API, and of a message of the device
  /// channel, its own topic.
  public var topics: Set<String> = []
  /// Types of records.
  public var types: Set<RecordType> = []

  public init() {}

  /// Whether there are no criteria, so that every record is selected.
  public var isEmpty: Bool { self == RecordSelection() }

  /// Whether the selection depends on facts known only at the end of a connection: the recording must be read into
  /// `RecordingFacts` first.
  public var needsFacts: Bool {
    !topics.isEmpty || !fates.isEmpty || !statuses.isEmpty && (types.isEmpty || types.contains(.notification))
  }

  /// The criteria as options of the command, each with one value: `--fate=rejected`.
  public var options: [String] {
    var options: [String] = []
    func add(_ name: String, _ values: some Sequence<String>) { options += values.map { "--\(name)=\($0)" } }
    add("from", from.map { [$0.text] } ?? [])
    add("to", to.map { [$0.text] } ?? [])
    add("token", tokens.map(\.text))
    add("identifier", identifiers.map(String.init))
    add(
      "connection", connections.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)..\($0.upperBound)" })
    add("status", statuses.sorted().map(String.init))
    add("fate", Fate.allCases.filter(fates.contains).map(\.rawValue))
    add("topic", topics.sorted())
    add("type", RecordType.allCases.filter(types.contains).map(\.rawValue))
    return options
  }
}

extension RecordSelection.Moment {
  private static let day: Int64 = 86_400_000_000_000

  /// Parses a time as it is typed or pasted: `2026-11-21T10:05:00Z`, with an offset as +02:00, a blank for the T,
  /// without seconds or without time of day; seconds, milliseconds, microseconds or nanoseconds since 1970; or `10:05`
  /// or `10:05:30.5`, of the recording's first day. `nil` for anything else.
  public init?(clock text: String) {
    if let time = TypedTime.sinceEpoch(text) ?? TypedTime.dated(text) {
      self = .at(Timestamp(nanoseconds: time))
    } else if let time = TypedTime.nanoseconds(date: "1970-01-01", clock: text) {
      // A leap second, 23:59:60, is the first second of the next day.
      self = .timeOfDay(time)
    } else {
      return nil
    }
  }

  /// The notation of the options.
  package var text: String {
    switch self {
    case .at(let time): return RFC3339.text(time.nanoseconds)
    case .timeOfDay(let nanoseconds): return String(RFC3339.text(nanoseconds).dropFirst(11).dropLast())
    case .offset(let nanoseconds): return Units.times.text(Int(nanoseconds), in: ["s", "ms", "us", "ns"])
    }
  }

  /// The moment in a recording that starts at `start`; `nil` when that is unknown and needed.
  package func time(after start: Timestamp) -> Timestamp? {
    if case .at(let time) = self { return time }
    guard start.isKnown else { return nil }
    switch self {
    case .at(let time): return time
    case .timeOfDay(let nanoseconds):
      let rest = start.nanoseconds % Self.day
      return Timestamp(nanoseconds: start.nanoseconds - (rest < 0 ? rest + Self.day : rest) + nanoseconds)
    case .offset(let nanoseconds):
      return Timestamp(nanoseconds: start.nanoseconds.addingReportingOverflow(nanoseconds).partialValue)
    }
  }
}
