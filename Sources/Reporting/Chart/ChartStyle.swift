extension Chart {
  /// The style of a chart's classes: once per page, or inside an SVG that stands alone.
  ///
  /// Light and dark by `prefers-color-scheme`. On narrow screens the text of a chart is drawn larger, because it
  /// shrinks with the picture; labels that would then overlap are omitted.
  package static let style = String(decoding: PackageResources.chart_css, as: UTF8.self)

  /// The chart as a standalone file, with its style.
  package var svg: String { drawn(isFile: true) }

  /// The picture as a part of a page that has `Chart.style`.
  package var inlineSVG: String { drawn(isFile: false) }

  private func drawn(isFile: Bool) -> String {
    var chart = self
    // A file stands alone.
    if isFile { chart.hidesTicks = false }
    var drawing = Drawing(chart)
    drawing.draw()
    let height = Markup.number(drawing.layout.fullHeight)
    // A file states its size; in a page the chart fills the available width, and the page's script reads its values.
    let rest =
      isFile ? " width=\"720\" height=\"\(height)\"" : " data-chart=\"\(Markup.escaped(drawing.dataForScript))\""
    return """
      <svg class="apns-chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 \(height)"\(rest) role="img" aria-label="\(Markup.escaped("\(title). \(summary)"))"><desc>\(Markup.escaped(summary))</desc>\(isFile ? "<style>\n\(Self.style)</style>" : "")
      \(drawing.text)</svg>
      """
  }
}
