import Bytes
import Measurement
import Payload

/// Notifications by kind, and by the rules that they break.
package struct PayloadTotals: Sendable {
  package struct Row: Sendable {
    package var count = 0
    /// The first packet, or 0.
    package var packet = 0
    package var example: PayloadExample?
  }

  package var kinds: [PayloadKind: Int] = [:]
  /// Rules of payloads that have an example.
  var exampled = PayloadRuleSet()
  private var rows: [PayloadRule: Row] = [:]

  package subscript(rule: PayloadRule) -> Row {
    get { rows[rule] ?? Row() }
    set { rows[rule] = newValue }
  }

  package mutating func note(_ rule: PayloadRule, _ count: Int, packet: Int) {
    rows[rule, default: Row()].count += count
    if packet > 0, self[rule].packet == 0 || packet < self[rule].packet { self[rule].packet = packet }
  }

  /// Adds the counts kept with a judgement.
  package mutating func add(_ entry: JudgementTable.Entry) {
    kinds[entry.kind, default: 0] += entry.count
    if !entry.rules.isEmpty {
      for rule in entry.rules { note(rule, entry.count, packet: entry.mark) }
    }
  }

  package var report: InspectionReport.Payloads {
    var report = InspectionReport.Payloads()
    report.kinds = kinds.sorted { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }
      .map { InspectionReport.PayloadKindRow(kind: $0.key.rawValue, count: $0.value) }
    // Errors first.
    let broken = rows.filter { $0.value.count > 0 }
      .sorted { ($1.key.severity, $0.key) < ($0.key.severity, $1.key) }
    report.findings = broken.map { rule, row in
      var finding = InspectionReport.PayloadFindingRow(code: rule.code, severity: rule.severity.rawValue)
      finding.count = row.count
      let place = RecordPlace(connection: 0, time: .none, packet: row.packet, offset: 0, length: 0)
      (finding.firstFile, finding.firstPacket) = (place.file, place.packetInFile)
      finding.text = rule.explanation
      finding.example = row.example?.report
      return finding
    }
    return report
  }
}

/// A payload, or another value that a rule is about, that breaks the rule.
package struct PayloadExample: Sendable {
  private static let longest = 160

  package let report: InspectionReport.PayloadExample

  package init(_ rule: PayloadRule, text: String, _ place: RecordPlace) {
    report = InspectionReport.PayloadExample(
      connection: place.connection, text: text, message: rule.explanation)
  }

  package init(_ finding: PayloadFinding, _ payload: RawSpan, _ place: RecordPlace) {
    var report = InspectionReport.PayloadExample(
      connection: place.connection, text: Self.text(ofPayload: payload), message: finding.message)
    if let offset = finding.offset {
      let position = PayloadPosition(offset: offset, in: payload)
      (report.line, report.column) = (position.line, position.column)
    }
    self.report = report
  }

  /// The first bytes in hexadecimal, as tokens are shown elsewhere.
  package static func text(_ token: RawSpan) -> String {
    var digits = ByteWriter(capacity: 32)
    digits.write(hex: token.extracting(0..<min(8, token.byteCount)))
    return String(decoding: Array(copying: digits.bytes), as: UTF8.self)
  }

  private static func text(ofPayload payload: RawSpan) -> String {
    let text = String(
      decoding: Array(copying: payload.extracting(0..<min(payload.byteCount, 4 * longest))), as: UTF8.self)
    let scalars = text.unicodeScalars
    return scalars.count > longest ? String(scalars.prefix(longest)) + "…" : text
  }
}

extension PayloadRule {
  /// The rule is about the device token alone.
  var isOfToken: Bool {
    switch self {
    case .tokenConstant, .tokenHexText, .tokenLength: true
    default: false
    }
  }
}
