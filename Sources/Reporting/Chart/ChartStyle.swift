extension Chart {
  /// The style of a chart's classes: once per page, or inside an SVG that stands alone.
  ///
  /// Light and dark by `prefers-color-scheme`. On narrow screens the text of a chart is drawn larger, because it
  /// shrinks with the picture; labels that would then overlap are omitted.
  package static let style = """
    .apns-chart{--ink:#1f2328;--soft:#59636e;--grid:#e4e7eb;--axis:#9aa4af;--shade:#59636e;--ground:#fff;--c1:#0072b2;--c2:#e69f00;--c3:#009e73;--c4:#d55e00;--c5:#b5608f;--c6:#56b4e9;--c7:#b8a800;--c8:#8b949e;font:10.5px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
    @media (prefers-color-scheme:dark){.apns-chart{--ink:#e6edf3;--soft:#9da7b3;--grid:#2a3038;--axis:#59636e;--shade:#9da7b3;--ground:#0d1117;--c1:#4aa3df;--c2:#f0b429;--c3:#2fbf95;--c4:#f47b3a;--c5:#d98bb5;--c6:#8fd0f5;--c7:#f0e442;--c8:#7d8590}}
    .apns-chart text{fill:var(--soft)}.apns-chart .k{fill:var(--ink)}.apns-chart .o{paint-order:stroke;stroke:var(--ground);stroke-width:4px;stroke-linejoin:round}.apns-chart .e{text-anchor:end}.apns-chart .m{text-anchor:middle}
    .apns-chart .g{stroke:var(--grid);fill:none;vector-effect:non-scaling-stroke}.apns-chart .x{stroke:var(--axis);fill:none;vector-effect:non-scaling-stroke}
    .apns-chart .l{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round;vector-effect:non-scaling-stroke}.apns-chart .d{stroke-dasharray:5 4}
    .apns-chart .a{fill-opacity:.16;stroke:none}.apns-chart .b{fill-opacity:.24;stroke:none}.apns-chart .q{fill-opacity:.5;stroke-opacity:.5}.apns-chart .s{fill:var(--shade);fill-opacity:.08}
    .apns-chart .v{stroke:var(--c4);stroke-width:1.6;fill:none;vector-effect:non-scaling-stroke}.apns-chart .u{stroke:var(--soft);stroke-dasharray:4 4;fill:none;vector-effect:non-scaling-stroke}
    .apns-chart .h{fill:transparent}.apns-chart .h:hover{fill:var(--shade);fill-opacity:.14}
    @media (max-width:860px){.apns-chart{font-size:13px}}
    @media (max-width:560px){.apns-chart{font-size:18px}.apns-chart .w{display:none}}
    @media print{.apns-chart .h{display:none}}

    """
    + Color.allCases.map {
      ".apns-chart .c\($0.rawValue){stroke:var(--c\($0.rawValue))}.apns-chart .f\($0.rawValue){fill:var(--c\($0.rawValue))}"
    }.joined()

  /// The chart as a standalone file, with its style.
  package var svg: String { drawn(isFile: true) }

  /// The picture as a part of a page that has `Chart.style`.
  package var inlineSVG: String { drawn(isFile: false) }

  private func drawn(isFile: Bool) -> String {
    var drawing = Drawing(self)
    drawing.draw()
    let height = Markup.number(drawing.layout.fullHeight)
    // A file states its size; in a page the chart fills the available width.
    let size = isFile ? " width=\"720\" height=\"\(height)\"" : ""
    return """
      <svg class="apns-chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 \(height)"\(size) role="img" aria-label="\(Markup.escaped(title))">\(isFile ? "<style>\(Self.style)</style>" : "")
      \(drawing.text)</svg>
      """
  }
}
