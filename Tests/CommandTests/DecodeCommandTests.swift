import Foundation
import TestSupport
import Testing

@Suite("decode", .waiting)
struct DecodeCommandTests {
  @Test("Records go to standard output, and nothing else") func decodes() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.run("decode", "plain-error.pcap")
      #expect(outcome.status == 0)
      #expect(outcome.errors == "")
      let baseline = Command.traces.appending(path: "plain-error.pcap.jsonl")
      #expect(outcome.output == (try String(contentsOf: baseline, encoding: .utf8)))
    }
  }

  // MARK: what cannot be read

  @Test(
    "A missing file cannot be opened; a folder without a capture is none",
    arguments: [("missing.pcap", "No such file", 66), (".", "no file in this folder is a packet capture", 65)]
      as [(String, String, Int32)])
  func cannotOpen(input: String, problem: String, code: Int32) throws {
    try Command.inFolder { command in
      let outcome = try command.run("decode", input)
      #expect(outcome.status == code)
      #expect(outcome.errors.hasPrefix("apnscope: \(input): "))
      #expect(outcome.errors.contains(problem))
      #expect(outcome.errors.split(separator: "\n").count == 1)
    }
  }

  @Test(
    "An empty file, and one of something else: not a capture", arguments: ["", "Dear diary, today I wrote no capture."])
  func notACapture(text: String) throws {
    try Command.inFolder { command in
      try command.write(Array(text.utf8), "diary.txt")
      let outcome = try command.run("decode", "diary.txt")
      #expect(outcome.status == 65)
      #expect(outcome.errors.hasPrefix("apnscope: diary.txt: "))
    }
  }

  @Test("Several inputs, one of them missing: the others are read, and the code tells") func oneMissing() throws {
    try Command.inFolder { command in
      try command.trace("responses.bin", as: "a")
      try command.trace("feedback-plain.hex", as: "b")
      let outcome = try command.run("decode", "a", "missing", "b")
      #expect(outcome.status == 66)
      #expect(outcome.errors.hasPrefix("apnscope: missing: "))
      #expect(outcome.lines.count { $0.hasPrefix(#"{"type":"error_response""#) } == 4)
      #expect(outcome.lines.count { $0.hasPrefix(#"{"type":"feedback""#) } == 20)
      // Connections are numbered on through all inputs, and one summary ends them all.
      #expect(outcome.lines.contains { $0.hasPrefix(#"{"type":"feedback","file":2,"connection":2,"#) })
      #expect(outcome.lines.count { $0.hasPrefix(#"{"type":"summary""#) } == 1)
    }
  }

  @Test("Standard input is an input") func standardInput() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcapng")
      let outcome = try command.run("decode", "-", input: command.folder.appending(path: "plain-error.pcapng").path)
      #expect(outcome.status == 0)
      #expect(outcome.lines.count { $0.contains(#""type":"notification""#) } == 66)
      let piped = try command.shell(#"gzip -c plain-error.pcapng | "$apnscope" decode - "#)
      #expect(piped.status == 0)
      #expect(piped.output == outcome.output)
    }
  }

  // MARK: fates

  @Test("Records of a file have their fates, those of a pipe come with ranges, and --fates waits for them")
  func fates() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      func name(_ text: String) -> String {
        text.replacingOccurrences(of: #""source":"-""#, with: #""source":"plain-error.pcap""#)
      }
      let file = try command.run("decode", "plain-error.pcap")
      #expect(file.lines.count { $0.contains(#""fate":"accepted","command""#) } == 7)
      #expect(file.lines.count { $0.contains(#""fate":"discarded","command""#) } == 26)
      #expect(!file.output.contains(#""type":"fate""#))

      let without = try command.run("decode", "--no-fates", "plain-error.pcap")
      #expect(!without.output.contains("fate"))
      let pattern = #","fate":"[a-z]*""#
      #expect(file.output.replacingOccurrences(of: pattern, with: "", options: .regularExpression) == without.output)

      let ranges = [
        #"{"type":"fate","connection":1,"first":0,"last":6,"fate":"accepted"}"#,
        #"{"type":"fate","connection":1,"first":7,"last":7,"fate":"rejected"}"#,
        #"{"type":"fate","connection":1,"first":8,"last":33,"fate":"discarded"}"#,
        #"{"type":"fate","connection":2,"first":0,"last":31,"fate":"unknown"}"#,
      ]
      for line in [#"cat plain-error.pcap | "$apnscope" decode -"#, #""$apnscope" decode <(cat plain-error.pcap)"#] {
        let piped = try command.shell(line).lines
        #expect(piped.filter { $0.hasPrefix(#"{"type":"fate""#) } == ranges)
        #expect(piped.count == without.lines.count + 4)
        // They stand right before the record of their connection.
        let last = try #require(piped.firstIndex(of: ranges[2]))
        #expect(piped[last + 1].hasPrefix(#"{"type":"connection","connection":1,"#))
      }
      #expect(
        try command.shell(#"cat plain-error.pcap | "$apnscope" decode --no-fates -"#).output.contains("fate") == false)
      for line in [
        #"cat plain-error.pcap | "$apnscope" decode --fates -"#, #""$apnscope" decode --fates - < plain-error.pcap"#,
      ] {
        let waited = try command.shell(line)
        #expect(waited.status == 0 && name(waited.output) == file.output, "\(waited.errors)")
      }
      let pipe = try command.shell(#""$apnscope" decode --fates <(cat plain-error.pcap)"#)
      #expect(pipe.status == 64 && pipe.errors.contains("--fates reads its input twice, and /dev/fd/"))
    }
  }

  @Test("Fates beyond the limit are written as ranges, with a warning") func fateLimit() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      // Connection 1 has three ranges, connection 2 one.
      let outcome = try command.run("decode", "--max-fate-ranges", "2", "plain-error.pcap")
      #expect(outcome.status == 0)
      #expect(
        outcome.errors
          == "apnscope: the fates of 1 connection are in 'fate' records, not in those of its notifications (--max-fate-ranges)\n"
      )
      #expect(outcome.lines.count { $0.hasPrefix(#"{"type":"fate","connection":1,"#) } == 3)
      #expect(outcome.lines.count { $0.contains(#""fate":"unknown","command""#) } == 32)
      #expect(!outcome.output.contains(#""fate":"accepted","command""#))
    }
  }

  @Test("In CSV the fate is a column, and ranges are rows of their own") func fatesInCSV() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let file = try command.run("decode", "--format", "csv", "--output", "records/", "plain-error.pcap")
      #expect(file.status == 0)
      let rows = try command.read("records/notification.csv").split(separator: "\n")
      #expect(rows[0].contains(",length,fate,command,"))
      #expect(rows[8].contains(",130,rejected,1,8,"))
      #expect(try command.read("records/fate.csv") == "type,connection,first,last,fate,discarded_by\n")
      let piped = try command.shell(#"cat plain-error.pcap | "$apnscope" decode --format csv --output records/ -"#)
      #expect(piped.status == 0)
      #expect(
        try command.read("records/fate.csv").hasSuffix(
          "\nfate,1,7,7,rejected,\nfate,1,8,33,discarded,\nfate,2,0,31,unknown,\n"))
    }
  }

  // MARK: strictness

  @Test(
    "--strict tells by its code what was damaged, and changes nothing else",
    arguments: [
      ("plain-error.pcap", 0), ("snap-length-120.pcap", 65), ("garbage-inside.bin", 65), ("mid-stream.pcap.zst", 65),
      ("tls-gateway.pcap", 65), ("cut-in-packet.pcap", 65),
    ] as [(String, Int32)])
  func strict(trace: String, code: Int32) throws {
    try Command.inFolder { command in
      try command.trace(trace)
      let (usual, strict) = (try command.run("decode", trace), try command.run("decode", "--strict", trace))
      #expect(usual.status == 0)
      #expect(strict.status == code)
      #expect(strict.output == usual.output)
    }
  }

  @Test("A file cut short is warned about") func warning() throws {
    try Command.inFolder { command in
      try command.trace("cut-in-packet.pcap")
      let outcome = try command.run("decode", "cut-in-packet.pcap")
      #expect(outcome.errors.hasPrefix("apnscope: cut-in-packet.pcap: the file ends in the middle of a record"))
    }
  }

  @Test(
    "Compressed contents that end early are named with the place where the file ends",
    arguments: [
      ("mid-stream.pcap.zst", 5_000, 65, "the zstd contents are cut short", "after 5000 bytes, and nothing"),
      ("loss-reorder.pcap.gz", 8, 65, "the gzip contents are cut short", "after 8 bytes, and nothing"),
      ("loss-reorder.pcap.gz", 5_000, 0, "the gzip contents are cut short", "after 5000 bytes"),
    ] as [(String, Int, Int32, String, String)])
  func cutShort(trace: String, length: Int, status: Int32, problem: String, place: String) throws {
    try Command.inFolder { command in
      let bytes = try Data(contentsOf: Command.traces.appending(path: trace))
      try command.write(Array(bytes.prefix(length)), "cut")
      for subcommand in ["decode", "inspect"] {
        let outcome = try command.run(subcommand, "cut")
        #expect(outcome.status == status)
        #expect(outcome.errors.hasPrefix("apnscope: cut: \(problem)"))
        #expect(outcome.errors.contains(place))
        #expect(outcome.errors.split(separator: "\n").count == 1)
      }
    }
  }

  // MARK: guessing

  /// Bytes that are nothing, the same every time.
  private static func noise(_ count: Int) -> [UInt8] {
    var state: UInt64 = 7
    return (0..<count).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
  }

  /// `head -c 100000 /dev/urandom > noise; decode noise` gave made-up error responses and status 0.
  @Test("Bytes of which less than half are likely records are no dump, unless --stream says so")
  func unlikelyDump() throws {
    try Command.inFolder { command in
      // Mostly noise, with an error response in it.
      try command.write(Self.noise(5_000) + [8, 8, 0, 0, 0, 1] + Self.noise(5_000), "noise")
      for subcommand in ["decode", "inspect"] {
        let outcome = try command.run(subcommand, "noise")
        #expect(outcome.status == 65)
        #expect(outcome.output == "")
        #expect(outcome.errors.contains("neither a packet capture nor a dump") && outcome.errors.contains("--stream"))
        #expect(outcome.errors.contains("first 10006 bytes"))
      }
      let told = try command.run("decode", "--stream", "responses", "noise")
      #expect(told.status == 0)
      #expect(told.errors == "")
      #expect(told.output.contains(#""type":"error_response""#))
    }
  }

  @Test("What is compressed twice is said to be so") func compressedTwice() throws {
    try Command.inFolder { command in
      try command.trace("loss-reorder.pcap.gz", as: "a.gz")
      #expect(try command.shell("gzip -c a.gz > twice.gz").status == 0)
      let outcome = try command.run("decode", "twice.gz")
      #expect(outcome.status == 65)
      #expect(outcome.output == "")
      #expect(outcome.errors == "apnscope: twice.gz: is compressed twice; decompress it once\n")
    }
  }

  @Test("What holds no likely record is no dump, unless --stream says so") func noDump() throws {
    try Command.inFolder { command in
      // As programs are: what reads as frames by its lengths alone, and other bytes between.
      var program: [UInt8] = []
      for _ in 0..<10 {
        program += [0, 0, 32] + [UInt8](repeating: 0x41, count: 32) + [0, 40] + [UInt8](repeating: 0x42, count: 40)
        program += [0, 0, 32] + [UInt8](repeating: 0x41, count: 32) + [0, 40] + [UInt8](repeating: 0x42, count: 40)
        program += [UInt8](repeating: 0x43, count: 50)
      }
      try command.write(program, "program")
      let outcome = try command.run("decode", "program")
      #expect(outcome.status == 65)
      #expect(outcome.output == "")
      #expect(outcome.errors.contains("give --stream to read a damaged dump"))
      #expect(try command.run("decode", "--stream", "gateway", "program").status == 0)
    }
  }

  @Test(
    "Dumps are told from their bytes without doubt, also damaged ones",
    arguments: ["garbage-inside.bin", "responses.bin", "responses.hexdump", "feedback-plain.hex", "unusual-items.xxd"])
  func likelyGuess(trace: String) throws {
    try Command.inFolder { command in
      try command.trace(trace)
      #expect(try command.run("decode", trace).errors == "")
      guard trace == "garbage-inside.bin" else { return }
      // A third of it is damage.
      let dump = Array(try Data(contentsOf: Command.traces.appending(path: trace)))
      let noise = Self.noise(dump.count / 4)
      try command.write(noise + dump + noise, "damaged")
      let outcome = try command.run("decode", "damaged")
      #expect(outcome.errors == "")
      #expect(outcome.lines.count { $0.contains(#""type":"notification""#) } >= 30)
    }
  }

  // MARK: output

  @Test("A reader that goes away is no error") func closedPipe() throws {
    try Command.inFolder { command in
      try command.trace("loss-reorder.pcap.gz", as: "a")
      for format in ["jsonl", "csv", "table"] {
        // More than a pipe holds, so that a write must fail.
        let line = #""$apnscope" decode --format \#(format) a a a a a a | head -1; echo "${PIPESTATUS[0]}""#
        let outcome = try command.shell(line)
        #expect(outcome.lines.count == 2)
        #expect(outcome.lines.last == "0")
        #expect(outcome.errors == "")
      }
    }
  }

  @Test("What cannot be written is an error of input and output", arguments: ["missing/records.jsonl", "/dev/full"])
  func unwritable(path: String) throws {
    try Command.inFolder { command in
      try command.trace("responses.bin")
      let outcome = try command.run("decode", "--output", path, "responses.bin")
      #expect(outcome.status == 74)
      #expect(outcome.errors.hasPrefix("apnscope: \(path): "))
    }
  }

  @Test("A full standard output is an error of input and output", arguments: ["decode", "inspect"])
  func full(subcommand: String) throws {
    try Command.inFolder { command in
      try command.trace("responses.bin")
      let outcome = try command.shell(#""$apnscope" \#(subcommand) responses.bin >/dev/full"#)
      #expect(outcome.status == 74)
      #expect(outcome.errors.hasPrefix("apnscope: standard output: "))
    }
  }

  @Test("--output names a file") func outputFile() throws {
    try Command.inFolder { command in
      try command.trace("responses.bin")
      let outcome = try command.run("decode", "--output", "records.jsonl", "responses.bin")
      #expect(outcome.status == 0)
      #expect(outcome.output == "")
      #expect(try command.read("records.jsonl") == (try command.run("decode", "responses.bin").output))
    }
  }

  // MARK: formats

  @Test("CSV into a directory: one file for each type") func csvDirectory() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.run("decode", "--format", "csv", "--output", "records/", "plain-error.pcap")
      #expect(outcome.status == 0)
      #expect(outcome.output == "")
      let counts = [
        "capture": 1, "notification": 66, "error_response": 1, "fate": 0, "feedback": 0, "gap": 0,
        "malformed": 0, "connection": 2, "summary": 1,
      ]
      for (type, count) in counts {
        let lines = try command.read("records/\(type).csv").split(separator: "\n")
        #expect(lines.count == count + 1, "\(type)")
        #expect(lines[0].hasPrefix("type,"))
        #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("\(type),") })
      }
      // The directory is there now, so the slash is not needed.
      #expect(try command.run("decode", "--format", "csv", "--output", "records", "plain-error.pcap").status == 0)
      #expect(try command.run("decode", "--format", "table", "--output", "records", "plain-error.pcap").status == 64)
    }
  }

  @Test("The table is for people: one line a record") func table() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.run("decode", "--format", "table", "plain-error.pcap")
      #expect(outcome.status == 0)
      // The file, the columns' names, 66 notifications, 1 error, 2 connections, the summary.
      #expect(outcome.lines.count == 72)
      #expect(outcome.output.contains("status 8 (invalid token)  id 8  names #7  7 accepted  26 discarded"))
    }
  }

  // MARK: filters, ports and limits

  @Test("Limits in bytes take units") func units() throws {
    try Command.inFolder { command in
      try command.trace("unusual-items.xxd", as: "dump")
      let outcome = try command.run("decode", "--max-payload-length", "1KiB", "--max-frame-length", "64KiB", "dump")
      #expect(outcome.status == 0)
      #expect(outcome.output == (try command.run("decode", "--max-payload-length", "1024", "dump").output))
      #expect(try command.run("decode", "--max-frame-length", "0", "dump").status == 64)
      #expect(try command.run("decode", "--max-frame-length", "8GiB", "dump").status == 64)
    }
  }

  @Test("--filter keeps what matches; an expression without meaning is a usage error") func filter() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.run("decode", "--filter", "tcp port 40056", "plain-error.pcap")
      #expect(outcome.status == 0)
      #expect(outcome.lines.count { $0.contains(#""type":"notification""#) } == 32)
      #expect(outcome.lines.count { $0.contains(#""type":"connection""#) } == 1)
      let bad = try command.run("decode", "--filter", "tcp prot 40056", "plain-error.pcap")
      #expect(bad.status == 64)
      #expect(bad.output == "")
      #expect(!bad.errors.isEmpty)
    }
  }

  @Test("--port says what a port means") func port() throws {
    try Command.inFolder { command in
      try command.trace("feedback-clear.pcap")
      let outcome = try command.run("decode", "--port", "2196=gateway", "feedback-clear.pcap")
      #expect(outcome.status == 0)
      #expect(!outcome.output.contains(#""type":"feedback""#))
      #expect(outcome.output.contains(#""service":"gateway""#))
    }
  }
}
