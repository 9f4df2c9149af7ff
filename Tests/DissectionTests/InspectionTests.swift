import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import TestSupport
import Testing

@testable import Analysis

@Suite("Inspection")
struct InspectionTests {
  private func finding(_ kind: FindingKind, in report: InspectionReport) -> InspectionReport.FindingRow? {
    report.findings.first { $0.kind == kind }
  }

  @Test("Discarded notifications are told by token and payload when they are sent again, not by identifier")
  func resent() throws {
    var capture = CaptureBuilder()
    let first = capture.connect()
    for device in 0..<6 as Range<UInt8> { capture.client(first, push(UInt32(device), device: device)) }
    capture.server(first, refusal(8, 1))
    let response = capture.packets
    // Devices 2 to 5 are lost; one more is written before the client notices.
    capture.client(first, push(6, device: 6))
    let late = capture.packets
    capture.finish(first, byServer: true)
    let second = capture.connect(from: 40_002)
    // 2 and 6 come again under other identifiers; 3 with another text, and 4 to another device, are new ones.
    capture.client(second, push(100, device: 2) + push(101, device: 6))
    capture.client(second, push(3, device: 3, "other") + push(4, device: 44))
    capture.finish(second)
    capture.observe()
    let report = try capture.inspected()
    let resent = try #require(finding(.resent, in: report))
    #expect(resent.count == 2)
    #expect(resent.firstPacket == response)
    let lost = try #require(finding(.neverResent, in: report))
    #expect(lost.count == 3)
    #expect(lost.firstPacket == response)
    #expect(response < late)
    #expect(report.fates.discarded == 5)
    #expect(report.connections.map(\.discardedAfterFirstError) == [5, nil])
  }

  @Test("Nothing lost, nothing found") func clean() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for index in 1...3 as ClosedRange<UInt32> { capture.client(line, push(index, device: 1, "text \(index)")) }
    capture.server(line, refusal(8, 3))
    capture.finish(line, byServer: true)
    let report = try capture.inspected()
    // The last one was rejected: none came after it.
    #expect(report.findings.map(\.kind) == [.tokenNotOfGateway])
    #expect(report.fates.accepted == 2)
    #expect(report.fates.rejected == 1)
  }

  @Test("Two copies of a notification lost, one sent again: the notification is not lost") func copies() throws {
    var capture = CaptureBuilder()
    let first = capture.connect()
    for identifier in 1...3 as ClosedRange<UInt32> { capture.client(first, push(identifier, device: 7)) }
    capture.server(first, refusal(8, 1))
    capture.finish(first, byServer: true)
    let second = capture.connect(from: 40_002)
    capture.client(second, push(9, device: 7))
    capture.finish(second)
    let report = try capture.inspected()
    #expect(finding(.resent, in: report)?.count == 1)
    #expect(finding(.neverResent, in: report) == nil)
  }

  @Test("Oddities are counted, each with the first packet that shows it") func oddities() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    func enhanced(_ expiration: UInt32, token: Int, payload: [UInt8]) -> [UInt8] {
      written {
        BinaryFrame.encodeEnhanced(
          identifier: 1, expiration: expiration, token: [UInt8](repeating: 1, count: token).rawBytes,
          payload: payload.rawBytes, into: &$0)
      }
    }
    func json(_ length: Int) -> [UInt8] {
      Array("{\"a\":\"".utf8) + [UInt8](repeating: 0x61, count: length - 8) + Array("\"}".utf8)
    }
    var first: [FindingKind: Int] = [:]
    func send(_ kinds: [FindingKind], _ bytes: [UInt8]) {
      capture.client(line, bytes)
      for kind in kinds where first[kind] == nil { first[kind] = capture.packets }
    }
    send([], enhanced(0, token: 32, payload: json(2_048)))
    send([.payloadOver2048], enhanced(0, token: 32, payload: json(2_049)))
    send([.payloadOver2048], enhanced(0, token: 32, payload: json(4_096)))
    send([.payloadOver4096], enhanced(0, token: 32, payload: json(4_097)))
    send([.strangeExpiration], enhanced(86_400, token: 32, payload: json(20)))
    send([.strangeExpiration], enhanced(.max, token: 32, payload: json(20)))
    send([], enhanced(1_900_000_000, token: 32, payload: json(20)))
    send([.unusualTokenLength], enhanced(0, token: 8, payload: json(20)))
    send([], enhanced(0, token: 32, payload: Array("[1]".utf8)))
    send([.knownBad], enhanced(0, token: 0, payload: json(20)))
    send([.malformed], [0xff, 0xfe])
    send([], enhanced(0, token: 32, payload: json(20)))
    let report = try capture.inspected()
    let counts: [FindingKind: Int] = [
      .payloadOver2048: 2, .payloadOver4096: 1, .strangeExpiration: 2, .unusualTokenLength: 1,
      .knownBad: 1, .malformed: 1,
    ]
    for (kind, count) in counts {
      let row = try #require(finding(kind, in: report), "\(kind)")
      #expect(row.count == count, "\(kind)")
      #expect(row.firstPacket == first[kind], "\(kind)")
    }
    #expect(Set(report.findings.map(\.kind)).subtracting([.unknownFate]) == Set(counts.keys))
  }

  @Test("A token that is rejected again, a response that names nothing, a repeated identifier")
  func responses() throws {
    var capture = CaptureBuilder()
    var answers: [Int] = []
    for (port, status) in [(40_001, 8), (40_002, 8), (40_003, 10)] as [(UInt16, UInt8)] {
      let line = capture.connect(from: port)
      capture.client(line, push(1, device: 9, "to \(port)"))
      capture.server(line, refusal(status, 1))
      answers.append(capture.packets)
      capture.finish(line, byServer: true)
    }
    let line = capture.connect(from: 40_004)
    capture.client(line, push(5, device: 1, "a") + push(5, device: 2, "b"))
    capture.server(line, refusal(8, 77))
    let unresolved = capture.packets
    capture.server(line, refusal(8, 5))
    let ambiguous = capture.packets
    capture.finish(line, byServer: true)
    let report = try capture.inspected()
    // A shutdown rejects nobody.
    #expect(finding(.tokenFailedAgain, in: report)?.count == 1)
    #expect(finding(.tokenFailedAgain, in: report)?.firstPacket == answers[1])
    #expect(finding(.tokenNotOfGateway, in: report)?.count == 3)
    #expect(finding(.tokenNotOfGateway, in: report)?.firstPacket == answers[0])
    #expect(report.repeatedlyRejectedTokens.map(\.tokenPrefix) == ["0909090909090909"])
    #expect(report.repeatedlyRejectedTokens.map(\.rejections) == [2])
    #expect(finding(.unresolvedResponse, in: report)?.firstPacket == unresolved)
    #expect(finding(.ambiguousIdentifier, in: report)?.firstPacket == ambiguous)
    #expect(report.errorsByStatus == [8: 4, 10: 1])
  }

  // MARK: distributions

  /// The nearest-rank percentile by its definition: the smallest value that so large a share of values do not exceed.
  private func percentile(_ share: Double, of values: [Int]) -> Double {
    let sorted = values.sorted()
    return Double(sorted.first { value in Double(sorted.count { $0 <= value }) >= share * Double(sorted.count) }!)
  }

  @Test("Percentiles are those of the plain definition", arguments: UInt64(0)..<60)
  func percentiles(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let values = (0..<random.number(1...200)).map { _ in random.number(0...random.pick([3, 50, 4_000])) }
    var (counts, samples) = (Counts(highest: 4_096), Samples())
    for value in values {
      counts.add(value)
      samples.add(Double(value))
    }
    for distribution in [try #require(counts.distribution), try #require(samples.distribution)] {
      #expect(distribution.count == values.count)
      #expect(distribution.min == Double(values.min()!))
      #expect(distribution.max == Double(values.max()!))
      #expect(distribution.p50 == percentile(0.5, of: values))
      #expect(distribution.p95 == percentile(0.95, of: values))
      #expect(abs(distribution.mean - Double(values.reduce(0, +)) / Double(values.count)) < 1e-9)
    }
  }

  @Test("Values above the list are counted as what they are, also when they are merged")
  func largeValues() throws {
    let values = [100, 4_096, 65_535, 65_536, 1 << 20, 1 << 20, 1 << 20, 1 << 30]
    var counts = Counts(highest: 65_535)
    for value in values { counts.add(value) }
    var merged = Counts(highest: 65_535)
    merged.add(counts.values)
    for counts in [counts, merged] {
      let distribution = try #require(counts.distribution)
      #expect(distribution.p50 == 65_536 && distribution.p95 == Double(1 << 30) && distribution.max == Double(1 << 30))
      #expect(distribution.mean == Double(values.reduce(0, +)) / 8)
      #expect(counts.buckets.map(\.value) == [100, 4_096, 65_535, 65_536, 1 << 20, 1 << 30])
      #expect(counts.buckets.map(\.count) == [1, 1, 1, 1, 3, 1])
    }
  }

  @Test("The distinct large values that are kept are bounded, with errors below 0.2 % and an exact maximum")
  func manyLargeValues() throws {
    var counts = Counts(highest: 4_096)
    let values = Array(10_000..<10_000 + 2 * Counts.mostLarge) + [(1 << 40) - 1, Int.max >> 20]
    for value in values { counts.add(value) }
    let buckets = counts.buckets
    #expect(buckets.count < Counts.mostLarge + 1_000 && buckets.map(\.value) == buckets.map(\.value).sorted())
    #expect(buckets.reduce(0) { $0 + $1.count } == values.count && buckets.allSatisfy { $0.count > 0 })
    #expect(buckets.last == TraceReport.Bucket(Int.max >> 20, 1) && counts.values.sum == values.reduce(0, +))
    let distribution = try #require(counts.distribution)
    #expect(distribution.min == 10_000 && distribution.max == Double(Int.max >> 20))
    let exact = Double(values.sorted()[Int((0.95 * Double(values.count)).rounded(.up)) - 1])
    #expect(distribution.p95 <= exact && distribution.p95 > exact * 0.998)
  }

  @Test("Segments and seconds are counted where notifications end") func distributions() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    let note = push(1, device: 1)
    // Three in one segment, then one and a half, then the other half; two seconds later one more.
    capture.client(line, note + note + note)
    capture.client(line, note + note.prefix(20))
    capture.client(line, Array(note.dropFirst(20)))
    capture.milliseconds += 2_000
    capture.client(line, note)
    capture.finish(line)
    let report = try capture.inspected()
    let segments = try #require(report.notificationsPerSegment)
    #expect((segments.count, segments.min, segments.max, segments.p50) == (4, 1, 3, 1))
    let seconds = try #require(report.notificationsPerSecond)
    #expect((seconds.count, seconds.min, seconds.max) == (2, 1, 5))
  }

  @Test("A single notification without a proven fate is a finding, and none is none") func unknownFate() throws {
    for count in 0...2 as ClosedRange<UInt32> {
      var capture = CaptureBuilder()
      let line = capture.connect()
      for number in 0..<count { capture.client(line, push(number + 1, device: 7)) }
      capture.finish(line)
      let finding = try capture.inspected().findings.first { $0.kind == .unknownFate }
      #expect(finding?.count ?? 0 == Int(count))
    }
  }

  @Test("Other protocols on one port are listed by their names") func protocolNames() throws {
    let greetings = ["SSH-2.0-OpenSSH_9.2\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"]
    var texts: [[String]] = []
    for order in [greetings, greetings.reversed()] {
      var capture = CaptureBuilder()
      for (number, greeting) in order.enumerated() {
        let line = capture.connect(from: UInt16(40_001 + number), to: 2195)
        capture.client(line, Array(greeting.utf8))
        capture.finish(line)
      }
      texts.append(try capture.inspected().findings.filter { $0.kind == .otherProtocol }.map(\.text))
    }
    #expect(texts[0].count == 2 && texts[0] == texts[1], "\(texts)")
    #expect(texts[0].first?.contains("HTTP") == true, "\(texts)")
  }
}
