import Measurement
import Payload

/// Joins the payload findings of several inspections.
struct PayloadMerging {
  /// A row of a report, with the numbers of its part and recording.
  private struct Row {
    var row: InspectionReport.PayloadFindingRow
    var part: Int
    var recording: Int

    /// Recordings are in order; the shards of a recording number packets alike.
    var place: (Int, Int, Int) { (recording, row.firstFile ?? 0, row.firstPacket ?? .max) }
  }

  /// Whether an inspection judged payloads.
  private var isJudged = false
  private var kinds: [String: Int] = [:]
  private var rows: [String: Row] = [:]

  mutating func add(_ payloads: InspectionReport.Payloads?, part: Int, recording: Int) {
    guard let payloads else { return }
    isJudged = true
    for row in payloads.kinds { kinds[row.kind, default: 0] += row.count }
    for row in payloads.findings {
      var joined = Row(row: row, part: part, recording: recording)
      if let other = rows[row.code] {
        let count = row.count + other.row.count
        if other.place <= joined.place { joined = other }
        joined.row.count = count
      }
      rows[row.code] = joined
    }
  }

  /// The joined rows, in the order of an inspection's; `nil` if no payloads were judged.
  ///
  /// - Parameter locate: converts the numbers of a row's file and connection from numbers in its part and recording to
  ///   numbers in the whole.
  func report(
    _ locate: (inout InspectionReport.PayloadFindingRow, _ part: Int, _ recording: Int) -> Void
  ) -> InspectionReport.Payloads? {
    guard isJudged else { return nil }
    var report = InspectionReport.Payloads()
    report.kinds = kinds.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
      .map { InspectionReport.PayloadKindRow(kind: $0.key, count: $0.value) }
    let ordered = rows.values.sorted { order($0.row) < order($1.row) }
    report.findings = ordered.map {
      var row = $0.row
      locate(&row, $0.part, $0.recording)
      return row
    }
    return report
  }

  /// Errors first; unknown codes last.
  private func order(_ row: InspectionReport.PayloadFindingRow) -> (Int, String) {
    let severities = PayloadRule.Severity.allCases.sorted(by: >).map(\.rawValue)
    return (severities.firstIndex(of: row.severity) ?? severities.count, row.code)
  }
}
