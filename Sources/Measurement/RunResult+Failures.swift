extension RunResult.Connections {
  /// Why most of the attempts failed that did, and how many; `nil` when none did, or their reasons were not counted.
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

  /// The share of the opened connections from which on refused ones are a warning.
  static let tolerableRefusals = 0.01

  /// Says how many connections were refused; `nil` when fewer than one in a hundred were, or they were not counted.
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
    // Each notification that is open has one of them that is not followed by another.
    let repeated = sum(sendings.unknown, -max(0, notifications.unproven))
    guard repeated > 0 else { return nil }
    return
      "\(repeated) sendings of unknown fate were repeated: up to that many notifications may have been accepted more than once"
  }
}
