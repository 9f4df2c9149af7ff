import Bytes
import Measurement

/// An inspection's report as one screen of text.
struct InspectionText {
  private let report: InspectionReport
  private let rows: Int
  private(set) var text = ""

  init(_ report: InspectionReport, rows: Int) {
    self.report = report
    self.rows = rows
    files()
    totals()
    connections()
    encryption()
    errors()
    sending()
    tokens()
    findings()
  }

  // MARK: sections

  private mutating func files() {
    for file in report.files {
      var line = "\(ControlCharacters.escaped(file.source))  \(file.format)"
      if !file.linkTypes.isEmpty {
        let more = file.linkTypes.count > 8 ? " and \(file.linkTypes.count - 8) more" : ""
        line += " (\(file.linkTypes.prefix(8).joined(separator: ", "))\(more))"
      }
      if let bytes = file.bytes { line += "  \(grouped(bytes)) B" }
      if file.packets > 0 { line += "  \(grouped(file.packets)) packets" }
      if file.cutPackets > 0 { line += "  \(grouped(file.cutPackets)) cut" }
      add(line)
      if let first = file.firstTime, let duration = file.durationS {
        add("  from \(first)  for \(Self.seconds(duration))")
      }
    }
    var losses = report.gapsByReason.sorted.map { "\($0.count) \($0.name)" }
    if report.malformed > 0 { losses.append("\(report.malformed) malformed") }
    if report.missingBytes > 0 { losses.append("\(grouped(report.missingBytes)) B missing") }
    let none = report.summary.hasRead ? "none" : "not known, because nothing was read"
    add("  loss: \(losses.isEmpty ? none : losses.joined(separator: ", "))")
  }

  private mutating func totals() {
    let summary = report.summary
    let commands = (0..<3).filter { report.notificationsByCommand[$0] > 0 }
      .map { "\(grouped(report.notificationsByCommand[$0])) command \($0)" }
    add("")
    add(
      "notifications  \(grouped(summary.notifications))"
        + (commands.isEmpty ? "" : " (\(commands.joined(separator: ", ")))"))
    let fates = report.fates
    if summary.notifications > 0 {
      add(
        "fates          \(grouped(fates.accepted)) accepted, \(grouped(fates.rejected)) rejected, "
          + "\(grouped(fates.discarded)) discarded, \(grouped(fates.unknown)) unknown")
    }
    if report.feedbackConnections > 0 || report.feedbackTuples > 0 {
      add(
        "feedback       \(grouped(report.feedbackTuples)) tuples on \(grouped(report.feedbackConnections)) connections"
      )
    }
  }

  private mutating func connections() {
    guard !report.connections.isEmpty else { return }
    add("")
    add("connections    \(grouped(report.summary.connections))")
    var table = TextTable(
      [
        "conn", "service", "client -> server", "start", "length", "cmd 0/1/2", "fates a/r/d/u", "first error", "lost",
        "end",
      ],
      right: [0, 4, 5, 6, 8])
    for row in report.connections.prefix(rows) {
      let ends = row.client.flatMap { client in row.server.map { "\(client) -> \($0)" } } ?? "-"
      let sent =
        row.encrypted
        ? "TLS"
        : row.service == "feedback"
          ? "\(row.feedbackTuples) tuples" : row.commands.map(String.init).joined(separator: "/")
      let fates = row.notifications == 0 ? "-" : "\(row.accepted)/\(row.rejected)/\(row.discarded)/\(row.unknown)"
      table.add([
        "\(row.connection)", row.service + (row.protocol.map { " (\($0))" } ?? ""), ends,
        row.opened.map { String($0.dropFirst(11).prefix(12)) } ?? "-",
        row.durationS.map(Self.seconds) ?? "-", sent, fates,
        row.firstErrorStatus.map { "\($0) \(row.firstErrorName ?? "")" } ?? "-",
        row.discardedAfterFirstError.map(String.init) ?? "-", row.end.rawValue,
      ])
    }
    text += table.text(indent: 2)
    let more = report.summary.connections - min(rows, report.connections.count)
    if more > 0 { add("  and \(grouped(more)) more (--rows)") }
  }

  private mutating func encryption() {
    let totals = report.tls
    guard totals.connections > 0 else { return }
    add("")
    var line =
      "TLS            \(grouped(totals.connections)) \(totals.connections == 1 ? "connection" : "connections")"
    line += ", \(grouped(totals.decrypted)) decrypted, \(grouped(totals.resumed)) resumed"
    if totals.payloadBytes > 0 {
      line += ", \(Self.decimal(Double(totals.tlsBytes) / Double(totals.payloadBytes), 2)) TLS bytes per payload byte"
    }
    add(line)
    var table = TextTable(
      ["conn", "version", "cipher suite", "key exchange", "session", "bytes/payload", "topic", "remarks"],
      right: [0, 5])
    var shown = 0
    for row in report.connections where row.tls != nil && shown < rows {
      guard let tls = row.tls else { continue }
      shown += 1
      var remarks = tls.problem.map { tls.decrypted ? [$0] : ["not decrypted: \($0)"] } ?? []
      if let alert = tls.alert { remarks.append("alert \(alert)") }
      table.add([
        "\(row.connection)", tls.version ?? "-", tls.cipherSuite.map { String($0.dropFirst("TLS_".count)) } ?? "-",
        tls.keyExchange ?? "-", tls.resumed.map { $0 ? "resumed" : "new" } ?? "-",
        tls.tlsBytesPerPayloadByte.map { Self.decimal($0, 2) } ?? "-",
        ControlCharacters.escaped(tls.clientSubject.map(Self.topic) ?? "-"),
        remarks.joined(separator: "; "),
      ])
    }
    text += table.text(indent: 2)
    if totals.connections > shown { add("  and \(grouped(totals.connections - shown)) more (--rows)") }
  }

  private mutating func errors() {
    guard report.errorCount > 0 else { return }
    add("")
    let byStatus = report.errorsByStatus.sorted { $0.key < $1.key }.map { "\($0.value) x status \($0.key)" }
    add("errors         \(grouped(report.errorCount)) (\(byStatus.joined(separator: ", ")))")
    var table = TextTable(
      ["conn", "packet", "status", "identifier", "names", "accepted", "discarded", "latency"],
      right: [0, 1, 3, 4, 5, 6, 7])
    for row in report.errors.prefix(rows) {
      table.add([
        "\(row.connection)", row.packet.map(String.init) ?? "-", "\(row.status) \(row.statusName)", "\(row.identifier)",
        row.notification.map { "#\($0)" } ?? "nothing seen", row.accepted.map(String.init) ?? "-",
        row.discarded.map(String.init) ?? "-", row.latencyMs.map { Self.decimal($0, 1) + " ms" } ?? "-",
      ])
    }
    text += table.text(indent: 2)
    if report.errorCount > rows {
      add("  and \(grouped(report.errorCount - min(rows, report.errors.count))) more (--rows)")
    }
  }

  private mutating func sending() {
    var table = TextTable(["", "p50", "p95", "max"], right: [1, 2, 3])
    func add(_ name: String, _ distribution: Distribution?, _ format: (Double) -> String) {
      guard let distribution else { return }
      table.add([name, format(distribution.p50), format(distribution.p95), format(distribution.max)])
    }
    let whole = { (value: Double) in grouped(Int(value)) }
    add("notifications per second", report.notificationsPerSecond, whole)
    add("notifications per segment", report.notificationsPerSegment, whole)
    add("payload bytes", report.payloadLengths, whole)
    add("connections opened per minute", report.opensPerMinute, whole)
    add("connection lifetime", report.lifetimes, Self.seconds)
    guard !table.isEmpty else { return }
    text += "\n" + table.text(indent: 0)
    if !report.ends.isEmpty {
      let ends = report.ends.mostFirst.map { "\($0.count) \($0.name)" }
      self.add("ended by       \(ends.joined(separator: ", "))")
    }
  }

  private mutating func tokens() {
    guard !report.repeatedlyRejectedTokens.isEmpty, rows > 0 else { return }
    add("")
    add("tokens rejected more than once")
    for row in report.repeatedlyRejectedTokens.prefix(rows) { add("  \(row.tokenPrefix)…  \(row.rejections) times") }
  }

  private mutating func findings() {
    add("")
    add("findings       \(report.findings.isEmpty ? "none" : "")")
    var table = TextTable(["first packet", "what"], right: [0])
    for row in report.findings { table.add([row.firstPacket.map(String.init) ?? "-", row.text]) }
    if !table.isEmpty { text += table.text(indent: 2) }
  }

  // MARK: words and numbers

  private mutating func add(_ line: String) {
    var line = line
    while line.last == " " { line.removeLast() }
    text += line + "\n"
  }

  private static func seconds(_ value: Double) -> String {
    switch value {
    case ..<0.001: "\(decimal(value * 1e6, 0)) µs"
    case ..<1: "\(decimal(value * 1e3, 1)) ms"
    case ..<120: "\(decimal(value, 1)) s"
    case ..<7_200: "\(decimal(value / 60, 1)) min"
    case ..<172_800: "\(decimal(value / 3_600, 1)) h"
    default: "\(decimal(value / 86_400, 1)) d"
    }
  }

  private static func decimal(_ value: Double, _ places: Int) -> String {
    let scale = [1.0, 10, 100, 1_000][places]
    let scaled = Int((value * scale).rounded())
    guard places > 0 else { return "\(scaled)" }
    let digits = String(scaled.magnitude)
    let padded = String(repeating: "0", count: max(0, places + 1 - digits.count)) + digits
    return (scaled < 0 ? "-" : "") + "\(padded.dropLast(places)).\(padded.suffix(places))"
  }

  /// What a provider's certificate names: its subject's UID, else its CN.
  static func topic(_ subject: String) -> String {
    let parts = subject.split(separator: ",")
    let part = parts.first { $0.hasPrefix("UID=") } ?? parts.first { $0.hasPrefix("CN=") }
    return part.map { String($0.drop { $0 != "=" }.dropFirst()) } ?? subject
  }
}

/// Columns as wide as their widest cell.
struct TextTable {
  private let header: [String]
  private let right: Set<Int>
  private var rows: [[String]] = []

  init(_ header: [String], right: Set<Int>) {
    self.header = header
    self.right = right
  }

  var isEmpty: Bool { rows.isEmpty }

  mutating func add(_ row: [String]) { rows.append(row) }

  /// Nothing without rows.
  func text(indent: Int) -> String {
    guard !isEmpty else { return "" }
    let widths = header.indices.map { column in ([header] + rows).map { $0[column].count }.max() ?? 0 }
    var text = ""
    for row in [header] + rows {
      var line = String(repeating: " ", count: indent)
      for (column, cell) in row.enumerated() {
        let padding = String(repeating: " ", count: widths[column] - cell.count)
        line += (column == 0 ? "" : "  ") + (right.contains(column) ? padding + cell : cell + padding)
      }
      while line.last == " " { line.removeLast() }
      text += line + "\n"
    }
    return text
  }
}
