import Foundation
import Measurement
import TestSupport
import Testing

/// `apnscope load --payload-from`.
@Suite("load: payloads from records", .waiting)
struct LoadPayloadTests {
  private func plan(_ arguments: [String], in command: Command, input: URL? = nil) throws -> Outcome {
    try RunningProcess(
      Command.path, ["load", "--plain", "--print-plan"] + arguments, in: command.folder, input: input
    ).end()
  }

  @Test("Sizes are those of the decoded trace, and the gateway gets them")
  func trace() throws {
    try SimulatorProcess.inFolder { command in
      try command.trace("any-device-sll2.pcap")
      #expect(try command.run("decode", "--output", "records.jsonl", "any-device-sll2.pcap").status == 0)
      let lengths = try command.read("records.jsonl").matches(of: #/"payload_length":([0-9]+)/#)
        .compactMap { Int($0.output.1) }
      #expect(lengths.count > 10)
      let outcome = try plan(["--payload-from", "records.jsonl"], in: command)
      #expect(outcome.status == 0, "\(outcome.errors)")
      let counts = Dictionary(lengths.map { ($0, 1) }, uniquingKeysWith: +).sorted { $0.key < $1.key }
      let mix = counts.count == 1 ? "\(counts[0].key)" : counts.map { "\($0.key)=\($0.value).0" }.joined(separator: ",")
      #expect(outcome.lines.contains("payload = \"\(mix)\""), "\(outcome.output)")
      // Standard input, and the printed plan instead of the file.
      let piped = try plan(
        ["--payload-from", "-"], in: command, input: command.folder.appending(path: "records.jsonl"))
      #expect(piped.output == outcome.output)
      try command.write(Array(outcome.output.utf8), "plan.toml")
      #expect(try plan(["--plan", "plan.toml"], in: command).output == outcome.output)

      let simulator = try SimulatorProcess(in: command)
      let load = try RunningProcess(
        Command.path,
        [
          "load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--count", "2k", "--payload-from",
          "records.jsonl", "--markers", "off", "--token-length", "32", "--format", "json",
        ], in: command.folder
      ).end()
      #expect(load.status == 0, "\(load.errors)")
      let gateway = try simulator.stop().gateway
      // A frame is 59 bytes longer than its payload.
      let sizes = Double(gateway.bytes) / Double(gateway.received) - 59
      let mean = Double(lengths.reduce(0, +)) / Double(lengths.count)
      #expect(abs(sizes - mean) < 0.1 * mean, "\(sizes) for \(mean)")
    }
  }

  @Test("A line that is no record is named with file and line")
  func refused() throws {
    try Command.inFolder { command in
      let good = #"{"type":"notification","payload_length":100}"# + "\n"
      try command.write(
        Array((good + "\n" + #"{"type":"notification","payload_length":"a"}"# + "\n" + good).utf8), "bad.jsonl")
      try command.write(Array((good + good.dropLast(3)).utf8), "cut.jsonl")
      try command.write(Array(#"{"type":"summary"}"#.utf8), "none.jsonl")
      try command.write([UInt8](repeating: 0x20, count: 17 << 20), "long.jsonl")
      for (file, status, text) in [
        ("bad.jsonl", 65, "bad.jsonl:3: 'payload_length'"), ("cut.jsonl", 65, "cut.jsonl:2: not a JSON object"),
        ("none.jsonl", 65, "no notification"), ("long.jsonl", 65, "long.jsonl:1: the line exceeds"),
        ("gone.jsonl", 66, "No such file"), (".", 74, "directory"),
      ] as [(String, Int32, String)] {
        let outcome = try plan(["--payload-from", file], in: command)
        #expect(outcome.status == status, "\(file)")
        #expect(outcome.errors.contains(text), "\(outcome.errors)")
        #expect(outcome.output == "")
      }
      let both = try plan(["--payload-from", "bad.jsonl", "--payload", "100"], in: command)
      #expect(both.status == 64 && both.errors.contains("--payload and --payload-from exclude each other"))
      try command.write(Array((good + good.replacing("100", with: "7")).utf8), "short.jsonl")
      let clamped = try plan(["--payload-from", "short.jsonl"], in: command)
      #expect(clamped.status == 0)
      #expect(clamped.errors.contains("1 of 2 payloads have sizes that cannot be generated"))
      #expect(clamped.output.contains("payload = \"20=1.0,100=1.0\""))
    }
  }
}
