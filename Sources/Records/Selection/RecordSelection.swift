import BinaryProtocol
import Bytes
import PacketCapture
import PushModel

/// The types of records, which are also the names of the files that they go to.
public enum RecordType: String, CaseIterable, Sendable {
  case capture, notification
  case errorResponse = "error_response"
  case fate, feedback, gap, malformed, connection
  case captureLoss = "capture_loss"
  case summary
}

/// Criteria that select records. A record must match every criterion that has values, and one of its values.
public struct RecordSelection: Sendable, Equatable {
  /// A moment of a recording.
  public enum Moment: Sendable, Equatable {
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
    public let text: String

    /// `nil` when it is not hexadecimal, empty, or longer than any token.
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

  /// The earliest time.
  public var from: Moment?
  /// All times are before this one.
  public var to: Moment?
  /// For error responses: the token of the notification they name.
  public var tokens: [TokenPrefix] = []
  public var identifiers: [UInt32] = []
  public var connections: [ClosedRange<Int>] = []
  /// For notifications: the status of an error response that names them.
  public var statuses: Set<UInt8> = []
  /// For error responses: the fate of the notification they name.
  public var fates: Set<Fate> = []
  /// Topics of the connection's client certificate.
  public var topics: Set<String> = []
  public var types: Set<RecordType> = []

  public init() {}

  /// Without criteria every record is selected.
  public var isEmpty: Bool { self == RecordSelection() }

  /// Whether it depends on facts known only at the end of a connection: the recording must be read into `RecordingFacts`
  /// first.
  public var needsFacts: Bool {
    !topics.isEmpty || !fates.isEmpty || !statuses.isEmpty && (types.isEmpty || types.contains(.notification))
  }

  /// Its criteria as options of the command, each with one value.
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

  /// Parses a time as people type or paste it: `2026-11-21T10:05:00Z`, with an offset as +02:00, a blank for the T,
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
