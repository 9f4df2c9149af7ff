import Foundation
import TestSupport
import Testing

@testable import apnscope

/// The completions of values, in a real bash.
@Suite("completions", .waiting)
struct CompletionTests {
  /// What bash has for the last word of a line, typed up to its end; and whether it puts a space behind a single one.
  private func complete(_ line: String, in command: Command) throws -> [String] {
    let script = """
      PATH="$(dirname "$apnscope"):$PATH"
      source <(apnscope --generate-completion-script bash) || exit 3
      COMP_LINE="$1"
      COMP_POINT=${#COMP_LINE}
      # As readline does: the words of the line, and an empty one behind a space.
      read -r -a COMP_WORDS <<< "$COMP_LINE"
      [[ "$COMP_LINE" = *' ' ]] && COMP_WORDS+=('')
      COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
      COMP_TYPE=9
      function="$(complete -p apnscope)"
      function="${function##*-F }"
      "${function%% *}" apnscope "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    let outcome = try command.shell(script, [line])
    #expect(outcome.status == 0 && outcome.errors == "", "\(line): \(outcome.errors)")
    return outcome.lines
  }

  @Test(
    "Values that are known words are completed",
    arguments: [
      ("apnscope help in", ["inspect"]), ("apnscope in", ["inspect"]), ("apnscope help inspect ", []),
      ("apnscope decode --fields payload_b", ["payload_base64"]),
      ("apnscope decode --fields time,status_", ["time,status_name"]),
      ("apnscope decode --fields status_name,status_", []),
      ("apnscope follow --fields first", ["first_seen"]),
      ("apnscope load --threshold rejected_", ["rejected_rate"]),
      ("apnscope merge --threshold rejected_", ["rejected_rate"]),
      ("apnscope capacity --threshold skip", ["skipped"]),
      ("apnscope simulate --expect feedback_tu", ["feedback_tuples"]),
      ("apnscope simulate --until recei", ["received"]),
      ("apnscope load --faults over", ["oversize="]),
      ("apnscope load --faults payload=json_trail", ["payload=json_trailing_comma:"]),
      ("apnscope load --payload-kind alert,backg", ["alert,background"]),
      ("apnscope load --priority n", ["none"]), ("apnscope load --command ", ["0", "1", "2"]),
      ("apnscope load --format js", ["json"]), ("apnscope schema load-", ["load-log"]),
      ("apnscope inspect -i l", ["lo"]), ("apnscope decode --interface l", ["lo"]),
    ] as [(String, [String])])
  func words(line: String, expected: [String]) throws {
    try Command.inFolder { command in
      let found = try complete(line, in: command)
      #expect(expected == ["lo"] ? found.contains("lo") : found == expected, "\(line): \(found)")
    }
  }

  @Test("help completes to every command, and to nothing else")
  func help() throws {
    try Command.inFolder { command in
      let names = Apnscope.configuration.subcommands.map { $0._commandName }
      let found = Set(try complete("apnscope help ", in: command))
      #expect(found.isSuperset(of: names), "\(found)")
    }
  }

  @Test(
    "Of words with commas the last is completed, and none is named twice",
    arguments: [
      ("", ["a", "ab=", "c"]), ("a", ["a", "ab="]), ("c,", ["c,a", "c,ab="]), ("ab=1,a", ["ab=1,a"]), ("x", []),
    ] as [(String, [String])])
  func list(typed: String, expected: [String]) {
    #expect(CompletedWords(["c", "ab=", "a"]).completions(of: typed) == expected)
  }

  @Test("The scripts of all shells have the commands behind help", arguments: ["bash", "zsh", "fish"])
  func scripts(shell: String) throws {
    try Command.inFolder { command in
      let outcome = try command.run("--generate-completion-script", shell)
      let names = Apnscope.configuration.subcommands.map { $0._commandName }.joined(separator: " ")
      #expect(outcome.status == 0 && outcome.errors == "" && outcome.output.contains(names))
      #expect(try command.run("--generate-completion-script=\(shell)").output == outcome.output)
      if ExternalTool.isInstalled(shell) {
        try command.write(Array(outcome.output.utf8), "script")
        #expect(try command.shell("\(shell) -n script").status == 0)
      }
    }
  }
}
