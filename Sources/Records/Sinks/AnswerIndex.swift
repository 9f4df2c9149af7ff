/// Keeps the answers to notifications of the provider API, for a second pass: status, reason and latency of each in 8
/// bytes.
struct AnswerIndex: Sendable {
  /// An answer in 64 bits:
  /// ```
  ///  63             24 23      14 13          0
  /// ┌─────────────────┬──────────┬─────────────┐
  /// │ microseconds +1 │  status  │ reason + 1  │
  /// └─────────────────┴──────────┴─────────────┘
  /// ```
  private struct Entry: Sendable {
    private let bits: UInt64

    /// No answer.
    static let none = Entry()

    private init() { bits = 0 }

    /// `nil` if a value has no room.
    init?(latency: Int64?, status: Int, reason: Int?) {
      let latency = latency.map { $0 + 1 } ?? 0
      guard (0..<1 << 40).contains(latency), (1..<1 << 10).contains(status) else { return nil }
      bits = UInt64(latency) << 24 | UInt64(status) << 14 | UInt64((reason ?? -1) + 1)
    }

    /// The reason of an answer of which content may be missing.
    static let lostReason = 0x3ffe

    var latency: Int64? { bits >> 24 == 0 ? nil : Int64(bits >> 24) - 1 }
    var status: Int { Int(bits >> 14 & 0x3ff) }
    /// An index into `reasons`.
    var reason: Int? { bits & 0x3fff == 0 ? nil : Int(bits & 0x3fff) - 1 }
  }

  private static let maximumReasons = 1_024
  private static let longestReason = 128

  private let limit: Int
  private var count = 0
  private var answers: [Int: [Entry]] = [:]
  private var reasons: [String] = []
  private var numbers: [String: Int] = [:]
  /// Answers that are not kept.
  private(set) var notKept = 0

  /// - Parameter limit: kept entries of all connections; answers to further notifications are not kept.
  init(limit: Int) { self.limit = limit }

  mutating func note(_ record: ResponseRecord) {
    guard let notification = record.notification, let status = record.status else { return }
    var reason: Int?
    if let text = record.reason {
      reason = number(of: text)
      guard reason != nil else {
        notKept += 1
        return
      }
    } else if record.isUncertain {
      reason = Entry.lostReason
    }
    let connection = record.place.connection
    let more = max(0, notification + 1 - (answers[connection]?.count ?? 0))
    let latency = record.latencyNanoseconds.map { $0 / 1_000 }
    guard let entry = Entry(latency: latency, status: status, reason: reason), more <= limit - count else {
      notKept += 1
      return
    }
    if more > 0 { answers[connection, default: []].append(contentsOf: repeatElement(.none, count: more)) }
    count += more
    answers[connection]?[notification] = entry
  }

  /// Replaces the texts of reasons; those that become equal are equal then.
  mutating func replaceReasons(_ body: (String) -> String) { reasons = reasons.map(body) }

  private mutating func number(of reason: String) -> Int? {
    if let number = numbers[reason] { return number }
    guard reason.utf8.count <= Self.longestReason, reasons.count < Self.maximumReasons else { return nil }
    reasons.append(reason)
    numbers[reason] = reasons.count - 1
    return reasons.count - 1
  }

  func answer(to notification: Int, on connection: Int) -> ProviderAnswer? {
    guard let entries = answers[connection], entries.indices.contains(notification) else { return nil }
    let entry = entries[notification]
    guard entry.status > 0 else { return nil }
    return ProviderAnswer(
      status: entry.status,
      reason: entry.reason.flatMap { $0 == Entry.lostReason ? nil : reasons[$0] },
      isReasonUncertain: entry.reason == Entry.lostReason, latencyNanoseconds: entry.latency.map { $0 * 1_000 })
  }
}
