import Foundation
import TestSupport
import Testing

/// `apnscope follow` as a process.
@Suite("follow", .waiting)
struct FollowCommandTests {
  private func objects(_ outcome: Outcome) throws -> [[String: Any]] {
    try outcome.lines.map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
  }

  private func stories(_ outcome: Outcome, _ type: String = "notification_story") throws -> [[String: Any]] {
    try objects(outcome).filter { $0["type"] as? String == type }
  }

  @Test("Lost notifications that are sent again on a connection without an answer are open")
  func lateError() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.run("follow", "plain-error.pcap")
      #expect(outcome.status == 0 && outcome.errors == "")
      let records = try objects(outcome)
      #expect(records.first?["type"] as? String == "capture" && records.last?["type"] as? String == "summary")
      let stories = try stories(outcome)
      // 34 on the first connection, of which the eighth is refused; 26 again and 6 more on the second.
      #expect(
        stories.map { $0["outcome"] as? String } == Array(repeating: "accepted", count: 7) + ["rejected"]
          + Array(repeating: "open", count: 32))
      #expect(
        stories.map { $0["sent"] as? Int } == Array(repeating: 1, count: 8) + Array(repeating: 2, count: 26)
          + Array(repeating: 1, count: 6))
      let refused = try #require((stories[7]["sendings"] as? [[String: Any]])?.first)
      #expect(refused["status"] as? Int == 8 && refused["index"] as? Int == 7 && refused["identifier"] as? Int == 8)
      let summary = try #require(records.last)
      #expect(summary["sent"] as? Int == 66 && summary["stories"] as? Int == 40 && summary["tokens"] as? Int == 40)
    }
  }

  @Test("Standard input and memory that spills tell the same as a file, and leave no file behind")
  func sources() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let file = try command.run("follow", "plain-error.pcap")
      let piped = try command.shell(#"cat plain-error.pcap | "$apnscope" follow -"#)
      #expect(piped.lines.dropFirst() == file.lines.dropFirst())
      let spilled = try command.shell(
        #"mkdir t && TMPDIR=t "$apnscope" follow --max-memory 64KiB plain-error.pcap && ls -A t >&2"#)
      #expect(spilled.output == file.output && spilled.errors == "")
    }
  }

  @Test("The tokens to delete, alone and in every format") func dead() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let all = try stories(command.run("follow", "plain-error.pcap"), "token")
      let rejected = all.filter { $0["status"] as? Int == 8 }.compactMap { $0["token"] as? String }
      #expect(rejected.count == 1)
      let records = try command.run("follow", "--dead", "plain-error.pcap")
      #expect(
        try stories(records).isEmpty && stories(records, "token").compactMap { $0["token"] as? String } == rejected)
      func output(_ format: String, _ fields: String) throws -> String {
        let outcome = try command.run("follow", "--dead", "--fields", fields, "--format", format, "plain-error.pcap")
        #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
        return outcome.output
      }
      #expect(try output("csv", "token") == "token\n\(rejected[0])\n")
      #expect(try output("table", "status,token,topic").split(separator: "\n").last == "\(rejected[0])\t\t8")
      #expect(try output("jsonl", "token,sent") == "{\"type\":\"token\",\"token\":\"\(rejected[0])\",\"sent\":1}\n")
      for (options, message) in [
        ("--fields token", "--fields is of tokens"),
        ("--dead --fields tokens", "unknown field 'tokens'. Did you mean 'token'?"),
        ("--dead --outcome lost", "--dead leaves them out"),
        ("--dead --type notification_story", "--dead is of tokens"),
      ] {
        let outcome = try command.shell("$apnscope follow \(options) plain-error.pcap")
        #expect(outcome.status == 64 && outcome.errors.contains(message), "\(outcome.errors)")
      }
    }
  }

  @Test("CSV has the columns in order, a line for each record, and sendings in one cell") func csv() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.run("follow", "--format", "csv", "--output", "stories.csv", "plain-error.pcap")
      #expect(outcome.status == 0 && outcome.output == "")
      let rows = try command.read("stories.csv").split(separator: "\n")
      #expect(rows.count == 1 + 1 + 40 + 40 + 1)
      let header = rows[0].split(separator: ",").map(String.init)
      #expect(rows.allSatisfy { $0.contains("1:8:discarded 2:0:unknown") == ($0 == rows[10]) })
      #expect(
        header.first == "type" && header.suffix(3) == ["recovered_ms_max", "reason", "responses"]
          && Set(header).count == header.count)
      #expect(rows.last?.hasPrefix("summary,") == true && rows.last?.hasSuffix(",40,,,,,") == true)
    }
  }

  @Test("The table shows the sendings of what was not simply accepted, and tokens with a problem") func table() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.run("follow", "--format", "table", "--to", "00:32:58.42", "plain-error.pcap")
      #expect(outcome.status == 0)
      #expect(outcome.lines.count { $0.contains("  token           ") } == 1)
      #expect(outcome.lines.contains { $0.contains("rejected (8 invalid token)  connection 1 #7  packet 18  id 8") })
      #expect(outcome.lines.contains { $0.hasPrefix("selected: --to=") })
      #expect(outcome.lines.last?.contains("7 accepted") == true)
    }
  }

  @Test("Options select stories by their sendings, outcomes and types") func selection() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      func count(_ arguments: String...) throws -> [Int] {
        let outcome = try command.run(["follow"] + arguments + ["plain-error.pcap"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        return [try stories(outcome).count, try stories(outcome, "token").count]
      }
      #expect(try count("--outcome", "rejected", "--outcome", "accepted") == [8, 0])
      #expect(try count("--type", "token") == [0, 40])
      #expect(try count("--type", "notification_story") == [40, 0])
      #expect(try count("--fate", "discarded") == [26, 26])
      #expect(try count("--status", "8") == [1, 1])
      #expect(try count("--connection", "2", "--fate", "unknown") == [32, 32])
      #expect(try count("--token", "43bfa4") == [1, 1])
      #expect(try count("--identifier", "8", "--type", "notification_story") == [1, 0])
      #expect(try count("--topic", "com.example.app") == [0, 0])
    }
  }

  @Test(
    "What cannot be meant is a usage error",
    arguments: [
      ["--repeat-after", "0s"], ["--max-memory", "1KiB"], ["--outcome", "gone"], ["--type", "gap"],
      ["--type", "token", "--outcome", "lost"], ["--output", "."], ["--repeat-after", "5"],
    ])
  func usage(arguments: [String]) throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.run(["follow"] + arguments + ["plain-error.pcap"])
      #expect(outcome.status == 64 && outcome.output == "", "\(outcome.errors)")
    }
  }

  @Test(
    "Shares of all tokens, whatever their number, have together the stories and tokens of the whole",
    arguments: [1, 3, 16], ["plain-error.pcap", "ipv6-unknown-port.pcap", "known-bad-and-errors.pcap"])
  func shares(count: Int, name: String) throws {
    func told(_ outcome: Outcome) -> [String] {
      // Notifications without a token are in no share.
      outcome.lines.filter {
        ($0.contains(#""type":"notification_story""#) || $0.contains(#""type":"token""#))
          && !$0.contains(#""token":"""#)
      }
    }
    try Command.inFolder { command in
      try command.trace(name)
      let whole = told(try command.run("follow", name))
      #expect(whole.count > 0)
      // As Examples/slurm/recordings.sbatch divides them.
      let shares = try (0..<count).map { task in
        let bytes = stride(from: task, to: 256, by: count).flatMap { ["--token", String(format: "%02x", $0)] }
        return told(try command.run(["follow"] + bytes + [name]))
      }
      #expect(shares.flatMap { $0 }.sorted() == whole.sorted())
    }
  }

  @Test("Damage is 65 with --strict, a missing file 66 and leaves the output, a folder that is not there 74")
  func statuses() throws {
    try Command.inFolder { command in
      try command.trace("garbage-inside.bin")
      #expect(try command.run("follow", "garbage-inside.bin").status == 0)
      #expect(try command.run("follow", "--strict", "garbage-inside.bin").status == 65)
      try command.write(Array("kept".utf8), "out.jsonl")
      #expect(try command.run("follow", "--output", "out.jsonl", "no.pcap").status == 66)
      #expect(try command.read("out.jsonl") == "kept")
      try command.trace("plain-error.pcap")
      let failed = try command.shell(#"TMPDIR=/no/where "$apnscope" follow --max-memory 64KiB plain-error.pcap"#)
      #expect(failed.status == 74 && failed.errors.contains("/no/where: No such file or directory"))
      let closed = try command.shell(#""$apnscope" follow plain-error.pcap | head -n 1; exit ${PIPESTATUS[0]}"#)
      #expect(closed.status == 0)
    }
  }

  @Test("Sendings on connections of several files have the number of theirs") func files() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap", as: "a.pcap")
      try command.trace("loss-reorder.pcap.gz", as: "b.pcap.gz")
      let outcome = try command.run("follow", "b.pcap.gz", "a.pcap")
      #expect(outcome.status == 0)
      let sendings = try stories(outcome).flatMap { $0["sendings"] as? [[String: Any]] ?? [] }
      #expect(sendings.count { $0["file"] as? Int == 1 } == 66 && sendings.count { $0["file"] as? Int == 2 } == 300)
      #expect(sendings.contains { $0["file"] as? Int == 2 && $0["packet"] as? Int == 289 })
      #expect(try stories(outcome, "capture").compactMap { $0["source"] as? String } == ["a.pcap", "b.pcap.gz"])
    }
  }

  @Test("Ctrl-C tells the stories of what was read") func interrupt() throws {
    try Command.inFolder { command in
      let capture = try Data(contentsOf: Command.traces.appending(path: "plain-error.pcap"))
      let pipe = Pipe()
      let process = try RunningProcess(Command.path, ["follow", "-"], in: command.folder, pipe: pipe)
      try pipe.fileHandleForWriting.write(contentsOf: capture.prefix(capture.count / 4))
      #expect(waitUntil { process.waitsForInput })
      process.send(SIGINT)
      let outcome = try process.end()
      try pipe.fileHandleForWriting.close()
      #expect(outcome.status == 130)
      // Sixteen notifications stand in the first quarter.
      #expect(try stories(outcome).count == 16)
      #expect(outcome.lines.last?.contains(#""sent":16"#) == true)
    }
  }
}
