import ArgumentParser
import CommandFiles

extension CompletionKind {
  /// Words of which an option takes several, separated by commas: the last one that was begun is completed.
  static func words(_ words: @escaping @Sendable () -> [String]) -> CompletionKind {
    .custom { _, _, typed in CompletedWords(words()).completions(of: typed) }
  }

  /// The network interfaces of this machine.
  static let interfaces = CompletionKind.shellCommand("ls /sys/class/net 2>/dev/null")
}

/// The words that can follow what was typed.
struct CompletedWords {
  private let words: [String]

  init(_ words: [String]) { self.words = words.sorted() }

  /// - Parameter typed: the value as far as it was typed: whole words, and the beginning of one.
  func completions(of typed: String) -> [String] {
    let whole = typed.lastIndex(of: ",").map { String(typed[...$0]) } ?? ""
    let begun = typed.dropFirst(whole.count)
    let used = Set(whole.split(separator: ",").map { $0.prefix { $0 != "=" } })
    return words.filter { word in word.hasPrefix(begun) && !used.contains(word.prefix { $0 != "=" }) }.map {
      whole + $0
    }
  }
}

/// The completion scripts of the library, with what it leaves out: the commands that `help` takes, and, in bash, that
/// nothing is put behind a word that goes on.
enum CompletionScript {
  static let option = "--generate-completion-script"

  /// The shell whose script is asked for; `nil`: none is.
  static func shell(askedForBy arguments: [String]) -> CompletionShell? {
    if let name = arguments.first, name.hasPrefix(option + "=") {
      return CompletionShell(rawValue: String(name.dropFirst(option.count + 1)))
    }
    guard arguments.count == 2, arguments[0] == option else { return nil }
    return CompletionShell(rawValue: arguments[1])
  }

  static func text(for shell: CompletionShell) -> String {
    let script = Apnscope.completionScript(for: shell)
    let names = Apnscope.configuration.subcommands.map { $0._commandName }
    switch shell {
    case .bash: return bash(script, names)
    case .fish: return fish(script, names)
    case .zsh: return zsh(script, names)
    default: return script
    }
  }

  private static func bash(_ script: String, _ names: [String]) -> String {
    var lines = script.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if let start = lines.firstIndex(of: "_apnscope_help() {"),
      let end = lines[start...].firstIndex(of: "}")
    {
      lines.insert(
        "    [[ \"${COMP_CWORD}\" -eq 2 ]] && COMPREPLY+=($(compgen -W '\(names.joined(separator: " "))' -- \"${cur}\"))",
        at: end)
    }
    if let last = lines.lastIndex(where: { $0.hasPrefix("complete ") && $0.contains(" -F _apnscope ") }) {
      lines[last] = lines[last].replacing(" -F _apnscope ", with: " -F _apnscope_words ")
      lines.insert(
        contentsOf: [
          "_apnscope_words() {", "    _apnscope \"$@\"", "    # A word that goes on has no space behind it.",
          "    [[ \"${#COMPREPLY[@]}\" -eq 1 && \"${COMPREPLY[0]}\" = *['=<>:'] ]] && compopt -o nospace 2>/dev/null",
          "    return 0", "}", "",
        ], at: last)
    }
    return lines.joined(separator: "\n")
  }

  /// Fish merges the lines of a command.
  private static func fish(_ script: String, _ names: [String]) -> String {
    var text = script
    if !text.hasSuffix("\n") { text += "\n" }
    return text
      + "complete -c apnscope -n '__fish_seen_subcommand_from help; and test (count (commandline -opc)) -eq 2' -fa '\(names.joined(separator: " "))'\n"
  }

  private static func zsh(_ script: String, _ names: [String]) -> String {
    var lines = script.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if let start = lines.firstIndex(where: { $0.hasPrefix("_apnscope_help() {") }),
      let end = lines[start...].firstIndex(of: "}")
    {
      lines.insert(
        "    (( CURRENT == 2 )) && compadd -- \(names.joined(separator: " ")) && ret=0", at: max(start + 1, end - 1))
    }
    return lines.joined(separator: "\n")
  }
}
