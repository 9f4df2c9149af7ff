import Bytes

/// Judgements by template: of the few that a provider uses, those that its latest payloads were made of.
package struct TemplateTable: Sendable {
  private struct Entry: Sendable {
    let template: PayloadTemplate
    let environment: UInt64
    var judgement: JudgementTable.Entry

    /// Counts a payload that was made of this template. In place: reading the entry out of its table would count
    /// references for each payload.
    @inline(__always)
    mutating func count(_ payload: RawSpan, environment: UInt64) -> PayloadRuleSet? {
      guard self.environment == environment, template.matches(payload) else { return nil }
      judgement.count += 1
      return judgement.rules
    }
  }

  /// The latest ones last.
  private var entries: [Entry] = []
  /// The most templates that are kept.
  private static let limit = 8
  /// The number of payloads that were judged one by one.
  private var judged = 0

  package init() {}

  /// The judgement of a payload that was made of the latest template, counted once more; `nil` if it was not.
  @inline(__always)
  package mutating func countLatest(_ payload: RawSpan, environment: UInt64) -> PayloadRuleSet? {
    entries.isEmpty ? nil : entries[entries.count - 1].count(payload, environment: environment)
  }

  /// The judgement of a payload that was made of any kept template, counted once more. The template is then the latest.
  package mutating func count(_ payload: RawSpan, environment: UInt64) -> PayloadRuleSet? {
    guard
      let index = entries.lastIndex(where: { $0.environment == environment && $0.template.matches(payload) })
    else { return nil }
    entries.append(entries.remove(at: index))
    return countLatest(payload, environment: environment)
  }

  /// Whether the template of the next payload that is judged is worth finding: of the first ones, and later of a few,
  /// because payloads without a template in common would each cost it for nothing.
  package mutating func isWanted() -> Bool {
    judged += 1
    return judged <= 64 || judged & 15 == 0
  }

  /// Keeps a template and the judgement of its payload, whose count begins at 0.
  ///
  /// - Parameter forgotten: receives a judgement that is dropped to make room.
  package mutating func add(
    _ template: PayloadTemplate, environment: UInt64, _ judgement: JudgementTable.Entry,
    forgotten: (JudgementTable.Entry) -> Void
  ) {
    if entries.count == Self.limit { forgotten(entries.removeFirst().judgement) }
    var judgement = judgement
    judgement.count = 0
    entries.append(Entry(template: template, environment: environment, judgement: judgement))
  }

  /// Calls `body` with each kept judgement, in no particular order.
  package func eachKept(_ body: (JudgementTable.Entry) -> Void) {
    for entry in entries { body(entry.judgement) }
  }
}
