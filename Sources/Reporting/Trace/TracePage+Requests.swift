import Bytes
import Measurement

/// What a trace has of the HTTP/2 provider API.
extension TracePage {
  /// Every notification is a request of the provider API.
  var isOfRequests: Bool {
    inspection.http2 != nil && inspection.notificationsByCommand.allSatisfy { $0 == 0 } && inspection.errorCount == 0
      && inspection.feedbackConnections == 0
  }

  /// What became of the notifications, in a sentence.
  var requestVerdict: String {
    let fates = inspection.fates
    let all = counted(summary.notifications, "notification")
    guard summary.notifications > 0 else { return "No notification is in the trace." }
    let parts = [
      (fates.rejected, "rejected"), (fates.discarded, "discarded"), (fates.unknown, "without an answer"),
    ].filter { $0.0 > 0 }.map { "\(grouped($0.0)) \($0.1)" }
    return parts.isEmpty ? "All of \(all) were accepted." : "Of \(all), \(parts.joined(separator: ", "))."
  }

  var rejectedFigure: Figure {
    let rejected = inspection.http2?.answers.filter { !Self.isGood($0) } ?? []
    let notes = rejected.prefix(4).map { "\(grouped($0.count)) × \(Self.name($0))" }
    return Figure(
      "rejected", grouped(inspection.fates.rejected),
      note: notes.joined(separator: ", ") + (rejected.count > 4 ? ", …" : ""),
      tone: inspection.fates.rejected == 0 ? .neutral : .warning)
  }

  /// Discarded notifications by cause.
  var causes: String {
    let causes = inspection.http2?.discardedBy.sorted { ($1.value, $0.key) < ($0.value, $1.key) } ?? []
    return causes.map { "\(grouped($0.value)) \(InspectionReport.Requests.words(ofCause: $0.key))" }
      .joined(separator: ", ")
  }

  /// Answers by status and reason, their times, and how streams and connections are used.
  var answers: [Section] {
    guard let requests = inspection.http2 else { return [] }
    var blocks: [Block] = []
    if !requests.answers.isEmpty {
      var table = Table([
        .init("status", .right), .init("reason"), .init("answers", .right), .init("share", .right),
      ])
      let total = requests.answers.reduce(0) { $0 + $1.count }
      for row in requests.answers.prefix(max(1, rows)) {
        table.add(
          Prose(row.status.map(String.init) ?? "lost"), Prose(ControlCharacters.escaped(Self.short(row.reason ?? "–"))),
          Prose(grouped(row.count)), Prose(Unit.share.text(Double(row.count) / Double(max(1, total)))),
          tone: Self.isGood(row) ? .good : .warning)
      }
      blocks.append(.table(table))
      blocks += more(than: min(max(1, rows), requests.answers.count), of: requests.answers.count, "kinds of answers")
    }
    if let latencyChart { blocks.append(.chart(latencyChart)) }
    var times = Table([
      .init(""), .init("count", .right), .init("p50", .right), .init("p99", .right), .init("max", .right),
    ])
    func add(_ name: String, _ histogram: LatencyHistogram?, _ text: (Int) -> String) {
      guard let histogram else { return }
      times.add(
        Prose(name), Prose(grouped(histogram.count)), Prose(text(histogram.quantile(0.5))),
        Prose(text(histogram.quantile(0.99))), Prose(text(histogram.maximum)))
    }
    add("from END_STREAM to the answer", requests.latency) { Unit.seconds.text(Double($0) / 1e6) }
    add("streams open when a notification begins", requests.openStreams) { grouped($0) }
    add("notifications of a connection", requests.perConnection) { grouped($0) }
    add("header bytes of a notification", requests.headerBytes) { Unit.bytes.text(Double($0)) }
    if requests.latency != nil || requests.openStreams != nil || requests.headerBytes != nil {
      blocks.append(.table(times))
    }
    let shown: Set<String> = ["latency", "a connection", "header"]
    let values = requests.lines.filter { !shown.contains($0.name) }
    if !values.isEmpty {
      blocks.append(.values(values.map { Value($0.name, Prose(ControlCharacters.escaped($0.text))) }))
    }
    return blocks.isEmpty ? [] : [Section("Answers and streams", blocks)]
  }

  /// Times to answers over the time of the recording; `nil` without any.
  private var latencyChart: Chart? {
    guard let series = report.latencies else { return nil }
    func points(_ values: [Double?]) -> [Point] {
      zip(values, series.counts).enumerated().compactMap { index, bin in
        bin.0.map {
          Point(series.fromS + (Double(index) + 0.5) * series.widthS, $0, note: counted(bin.1, "answer"))
        }
      }
    }
    return Chart(
      title: "Time to the answer", x: time, y: Axis("milliseconds", unit: .milliseconds),
      marks: [
        .line("p50", points(series.p50Ms), color: .blue), .line("p99", points(series.p99Ms), color: .vermillion),
      ], height: 110)
  }

  var requestGlossary: Section {
    let words: [(String, Prose)] = [
      ("accepted", "answered with a status from 200 to 299: APNs took it; nothing says that a device got it"),
      ("rejected", "answered with another status, and mostly a reason"),
      (
        "discarded",
        "certainly not processed: its stream was refused, a GOAWAY excludes it, or it never ended; safe to send again"
      ),
      ("unknown", "no answer: its stream or connection ended without one, so it may have been accepted"),
      (ResendWords.sentAgain, "seen later with the same token, payload and topic, on any connection"),
      ("latency", "from the packet with a notification's END_STREAM to the one with its answer's header fields"),
      ("streams", "requests without an answer, of which the gateway's SETTINGS allow so many at a time"),
      ("header bytes", "the bytes of a notification's frames without its payload"),
    ]
    return Section("Glossary", [.values(words.map { Value($0.0, $0.1) })])
  }

  private static func isGood(_ answer: InspectionReport.Requests.Answer) -> Bool {
    answer.status.map { (200...299).contains($0) } ?? false
  }

  private static func name(_ answer: InspectionReport.Requests.Answer) -> String {
    ControlCharacters.escaped(answer.reason ?? answer.status.map(String.init) ?? "lost")
  }
}

extension InspectionReport.RequestRow {
  /// The most frequent reason of its rejections, and how many there are of others; `nil` without any.
  var mostRejected: String? {
    let sorted = rejections.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    guard let first = sorted.first else { return nil }
    let others = sorted.dropFirst().reduce(0) { $0 + $1.value }
    let name = ControlCharacters.escaped(TracePage.short(first.key))
    return "\(grouped(first.value)) × \(name)" + (others > 0 ? ", \(grouped(others)) others" : "")
  }
}
