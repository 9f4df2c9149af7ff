/// A report as a document: its content without its appearance.
///
/// `html` is one page that needs nothing else: no network, no other file, no script. `markdown(charts:)` is the same for a
/// Git host, with the charts as SVG files beside it. All text is escaped in both.
public struct Page: Sendable, Equatable {
  public var title: String
  /// One line below the title.
  public var subtitle: Prose
  public var sections: [Section]
  /// At the end, in small letters: how the page was made.
  public var footer: Prose

  public init(title: String, subtitle: Prose = "", sections: [Section], footer: Prose = "") {
    self.title = title
    self.subtitle = subtitle
    self.sections = sections
    self.footer = footer
  }

  /// All charts in order, as `markdown` numbers them from 1.
  public var charts: [Chart] {
    sections.flatMap(\.blocks).compactMap { if case .chart(let chart, _) = $0 { chart } else { nil } }
  }
}

/// A part of a page, with an entry in its table of contents.
public struct Section: Sendable, Equatable {
  public var title: String
  public var blocks: [Block]

  public init(_ title: String, _ blocks: [Block]) {
    self.title = title
    self.blocks = blocks
  }
}

public enum Block: Sendable, Equatable {
  /// Inside a section.
  case heading(String)
  case paragraph(Prose)
  case list([Prose])
  /// The few numbers that a reader came for, in large letters.
  case figures([Figure])
  case table(Table)
  case values([Value])
  /// A chart with a caption, which may be empty.
  case chart(Chart, caption: Prose)
  case callout(Tone, Prose)
  case preformatted(String)

  public static func chart(_ chart: Chart) -> Block { .chart(chart, caption: "") }
}

/// How something is to be taken; shown by colour and by a sign or word.
public enum Tone: Sendable, Equatable { case neutral, good, bad, warning }

/// A number in large letters.
public struct Figure: Sendable, Equatable {
  public var name: String
  public var value: String
  /// A note in small letters: an interval, the requested value.
  public var note: String
  public var tone: Tone

  public init(_ name: String, _ value: String, note: String = "", tone: Tone = .neutral) {
    self.name = name
    self.value = value
    self.note = note
    self.tone = tone
  }
}

/// A name and its value.
public struct Value: Sendable, Equatable {
  public var name: String
  public var text: Prose

  public init(_ name: String, _ text: Prose) {
    self.name = name
    self.text = text
  }
}

public struct Table: Sendable, Equatable {
  public enum Alignment: Sendable { case left, right }

  public struct Column: Sendable, Equatable {
    public var name: String
    public var alignment: Alignment

    public init(_ name: String, _ alignment: Alignment = .left) {
      self.name = name
      self.alignment = alignment
    }
  }

  public struct Row: Sendable, Equatable {
    public var cells: [Prose]
    public var tone: Tone

    public init(_ cells: [Prose], tone: Tone = .neutral) {
      self.cells = cells
      self.tone = tone
    }
  }

  public var columns: [Column]
  public var rows: [Row]

  public init(_ columns: [Column], _ rows: [Row] = []) {
    self.columns = columns
    self.rows = rows
  }

  /// The first column is text, the others are numbers.
  public static func numbers(_ names: [String], _ rows: [[String]]) -> Table {
    Table(
      names.enumerated().map { Column($1, $0 == 0 ? .left : .right) }, rows.map { Row($0.map { Prose($0) }) })
  }

  public mutating func add(_ cells: Prose..., tone: Tone = .neutral) { rows.append(Row(cells, tone: tone)) }
}

/// Text with some of it strong or code.
public struct Prose: Sendable, Equatable, ExpressibleByStringInterpolation {
  public enum Style: Sendable { case plain, strong, code }

  public struct Run: Sendable, Equatable {
    public var text: String
    public var style: Style
  }

  public private(set) var runs: [Run]

  public init(_ text: String, _ style: Style = .plain) { runs = text.isEmpty ? [] : [Run(text: text, style: style)] }
  public init(stringLiteral text: String) { self.init(text) }

  public static func strong(_ text: String) -> Prose { Prose(text, .strong) }
  public static func code(_ text: String) -> Prose { Prose(text, .code) }

  public static func + (a: Prose, b: Prose) -> Prose {
    var sum = a
    sum.runs += b.runs
    return sum
  }

  public var isEmpty: Bool { runs.isEmpty }
  /// Without styles.
  public var text: String { runs.map(\.text).joined() }
}
