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

  /// Its name in `apnscope schema`.
  public let name: String
  public let title: String
  public let form: Form
  /// Paragraphs that hold for the whole of it.
  public let text: [String]
  public let root: Shape
  /// A valid output, as short as it can be; JSON but for settings.
  public let example: String

  package init(_ name: String, title: String, form: Form, text: [String], root: Shape, example: String) {
    (self.name, self.title, self.form) = (name, title, form)
    (self.text, self.root, self.example) = (text, root, example)
  }

  /// Every described output, in the order of the pages.
  public static let all: [Schema] = [
    .records, .stories, .events, .judgements, .renderings, .result, .ledger, .capacity, .inspection, .comparison, .plan,
  ]
}
