import BinaryProtocol
import Measurement

extension TracePage {
  var errors: Section {
    guard inspection.errorCount > 0 else {
      return Section(
        "Errors and their cost",
        [
          .paragraph(
            summary.notifications > 0
              ? inspection.http2 == nil
                ? "No error responses. The protocol has no acknowledgement, so this does not prove that everything was accepted."
                : "No error responses over the binary protocol. It has no acknowledgement, so this does not prove that everything sent over it was accepted."
              : summary.hasRead ? "No error response came." : "Nothing was read, so errors are unknown.")
        ])
    }
    var statuses = Table([
      .init("status"), .init("meaning"), .init("responses", .right), .init("share", .right), .init("discarded", .right),
      .init(ResendWords.sentAgain, .right), .init("latency p50", .right), .init("max", .right),
    ])
    let listed = inspection.errors
    for status in responsesByStatus {
      let rows = listed.filter { $0.status == status.status }
      let again = rows.compactMap(\.sentAgain)
      let latencies = rows.compactMap(\.latency).sorted()
      statuses.add(
        Prose("\(status.status)"), Prose(status.name), Prose(grouped(status.count)),
        Prose(Unit.share.text(Double(status.count) / Double(max(1, inspection.errorCount)))),
        Prose(grouped(rows.reduce(0) { $0 + ($1.discarded ?? 0) })),
        Prose(again.isEmpty ? "–" : grouped(again.reduce(0, +))),
        Prose(latencies.isEmpty ? "–" : seconds(Self.quantile(0.5, of: latencies))),
        Prose(latencies.isEmpty ? "–" : seconds(latencies.last)))
    }
    var blocks: [Block] = [.table(statuses)]
    if inspection.errorCount > listed.count {
      blocks.append(
        .paragraph(
          "Discarded, sent again and latency are of the first \(grouped(listed.count)) responses ("
            + .code("--max-listed") + ")."))
    }
    blocks += charts
    var table = Table([
      .init(atName, .right), .init("packet", .right), .init("connection", .right), .init("status"),
      .init("identifier", .right), .init("names", .right), .init("accepted", .right), .init("discarded", .right),
      .init(ResendWords.sentAgain, .right), .init("latency", .right),
    ])
    for error in report.listedErrors.prefix(rows) {
      let row = error.row
      let discarded = row.discarded ?? 0
      let isLost = row.outcomes?[.lost] ?? 0 > 0
      let isOpen = discarded > 0 && (row.sentAgain ?? 0) < discarded
      table.add(
        Prose(at(error.timeS)), Prose(TracePage.packet(row.packet, of: row.file)), Prose("\(row.connection)"),
        Prose("\(row.status) \(row.statusName)"), Prose("\(row.identifier)"),
        Prose(row.notification.map { "#\(grouped($0))" } ?? "nothing seen"), Prose(row.accepted.map(grouped) ?? "–"),
        Prose(row.discarded.map(grouped) ?? "–"), Prose(discarded == 0 ? "–" : row.sentAgain.map(grouped) ?? "–"),
        Prose(seconds(row.latency)), tone: isLost ? .bad : isOpen ? .warning : .neutral)
    }
    blocks += [.heading("One by one"), .table(table)]
    blocks += more(than: min(rows, listed.count), of: inspection.errorCount, "error responses")
    blocks += refusals
    if notFollowed > 0 {
      blocks.append(
        .callout(
          .warning,
          "\(grouped(notFollowed)) discarded notifications were not tracked (--max-remembered): more may have been resent than shown."
        ))
    }
    blocks.append(
      .paragraph(
        "Names is the number of the notification on its connection, from 0. Sent again says that a discarded notification was written later, whatever became of that."
      ))
    return Section("Errors and their cost", blocks)
  }

  /// The counts of error responses by status, in ascending order of status.
  var responsesByStatus: [(status: Int, name: String, count: Int)] {
    inspection.errorsByStatus.sorted { $0.key < $1.key }.map { status, count in
      (status, ErrorResponse.Status(rawValue: UInt8(clamping: status)).description, count)
    }
  }

  /// Discarded notifications beyond the limit up to which resends are searched.
  var notFollowed: Int { inspection.findings.first { $0.kind == .lostNotTracked }?.count ?? 0 }

  private var charts: [Block] {
    let timed = report.listedErrors.filter { $0.timeS != nil }
    guard timed.count > 2 else { return [] }
    func points(_ value: (InspectionReport.ErrorRow) -> Double?) -> [Point] {
      timed.compactMap { error in
        value(error.row).map {
          Point(error.timeS ?? 0, $0, note: "connection \(error.row.connection), \(error.row.statusName)")
        }
      }
    }
    var blocks: [Block] = []
    let latencies = points(\.latency).filter { $0.y >= 0 }
    if latencies.count > 2 {
      let values = latencies.map(\.y).filter { $0 > 0 }.sorted()
      let isFar = (values.last ?? 1) / (values.first ?? 1) > 50
      blocks.append(
        .chart(
          Chart(
            title: "Error latency", x: time,
            y: Axis("error latency", unit: .seconds, layout: isFar ? .logarithmic : .linear),
            marks: [.points("", latencies)], height: 150),
          caption:
            "How long the gateway took to reject a notification. Notifications written in that time are discarded."
        ))
    }
    return blocks
  }
}
