import Measurement

extension RunReport {
  /// Whether the gateway's books agree with the run's; `nil` without a ledger.
  public var booksAgree: Bool? { ledger.map { Agreement(result, $0).lines.allSatisfy(\.holds) } }

  /// The first screen: the verdict in a sentence, the picture, the figures.
  var verdict: Section {
    let rates = result.rates
    let lag = result.latency.sendLagUs
    let notifications = result.notifications
    var blocks: [Block] = [verdictSentence]
    if let picture { blocks.append(picture) }
    blocks.append(
      .figures([
        Figure(
          "written", isMeasured ? rates.writtenPerS.map(Unit.perSecond.text) ?? "–" : "–",
          note: (askedRate.map { "asked: \($0); " } ?? "")
            + (isMeasured ? "over \(Unit.seconds.text(result.measuredS))" : reasonForNoRates)),
        Figure("accepted", isMeasured ? rates.acceptedPerS.map(Unit.perSecond.text) ?? "–" : "–", note: acceptedNote),
        Figure(
          "limited by", isMeasured ? result.verdict.limitedBy.rawValue : "–",
          note: isMeasured ? limitNote : reasonForNoRates),
        Figure(
          "send lag p99", lag.count == 0 ? "–" : lag.text(lag.quantile(0.99)),
          note: lag.count == 0
            ? (isMeasured || result.merged != nil ? "nothing had a due time" : "nothing was measured")
            : "p50 \(lag.text(lag.quantile(0.5)))"
        ),
        Figure(
          "checks", !failures.isEmpty ? "\(failedCount) failed" : doubt == nil ? "all passed" : "not proven",
          note: "of \(checkCount)",
          tone: failures.isEmpty ? (doubt == nil ? .good : .warning) : .bad),
      ]))
    if let baseline { blocks.append(.callout(.neutral, Prose(beside(baseline)))) }
    blocks += failures.dropFirst().map { .callout(.bad, $0) }
    let reasons = result.verdict.reasons ?? []
    let warnings = result.warnings.filter { !reasons.contains($0) }
    if let first = warnings.first {
      let more = warnings.count > 1 ? " (and \(warnings.count - 1) more, see Warnings)" : ""
      blocks.append(.callout(.warning, Prose("\(first)\(more)")))
    }
    blocks.append(
      .paragraph(
        .strong("\(grouped(notifications.generated))")
          + " notifications were generated: \(grouped(notifications.accepted)) accepted, \(grouped(notifications.rejected)) rejected, \(grouped(notifications.unknown)) unknown, \(grouped(notifications.abandoned)) abandoned\(notifications.pruned.map { ", \(grouped($0)) pruned" } ?? ""). \(grouped(result.sendings.written)) were written, \(grouped(result.sendings.resent)) of them for a second time or more: \(grouped(result.sendings.discarded)) sendings were discarded, and \(grouped(result.sendings.unknown)) left open."
      ))
    if !result.verdict.thresholds.isEmpty {
      var table = Table([.init("threshold"), .init("value", .right), .init("")])
      for threshold in result.verdict.thresholds {
        table.add(
          .code(threshold.expression), Prose(threshold.reason ?? Self.value(of: threshold)),
          threshold.passed ? "kept" : .strong("failed"),
          tone: threshold.passed ? .good : .bad)
      }
      blocks += [.heading("Thresholds"), .table(table)]
    }
    return Section("Verdict", blocks)
  }

  /// The verdict with its reason. Further failures follow the figures.
  private var verdictSentence: Block {
    if let first = failures.first {
      let more = failures.count - 1
      let rest = more == 0 ? "" : more == 1 ? " Another failure is below." : " \(more) more failures are below."
      return .callout(.bad, first + Prose(rest))
    }
    let rate: String
    if isMeasured, let accepted = result.rates.acceptedPerS {
      rate =
        "The gateway accepted \(Unit.perSecond.text(accepted))\(askedRate.map { " of \($0) asked" } ?? ""); \(limitWords)."
    } else {
      rate = ""
    }
    if let doubt { return .callout(.warning, Prose("Not everything is proven: \(doubt). \(rate)".trimmed)) }
    let books = ledger == nil ? "The books balance" : "The books balance, and those of the gateway agree"
    let thresholds = result.verdict.thresholds.isEmpty ? "no threshold was set" : "every threshold was kept"
    return .callout(.good, Prose("\(rate) \(books); \(thresholds).".trimmed))
  }

  /// The main figures as ratios to a baseline's, in a sentence.
  private func beside(_ baseline: RunResult) -> String {
    let names = [
      ("written_per_s", "written"), ("accepted_per_s", "accepted"), ("send_lag_p99", "send lag p99"),
      ("cpu_per_notification", "processor time for each"),
    ]
    let ratios = names.compactMap { figure, words -> String? in
      guard let figure = RunFigure.named(figure), let ours = figure.value(result), let theirs = figure.value(baseline)
      else { return nil }
      let times = ours == theirs ? 1 : ratio(ours, to: theirs)
      return times.map { "\(words) × \(significant($0, 3))" }
    }
    let words = ratios.isEmpty ? "no figure is in both" : ratios.joined(separator: ", ")
    return "Beside the baseline: \(words). One run of each side cannot tell a difference from chance."
  }

  /// The counts of this side, and of both.
  var books: Section {
    var table = Table([.init("invariant"), .init("numbers")])
    for invariant in result.verdict.invariants {
      table.add(
        Prose(invariant.name), Prose(Self.withSeparators(invariant.detail)), tone: invariant.holds ? .good : .bad)
    }
    var blocks: [Block] = [.heading("Books of this side")]
    blocks.append(table.rows.isEmpty ? .paragraph("The result has no invariants.") : .table(table))
    if let ledger {
      blocks += [.heading("Books of both sides")] + agreementBlocks(with: ledger)
      if ledger.gateway.accepted > 0 {
        blocks += [.heading("Accepted notifications by delivery")] + DeviceOutcomes(ledger).blocks
      }
    }
    return Section("Books", blocks)
  }

  /// Whether the run has rates. Documents without phases have rates.
  var isMeasured: Bool { result.reasonForNoRates == nil }

  /// The reason why the verdict is not green although nothing failed. Older documents without outcomes are judged by
  /// their numbers.
  private var doubt: String? {
    switch result.verdict.outcome {
    case .proven: nil
    case .unproven, .failed: result.verdict.reasons?.first ?? "the result does not say why"
    case nil: result.notifications.accepted == 0 ? "nothing was accepted" : nil
    }
  }

  /// The failures, as sentences.
  var failures: [Prose] {
    var failures: [Prose] = []
    if result.verdict.outcome == .failed {
      failures += (result.verdict.reasons ?? []).map { "The run has failed: \($0)." }
    }
    failures += result.verdict.invariants.filter { !$0.holds }
      .map {
        let what = $0.isAboutProof ? "Not everything is proven" : "The books do not balance"
        return "\(what): \($0.name) (\(Self.withSeparators($0.detail)))."
      }
    failures += result.verdict.thresholds.filter { !$0.passed }
      .map { threshold in
        let why =
          threshold.reason.map { "was not kept: \($0)." } ?? "failed: the value is \(Self.value(of: threshold))."
        return "Threshold " + .code(threshold.expression) + " \(why)"
      }
    let lines = (ledger.map { Agreement(result, $0).lines } ?? []).filter { !$0.holds }
    if !lines.isEmpty {
      let words = lines.prefix(3).map { "\($0.name) (here \($0.ours), there \($0.theirs))" }.joined(separator: ", ")
      let more = lines.count > 3 ? " and \(lines.count - 3) more lines" : ""
      failures.append("The gateway's books differ in \(words)\(more).")
    }
    return failures
  }

  private var failedCount: Int {
    (result.verdict.outcome == .failed ? 1 : 0)
      + result.verdict.invariants.filter { !$0.holds }.count + result.verdict.thresholds.filter { !$0.passed }.count
      + (ledger.map { Agreement(result, $0).lines.filter { !$0.holds }.count } ?? 0)
  }

  private var checkCount: Int {
    (result.verdict.outcome == nil ? 0 : 1) + result.verdict.invariants.count + result.verdict.thresholds.count
      + (ledger.map { Agreement(result, $0).lines.count } ?? 0)
  }

  private var acceptedNote: String {
    let written = result.sendings.written
    guard written > 0 else { return "nothing was written" }
    return Unit.share.text(Double(result.sendings.accepted) / Double(written)) + " of the written ones"
  }

  private var limitWords: String {
    switch result.verdict.limitedBy {
    case .schedule: "no more was asked for"
    case .gateway: "the gateway took no more"
    case .generator: "the generator could send no more"
    }
  }

  private var limitNote: String {
    switch result.verdict.limitedBy {
    case .schedule: "no more was asked for"
    case .gateway: "it took no more"
    case .generator: "it could send no more"
    }
  }

  /// Text whose numbers have their thousands separated.
  private static func withSeparators(_ text: String) -> String {
    text.split(separator: " ", omittingEmptySubsequences: false).map { word in
      Int(word).map { grouped($0) } ?? String(word)
    }.joined(separator: " ")
  }

  /// The value in the unit that the threshold's name implies; in words if there was nothing to measure.
  package static func value(of threshold: RunResult.Verdict.Threshold) -> String {
    guard let value = threshold.value else { return "there was none" }
    let name = threshold.expression.prefix { !"<>=".contains($0) }.filter { $0 != " " }
    let isPercentile = ["_p50", "_p90", "_p99", "_p999", "_max"].contains { name.hasSuffix($0) }
    if isPercentile, !name.hasPrefix("loss_window") { return Unit.microseconds.text(value) }
    if name == "written_bytes_per_s" { return Unit.bytesPerSecond.text(value) }
    if name.hasSuffix("_per_s") { return Unit.perSecond.text(value) }
    if name.hasSuffix("_rate") { return Unit.share.text(value) }
    if name.hasSuffix("_bytes") { return Unit.bytes.text(value) }
    return Unit.count.text(value)
  }

  private func agreementBlocks(with ledger: Ledger) -> [Block] {
    let agreement = Agreement(result, ledger)
    var table = Table([
      .init("line"), .init("this side", .right), .init("gateway", .right), .init("rule"),
    ])
    for line in agreement.lines {
      table.add(
        Prose(line.name), Prose(line.ours), Prose(line.theirs), Prose(line.rule), tone: line.holds ? .good : .bad)
    }
    var blocks: [Block] = [.table(table)]
    if agreement.lines.contains(where: { !$0.holds }) {
      blocks.append(
        .paragraph(
          "The ledger is of everything the simulator did from its start to its end: it agrees only with a run that it had to itself."
        ))
    }
    return blocks
  }
}

extension String {
  /// Without spaces at its ends.
  fileprivate var trimmed: String {
    String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
  }
}
