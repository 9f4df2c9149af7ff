import Measurement

/// Each error response as a picture: what it threw away, and when that came back.
struct LossPicture {
  /// An error response.
  struct Loss {
    /// Seconds on the chart's axis.
    var at: Double
    var discarded: Int
    /// The number of what it discarded that was sent again.
    var sentAgain: Int?
    /// Seconds from the error response until the last of it was sent again; `nil` if none was.
    var backAfter: Double?
    var words: String
  }

  var losses: [Loss]
  var time: Axis

  /// `nil` when nothing was thrown away.
  var chart: Chart? {
    let shown = losses.filter { $0.discarded > 0 && $0.at.isFinite }
    guard !shown.isEmpty else { return nil }
    func isBack(_ loss: Loss) -> Bool { loss.backAfter != nil && (loss.sentAgain ?? 0) >= loss.discarded }
    func points(_ losses: [Loss]) -> [Point] {
      losses.map { loss in
        let after = loss.backAfter.map {
          ", \(grouped(loss.sentAgain ?? 0)) of \(grouped(loss.discarded)) sent again, the last after \(Unit.seconds.text($0))"
        }
        return Point(loss.at, Double(loss.discarded), note: loss.words + (after ?? ""))
      }
    }
    // From each error to the last sending again.
    let ways = shown.flatMap { loss -> [Point] in
      guard let after = loss.backAfter, after >= 0 else { return [] }
      return [
        Point(loss.at, Double(loss.discarded)), Point(loss.at + after, Double(loss.discarded)), Point(.nan, .nan),
      ]
    }
    let values = shown.map { Double($0.discarded) }
    let isFar = (values.max() ?? 1) > 50 * (values.min() ?? 1)
    return Chart(
      title: "What each error threw away, and when it came back", x: time,
      y: Axis(
        "notifications discarded", unit: .count, layout: isFar ? .logarithmic : .linear),
      marks: [
        .line("", ways, color: .green),
        .points("all came back", points(shown.filter(isBack)), color: .green),
        .points("some did not", points(shown.filter { !isBack($0) }), color: .vermillion),
      ].filter { !$0.points.isEmpty }, height: 90)
  }

  static let caption =
    "Each dot is an error response, as high as the number of notifications that it discarded; its line ends when the last of these that came back was sent again."
}
