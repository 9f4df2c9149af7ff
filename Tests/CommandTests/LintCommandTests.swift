import Foundation
import TestSupport
import Testing

@Suite("lint", .waiting)
struct LintCommandTests {
  private func codes(_ line: String) throws -> [String] {
    let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    return try #require(object["lint"] as? [String])
  }

  @Test("A finding has its file, line and column, its severity, its code and a sentence")
  func places() throws {
    try Command.inFolder { command in
      try command.write(Array("{\n  \"aps\": {\n    \"alert\": \"é\", \"badge\": \"2\",\n  }\n}".utf8), "push.json")
      let broken = try command.run("lint", "push.json")
      #expect(broken.status == 1)
      #expect(
        broken.lines == [
          "push.json:3:31: error json_trailing_comma: A comma is followed by a closing bracket.",
          "1 payload (invalid): 1 error",
        ])
      try command.write(Array(#"{"aps":{"alert":"é","badge":"2"}}"#.utf8), "push.json")
      let text = try command.run("lint", "push.json", "--era", "2015")
      #expect(text.lines.first == "push.json:1:29: warning badge_type: The badge is not a number.")
      #expect(text.lines.last == "1 payload (alert): 1 warning")
    }
  }

  @Test("Standard input is judged, errors are told by the exit code, and strictness is about warnings, too")
  func strictness() throws {
    try Command.inFolder { command in
      let cases: [(text: String, lax: Int32, strict: Int32)] = [
        (#"{"aps":{"alert":"hi"}}"#, 0, 0), (#"{"aps": {"alert":"hi"}}"#, 0, 0),
        (#"{"aps":{"alert":"hi","badge":-1}}"#, 0, 1), (#"{"aps":{"alert":"hi",}}"#, 1, 1),
      ]
      for (text, status, strict) in cases {
        try command.write(Array(text.utf8), "payload")
        let lax = try command.run("lint", "-", input: command.folder.appending(path: "payload").path)
        #expect(lax.status == status && !lax.output.isEmpty)
        #expect(try command.run("lint", "--strict", "payload").status == strict, "\(text)")
      }
    }
  }

  @Test("The line break at the end of a file is no part of the payload", arguments: ["", "\n", "\r\n"])
  func finalLineBreak(end: String) throws {
    try Command.inFolder { command in
      try command.write(Array((#"{"aps":{"alert":"hi"}}"# + end).utf8), "payload")
      #expect(try command.run("lint", "payload").lines == ["1 payload (alert): clean"])
      #expect(try command.run("lint", "payload", "--format", "json").output.contains(#""payload_length":22,"#))
      try command.write(Array((#"{"aps":{"alert":"hi"}}"# + "\n" + end).utf8), "payload")
      #expect(try command.run("lint", "payload").output.contains("payload_not_minified") == !end.isEmpty)
    }
  }

  @Test("Several files are judged, each finding has its file, and one that is missing stops none")
  func manyFiles() throws {
    try Command.inFolder { command in
      try command.write(Array(#"{"aps":{"alert":"hi",}}"#.utf8), "a.json")
      try command.write(Array(#"{"aps":{"badge":-1}}"#.utf8), "b.json")
      let both = try command.run("lint", "a.json", "b.json")
      #expect(both.status == 1)
      #expect(both.lines.map { $0.prefix(6) } == ["a.json", "b.json", "2 payl"])
      #expect(both.lines.last == "2 payloads (1 badge_only, 1 invalid): 1 error, 1 warning")
      let missing = try command.run("lint", "none.json", "b.json", "--format", "json")
      #expect(missing.status == 66 && missing.errors.contains("none.json"))
      #expect(missing.lines.count == 1 && missing.output.hasPrefix(#"{"file":"b.json","payload_length":20,"#))
    }
  }

  @Test("Findings are sorted by place, and every unknown key is told")
  func order() throws {
    try Command.inFolder { command in
      try command.write(
        Array(
          #"""
          {"aps":{"zebra":1,"badge":"1","harbour":2,
          "alert":{"body":"x &amp; y","colour":"blue"}}}
          """#.utf8), "payload")
      let told = try command.run("lint", "payload", "--input", "payload")
      let places = told.lines.dropLast().map { line in
        line.split(separator: ":").dropFirst().prefix(2).map(String.init).joined(separator: ":")
      }
      #expect(places == ["1:9", "1:27", "1:31", "1:43", "2:17", "2:29"], "\(told.output)")
      #expect(told.lines.filter { $0.contains("key_unknown") }.count == 3)
      #expect(told.lines.last == "1 payload (alert): 2 warnings, 4 of advice")
    }
  }

  @Test(
    "Messages tell what is particular: an escape that JSON has not, an envelope, a placeholder",
    arguments: [
      (##"{"aps":{"alert":"Good job \U0001F44D"}}"##, ##"(\U is no escape of JSON"##),
      (##"{\"aps\":{\"alert\":\"x\"}}"##, "the text was escaped as a whole"),
      (
        #"{"message":{"token":"abc","apns":{"payload":{"aps":{"badge":1}}}}}"#,
        "(aps is nested inside message.apns.payload)"
      ),
      (#"{"APNS":"{\"aps\":{\"badge\":1}}"}"#, "(aps is nested inside the text of APNS)"),
      (#"{"aps":{"alert":"x"}}"#, "error url_args_missing"),
    ])
  func particulars(payload: String, message: String) throws {
    try Command.inFolder { command in
      try command.write(Array(payload.utf8), "payload")
      let told = try command.run("lint", "payload", "--payload-topic", "web.com.example.site")
      #expect(told.output.contains(message), "\(told.output)")
    }
  }

  @Test("JSON Lines are judged line by line, and each object tells its line")
  func lines() throws {
    try Command.inFolder { command in
      let text = """
        {"aps":{"alert":"one"}}
        {"aps":{"alert":"two",}}

        {"aps":{"content-available":1}}
        """
      try command.write(Array(text.utf8), "payloads.jsonl")
      let outcome = try command.run("lint", "payloads.jsonl", "--format", "json", "--command", "2", "--priority", "10")
      #expect(try outcome.lines.map(codes) == [[], ["json_trailing_comma"], ["silent_priority_10"]])
      #expect(outcome.lines.map { $0.prefix(9) } == ["{\"line\":1", "{\"line\":2", "{\"line\":4"])
      #expect(outcome.lines[1].contains(#""offset":21,"line":1,"column":22"#))
      // As one payload it is none.
      let whole = try command.run("lint", "payloads.jsonl", "--input", "payload", "--format", "json")
      #expect(try whole.lines.map(codes) == [["json_syntax"]])
    }
  }

  @Test("Records of decode are judged with their frames, and decode says the same of them")
  func records() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let records = try command.run("decode", "plain-error.pcap")
      try command.write(Array(records.output.utf8), "records.jsonl")
      let judged = try command.run("lint", "records.jsonl", "--format", "json")
      let notifications = records.lines.filter { $0.hasPrefix(#"{"type":"notification""#) }
      let told = try notifications.map { line in
        let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        return object["lint"] as? [String] ?? []
      }
      #expect(try judged.lines.map(codes) == told)
      #expect(notifications.count == 66)
      let without = try command.run("decode", "plain-error.pcap", "--no-lint")
      #expect(!without.output.contains(#""kind""#) && !without.output.contains(#""lint""#))
    }
  }

  @Test("Kinds and rules can be selected as fields, in every format, into one file and into a folder")
  func fields() throws {
    try Command.inFolder { command in
      try command.trace("known-bad-and-errors.pcap")
      func told(_ text: String) throws -> [[String]] {
        try text.split(separator: "\n").compactMap { line in
          let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
          guard let kind = object["kind"] as? String else { return nil }
          return [kind] + (object["lint"] as? [String] ?? [])
        }
      }
      let whole = try told(try command.run("decode", "known-bad-and-errors.pcap").output)
      #expect(whole.contains { $0.count > 1 } && Set(whole.map(\.first)).count > 1)
      let lines = try command.run("decode", "known-bad-and-errors.pcap", "--fields", "kind,lint")
      #expect(try told(lines.output) == whole)
      let rows = whole.map { "\($0[0]),\($0.dropFirst().joined(separator: " "))" }
      let table = try command.run("decode", "known-bad-and-errors.pcap", "--fields", "kind,lint", "--format", "csv")
      #expect(table.lines == ["kind,lint"] + rows)
      let folder = try command.run(
        "decode", "known-bad-and-errors.pcap", "--fields", "lint,kind", "--format", "csv", "--output", "out/")
      #expect(folder.status == 0)
      #expect(try command.read("out/notification.csv") == (["kind,lint"] + rows).joined(separator: "\n") + "\n")
      let records = try command.run("decode", "known-bad-and-errors.pcap", "--output", "records/")
      #expect(records.status == 0)
      #expect(try told(try command.read("records/notification.jsonl")) == whole)
      let people = try command.run("decode", "known-bad-and-errors.pcap", "--format", "table")
      for verdict in whole where verdict.count > 1 {
        #expect(people.output.contains("\(verdict[0])  lint: \(verdict.dropFirst().joined(separator: " "))"))
      }
    }
  }

  @Test("The topic of payloads is that of the option where no certificate names one")
  func topic() throws {
    try Command.inFolder { command in
      try command.write(Array(#"{"aps":{"alert":"x"}}"#.utf8), "payload")
      let voip = ["--payload-topic", "com.example.app.voip"]
      let shown = try command.shell("$apnscope lint payload --format json \(voip.joined(separator: " "))")
      #expect(try shown.lines.map(codes) == [["voip_aps_ignored"]])
      try command.trace("plain-error.pcap")
      let decoded = try command.shell("$apnscope decode plain-error.pcap --fields kind \(voip.joined(separator: " "))")
      #expect(decoded.output.contains(#""kind":"voip""#) && !decoded.output.contains(#""kind":"alert""#))
      let inspected = try command.shell("$apnscope inspect plain-error.pcap \(voip.joined(separator: " "))")
      #expect(inspected.output.contains("66 voip"))
      #expect(try command.shell("$apnscope lint payload --newsstand \(voip.joined(separator: " "))").status == 64)
    }
  }

  @Test(
    "A second judge, with Python's JSON, gives every payload the same codes and kind",
    .enabled(if: SecondDecoder.isPossible), arguments: seeds(1, of: 12))
  func secondJudge(seed: UInt64) throws {
    try Command.inFolder { command in
      let tests = Command.traces.deletingLastPathComponent().appending(path: "Tests")
      let outcome = try RunningProcess(
        "python3",
        [
          tests.appending(path: "SecondDecoder/judge.py").path, "--seed", "\(seed)", "--count", "4000", Command.path,
          tests.appending(path: "PayloadTests/Vectors/payload-rules.jsonl").path,
        ], in: command.folder
      ).end()
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      #expect(outcome.lines.last?.hasSuffix(#""differing": 0}"#) == true)
    }
  }

  @Test("The app's texts show keys that are missing, and arguments too few")
  func strings() throws {
    try Command.inFolder { command in
      let folder = command.folder.appending(path: "App/ja.lproj")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try command.write(Array(#""A" = "%@ と %@";"#.utf8), "App/ja.lproj/Localizable.strings")
      try command.write(
        Array(
          #"""
          {"aps":{"alert":{"loc-key":"A","loc-args":["x"]}}}
          {"aps":{"alert":{"loc-key":"B"}}}
          """#.utf8), "payloads.jsonl")
      let outcome = try command.run(
        "lint", "payloads.jsonl", "--format", "json", "--strings", "App", "--language", "ja")
      #expect(try outcome.lines.map(codes) == [["loc_args_too_few"], ["loc_key_not_found"]])
      #expect(try command.run("lint", "payloads.jsonl", "--strings", "App", "--language", "fr").status == 66)
    }
  }

  @Test("Options that make no sense, and files that cannot be used, are refused")
  func refusals() throws {
    try Command.inFolder { command in
      try command.write(Array("{}".utf8), "payload")
      for arguments in [["--era", "2008"], ["--era", "2022"], ["--command", "3"], ["--priority", "5"]] {
        #expect(try command.shell("$apnscope lint payload \(arguments.joined(separator: " "))").status == 64)
      }
      #expect(try command.run("lint", "missing").status == 66)
      #expect(try command.run("lint", "payload", "--max-input-length", "1").status == 65)
    }
  }
}
