import Measurement

extension RunReport {
  /// This run's figures next to another run's, with their ratios. With one run per side chance cannot be excluded, so
  /// nothing is called better or worse.
  func comparison(with baseline: RunResult) -> Section {
    var table = Table([
      .init("figure"), .init("this run", .right), .init("baseline", .right), .init("ratio", .right),
    ])
    for figure in RunFigure.all {
      let (ours, theirs) = (figure.value(result), figure.value(baseline))
      if ours == nil, theirs == nil { continue }
      func text(_ value: Double?) -> Prose { Prose(value.map(figure.unit.text) ?? "–") }
      let ratio = ours.flatMap { ours in theirs.flatMap { ours == $0 ? 1 : Reporting.ratio(ours, to: $0) } }
      table.add(.code(figure.name), text(ours), text(theirs), Prose(ratio.map { decimal($0, 3) } ?? "–"))
    }
    // The address of the gateway and the options of the output do not affect the numbers.
    let differences = SetupDifference.between([result], [baseline])
      .filter { !["gateway", "identity", "threshold", "timeline"].contains($0.name) }
    var blocks: [Block] = Measures([.init("this run", result), .init("baseline", baseline)]).warnings
      .map { .callout(.warning, Prose($0.prefix(1).uppercased() + $0.dropFirst() + ".")) }
    if differences.isEmpty {
      blocks.append(.paragraph("Both runs were made on the same machine, with the same software, plan and seed."))
    } else {
      blocks.append(.callout(.warning, "The runs differ in more than their outcome; a ratio may be due to that."))
      var changed = Table([.init("setting"), .init("this run"), .init("baseline")])
      for difference in differences {
        changed.add(
          .code(difference.name), Prose(difference.a.joined(separator: ", ")),
          Prose(difference.b.joined(separator: ", ")))
      }
      blocks.append(.table(changed))
    }
    blocks.append(.table(table))
    blocks.append(
      .paragraph(
        "One run of each side cannot separate a difference from chance: equal runs on a shared machine differ by up to 15 %. Make at least \(Comparison.fewestRuns) of each, alternating, and give them to "
          + .code("apnscope compare") + ", which judges."))
    return Section("Compared with the baseline", blocks)
  }
}
