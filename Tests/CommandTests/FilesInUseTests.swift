import Foundation
import TestSupport
import Testing

/// No file that a command reads is written over, and none is emptied for nothing.
@Suite("files in use", .waiting)
struct FilesInUseTests {
  private static let capture = "plain-error.pcap"

  /// A folder with a capture, links to it, and a TLS capture with its keys.
  private func inFolder(_ body: (Command) throws -> Void) throws {
    try Command.inFolder { command in
      try command.trace(Self.capture, as: "c.pcap")
      try command.trace("tls-gateway.pcap", as: "t.pcap")
      try command.trace("tls-gateway.pcap.keys", as: "t.keys")
      let links = "ln -s c.pcap symbolic; ln c.pcap hard; mkdir d; ln c.pcap d/gap.csv; ln -s nothing dangling"
      #expect(try command.shell(links).status == 0)
      try body(command)
      #expect(try bytes("c.pcap", command) == Data(contentsOf: Command.traces.appending(path: Self.capture)))
      let keys = Command.traces.appending(path: "tls-gateway.pcap.keys")
      #expect(try bytes("t.keys", command) == Data(contentsOf: keys))
    }
  }

  private func bytes(_ name: String, _ command: Command) throws -> Data {
    try Data(contentsOf: command.folder.appending(path: name))
  }

  @Test(
    "decode writes over nothing that it reads, whatever leads to it",
    arguments: [
      "decode --output c.pcap c.pcap", "decode --output symbolic c.pcap", "decode --output c.pcap hard",
      "decode --output ./d/../c.pcap c.pcap", "decode --format csv --output c.pcap c.pcap",
      "decode --format csv --output d/ c.pcap", "decode --output c.pcap - < c.pcap", "decode c.pcap >> c.pcap",
      "decode --keys t.keys --output t.keys t.pcap", "decode --keys t.keys --export-keys t.keys t.pcap",
      "inspect c.pcap >> c.pcap",
    ])
  func read(line: String) throws {
    try inFolder { command in
      let outcome = try command.shell("\"$apnscope\" \(line)")
      #expect(outcome.status == 64)
      #expect(outcome.errors.contains("would overwrite"))
    }
  }

  @Test(
    "Two options do not write the same file",
    arguments: [
      "--export-keys o --output o", "--export-keys ./o --output o", "--export-keys nothing --output dangling",
    ])
  func written(options: String) throws {
    try inFolder { command in
      let outcome = try command.shell("\"$apnscope\" decode \(options) --keys t.keys t.pcap")
      #expect(outcome.status == 64)
      #expect(outcome.errors.contains("are the same file"))
      // Devices are no files.
      let devices = "\"$apnscope\" decode --export-keys /dev/null --output /dev/null --keys t.keys t.pcap"
      #expect(try command.shell(devices).status == 0)
    }
  }

  @Test(
    "Nor do the other commands",
    arguments: [
      "merge r.json r.json --output r.json", "load --plain --replay r.json --output r.json",
      "load --plain --payload-from r.json --keylog r.json", "load --plan r.json --output r.json",
      "capacity --plain --payload-from r.json --output folder", "simulate --plain --settings r.json --ledger r.json",
      "simulate --plain --devices-file r.json --log r.json", "report c.pcap --output reports",
    ])
  func others(line: String) throws {
    try inFolder { command in
      // A plan and settings must be TOML to come so far.
      let text = line.contains("--plan") || line.contains("--settings") ? "plain = true\n" : "{}"
      try command.write(Array(text.utf8), "r.json")
      let links = "mkdir folder reports; ln r.json folder/capacity.json; ln -s ../c.pcap reports/chart-1.svg"
      #expect(try command.shell(links).status == 0)
      let outcome = try command.shell("timeout 240 \"$apnscope\" \(line)")
      #expect(outcome.status == 64)
      #expect(outcome.errors.contains("would overwrite"))
      #expect(try command.read("r.json") == text)
    }
  }

  @Test(
    "What stood in the output stays when nothing can be read, and no file is left that was not there",
    arguments: [
      ("nosuch", 66), ("--keys nosuch t.pcap", 66), ("--filter 'foo bar' c.pcap", 64), ("diary", 65),
      ("--export-keys keys nosuch", 66), ("--format csv nosuch", 66), ("--format table diary", 65),
    ] as [(String, Int32)])
  func kept(options: String, status: Int32) throws {
    try inFolder { command in
      try command.write(Array("Dear diary".utf8), "diary")
      for name in ["good", "keys"] { try command.write(Array("good".utf8), name) }
      for output in ["good", "new"] {
        let outcome = try command.shell("\"$apnscope\" decode --output \(output) \(options)")
        #expect(outcome.status == status)
      }
      #expect(try command.read("good") == "good")
      #expect(try command.read("keys") == "good")
      #expect(!FileManager.default.fileExists(atPath: command.folder.appending(path: "new").path))
    }
  }

  @Test("What stood in the output is gone when something is read, and keys are their owner's alone") func replaced()
    throws
  {
    try inFolder { command in
      let old = [UInt8](repeating: 10, count: 1 << 20)
      for name in ["records", "keys"] { try command.write(old, name) }
      let outcome = try command.run(
        "decode", "--output", "records", "--export-keys", "keys", "--keys", "t.keys", "t.pcap")
      #expect(outcome.status == 0)
      #expect(try command.read("records") == (try command.run("decode", "--keys", "t.keys", "t.pcap").output))
      #expect(try command.read("keys").hasPrefix("CLIENT_RANDOM "))
      let keys = command.folder.appending(path: "keys").path
      let mode = try FileManager.default.attributesOfItem(atPath: keys)[.posixPermissions] as? Int
      #expect(mode == 0o600)
    }
  }
}
