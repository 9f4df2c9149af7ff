import Bytes
import Measurement

/// An inspection's report as one screen of text.
package struct InspectionText: Sendable {
  private let report: InspectionReport
  private let rows: Int
  private let columns: Int?
  package private(set) var text = ""

  /// - Parameters:
  ///   - rows: how many connections, error responses and tokens it lists.
  ///   - columns: the width of the terminal, where tables leave out columns to fit; `nil`: all columns.
  package init(_ report: InspectionReport, rows: Int, columns: Int? = nil) {
    self.report = report
    self.rows = rows
    self.columns = columns
    files()
    totals()
    requests()
    messages()
    connections()
    encryption()
    errors()
    sending()
    tokens()
    payloads()
    findings()
  }

  // MARK: sections

  private mutating func files() {
    for file in report.files {
      var line = file.file.map { "\($0): " } ?? ""
      line += "\(ControlCharacters.escaped(file.source))  \(file.format)"
      if !file.linkTypes.isEmpty {
        let more = file.linkTypes.count > 8 ? " and \(file.linkTypes.count - 8) more" : ""
        line += " (\(file.linkTypes.prefix(8).joined(separator: ", "))\(more))"
      }
      if let bytes = file.bytes { line += "  \(grouped(bytes)) B" }
      if file.packets > 0 { line += "  \(grouped(file.packets)) packets" }
      if file.cutPackets > 0 { line += "  \(grouped(file.cutPackets)) cut" }
      add(line)
      if let first = file.firstTime, let duration = file.durationS {
        add("  from \(first)  for \(span(duration))")
      }
    }
    if let selection = report.selection {
      add(
        "  selected: \(ControlCharacters.escaped(selection.joined(separator: " "))); all figures below are of these records"
      )
    }
    var losses = report.gapsByReason.sorted.map { "\($0.count) \($0.name)" }
    if let dropped = report.summary.droppedPackets { losses.insert("\(grouped(dropped)) packets not captured", at: 0) }
    if report.malformed > 0 { losses.append("\(report.malformed) malformed") }
    if report.missingBytes > 0 { losses.append("\(grouped(report.missingBytes)) B missing") }
    let none = report.summary.hasRead || report.selection != nil ? "none" : "unknown, because nothing was read"
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
    if let stories = report.stories { add(stories) }
    if report.feedbackConnections > 0 || report.feedbackTuples > 0 {
      add(
        "feedback       \(grouped(report.feedbackTuples)) tuples on \(grouped(report.feedbackConnections)) connections"
      )
    }
  }

  /// Adds all outcomes by distinct notification, which add up.
  private mutating func add(_ stories: InspectionReport.Stories) {
    for line in stories.lines { add(line) }
    if let window = stories.window {
      let time = stories.windowS.map { ", \(span($0)) or more," } ?? ""
      add(
        "  repeats were recognised among the \(grouped(window)) notifications\(time) before each: more with --max-remembered, all with 'follow'"
      )
    }
    if stories.notTracked > 0 {
      add("  \(grouped(stories.notTracked)) sendings are not among these: too many (--max-remembered)")
    }
  }

  /// Counts of the HTTP/2 provider API.
  private mutating func requests() {
    guard let requests = report.http2 else { return }
    add("")
    var line = "HTTP/2         \(counted(requests.connections, "connection"))"
    line += ", \(counted(requests.notifications, "notification")), \(counted(requests.responses, "answer"))"
    if let channels = requests.channelRequests { line += ", \(counted(channels, "request")) of channel management" }
    add(line)
    if let answers = requests.answerWords(most: max(1, rows)) {
      let left = requests.answers.count - rows
      add("  answers      \(answers)\(left > 0 && rows > 0 ? ", and \(left) more kinds (--rows)" : "")")
    }
    add(requests.lines)
  }

  /// Counts of the device channel and of local push.
  private mutating func messages() {
    if let devices = report.devices {
      add("")
      add(
        "devices        \(counted(devices.connections ?? 0, "connection")), \(counted(devices.messages, "message")), "
          + counted(devices.deliveries, "notification"))
      var words = ["\(grouped(devices.acknowledged)) acknowledged", "\(grouped(devices.unacknowledged)) not"]
      words.append("\(grouped(devices.open)) open")
      if devices.notGrowing > 0 { words.append("\(grouped(devices.notGrowing)) out of order") }
      if devices.stored > 0 { words.append("\(grouped(devices.stored)) had been stored") }
      if devices.repeated > 0 { words.append("\(grouped(devices.repeated)) repeated") }
      if devices.deliveries > 0 { add([(name: "delivered", text: words.joined(separator: ", "))]) }
    }
    if let push = report.localPush {
      add("")
      add(
        "local push     \(counted(push.connections ?? 0, "connection")), \(counted(push.messages, "message")), "
          + counted(push.requests, "request"))
      var words = ["\(grouped(push.acknowledged)) within 10 s", "\(grouped(push.late)) later"]
      words += ["\(grouped(push.unacknowledged)) not", "\(grouped(push.open)) open"]
      if push.requests > 0 { add([(name: "acknowledged", text: words.joined(separator: ", "))]) }
      if push.heartbeats > 0 {
        let longest = push.longestIntervalS.map { ", at most \(span($0)) apart" } ?? ""
        add([(name: "heartbeats", text: "\(grouped(push.heartbeats))\(longest)")])
      }
      if push.silences > 0 {
        add([(name: "silent", text: counted(push.silences, "time") + " for over 30 s")])
      }
    }
  }

  private mutating func add(_ lines: [(name: String, text: String)]) {
    for (name, text) in lines {
      add("  " + name.padded(to: 13) + ControlCharacters.escaped(text))
    }
  }

  private mutating func connections() {
    guard !report.connections.isEmpty else { return }
    add("")
    add("connections    \(grouped(report.summary.connections))")
    let shown = report.connections.prefix(rows)
    connections(shown.filter { $0.http2 == nil })
    requestConnections(shown.filter { $0.http2 != nil })
    for row in shown {
      for ends in row.alsoSeenAs ?? [] {
        add("  connection \(row.connection) was also captured as \(ends.client) -> \(ends.server)")
      }
    }
    let more = report.summary.connections - min(rows, report.connections.count)
    if more > 0 { add("  and \(grouped(more)) more (--rows)") }
  }

  private mutating func connections(_ rows: [InspectionReport.ConnectionRow]) {
    var table = TextTable(
      [
        "conn", "service", "client -> server", "start (UTC)", "length", "cmd 0/1/2", "fates a/r/d/u", "first error",
        "discarded", "end",
      ],
      right: [0, 4, 5, 6, 8])
    for row in rows {
      let sent =
        row.encrypted
        ? "TLS"
        : row.isFeedback
          ? "\(row.feedbackTuples) tuples"
          : (row.devices?.messages ?? row.localPush?.messages).map { counted($0, "message") }
            ?? row.commands.map(String.init).joined(separator: "/")
      table.add([
        "\(row.connection)", row.service + (row.protocol.map { " (\($0))" } ?? ""), row.endpoints, row.start,
        row.durationS.map(span) ?? "-", sent, row.fates,
        row.firstError ?? "-",
        row.discardedAfterFirstError.map(String.init) ?? "-", row.end.rawValue,
      ])
    }
    text += table.text(
      indent: 2, columns: columns,
      dispensable: ["end", "service", "start (UTC)", "length", "client -> server", "discarded", "first error"])
  }

  /// Connections over HTTP/2.
  private mutating func requestConnections(_ rows: [InspectionReport.ConnectionRow]) {
    var table = TextTable(
      [
        "conn", "service", "client -> server", "start (UTC)", "length", "sent", "fates a/r/d/u", "streams/limit",
        "tokens", "GOAWAY", "end",
      ],
      right: [0, 4, 5, 6, 7, 8, 9])
    for row in rows {
      let limit = row.http2?.streamLimitLast.map(grouped) ?? "?"
      table.add([
        "\(row.connection)", "\(row.service) (http2)", row.endpoints, row.start, row.durationS.map(span) ?? "-",
        "\(row.notifications)", row.fates, "\(row.http2?.openStreamsMax.map(grouped) ?? "?")/\(limit)",
        row.http2.map { $0.providerTokens.map(grouped) ?? "?" } ?? "-", row.http2.map { "\($0.goaways)" } ?? "-",
        row.end.rawValue,
      ])
    }
    text += table.text(
      indent: 2, columns: columns,
      dispensable: ["end", "service", "start (UTC)", "length", "client -> server", "GOAWAY", "tokens"])
  }

  private mutating func encryption() {
    let totals = report.tls
    guard totals.connections > 0 else { return }
    add("")
    var line =
      "TLS            \(grouped(totals.connections)) \(totals.connections == 1 ? "connection" : "connections")"
    line += ", \(grouped(totals.decrypted)) decrypted, \(grouped(totals.resumed)) resumed"
    if totals.payloadBytes > 0 {
      line += ", \(fixed(Double(totals.tlsBytes) / Double(totals.payloadBytes), 2)) TLS bytes per payload byte"
    }
    add(line)
    var table = TextTable(
      [
        "conn", "version", "cipher suite", "key exchange", "session", "bytes/payload", "topic", "certificate",
        "remarks",
      ],
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
        tls.tlsBytesPerPayloadByte.map { fixed($0, 2) } ?? "-",
        ControlCharacters.escaped(tls.topic ?? "-"), tls.certificate ?? "-",
        remarks.joined(separator: "; "),
      ])
    }
    text += table.text(
      indent: 2, columns: columns,
      dispensable: ["key exchange", "bytes/payload", "certificate", "topic", "session", "cipher suite"])
    if totals.connections > shown { add("  and \(grouped(totals.connections - shown)) more (--rows)") }
  }

  private mutating func errors() {
    guard report.errorCount > 0 else { return }
    add("")
    let byStatus = report.errorsByStatus.sorted { $0.key < $1.key }.map { "\($0.value) x status \($0.key)" }
    add("errors         \(grouped(report.errorCount)) (\(byStatus.joined(separator: ", ")))")
    var table = TextTable(
      ["time (UTC)", "conn", "packet", "status", "identifier", "names", "accepted", "discarded", "latency"],
      right: [1, 2, 4, 5, 6, 7, 8])
    for row in report.errors.prefix(rows) {
      table.add([
        row.time.map { String($0.dropFirst(11).prefix(12)) } ?? "-", "\(row.connection)",
        packet(row.packet, of: row.file), "\(row.status) \(row.statusName)", "\(row.identifier)",
        row.notification.map { "#\($0)" } ?? "nothing seen", row.accepted.map(String.init) ?? "-",
        row.discarded.map(String.init) ?? "-", row.latencyMs.map { fixed($0, 1) + " ms" } ?? "-",
      ])
    }
    text += table.text(
      indent: 2, columns: columns,
      dispensable: ["latency", "identifier", "packet", "accepted", "time (UTC)"])
    if report.errorCount > rows {
      add("  and \(grouped(report.errorCount - min(rows, report.errors.count))) more (--rows)")
    }
    refusals()
  }

  /// Adds a table of what each listed error response refused, and the outcomes of what it discarded.
  private mutating func refusals() {
    var table = TextTable(
      ["conn", "names", "refused token", "payload begins", "of the discarded"], right: [0, 1])
    for row in report.errors.prefix(rows) where row.token != nil || row.outcomes?.isEmpty == false {
      let outcomes = StoryOutcome.allCases.compactMap { outcome in
        row.outcomes?[outcome].map { "\(grouped($0)) \(outcome.words)" }
      }
      let token = row.token.map { $0.count > 16 ? "\($0.prefix(16))…" : $0.isEmpty ? "(none)" : $0 }
      let payload = row.payload.map { $0.count > 48 ? "\($0.prefix(48))…" : $0 }
      table.add([
        "\(row.connection)", row.notification.map { "#\($0)" } ?? "-", ControlCharacters.escaped(token ?? "-"),
        ControlCharacters.escaped(payload ?? "-"), outcomes.isEmpty ? "-" : outcomes.joined(separator: ", "),
      ])
    }
    text += table.text(
      indent: 2, columns: columns,
      dispensable: ["payload begins", "refused token"])
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
    add("connection lifetime", report.lifetimesS, span)
    guard !table.isEmpty else { return }
    text += "\n" + table.text(indent: 0)
    if !report.ends.isEmpty {
      let ends = report.ends.byCount.map { "\($0.count) \($0.name)" }
      self.add("ended by       \(ends.joined(separator: ", "))")
    }
  }

  private mutating func tokens() {
    guard !report.repeatedlyRejectedTokens.isEmpty, rows > 0 else { return }
    add("")
    add("tokens rejected more than once")
    for row in report.repeatedlyRejectedTokens.prefix(rows) {
      add("  \(ControlCharacters.escaped(row.token ?? "\(row.tokenPrefix)…"))  \(row.rejections) times")
    }
  }

  private mutating func payloads() {
    guard let payloads = report.payloads, !payloads.kinds.isEmpty else { return }
    add("")
    let kinds = payloads.kinds.map { "\(grouped($0.count)) \($0.kind)" }
    add("payloads       \(kinds.joined(separator: ", "))")
    guard !payloads.findings.isEmpty else { return }
    var table = TextTable(["first packet", "count", "severity", "code", "example"], right: [0, 1])
    for row in payloads.findings {
      table.add([
        packet(row.firstPacket, of: row.firstFile), grouped(row.count), row.severity, row.code,
        row.example.map { Self.shown($0) } ?? "-",
      ])
    }
    text += table.text(
      indent: 2, columns: columns,
      dispensable: ["severity", "first packet", "example"])
  }

  /// An example on one line, shortened to fit a table.
  private static func shown(_ example: InspectionReport.PayloadExample) -> String {
    let text = ControlCharacters.escaped(example.text)
    let short = text.count > 60 ? "\(text.prefix(60))…" : text
    guard let line = example.line, let column = example.column else { return short }
    return "\(line):\(column) \(short)"
  }

  private mutating func findings() {
    add("")
    add("findings       \(report.findings.isEmpty ? "none" : "")")
    var table = TextTable(["first packet", "finding"], right: [0])
    for row in report.findings { table.add([packet(row.firstPacket, of: row.firstFile), row.text]) }
    text += table.text(indent: 2)
  }

  /// `12`, or `2:12` for packet 12 of the second of several files.
  private func packet(_ packet: Int?, of file: Int?) -> String {
    let number = packet.map(String.init) ?? "-"
    return file.map { "\($0):\(number)" } ?? number
  }

  private mutating func add(_ line: String) {
    var line = line
    while line.last == " " { line.removeLast() }
    text += line + "\n"
  }
}

extension InspectionReport.ConnectionRow {
  fileprivate var endpoints: String { client.flatMap { client in server.map { "\(client) -> \($0)" } } ?? "-" }
  fileprivate var start: String { opened.map { String($0.dropFirst(11).prefix(12)) } ?? "-" }
  fileprivate var fates: String { notifications == 0 ? "-" : "\(accepted)/\(rejected)/\(discarded)/\(unknown)" }
}

extension String {
  func padded(to length: Int) -> String {
    self + String(repeating: " ", count: max(1, length - count))
  }
}
