/// A report as a document: its content without its appearance.
///
/// `html` is a self-contained page: no network, no other file. Its script shows the charts' values and zooms; without
/// it everything is there. `markdown(charts:)` is for Git hosts, with the charts as separate SVG files. All text is
/// escaped in both.
public struct Page: Sendable, Equatable {
  /// The title, as plain text.
  public var title: String
  /// One line below the title.
  package var subtitle: Prose
  package var sections: [Section]
  /// The last line, in small letters: how the page was made.
  package var footer: Prose

  package init(title: String, subtitle: Prose = "", sections: [Section], footer: Prose = "") {
    self.title = title
    self.subtitle = subtitle
    self.sections = sections
    self.footer = footer
  }

  /// All charts in order, as `markdown` numbers them from 1.
  package var charts: [Chart] {
    sections.flatMap(\.blocks).flatMap { block -> [Chart] in
      if case .charts(let charts, title: _, caption: _) = block { return charts }
      return []
    }
  }
}

/// A part of a page, with an entry in its table of contents.
package struct Section: Sendable, Equatable {
  package var title: String
  package var blocks: [Block]
  /// Whether the page shows only its title until a reader unfolds it; in print it is unfolded.
  package var isFolded: Bool

  package init(_ title: String, _ blocks: [Block], isFolded: Bool = false) {
    self.title = title
    self.blocks = blocks
    self.isFolded = isFolded
  }

  var folded: Section { Section(title, blocks, isFolded: true) }
}

package enum Block: Sendable, Equatable {
  /// Inside a section.
  case heading(String)
  case paragraph(Prose)
  case list([Prose])
  /// The few numbers that a reader came for, in large letters.
  case figures([Figure])
  case table(Table)
  case values([Value])
  /// Charts with one axis, the first above the others, with a title and a caption, which may be empty.
  case charts([Chart], title: String, caption: Prose)
  case callout(Tone, Prose)
  case preformatted(String)

  package static func chart(_ chart: Chart, caption: Prose = "") -> Block {
    .charts([chart], title: chart.title, caption: caption)
  }

  /// Charts over each other: the last alone has labels on their common axis.
  ///
  /// - Parameter title: by default that of the first.
  static func stack(_ charts: [Chart], title: String? = nil, caption: Prose = "") -> Block {
    var charts = charts
    for index in charts.indices.dropLast() { charts[index].hidesTicks = true }
    return .charts(charts, title: title ?? charts.first?.title ?? "", caption: caption)
  }
}

/// The judgement that a text conveys; shown by colour and by a sign or word.
package enum Tone: Sendable, Equatable { case neutral, good, bad, warning }

/// A number in large letters.
package struct Figure: Sendable, Equatable {
  package var name: String
  package var value: String
  /// A note in small letters: an interval, the requested value.
  package var note: String
  package var tone: Tone

  package init(_ name: String, _ value: String, note: String = "", tone: Tone = .neutral) {
    self.name = name
    self.value = value
    self.note = note
    self.tone = tone
  }
}

/// A name and its value.
package struct Value: Sendable, Equatable {
  package var name: String
  package var text: Prose

  package init(_ name: String, _ text: Prose) {
    self.name = name
    self.text = text
  }
}

package struct Table: Sendable, Equatable {
  package enum Alignment: Sendable { case left, right }

  package struct Column: Sendable, Equatable {
    package var name: String
    package var alignment: Alignment

    package init(_ name: String, _ alignment: Alignment = .left) {
      self.name = name
      self.alignment = alignment
    }
  }

  package struct Row: Sendable, Equatable {
    package var cells: [Prose]
    package var tone: Tone
    /// A longer text of the row, below its cells.
    package var note: Prose

    package init(_ cells: [Prose], tone: Tone = .neutral, note: Prose = "") {
      self.cells = cells
      self.tone = tone
      self.note = note
    }
  }

  package var columns: [Column]
  package var rows: [Row]

  package init(_ columns: [Column], _ rows: [Row] = []) {
    self.columns = columns
    self.rows = rows
  }

  /// The first column is text, the others are numbers.
  package static func numbers(_ names: [String], _ rows: [[String]]) -> Table {
    Table(
      names.enumerated().map { Column($1, $0 == 0 ? .left : .right) }, rows.map { Row($0.map { Prose($0) }) })
  }

  package mutating func add(_ cells: Prose..., tone: Tone = .neutral) { rows.append(Row(cells, tone: tone)) }
}

/// Text with some of it strong or code.
package struct Prose: Sendable, Equatable, ExpressibleByStringInterpolation {
  package enum Style: Sendable { case plain, strong, code }

  package struct Run: Sendable, Equatable {
    package var text: String
    package var style: Style
  }

  package private(set) var runs: [Run]

  package init(_ text: String, _ style: Style = .plain) { runs = text.isEmpty ? [] : [Run(text: text, style: style)] }
  package init(stringLiteral text: String) { self.init(text) }

  package static func strong(_ text: String) -> Prose { Prose(text, .strong) }
  package static func code(_ text: String) -> Prose { Prose(text, .code) }

  package static func + (a: Prose, b: Prose) -> Prose {
    var sum = a
    sum.runs += b.runs
    return sum
  }

  package var isEmpty: Bool { runs.isEmpty }
  /// The text without styles.
  package var text: String { runs.map(\.text).joined() }
}
