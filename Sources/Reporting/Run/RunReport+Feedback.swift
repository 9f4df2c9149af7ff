import Measurement

extension RunReport {
  /// The polls of the feedback service, and what came of their lists; `nil` when the service was not to be polled.
  var feedback: Section? {
    guard let feedback = result.feedback else { return nil }
    var blocks: [Block] = []
    if feedback.failed > 0 || feedback.incomplete > 0 || feedback.polls == 0 {
      blocks += feedback.warnings(interval: 0).prefix(feedback.polls == 0 ? 0 : 2).map { .callout(.warning, Prose($0)) }
      if feedback.polls == 0 { blocks.append(.callout(.warning, "The feedback service was not polled.")) }
    }
    blocks.append(
      .paragraph(
        "A token is listed when a list that was read to its end has it with a time after its registration, which is the start of the run. "
          + (feedback.prunes
            ? "Notifications to listed tokens were left out."
            : "Notifications to listed tokens were sent nevertheless.")
      ))
    blocks.append(.table(.numbers(["", "count"], rows(feedback))))
    if !result.series.isEmpty { blocks += feedbackOverTime(feedback) }
    return Section("Feedback", blocks)
  }

  private func rows(_ feedback: RunResult.Feedback) -> [[String]] {
    var rows = [
      ["polls", grouped(feedback.polls)], ["… read to the end of the list", grouped(feedback.complete)],
      ["… cut off", grouped(feedback.incomplete)], ["… that read nothing", grouped(feedback.failed)],
      ["tuples of lists read to the end", grouped(feedback.tuples)],
      ["… that list a token of the load", grouped(feedback.listed)],
      ["… of tokens registered since", grouped(feedback.registeredSince)],
      ["… of tokens that the load does not have", grouped(feedback.unknown)],
      ["… that were not remembered", grouped(feedback.notRemembered)],
    ]
    if feedback.incomplete > 0 { rows.append(["tuples of lists cut off", grouped(feedback.tuplesCutOff)]) }
    if let tokens = feedback.tokens { rows.append(["distinct tokens of the load", grouped(tokens)]) }
    if let listed = feedback.listedTokens { rows.append(["listed tokens", grouped(listed)]) }
    if feedback.prunes, let pruned = result.notifications.pruned {
      rows.append(["notifications left out", grouped(pruned)])
    }
    rows += [
      ["sendings to listed tokens", grouped(feedback.sentToListed)],
      ["… rejected with status 8", grouped(feedback.rejectedListed)],
      ["sendings that these rejections discarded", grouped(feedback.discardedByListed)],
      ["rejections with status 8 of other tokens", grouped(feedback.rejectedOther)],
    ]
    return rows
  }

  private func feedbackOverTime(_ feedback: RunResult.Feedback) -> [Block] {
    let polls = zip(result.series, seconds).filter { ($0.0.feedbackTuples ?? 0) > 0 }
      .map { Chart.Event(x: $0.tS + $1 / 2, count: $0.feedbackTuples ?? 0, label: "tuples") }
    let (width, rejected) = bins { $0.errorsByStatus["8"] ?? 0 }
    let written = bins(\.written).points
    let shares = zip(rejected, written).filter { $1.y > 0 }.map { Point($0.x, $0.y / $1.y) }
    let each = width == 1 ? "second" : Unit.seconds.text(width)
    var blocks: [Block] = [
      .chart(
        Chart(
          title: "Share of sendings that were rejected with status 8", x: time,
          y: Axis("share of those written in each \(each)", unit: .share),
          marks: [.line("", shares, color: .vermillion)], regions: regions, events: polls, height: 150),
        caption: polls.isEmpty
          ? "No list was read that had a token." : "Ticks on the upper edge are lists that were read to their end.")
    ]
    if feedback.prunes {
      blocks.append(
        .chart(
          Chart(
            title: "Notifications left out", x: time, y: Axis("notifications in each \(each)", unit: .count),
            marks: [.bars("", bins { $0.pruned ?? 0 }.points, width: width, color: .purple)], regions: regions,
            events: polls, height: 120)))
    }
    return blocks
  }

  /// What pruning leaves out, or would have, and what that buys, as far as it was measured.
  func pruningRows(_ table: inout Table) {
    guard let feedback = result.feedback, feedback.listed > 0 else { return }
    let notifications = result.notifications
    if feedback.prunes {
      guard let pruned = notifications.pruned, notifications.generated > 0 else { return }
      table.add(
        "Left out, because feedback lists the token",
        Prose(Unit.share.text(Double(pruned) / Double(notifications.generated))), "–",
        "\(grouped(pruned)) of \(grouped(notifications.generated)) notifications, whole run")
    } else if result.sendings.written > 0 {
      table.add(
        "Sent to tokens that feedback lists",
        Prose(Unit.share.text(Double(feedback.sentToListed) / Double(result.sendings.written))), "–",
        "\(grouped(feedback.sentToListed)) of \(grouped(result.sendings.written)) sendings, which pruning leaves out; whole run"
      )
      if feedback.rejectedListed > 0 {
        table.add(
          "Connections lost to such tokens", Prose(grouped(feedback.rejectedListed)), "–",
          "rejections with status 8, which discarded \(grouped(feedback.discardedByListed)) sendings")
      }
    }
    guard let gain = PruningGain(result, baseline: baseline) else { return }
    func text(_ value: (share: Double, range: ClosedRange<Double>)) -> String { Unit.share.text(value.share) }
    func range(_ value: (share: Double, range: ClosedRange<Double>)) -> String {
      "\(Unit.share.text(value.range.lowerBound)) to \(Unit.share.text(value.range.upperBound))"
    }
    table.add(
      "Rejected with status 8, without and with pruning", Prose("\(text(gain.without)) → \(text(gain.with))"),
      Prose("\(range(gain.without)); \(range(gain.with))"),
      gain.contrast == .baseline
        ? "the baseline, which does not prune, and this run, both after its first list was read"
        : "before and after the first list was read")
  }
}
