import Foundation
import OutputSchema
import TestSupport
import Testing

/// `Scripts/install` with the built command, into a folder: what it leaves there, and what is in it.
@Suite("install", .waiting, .enabled(if: ExternalTool.isInstalled("python3")))
struct InstallTests {
  private static let script = Command.traces.deletingLastPathComponent().appending(path: "Scripts/install").path
  private static let lists = [
    "share/bash-completion/completions/apnscope", "share/zsh/site-functions/_apnscope",
    "share/fish/vendor_completions.d/apnscope.fish",
  ]

  /// Installs into `image/usr`, as a packager does.
  private func install(_ command: Command, _ arguments: String = "") throws -> Outcome {
    try command.shell("DESTDIR=$PWD/image '\(Self.script)' --prefix /usr --binary \"$apnscope\" \(arguments)")
  }

  private func files(_ command: Command) throws -> [String] {
    try command.shell("cd image/usr && find . -type f | sort | cut -c 3-").lines
  }

  @Test("The command, a page for it, each subcommand and each output, and completions for three shells")
  func installed() throws {
    try Command.inFolder { command in
      let outcome = try install(command)
      #expect(outcome.status == 0, "\(outcome.errors)")
      let description = try SelfDescription.read(command)
      let pages = ["apnscope"] + description.subcommands.map { "apnscope-\($0.commandName)" }
      let outputs = Schema.all.map { "apnscope-\($0.name)" }
      #expect(outcome.output.contains("\(pages.count + outputs.count) pages"))
      let expected =
        ["bin/apnscope", "share/apnscope/installed"] + Self.lists + pages.map { "share/man/man1/\($0).1" }
        + outputs.map { "share/man/man5/\($0).5" }
      #expect(try Set(files(command)) == Set(expected))
      let version = try command.shell("image/usr/bin/apnscope --version")
      #expect(version.status == 0)
      #expect(version.output == (try command.run("--version").output))

      for (name, program) in zip(pages, [description.command] + description.subcommands) {
        try checkPage("image/usr/share/man/man1/\(name).1", of: program, in: command)
      }
      // What the command prints, but for the date.
      for (page, schema) in zip(outputs, Schema.all) {
        let lines = try command.read("image/usr/share/man/man5/\(page).5").split(separator: "\n")
        let printed = try command.run("schema", schema.name, "--format", "man").output.split(separator: "\n")
        #expect(lines.filter { !$0.hasPrefix(".Dd ") } == printed.filter { !$0.hasPrefix(".Dd ") }, "\(page)")
      }
      for (shell, list) in zip(["bash", "zsh", "fish"], Self.lists) {
        try checkCompletions("image/usr/\(list)", shell: shell, of: description.subcommands, in: command)
      }
      try checkBash("image/usr/\(Self.lists[0])", in: command)
    }
  }

  /// A page has no errors, and has every option and every example of the help.
  private func checkPage(_ page: String, of program: SelfDescription.Program, in command: Command) throws {
    if ExternalTool.isInstalled("mandoc") {
      let lint = try command.shell("mandoc -Tlint -Wwarning \(page)")
      #expect(lint.status == 0, "\(lint.output)")
    }
    guard ExternalTool.isInstalled("man") else { return }
    // As wide as it takes, so that no line is broken.
    let shown = try command.shell("MANWIDTH=400 LC_ALL=C.UTF-8 man --warnings -l \(page) | col -bx")
    #expect(shown.errors == "", "\(page)")
    for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"] {
      #expect(shown.lines.contains(heading), "\(page) has no \(heading)")
    }
    for option in program.options {
      #expect(shown.lines.contains { $0.contains("   \(option)") || $0.contains(", \(option)") }, "\(option)")
    }
    for example in program.examples {
      #expect(shown.lines.contains { $0.trimmingCharacters(in: .whitespaces) == example }, "\(example)")
    }
  }

  /// Completions parse, and know every subcommand and option.
  private func checkCompletions(
    _ list: String, shell: String, of programs: [SelfDescription.Program], in command: Command
  ) throws {
    if ExternalTool.isInstalled(shell) {
      let outcome = try command.shell("\(shell) -n \(list)")
      #expect(outcome.status == 0 && outcome.errors == "", "\(outcome.errors)")
    }
    let text = try command.read(list)
    for program in programs {
      #expect(text.contains(program.commandName))
      for option in program.options {
        // fish says an option's name without its hyphens.
        let name = shell == "fish" ? String(option.drop { $0 == "-" }) : option
        #expect(text.contains(name), "\(option) of \(program.commandName) in \(shell)")
      }
    }
  }

  /// bash completes subcommands, options, and values.
  private func checkBash(_ list: String, in command: Command) throws {
    let outcome = try command.shell(
      """
      PATH=$PWD/image/usr/bin:$PATH; . \(list)
      complete_line() {
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
        $(complete -p apnscope | sed 's/.*-F \\([^ ]*\\).*/\\1/') apnscope "${!#}" "${@: -2:1}"
        echo "${COMPREPLY[@]}"
      }
      complete_line apnscope insp
      complete_line apnscope decode --form
      complete_line apnscope decode --format c
      """)
    #expect(outcome.errors == "")
    #expect(outcome.lines == ["inspect", "--format", "csv"])
  }

  @Test("Installing again changes nothing, and uninstalling leaves only what others put there")
  func uninstalled() throws {
    try Command.inFolder { command in
      #expect(try install(command).status == 0)
      // A page of a version that had another subcommand, and two files that are not ours to remove.
      _ = try command.shell(
        """
        cd image/usr && cp share/man/man1/apnscope.1 share/man/man1/apnscope-former.1
        echo share/man/man1/apnscope-former.1 >> share/apnscope/installed
        printf '%s\\n' share/man/man1/other.1 ../apnscope bin/../../apnscope >> share/apnscope/installed
        touch share/man/man1/other.1 ../apnscope
        """)
      let before = try files(command)
      #expect(try install(command).status == 0)
      #expect(try files(command) == before.filter { !$0.hasSuffix("apnscope-former.1") })
      #expect(try install(command, "--uninstall").status == 0)
      #expect(try files(command) == ["share/man/man1/other.1"])
      #expect(FileManager.default.fileExists(atPath: command.folder.appending(path: "image/apnscope").path))
      #expect(try install(command, "--uninstall").status == 66)
    }
  }

  @Test("What cannot be meant is a usage error", arguments: ["--frobnicate", "--prefix", "--binary ''"])
  func usage(arguments: String) throws {
    try Command.inFolder { command in
      let outcome = try command.shell("'\(Self.script)' \(arguments)")
      #expect(outcome.status == 64)
      #expect(outcome.errors.contains("--help"))
    }
  }
}
