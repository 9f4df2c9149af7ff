/// Keeps the answers to notifications of the provider API, for a second pass: status, reason and latency of each in 8
/// bytes.
struct AnswerIndex: Sendable {
  private struct Entry: Sendable {
    /// Microseconds; `.max`: not known, or too long.
    var latency: UInt32
    /// 0: none.
    var status: UInt16
    /// An index into `reasons`, plus 1; 0: none.
    var reason: UInt16

    static let none = Entry(latency: .max, status: 0, reason: 0)
  }

  private static let maximumReasons = 1_024
  private static let longestReason = 128

  private let limit: Int
  private var count = 0
  private var answers: [Int: [Entry]] = [:]
  private var reasons: [String] = []
  private var numbers: [String: UInt16] = [:]

  /// - Parameter limit: kept entries of all connections; answers to further notifications are not kept.
  init(limit: Int) { self.limit = limit }

  mutating func note(_ record: ResponseRecord) {
    guard let notification = record.notification, let status = record.status.flatMap({ UInt16(exactly: $0) }) else {
      return
    }
    let connection = record.place.connection
    let more = notification + 1 - (answers[connection]?.count ?? 0)
    if more > 0 {
      guard count + more <= limit else { return }
      answers[connection, default: []].append(contentsOf: repeatElement(.none, count: more))
      count += more
    }
    let latency = record.latencyNanoseconds.flatMap { UInt32(exactly: $0 / 1_000) } ?? .max
    let reason = number(of: record.reason)
    answers[connection]?[notification] = Entry(latency: latency, status: status, reason: reason)
  }

  private mutating func number(of reason: String?) -> UInt16 {
    guard let reason, reason.utf8.count <= Self.longestReason else { return 0 }
    if let number = numbers[reason] { return number }
    guard reasons.count < Self.maximumReasons else { return 0 }
    reasons.append(reason)
    numbers[reason] = UInt16(reasons.count)
    return UInt16(reasons.count)
  }

  func answer(to notification: Int, on connection: Int) -> ProviderAnswer? {
    guard let entries = answers[connection], entries.indices.contains(notification) else { return nil }
    let entry = entries[notification]
    guard entry.status > 0 else { return nil }
    return ProviderAnswer(
      status: Int(entry.status), reason: entry.reason > 0 ? reasons[Int(entry.reason) - 1] : nil,
      latencyNanoseconds: entry.latency < .max ? Int64(entry.latency) * 1_000 : nil)
  }
}
