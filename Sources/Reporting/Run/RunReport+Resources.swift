import Measurement

extension RunReport {
  var resources: Section {
    let resources = result.resources
    var blocks: [Block] = [
      .table(
        .numbers(
          ["of the generator", ""],
          [
            ["processor time, user", Unit.seconds.text(resources.cpuUserS)],
            ["processor time, system", Unit.seconds.text(resources.cpuSystemS)],
            ["most memory", Unit.bytes.text(Double(resources.maxRssBytes))],
            [
              "loop lag p99, measured phase",
              resources.loopLagUs.count == 0 ? "–" : resources.loopLagUs.text(resources.loopLagUs.quantile(0.99)),
            ],
          ] + stallRows))
    ]
    guard !result.series.isEmpty else { return Section("Resources", blocks + [.paragraph(noSeries)]) }
    let cores = Double(result.environment.cores)
    blocks.append(
      .chart(
        Chart(
          title: "Processor", x: time, y: Axis("cores in use"), marks: [.area("", line(\.cpu), color: .blue)],
          regions: regions,
          rules: cores > 0 && (result.series.map(\.cpu).max() ?? 0) > cores * 0.4
            ? [.horizontal(cores, "all \(result.environment.cores) cores")] : [],
          height: 130)))
    if result.series.contains(where: { $0.rssBytes > 0 }) {
      blocks.append(
        .chart(
          Chart(
            title: "Memory", x: time, y: Axis("resident memory", unit: .bytes),
            marks: [.line("", line { Double($0.rssBytes) }, color: .purple)], regions: regions, height: 110)))
    } else {
      blocks.append(.paragraph("The result does not say how much memory was in use over time."))
    }
    if result.series.contains(where: { $0.loopLagP99Us > 0 }) {
      blocks.append(
        .chart(
          Chart(
            title: "Loop lag p99 of each second", x: time, y: Axis("loop lag p99", unit: .microseconds),
            marks: [.line("", line { Double($0.loopLagP99Us) }, color: .orange)], regions: regions, height: 110),
          caption: "How late the generator's timers fired: its share in every latency."))
    } else {
      blocks.append(.paragraph("The result does not say how late the event loops came over time."))
    }
    return Section("Resources", blocks)
  }

  private var stallRows: [[String]] {
    guard let stalls = result.stalls else { return [] }
    guard stalls.count > 0 else { return [["stalled, measured phase", "never for 10 ms or longer"]] }
    return [
      [
        "stalled, measured phase",
        "\(grouped(stalls.count)) \(stalls.count == 1 ? "time" : "times"), \(Unit.seconds.text(stalls.totalS)) in all, at most \(Unit.seconds.text(stalls.longestMs / 1e3))",
      ]
    ]
  }
}
