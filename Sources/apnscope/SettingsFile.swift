import ArgumentParser
import Bytes

/// A TOML file that sets a command's options: its settings become arguments, so that every option has one meaning, one
/// default and one check.
///
/// A key is the option's name with `_` for `-`; a table's name goes before its keys: `delay` in `[response]` is
/// `--response-delay`. `true` sets a flag. Each table of a `[[list]]` is one use of the option: `[[reject]]` with
/// `every = 1000` and `status = 8` is `--reject every=1000,status=8`. For a repeatable option each value of a list is
/// one use, too; for other options the values are joined with commas: `pieces = [1, 2, 3]`.
struct SettingsFile {
  /// Longest file in bytes.
  private static let maximumLength = 1 << 20

  private let path: String
  private let table: [String: TOMLValue]

  /// Reports an error and throws an exit code if the file cannot be read or is not valid TOML; the latter with line and
  /// column.
  init(path: String) throws {
    self.path = path
    let bytes: [UInt8]
    do {
      bytes = try WholeFile.read(path, maximumLength: Self.maximumLength)
    } catch {
      complain("\(path): \(error)")
      throw ExitStatus.cannotOpen
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      complain("\(path): is not UTF-8")
      throw ExitStatus.damaged
    }
    do throws(TOMLValue.ParseError) {
      table = try TOMLValue(parsing: text).table ?? [:]
    } catch {
      complain("\(path):\(error.line):\(error.column): \(error.description)")
      throw ExitStatus.damaged
    }
  }

  /// A command with the settings of the file and the typed arguments, which take precedence: the file's values for
  /// typed options are dropped.
  ///
  /// - Parameters:
  ///   - excluded: options that a file may not set, besides help and version.
  ///   - alternatives: options that exclude others: typing one side of a pair overrides the other side.
  func merged<Command: ParsableCommand>(
    into command: Command.Type, named name: String, except excluded: Set<String>, alternatives: [(String, [String])]
  ) throws -> Command {
    let typed = CommandLine.arguments.drop { $0 != name }.dropFirst()
    var grammar = try OptionGrammar(of: command)
    let names = grammar.names(in: typed)
    var overridden = names
    for (one, others) in alternatives {
      if names.contains(one) { overridden.formUnion(others) }
      if !names.isDisjoint(with: others) { overridden.insert(one) }
    }
    grammar.remove(excluded.union(["help", "version"]))
    let arguments = try arguments(grammar, overridden: overridden)
    do {
      return try Command.parse(arguments + typed)
    } catch {
      // The typed arguments parse by themselves, so the file's are at fault.
      complain("\(path): \(Command.message(for: error))")
      throw ExitStatus.damaged
    }
  }

  /// The arguments, in the order of the keys. Unknown keys are errors with a suggestion.
  ///
  /// - Parameter overridden: options to omit, because they are set elsewhere.
  func arguments(_ grammar: OptionGrammar, overridden: Set<String>) throws -> [String] {
    try arguments(table, prefix: "", grammar, overridden)
  }

  private func arguments(
    _ table: [String: TOMLValue], prefix: String, _ grammar: OptionGrammar, _ overridden: Set<String>
  ) throws -> [String] {
    var arguments: [String] = []
    for key in table.keys.sorted() {
      let name = prefix + key.replacing("_", with: "-")
      guard let value = table[key] else { continue }
      if let inner = value.table {
        arguments += try self.arguments(inner, prefix: name + "-", grammar, overridden)
        continue
      }
      guard let form = grammar.forms[name] else { throw unknown(name, grammar) }
      let uses =
        switch form {
        case .flag: try flag(name, value)
        case .flagWithValue where value.string == nil: try flag(name, value)
        // As two words: an attached value is lost if an option follows.
        case .flagWithValue: ["--\(name)", try text(name, value)]
        case .option(let isRepeating): try uses(of: name, value, isRepeating: isRepeating)
        }
      if !overridden.contains(name) { arguments += uses }
    }
    return arguments
  }

  private func flag(_ name: String, _ value: TOMLValue) throws -> [String] {
    guard let isOn = value.bool else { throw mistake(name, "is true or false") }
    return isOn ? ["--\(name)"] : []
  }

  private func uses(of name: String, _ value: TOMLValue, isRepeating: Bool) throws -> [String] {
    guard let list = value.array else { return [use(name, try text(name, value))] }
    if list.contains(where: { $0.table != nil }) {
      return try list.map { element in
        guard let table = element.table else { throw mistake(name, "mixes tables and values") }
        return use(
          name, try table.keys.sorted().map { "\($0)=\(try text("\(name).\($0)", table[$0]))" }.joined(separator: ","))
      }
    }
    let values = try list.map { try text(name, $0) }
    return isRepeating ? values.map { use(name, $0) } : [use(name, values.joined(separator: ","))]
  }

  /// The option and its value as one word, so that a value may begin with a hyphen.
  private func use(_ name: String, _ value: String) -> String { "--\(name)=\(value)" }

  private func text(_ name: String, _ value: TOMLValue?) throws -> String {
    if let text = value?.string { return text }
    if let number = value?.int { return "\(number)" }
    if let number = value?.double { return "\(number)" }
    throw mistake(name, "takes a text or a number")
  }

  private func mistake(_ name: String, _ problem: String) -> ExitCode {
    complain("\(path): '\(name.replacing("-", with: "_"))' \(problem)")
    return ExitStatus.damaged
  }

  private func unknown(_ name: String, _ grammar: OptionGrammar) -> ExitCode {
    let hint =
      nearest(name, of: grammar.forms.keys)
      .map { "; did you mean '\($0.replacing("-", with: "_"))'?" } ?? ""
    complain("\(path): unknown setting '\(name.replacing("-", with: "_"))'\(hint)")
    return ExitStatus.damaged
  }
}

/// The name that may be meant by an unknown one, or all names: what an error says last.
func hint(_ typed: String, of names: [String]) -> String {
  nearest(typed, of: names).map { "Did you mean '\($0)'?" } ?? "Available: \(names.joined(separator: ", "))."
}

/// The most similar name; `nil` unless at least half of the typed letters match.
func nearest(_ typed: String, of names: some Sequence<String>) -> String? {
  guard let (changes, name) = names.map({ (distance($0, typed), $0) }).min(by: { $0 < $1 }) else { return nil }
  return changes <= 3 && 2 * changes <= typed.count ? name : nil
}

/// The number of letters to insert, delete or replace to turn one word into the other (Levenshtein).
func distance(_ a: String, _ b: String) -> Int {
  let (a, b) = (Array(a), Array(b))
  var row = Array(0...b.count)
  for (i, letter) in a.enumerated() {
    var diagonal = row[0]
    row[0] = i + 1
    for (j, other) in b.enumerated() {
      let least = min(row[j] + 1, row[j + 1] + 1, diagonal + (letter == other ? 0 : 1))
      diagonal = row[j + 1]
      row[j + 1] = least
    }
  }
  return row[b.count]
}
