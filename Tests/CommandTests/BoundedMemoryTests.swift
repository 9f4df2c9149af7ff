import Foundation
import TestSupport
import Testing

/// Inputs that would make a command hold more than `--max-memory`.
@Suite("Memory that input can take", .waiting)
struct BoundedMemoryTests {
  /// Connections each of which has sent 60,000 bytes of a frame of 100,000, in packets of 1,200 bytes; then a whole
  /// notification on one more. Raw IPv4.
  private static func halfFrames(_ connections: Int) -> [UInt8] {
    var file: [UInt8] = [0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 101]
    func big(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
    func packet(_ number: Int, _ flags: UInt8, _ sequence: Int, _ data: [UInt8]) {
      file += big(1_450_000_000) + big(file.count / 1_300 % 1_000_000) + big(40 + data.count) + big(40 + data.count)
      let length = 40 + data.count
      file += [0x45, 0, UInt8(length >> 8), UInt8(length & 0xff), 0, 0, 0, 0, 64, 6, 0, 0]
      file += [10, 1, UInt8(number >> 8), UInt8(number & 0xff), 10, 0, 0, 9]
      file +=
        [0x9c, 0x41, 0x08, 0x93] + big(1_000_003 * number + sequence) + big(0) + [0x50, flags, 0xff, 0xff, 0, 0, 0, 0]
        + data
    }
    let piece = [UInt8](repeating: 0, count: 1_200)
    for number in 1...connections {
      packet(number, 2, 0, [])
      packet(number, 0x18, 1, [2, 0, 1, 0x86, 0xa0, 2, 0xff, 0xff])
      for index in 0..<50 { packet(number, 0x18, 9 + index * 1_200, piece) }
    }
    // Command 0 with a token of 32 bytes.
    let payload = Array(#"{"aps":{"badge":1}}"#.utf8)
    packet(connections + 1, 2, 0, [])
    packet(
      connections + 1, 0x18, 1,
      [0, 0, 32] + Array(repeating: 5, count: 32) + [0, UInt8(payload.count)] + payload)
    return file
  }

  /// A run and the most memory that it had, in MiB.
  private func peak(_ arguments: String, in command: Command) throws -> (outcome: Outcome, mebibytes: Int) {
    let measure = """
      import resource, subprocess, sys
      code = subprocess.run(sys.argv[1:]).returncode
      print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=open("peak", "w"))
      sys.exit(code)
      """
    try command.write(Array(measure.utf8), "measure.py")
    let outcome = try command.shell(#"python3 measure.py "$apnscope" \#(arguments)"#)
    let text = try command.read("peak").trimmingCharacters(in: .whitespacesAndNewlines)
    return (outcome, try #require(Int(text)))
  }

  @Test(
    "Half frames of many connections are given up above --max-memory, which is said",
    arguments: ["inspect", "decode --no-fates", "follow", "redact --output out.pcapng", "annotate --output out.pcapng"])
  func halfFrames(arguments: String) throws {
    try Command.inFolder { command in
      // 23 MiB of them where memory is measured; elsewhere more than the limit is enough.
      try command.write(Self.halfFrames(arguments == "inspect" ? 400 : 120), "half.pcap")
      let (outcome, most) = try peak("\(arguments) --max-memory 2MiB half.pcap", in: command)
      #expect(outcome.status == 0, "\(outcome.errors)")
      switch arguments {
      case "inspect":
        let unlimited = try peak("inspect half.pcap", in: command).mebibytes
        #expect(most + 15 < unlimited, "\(most) and \(unlimited) MiB")
        #expect(
          outcome.output.contains("stretches of unfinished records were given up for lack of memory (--max-memory)"))
        #expect(outcome.output.contains("connections hit a limit of this program"))
      case "decode --no-fates":
        #expect(outcome.lines.count { $0.contains(#""limits":["max_memory"]"#) } > 75)
        #expect(outcome.lines.count { $0.contains(#""type":"notification""#) } == 1)
        #expect(outcome.lines.count { $0.contains(#""reason":"given_up""#) } > 75)
      case "follow": #expect(outcome.output.contains(#""gaps":"#) && !outcome.output.contains(#""gaps":0"#))
      case "redact --output out.pcapng": #expect(outcome.errors.contains("1 connection written"))
      default: break
      }
    }
  }

  @Test("Zeros behind the last packet are the end of a damaged file, not packets")
  func zeros() throws {
    try Command.inFolder { command in
      let whole = try command.shell(
        "\"$apnscope\" decode '\(Command.traces.path)/plain-error.pcap' | grep -c notification")
      let outcome = try command.shell(
        "(cat '\(Command.traces.path)/plain-error.pcap'; head -c 2000000 /dev/zero) > zeros.pcap; \"$apnscope\" decode zeros.pcap"
      )
      #expect(outcome.status == 0)
      #expect(outcome.lines.count { $0.contains("notification") } == Int(whole.lines.first ?? "") ?? -1)
      #expect(
        outcome.errors.contains("zeros instead of a packet at offset ") && outcome.errors.contains("after packet 146"))
      #expect(outcome.lines.last?.contains(#""packets":146,"#) == true)
    }
  }

  @Test("A format that repeats its argument millions of times shows the beginning of the text")
  func render() throws {
    try Command.inFolder { command in
      let make = """
        mkdir -p App/en.lproj
        python3 -c 'open("App/en.lproj/Localizable.strings","w").write("\\"k\\" = \\"" + "%1$@" * 300000 + "\\";")'
        python3 -c 'import json; print(json.dumps({"aps":{"alert":{"loc-key":"k","loc-args":["x"*3000]}}}))' > p.json
        """
      _ = try command.shell(make)
      let (outcome, most) = try peak("render p.json --strings App --language en --format json", in: command)
      #expect(outcome.status == 0 && most < 250, "\(most) MiB: \(outcome.errors)")
      let shown = try #require(
        try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
      #expect((shown["body"] as? String)?.utf8.count == 65_536 && "\(shown["notes"] ?? "")".contains("text_cut"))
    }
  }

  @Test("Too few open files are an error", arguments: [5, 6, 7])
  func openFiles(limit: Int) throws {
    try Command.inFolder { command in
      let outcome = try command.shell(
        "ulimit -n \(limit); \"$apnscope\" decode '\(Command.traces.path)/plain-error.pcap'")
      #expect(outcome.status == 69 && outcome.output == "", "\(outcome.status) \(outcome.errors)")
      #expect(outcome.errors.contains("this process may open \(limit) files at a time (ulimit -n)"))
    }
  }

  @Test("A standard output that is closed is an error, whatever file would have its number")
  func closedOutput() throws {
    try Command.inFolder { command in
      let outcome = try command.shell("\"$apnscope\" decode '\(Command.traces.path)/plain-error.pcap' >&-")
      #expect(
        outcome.status == 74 && outcome.errors.contains("standard output: Bad file descriptor"), "\(outcome.errors)")
    }
  }
}
