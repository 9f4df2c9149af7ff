import Foundation
import TestSupport
import Testing

/// `apnscope report` of traces: recordings, and records of `decode`.
@Suite("report of a trace", .waiting)
struct ReportTraceTests {
  /// The page as Markdown, without the line that tells the command.
  private func page(_ command: Command, _ arguments: String) throws -> String {
    let outcome = try command.shell("$apnscope report \(arguments) --output out")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.lines == ["out/report.html", "out/report.md"])
    return try Self.text(command)
  }

  private static func text(_ command: Command, _ folder: String = "out") throws -> String {
    try command.read("\(folder)/report.md").split(separator: "\n", omittingEmptySubsequences: false)
      .filter { !$0.hasPrefix("Made by ") }.joined(separator: "\n")
  }

  /// `APNSCOPE_REWRITE_GOLDEN=1` writes what the tests make now.
  private func expectGolden(_ text: String, _ name: String) throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Golden/\(name)")
    if ProcessInfo.processInfo.environment["APNSCOPE_REWRITE_GOLDEN"] == "1" { try Data(text.utf8).write(to: file) }
    let kept = try String(contentsOf: file, encoding: .utf8)
    let (was, now) = (kept.split(separator: "\n"), text.split(separator: "\n"))
    let line = zip(was, now).prefix { $0 == $1 }.count
    #expect(kept == text, "\(name), line \(line + 1): \(line < now.count ? now[line] : "its end")")
  }

  @Test(
    "The page of a recording is as it was approved",
    arguments: ["known-bad-and-errors.pcap", "tls-feedback-tokens.pcap", "plain-error.pcap"])
  func golden(trace: String) throws {
    try Command.inFolder { command in
      try command.trace(trace)
      let keys = trace.hasPrefix("tls") ? "--keys \(trace).keys" : ""
      if !keys.isEmpty { try command.trace("\(trace).keys") }
      try expectGolden(try page(command, "\(keys) \(trace)"), "\(trace).md")
    }
  }

  @Test(
    "The page of a recording over HTTP/2 is as it was approved",
    arguments: ["28_pushy_goaway", "v55_client_segment_lost_h2c"])
  func goldenOverHTTP2(name: String) throws {
    try Command.inFolder { command in
      let archive = Command.traces.appending(path: "http2-clients.tar.zst").path
      let outcome = try command.shell("tar --zstd -xf '\(archive)' open/\(name) && mv open/\(name)/* . && ls keys.log")
      let keys = outcome.status == 0 ? "--keys keys.log" : ""
      try expectGolden(try page(command, "\(keys) capture.pcap"), "\(name).md")
    }
  }

  @Test("Who did not come back is named, and redacted where that is asked for")
  func missing() throws {
    try Command.inFolder { command in
      try command.trace("known-bad-and-errors.pcap", as: "a.pcap")
      let open = try page(command, "a.pcap")
      // Names of folders are redacted in what it says, too.
      let outcome = try command.shell("$apnscope report --redact a.pcap --output hidden")
      #expect(outcome.status == 0, "\(outcome.errors)")
      let redacted = try Self.text(command, "hidden")
      let name = String(repeating: "a5", count: 32)
      func rows(_ text: String) -> [Substring] {
        text.split(separator: "\n").filter { $0.contains("open: may have been sent elsewhere") }
      }
      #expect(rows(open).count == 2 && rows(open).contains { $0.contains(name) && $0.contains("\"alert\":\"5\"") })
      #expect(rows(redacted).count == 2)
      #expect(!redacted.contains(name.prefix(16)) && !redacted.contains("\"alert\":\"5\""))
      let html = try command.read("hidden/report.html")
      #expect(!html.contains(name.prefix(16)))
      // Proven lost where the recording goes on for long enough.
      let folder = Command.traces.deletingLastPathComponent().appending(path: "Reports/trace").path
      let lost = try page(
        command, "--keys '\(folder)/trace.keys' --resend-within 1s --rows 1000 '\(folder)/trace.pcap.gz'")
      let count = lost.split(separator: "\n").count { $0.hasPrefix("| ✗ ") && $0.contains("**lost**") }
      #expect(count > 0 && lost.contains("\(count) notifications are lost for good"), "\(count)")
    }
  }

  @Test("Records make the same page as the recording that they were decoded from")
  func records() throws {
    try Command.inFolder { command in
      for trace in ["known-bad-and-errors.pcap", "tls-feedback-tokens.pcap", "loss-reorder.pcap.gz", "responses.bin"] {
        let name = "\(trace).jsonl"
        try command.trace(trace)
        try command.trace(name)
        var keys = ""
        if FileManager.default.fileExists(atPath: Command.traces.appending(path: "\(trace).keys").path) {
          try command.trace("\(trace).keys")
          keys = "--keys \(trace).keys"
        }
        let (recording, records) = try (page(command, "\(keys) \(trace)"), page(command, name))
        #expect(recording == records, "\(trace)")
        #expect(recording.hasPrefix("# Trace: "))
      }
    }
  }

  @Test("Standard input, a pipe or a file, makes the same report as the file, and leaves nothing behind in the folder")
  func standardInput() throws {
    try Command.inFolder { command in
      try command.trace("known-bad-and-errors.pcap", as: "a.pcap")
      try command.trace("known-bad-and-errors.pcap.jsonl", as: "a.jsonl")
      func told(_ line: String) throws -> Substring {
        let outcome = try command.shell("\(line) --output out")
        #expect(outcome.status == 0, "\(outcome.errors)")
        // The title has the input's name.
        return try Self.text(command).drop { $0 != "\n" }
      }
      let kept = try told("$apnscope report a.pcap")
      for line in [
        "cat a.pcap | $apnscope report -", "$apnscope report - < a.pcap", "cat a.jsonl | $apnscope report -",
        "$apnscope decode --format jsonl a.pcap | $apnscope report -",
      ] { #expect(try told(line) == kept, "\(line)") }
      // A file that was read in part goes on from there, as other programs have it.
      let rest = try told("tail -n +2 a.jsonl > rest.jsonl; $apnscope report rest.jsonl")
      #expect(rest != kept)
      #expect(try told("exec < a.jsonl; read -r line; $apnscope report -") == rest)
      #expect(try command.shell("ls -A out | grep standard").output == "")
      let outcome = try command.shell("printf x | $apnscope report - --output out")
      #expect(outcome.status == 65 && outcome.errors.contains("stdin"), "\(outcome.errors)")
      // No folder is made for an input that is no good, from wherever it comes; one in it may have to be.
      for folder in ["new", "new/er", "./new/er/", "out/new/er"] {
        for line in ["printf x | $apnscope report -", "printf x > bad; $apnscope report bad"] {
          #expect(try command.shell("\(line) --output \(folder)").status == 65)
          #expect(try command.shell("ls -A . out | grep -e new -e standard").output == "", "\(line), \(folder)")
        }
        let made = try command.shell("cat a.pcap | $apnscope report - --output \(folder)")
        #expect(made.status == 0, "\(made.errors)")
        #expect(try Self.text(command, folder).drop { $0 != "\n" } == kept)
        #expect(try command.shell("rm -r new out/new; ls -A . out | grep standard").output == "")
      }
    }
  }

  @Test("Copies of another report's sources stay in the folder, and are named") func strangers() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap", as: "trace")
      #expect(try command.run("report", "trace", "--output", "out").errors == "")
      for name in ["run.json", "ledger.json"] { try command.write(Array("measured".utf8), "out/\(name)") }
      let outcome = try command.run("report", "trace", "--output", "out")
      #expect(outcome.status == 0)
      #expect(
        outcome.errors
          == "apnscope: out/: these files in the folder are not inputs of the report and stay: run.json, ledger.json\n")
      #expect(try command.read("out/run.json") == "measured")
    }
  }

  @Test("Bad lines are named with their number and lose nothing that is good; unknown kinds are counted")
  func badLines() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap.jsonl", as: "good.jsonl")
      var lines = try command.read("good.jsonl").split(separator: "\n").map(String.init)
      lines.insert("{\"type\":\"notification\",\"connection\":1,\"command\":7}", at: 1)
      lines.insert("{\"type\":\"notification\",\"conn", at: 5)
      lines.insert("no JSON", at: 9)
      lines.insert("{\"type\":\"dance\",\"connection\":1}", at: 12)
      lines.insert("", at: 14)
      lines.insert("{\"a\":1}", at: 20)
      lines.insert("{\"type\":\"connection\",\"connection\":1,\"missing_bytes\":9223372036854775807}", at: 21)
      lines.insert("{\"type\":\"notification\",\"connection\":987654321,\"command\":0,\"token\":\"00\"}", at: 22)
      try command.write(Array(lines.joined(separator: "\n").utf8), "bad.jsonl")
      let good = try page(command, "good.jsonl")
      let outcome = try command.run("report", "bad.jsonl", "--output", "bad")
      #expect(outcome.status == 65)
      let complaints = outcome.errors.split(separator: "\n")
      #expect(complaints.count == 6, "\(outcome.errors)")
      for (complaint, start) in zip(
        complaints,
        [
          "bad.jsonl:2: 'command' exceeds 2", "bad.jsonl:6: not a JSON object", "bad.jsonl:10: not a JSON object",
          "bad.jsonl:21: not a record", "bad.jsonl:22: 'missing_bytes' ", "bad.jsonl:23: connection 987654321",
        ])
      {
        #expect(complaint.contains(start), "\(complaint)")
      }
      let bad = try Self.text(command, "bad").split(separator: "\n")
      let added = bad.filter { !good.split(separator: "\n").contains($0) }
      #expect(
        added == [
          "> **!** 6 lines of the records could not be read; skipped.",
          "> **!** 1 record is of an unknown kind; skipped.",
        ])
      let few = try command.run("report", "bad.jsonl", "--max-complaints", "2", "--output", "bad")
      #expect(few.errors.contains("4 more lines cannot be read (--max-complaints)"))
      // Nothing in it is any good.
      try command.write(Array("{\"type\":\"dance\"}\n".utf8), "none.jsonl")
      let none = try command.run("report", "none.jsonl", "--output", "none")
      #expect(none.status == 65 && none.errors.contains("no readable record"))
      #expect(throws: (any Error).self) { try command.read("none/report.md") }
    }
  }

  @Test("Records that are cut, or that a filter took from the others, make a page of what is there")
  func partOfRecords() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap.jsonl", as: "all.jsonl")
      let lines = try command.read("all.jsonl").split(separator: "\n")
      try command.write(Array(lines.prefix(20).joined(separator: "\n").utf8), "cut.jsonl")
      #expect(
        try page(command, "cut.jsonl").contains(
          "**19** notifications: 0 accepted, 0 rejected, 0 discarded, 19 unknown."))
      let second = lines.filter { $0.contains("\"connection\":2,") }
      try command.write(Array(second.joined(separator: "\n").utf8), "second.jsonl")
      let text = try page(command, "second.jsonl")
      #expect(text.contains("**32** notifications") || text.contains("**26** notifications"), "\(text.prefix(600))")
      // Two runs of decode, one behind the other: connections are numbered on.
      try command.write(Array((lines + lines).joined(separator: "\n").utf8), "twice.jsonl")
      let twice = try page(command, "twice.jsonl")
      #expect(twice.contains("**132** notifications: 14 accepted, 2 rejected, 52 discarded, 64 unknown."))
      #expect(twice.contains("| connections | **4** |"))
    }
  }

  @Test("Lists end at their limits and say how much more there is")
  func limits() throws {
    try Command.inFolder { command in
      try command.trace("known-bad-and-errors.pcap", as: "a.pcap")
      let few = try page(command, "a.pcap --rows 2")
      #expect(few.contains("And 2 more connections (`--rows`)."))
      #expect(few.contains("And 3 more error responses (`--rows`)."))
      let fewer = try page(command, "a.pcap --max-listed 1 --max-timelines 0 --max-tokens 1 --max-remembered 1")
      #expect(fewer.contains("And 3 more connections (`--rows`)."))
      #expect(fewer.contains("are of the first 1 responses (`--max-listed`)"))
      #expect(fewer.contains("| connections | **4** |"))
      #expect(try command.run("report", "a.pcap", "--rows", "-1", "--output", "x").status == 64)
      #expect(try command.run("report", "a.pcap", "--ledger", "b.json", "--output", "x").status == 64)
    }
  }

  @Test("What a recording says is text and no markup, in every format")
  func hostile() throws {
    try Command.inFolder { command in
      let name = "<img src=x onerror=alert(1)>|`x`.jsonl"
      let lines = [
        #"{"type":"capture","schema":1,"source":"</style><script>alert('s')</script>.pcap","format":"pcap","link_types":[]}"#,
        #"{"type":"notification","connection":1,"index":0,"time":"2015-09-16T01:02:03Z","packet":1,"length":9,"command":0,"token":"00","payload":{"<script>":"</script>"}}"#,
        #"{"type":"notification","connection":1,"index":1,"time":"2015-09-16T01:02:04Z","packet":2,"length":9,"command":0,"token":"00","payload":{}}"#,
        #"{"type":"connection","connection":1,"service":"gateway","client":"10.0.0.1:1","server":"10.0.0.2:2195","opened":"2015-09-16T01:02:03Z","closed":"2015-09-16T01:02:04Z","end":"client_fin","tls":{"version":"TLS 1.2","decrypted":true,"problem":"<b>bold</b> \u0000\u202e","client_subject":"UID=\"><script>alert(2)</script>|[x](javascript:y)"}}"#,
      ]
      try command.write(Array(lines.joined(separator: "\n").utf8), "a.jsonl")
      try FileManager.default.copyItem(
        at: command.folder.appending(path: "a.jsonl"), to: command.folder.appending(path: name))
      #expect(try command.run("report", name, "--output", "out").status == 0)
      let (html, text) = try (command.read("out/report.html"), command.read("out/report.md"))
      #expect(html.split(separator: "<script").count == 2 && !html.contains("<img") && !html.contains("<b>bold"))
      #expect(html.contains("&lt;script&gt;alert(2)"))
      #expect(!text.contains("<script") && !text.contains("[x](j"))
      #expect(!text.replacing("`apnscope report '<img", with: "").contains("<img"))
      #expect(!html.unicodeScalars.contains("\u{202e}") && !html.unicodeScalars.contains("\u{0}"))
      let chart = try command.read("out/chart-1.svg")
      #expect(!chart.contains("<script"))
    }
  }
}
