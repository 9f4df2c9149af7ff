import Glibc

/// Charts and texts about the savings of batches, for a run and for a capacity search.
extension Chart {
  /// Processor time of a notification over the number that is written at once, in microseconds, with the curve that was
  /// fitted to it.
  static func batchCost(_ points: [Point], fit: BatchCost?) -> Chart {
    let sizes = points.map(\.x).filter { $0.isFinite && $0 > 0 }
    let (least, most) = (sizes.min() ?? 1, sizes.max() ?? 1)
    var x = Axis("notifications in one write", unit: .count, includesZero: false)
    if most >= 4 * least {
      x.layout = .logarithmic
    } else {
      // A minimum width, so that nearly equal sizes do not look far apart.
      x.bounds = least * 0.75...most * 1.25
    }
    let costs = points.map(\.y).filter { $0.isFinite && $0 > 0 }
    let isFar = (costs.max() ?? 1) > 20 * (costs.min() ?? 1)
    var marks = [Mark.points("measured", points)]
    if let fit, most > least {
      let curve = (0...120).compactMap { step -> Point? in
        let batch = least * pow(most / least, Double(step) / 120)
        return fit.cost(batch: batch).map { Point(batch, $0) }
      }
      marks.insert(.line("F/b + V", curve, color: .orange, isDashed: true), at: 0)
    }
    return Chart(
      title: "Processor time of the generator for a notification", x: x,
      y: Axis("processor time", unit: .microseconds, layout: isFar ? .logarithmic : .linear), marks: marks)
  }
}

extension BatchCost {
  /// The fit of costs in microseconds, with 95 % intervals; empty when it is not significant.
  var values: [Value] {
    guard isConclusive else { return [] }
    func text(_ value: Double, _ halfWidth: Double?) -> Prose {
      Prose(Unit.microseconds.text(value) + (halfWidth.map { " ± " + Unit.microseconds.text($0) } ?? ""))
    }
    return [
      Value("F, a write", text(perWrite, perWriteHalfWidth)),
      Value("V, a notification", text(perNotification, perNotificationHalfWidth)),
      Value("R²", Prose(significant(rSquared, 4))),
    ]
  }

  /// The reason why the fit is inconclusive; `nil` if it is conclusive.
  var reasonToHide: String? {
    if isConclusive { return nil }
    if perWriteHalfWidth == nil { return "F and V are not shown: too few points to estimate their errors" }
    return
      "F and V are not shown: R² is \(significant(max(0, rSquared), 2)), and below \(significant(Self.leastRSquared, 1)) batches explain too little of the differences"
  }
}
