import Records

/// The fates of notifications whose connection ended lately or is open, as far as they are known.
struct RecentFates {
  private struct Range {
    var end: Int
    var fate: FateCode
  }

  private let limit: Int
  private var ranges: [Int: [Range]] = [:]
  private var count = 0
  /// Ended connections, and how many notifications had been seen by then.
  private var ended: [(connection: Int, total: Int)] = []
  private var firstEnded = 0

  /// - Parameter limit: ranges that are kept; the fates of further ones are unknown.
  init(limit: Int) { self.limit = limit }

  mutating func add(_ record: FateRecord) {
    guard count < limit else { return }
    let fate = FateCode(record.fate)
    let last = ranges[record.connection]?.last
    // A gap in the connection's ranges: a range is missing.
    guard record.first == last?.end ?? 0 else { return }
    if last?.fate == fate { ranges[record.connection]?.removeLast() } else { count += 1 }
    ranges[record.connection, default: []].append(Range(end: record.last + 1, fate: fate))
  }

  /// The fate of a notification; `nil`: it is open, or forgotten.
  func fate(of notification: Int, on connection: Int) -> FateCode? {
    ranges[connection]?.first { notification < $0.end }?.fate
  }

  /// Forgets connections that ended more than a window ago.
  mutating func end(_ connection: Int, total: Int, window: Int) {
    if ranges[connection] != nil { ended.append((connection, total)) }
    while firstEnded < ended.count, ended[firstEnded].total + window < total {
      count -= ranges.removeValue(forKey: ended[firstEnded].connection)?.count ?? 0
      firstEnded += 1
    }
    if firstEnded > 1_024, firstEnded * 2 > ended.count {
      ended.removeFirst(firstEnded)
      firstEnded = 0
    }
  }
}
