import Foundation
import TestSupport
import Testing

/// Several inputs are one recording.
@Suite("Recordings of many files", .waiting)
struct RecordingCommandTests {
  /// `plain-error.pcap` as the ring of a rotating capture, three files with names that sort wrongly as text.
  private func ring(_ command: Command) throws {
    let bytes = [UInt8](try Data(contentsOf: Command.traces.appending(path: "plain-error.pcap")))
    var (offset, ends) = (24, [Int]())
    while offset + 16 <= bytes.count {
      offset += 16 + (0..<4).reduce(0) { $0 | Int(bytes[offset + 8 + $1]) << (8 * $1) }
      ends.append(offset)
    }
    try FileManager.default.createDirectory(
      at: command.folder.appending(path: "ring"), withIntermediateDirectories: true)
    let cuts = [24, ends[49], ends[99], bytes.count]
    for (name, place) in [("cap.pcap", 0), ("cap.pcap2", 1), ("cap.pcap10", 2)] {
      try command.write(Array(bytes[..<24] + bytes[cuts[place]..<cuts[place + 1]]), "ring/\(name)")
    }
  }

  private let names = ["ring/cap.pcap10", "ring/cap.pcap", "ring/cap.pcap2"]

  @Test("A ring decodes as the one file it could have been, with the file in every record")
  func decodes() throws {
    try Command.inFolder { command in
      try ring(command)
      let outcome = try command.run("decode", names[0], names[1], names[2])
      #expect(outcome.status == 0 && outcome.errors == "")
      let captures = outcome.lines.filter { $0.hasPrefix(#"{"type":"capture""#) }
      #expect(captures.count == 3)
      for (line, name) in zip(captures, ["cap.pcap\"", "cap.pcap2\"", "cap.pcap10\""]) { #expect(line.contains(name)) }
      #expect(captures.enumerated().allSatisfy { $1.contains("\"file\":\($0 + 1)") })
      let baseline = try String(contentsOf: Command.traces.appending(path: "plain-error.pcap.jsonl"), encoding: .utf8)
      func records(_ lines: [String]) -> [String] {
        lines.filter { !$0.hasPrefix(#"{"type":"capture""#) }
          .map { $0.replacing(/"(file|packet)":[0-9]+,/, with: "") }
      }
      #expect(records(outcome.lines) == records(baseline.split(separator: "\n").map(String.init)))
    }
  }

  @Test("A folder is its captures; other files are named once, and folders in it are not entered")
  func folder() throws {
    try Command.inFolder { command in
      try ring(command)
      try FileManager.default.createDirectory(
        at: command.folder.appending(path: "ring/older"), withIntermediateDirectories: true)
      try command.trace("plain-error.pcap", as: "ring/older/a.pcap")
      try command.write(Array("CLIENT_RANDOM".utf8), "ring/notes.txt")
      let outcome = try command.run("decode", "ring")
      #expect(outcome.status == 0)
      #expect(outcome.errors == "apnscope: ring: left out, because they are no packet captures: notes.txt\n")
      #expect(outcome.lines.count { $0.hasPrefix(#"{"type":"notification""#) } == 66)
      #expect(outcome.lines.count { $0.hasPrefix(#"{"type":"capture""#) } == 3)
    }
  }

  @Test("inspect and report say the same of a ring as of one file")
  func inspects() throws {
    try Command.inFolder { command in
      try ring(command)
      let outcome = try command.run("inspect", "ring")
      #expect(outcome.status == 0)
      for fact in [
        "1: ring/cap.pcap  pcap", "fates          7 accepted, 1 rejected, 26 discarded, 32 unknown", "loss: none",
        "26 notifications were discarded after an error response and sent again later",
      ] { #expect(outcome.output.contains(fact), "\(fact)") }
      let report = try command.run("report", names[0], names[1], names[2], "--output", "page")
      #expect(report.status == 0)
      #expect(try command.read("page/report.md").contains("7 accepted, 1 rejected, 26 discarded, 32 unknown"))
      // Records of several files make the same page as the files.
      #expect(try command.shell(#""$apnscope" decode ring > records.jsonl"#).status == 0)
      #expect(try command.run("report", "records.jsonl", "--output", "other").status == 0)
      #expect(
        try command.read("other/report.md").contains(
          "26 notifications were discarded after an error response and sent again later"))
    }
  }

  @Test("--separate reads each file for itself, and connections are numbered on")
  func separate() throws {
    try Command.inFolder { command in
      try ring(command)
      let outcome = try command.run("decode", "--separate", "ring")
      #expect(outcome.status == 0)
      let connections = outcome.lines.filter { $0.hasPrefix(#"{"type":"connection""#) }
      #expect(connections.count > 2)
      #expect(
        connections.indices.allSatisfy { index in connections.contains { $0.contains("\"connection\":\(index + 1),") } }
      )
      #expect(outcome.lines.contains { $0.contains(#""end":"capture_end""#) && $0.contains(#""file":1"#) })
    }
  }

  @Test("CSV and the table tell the file as well")
  func otherFormats() throws {
    try Command.inFolder { command in
      try ring(command)
      let csv = try command.run("decode", "--format", "csv", "ring")
      #expect(csv.status == 0)
      let header = try #require(csv.lines.first).split(separator: ",").map(String.init)
      let place = try #require(header.firstIndex(of: "file"))
      let cells = try #require(csv.lines.first { $0.hasPrefix("notification,") })
        .split(separator: ",", omittingEmptySubsequences: false)
      #expect(cells[place] == "1")
      let table = try command.run("decode", "--format", "table", "ring")
      #expect(table.output.contains("  1:4  notification") && table.output.contains("2: ring/cap.pcap2 (pcap"))
    }
  }

  /// It was "loss: none", and 0 with --strict.
  @Test("A capture that says it dropped packets is not whole")
  func dropped() throws {
    try Command.inFolder { command in
      let bytes = [UInt8](try Data(contentsOf: Command.traces.appending(path: "plain-error.pcapng")))
      // An interface statistics block: 1,000 packets dropped by the interface.
      let statistics: [UInt8] =
        [5, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        + [5, 0, 8, 0, 0xe8, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0]
      try command.write(bytes + statistics, "a.pcapng")
      let outcome = try command.run("decode", "--strict", "a.pcapng")
      #expect(outcome.status == 65)
      #expect(outcome.lines.contains(#"{"type":"capture_loss","dropped":1000,"interface_dropped":1000}"#))
      #expect(outcome.lines.last?.hasSuffix(#","dropped_packets":1000}"#) == true)
      let inspected = try command.run("inspect", "--strict", "a.pcapng")
      #expect(inspected.status == 65)
      #expect(inspected.output.contains("loss: 1,000 packets not captured"))
    }
  }

  /// Sharing by a filter on ports dropped IPv6, and said nothing.
  @Test(
    "merge joins the parts of a recording to what inspect says of the whole",
    arguments: ["plain-error.pcap", "ipv6-unknown-port.pcap"])
  func parts(trace: String) throws {
    try Command.inFolder { command in
      try command.trace(trace)
      let whole = try command.run("inspect", trace)
      var names: [String] = []
      for number in 1...3 {
        names.append("part-\(number).json")
        let part = try command.run("inspect", "--shard", "\(number)/3", "--format", "json", trace)
        #expect(part.status == 0)
        try command.write(Array(part.output.utf8), names[number - 1])
      }
      let merged = try command.run("merge", names[2], names[0], names[1], "--output", "whole.json")
      #expect(merged.status == 0 && merged.errors == "")
      #expect(merged.output.trimmingCharacters(in: .newlines) == whole.output.trimmingCharacters(in: .newlines))
      try expectValid(file: "whole.json", .inspection, in: command)
      // A merged document is one like the others.
      #expect(try command.run("merge", "whole.json").output == merged.output)
      let partial = try command.run("merge", names[0], names[2])
      #expect(partial.status == 70 && partial.errors == "apnscope: \(trace): the parts 2/3 are missing\n")
      #expect(try command.run("merge", "--allow-missing", names[0], names[2]).status == 0)
      #expect(try command.run("merge", names[0], "--threshold", "accepted_per_s>1").status == 64)
      let twice = try command.shell("cp part-1.json again.json; \"$apnscope\" merge part-1.json again.json")
      #expect(twice.status == 65)
    }
  }

  @Test("Each part's records name their connections by a key that no part changes")
  func flows() throws {
    try Command.inFolder { command in
      try command.trace("ipv6-unknown-port.pcap")
      var keys: [String] = []
      for number in 1...2 {
        let part = try command.run("decode", "--shard", "\(number)/2", "ipv6-unknown-port.pcap")
        #expect(part.status == 0)
        keys += part.lines.compactMap { $0.firstMatch(of: /"flow":"([^"]*)"/).map { String($0.1) } }
      }
      #expect(keys.count == 2 && Set(keys).count == 2 && keys.allSatisfy { $0.hasPrefix("[") })
      for wrong in ["0/2", "3/2", "1", "a/b"] {
        #expect(try command.run("decode", "--shard", wrong, "ipv6-unknown-port.pcap").status == 64)
      }
    }
  }

  /// 56 notifications of 66 were found.
  @Test("A shuffled capture is read in order with --reorder-window, which inspect names")
  func shuffled() throws {
    try Command.inFolder { command in
      let bytes = [UInt8](try Data(contentsOf: Command.traces.appending(path: "plain-error.pcap")))
      var (offset, records) = (24, [[UInt8]]())
      while offset + 16 <= bytes.count {
        let length = 16 + (0..<4).reduce(0) { $0 | Int(bytes[offset + 8 + $1]) << (8 * $1) }
        records.append(Array(bytes[offset..<offset + length]))
        offset += length
      }
      var random = SeededGenerator(seed: 9)
      records.shuffle(using: &random)
      try command.write(Array(bytes[..<24]) + records.joined(), "shuffled.pcap")
      #expect(try command.run("inspect", "shuffled.pcap").output.contains("--reorder-window "))
      let outcome = try command.run("inspect", "--reorder-window", "all", "shuffled.pcap")
      #expect(outcome.output.contains("7 accepted, 1 rejected, 26 discarded, 32 unknown"))
      #expect(!outcome.output.contains("--reorder-window"))
      #expect(try command.run("decode", "--reorder-window", "soon", "shuffled.pcap").status == 64)
    }
  }

  @Test("Recordings are not mixed with results, and standard input is alone")
  func mixed() throws {
    try Command.inFolder { command in
      try ring(command)
      try command.write(Array("{}".utf8), "result.json")
      #expect(try command.run("report", "ring", "result.json", "--output", "page").status == 65)
      #expect(try command.run("report", "ring", "-", "--output", "page").status == 64)
    }
  }
}
