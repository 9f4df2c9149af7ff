import Foundation
import TestSupport
import Testing

/// `name_commit` of `Scripts/prepare`: which commit it tells the linker of, and what the program then knows.
@Suite(
  "built commit", .waiting,
  .enabled(if: ExternalTool.isInstalled("git") && ExternalTool.isInstalled("cc")))
struct BuiltCommitTests {
  private static let root = Command.traces.deletingLastPathComponent().path

  /// A clone with one commit, whose short name is in `$first`. `told` prints what a program says that is linked with the
  /// flags that `name_commit` sets for `$root`, and `commit` itself.
  private static let preparation = """
    set -euo pipefail
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
    mkdir clone && cd clone && git init -q . && mkdir -p Sources/Inner Reports
    echo a > Sources/a.swift && echo b > Reports/b.txt && git add . &&
      git -c user.name=n -c user.email=n@example.org commit -qm first
    first=$(git rev-parse --short=7 HEAD)
    source '\(root)/Scripts/prepare'
    printf '#include "shim.h"\\n#include <stdio.h>\\nint main(void) {' > ../main.c
    printf 'const char *it = apnscope_built_commit(); puts(it ? it : "none"); }' >> ../main.c
    sed 's/_Nullable//' '\(root)/Sources/CBuild/shim.h' > ../shim.h
    told() {
      name_commit "$root"
      cc -o ../main ../main.c "${commit_flags[@]}" && echo "$(../main) ${commit:-none}"
    }
    root=$PWD

    """

  private func told(_ change: String) throws -> [String] {
    try Command.inFolder { command in
      let outcome = try command.shell(Self.preparation + change + "\necho \"$first\"; told")
      #expect(outcome.status == 0, "\(outcome.errors)")
      return outcome.lines
    }
  }

  @Test("A build from a clone knows its commit", arguments: ["", "echo c > Reports/b.txt; echo d > notes"])
  func clean(change: String) throws {
    let lines = try told(change)
    let commit = try #require(lines.first)
    #expect(lines.last == "\(commit) \(commit)")
    #expect(commit.count >= 7)
  }

  @Test(
    "Changes of the sources that are in no commit are marked",
    arguments: [
      "echo c > Sources/a.swift", "echo c > Sources/new.swift", "echo c > Package.swift",
      "told; echo c > Sources/a.swift",
    ])
  func changed(change: String) throws {
    let lines = try told(change)
    let commit = try #require(lines.dropLast().last)
    #expect(lines.last == "\(commit)+ \(commit)+")
  }

  @Test(
    "A folder that is no clone, or is within another one, has no commit",
    arguments: ["rm -r .git", "root=$PWD/Sources/Inner"])
  func none(change: String) throws {
    #expect(try told(change).last == "none none")
  }

  @Test("A result names the build that --version does")
  func result() throws {
    try Command.inFolder { command in
      let simulator = try SimulatorProcess(["--plain", "--no-feedback"], in: command)
      let load = try LoadProcess.start(simulator, ["--plain", "--count", "5"], in: command)
      #expect(try load.end().status == 0)
      let environment = try LoadProcess.result(in: command).environment
      #expect(environment.build + "\n" == (try command.run("--version").output))
    }
  }
}
