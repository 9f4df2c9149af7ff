import Foundation
import TestSupport
import Testing

@Suite("Nothing private survives redaction", .waiting)
struct RedactionCanaryTests {
  /// A name that a file can have.
  private static func name(_ canary: Canary) -> String { canary.text.replacing("/", with: "_") }

  private func inFolder(_ canary: Canary, _ body: (Command, String) throws -> Void) throws {
    try Command.inFolder { command in
      let name = Self.name(canary)
      try command.write(CanaryRecording.bytes(of: canary), "\(name).pcapng")
      try command.write(Array(repeating: 7, count: 16), "key")
      try body(command, name)
    }
  }

  /// Output, errors and files of a command, of which none may hold it.
  private func expectNone(
    of canary: Canary, _ arguments: [String], in command: Command, statuses: [Int32], files: [String] = []
  ) throws {
    let outcome = try command.run(arguments)
    let shown = Comment(rawValue: "\(arguments.prefix(2)) \(outcome.errors.prefix(600))")
    #expect(statuses.contains(outcome.status), shown)
    #expect(!canary.isIn(Array(outcome.output.utf8)), shown)
    #expect(!canary.isIn(Array(outcome.errors.utf8)), shown)
    for file in files {
      let bytes = try Data(contentsOf: command.folder.appending(path: file))
      #expect(!bytes.isEmpty && !canary.isIn(Array(bytes)), "\(file)")
    }
  }

  private static let commands = [
    ["decode"], ["decode", "--format", "csv"], ["decode", "--format", "table"],
    ["decode", "--fields", "source,token,payload,client,interface,problem,bytes,items"], ["inspect"],
    ["inspect", "--format", "json"], ["inspect", "--status", "8"], ["follow"], ["follow", "--format", "table"],
    ["follow", "--format", "csv"],
  ]

  @Test("A canary in every text of a recording is in no output", arguments: some(4, of: Array(Canary.all.indices)))
  func recordings(index: Int) throws {
    let canary = Canary.all[index]
    try inFolder(
      canary,
      { command, name in
        // It is there, or the test says nothing.
        let plain = try command.run("decode", "\(name).pcapng")
        #expect(plain.status == 0 && plain.output.contains(#""type":"capture_loss""#), "\(plain.errors)")
        #expect(canary.text.contains("\"") || plain.output.contains(canary.text))
        for arguments in Self.commands {
          try expectNone(
            of: canary, arguments + ["--redact", "--redact-key", "key", "\(name).pcapng"], in: command, statuses: [0])
        }
        try expectNone(
          of: canary, ["report", "--redact", "--redact-key", "key", "--output", "page", "\(name).pcapng"], in: command,
          statuses: [0], files: ["page/report.md", "page/report.html"])
        // It names its files: only what it writes is passed on.
        try command.write(CanaryRecording.bytes(of: canary), "capture.pcapng")
        try expectNone(
          of: canary, ["redact", "--redact-key", "key", "--output", "copy.pcapng", "capture.pcapng"], in: command,
          statuses: [0], files: ["copy.pcapng"])
      })
  }

  @Test("A canary in every text of records is in no page", arguments: some(4, of: Array(Canary.all.indices)))
  func records(index: Int) throws {
    let canary = Canary.all[index]
    try inFolder(canary) { command, name in
      let records = try command.run("decode", "\(name).pcapng").lines.compactMap {
        try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
      }
      // Texts that say what a record is stay in one file, and are replaced in the other one, too.
      for (file, kept) in [
        ("a.jsonl", ["type", "time", "opened", "closed", "fate", "service"]), ("b.jsonl", ["type"]),
      ] {
        let lines = try records.map { record in
          var record = record
          for (key, value) in record where value is String && !kept.contains(key) { record[key] = canary.text }
          record[canary.text] = canary.text
          if record["type"] as? String == "connection" {
            record["tls"] = [
              "decrypted": false, "problem": canary.text, "alert": canary.text, "client_subject": "UID=\(canary.text)",
            ]
          }
          if record["type"] as? String == "capture" {
            record["selection"] = ["--from=\(canary.text)", canary.text, "--\(canary.text)", "--token=\(canary.text)"]
          }
          return String(decoding: try JSONSerialization.data(withJSONObject: record), as: UTF8.self)
        }
        try command.write(Array(lines.joined(separator: "\n").utf8), file)
        try expectNone(
          of: canary, ["report", "--redact", "--redact-key", "key", "--output", "page", file], in: command,
          statuses: [0, 65])
        let page = command.folder.appending(path: "page/report.html")
        if FileManager.default.fileExists(atPath: page.path) {
          #expect(canary.isIn(Array(try Data(contentsOf: page))) == false)
          #expect(canary.isIn(Array(try command.read("page/report.md").utf8)) == false)
        }
      }
    }
  }

  @Test(
    "A canary in a command line is in no output, and no message repeats it",
    arguments: some(4, of: Array(Canary.all.indices)))
  func commandLines(index: Int) throws {
    let canary = Canary.all[index]
    try inFolder(canary) { command, name in
      let file = "\(name).pcapng"
      let folder = "folder \(name)"
      try FileManager.default.createDirectory(
        at: command.folder.appending(path: folder), withIntermediateDirectories: true)
      try command.write(CanaryRecording.bytes(of: canary), "\(folder)/ring \(name)")
      try command.write(Array("none".utf8), "\(folder)/other \(name).txt")
      // It ends in the middle of a packet, of which a message tells.
      try command.write(CanaryRecording.bytes(of: canary).dropLast(7), "\(folder)/cut \(name)")
      try command.write(Array("no key log".utf8), "keys \(name)")
      let text = canary.text
      for (arguments, statuses) in [
        ([file, "--topic", text, "--payload-topic", text], [0]), ([file, "--token", text], [0, 64]),
        (["\(folder)/"], [0]), ([folder], [0]), (["\(folder)/missing \(name)"], [66]), ([text], [66]),
        ([file, text], [66]),
        (["keys \(name)"], [65]), ([file, "--keys", "keys \(name)"], [0, 65]),
        ([file, "--keys", "missing \(name)"], [66]),
        ([file, "--filter", text], [0, 64]), ([file, "--filter", "host \(text)"], [0, 64]),
        ([file, "--redact-key", text], [65, 66]), ([file, "--from", text], [0, 64]),
        ([file, "--status=\(text)"], [0, 64]),
        ([file, "--type", text], [64]), ([file, "--\(text)"], [64]), ([file, "--port", text], [64]),
        ([file, "--identifier", text], [0, 64]),
      ] as [([String], [Int32])] {
        for first in [["decode"], ["inspect", "--format", "json"]] {
          try expectNone(of: canary, first + ["--redact"] + arguments, in: command, statuses: statuses)
        }
      }
      let page = ["report", "--redact", "--output", "pages", file, "--topic", text, "--payload-topic", text]
      try expectNone(
        of: canary, page, in: command, statuses: [0], files: ["pages/report.md", "pages/report.html"])
      try expectNone(of: canary, ["report", "--redact", "--output", "page \(name)", file], in: command, statuses: [0])
      try expectNone(
        of: canary, ["decode", "--redact", "--fields", text, file], in: command, statuses: [64])
      try expectNone(
        of: canary, ["decode", "--redact", "--output", "missing/\(name)", file], in: command, statuses: [74])
    }
  }

  @Test("A command line on a page has the names of its options alone")
  func footer() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.run(
        "report", "--redact", "--output=page", "--filter", "tcp", "plain-error.pcap", "--token", "43")
      #expect(outcome.status == 0, "\(outcome.errors)")
      let line = "apnscope report --redact --output=redacted --filter redacted redacted --token redacted"
      #expect(try command.read("page/report.md").contains(line))
      #expect(outcome.output == "argument 3/report.html\nargument 3/report.md\n")
    }
  }

  @Test("A message names an argument by its number")
  func message() throws {
    try Command.inFolder { command in
      let outcome = try command.run("decode", "--redact", "nosuch.pcap")
      #expect(outcome.status == 66 && outcome.errors == "apnscope: argument 3: No such file or directory\n")
    }
  }
}
