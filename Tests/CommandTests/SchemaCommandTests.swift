import Foundation
import OutputSchema
import TestSupport
import Testing

/// `apnscope schema`, and real outputs of each kind.
@Suite("schema", .waiting)
struct SchemaCommandTests {
  private static let documentation = Command.traces.deletingLastPathComponent().appending(path: "Documentation")

  // MARK: what is printed

  @Test(
    "The pages in Documentation are what the command prints",
    arguments: [
      ("records.md", "records stories events load-log judgements renderings received"),
      ("results.md", "result ledger fleet capacity inspection comparison plan"),
    ])
  func pages(name: String, kinds: String) throws {
    try Command.inFolder { command in
      let outcome = try command.shell("$apnscope schema \(kinds) --format markdown")
      #expect(outcome.status == 0 && outcome.errors == "", "\(outcome.errors)")
      let file = Self.documentation.appending(path: name)
      if ProcessInfo.processInfo.environment["APNSCOPE_REWRITE_GOLDEN"] == "1" {
        try Data(outcome.output.utf8).write(to: file)
      }
      #expect(try String(contentsOf: file, encoding: .utf8) == outcome.output)
    }
  }

  @Test("Every output has a JSON Schema and a manual page", arguments: Schema.all.map(\.name))
  func kinds(name: String) throws {
    try Command.inFolder { command in
      let schema = try command.run("schema", name)
      #expect(schema.status == 0 && schema.errors == "", "\(schema.errors)")
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(schema.output.utf8)) as? [String: Any])
      #expect(object["$schema"] as? String == "https://json-schema.org/draft/2020-12/schema")
      let page = try command.run("schema", "--format", "man", name)
      #expect(page.status == 0 && page.output.contains(".Dt APNSCOPE-\(name.uppercased()) 5\n"))
      try command.write(Array(page.output.utf8), "page.5")
      if ExternalTool.isInstalled("mandoc") {
        let lint = try command.shell("mandoc -Tlint -Wwarning page.5")
        #expect(lint.status == 0, "\(lint.output)")
      }
      if ExternalTool.isInstalled("man") {
        let shown = try command.shell("MANWIDTH=400 LC_ALL=C.UTF-8 man --warnings -l page.5 | col -bx")
        #expect(shown.errors == "" && shown.lines.contains("FIELDS"), "\(shown.errors)")
      }
    }
  }

  @Test(
    "An unknown output, none, and several where one is meant: usage", arguments: [["runs"], [], ["plan", "ledger"]])
  func usage(arguments: [String]) throws {
    try Command.inFolder { command in
      let outcome = try RunningProcess(Command.path, ["schema"] + arguments, in: command.folder).end()
      #expect(outcome.status == 64 && outcome.output == "", "\(outcome.errors)")
    }
  }

  // MARK: what it describes

  @Test("Records and inspections of unusual, malformed and encrypted traces are valid")
  func recordings() throws {
    try Command.inFolder { command in
      for trace in ["plain-error.pcap", "unusual-items.xxd", "items-that-do-not-fit.pcap", "tls-without-keys.pcap"] {
        try command.trace(trace)
        let (decoded, inspected) = (
          try command.run("decode", trace), try command.run("inspect", "--format", "json", trace)
        )
        expectValid(Array(decoded.output.utf8), .records, trace)
        expectValid(Array(inspected.output.utf8), .inspection, trace)
      }
    }
  }

  @Test("Results, plans, ledgers, events and comparisons of a load and its gateway are valid")
  func load() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--reject", "every=300,status=8"], in: command)
      for name in ["a.json", "b.json"] {
        let load = try LoadProcess.start(
          simulator, ["--count", "1k", "--rate", "2k/s", "--connections", "2", "--threshold", "unknown<=0"],
          output: name, in: command)
        #expect(try load.end().status == 0)
        try expectValid(file: name, .result, in: command)
        // Histograms are pairs on lines, and not a line for each number.
        let text = try command.read(name)
        #expect(text.contains(#/\n +\[[0-9.]+, [0-9]+\],?\n/#) && !text.contains(#/\n *\[\n/#))
      }
      _ = try simulator.stop()
      try expectValid(file: "simulator.ledger.json", .ledger, in: command)
      try expectValid(file: "simulator.log.jsonl", .events, in: command)
      let events = try simulator.events().compactMap { $0["event"] as? String }
      #expect(Set(events).isSuperset(of: ["accepted", "error_response", "closed"]))
      let comparison = try command.run("compare", "--format", "json", "a.json", "b.json")
      expectValid(Array(comparison.output.utf8), .comparison)
      let merged = try command.run("merge", "a.json", "--format", "json")
      expectValid(Array(merged.output.utf8), .result, "merge")
    }
  }

  @Test(
    "Plans are valid, whatever they are of",
    arguments: [
      [], ["--rate", "1k/s", "--for", "5s", "--faults", "oversize=1%"], ["--stage", "1s:0..9/s", "--behind", "skip"],
      ["--seed", "18446744073709551615", "--payload-template", "{\"a\":\"{index}\"}", "--buffers", "system"],
      ["--ca", "a \"b\"\\c.pem", "--threshold", "unknown<=0", "--lifetime", "1h", "--connection-count", "5"],
    ])
  func plans(arguments: [String]) throws {
    try Command.inFolder { command in
      let line = ["load", "--plain", "--print-plan"] + arguments
      let outcome = try RunningProcess(Command.path, line, in: command.folder).end()
      #expect(outcome.status == 0, "\(outcome.errors)")
      // Names and values of a plan are written as those of JSON; a setting in a comment is in effect as well.
      let members = outcome.lines.map { line in
        let setting = line.hasPrefix("# ") ? line.dropFirst(2) : line[...]
        let parts = setting.split(separator: " = ", maxSplits: 1)
        return "\"\(parts[0])\": \(parts[1])"
      }
      expectValid(Array("{\(members.joined(separator: ","))}".utf8), .plan, arguments.joined(separator: " "))
    }
  }
}
