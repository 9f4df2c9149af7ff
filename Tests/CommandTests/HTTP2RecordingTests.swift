import Foundation
import TestSupport
import Testing

/// Recordings of other people's providers over HTTP/2, whose truth is known (`Traces/http2-clients.tar.zst`).
@Suite("Recordings over HTTP/2", .waiting)
struct HTTP2RecordingTests {
  private static let archive = Command.traces.appending(path: "http2-clients.tar.zst")
  private static let check = Command.traces.deletingLastPathComponent().appending(path: "Scripts/check-http2")

  /// Unpacks recordings into the folder, and returns their names in order.
  private static func unpack(_ names: [String] = [], _ command: Command) throws -> [String] {
    let members = names.map { "open/\($0)" }.joined(separator: " ")
    let outcome = try command.shell("tar --zstd -xf '\(archive.path)' \(members) && ls -d open/*/")
    #expect(outcome.status == 0, "\(outcome.errors)")
    return outcome.lines.map { String($0.dropFirst("open/".count).dropLast()) }
  }

  /// The arguments that read a recording.
  private static func input(_ name: String, _ command: Command) -> [String] {
    let hasKeys = FileManager.default.fileExists(atPath: command.folder.appending(path: "open/\(name)/keys.log").path)
    return (hasKeys ? ["--keys", "open/\(name)/keys.log"] : []) + ["open/\(name)/capture.pcap"]
  }

  @Test("Every field of every recording is as its truth says, or is named uncertain")
  func truth() throws {
    try Command.inFolder { command in
      // Signatures in outputs have a test of their own.
      let outcome = try command.shell(
        "'\(Self.check.path)' --list --no-outputs --apnscope \"$apnscope\" '\(Self.archive.path)'")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      #expect(outcome.lines.last?.hasPrefix("32 recordings, 2228 requests, 2185 answers") == true)
    }
  }

  @Test(
    "The signature of no provider token is in an output",
    arguments: [
      ["decode"], ["decode", "--format", "csv"], ["decode", "--format", "table"], ["decode", "--fates"],
      ["decode", "--fields", "headers,provider_token,bytes,problem"], ["decode", "--format", "csv", "--output", "csv"],
      ["decode", "--redact"], ["inspect"], ["inspect", "--format", "json"], ["follow"],
      ["follow", "--format", "table"], ["follow", "--format", "csv"], ["report", "--output", "page"],
      ["redact", "--output", "redacted.pcapng"], ["annotate", "--output", "annotated.pcapng"],
    ])
  func signatures(arguments: [String]) throws {
    try Command.inFolder { command in
      for name in some(4, of: try Self.unpack([], command), whole: 12) {
        let isInClear = !Self.input(name, command).contains("--keys")
        // A copy of packets in clear has what is in them; of others only comments could have a signature.
        if arguments[0] == "annotate", isInClear { continue }
        let secrets = try command.shell(
          "grep -ohE 'eyJ[A-Za-z0-9_-]+[.][A-Za-z0-9_-]+[.][A-Za-z0-9_-]+' open/\(name)/truth.json"
            + " | sed 's/.*[.]//' | grep -E '.{20}' | sort -u > secrets; rm -rf page csv *.pcapng")
        #expect(secrets.status == 0)
        let line = (arguments + Self.input(name, command)).joined(separator: " ")
        _ = try command.shell("\"$apnscope\" \(line) > output 2>&1")
        let found = try command.shell(
          "grep -raFc -f secrets output page csv *.pcapng 2>/dev/null | grep -v ':0$'")
        #expect(found.output.isEmpty, "\(name): \(found.output)")
        // As bytes in hexadecimal digits, and in Base64.
        let hex = try command.shell(
          "while read -r secret; do printf %s \"$secret\" | head -c 24 | xxd -p; done < secrets > hex;"
            + " grep -raFc -f hex output page csv 2>/dev/null | grep -v ':0$'")
        #expect(hex.output.isEmpty, "\(name): \(hex.output)")
      }
    }
  }

  @Test(
    "Records are valid against their schema in all formats",
    arguments: [
      "03_aioapns_pool_goaway", "20_node_apn_faults", "32_curl_errors", "36_nghttp_table_sizes",
      "v57_snaplen_200", "v51_h2load_begins_mid_connection",
    ])
  func formats(name: String) throws {
    try Command.inFolder { command in
      _ = try Self.unpack([name], command)
      let lines = try command.run(["decode"] + Self.input(name, command))
      #expect(lines.status == 0)
      let columns = try command.run(["decode", "--format", "csv"] + Self.input(name, command))
      let table = try command.run(["decode", "--format", "table"] + Self.input(name, command))
      #expect(columns.lines.count == lines.lines.count + 1)
      #expect(table.lines.count == lines.lines.count + 1)
    }
  }

  @Test(
    "The output is the same for any number of threads",
    arguments: ["03_aioapns_pool_goaway", "11_pyapns_client_sandbox", "v62_cleartext_go_segment_lost"])
  func threads(name: String) throws {
    try Command.inFolder { command in
      _ = try Self.unpack([name], command)
      let outputs = try ["1", "2", "4"].map {
        try command.run(["decode", "--threads", $0] + Self.input(name, command)).output
      }
      #expect(outputs[0].contains(#""protocol":"http2""#))
      #expect(outputs[0] == outputs[1] && outputs[1] == outputs[2])
    }
  }

  @Test("A pipe's records are those of the file, with fates and answers behind the notifications")
  func pipe() throws {
    try Command.inFolder { command in
      let name = "20_node_apn_faults"
      _ = try Self.unpack([name], command)
      let file = try command.run(["decode"] + Self.input(name, command))
      let keys = "open/\(name)/keys.log"
      let pipe = try command.shell("cat open/\(name)/capture.pcap | \"$apnscope\" decode --keys \(keys) -")
      func fates(_ lines: [String]) throws -> [Int: String] {
        var fates: [Int: String] = [:]
        for line in lines {
          let record = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
          guard let fate = record["fate"] as? String else { continue }
          if let index = record["index"] as? Int { fates[index] = fate }
          if let first = record["first"] as? Int, let last = record["last"] as? Int {
            for index in first...last { fates[index] = fate }
          }
        }
        return fates
      }
      let expected = try fates(file.lines)
      #expect(expected.count == 24)
      #expect(try fates(pipe.lines) == expected)
      #expect(!file.output.contains(#""type":"fate""#))
      let type = /"type":"response"/
      #expect(pipe.lines.filter { $0.contains(type) } == file.lines.filter { $0.contains(type) })
    }
  }

  @Test("The parts of a recording add up to the whole")
  func shards() throws {
    try Command.inFolder { command in
      let name = "11_pyapns_client_sandbox"
      _ = try Self.unpack([name], command)
      func notifications(_ options: [String]) throws -> [String] {
        let outcome = try command.run(
          ["decode", "--type", "notification", "--fields", "token,apns_id,fate,status,time"] + options
            + Self.input(name, command))
        return outcome.lines.filter { $0.contains(#""token""#) }
      }
      let parts = try (1...3).flatMap { try notifications(["--shard", "\($0)/3"]) }
      #expect(parts.count == 22)
      #expect(try parts.sorted() == notifications([]).sorted())
    }
  }

  @Test("Notifications are selected by token, topic, fate and status, with the answers to them")
  func selections() throws {
    try Command.inFolder { command in
      let name = "18_go_apns2_push_types"
      _ = try Self.unpack([name], command)
      func types(_ options: String...) throws -> [String: Int] {
        let outcome = try command.run(["decode"] + options + Self.input(name, command))
        #expect(outcome.status == 0, "\(outcome.errors)")
        return Dictionary(
          outcome.lines.compactMap { $0.firstMatch(of: /"type":"(\w+)"/).map { (String($0.1), 1) } },
          uniquingKeysWith: +)
      }
      let rejected = try types("--fate", "rejected")
      #expect((rejected["notification"], rejected["response"]) == (1, 1))
      #expect(try types("--status", "413") == rejected)
      let voip = try types("--topic", "com.example.tide.voip")
      let all = try types()
      let count = try #require(voip["notification"])
      #expect(count > 0 && count < all["notification"] ?? 0)
      #expect(try types("--type", "settings")["settings"] == all["settings"])
      #expect(try types("--identifier", "7")["notification"] == nil)
    }
  }

  @Test("What became of distinct notifications is the same in inspect, follow, and a report of the records")
  func outcomes() throws {
    try Command.inFolder { command in
      for name in some(10, of: try Self.unpack([], command)) {
        let input = Self.input(name, command)
        func counts(_ text: String, _ path: String) throws -> [Int] {
          let script = "jq -c '\(path) | [.accepted_twice, .expired, .recovered, .accepted, .open, .rejected, .lost]'"
          try Data(text.utf8).write(to: command.folder.appending(path: "told.json"))
          let outcome = try command.shell("tail -n 1 told.json | \(script)")
          return try JSONDecoder().decode([Int].self, from: Data(outcome.output.utf8))
        }
        let followed = try command.run(["follow"] + input)
        let inspected = try command.run(["inspect", "--format", "json"] + input)
        let compact = inspected.output.replacing("\n", with: " ")
        #expect(try counts(compact, ".stories") == counts(followed.output, "."), "\(name)")
        let report = try #require(JSONSerialization.jsonObject(with: Data(inspected.output.utf8)) as? [String: Any])
        let requests = try #require(report["http2"] as? [String: Any], "\(name)")
        let fates = try #require(requests["fates"] as? [String: Int])
        // The four add up.
        #expect(fates.values.reduce(0, +) == requests["notifications"] as? Int, "\(name)")
      }
    }
  }
}
