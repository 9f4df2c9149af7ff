import Foundation
import TestSupport
import Testing

@Suite("Redaction", .waiting)
struct RedactionCommandTests {
  private static let trace = "tls-late-error.pcap.gz"
  private static let keys = "tls-late-error.pcap.gz.keys"

  private func inFolder(_ body: (Command) throws -> Void) throws {
    try Command.inFolder { command in
      try command.trace(Self.trace)
      try command.trace(Self.keys)
      try command.trace("feedback-clear.pcap")
      try command.trace("unusual-items.xxd")
      try command.write(Array(repeating: 7, count: 16), "key")
      try body(command)
    }
  }

  private func records(_ arguments: [String], in command: Command) throws -> [[String: Any]] {
    try command.run(arguments).lines.map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
  }

  @Test(
    "Everything but names of people stays in the records",
    arguments: [[trace, "--keys", keys], ["feedback-clear.pcap"]])
  func records(arguments: [String]) throws {
    try inFolder { command in
      let original = try records(["decode"] + arguments, in: command)
      let redacted = try records(["decode", "--redact"] + arguments, in: command)
      #expect(original.count == redacted.count)
      var pseudonyms: [String: String] = [:]
      for (old, new) in zip(original, redacted) {
        #expect(Set(old.keys) == Set(new.keys))
        for (key, value) in old where !["source", "token", "payload", "client", "server", "tls"].contains(key) {
          #expect("\(value)" == "\(new[key] ?? "")", "\(key)")
        }
        if let token = old["token"] as? String, let pseudonym = new["token"] as? String {
          #expect(token != pseudonym && token.count == pseudonym.count)
          #expect(pseudonyms.updateValue(pseudonym, forKey: token) ?? pseudonym == pseudonym)
        }
        for end in ["client", "server"] {
          guard let address = old[end] as? String, let pseudonym = new[end] as? String else { continue }
          #expect(address != pseudonym && address.split(separator: ":").last == pseudonym.split(separator: ":").last)
        }
      }
      #expect(Set(pseudonyms.values).count == pseudonyms.count && !pseudonyms.isEmpty)
    }
  }

  @Test("No token, text, address or subject of the recording is in any output")
  func nothingLeft() throws {
    try inFolder { command in
      let input = [Self.trace, "--keys", Self.keys]
      var secrets: Set<String> = ["127.0.0.1"]
      for record in try records(["decode"] + input, in: command) {
        if let token = record["token"] as? String { secrets.insert(String(token.prefix(16))) }
        if let subject = (record["tls"] as? [String: Any])?["client_subject"] as? String { secrets.insert(subject) }
      }
      #expect(secrets.count > 10)
      var outputs: [String] = []
      for arguments in [
        ["decode"], ["decode", "--format", "csv"], ["decode", "--format", "table"], ["inspect"],
        ["inspect", "--format", "json"], ["follow"], ["follow", "--format", "table"], ["inspect", "--status", "8"],
        ["decode", "--fate", "rejected", "--fields", "token,payload,client"],
      ] {
        let outcome = try command.run(arguments + ["--redact"] + input)
        #expect(outcome.status == 0 && !outcome.output.isEmpty, "\(outcome.errors)")
        outputs.append(outcome.output)
      }
      #expect(try command.run(["report", "--redact", "--output", "report"] + input).status == 0)
      for page in ["report.md", "report.html"] { outputs.append(try command.read("report/\(page)")) }
      for output in outputs { for secret in secrets { #expect(!output.contains(secret), "\(output.prefix(80))") } }
    }
  }

  /// All numbers of a document, sorted: names decide the order of some rows.
  private func numbers(_ value: Any) -> [Double] {
    switch value {
    case let list as [Any]: list.flatMap(numbers).sorted()
    case let object as [String: Any]: object.values.flatMap(numbers).sorted()
    case let number as NSNumber: [number.doubleValue]
    default: []
    }
  }

  @Test(
    "inspect and follow count the same with and without redaction, also what depends on certificates",
    arguments: [
      "tls-late-error.pcap.gz", "tls-feedback-tokens.pcap", "tls-known-bad.pcapng", "plain-error.pcap",
      "known-bad-and-errors.pcap", "two-interfaces.pcapng",
    ])
  func counts(trace: String) throws {
    try Command.inFolder { command in
      try command.trace(trace)
      let keys = "\(trace).keys"
      let hasKeys = FileManager.default.fileExists(atPath: Command.traces.appending(path: keys).path)
      if hasKeys { try command.trace(keys) }
      let input = [trace] + (hasKeys ? ["--keys", keys] : [])
      func document(_ options: [String]) throws -> [Double] {
        let outcome = try command.run(["inspect", "--format", "json"] + options + input)
        return numbers(try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)))
      }
      #expect(try document([]) == document(["--redact"]))
      func stories(_ arguments: [String]) throws -> [String] {
        try records(["follow"] + arguments, in: command).filter { $0["outcome"] != nil }.map {
          "\($0["outcome"] ?? "") \($0["open_reason"] ?? "") \($0["sent"] ?? "") \($0["kind"] ?? "")"
        }.sorted()
      }
      #expect(try stories(input) == stories(["--redact"] + input))
      let copy = try command.run(["redact", "--output", "copy.pcapng"] + input)
      #expect(copy.status == 0, "\(copy.errors)")
      if !copy.errors.contains("left out") {
        #expect(try stories(input) == stories(["copy.pcapng"]))
      }
    }
  }

  @Test("A key makes the pseudonyms of two runs the same, without one they differ") func key() throws {
    try inFolder { command in
      func tokens(_ options: [String]) throws -> [String] {
        try records(["decode", "--redact", "feedback-clear.pcap"] + options, in: command).compactMap {
          $0["token"] as? String
        }
      }
      let first = try tokens(["--redact-key", "key"])
      #expect(try !first.isEmpty && first == tokens(["--redact-key", "key"]))
      #expect(try Set(first).isDisjoint(with: tokens([])))
    }
  }

  @Test("Addresses and subjects are kept on request, tokens never") func kept() throws {
    try inFolder { command in
      let input = [Self.trace, "--keys", Self.keys]
      func connection(_ options: [String]) throws -> String {
        try command.run(["decode", "--type", "connection"] + options + input).lines
          .filter { $0.contains(#""type":"connection""#) }.joined()
      }
      try #expect(connection([]) == connection(["--redact", "--keep-addresses"]))
      try #expect(connection([]) != connection(["--redact"]))
    }
  }

  @Test("Items that nobody knows become zeros, and what a token selected is not said") func items() throws {
    try inFolder { command in
      let original = try command.run("decode", "unusual-items.xxd")
      let redacted = try command.run("decode", "--redact", "unusual-items.xxd")
      #expect(original.output.contains(#""items":["#))
      let data = redacted.output.matches(of: #/"items":\[\[[0-9]+,"([0-9a-f]+)"/#).map(\.output.1)
      #expect(!data.isEmpty && data.allSatisfy { $0.allSatisfy { $0 == "0" } })
      let token = try #require(original.output.firstMatch(of: #/"token":"([0-9a-f]{16})/#)?.output.1)
      let selected = try command.run("decode", "--redact", "--token", String(token), "unusual-items.xxd")
      #expect(selected.output.contains(#""selection":["--token=redacted"]"#) && !selected.output.contains(token))
    }
  }

  @Test(
    "Options that make no sense together, and keys that are none, are refused",
    arguments: [
      (["decode", "--redact-key", "key"], 64, "--redact"), (["inspect", "--keep-addresses"], 64, "--redact"),
      (["decode", "--redact", "--export-keys", "out"], 64, "--export-keys"),
      (["decode", "--redact", "--redact-key", "nosuch"], 66, "argument 4: No such file"),
      (["follow", "--redact", "--redact-key", "feedback-clear.pcap", "--keep-addresses"], 0, ""),
      (["inspect", "--redact", "--redact-key", "short"], 65, "at least 16 bytes"),
    ])
  func refused(arguments: [String], status: Int32, text: String) throws {
    try inFolder { command in
      try command.write([1, 2, 3], "short")
      let outcome = try command.run(arguments + ["feedback-clear.pcap"])
      #expect(outcome.status == status && outcome.errors.contains(text) || text.isEmpty, "\(outcome.errors)")
    }
  }
}
