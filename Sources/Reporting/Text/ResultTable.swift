import Bytes
import Measurement

/// A table of a run's result as CSV (RFC 4180, line feeds): a header, then one line a row. An absent value is an empty
/// cell; names and units are those of the JSON document.
package struct ResultTable: Sendable {
  /// The tables of a result.
  package enum Content: String, CaseIterable, Sendable {
    /// A row for each second.
    case seconds
    /// A row for each span of a connection's life that the result lists.
    case connections
    /// A row for each bin of written notifications.
    case bins
  }

  package let text: String

  /// - Complexity: O(n) in the rows.
  package init(_ result: RunResult, _ content: Content) {
    let rows =
      switch content {
      case .seconds: Self.seconds(result)
      case .connections: Self.connections(result)
      case .bins: Self.bins(result)
      }
    text = rows.map { $0.joined(separator: ",") + "\n" }.joined()
  }

  private static func seconds(_ result: RunResult) -> [[String]] {
    let statuses = Set(result.series.flatMap(\.errorsByStatus.keys)).sorted()
    let header =
      [
        "t_s", "written", "writes", "accepted", "errors", "skipped", "pruned", "feedback_tuples", "opened", "closed",
        "up",
        "backlog", "send_lag_p99_us", "loop_lag_p99_us", "stalled_ms", "cpu", "rss_bytes",
      ] + statuses.map { quoted("errors_\($0)") }
    return [header]
      + result.series.map { second in
        [
          number(second.tS), "\(second.written)", optional(second.writes), "\(second.accepted)", "\(second.errors)",
          "\(second.skipped)", optional(second.pruned), optional(second.feedbackTuples), "\(second.opened)",
          "\(second.closed)", "\(second.up)", "\(second.backlog)", "\(second.sendLagP99Us)", "\(second.loopLagP99Us)",
          second.stalledMs.map(number) ?? "", number(second.cpu), "\(second.rssBytes)",
        ] + statuses.map { "\(second.errorsByStatus[$0] ?? 0)" }
      }
  }

  private static func connections(_ result: RunResult) -> [[String]] {
    [["connection", "state", "from_s", "to_s"]]
      + result.timeline.spans.map { ["\($0.connection)", $0.state.rawValue, number($0.fromS), number($0.toS)] }
  }

  private static func bins(_ result: RunResult) -> [[String]] {
    let bins = result.bins ?? RunResult.Bins()
    return [["from_s", "written"]]
      + bins.written.enumerated().map { [number(bins.fromS + Double($0) * bins.lengthS), "\($1)"] }
  }

  private static func optional(_ count: Int?) -> String { count.map(String.init) ?? "" }

  /// Microseconds are the finest that a result has.
  private static func number(_ value: Double) -> String {
    guard value.isFinite else { return "" }
    return fixed(value, 6)
  }

  /// Statuses of a document are any text.
  private static func quoted(_ text: String) -> String {
    "\"\(ControlCharacters.escaped(text).replacing("\"", with: "\"\""))\""
  }
}
