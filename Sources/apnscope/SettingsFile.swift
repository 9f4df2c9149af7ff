import ArgumentParser
import TOMLKit

/// A TOML file that sets a command's options: what it says becomes arguments, so that every option has one meaning, one
/// default and one check.
///
/// A key is the option's name with `_` for `-`; a table's name goes before its keys: `delay` in `[response]` is
/// `--response-delay`. `true` sets a flag, a list of values joins with commas, and each table of a `[[list]]` is one use
/// of the option: `[[reject]]` with `every = 1000` and `status = 8` is `--reject every=1000,status=8`.
struct SettingsFile {
  /// Longest file in bytes.
  private static let maximumLength = 1 << 20

  private let path: String
  private let table: TOMLTable

  /// Throws `ValidationError` with the place when it is no TOML.
  init(path: String) throws {
    self.path = path
    let text: String
    switch TextFile.read(path, maximumLength: Self.maximumLength) {
    case .success(let contents): text = contents
    case .failure(let problem):
      complain("\(path): \(problem.text)")
      throw ExitStatus.cannotOpen
    }
    do {
      table = try TOMLTable(string: text)
    } catch let error as TOMLParseError {
      let place = error.source.begin
      throw ValidationError("\(path):\(place.line):\(place.column): \(error.description)")
    }
  }

  /// The arguments, in the order of the keys. Keys that are no option of `command` are errors that suggest one that is.
  func arguments(of command: any ParsableCommand.Type, except excluded: Set<String>) throws -> [String] {
    let help = command.helpMessage(includeHidden: true, columns: 200)
    let names = Set(help.matches(of: #/--([a-z][a-z0-9-]*)/#).map { String($0.output.1) }).subtracting(excluded)
    return try arguments(table, prefix: "", names)
  }

  private func arguments(_ table: TOMLTable, prefix: String, _ names: Set<String>) throws -> [String] {
    var arguments: [String] = []
    for key in table.keys.sorted() {
      let name = prefix + key.replacing("_", with: "-")
      guard let value = table[key] else { continue }
      if let inner = value.table {
        arguments += try self.arguments(inner, prefix: name + "-", names)
        continue
      }
      guard names.contains(name) else { throw unknown(key, name, names) }
      arguments += try uses(of: name, key, value)
    }
    return arguments
  }

  private func uses(of name: String, _ key: String, _ value: any TOMLValueConvertible) throws -> [String] {
    if let isOn = value.bool { return isOn ? ["--\(name)"] : [] }
    if let list = value.array {
      if list.contains(where: { $0.table != nil }) {
        return try list.flatMap { element in
          guard let table = element.table else { throw mistake(key, "mixes tables and values") }
          let parts = try table.keys.sorted().map { "\($0)=\(try text($0, table[$0]))" }
          return ["--\(name)", parts.joined(separator: ",")]
        }
      }
      return ["--\(name)", try list.map { try text(key, $0) }.joined(separator: ",")]
    }
    return ["--\(name)", try text(key, value)]
  }

  private func text(_ key: String, _ value: (any TOMLValueConvertible)?) throws -> String {
    if let text = value?.string { return text }
    if let number = value?.int { return "\(number)" }
    if let number = value?.double { return "\(number)" }
    throw mistake(key, "takes a text or a number")
  }

  private func mistake(_ key: String, _ problem: String) -> ValidationError {
    ValidationError("\(path): '\(key)' \(problem).")
  }

  private func unknown(_ key: String, _ name: String, _ names: Set<String>) -> ValidationError {
    let nearest = names.map { (distance($0, name), $0) }.min { $0 < $1 }
    let hint = nearest.map { $0.0 <= 3 ? " Did you mean '\($0.1.replacing("-", with: "_"))'?" : "" } ?? ""
    return ValidationError("\(path): there is no setting '\(name.replacing("-", with: "_"))'.\(hint)")
  }
}

/// How many letters have to be put in, taken out or changed to get from one word to the other (Levenshtein).
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
