import Measurement

extension RunReport {
  /// The counts of each topic; `nil` when all notifications went over all connections.
  var topics: Section? {
    guard let topics = result.topics else { return nil }
    let head = [
      "", "connections", "asked for", "generated", "accepted", "rejected", "unknown", "abandoned", "never sent",
    ]
    let rows = topics.map { topic in
      let counts = topic.notifications
      return [topic.topic, grouped(topic.connections.asked ?? topic.connections.opened)]
        + [topic.share.map(Unit.share.text) ?? "–"]
        + [counts.generated, counts.accepted, counts.rejected, counts.unknown, counts.abandoned].map(grouped)
        + [grouped(topic.schedule.neverSent)]
    }
    let sendings = topics.map { topic in
      let counts = topic.sendings
      let errors = topic.errorResponses.sorted { (Int($0.key) ?? 0) < (Int($1.key) ?? 0) }
        .map { "\(grouped($0.value)) × \($0.key)" }
      return [topic.topic]
        + [counts.written, counts.resent, counts.accepted, counts.rejected, counts.discarded, counts.unknown]
        .map(grouped) + [errors.isEmpty ? "–" : errors.joined(separator: ", ")]
    }
    return Section(
      "Topics",
      [
        .paragraph(
          "Each topic went over connections of its own, with its certificate. The figures elsewhere on this page are of all topics together."
        ), .table(.numbers(head, rows)),
        .table(
          .numbers(
            ["sendings", "written", "again", "accepted", "rejected", "discarded", "unknown", "error responses"],
            sendings)),
      ])
  }
}
