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

  private var byCount: [(reason: String, count: Int)] {
    (failures ?? [:]).filter { $0.value > 0 }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
      .map { ($0.key, $0.value) }
  }
}
