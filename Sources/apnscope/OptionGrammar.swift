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
  /// Long option names by their short ones.
  private(set) var longNames: [String: String] = [:]

  /// Describing a command takes as long as printing its help, so call it only when needed.
  init(of command: any ParsableArguments.Type) throws {
    for argument in try CommandDescription(of: command).arguments where argument.kind != "positional" {
      // Only options whose value can be left out are declared with this strategy.
      let form =
        argument.kind == "flag"
        ? Form.flag
        : argument.parsingStrategy == "scanningForValue"
          ? .flagWithValue : .option(isRepeating: argument.isRepeating)
      for name in argument.names ?? [] {
        if name.kind == "long" { forms[name.name] = form } else { longNames[name.name] = argument.longName }
      }
    }
  }

  /// The long names of the options that are typed, also by their short names (`-c 8`, `-c8`, `-qc 8`).
  ///
  /// A value that looks like an option counts as one, which the parser refuses.
  func names(in typed: some Sequence<String>) -> Set<String> {
    var names: Set<String> = []
    for argument in typed.prefix(while: { $0 != "--" }) {
      if argument.hasPrefix("--") {
        names.insert(String(argument.dropFirst(2).prefix { $0 != "=" }))
      } else if argument.hasPrefix("-") {
        for letter in argument.dropFirst() {
          guard let name = longNames[String(letter)] else { break }
          names.insert(name)
          guard case .flag? = forms[name] else { break }
        }
      }
    }
    return names
  }

  mutating func remove(_ names: some Sequence<String>) {
    for name in names { forms[name] = nil }
  }
}

/// A command's description by the argument parser, as far as it is needed.
struct CommandDescription: Decodable {
  struct Name: Decodable {
    var kind: String
    var name: String

    /// With its dashes.
    var typed: String { kind == "long" ? "--\(name)" : "-\(name)" }
  }

  struct Argument: Decodable {
    var kind: String
    var isRepeating: Bool
    var isOptional: Bool
    var shouldDisplay: Bool
    var parsingStrategy: String?
    var names: [Name]?
    var valueName: String?
    var sectionTitle: String?
    var abstract: String?

    var longName: String? { names?.first { $0.kind == "long" }?.name }
  }

  private struct Command: Decodable {
    var abstract: String?
    var arguments: [Argument]?
  }

  private var command: Command

  var abstract: String { command.abstract ?? "" }
  var arguments: [Argument] { command.arguments ?? [] }

  init(of command: any ParsableArguments.Type) throws {
    self = try JSONDecoder().decode(Self.self, from: Data(command._dumpHelp().utf8))
  }
}
