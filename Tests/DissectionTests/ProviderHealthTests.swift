import BinaryProtocol
import Measurement
import PacketCapture
import TLSDecryption
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

/// Findings about how providers treat connections, certificates and the feedback service: each beside a recording that
/// nearly has it.
@Suite("Provider health")
struct ProviderHealthTests {
  private func count(_ kind: FindingKind, _ capture: CaptureBuilder) throws -> Int? {
    try capture.inspected().findings.first { $0.kind == kind }?.count
  }

  private static let hour = 3_600_000

  @Test(
    "Connections of one notification each are found when there are many, and most",
    arguments: [(10, 0, 10), (9, 0, nil), (11, 9, 11), (10, 10, nil), (10, 11, nil)] as [(Int, Int, Int?)])
  func oneNotification(single: Int, several: Int, expected: Int?) throws {
    var capture = CaptureBuilder()
    for number in 0..<single + several {
      let line = capture.connect(from: UInt16(40_001 + number))
      capture.client(line, push(UInt32(number), device: 1, "text \(number)"))
      if number >= single { capture.client(line, push(UInt32(number), device: 1, "more \(number)")) }
      capture.finish(line)
    }
    // A connection without any does not count.
    capture.finish(capture.connect(from: 50_000))
    #expect(try count(.oneNotificationConnections, capture) == expected)
  }

  @Test(
    "Status 8 for most tokens of a provider is found",
    arguments: [(3, 0, 3), (2, 0, nil), (4, 3, 4), (4, 4, nil), (30, 60, nil)] as [(Int, Int, Int?)])
  func otherEnvironment(rejected: Int, accepted: Int, expected: Int?) throws {
    var capture = CaptureBuilder()
    // Those that are accepted come before the first that is not.
    for number in 0..<rejected {
      let line = capture.connect(from: UInt16(40_001 + number))
      let before = number == 0 ? accepted : 0
      for index in 0..<before { capture.client(line, push(UInt32(index), device: UInt8(index), "good")) }
      capture.client(line, push(1_000, device: 200, "bad \(number)"))
      capture.server(line, refusal(8, 1_000))
      capture.finish(line, byServer: true)
    }
    #expect(try count(.tokensOfOtherEnvironment, capture) == expected)
  }

  @Test("Another provider's accepted notifications do not hide tokens of the other environment") func providers() throws
  {
    var capture = CaptureBuilder()
    for number in 0..<3 as Range<UInt16> {
      let line = capture.connect(from: 40_001 + number)
      capture.client(line, push(1, device: UInt8(number)))
      capture.server(line, refusal(8, 1))
      capture.finish(line, byServer: true)
    }
    let good = capture.connect(from: 41_000, of: 6)
    for number in 0..<50 as Range<UInt32> { capture.client(good, push(number, device: UInt8(number), "good")) }
    capture.server(good, refusal(10, 49))
    capture.finish(good, byServer: true)
    #expect(try count(.tokensOfOtherEnvironment, capture) == 3)
  }

  private func feedback(_ capture: inout CaptureBuilder, port: UInt16, device: UInt8) {
    let line = capture.connect(from: port, to: 2196)
    let token = [UInt8](repeating: device, count: 32)
    capture.server(line, written { FeedbackTuple(timestamp: 1_449_000_000, token: token.rawBytes).encode(into: &$0) })
    capture.finish(line, byServer: true)
  }

  @Test("Notifications to tokens that feedback had listed are counted, from then on") func afterFeedback() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, push(1, device: 7))
    feedback(&capture, port: 40_100, device: 7)
    capture.client(line, push(2, device: 7, "again") + push(3, device: 8))
    let packet = capture.packets
    capture.client(line, push(4, device: 7, "and again"))
    let finding = try capture.inspected().findings.first { $0.kind == .sentAfterFeedback }
    #expect(finding?.count == 2 && finding?.firstPacket == packet)
  }

  @Test(
    "A day without feedback is found, between notifications only",
    arguments: [
      ([0, 25], [], 25), ([0, 23], [], nil), ([0, 30], [15], nil), ([0, 40], [4], 36), ([0, 1], [40], nil),
    ]
      as [([Int], [Int], Int?)])
  func feedbackNotRead(sent: [Int], read: [Int], expected: Int?) throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    let start = capture.milliseconds
    for hour in (sent + read).sorted() {
      capture.milliseconds = start + hour * Self.hour
      if sent.contains(hour) { capture.client(line, push(UInt32(hour), device: 1, "at \(hour)")) }
      if read.contains(hour) { feedback(&capture, port: UInt16(41_000 + hour), device: 9) }
    }
    #expect(try count(.feedbackNotRead, capture) == expected)
  }

  // MARK: certificates

  private func report(_ change: (inout TLSSummary) -> Void) -> InspectionReport {
    var inspection = Inspection()
    let opened = Timestamp(unixSeconds: 1_450_000_000)
    inspection.opened(connection: 1, at: opened)
    var tls = TLSSummary()
    tls.isDecrypted = false
    tls.isWhole = false
    change(&tls)
    inspection.receive(
      ConnectionRecord(
        connection: 1, file: nil, flow: nil, service: .gateway, otherProtocol: nil, client: nil, server: nil,
        opened: opened, closed: opened, end: .serverFIN, tls: tls, clientBytes: 0, serverBytes: 0, missingBytes: 0,
        notifications: 0, errorResponses: 0, feedbackTuples: 0, fates: .init(), conflictingBytes: 0, limits: []))
    return inspection.finish()
  }

  @Test(
    "Alerts about certificates are found",
    arguments: [
      ("certificate_expired from the server", .certificateExpired),
      ("certificate_revoked from the client", .certificateRevoked), ("unknown_ca from the client", .unknownCA),
      ("bad_record_mac from the server", nil), ("certificate_unknown from the server", nil),
    ] as [(String, FindingKind?)])
  func alerts(alert: String, expected: FindingKind?) {
    let kinds = Set(report { $0.alert = alert }.findings.map(\.kind))
    let all: Set<FindingKind> = [.certificateExpired, .certificateRevoked, .unknownCA]
    #expect(kinds.intersection(all) == Set([expected].compactMap { $0 }))
  }

  @Test(
    "A certificate that ends within 30 days of its use is found", arguments: [(29, true), (31, false), (-400, true)])
  func certificateEnd(days: Int, isFound: Bool) {
    let report = report { $0.certificateEnds = 1_450_000_000 + days * 86_400 }
    #expect(report.findings.contains { $0.kind == .certificateEndsSoon } == isFound)
    #expect(report.connections.first?.tls?.certificateEnds?.hasPrefix("201") == true)
  }

  @Test("A refused certificate is found in a capture without keys") func refused() throws {
    let path = Folder.traces.appending(path: "tls-refused-certificate.pcap").path
    let shared = SharedSink(Inspection())
    var dissection = Dissection(into: shared, options: DissectionOptions())
    _ = try dissection.read(try CaptureInput.open(path, options: CaptureOptions()), source: path) { _ in true }
    dissection.finish()
    let report = shared.sink.finish()
    let counts = Dictionary(report.findings.map { ($0.kind, $0.count) }, uniquingKeysWith: +)
    #expect(counts[.unknownCA] == 2 && counts[.certificateEndsSoon] == 2 && counts[.certificateExpired] == nil)
    #expect(report.connections.map(\.tls?.environment) == [.production, .production])
    // As `openssl x509 -enddate` says.
    #expect(report.connections.allSatisfy { $0.tls?.certificateEnds?.hasPrefix("2026-12-03T18:32:46") == true })
  }

  @Test("The end of time is a time", arguments: [Int.max, 253_402_300_799, 0, -1]) func certificateEnds(seconds: Int) {
    let report = report { $0.certificateEnds = seconds }
    #expect(report.connections.first?.tls?.certificateEnds != nil)
  }

  @Test("A certificate's environment is that of its extensions")
  func environment() {
    func environment(_ sandbox: Bool, _ production: Bool) -> ProviderEnvironment? {
      report { ($0.isForSandbox, $0.isForProduction) = (sandbox, production) }.connections.first?.tls?.environment
    }
    #expect(environment(true, false) == .sandbox && environment(false, true) == .production)
    #expect(environment(true, true) == .both && environment(false, false) == nil)
  }
}
