import BinaryProtocol
import Bytes
import FoundationEssentials
import Measurement
import PacketCapture
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

@Suite("Tallies of a report")
struct TraceReportTests {
  @Test(
    "Bins keep every count, and stay within their number, whenever things happen",
    arguments: seeds(6, of: 20))
  func bins(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var bins = TimeBins<CountBin>(limit: 32)
    var times: [Int64] = []
    let width = Int64.random(in: 1...1 << 60, using: &random)
    for _ in 0..<500 {
      let time = Int64.random(in: -width...width, using: &random)
      times.append(time)
      bins.add(1, bytes: 10, at: Timestamp(nanoseconds: time))
      #expect(bins.bins.count <= 32)
    }
    #expect(bins.bins.reduce(0) { $0 + $1.count } == 500)
    #expect(bins.bins.reduce(0) { $0 + $1.bytes } == 5_000)
    for (index, bin) in bins.bins.enumerated() {
      let number = bins.first + Int64(index)
      #expect(bin.count == times.count { $0 >> Int64(bins.exponent) == number })
    }
    var coarse = bins
    coarse.join(to: bins.exponent + 2)
    #expect(coarse.bins.reduce(0) { $0 + $1.count } == 500)
    #expect(coarse.counts(like: coarse) == coarse.bins.map(\.count))
  }

  @Test("Times to answers are in the bin of their time, however often bins are joined", arguments: seeds(4, of: 20))
  func latencies(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var bins = TimeBins<LatencyBin>(limit: 8)
    var answers: [(time: Int64, latency: Int64)] = []
    for _ in 0..<60 {
      let answer = (Int64.random(in: 0...1 << 40, using: &random), Int64.random(in: 1_000...50_000_000, using: &random))
      answers.append(answer)
      bins.change(at: Timestamp(nanoseconds: answer.0)) { $0.add(nanoseconds: answer.1) }
    }
    for (index, bin) in bins.bins.enumerated() {
      let number = bins.first + Int64(index)
      let own = answers.filter { $0.time >> Int64(bins.exponent) == number }.map(\.latency)
      #expect(bin.histogram?.count ?? 0 == own.count)
      // To three digits.
      if let most = own.max(), let histogram = bin.histogram {
        #expect(abs(Double(histogram.maximum) - Double(most) / 1e3) <= Double(most) / 1e6 + 1)
      }
    }
  }

  @Test("Feedback is counted, and has the time of its first and last tuple") func feedback() throws {
    for times in [[1_400_000_005], [1_400_000_007, 1_400_000_001, 1_400_000_003]] as [[UInt32]] {
      var capture = CaptureBuilder()
      let line = capture.connect(to: 2196)
      for time in times {
        let token = [UInt8](repeating: 7, count: 32)
        capture.server(line, written { FeedbackTuple(timestamp: time, token: token.rawBytes).encode(into: &$0) })
      }
      capture.finish(line, byServer: true)
      let report = try withTemporaryFile(capture.bytes) { path in
        let shared = SharedSink(TraceInspection())
        var dissection = Dissection(into: shared, options: DissectionOptions())
        _ = try dissection.read(try .open(path, options: DissectionOptions().capture), source: path) { _ in true }
        dissection.finish()
        return shared.sink.finish()
      }
      #expect(report.inspection.feedbackTuples == times.count && report.feedback.tokens == 1)
      func text(_ second: UInt32?) -> String? { second.map { "2014-05-13T16:53:2\($0 - 1_400_000_000)Z" } }
      #expect(report.feedback.firstTimestamp == text(times.min()) && report.feedback.lastTimestamp == text(times.max()))
    }
  }

  /// Both reports in words, without what only a recording tells: its files, and what TLS cost.
  private func facts(_ report: TraceReport) -> [String] {
    let inspection = report.inspection
    let connections = inspection.connections.map { row in
      var row = row
      row.tls?.tlsBytes = 0
      row.tls?.payloadBytes = 0
      row.tls?.tlsBytesPerPayloadByte = nil
      row.tls?.keyExchange = nil
      return "\(row)"
    }
    return connections + inspection.errors.map { "\($0)" }
      + [
        // No record has the order of packets in the file.
        "\(inspection.summary)", "\(inspection.findings.filter { $0.kind != .outOfOrder })",
        "\(inspection.fates)", "\(report.connections)",
        "\(report.sent) \(report.errorResponses) \(report.feedbackTuples)", "\(report.tokens) \(report.feedback)",
        // Records have payloads without the white space, so examples and their places differ.
        "\(inspection.payloads?.kinds.map { "\($0)" } ?? [])",
        "\(inspection.payloads?.findings.map { "\($0.code) \($0.count) \($0.firstPacket ?? 0)" } ?? [])",
        "\(report.perSegment) \(report.bytesPerSegment) \(report.payloads)",
        "\(report.priorities.sorted { $0.key < $1.key }) \(report.withoutPriority) \(report.expirations)",
        "\(report.started ?? "") \(report.lengthS) \(report.frameBytes) \(report.errorTimesS)",
      ]
  }

  @Test("Records that are read back count as the recording does", arguments: some(15, of: TraceTests.baselines))
  func readBack(name: String) throws {
    let path = Folder.traces.appending(path: String(name.dropLast(".jsonl".count))).path
    let shared = SharedSink(TraceInspection())
    var dissection = Dissection(into: shared, options: DissectionOptions(), secrets: try secrets(beside: path))
    _ = try dissection.read(try CaptureInput.open(path, options: CaptureOptions()), source: path) { _ in true }
    dissection.finish()

    let lines = try String(contentsOf: Folder.traces.appending(path: name), encoding: .utf8).split(separator: "\n")
    var reader = RecordReader()
    var sink = TraceInspection()
    for line in lines { reader.scan(Array(line.utf8).rawBytes) }
    for line in lines { try reader.read(Array(line.utf8).rawBytes, into: &sink) }
    reader.finish(into: &sink)
    #expect(reader.records == lines.count && reader.unknownRecords == 0)
    for (recording, records) in zip(facts(shared.sink.finish()), facts(sink.finish())) {
      #expect(recording == records)
    }
  }

  private func report(_ lines: [Substring]) throws -> (report: TraceReport, missing: String?) {
    var reader = RecordReader()
    var sink = TraceInspection()
    for line in lines { reader.scan(Array(line.utf8).rawBytes) }
    for line in lines { try reader.read(Array(line.utf8).rawBytes, into: &sink) }
    reader.finish(into: &sink)
    return (sink.finish(), reader.missing)
  }

  private func expectBalance(_ report: TraceReport, _ what: String) {
    let (fates, summary) = (report.inspection.fates, report.inspection.summary)
    let sum = fates.accepted + fates.rejected + fates.discarded + fates.unknown
    #expect(sum == summary.notifications, "\(what)")
    let again = report.inspection.errors.compactMap(\.sentAgain).reduce(0, +)
    #expect(again <= fates.discarded, "\(what)")
    for row in report.inspection.connections {
      #expect(row.accepted + row.rejected + row.discarded + row.unknown == row.notifications, "\(what)")
    }
  }

  /// `decode … | head -150 | report -` told of 79 discarded and 138 of them sent again, and of nothing missing.
  @Test(
    "Records of which some are missing are said to be partial, and their fates add up",
    arguments: some(7, of: TraceTests.baselines))
  func partial(name: String) throws {
    let text = try String(contentsOf: Folder.traces.appending(path: name), encoding: .utf8)
    let lines = text.split(separator: "\n")
    let whole = try report(lines)
    #expect(whole.missing == nil)
    expectBalance(whole.report, "all")
    let types = Set(lines.compactMap { $0.split(separator: "\"").dropFirst(3).first })
    for type in types where type != "capture" {
      let rest = lines.filter { !$0.hasPrefix("{\"type\":\"\(type)\"") }
      let partial = try report(rest)
      #expect(partial.missing?.hasPrefix("The records are incomplete: ") == true, "without \(type)")
      expectBalance(partial.report, "without \(type)")
    }
    for length in stride(from: 1, to: lines.count, by: max(1, lines.count / (TestRun.isWhole ? 12 : 3))) {
      let partial = try report(Array(lines.prefix(length)))
      #expect(partial.missing?.contains("no summary") == true, "the first \(length)")
      expectBalance(partial.report, "the first \(length)")
      let end = try report(Array(lines.suffix(length)))
      expectBalance(end.report, "the last \(length)")
    }
  }

  @Test("A connection whose own record is missing has the fates that its error responses tell")
  func toldFates() throws {
    let path = Folder.traces.appending(path: "known-bad-and-errors.pcap.jsonl")
    let lines = try String(contentsOf: path, encoding: .utf8).split(separator: "\n")
    let (whole, cut) = try (report(lines), report(lines.filter { !$0.hasPrefix("{\"type\":\"connection\"") }))
    #expect("\(cut.report.inspection.fates)" == "\(whole.report.inspection.fates)")
    let missing = try #require(cut.missing)
    #expect(missing.contains("0 of \(whole.report.inspection.summary.connections) connections"))
  }

  @Test("Limits of a connection are read by the names of settings, and as 0.1 wrote them")
  func limits() throws {
    let line = #"{"type":"connection","connection":1,"service":"gateway","end":"capture_end","limits":["NAMES"]}"#
    for names in ["max_buffered_bytes\",\"max_connections", "max-buffered-bytes\",\"max-connections", "max\",\"none"] {
      var reader = RecordReader()
      var sink = Collector()
      let lines = [#"{"type":"capture","schema":1}"#, line.replacing("NAMES", with: names)]
      for line in lines { reader.scan(Array(line.utf8).rawBytes) }
      for line in lines { try reader.read(Array(line.utf8).rawBytes, into: &sink) }
      let limits = sink.connections.first?.limits
      #expect(limits == (names.hasPrefix("max\"") ? [] : [.bufferedBytes, .connections]), "\(names)")
    }
  }

  @Test("Every line of records that is cut anywhere is refused or read, and never the end of the program")
  func cutLines() throws {
    for name in ["plain-error.pcap.jsonl", "tls-known-bad.pcapng.jsonl", "feedback-plain.hex.jsonl"] {
      let text = try String(contentsOf: Folder.traces.appending(path: name), encoding: .utf8)
      var reader = RecordReader()
      var sink = TraceInspection()
      var refused = 0
      for line in text.split(separator: "\n").prefix(12) {
        let bytes = Array(line.utf8)
        for end in 0..<bytes.count {
          reader.scan(Array(bytes[..<end]).rawBytes)
          do { try reader.read(Array(bytes[..<end]).rawBytes, into: &sink) } catch { refused += 1 }
        }
      }
      #expect(reader.records == 0)
      #expect(refused > 1_000)
    }
  }

  @Test("The ends of the time that can be told are bins like others")
  func extremes() {
    var bins = TimeBins<CountBin>(limit: 4)
    for time in [Int64.max, Int64.min + 1, 0, -1] { bins.add(1, bytes: 0, at: Timestamp(nanoseconds: time)) }
    #expect(bins.bins.reduce(0) { $0 + $1.count } == 4)
    #expect(bins.bins.count <= 4)
  }

  @Test("A trace that is longer than can be told has no length, and all the same a report")
  func longest() {
    var inspection = TraceInspection()
    for (connection, time) in [(1, Int64.min + 1), (2, .max)] {
      inspection.opened(connection: connection, at: Timestamp(nanoseconds: time))
    }
    let report = inspection.finish()
    #expect(report.started?.hasPrefix("1677-09-21T") == true && report.lengthS == 0)
  }

  @Test("Findings are listed in the order of their kinds, with the sum of their counts and their first packet")
  func findings() {
    var findings = Findings()
    for (kind, packet) in [(FindingKind.knownBad, 9), (.resent, 7), (.knownBad, 8), (.neverResent, 0)] {
      findings.note(kind, count: 2, packet: packet)
    }
    findings.note(.conflict, count: 0, packet: 1)
    #expect(findings.rows.map(\.kind) == [.neverResent, .resent, .knownBad])
    #expect(findings.rows.map(\.count) == [2, 2, 4])
    #expect(findings.rows.map(\.firstPacket) == [nil, 7, 8])
  }

  @Test("Tokens are counted exactly up to the limit, and estimated above it")
  func tokens() {
    var random = SeededGenerator(seed: 7)
    var exact = TokenTally(limit: 1_000)
    let keys = (0..<1_000).map { _ in UInt64.random(in: 0...UInt64.max, using: &random) } + [0]
    for (index, key) in keys.enumerated() { for _ in 0...(index % 3) { exact.add(key) } }
    #expect(exact.report.distinct == 1_001)
    #expect(!exact.report.isEstimate)
    #expect(exact.report.repeated == keys.indices.count { $0 % 3 > 0 })
    #expect(exact.report.most.allSatisfy { $0.count == 3 })

    // Tokens that differ in their last bits alone are spread as well as others.
    var many = TokenTally(limit: 1_000)
    for key in 1...100_000 as ClosedRange<UInt64> { for _ in 0...(key % 2) { many.add(key) } }
    let report = many.report
    #expect(report.isEstimate)
    #expect((70_000...130_000).contains(report.distinct))
    #expect((30_000...70_000).contains(report.repeated))
    #expect(report.most.allSatisfy { $0.count == 2 })
  }

  @Test("Tallies of connections come in any order, with holes, and go when they have ended")
  func tallies() {
    var tallies = Tallies(blank: "")
    for number in [5, 3, 9, 4] { tallies.add("\(number)", number: number) }
    for number in [3, 4, 5, 9] { #expect(tallies.index(of: number).map { tallies[$0] } == "\(number)") }
    for number in [0, 2, 6, 8, 10, -1] { #expect(tallies.index(of: number) == nil) }
    #expect(tallies.remove(5) == "5" && tallies.remove(5) == nil && tallies.remove(7) == nil)
    for number in [3, 4, 9] { #expect(tallies.remove(number) == "\(number)") }
    tallies.add("1000000000000", number: 1_000_000_000_000)
    #expect(tallies.index(of: 1_000_000_000_000) != nil)
  }
}
