extension RunResult.Connections {
  /// The most common reason of failed attempts, and its count; `nil` if none failed, or reasons were not counted.
  public var commonestFailure: (reason: String, count: Int)? { byCount.first }

  /// Says how many attempts failed, and for which reasons; `nil` when none did, or their reasons were not counted.
  public var failureWarning: String? {
    let reasons = byCount
    guard let first = reasons.first else { return nil }
    let head = "\(failed) of \(attempted) attempts to connect failed: "
    guard reasons.count > 1 else { return head + first.reason }
    let shown = reasons.prefix(3).map { "\($0.count) x \($0.reason)" }
    let others = reasons.dropFirst(3).reduce(0) { $0 + $1.count }
    return head + (shown + (others > 0 ? ["\(others) for other reasons"] : [])).joined(separator: ", ")
  }

  /// The share of refused connections among the opened ones from which on there is a warning.
  static let tolerableRefusals = 0.01

  /// A warning with the number of refused connections; `nil` if fewer than one in a hundred were refused, or they were
  /// not counted.
  public var refusalWarning: String? {
    guard let refused, refused > 0, Double(refused) >= Self.tolerableRefusals * Double(opened) else { return nil }
    return "\(refused) of \(opened) connections were closed by the gateway before anything on them was proven accepted"
  }

  private var byCount: [(reason: String, count: Int)] {
    (failures ?? [:]).filter { $0.value > 0 }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
      .map { ($0.key, $0.value) }
  }
}

extension RunResult {
  /// Says that sendings of unknown fate were sent again; `nil` when none were.
  public var duplicateWarning: String? {
    // Each open notification has one unknown sending without a later one.
    let repeated = sum(sendings.unknown, -max(0, notifications.unproven))
    guard repeated > 0 else { return nil }
    return
      "\(repeated) sendings of unknown fate were repeated: up to that many notifications may have been accepted more than once"
  }
}
