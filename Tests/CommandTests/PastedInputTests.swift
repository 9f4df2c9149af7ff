import Foundation
import TestSupport
import Testing

/// What people paste, send and unpack: the command reads it like the capture itself.
@Suite("Pasted inputs", .waiting)
struct PastedInputTests {
  /// Packs `plain-error.pcap` with Python's libraries.
  private func pack(_ command: Command, _ script: String) throws {
    try command.trace("plain-error.pcap", as: "c.pcap")
    let made = try RunningProcess(
      "python3", ["-c", "import bz2, io, lzma, tarfile, zipfile\nc = open('c.pcap', 'rb').read()\n" + script],
      in: command.folder
    ).end()
    #expect(made.status == 0, "\(made.errors)")
  }

  private static let packs: [(name: String, word: String, script: String)] = [
    ("c.zip", "zip", "zipfile.ZipFile('c.zip', 'w', zipfile.ZIP_DEFLATED).writestr('a/c.pcap', c)"),
    (
      "many.zip", "zip",
      """
      with zipfile.ZipFile('many.zip', 'w', zipfile.ZIP_DEFLATED) as z:
          z.writestr('__MACOSX/._c.pcap', b'x' * 99)
          z.writestr('readme.txt', 'see the capture')
          z.writestr('c.pcap', c)
      """
    ),
    ("c.bz2", "bzip2", "open('c.bz2', 'wb').write(bz2.compress(c))"),
    ("c.xz", "xz", "open('c.xz', 'wb').write(lzma.compress(c))"),
    ("c.tar", "tar", "t = tarfile.open('c.tar', 'w'); t.add('c.pcap'); t.close()"),
    ("c.tgz", "tar", "t = tarfile.open('c.tgz', 'w:gz'); t.add('c.pcap'); t.close()"),
    ("c.txz", "tar", "t = tarfile.open('c.txz', 'w:xz'); t.add('c.pcap'); t.close()"),
  ]

  @Test("A packed capture decodes to the same records, and is named", arguments: packs)
  func packed(name: String, word: String, script: String) throws {
    try Command.inFolder { command in
      try pack(command, script)
      func records(_ outcome: Outcome) -> [String] { outcome.lines.filter { !$0.hasPrefix(#"{"type":"capture""#) } }
      let expected = records(try command.run("decode", "c.pcap"))
      let file = try command.run("decode", name, "--strict")
      #expect(records(file) == expected && file.errors.contains(word))
      let inspected = try command.run("inspect", name)
      #expect(inspected.output.contains("66 (66 command 1)"))
      // Through a pipe as well, but for an archive in gzip, whose end comes before its contents are known.
      let pipe = try command.shell("cat \(name) | $apnscope decode -")
      if name == "c.tgz" {
        #expect(pipe.errors.contains("unpack it first"))
      } else if name != "many.zip" {
        // One pass over a pipe knows no fates yet.
        #expect(records(pipe) == records(try command.shell("cat c.pcap | $apnscope decode -")))
      }
    }
  }

  @Test("An archive that expands to more than the limit is read up to it")
  func limit() throws {
    try Command.inFolder { command in
      try pack(command, "open('c.xz', 'wb').write(lzma.compress(c + bytes(50_000_000)))")
      let cut = try command.run("decode", "c.xz", "--max-expanded-length", "5KB")
      #expect(cut.errors.contains("--max-expanded-length") && cut.output.contains(#""type":"summary""#))
    }
  }

  @Test(
    "Files that are none are named",
    arguments: [
      ("GMBU\u{2}\0", "Network Monitor"),
      ("version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"),
      ("PK\u{3}\u{4}", "cannot be unpacked"), ("<!DOCTYPE html>\n<p>", "HTML page"),
      ("Follow: tcp,ascii\nNode 0: 1.2.3.4:5\n", "follow,tcp,raw"),
      ("10:00:00.0 IP 10.0.0.5.4001 > 10.0.0.9.2195: Flags [S], seq 1\n", "tcpdump -X"),
    ])
  func named(contents: String, words: String) throws {
    try Command.inFolder { command in
      try command.write(Array(contents.utf8), "file")
      let outcome = try command.run("inspect", "file")
      #expect(outcome.status == 65 && outcome.errors.contains(words), "\(outcome.errors)")
    }
  }

  @Test("Key logs and records that are given for captures are still named, though text is looked through for bytes")
  func others() throws {
    try Command.inFolder { command in
      let digits = String(repeating: "0a", count: 48)
      try command.write(Array("CLIENT_RANDOM \(digits.prefix(64)) \(digits)\n".utf8), "keys")
      #expect(try command.run("inspect", "keys").errors.contains("is a key log"))
      try command.trace("plain-error.pcap")
      let records = try command.run("decode", "plain-error.pcap")
      try command.write(Array(records.output.utf8), "records")
      #expect(try command.run("inspect", "records").errors.contains("holds records of 'apnscope decode'"))
    }
  }

  @Test("What tcpdump and tshark print of a capture decodes to what the capture does")
  func printed() throws {
    guard ExternalTool.isInstalled("tcpdump"), ExternalTool.isInstalled("tshark") else { return }
    try Command.inFolder { command in
      try command.trace("plain-error.pcap", as: "c.pcap")
      func told(_ path: String) throws -> [String] {
        let outcome = try command.run("decode", path, "--type", "notification", "--fields", "identifier,token,fate")
        return outcome.lines
      }
      let expected = try told("c.pcap")
      #expect(expected.count == 66)
      for line in ["tcpdump -n -x -r c.pcap", "tcpdump -n -ttttXX -r c.pcap", "tshark -r c.pcap -x"] {
        #expect(try command.shell("\(line) > text 2> /dev/null").status == 0)
        #expect(try told("text") == expected, "\(line)")
      }
      for form in ["raw", "hex", "yaml"] {
        _ = try command.shell(
          "for n in 0 1; do tshark -r c.pcap -q -z follow,tcp,\(form),$n; done > text 2> /dev/null")
        #expect(try told("text") == expected, "\(form)")
      }
    }
  }

  @Test("A redacted capture has no preamble, and decodes to the same records")
  func redacted() throws {
    try Command.inFolder { command in
      let names = "192.0.2.77"
      // A conversation behind a balancer's header, as text of tshark's follow.
      let header = Array("PROXY TCP4 \(names) 192.0.2.78 40001 2195\r\n".utf8)
      let payload = Array(#"{"aps":{"alert":"Low tide"}}"#.utf8)
      let frame: [UInt8] = [1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 32] + (0..<32) + [0, UInt8(payload.count)] + payload
      func hex(_ bytes: [UInt8]) -> String { bytes.map { String(Int($0) + 0x100, radix: 16).dropFirst() }.joined() }
      try command.write(
        Array(
          """
          Follow: tcp,raw
          Node 0: 10.0.0.5:40001
          Node 1: 10.0.0.9:2195
          \(hex(header))
          \(hex(frame))
          \(hex(frame))
          \t080800000007

          """.utf8), "text")
      let decoded = try command.run("decode", "text")
      #expect(decoded.output.contains(#""preamble":"proxy_v1""#) && decoded.output.contains(#""malformed":0"#))
      #expect(try command.run("redact", "text", "--output", "clear.pcapng").status == 0)
      let clear = try command.run("decode", "clear.pcapng")
      #expect(clear.output.contains(#""notifications":2"#) && clear.output.contains(#""malformed":0"#))
      #expect(!clear.output.contains("preamble"))
      let bytes = try Data(contentsOf: command.folder.appending(path: "clear.pcapng"))
      #expect(bytes.range(of: Data(names.utf8)) == nil)
    }
  }
}
