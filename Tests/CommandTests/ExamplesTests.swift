import Foundation
import TestSupport
import Testing

/// The programs of `Examples`, which are built beside the command.
@Suite("examples", .waiting)
struct ExamplesTests {
  private static let root = Command.traces.deletingLastPathComponent()

  /// The commands of `Examples/README.md`, and what stands below each.
  private static func shown() throws -> [(command: String, output: String)] {
    let page = try String(contentsOf: root.appending(path: "Examples/README.md"), encoding: .utf8)
    return page.components(separatedBy: "```\n").compactMap { block in
      guard block.hasPrefix("$ swift run "), let end = block.firstIndex(of: "\n") else { return nil }
      return (String(block[..<end].dropFirst(12)), String(block[block.index(after: end)...]))
    }
  }

  private func run(_ line: String) throws -> Outcome {
    try Command.inFolder { command in
      let programs = URL(filePath: Command.path).deletingLastPathComponent().path
      return try command.shell("cd '\(Self.root.path)' && '\(programs)'/\(line)")
    }
  }

  @Test("The programs print what their page shows", arguments: ["PeekExample", "DecryptExample"])
  func output(program: String) throws {
    let shown = try #require(try Self.shown().first { $0.command.hasPrefix("\(program) ") })
    let outcome = try run(shown.command)
    #expect(outcome.status == 0)
    #expect(outcome.output == shown.output)
    #expect(outcome.errors == "")
  }

  /// Of `Examples/ProviderTest`, in a folder of its own.
  private func runProviderTest(_ line: String) throws -> Outcome {
    try Command.inFolder { command in
      let folder = Self.root.appending(path: "Examples/ProviderTest").path
      let outcome = try command.shell("cd '\(folder)' && PYTHONDONTWRITEBYTECODE=1 \(line)")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      return outcome
    }
  }

  @Test(
    "The test of a provider in the shell passes", .enabled(if: ExternalTool.isInstalled("jq"), "jq is not installed"))
  func shell() throws {
    let outcome = try runProviderTest("./provider_test.sh")
    #expect(outcome.lines.count == 4 && outcome.lines.allSatisfy { $0.hasPrefix("ok: ") }, "\(outcome.output)")
    let page = try String(contentsOf: Self.root.appending(path: "Examples/README.md"), encoding: .utf8)
    #expect(page.contains("$ Examples/ProviderTest/provider_test.sh\n\(outcome.output)```"), "\(outcome.output)")
  }

  @Test(
    "The test of a provider in Python passes",
    .enabled(if: Pushjack.isInstalled, "pushjack is not installed; Scripts/test does that"))
  func python() throws {
    let outcome = try runProviderTest("'\(Pushjack.python)' -W ignore -m unittest test_provider")
    #expect(outcome.errors.contains("Ran 2 tests") && outcome.errors.hasSuffix("\nOK\n"), "\(outcome.errors)")
  }

  private static let pytest = root.appending(path: ".build/provider-test/bin/pytest").path
  static let hasPytest = FileManager.default.fileExists(
    atPath: root.appending(path: ".build/provider-test/installed").path)

  @Test(
    "The test of a sender over HTTP/2 with pytest passes",
    .enabled(if: hasPytest, "pytest is not installed; Scripts/test does that"))
  func pytest() throws {
    let outcome = try runProviderTest("'\(Self.pytest)' -q -p no:cacheprovider test_http2_sender.py")
    #expect(outcome.output.contains("\n3 passed in "), "\(outcome.output)")
  }

  @Test(
    "The test of a sender over HTTP/2 with node passes",
    .enabled(if: ExternalTool.isInstalled("node"), "there is no node"))
  func node() throws {
    let outcome = try runProviderTest("node --test --test-reporter tap http2_sender.test.mjs")
    #expect(outcome.output.contains("\n# pass 2\n# fail 0\n"), "\(outcome.output)")
  }

  @Test("A file that is not there is an error in words", arguments: ["PeekExample nosuch", "DecryptExample no such"])
  func failure(line: String) throws {
    let outcome = try run(line)
    #expect(outcome.status == 1)
    #expect(outcome.output == "")
    #expect(outcome.errors.contains("No such file or directory"))
  }
}
