/// The fields of one kind of output.
///
/// It is the only description of that output: the page in `Documentation`, the JSON Schema, the manual page and the
/// test that checks every output are derived from it.
public struct Schema: Sendable, Equatable {
  /// How the output is written.
  public enum Form: Sendable {
    /// One JSON document.
    case document
    /// JSON Lines: each line is of the root's shape.
    case lines
    /// A TOML file, in which any setting can be left out; JSON documents have the same settings in an object.
    case settings
  }

  /// The name in `apnscope schema`.
  public let name: String
  /// The title of the page.
  public let title: String
  /// How the output is written.
  public let form: Form
  /// Paragraphs about the output as a whole, in Markdown.
  public let text: [String]
  /// The shape of the document, or of each line.
  public let root: Shape
  /// A valid output, as short as possible; TOML for settings, otherwise JSON.
  public let example: String

  package init(_ name: String, title: String, form: Form, text: [String], root: Shape, example: String) {
    (self.name, self.title, self.form) = (name, title, form)
    (self.text, self.root, self.example) = (text, root, example)
  }

  /// Every described output, in the order of the pages.
  public static let all: [Schema] = [
    .records, .stories, .events, .loadLog, .judgements, .renderings, .result, .ledger, .fleet, .received,
    .capacity, .inspection, .comparison, .plan,
  ]
}
