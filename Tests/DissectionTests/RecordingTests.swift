import Bytes
import Foundation
import PacketCapture
import TLSDecryption
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

/// Captures that are given together are one recording.
@Suite("A recording of many files")
struct RecordingTests {
  /// pcap and pcapng, compressed ones too.
  static let traces = Folder.names(in: Folder.traces, ending: "").filter { name in
    [".pcap", ".pcapng", ".pcap.gz", ".pcap.zst"].contains { name.hasSuffix($0) }
  }

  // MARK: the laws

  @Test(
    "A capture that is cut into files decodes to the same records, in whatever order the files are named",
    arguments: some(12, of: traces))
  func cut(trace: String) throws {
    let capture = try #require(try CutCapture(contentsOf: Folder.traces.appending(path: trace).path))
    guard capture.isOrdered else { return }
    var random = SeededGenerator(seed: 17)
    let whole = try lines([capture.whole], trace)
    for count in [1, 7, 30, 200] where count > 1 || capture.records.count < 400 {
      let pieces = capture.pieces(of: count)
      let cut = try lines(pieces, trace, order: pieces.indices.shuffled(using: &random))
      #expect(try Self.withoutFiles(cut) == Self.withoutFiles(whole), "\(trace) in pieces of \(count)")
      #expect(cut.count { $0.hasPrefix(#"{"type":"capture""#) } == pieces.count)
    }
  }

  @Test(
    "A capture whose packets are spread over files is put together again by their times",
    arguments: some(12, of: traces))
  func spread(trace: String) throws {
    let capture = try #require(try CutCapture(contentsOf: Folder.traces.appending(path: trace).path))
    guard capture.isStrictlyOrdered else { return }
    let whole = try lines([capture.whole], trace)
    for count in [2, 5] {
      let spread = try lines(capture.queues(count), trace)
      #expect(try Self.withoutFiles(spread) == Self.withoutFiles(whole), "\(trace) in \(count) queues")
    }
  }

  /// The packet that a record names is the one in its file.
  @Test("A record's file and packet are those that hold its last byte")
  func places() throws {
    let capture = try #require(
      try CutCapture(contentsOf: Folder.traces.appending(path: "plain-error.pcap").path))
    let whole = try objects(lines([capture.whole], "plain-error.pcap"))
    let cut = try objects(lines(capture.pieces(of: 7), "plain-error.pcap")).filter {
      $0["type"] as? String != "capture"
    }
    for (one, other) in zip(whole.dropFirst(), cut) {
      guard let packet = one["packet"] as? Int else { continue }
      #expect(other["file"] as? Int == (packet - 1) / 7 + 1)
      #expect(other["packet"] as? Int == (packet - 1) % 7 + 1)
    }
    #expect(whole.allSatisfy { $0["file"] == nil })
    #expect(cut.allSatisfy { $0["file"] != nil || $0["type"] as? String == "summary" })
  }

  @Test("More files overlap than may be merged: the further ones are read after them, and say so")
  func tooMany() throws {
    let capture = try #require(try CutCapture(contentsOf: Folder.traces.appending(path: "plain-error.pcap").path))
    var options = DissectionOptions()
    options.capture.maximumMergedFiles = 2
    var collector = Collector()
    try recording(capture.queues(4), "plain-error.pcap", options: options) { recording, _ in
      let shared = SharedSink(Collector())
      var dissection = Dissection(into: shared, options: options)
      let outcomes = try dissection.read(recording, sources: []) { _ in true }
      dissection.finish()
      collector = shared.sink
      #expect(outcomes.count == 4)
      #expect(outcomes.map { $0.warnings.count } == [0, 0, 1, 1])
      #expect(outcomes[3].warnings.allSatisfy { $0.contains("--max-merged-files") })
    }
    #expect(collector.summaries[0].packets == capture.records.count)
  }

  @Test("A file that is gone when its turn comes is a failure of its own; the others are read")
  func gone() throws {
    let capture = try #require(try CutCapture(contentsOf: Folder.traces.appending(path: "plain-error.pcap").path))
    try recording(capture.pieces(of: 50), "plain-error.pcap") { recording, paths in
      try FileManager.default.removeItem(atPath: paths[1])
      let shared = SharedSink(Collector())
      var dissection = Dissection(into: shared, options: DissectionOptions())
      dissection.numbersFiles = true
      let outcomes = try dissection.read(recording, sources: []) { _ in true }
      dissection.finish()
      #expect(outcomes.map { $0.failure?.kind } == [nil, .cannotOpen, nil])
      #expect(outcomes.map(\.packets) == [50, 0, capture.records.count - 100])
      #expect(shared.sink.summaries[0].packets == capture.records.count - 50)
    }
  }

  @Test(
    "Names with numbers are in the order of these",
    arguments: [
      (["cap.pcap10", "cap.pcap2", "cap.pcap", "cap.pcap1"], ["cap.pcap", "cap.pcap1", "cap.pcap2", "cap.pcap10"]),
      (["b1", "a20", "a3b", "a3", "a03"], ["a03", "a3", "a3b", "a20", "b1"]),
      (
        ["99999999999999999999999", "100000000000000000000000"],
        ["99999999999999999999999", "100000000000000000000000"]
      ),
    ])
  func naturalOrder(names: [String], ordered: [String]) {
    #expect(names.sorted(by: NaturalOrder.precedes) == ordered)
    for a in names { for b in names { #expect(!(NaturalOrder.precedes(a, b) && NaturalOrder.precedes(b, a))) } }
  }

  // MARK: times that run backwards

  @Test(
    "A shuffled capture that is put into the order of its times decodes as if it had been in order",
    arguments: some(12, of: traces))
  func shuffled(trace: String) throws {
    let capture = try #require(try CutCapture(contentsOf: Folder.traces.appending(path: trace).path))
    guard capture.isStrictlyOrdered else { return }
    var random = SeededGenerator(seed: 4)
    let order = capture.records.indices.shuffled(using: &random)
    let whole = try lines([capture.whole], trace)
    var options = DissectionOptions()
    options.capture.reorderWindow = .max
    // Secrets blocks go with the packets before them, so that they may come in any order.
    let shuffled = try lines([capture.file(order)], trace, options: options)
    #expect(try Self.withoutFiles(shuffled) == Self.withoutFiles(whole), "\(trace)")
    // Of several files as well.
    let cut = [Array(order[..<(order.count / 2)]), Array(order[(order.count / 2)...])].map(capture.file)
    #expect(try Self.withoutFiles(lines(cut, trace, options: options)) == Self.withoutFiles(whole), "\(trace) in two")
  }

  @Test("The window that a finding names puts the packets into order, and then there is no such finding")
  func window() throws {
    let trace = "plain-error.pcap"
    let capture = try #require(try CutCapture(contentsOf: Folder.traces.appending(path: trace).path))
    var order = Array(capture.records.indices)
    // Neighbours a few places apart.
    for index in stride(from: 0, to: order.count - 6, by: 7) { order.swapAt(index, index + 5) }
    func inspected(_ window: Int64?) throws -> [String] {
      var options = DissectionOptions()
      options.capture.reorderWindow = window
      return try withTemporaryFile(capture.file(order)) { path in
        let shared = SharedSink(Inspection())
        var dissection = Dissection(into: shared, options: options)
        _ = try dissection.read(try .open(path, options: options.capture), source: path) { _ in true }
        dissection.finish()
        return shared.sink.finish().findings.filter { $0.kind == .outOfOrder }.map(\.text)
      }
    }
    let text = try #require(try inspected(nil).first)
    let named = try #require(text.firstMatch(of: /--reorder-window ([0-9]+)ms/)?.1)
    let window = try #require(Int64(named)) * 1_000_000
    #expect(try inspected(window).isEmpty)
    var options = DissectionOptions()
    options.capture.reorderWindow = window
    let reordered = try lines([capture.file(order)], trace, options: options)
    #expect(try Self.withoutFiles(reordered) == Self.withoutFiles(lines([capture.whole], trace)))
  }

  @Test("At the limit the earliest packet is read before its turn, and the file says so")
  func reorderLimit() throws {
    let capture = try #require(try CutCapture(contentsOf: Folder.traces.appending(path: "plain-error.pcap").path))
    var options = DissectionOptions()
    options.capture.reorderWindow = .max
    options.capture.maximumReorderBytes = 2_000
    let seen = try withTemporaryFile(capture.whole) { try dissect($0, options) }
    #expect(seen.outcomes[0].warnings.count == 1 && seen.outcomes[0].warnings[0].contains("--max-reorder-bytes"))
    #expect(seen.notifications.count == 66)
  }

  // MARK: parts

  @Test("Parts of a recording add up to the whole, and each pair of hosts is in one of them", arguments: [1, 2, 3, 16])
  func parts(count: Int) throws {
    // Both versions of IP.
    let names = ["plain-error.pcap", "ipv6-unknown-port.pcap", "known-bad-and-errors.pcap", "vlan-qinq.pcap"]
    for name in names {
      let path = Folder.traces.appending(path: name).path
      let whole = try dissect(path)
      var (packets, connections, notifications) = (0, 0, 0)
      var fates = [0, 0, 0, 0]
      var flows: [String] = []
      for number in 1...count {
        var options = DissectionOptions()
        options.capture.shard = Shard(number: number, of: count)
        let part = try dissect(path, options)
        packets += part.summaries[0].packets
        connections += part.summaries[0].connections
        notifications += part.summaries[0].notifications
        flows += part.connections.compactMap(\.flow)
        for record in part.connections {
          for (place, fate) in [
            record.fates.accepted, record.fates.rejected, record.fates.discarded, record.fates.unknown,
          ].enumerated() { fates[place] += fate }
        }
      }
      #expect(packets == whole.summaries[0].packets && connections == whole.connections.count, "\(name)")
      #expect(notifications == whole.notifications.count, "\(name)")
      #expect(Set(flows).count == connections)
      let all = whole.connections.map(\.fates)
      #expect(
        fates == [
          all.reduce(0) { $0 + $1.accepted }, all.reduce(0) { $0 + $1.rejected }, all.reduce(0) { $0 + $1.discarded },
          all.reduce(0) { $0 + $1.unknown },
        ])
    }
  }

  @Test("A connection's key is the same in every part, and in the whole it is not written")
  func flows() throws {
    let path = Folder.traces.appending(path: "ipv6-unknown-port.pcap").path
    var keys: [Set<String>] = []
    for count in [1, 2, 5] {
      var found: Set<String> = []
      for number in 1...count {
        var options = DissectionOptions()
        options.capture.shard = Shard(number: number, of: count)
        found.formUnion(try dissect(path, options).connections.compactMap(\.flow))
      }
      keys.append(found)
    }
    #expect(Set(keys).count == 1 && !keys[0].isEmpty)
    #expect(try dissect(path).connections.allSatisfy { $0.flow == nil })
  }

  @Test("A part number out of range is refused")
  func noPart() {
    for (number, count) in [(0, 4), (5, 4), (1, 0), (-1, -1)] { #expect(Shard(number: number, of: count) == nil) }
  }

  // MARK: making and comparing

  /// What `decode` writes for files with these contents, named in this order.
  private func lines(
    _ files: [[UInt8]], _ trace: String, order: [Int]? = nil, options: DissectionOptions = DissectionOptions()
  ) throws -> [String] {
    var written: [UInt8] = []
    try recording(files, trace, order: order, options: options) { recording, _ in
      let writer = JSONLinesWriter { bytes in
        written.append(copying: bytes)
        return true
      }
      var dissection = Dissection(
        into: writer, options: options,
        secrets: try secrets(beside: Folder.traces.appending(path: trace).path))
      dissection.numbersFiles = files.count > 1
      let names = recording.files.indices.map { "file \($0)" }
      _ = try dissection.read(recording, sources: names) { _ in true }
      dissection.finish()
      writer.flush()
    }
    return String(decoding: written, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private func recording(
    _ files: [[UInt8]], _ trace: String, order: [Int]? = nil, options: DissectionOptions = DissectionOptions(),
    _ body: (Recording, _ paths: [String]) throws -> Void
  ) throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apnscope-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let paths = files.indices.map { folder.appending(path: "ring\($0)").path }
    for (path, bytes) in zip(paths, files) { try Data(bytes).write(to: URL(filePath: path)) }
    var recording = Recording()
    for index in order ?? Array(files.indices) {
      guard let file = try CaptureInput.openCapture(paths[index], options: options.capture) else {
        Issue.record("no capture")
        continue
      }
      recording.add(file, options: options.capture)
    }
    recording.sort()
    try body(recording, paths)
  }

  /// Records but those of files, without the file and its packet.
  private static func withoutFiles(_ lines: [String]) throws -> [String] {
    lines.filter { !$0.hasPrefix(#"{"type":"capture""#) }.map {
      $0.replacing(/"(file|packet)":[0-9]+,/, with: "")
    }
  }

  private func objects(_ lines: [String]) throws -> [[String: Any]] {
    try lines.map { try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]) }
  }
}
