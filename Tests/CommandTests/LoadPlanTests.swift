import Foundation
import TestSupport
import Testing

/// Plans of `apnscope load`: what is typed, what a file says, and what is printed.
@Suite("load: plans", .waiting)
struct LoadPlanTests {
  private func plan(_ arguments: [String], in command: Command) throws -> Outcome {
    try RunningProcess(Command.path, ["load", "--print-plan"] + arguments, in: command.folder).end()
  }

  @Test(
    "A printed plan, read back, prints the same",
    arguments: [
      [],
      [
        "--linger", "500us", "--stagger", "1ns", "--backoff", "1500us", "--max-backoff", "0.25ms", "--lifetime", "1.5h",
        "--marker-timeout", "2m", "--give-up", "100d", "--drain", "0s", "--connect-timeout", "1ns",
        "--handshake-timeout", "2.5s", "--seed", "18446744073709551615", "--no-verify", "--ca", "a \"b\"\\c.pem",
        "--key", "k.pem", "--pass-phrase-file", "p", "--keylog", "l", "--connections", "2", "--threads", "8",
        "--command", "0=1e-6,2=1e6", "--payload", "100..200=0.3,2000=1", "--priority", "none", "--expiration",
        "none=1,7=2", "--batch", "4KiB", "--buffers", "system", "--nagle", "on", "--gateway", "[::1]:2195",
        "--threshold", "send_lag_p99 < 5ms", "--threshold", "unknown<=0",
      ],
      [
        "--seed", "9007199254740993", "--connections", "300", "--threads", "256", "--stage", "10us:1/s", "--stage",
        "1.5ms:1..7.5/h", "--warm-up", "5us", "--poisson", "--payload-template",
        "{\"t\":{time},\n\t\"\u{7f}é\":\"{random:3}\"}", "--batch", "1", "--send-buffer", "1MiB",
        "--not-sent-low-water", "0", "--segment", "1000000/1000000", "--gateway", "192.0.2.1:1", "--allow-remote",
        "--topic", "com.example.app",
      ],
      [
        "--seed", "9007199254740992", "--stage", "2s:1000/s", "--warm-up", "1s", "--faults",
        "missing-token=1e-9,oversize=0.1,malformed=0", "--connection-count", "1", "--leave-unknown", "--markers", "off",
        "--max-attempts", "1",
      ],
      [
        "--seed", "1000000000000001", "--tokens", "1000000000000000", "--rate", "1/h", "--for", "100d", "--behind",
        "skip", "--unsettled-memory", "1000000000000000", "--timeline", "0",
      ],
      [
        "--rate-per-connection", "123456.789/s", "--count", "1000000000000000", "--warm-up", "1m", "--tls", "1.0..1.3",
        "--ciphers", "ALL:@SECLEVEL=0", "--tls13-suites", "TLS_AES_128_GCM_SHA256", "--resume", "off",
      ],
    ])
  func law(arguments: [String]) throws {
    try Command.inFolder { command in
      let first = try plan(["--identity", "ids"] + arguments, in: command)
      #expect(first.status == 0, "\(first.errors)")
      try command.write(Array(first.output.utf8), "plan.toml")
      let second = try plan(["--plan", "plan.toml"], in: command)
      #expect(second.status == 0, "\(second.errors)")
      #expect(second.output == first.output)
    }
  }

  @Test("The plan has what was typed")
  func typed() throws {
    try Command.inFolder { command in
      let lines = try plan(
        [
          "--identity", "ids", "--no-verify", "--ca", "ca.pem", "--key", "key.pem", "--pass-phrase-file", "phrase",
          "--keylog", "keys", "--seed", "18446744073709551615", "--linger", "500us", "--connections", "2", "--threads",
          "8", "--stage", "2s:1000/s", "--warm-up", "1s", "--connect-timeout", "250ms", "--handshake-timeout", "2s",
        ], in: command
      ).lines
      for line in [
        "no_verify = true", "ca = \"ca.pem\"", "key = \"key.pem\"", "pass_phrase_file = \"phrase\"",
        "keylog = \"keys\"", "seed = \"18446744073709551615\"", "linger = \"500us\"", "threads = 8",
        "connect_timeout = \"250ms\"", "handshake_timeout = \"2s\"",
        // The schedule begins with the warm-up. Nobody typed it.
        "# for = \"1s\"",
      ] { #expect(lines.contains(line), "\(line)") }
    }
  }

  @Test(
    "What is typed wins over what excludes it in the file",
    arguments: some(
      6,
      of: [
        ("rate_per_connection = \"5/s\"", ["--rate", "7/s"]), ("rate = \"5/s\"", ["--rate-per-connection", "7/s"]),
        ("stage = [\"1s:5/s\"]", ["--rate", "7/s"]), ("stage = [\"1s:5/s\"]", ["--rate-per-connection", "7/s"]),
        ("rate = \"5/s\"", ["--stage", "1s:7/s"]), ("rate_per_connection = \"5/s\"", ["--stage", "1s:7/s"]),
        ("payload = 100", ["--payload-from", "sizes.jsonl"]), ("payload = 100", ["--payload-template", "{index}"]),
        ("payload_from = \"none.jsonl\"", ["--payload", "77"]),
        ("payload_from = \"none.jsonl\"", ["--payload-template", "{index}"]),
        ("payload_template = \"x\"", ["--payload", "77"]),
        ("payload_template = \"x\"", ["--payload-from", "sizes.jsonl"]),
        ("replay = \"none.jsonl\"\nspeed = 2", ["--rate-per-connection", "7/s"]),
        ("replay = \"none.jsonl\"\nspeed = 2", ["--payload-from", "sizes.jsonl"]),
        ("stage = [\"1s:5/s\"]", ["--stage=5s:7/s", "--warm-up=1s"]),
        ("stage = [\"1s:5/s\"]\nfor = \"1s\"", ["--stage", "5s:7/s", "--for", "3s"]),
        ("for = \"60s\"", ["--replay", "records.jsonl", "--for", "9s"]),
        ("seed = 3\nrate = \"5/s\"\npoisson = true\npayload_template = \"x\"", ["--replay", "records.jsonl"]),
      ]))
  func exclusion(file: String, arguments: [String]) throws {
    try Command.inFolder { command in
      try command.write(Array("plain = true\n\(file)\n".utf8), "plan.toml")
      let record =
        #"{"type":"notification","connection":1,"command":2,"identifier":1,"token":"00ff","payload_length":77,"payload":{}}"#
      try command.write(Array(record.utf8), "sizes.jsonl")
      try command.write(Array(record.replacing("77", with: "2").utf8), "records.jsonl")
      let merged = try plan(["--plan", "plan.toml"] + arguments, in: command)
      #expect(merged.status == 0, "\(merged.errors)")
      #expect(try merged.output == plan(["--plain"] + arguments, in: command).output)
    }
  }

  @Test(
    "A printed plan and what is typed over it come to what all of it comes to when typed at once",
    arguments: some(
      6,
      of: [
        (["--stage", "10s:5/s"], ["--warm-up", "4s"], "# for = \"6s\""),
        (["--stage", "10s:5/s"], ["--count", "3"], "# for = \"10s\""),
        (["--stage", "10s:5/s"], ["--for", "4s"], "for = \"4s\""),
        (["--stage", "10s:5/s", "--for", "4s"], ["--warm-up", "1s"], "for = \"4s\""),
        ([], ["--stage", "2m:7/s"], "# for = \"120s\""), ([], ["--count", "1M"], "# for = \"86400s\""),
        (["--count", "1M"], ["--for", "9s"], "for = \"9s\""), (["--for", "9s"], ["--count", "1M"], "for = \"9s\""),
        (["--for", "9s"], ["--stage", "2m:7/s"], "for = \"9s\""),
        (["--threads", "200"], ["--connections", "200"], "threads = 200"),
        (["--threads", "3"], ["--connections", "9"], "threads = 3"),
        ([], ["--connections", "200"], "connections = 200"),
        // Needs what only the file has.
        (["--rate", "5/s"], ["--poisson"], "poisson = true"),
        (["--stage", "1s:5/s"], ["--behind", "skip"], "behind = \"skip\""),
        ([], ["--buffers", "system"], "buffers = \"system\""),
        (["--buffers", "system"], ["--buffers", "small"], "# send_buffer = 65536"),
        (["--send-buffer", "9KiB"], ["--buffers", "system"], "send_buffer = 9216"),
      ]))
  func over(printed: [String], typed: [String], line: String) throws {
    try Command.inFolder { command in
      try command.write(Array(plan(["--plain"] + printed, in: command).output.utf8), "plan.toml")
      let over = try plan(["--plan", "plan.toml"] + typed, in: command)
      #expect(over.status == 0, "\(over.errors)")
      #expect(over.lines.contains(line), "\(over.output)")
      // Of the options that are here, the last one counts.
      #expect(try over.output == plan(["--plain"] + printed + typed, in: command).output)
    }
  }

  @Test("What is typed instead of a printed plan's stages has its own length; a length typed alone keeps the stages")
  func stages() throws {
    try Command.inFolder { command in
      let printed = try plan(["--plain", "--stage", "10s:5/s"], in: command)
      #expect(printed.lines.contains("# for = \"10s\""))
      try command.write(Array(printed.output.utf8), "plan.toml")
      for (typed, stage, length) in [
        (["--stage", "2m:7/s"], "stage = [\"120s:7.0..7.0/s\"]", "# for = \"120s\""),
        (["--for", "4s"], "stage = [\"10s:5.0..5.0/s\"]", "for = \"4s\""),
        (["--stage", "2m:7/s", "--for", "4s"], "stage = [\"120s:7.0..7.0/s\"]", "for = \"4s\""),
        (["--rate", "7/s"], "rate = \"7.0/s\"", "# for = \"60s\""),
      ] {
        let lines = try plan(["--plan", "plan.toml"] + typed, in: command).lines
        #expect(lines.contains(stage), "\(typed)")
        #expect(lines.contains(length), "\(typed)")
      }
    }
  }

  private static let times = [
    "for", "linger", "stagger", "lifetime", "marker-timeout", "give-up", "drain", "warm-up", "backoff", "max-backoff",
    "connect-timeout", "handshake-timeout",
  ]

  @Test("Times are up to 100 days", arguments: some(4, of: times))
  func longest(option: String) throws {
    try Command.inFolder { command in
      let refused = try plan(["--plain", "--\(option)", "101d"], in: command)
      #expect(refused.status == 64)
      #expect(refused.errors.contains("--\(option)") && refused.errors.contains("up to 100d"))
    }
  }

  @Test("So long, and no longer, are all times together, and all stages")
  func allLongest() throws {
    try Command.inFolder { command in
      let longest = try plan(["--plain"] + Self.times.flatMap { ["--\($0)", "100d"] }, in: command)
      #expect(longest.status == 0, "\(longest.errors)")
      for time in ["999999999d", "9e99s", "99999999999999999999999s"] {
        let outcome = try plan(["--plain", "--for", time], in: command)
        #expect(outcome.status == 64 && outcome.errors.contains("--for"))
      }
      let stages = try plan(["--plain", "--stage", "60d:1/s", "--stage", "60d:1/s"], in: command)
      #expect(stages.status == 64 && stages.errors.contains("100d"))
    }
  }

  @Test(
    "What cannot be run is no plan either",
    arguments: some(
      9,
      of: [
        (["--payload", "3"], "20"), (["--token-length", "2", "--tokens", "1M"], "token"),
        (["--payload-template", ""], "empty"), (["--connection-count", "0"], "--connection-count"),
        (["--connect-timeout", "0s"], "--connect-timeout"), (["--handshake-timeout", "0ms"], "--handshake-timeout"),
        (["--handshake-timeout", "5"], "a time, e.g. 250ms"), (["--rate", "200/x"], "a rate, e.g. 500/s"),
        (["--poisson"], "--poisson needs"), (["--behind", "skip"], "--behind skip needs"),
        (["--stage", "1m"], "a stage, e.g. 1m:50k/s"), (["--count", "1.5"], "a count, e.g. 1000"),
        (["--command", "="], "weights, e.g. 0=1,2=9"), (["--segment", "5/4"], "a part, e.g. 2/4"),
        (["--batch", "0"], "e.g. 4KiB"), (["--send-buffer", "1x"], "bytes, e.g. 4096"),
        (["--gateway", "2195"], "HOST:PORT"),
        (["--tls", "9"], "a TLS version, e.g. 1.2"), (["--speed", "0"], "a factor from 1e-6"),
        (["--segment", "1/9223372036854775807"], "--segment"), (["--segment", "2/4611686018427387904"], "--segment"),
        (["--segment", "1/1000001"], "--segment"), (["--threshold", "speed>1"], "send_lag_p99"),
        (["--threshold", "unknown"], "no <, > or ="), (["--threshold", "unknown<many"], "is not a number"),
        (["--threshold", "send_lag_p99<5"], "has no unit"), (["--for", "0s"], "--for must be more than 0s"),
        (["--stage", "2s:1000/s", "--warm-up", "10s"], "--warm-up is as long as"),
      ]))
  func refused(arguments: [String], text: String) throws {
    try Command.inFolder { command in
      let outcome = try plan(["--plain"] + arguments, in: command)
      #expect(outcome.status == 64, "\(outcome.errors)")
      #expect(outcome.errors.contains(text), "\(outcome.errors)")
      #expect(outcome.output == "")
    }
  }
}
