import ArgumentParser
import FoundationEssentials

/// The options of a command or an option group, as the argument parser describes them to tools
/// (`--experimental-dump-help`).
struct OptionGrammar {
  enum Form {
    case flag
    /// An option with a value, which may be repeated if `isRepeating`.
    case option(isRepeating: Bool)
    /// An option whose value may be omitted.
    case flagWithValue
  }

  /// Forms by long option name.
  private(set) var forms: [String: Form] = [:]

  /// Describing a command takes as long as printing its help, so call it only when needed.
  init(of command: any ParsableArguments.Type) throws {
    let description = try JSONDecoder().decode(Description.self, from: Data(command._dumpHelp().utf8))
    for argument in description.command.arguments ?? [] where argument.kind != "positional" {
      // Only options whose value can be left out are declared with this strategy.
      let form =
        argument.kind == "flag"
        ? Form.flag
        : argument.parsingStrategy == "scanningForValue"
          ? .flagWithValue : .option(isRepeating: argument.isRepeating)
      for name in argument.names ?? [] where name.kind == "long" { forms[name.name] = form }
    }
  }

  mutating func remove(_ names: some Sequence<String>) {
    for name in names { forms[name] = nil }
  }

  /// The part of the parser's description that is needed.
  private struct Description: Decodable {
    struct Name: Decodable {
      var kind: String
      var name: String
    }

    struct Argument: Decodable {
      var kind: String
      var isRepeating: Bool
      var parsingStrategy: String?
      var names: [Name]?
    }

    struct Command: Decodable {
      var arguments: [Argument]?
    }

    var command: Command
  }
}
