/// A name and a value that a user gives a run, to find it among others: `branch=main`.
public struct RunLabel: Sendable, Equatable, Hashable {
  /// The reason why a text is no label.
  public struct SyntaxError: Error, Sendable, CustomStringConvertible {
    public let description: String
  }

  /// The most labels of a run.
  public static let most = 16
  /// The most bytes of a value.
  public static let longestValue = 256

  /// Letters, digits and underscores, not beginning with a digit; at most 64.
  public let name: String
  /// Any text without control characters, not empty.
  public let value: String

  /// Parses `NAME=VALUE`.
  ///
  /// - Throws: a `SyntaxError` if the name is none that a metric's label may have, or the value has control characters.
  public init(_ text: String) throws(SyntaxError) {
    guard let equals = text.firstIndex(of: "=") else {
      throw SyntaxError(description: "'\(text)' has no =; a label is NAME=VALUE, as branch=main")
    }
    name = String(text[..<equals])
    value = String(text[text.index(after: equals)...])
    guard Self.isName(name) else {
      throw SyntaxError(
        description: "'\(name)' is no name of a label: letters, digits and underscores, not beginning with a digit")
    }
    guard !Self.reserved.contains(name) else {
      throw SyntaxError(description: "'\(name)' is a label that metrics have already")
    }
    guard (1...Self.longestValue).contains(value.utf8.count) else {
      throw SyntaxError(description: "the value of the label '\(name)' has to have 1 to \(Self.longestValue) bytes")
    }
    guard value.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) }) else {
      throw SyntaxError(description: "the value of the label '\(name)' has control characters")
    }
  }

  /// Labels that metrics of a run have of their own.
  private static let reserved: Set<String> = ["version", "seed", "segment"]

  private static func isName(_ name: String) -> Bool {
    guard let first = name.utf8.first, name.utf8.count <= 64, !(0x30...0x39).contains(first) else { return false }
    return !name.hasPrefix("__")
      && name.utf8.allSatisfy {
        (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0) || $0 == 0x5f
      }
  }
}

extension RunResult {
  /// The labels as text: `branch=main host=a`, in the order of their names; empty without any.
  public var labelText: String {
    (labels ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
  }
}
