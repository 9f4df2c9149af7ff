import BinaryProtocol
import Bytes
import Foundation
import Measurement
import PacketCapture
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

@Suite("Merging of inspections")
struct InspectionMergingTests {
  /// Twelve hosts, each with two connections; some are rejected, resend, are idle, or speak HTTP.
  private func hosts() -> CaptureBuilder {
    var capture = CaptureBuilder()
    for round in 0..<2 as Range<UInt16> {
      for host in 20..<32 as Range<UInt8> {
        capture.milliseconds += 700
        let line = capture.connect(from: 40_001 + round, of: host, to: host == 31 ? 8080 : 2195)
        if host == 31 {
          capture.client(line, Array("GET / HTTP/1.1\r\n\r\n".utf8))
          capture.finish(line)
          continue
        }
        for index in 0..<UInt32(host - 15) {
          capture.client(line, frame(identifier: index, host: host, length: 30 + Int(index)))
        }
        if host % 3 == 0 {
          capture.server(line, response(status: 8, identifier: 2))
          capture.client(line, frame(identifier: 99, host: host, length: 40))
        }
        if host % 4 == 1 { capture.reset(line, byServer: true) } else { capture.finish(line, byServer: host % 3 == 0) }
      }
    }
    return capture
  }

  private func frame(identifier: UInt32, host: UInt8, length: Int) -> [UInt8] {
    let payload = Array(#"{"aps":{"alert":"\#(String(repeating: "x", count: length))"}}"#.utf8)
    func integer(_ value: UInt32, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
    }
    let token = [UInt8](repeating: host, count: 31) + [UInt8(identifier & 255)]
    return [1] + integer(identifier, 4) + integer(0, 4) + integer(32, 2) + token + integer(UInt32(payload.count), 2)
      + payload
  }

  private func response(status: UInt8, identifier: UInt32) -> [UInt8] {
    [8, status] + (0..<4).map { UInt8(truncatingIfNeeded: identifier >> (24 - 8 * $0)) }
  }

  private func inspected(
    _ paths: [String], shard: Shard? = nil, asOne: Bool = false, counted: Bool = true
  ) throws -> InspectionReport {
    var options = DissectionOptions()
    options.capture.shard = shard
    let shared = SharedSink(Inspection())
    var dissection = Dissection(into: shared, options: options)
    dissection.numbersFiles = paths.count > 1
    if asOne {
      var recording = Recording()
      for path in paths {
        guard let file = try CaptureInput.openCapture(path, options: options.capture) else { continue }
        recording.add(file, options: options.capture)
      }
      recording.sort()
      _ = try dissection.read(recording, sources: paths) { _ in true }
    } else {
      for path in paths {
        _ = try dissection.read(CaptureInput.open(path, options: options.capture), source: path) { _ in true }
      }
    }
    dissection.finish()
    return shared.sink.finish(withCounts: counted, shard: shard)
  }

  /// What a report says of the whole, whatever the order in which its connections ended.
  ///
  /// - Parameter isOpen: what another sending would refute is open, as in each of several parts.
  private func normal(_ report: InspectionReport, isOpen: Bool = false) -> InspectionReport {
    var report = report
    if isOpen { open(&report) }
    // Merging numbers connections by their first packets.
    let numbers = Dictionary(
      uniqueKeysWithValues: report.connections.sorted {
        ($0.opened ?? "", $0.client ?? "") < ($1.opened ?? "", $1.client ?? "")
      }
      .enumerated().map { ($1.connection, $0 + 1) })
    for index in report.connections.indices {
      report.connections[index].connection = numbers[report.connections[index].connection] ?? 0
    }
    for index in report.errors.indices {
      report.errors[index].connection = numbers[report.errors[index].connection] ?? 0
    }
    report.connections.sort { $0.connection < $1.connection }
    report.errors.sort { ($0.time ?? "") < ($1.time ?? "") }
    return report
  }

  private func open(_ report: inout InspectionReport) {
    func move(_ outcomes: inout NamedCounts<StoryOutcome>) {
      for outcome in [StoryOutcome.lost, .rejected, .recovered, .expired] {
        if let count = outcomes[outcome] { outcomes[.open, default: 0] += count }
        outcomes[outcome] = nil
      }
    }
    for index in report.errors.indices {
      var outcomes = report.errors[index].outcomes ?? [:]
      move(&outcomes)
      if report.errors[index].outcomes != nil { report.errors[index].outcomes = outcomes }
    }
    if var stories = report.stories {
      for outcome in [StoryOutcome.lost, .rejected, .recovered, .expired] {
        stories.open += stories[outcome]
        stories[outcome] = 0
      }
      (stories.openReasons, stories.notSeenAgain, stories.recovery) = ([:], [:], nil)
      report.stories = stories
    }
    report.counts?.recoveriesS = []
    // What is proven of the whole is open in its parts.
    let lost = report.findings.filter { [.neverResent, .notSeenAgain].contains($0.kind) }.reduce(0) { $0 + $1.count }
    report.findings.removeAll { [.neverResent, .notSeenAgain].contains($0.kind) }
    report.stories?.lost = lost
  }

  @Test("The parts of a recording, merged, are the inspection of the whole", arguments: [1, 2, 3, 7, 64])
  func shards(count: Int) throws {
    try withTemporaryFile(hosts().bytes) { path in
      let whole = try inspected([path])
      #expect(whole.summary.notifications > 200 && whole.errorCount == 8 && whole.connections.count == 24)
      let parts = try (1...count).map { number in
        InspectionReport.Part("\(number)", try inspected([path], shard: Shard(number: number, of: count)))
      }
      if count > 1 { #expect(parts.count { $0.report.summary.connections > 0 } > 1) }
      let (merged, missing) = try InspectionReport.merging(parts.shuffled())
      #expect(missing == [])
      #expect(normal(merged, isOpen: count > 1) == normal(whole, isOpen: count > 1))
      // Nothing that the whole would refute.
      if count > 1 { #expect(merged.stories?.lost == 0 && merged.stories?.open ?? 0 >= whole.stories?.open ?? 0) }
    }
  }

  @Test("The same of every trace, both IP versions among them", arguments: some(12, of: RecordingTests.traces))
  func traces(name: String) throws {
    let path = Folder.traces.appending(path: name).path
    let whole = try inspected([path])
    let parts = try (1...3).map { number in
      InspectionReport.Part("\(number)", try inspected([path], shard: Shard(number: number, of: 3)))
    }
    let merged = try InspectionReport.merging(parts).report
    // Where one part has all connections, nothing is open that is not open in the whole.
    let isOpen = parts.count { $0.report.summary.connections > 0 } > 1
    #expect(normal(merged, isOpen: isOpen) == normal(whole, isOpen: isOpen))
  }

  @Test("Inspections of unrelated recordings add up, in whatever steps they are merged")
  func recordings() throws {
    // The first two are of one time. A later step could not tell which of their outcomes a third one may refute.
    let names = ["ipv6-unknown-port.pcap", "known-bad-and-errors.pcap", "plain-error.pcap"]
    let paths = names.map { Folder.traces.appending(path: $0).path }
    let parts = try paths.map { InspectionReport.Part($0, try inspected([$0])) }
    let merged = try InspectionReport.merging(parts).report
    let together = try inspected(paths)
    #expect(merged.counts == together.counts)
    #expect(merged.summary == together.summary && merged.fates == together.fates && merged.ends == together.ends)
    #expect(merged.payloadLengths == together.payloadLengths && merged.lifetimesS == together.lifetimesS)
    #expect(merged.notificationsPerSecond == together.notificationsPerSecond)
    #expect(merged.errorsByStatus == together.errorsByStatus && merged.errors.count == together.errors.count)
    #expect(merged.files.map(\.file) == [1, 2, 3] && merged.files.map(\.source) == paths)
    #expect(merged.connections.map(\.connection) == Array(1...merged.connections.count))
    #expect(merged.connections.allSatisfy { $0.file != nil })
    // A row's file is the one it came from.
    for (part, number) in zip(parts, 1...) {
      #expect(merged.connections.count { $0.file == number } == part.report.connections.count)
    }
    let first = try InspectionReport.merging(Array(parts[..<2])).report
    let stepwise = try InspectionReport.merging([.init("first two", first), parts[2]]).report
    #expect(stepwise == merged)
  }

  @Test("What another recording of the same time may refute is open: rejected here, accepted there")
  func refuted() throws {
    func recording(status: UInt8, from port: UInt16) -> [UInt8] {
      var capture = CaptureBuilder()
      let line = capture.connect(from: port)
      for index in 1...3 as ClosedRange<UInt32> { capture.client(line, push(index, device: UInt8(index))) }
      capture.server(line, refusal(status, 2))
      capture.finish(line)
      return capture.bytes
    }
    try withTemporaryFile(recording(status: 8, from: 40_001)) { first in
      try withTemporaryFile(recording(status: 10, from: 40_002)) { second in
        let parts = try [first, second].map { InspectionReport.Part($0, try inspected([$0])) }
        #expect(parts[0].report.stories?.rejected == 1)
        let merged = try #require(try InspectionReport.merging(parts).report.stories)
        #expect((merged.rejected, merged.lost, merged.recovered, merged.expired) == (0, 0, 0, 0))
        #expect(merged.openReasons[.otherRecording] ?? 0 >= 1)
      }
    }
  }

  @Test("What no recording shows by itself is found in all of them")
  func onlyTogether() throws {
    func recording(from port: UInt16) -> [UInt8] {
      var capture = CaptureBuilder()
      for number in 0..<6 as Range<UInt16> {
        let line = capture.connect(from: port + number)
        capture.client(line, push(1, device: UInt8(number), "from \(port)"))
        if number < 2 { capture.server(line, refusal(8, 1)) }
        capture.finish(line, byServer: number < 2)
      }
      return capture.bytes
    }
    try withTemporaryFile(recording(from: 40_001)) { first in
      try withTemporaryFile(recording(from: 41_001)) { second in
        let parts = try [first, second].map { InspectionReport.Part($0, try inspected([$0])) }
        func counts(_ report: InspectionReport) -> [Int?] {
          [.oneNotificationConnections, .tokensOfOtherEnvironment].map { kind in
            report.findings.first { $0.kind == kind }?.count
          }
        }
        for part in parts { #expect(counts(part.report) == [nil, nil]) }
        #expect(counts(try InspectionReport.merging(parts).report) == [12, 4])
      }
    }
  }

  @Test("Losses of a recording count once, and not in each of its parts")
  func losses() throws {
    try withTemporaryFile(hosts().bytes) { path in
      let parts = try (1...3).map { number in
        var report = try inspected([path], shard: Shard(number: number, of: 3))
        report.summary.droppedPackets = 40
        return InspectionReport.Part("\(number)", report)
      }
      let merged = try InspectionReport.merging(parts).report
      #expect(merged.summary.droppedPackets == 40)
      #expect(merged.findings.first?.kind == .captureLoss && merged.findings.first?.count == 40)
    }
  }

  @Test("A missing part is named; the same part twice, a report without counts and an impossible part are errors")
  func faults() throws {
    try withTemporaryFile(hosts().bytes) { path in
      let parts = try (1...4).map { number in
        InspectionReport.Part("part \(number)", try inspected([path], shard: Shard(number: number, of: 4)))
      }
      #expect(
        try InspectionReport.merging([parts[0], parts[2]]).missing == ["\(path): the parts 2/4, 4/4 are missing"])
      func problem(_ parts: [InspectionReport.Part]) -> String? {
        do {
          _ = try InspectionReport.merging(parts)
          return nil
        } catch {
          return error.description
        }
      }
      #expect(
        problem([parts[0], parts[1], .init("again", parts[1].report)]) == "again: is the same part as part 2 (2/4)")
      #expect(problem([.init("old", try inspected([path], counted: false))])?.hasPrefix("old: has no counts") == true)
      var odd = parts[0].report
      odd.counts?.shard = "5/4"
      #expect(problem([.init("odd", odd)]) == "odd: is of part '5/4', which cannot be")
    }
  }

  @Test("A report in between has what came so far, and does not change the last one")
  func between() throws {
    try withTemporaryFile(hosts().bytes) { path in
      let whole = try inspected([path])
      let shared = SharedSink(Inspection())
      var dissection = Dissection(into: shared, options: DissectionOptions())
      var seen: [InspectionReport] = []
      dissection.onProgress = { summary in seen.append(shared.sink.report(after: summary)) }
      _ = try dissection.read(.open(path, options: CaptureOptions()), source: path) { _ in true }
      dissection.finish()
      #expect(shared.sink.finish(withCounts: true) == whole)
      let last = try #require(seen.last)
      #expect(last.summary.notifications == whole.summary.notifications)
      #expect(last.notificationsByCommand == whole.notificationsByCommand)
      #expect(last.files.map(\.source) == [path])
      for report in seen {
        let fates = report.fates
        #expect(
          fates.accepted + fates.rejected + fates.discarded + fates.unknown == report.summary.notifications)
        #expect(report.connections.count + report.connectionsNotListed == report.summary.connections)
      }
    }
  }

  @Test("The counts of a report in between are of one moment: rejected notifications beside their error responses")
  func moment() throws {
    var capture = CaptureBuilder()
    for number in 0..<4 as Range<UInt32> {
      let line = capture.connect(from: UInt16(40_001 + number))
      for index in 0..<3 as Range<UInt32> { capture.client(line, push(index + 1, device: UInt8(number))) }
      capture.server(line, refusal(8, 1 + number % 3))
      if number == 2 { capture.server(line, refusal(8, 99)) }
    }
    capture.finish(0)
    var all = RecordSelection()
    all.connections = [1...1_000]
    for selection in [RecordSelection(), all] {
      try withTemporaryFile(capture.bytes) { path in
        var options = DissectionOptions()
        options.capture.blockLength = 200
        var seen: [InspectionReport] = []
        func note(_ sink: Inspection, _ summary: SummaryRecord) { seen.append(sink.report(after: summary)) }
        if selection.isEmpty {
          let shared = SharedSink(Inspection())
          var dissection = Dissection(into: shared, options: options)
          dissection.onProgress = { note(shared.sink, $0) }
          _ = try dissection.read(.open(path, options: options.capture), source: path) { _ in true }
        } else {
          let inspection = SharedSink(Inspection())
          let sink = SelectedRecords(
            inspection, selection, facts: RecordingFacts(for: RecordSelection()), countsSelected: true,
            maximumRanges: 1_000)
          let shared = SharedSink(sink)
          var dissection = Dissection(into: shared, options: options)
          dissection.onProgress = { _ in note(inspection.sink, shared.sink.summary) }
          _ = try dissection.read(.open(path, options: options.capture), source: path) { _ in true }
        }
        #expect(Set(seen.map(\.errorCount)).isSuperset(of: [0, 1, 2, 3]))
        for report in seen {
          // One of them names a notification that was not sent.
          let named = report.errors.count { $0.notification != nil }
          #expect(report.fates.rejected == named)
          #expect(report.errorCount == report.errorsByStatus.values.reduce(0, +))
          #expect(report.errorCount == report.summary.errorResponses)
          #expect(report.errorCount - named <= 1)
          if let stories = report.stories {
            #expect(StoryOutcome.allCases.reduce(0) { $0 + stories[$1] } <= report.summary.notifications)
            #expect(stories.notSeenAgain.sum <= report.fates.discarded)
          }
        }
      }
    }
  }
}
