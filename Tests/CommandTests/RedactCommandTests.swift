import Foundation
import TestSupport
import Testing

@Suite("redact", .waiting)
struct RedactCommandTests {
  /// Captures among the traces of which something can be written.
  private static let captures = [
    "feedback-clear.pcap", "ipv6-unknown-port.pcap", "known-bad-and-errors.pcap", "loss-reorder.pcap.gz",
    "plain-error.pcap", "shuffled-duplicated.pcap", "tls-feedback-tokens.pcap", "tls-known-bad.pcapng",
    "tls-late-error.pcap.gz", "tls-rsa-cbc.pcap", "tls-split-error.pcap", "tls10-shuffled-duplicated.pcap",
    "tls13-keys-missing.pcap", "tls13.pcap", "two-interfaces.pcapng", "vlan-qinq.pcap",
  ]

  /// Copies a trace and its keys; the arguments that name both.
  private func input(_ trace: String, in command: Command) throws -> [String] {
    try command.trace(trace)
    try command.write(Array(repeating: 7, count: 16), "key")
    let keys = "\(trace).keys"
    guard FileManager.default.fileExists(atPath: Command.traces.appending(path: keys).path) else { return [trace] }
    try command.trace(keys)
    return [trace, "--keys", keys]
  }

  private func records(_ arguments: [String], in command: Command) throws -> [[String: Any]] {
    try command.run(["decode"] + arguments).lines.map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
  }

  private func bytes(in command: Command) throws -> Data {
    try Data(contentsOf: command.folder.appending(path: "out.pcapng"))
  }

  @Test("decode finds in the copy what decode --redact finds in the recording", arguments: some(6, of: captures))
  func sameRecords(trace: String) throws {
    try Command.inFolder { command in
      let input = try input(trace, in: command)
      let outcome = try command.run(["redact", "--redact-key", "key", "--output", "out.pcapng"] + input)
      #expect(outcome.status == 0 && outcome.output == "", "\(outcome.errors)")
      func texts(_ arguments: [String]) throws -> [String] {
        let dropped: Set = ["offset", "packet", "tls", "connection"]
        let all = try records(arguments, in: command)
        let closed = Set(
          all.filter { ($0["tls"] as? [String: Any])?["decrypted"] as? Bool == false }.map { $0["connection"] as? Int })
        return try all.filter { $0["connection"] as? Int != nil && !closed.contains($0["connection"] as? Int) }
          .sorted { ($0["connection"] as? Int ?? 0) < ($1["connection"] as? Int ?? 0) }
          .map { record in
            let rest = record.filter { !dropped.contains($0.key) }
            return String(
              decoding: try JSONSerialization.data(withJSONObject: rest, options: .sortedKeys), as: UTF8.self)
          }
      }
      let known = try texts(["--redact", "--redact-key", "key"] + input)
      let copied = try texts(["out.pcapng"])
      #expect(copied == known && !copied.isEmpty)
    }
  }

  @Test("No token, text, address, name or secret of the recording is in the copy", arguments: some(6, of: captures))
  func nothingLeft(trace: String) throws {
    try Command.inFolder { command in
      let input = try input(trace, in: command)
      let outcome = try command.run(["redact", "--output", "out.pcapng"] + input)
      #expect(outcome.status == 0, "\(outcome.errors)")
      var secrets: Set<Data> = []
      for record in try records(input, in: command) {
        if let token = record["token"] as? String { secrets.formUnion(hidden(hex: token)) }
        let hosts = [record["client"], record["server"]].compactMap { $0 as? String }.map {
          $0.split(separator: ":").dropLast().joined(separator: ":")
        }
        for host in hosts { secrets.insert(Data(host.utf8)) }
        // Four bytes alone may be anything.
        let bytes = hosts.map { $0.split(separator: ".").compactMap { UInt8($0) } }
        if bytes.count == 2 { secrets.formUnion([Data(bytes[0] + bytes[1]), Data(bytes[1] + bytes[0])]) }
        if let subject = (record["tls"] as? [String: Any])?["client_subject"] as? String {
          secrets.insert(Data(subject.utf8))
        }
        for text in texts(in: record["payload"]) { secrets.insert(Data(text.utf8)) }
      }
      if input.count > 1 {
        let log = try command.read(input[2])
        for secret in log.split(whereSeparator: \.isWhitespace) where secret.count >= 64 {
          secrets.insert(Data(secret.utf8))
          secrets.formUnion(hidden(hex: String(secret)))
        }
      }
      #expect(secrets.count >= 2)
      let bytes = try bytes(in: command)
      for secret in secrets where secret.count >= 4 {
        #expect(bytes.range(of: secret) == nil, "\(secret.map { String($0, radix: 16) })")
      }
      for text in ["CLIENT_RANDOM", "example", "Ciao", "enp", "eth0", "Linux", "dumpcap"] {
        #expect(bytes.range(of: Data(text.utf8)) == nil, "\(text)")
      }
    }
  }

  @Test("Connections without a notification, response or feedback alone are no copy")
  func empty() throws {
    try Command.inFolder { command in
      _ = try input("plain-error.pcap", in: command)
      // Each connection is cut behind its handshake.
      let shell = try command.shell(
        """
        $apnscope redact plain-error.pcap --output out.pcapng --filter 'tcp[tcpflags] & tcp-syn != 0'
        echo $?; test -e out.pcapng; echo $?
        """)
      #expect(shell.output == "65\n1\n", "\(shell.output) \(shell.errors)")
      let text = "2 connections without notifications and feedback alone can be written, and nothing is"
      #expect(shell.errors == "apnscope: \(text)\n")
    }
  }

  /// Its bytes, and their digits.
  private func hidden(hex: String) -> Set<Data> {
    let digits = Array(hex)
    let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
      UInt8(String(digits[$0...$0 + 1]), radix: 16)
    }
    // Equal bytes are a placeholder, for which there are only 256 pseudonyms.
    return bytes.count < 8 || Set(bytes).count == 1 ? [] : [Data(bytes.prefix(8)), Data(hex.prefix(16).utf8)]
  }

  /// Texts that a user reads: those of the alert, if they are more than a few letters.
  private func texts(in payload: Any?) -> [String] {
    guard let aps = (payload as? [String: Any])?["aps"] as? [String: Any] else { return [] }
    let alert = aps["alert"]
    let all = [alert as? String] + ["title", "subtitle", "body"].map { (alert as? [String: Any])?[$0] as? String }
    return all.compactMap { $0 }.filter { $0.filter(\.isLetter).count > 3 && !$0.allSatisfy { "xX1 ".contains($0) } }
  }

  @Test(
    "Wireshark reads every packet of the copy, and no checksum or sequence number is wrong",
    .enabled(if: ExternalTool.isInstalled("tshark")), arguments: some(6, of: captures))
  func wireshark(trace: String) throws {
    try Command.inFolder { command in
      let input = try input(trace, in: command)
      let outcome = try command.run(["redact", "--output", "out.pcapng"] + input)
      let packets = try #require(outcome.errors.firstMatch(of: #/ ([0-9,]+) packets/#)?.output.1).filter(\.isNumber)
      let file = command.folder.appending(path: "out.pcapng").path
      let checks = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]
      func count(_ filter: String) throws -> Int {
        let lines = try ExternalTool.run(
          "tshark", ["-r", file] + checks + ["-Y", filter, "-T", "fields", "-e", "tcp.seq"])
        return lines.split(separator: UInt8(ascii: "\n")).count
      }
      #expect(try count("tcp.checksum.status == \"Good\"") == Int(packets))
      #expect(try count("_ws.malformed || tcp.analysis.ack_lost_segment || tcp.analysis.retransmission") == 0)
      let isOutOfOrder = trace.contains("shuffled") || trace.contains("reorder")
      #expect(try isOutOfOrder || count("tcp.analysis.lost_segment || tcp.analysis.out_of_order") == 0)
    }
  }

  @Test(
    "It says what is written, and what is left out and why",
    arguments: [
      (["plain-error.pcap"], 0, "2 connections written, 77 packets\n"),
      (["items-that-do-not-fit.pcap"], 0, "4 connections written, 28 packets; left out: 4 damaged\n"),
      (["tls13-keys-missing.pcap"], 0, "2 connections written, 12 packets; left out: 1 not decrypted\n"),
      (
        ["mid-stream.pcap.zst"], 65,
        "no connection can be written, and nothing is; left out: 1 without their beginning\n"
      ),
      (["plain-error.pcap", "--port", "2195=feedback"], 65, "left out: 2 damaged\n"),
      (["tls-without-keys.pcap"], 65, "left out: 1 not decrypted\n"),
      (["plain-error.pcap", "--filter", "udp"], 65, "no connection can be written, and nothing is\n"),
    ])
  func leftOut(arguments: [String], status: Int32, text: String) throws {
    try Command.inFolder { command in
      let input = try input(arguments[0], in: command) + arguments.dropFirst()
      let outcome = try command.run(["redact", "--output", "out.pcapng"] + input)
      #expect(outcome.status == status && outcome.errors.hasSuffix(text), "\(outcome.errors)")
      #expect(
        FileManager.default.fileExists(atPath: command.folder.appending(path: "out.pcapng").path) == (status == 0))
    }
  }

  @Test("Other protocols are left out and counted")
  func others() throws {
    try Command.inFolder { command in
      // The same connections, of which only those of the feedback service are known.
      _ = try input("plain-error.pcap", in: command)
      try command.write(HTTPCapture.bytes, "http.pcap")
      let outcome = try command.run("redact", "plain-error.pcap", "http.pcap", "--output", "out.pcapng")
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.errors.hasSuffix("2 connections written, 77 packets; left out: 1 of other protocols\n"))
    }
  }

  @Test("A pipe, a folder and compressed captures are read; addresses are kept on request") func inputs() throws {
    try Command.inFolder { command in
      _ = try input("plain-error.pcap", in: command)
      let shell = try command.shell(
        """
        set -e; mkdir ring; gzip -c plain-error.pcap > ring/a.gz
        cat plain-error.pcap | $apnscope redact --redact-key key - --output a.pcapng
        $apnscope redact --redact-key key ring --output b.pcapng
        cmp a.pcapng b.pcapng
        $apnscope redact --keep-addresses --redact-key key plain-error.pcap --output out.pcapng
        """)
      #expect(shell.status == 0, "\(shell.errors)")
      func ends(_ file: String) throws -> [String] {
        try records([file], in: command).compactMap { record in (record["client"] as? String).map { "\($0)" } }
      }
      #expect(try ends("out.pcapng") == ends("plain-error.pcap") && ends("a.pcapng") != ends("plain-error.pcap"))
    }
  }

  @Test("Captures that are read as unrelated stay apart, although their connections have the same ends and times")
  func separate() throws {
    try Command.inFolder { command in
      let input = try input("plain-error.pcap", in: command)
      try command.trace("plain-error.pcap", as: "again.pcap")
      let files = input + ["again.pcap", "--separate"]
      let outcome = try command.run(["redact", "--redact-key", "key", "--output", "out.pcapng"] + files)
      #expect(outcome.status == 0 && outcome.errors.hasSuffix("4 connections written, 154 packets\n"))
      func fates(_ arguments: [String]) throws -> [String] {
        try records(arguments, in: command).compactMap { record in
          (record["fate"] as? String).map { "\(record["connection"] ?? "") \(record["index"] ?? "") \($0)" }
        }
      }
      #expect(try fates(["out.pcapng"]) == fates(files) && fates(files).count == 132)
    }
  }

  @Test("Without a key the pseudonyms of two runs differ") func key() throws {
    try Command.inFolder { command in
      let input = try input("plain-error.pcap", in: command)
      var copies: [Data] = []
      for key in [[], [], ["--redact-key", "key"], ["--redact-key", "key"]] {
        #expect(try command.run(["redact", "--output", "out.pcapng"] + input + key).status == 0)
        copies.append(try bytes(in: command))
      }
      #expect(copies[0] != copies[1] && copies[2] == copies[3] && copies[0].count == copies[2].count)
    }
  }

  @Test(
    "An input or output that cannot be used is refused, and nothing is left of it",
    arguments: [
      (["nosuch.pcap", "--output", "out.pcapng"], 66, "No such file"),
      (["plain-error.pcap", "nosuch.pcap", "--output", "out.pcapng"], 66, "No such file"),
      (["responses.bin", "--output", "out.pcapng"], 65, "raw dump"),
      (["plain-error.pcap", "responses.bin", "--output", "out.pcapng"], 65, "raw dump"),
      (["key", "--output", "out.pcapng"], 65, "key"),
      (["plain-error.pcap", "--output", "plain-error.pcap"], 64, "would overwrite"),
      (["plain-error.pcap", "--redact-key", "key", "--output", "key"], 64, "would overwrite"),
      (["plain-error.pcap", "--output", "nosuch/out.pcapng"], 74, "No such file"),
      (["plain-error.pcap", "--output", "ring"], 74, "directory"),
      ([".", "--output", "out.pcapng"], 64, "is in the folder"),
      (["plain-error.pcap"], 64, "--output"), (["--output", "out.pcapng"], 64, "input"),
      (["plain-error.pcap", "--output", "out.pcapng", "--redact-key", "short"], 65, "at least 16 bytes"),
      (["plain-error.pcap", "--output", "out.pcapng", "--redact-key", "nosuch"], 66, "nosuch"),
      (["plain-error.pcap", "--output", "out.pcapng", "--max-memory", "1"], 64, "--max-memory"),
    ])
  func refused(arguments: [String], status: Int32, text: String) throws {
    try Command.inFolder { command in
      _ = try input("plain-error.pcap", in: command)
      try command.trace("responses.bin")
      try command.write([1], "short")
      try command.write(Array("before".utf8), "out.pcapng")
      #expect(try command.shell("mkdir ring").status == 0)
      let outcome = try command.run(["redact"] + arguments)
      #expect(outcome.status == status && outcome.errors.contains(text), "\(outcome.status) \(outcome.errors)")
      #expect(try command.read("out.pcapng") == "before")
      let names = try FileManager.default.contentsOfDirectory(atPath: command.folder.path)
      #expect(!names.contains { $0.hasSuffix(".part") })
    }
  }

  @Test("Ctrl-C leaves the file as it was") func interrupted() throws {
    try Command.inFolder { command in
      try command.write(Array("before".utf8), "out.pcapng")
      let capture = try Data(contentsOf: Command.traces.appending(path: "plain-error.pcap"))
      let pipe = Pipe()
      let process = try RunningProcess(
        Command.path, ["redact", "-", "--output", "out.pcapng"], in: command.folder, pipe: pipe)
      try pipe.fileHandleForWriting.write(contentsOf: capture.prefix(capture.count / 2))
      #expect(waitUntil { process.waitsForInput })
      process.send(SIGINT)
      let outcome = try process.end()
      try pipe.fileHandleForWriting.close()
      #expect(outcome.status == 130 && outcome.errors == "", "\(outcome.errors)")
      #expect(try command.read("out.pcapng") == "before")
      #expect(try !FileManager.default.contentsOfDirectory(atPath: command.folder.path).contains("out.pcapng.part"))
    }
  }

  @Test("A full disk and a missing folder for temporary files leave the file as it was")
  func full() throws {
    try Command.inFolder { command in
      _ = try input("plain-error.pcap", in: command)
      try command.write(Array("before".utf8), "out.pcapng")
      // The limit on the size of files is below that of the output.
      let small = try command.shell(
        "trap '' XFSZ; ulimit -f 4; $apnscope redact plain-error.pcap --output out.pcapng")
      #expect(small.status == 74 && small.errors.contains("out.pcapng"), "\(small.errors)")
      #expect(try command.read("out.pcapng") == "before")
      #expect(try !FileManager.default.contentsOfDirectory(atPath: command.folder.path).contains("out.pcapng.part"))
    }
  }
}

/// A pcap file with one connection, whose client asks for a page.
private enum HTTPCapture {
  static var bytes: [UInt8] {
    let request = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
    var file = number(0xa1b2_c3d4, 4) + number(0x0002_0004, 4) + number(0, 8) + number(65_535, 4) + number(101, 4)
    for (flags, sequence, data) in [(2, 100, []), (24, 101, request)] as [(Int, Int, [UInt8])] {
      let length = 40 + data.count
      file += number(1_450_000_000, 4) + number(0, 4) + number(length, 4) + number(length, 4)
      file += number(0x4500, 2) + number(length, 2) + number(0, 4) + number(0x4006_0000, 4)
      file += number(0x0a00_0005, 4) + number(0x0a00_0009, 4) + number(40_000, 2) + number(80, 2)
      file += number(sequence, 4) + number(0, 4) + [0x50, UInt8(flags)] + number(0xffff, 2) + number(0, 4) + data
    }
    return file
  }

  private static func number(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }
}
