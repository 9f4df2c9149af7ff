import CommandFiles
import Synchronization

/// Redacts the words of a command line with `--redact` in output and messages: file names, tokens, topics and filters
/// are private.
enum RedactedArguments {
  /// Whether the command line contains `--redact`.
  static let isOn = CommandLine.arguments.prefix { $0 != "--" }.contains("--redact")

  /// A command line reduced to its option names.
  static func command(_ words: [String]) -> [String] {
    var result: [String] = []
    var areOptions = true
    for (index, word) in words.enumerated() {
      if word == "--" { areOptions = false }
      if index < 2 && !word.hasPrefix("-") || word == "--" || word == "-" {
        result.append(word)
      } else if areOptions, let option = option(word) {
        result.append(word.contains("=") ? option + "=redacted" : option)
      } else {
        result.append("redacted")
      }
    }
    return result
  }

  /// The name of an option, `--token` of `--token=3b1d`; `nil` for any other word.
  private static func option(_ word: String) -> String? {
    let name = word.prefix { $0 != "=" }
    if name.hasPrefix("--") {
      let isName = name.count > 2 && name.dropFirst(2).allSatisfy { ("a"..."z").contains($0) || $0 == "-" }
      return isName ? String(name) : nil
    }
    return name.count == 2 && name.hasPrefix("-") && name.last?.isASCII == true ? String(name) : nil
  }

  // MARK: messages

  /// Names of files of folders that were read.
  private static let found = Mutex<[String]>([])

  /// Notes a name that no message is to repeat.
  static func hide(_ name: String) {
    if isOn { found.withLock { $0.append(name) } }
  }

  /// A message without the words of the command line, if this contains `--redact`.
  static func redacted(_ text: String) -> String {
    guard isOn else { return text }
    var text = text
    let names = found.withLock { $0 }
    let whole = values + names.map { ($0, "a file of it") }
    // The longest first: one value may be the beginning of another.
    for (value, placeholder) in whole.sorted(by: { $0.0.count > $1.0.count }) {
      text = replacing(value, by: placeholder, in: text)
    }
    return maskingPieces(of: whole.map(\.0), in: text)
  }

  /// Each value of the command line, and its placeholder.
  private static let values: [(String, String)] = {
    var values: [(String, String)] = []
    let commands = Apnscope.configuration.subcommands.map { $0._commandName }
    for (index, word) in CommandLine.arguments.enumerated().dropFirst() where word != "-" && word != "--" {
      if index == 1, commands.contains(word) { continue }
      let placeholder = "argument \(index)"
      let value = option(word) == nil ? word[...] : word.drop { $0 != "=" }.dropFirst()
      if !value.isEmpty { values.append((String(value), value.hasSuffix("/") ? placeholder + "/" : placeholder)) }
      // A folder's name may be written with a slash or without.
      if value.count > 1, value.hasSuffix("/") { values.append((String(value.dropLast()), placeholder)) }
    }
    return values + ArgumentBytes.shownNames.map { ($0, "an argument") }
  }()

  private static func isOfWord(_ character: Character?) -> Bool {
    character.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false
  }

  /// Replaces a value where it is not part of a longer word.
  private static func replacing(_ value: String, by placeholder: String, in text: String) -> String {
    // A value of one or two letters may occur in any message; only in quotes or before a colon is it surely the
    // value.
    if value.count < 3 {
      let quoted = text.split(separator: "'\(value)'", omittingEmptySubsequences: false).joined(
        separator: "'\(placeholder)'")
      return quoted.hasPrefix(value + ":") ? placeholder + quoted.dropFirst(value.count) : quoted
    }
    var (result, rest) = ("", text[...])
    while let range = rest.firstRange(of: value) {
      let before = range.lowerBound > rest.startIndex ? rest[rest.index(before: range.lowerBound)] : result.last
      let after = range.upperBound < rest.endIndex ? rest[range.upperBound] : nil
      let isWhole =
        !(isOfWord(before) && isOfWord(value.first)) && !(isOfWord(after) && isOfWord(value.last))
      result += rest[..<range.lowerBound] + (isWhole ? placeholder : String(rest[range]))
      rest = rest[range.upperBound...]
    }
    return result + rest
  }

  /// Words that a value may have in common with a message.
  private static let common: Set<String> = [
    "argument", "capture", "captures", "client", "file", "folder", "host", "input", "json", "jsonl", "key", "keys",
    "log",
    "output", "pcap", "pcapng", "port", "record", "records", "report", "server", "tcp", "token", "topic", "trace",
    "zst",
    "redacted",
  ]

  /// Masks words related to a part of a value, such as a folder's name or a word of a filter: the part itself, a word
  /// that it begins with, and a word that contains it.
  private static func maskingPieces(of values: [String], in text: String) -> String {
    let pieces = Set(values.flatMap { $0.split { !isOfWord($0) }.map(String.init) }.filter { $0.count >= 3 })
      .subtracting(common)
    let long = pieces.filter { $0.count > 4 }
    var result = ""
    var rest = text[...]
    while let first = rest.first {
      let isWord = isOfWord(first)
      let word = String(rest.prefix { isOfWord($0) == isWord })
      rest = rest.dropFirst(word.count)
      let isPart = word.count > 4 && long.contains { $0.hasPrefix(word) || word.contains($0) }
      let isPiece = isWord && (pieces.contains(word) || isPart)
      result += isPiece ? String(repeating: "x", count: word.count) : word
    }
    return result
  }
}
