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

  // MARK: in a build service, and as a service

  private static let schemas = root.appending(path: ".build/schemas").path
  static let hasSchemas = FileManager.default.fileExists(atPath: "\(schemas)/installed")

  private static let kubernetes = root.appending(path: ".build/kubernetes").path
  static let hasKubernetes = FileManager.default.fileExists(atPath: "\(kubernetes)/installed")

  @Test(
    "The manifests for Kubernetes fit its schema, and a pod's line takes its part of the plan that is in them",
    .enabled(if: hasKubernetes, "kubernetes-validate is not installed; Scripts/test does that"))
  func manifests() throws {
    let folder = Self.root.appending(path: "Examples/kubernetes").path
    try Command.inFolder { command in
      let validate = "'\(Self.kubernetes)/bin/kubernetes-validate' --strict"
      let valid = try command.shell("\(validate) '\(folder)'/*.yaml")
      #expect(valid.status == 0, "\(valid.output)\(valid.errors)")
      let words = valid.output + valid.errors
      let kinds = [
        "job/apnscope-load", "job/apnscope-merge", "service/apnscope-gateway", "deployment/apnscope-gateway",
      ]
      for name in kinds { #expect(words.contains("passed for resource \(name) "), "\(words)") }
      // A field that there is not is none that is left alone.
      let wrong = try command.shell(
        "sed 's/completionMode/completionMod/' '\(folder)/load.yaml' > a.yaml; \(validate) a.yaml")
      #expect(wrong.status == 1 && (wrong.output + wrong.errors).contains("completionMod"))

      _ = try command.shell(
        #"""
        '\#(Self.kubernetes)/bin/python' - '\#(folder)/load.yaml' << 'END'
        import sys, yaml
        found = {(one["kind"]): one for one in yaml.safe_load_all(open(sys.argv[1]))}
        open("plan.toml", "w").write(found["ConfigMap"]["data"]["plan.toml"])
        (line,) = found["Job"]["spec"]["template"]["spec"]["containers"][0]["args"]
        open("line", "w").write(line.replace("/plan/", "").replace("START", "2126-11-28T09:00:00Z") + " --print-plan")
        END
        """#)
      let plan = try command.shell(
        "mkdir bin; ln -s \"$apnscope\" bin/apnscope; PATH=$PWD/bin:$PATH JOB_COMPLETION_INDEX=2 POD_NAME=a-2 sh -c \"$(cat line)\""
      )
      let segment = #"segment = "auto/4"  # 3/4: JOB_COMPLETION_INDEX=2"#
      #expect(plan.status == 0 && plan.lines.contains { $0.hasPrefix(segment) }, "\(plan.output)\(plan.errors)")
      #expect(plan.lines.contains("of_whole = true") && plan.lines.contains("connections = 16"), "\(plan.output)")
    }
  }

  /// A sender in Python that takes its address, and sends again what APNs cannot take now.
  private static let sender = """
    import argparse, importlib
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--count", type=int)
    arguments = parser.parse_args()
    sender = importlib.import_module("test_http2_sender").Sender(arguments.url)
    for number in range(arguments.count):
        assert sender.push(f"{number:064x}", f"number {number}") is None
    """

  @Test(
    "The workflow for GitHub fits GitHub's schema, and its steps do what they say",
    .enabled(if: hasPytest && hasSchemas, "pytest and check-jsonschema are not installed; Scripts/test does that"))
  func workflow() throws {
    let folder = Self.root.appending(path: "Examples/ProviderTest").path
    try Command.inFolder { command in
      let valid = try command.shell(
        "'\(Self.schemas)/bin/check-jsonschema' --builtin-schema vendor.github-workflows '\(folder)/workflow.yml'")
      #expect(valid.status == 0, "\(valid.output)\(valid.errors)")
      try command.write(Array(Self.sender.utf8), "sender.py")
      // Steps without packages to install, with the shell that GitHub runs them in.
      let run = try command.shell(
        #"""
        cp '\#(folder)'/*.py .
        printf '#!/bin/sh\nexec "\#(Self.root.path)/.build/provider-test/bin/python" sender.py "$@"\n' > send
        chmod +x send; mkdir bin; ln -s "$apnscope" bin/apnscope
        PATH=$PWD/bin:\#(Self.root.path)/.build/provider-test/bin:$PATH
        '\#(Self.schemas)/bin/python' - '\#(folder)/workflow.yml' << 'END'
        import sys, ruamel.yaml
        steps = ruamel.yaml.YAML(typ="safe").load(open(sys.argv[1]))["jobs"]["push"]["steps"]
        for number, step in enumerate(step for step in steps if "run" in step and step["name"] != "Install"):
            open(f"step{number}.sh", "w").write(step["run"])
        END
        for step in step*.sh; do bash -e -o pipefail "$step" || exit; done
        ls
        """#)
      #expect(run.status == 0, "\(run.output)\(run.errors)")
      #expect(run.lines.contains("step1.sh") && run.lines.contains("tests.xml"), "\(run.output)")
      #expect(try command.read("verdict.xml").contains("failures=\"0\""))
      // Of 100 accepted ones and every tenth request rejected: the eleven that were sent again are in no expectation.
      let ledger = try command.shell("jq -c '.gateway | [.received, .accepted, .discarded]' ledger.json")
      #expect(ledger.output == "[111,100,0]\n")
    }
  }

  @Test("The container's gateway starts as its file says")
  func container() throws {
    let file = try String(contentsOf: Self.root.appending(path: "Examples/ProviderTest/Containerfile"), encoding: .utf8)
    let line = try #require(file.split(separator: "\n").last { $0.hasPrefix("CMD ") })
    let words = try JSONDecoder().decode([String].self, from: Data(line.dropFirst(4).utf8))
    let ports = words.compactMap { $0.hasPrefix("0.0.0.0:") ? $0.split(separator: ":").last.map(String.init) : nil }
    #expect(file.contains("\nEXPOSE \(ports.joined(separator: " "))\n"))
    try Command.inFolder { command in
      let free = words.map { $0.hasPrefix("0.0.0.0:") ? "0.0.0.0:0" : $0 }
      let running = try RunningProcess(
        Command.path, free + ["--ready-file", "up"], in: command.folder, name: "gateway")
      #expect(waitUntil { !running.isRunning || FileManager.default.fileExists(atPath: "\(command.folder.path)/up") })
      let places = try command.read("up").split(separator: "\n").map { $0.split(separator: " ")[0] }
      #expect(places == ["http2", "control"])
      running.send(SIGTERM)
      #expect(try running.end().status == 0)
    }
  }

  @Test("A file that is not there is an error in words", arguments: ["PeekExample nosuch", "DecryptExample no such"])
  func failure(line: String) throws {
    let outcome = try run(line)
    #expect(outcome.status == 1)
    #expect(outcome.output == "")
    #expect(outcome.errors.contains("No such file or directory"))
  }
}
