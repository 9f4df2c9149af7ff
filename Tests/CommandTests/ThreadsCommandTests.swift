import BinaryProtocol
import Bytes
import Foundation
import Measurement
import TestSupport
import Testing

/// What each command does on several threads. `Scripts/races` runs this suite with the thread sanitizer.
@Suite("Commands on several threads", .waiting)
struct ThreadsCommandTests {
  /// Plain connections of some MB, more than the blocks that are read ahead: notifications, answers, gaps, ends.
  private static let capture = [UInt8](Recording(connections: 5, rounds: 900).bytes)

  @Test(
    "The output is the same for any number of threads",
    arguments: [
      ["decode", "a.pcap"], ["decode", "--format", "csv", "a.pcap"], ["decode", "--format", "table", "a.pcap"],
      ["decode", "--fields", "time,token,kind,fate", "a.pcap"], ["decode", "--fate", "discarded", "a.pcap"],
      ["decode", "--redact", "--redact-key", "key", "a.pcap"],
      ["decode", "a.pcap", "tls13.pcap", "--keys", "tls.keys"],
      ["decode", "--filter", "tcp port 40002", "a.pcap"], ["decode", "a.pcap.gz"],
      ["inspect", "--format", "json", "a.pcap"], ["inspect", "a.pcap", "b.pcap"], ["follow", "a.pcap"],
      ["report", "a.pcap", "--output", "page"], ["redact", "--redact-key", "key", "--output", "page", "a.pcap"],
      ["annotate", "--output", "page", "a.pcap"],
    ])
  func reading(arguments: [String]) throws {
    try Command.inFolder { command in
      try command.write(Self.capture, "a.pcap")
      try command.write(Self.capture, "b.pcap")
      try command.write([UInt8](repeating: 3, count: 32), "key")
      try command.trace("tls13.pcap")
      try command.trace("tls13.pcap.keys", as: "tls.keys")
      _ = try command.shell("gzip -k a.pcap")
      let copies = ["1", "2", "4"].map { "threads-\($0)" }
      for (threads, copy) in zip(["1", "2", "4"], copies) {
        let outcome = try command.shell(
          """
          mkdir \(copy) && "$apnscope" "$@" --threads \(threads) > \(copy)/output && { [ ! -e page ] || mv page \(copy); } &&
          find \(copy) -type f -exec env LC_ALL=C sed -E -i '\(Self.timeless)' {} +
          """, arguments)
        #expect(outcome.status == 0, "\(outcome.errors)")
      }
      for copy in copies.dropFirst() {
        let difference = try command.shell("diff -r \(copies[0]) \(copy) | cut -c 1-300 | head -n 4")
        #expect(difference.output.isEmpty)
      }
      #expect(!(try command.shell("find threads-1 -type f -size +1k").lines.isEmpty))
    }
  }

  /// Takes the time at which a document was written, and the command line in it.
  private static let timeless =
    "s/20[2-9][0-9]-[0-9]{2}-[0-9]{2}[T ][0-9:.]+Z?/now/g; s/--threads [0-9]/--threads/g; s/threads-[0-9]/threads/g"

  @Test("A live capture is read, kept and measured while it goes on", arguments: ["decode", "inspect"])
  func live(name: String) throws {
    try Command.inFolder { command in
      try command.write(Self.capture, "a.pcap")
      try command.trace("tls13.pcap.keys", as: "tls.keys")
      // It knows Ctrl-C before the last packet is seen.
      let program = "#!/bin/bash\ntrap 'exit 0' INT\ncat a.pcap\nwhile :; do sleep 0.05; done\n"
      try command.write(Array(program.utf8), "dumpcap")
      _ = try command.shell("chmod +x dumpcap")
      let running = try RunningProcess(
        "/usr/bin/env",
        [
          "PATH=.:/usr/bin:/bin", Command.path, name, "-i", "eth0", "--threads", "3", "--keys", "tls.keys", "--keep",
          "ring", "--keep-files", "4", "--keep-size", "256KiB",
        ] + (name == "decode" ? ["--metrics", "127.0.0.1:0"] : ["--every", "100ms"]), in: command.folder)
      let last = name == "decode" ? #""index":1799"# : "9,000"
      #expect(waitUntil { !running.isRunning || running.output.contains(last) })
      running.send(SIGINT)
      let outcome = try running.end()
      #expect(outcome.status == 130, "\(outcome.errors)")
      #expect(try command.run("decode", "ring").lines.count > 500)
    }
  }

  @Test("A load and its gateway on several event loops: the books balance", arguments: ["1.2", "1.3"])
  func load(tls: String) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        [
          "--threads", "2", "--keylog", "gateway.keys", "--metrics", "127.0.0.1:0", "--reject", "every=100",
          "--devices-uninstalled", "2%", "--devices-offline", "2%",
        ], in: command)
      let outcome = try LoadProcess.start(
        simulator,
        [
          "--count", "6k", "--connections", "5", "--threads", "2", "--tls", tls, "--lifetime", "200ms", "--keylog",
          "load.keys",
        ], in: command
      ).end()
      let result = try LoadProcess.result(in: command)
      let ledger = try simulator.stop()
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(result.notifications.generated == 6_000 && result.verdict.invariants.allSatisfy { $0.holds })
      #expect(ledger.gateway.accepted >= result.sendings.accepted)
    }
  }

  @Test("A replay is shared by all event loops")
  func replay() throws {
    try SimulatorProcess.inFolder { command in
      try command.write(Self.capture, "a.pcap")
      #expect(try command.shell(#""$apnscope" decode --no-fates a.pcap > records.jsonl"#).status == 0)
      let simulator = try SimulatorProcess(["--plain", "--threads", "2", "--any-priority"], in: command)
      let outcome = try LoadProcess.start(
        simulator,
        ["--plain", "--replay", "records.jsonl", "--speed", "max", "--connections", "4", "--threads", "2"], in: command
      ).end()
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(try simulator.stop().gateway.received >= 9_000)
    }
  }
}

/// A pcap file of raw IPv4: providers that write two notifications to a segment.
private struct Recording {
  private(set) var bytes: [UInt8] = []
  private var packets: UInt32 = 0

  init(connections: Int, rounds: Int) {
    add(words: [0xa1b2_c3d4, 0x0002_0004, 0, 0, 262_144, 101])
    var next = [UInt32](repeating: 1_001, count: connections)
    for line in 0..<connections {
      packet(line, fromServer: false, 0x02, 1_000, 0, [])
      packet(line, fromServer: true, 0x12, 5_000, 1_001, [])
    }
    for round in 0..<rounds {
      for line in 0..<connections {
        let frames = Frames.framed(UInt32(2 * round + 1)) + Frames.framed(UInt32(2 * round + 2))
        packet(line, fromServer: false, 0x18, next[line], 5_001, frames)
        next[line] += UInt32(frames.count)
      }
    }
    for line in 0..<connections {
      let answer = ErrorResponse(status: .invalidToken, identifier: UInt32(line * 200 + 50))
      var bytes = ByteWriter(capacity: 64)
      answer.encode(into: &bytes)
      packet(line, fromServer: true, 0x18, 5_001, next[line], Array(copying: bytes.bytes))
      packet(line, fromServer: true, 0x11, 5_007, next[line], [])
      packet(line, fromServer: false, 0x11, next[line], 5_008, [])
    }
  }

  private mutating func add(words: [UInt32]) {
    for word in words { bytes += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) } }
  }

  private mutating func packet(
    _ line: Int, fromServer: Bool, _ flags: UInt32, _ sequence: UInt32, _ acknowledgement: UInt32, _ data: [UInt8]
  ) {
    packets += 1
    let length = UInt32(40 + data.count)
    let ends: [UInt32] = [0x0a00_0005, 0x0a00_0009]
    let ports: [UInt32] = [40_001 + UInt32(line), 2_195]
    add(words: [1_450_000_000 + packets / 1_000, packets % 1_000 * 1_000, length, length])
    add(words: [0x4500_0000 | length, 0, 0x4006_0000])
    let (from, to) = fromServer ? (1, 0) : (0, 1)
    add(words: [ends[from], ends[to], ports[from] << 16 | ports[to]])
    add(words: [sequence, acknowledgement, 0x5000_ffff | flags << 16, 0])
    bytes += data
  }
}
