import BinaryProtocol
import Bytes
import Foundation
import Measurement
import PacketCapture
import Payload
import PushModel
import TestSupport
import Testing

@testable import Analysis
@testable import Records

@Suite("Payloads of a recording")
struct PayloadVerdictTests {
  /// A frame of command 2, with its fields.
  private func frame(
    _ payload: String, token: [UInt8] = (0..<32).map { $0 &* 37 | 0x80 }, expiration: UInt32? = nil,
    priority: UInt8? = 10
  ) -> [UInt8] {
    func item(_ id: UInt8, _ data: [UInt8]) -> [UInt8] {
      [id, UInt8(data.count >> 8), UInt8(data.count & 0xff)] + data
    }
    var items = item(1, token) + item(2, Array(payload.utf8)) + item(3, [0, 0, 0, 1])
    if let expiration { items += item(4, written { $0.write(bigEndian: expiration) }) }
    if let priority { items += item(5, [priority]) }
    return [2] + written { $0.write(bigEndian: UInt32(items.count)) } + items
  }

  /// 1 July of a year, 00:00 UTC, in seconds since 1970.
  private func july(_ year: Int) -> Int64 {
    let around = SendingYear.around(second: (Int64(year - 1970) * 365 + 180) * 86_400)
    return around.range.lowerBound / 1_000_000_000 + (year % 4 == 0 ? 182 : 181) * 86_400
  }

  private func verdict(
    _ verdicts: inout PayloadVerdicts, _ frame: [UInt8], connection: Int = 1, at second: Int64? = nil, packet: Int = 1
  ) throws -> PayloadVerdict {
    let time = second.map { Timestamp(nanoseconds: $0 * 1_000_000_000) } ?? .none
    return verdicts.verdict(
      try PushFields(parsing: frame.rawBytes), frame.rawBytes,
      RecordPlace(connection: connection, time: time, packet: packet, offset: 0, length: frame.count))
  }

  @Test("Years begin and end at midnight of 1 January, and the first era is 2009")
  func years() {
    #expect(july(2015) == 1_435_708_800 && july(2012) == 1_341_100_800)
    for (second, year) in [
      (1_230_767_999, nil), (1_230_768_000, 2009), (1_388_534_399, 2013), (1_388_534_400, 2014), (0, nil), (-1, nil),
      (4_102_444_800, 2100),
    ] as [(Int64, Int?)] {
      let around = SendingYear.around(nanoseconds: second * 1_000_000_000)
      #expect(around.year == year && around.range.contains(second * 1_000_000_000), "\(second)")
    }
  }

  @Test("A payload that comes again is not judged again, until more are kept than the limit allows")
  func once() throws {
    var judging = PayloadJudging()
    judging.maximumKept = 700
    var verdicts = PayloadVerdicts(judging)
    for _ in 0..<3 {
      for number in 0..<700 { _ = try verdict(&verdicts, frame(#"{"aps":{"alert":"\#(number)","badge":1}}"#)) }
    }
    #expect(verdicts.judged == 700)
    // One more: all are forgotten, and what was counted stays.
    _ = try verdict(&verdicts, frame(#"{"aps":{"alert":"x","badge":1}}"#))
    _ = try verdict(&verdicts, frame(#"{"aps":{"alert":"0","badge":1}}"#))
    #expect(verdicts.judged == 702)
    #expect(verdicts.counted.kinds == [.alert: 2_102])
  }

  @Test("The same payload in another year, frame or topic is judged by those")
  func environments() throws {
    var verdicts = PayloadVerdicts()
    let silent = #"{"aps":{"content-available":1}}"#
    #expect(try verdict(&verdicts, frame(silent, priority: 10)).rules.codes == ["silent_priority_10"])
    #expect(try verdict(&verdicts, frame(silent, priority: 5)).rules.codes == [])
    #expect(try verdict(&verdicts, frame(silent, priority: nil)).rules.codes == ["silent_priority_implied"])
    #expect(try verdict(&verdicts, frame(silent, priority: 5), at: july(2012)).kind == .newsstand)
    #expect(try verdict(&verdicts, frame(silent, priority: 5), at: july(2013)).kind == .background)
    #expect(try verdict(&verdicts, frame(silent, priority: 5)).kind == .background)
    verdicts.note(subject: "UID=com.example.app.voip,CN=VoIP Services: com.example.app", of: 2)
    #expect(try verdict(&verdicts, frame(silent, priority: 10), connection: 2).kind == .voip)
    #expect(try verdict(&verdicts, frame(silent, priority: 10), connection: 1).kind == .background)
    verdicts.noteEnd(of: 2)
    #expect(try verdict(&verdicts, frame(silent, priority: 10), connection: 2).kind == .background)
  }

  @Test("What the frame says wrong is found on each notification, by when it was sent")
  func frames() throws {
    var verdicts = PayloadVerdicts()
    let text = #"{"aps":{"alert":"north","badge":1}}"#
    let sent = july(2015)
    func codes(_ expiration: Int64, at second: Int64?) throws -> [String] {
      try verdict(&verdicts, frame(text, expiration: UInt32(expiration)), at: second).rules.codes
    }
    #expect(try codes(sent + 1, at: sent) == [])
    #expect(try codes(sent, at: sent) == ["expiration_past"])
    #expect(try codes(sent, at: nil) == [])
    #expect(try codes(sent + 366 * 86_400, at: sent) == [])
    #expect(try codes(sent + 366 * 86_400 + 1, at: sent) == ["expiration_far"])
    #expect(try codes(0x7fff_ffff, at: nil) == ["expiration_far"])
    #expect(try codes(0xffff_ffff, at: nil) == ["expiration_far"])
    #expect(try codes(0, at: sent) == ["expiration_zero"])
    #expect(try codes(999_999_999, at: sent) == ["expiration_1970"])
    #expect(verdicts.judged == 2)
    func codes(_ token: [UInt8]) throws -> [String] { try verdict(&verdicts, frame(text, token: token)).rules.codes }
    #expect(try codes([UInt8](repeating: 0xaa, count: 32)) == ["token_constant"])
    #expect(try codes(Array("0123456789abcdef0123456789abcdef".utf8)) == ["token_hex_text"])
    #expect(try codes([1, 2, 3]) == ["token_length"])
    #expect(try codes([]) == ["token_length"])
    #expect(try codes((0..<32).map { $0 }) == [])
    let row = verdicts.counted[.expirationFar]
    #expect(row.count == 3 && row.packet == 1)
  }

  @Test("Every vector of a payload in a frame has its codes when it is read from a recording", arguments: [1, 3])
  func samples(rounds: Int) throws {
    for rule in PayloadRule.allCases {
      let push = FaultyPush(breaking: rule, number: 7)
      guard let sent = push.environment.frame, sent.command == 2, push.environment.strings == nil,
        push.sendings.isEmpty, sent.token == nil
      else { continue }
      var judging = PayloadJudging()
      judging.era = push.environment.era
      judging.topic = push.environment.topic
      var verdicts = PayloadVerdicts(judging)
      let bytes = frame(
        String(decoding: push.payload, as: UTF8.self), expiration: sent.expiration, priority: sent.priority)
      guard String(decoding: push.payload, as: UTF8.self).utf8.elementsEqual(push.payload) else { continue }
      for _ in 0..<rounds {
        let codes = try verdict(&verdicts, bytes, at: sent.sentAt).rules
        #expect(codes.contains(rule), "\(rule.code): \(codes.codes)")
      }
      #expect(verdicts.counted[rule].count == rounds)
    }
  }

  @Test("A fourth background push within an hour is one too many")
  func tooOften() throws {
    var pushes = BackgroundPushes(limit: 2)
    let (one, two, three) = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32), [UInt8(3)])
    func note(_ token: [UInt8], _ second: Int64, _ kind: PayloadKind = .background) -> Bool {
      pushes.note(token.rawBytes, at: Timestamp(nanoseconds: second * 1_000_000_000), kind: kind)
    }
    #expect([0, 1_000, 2_000, 3_600].map { note(one, $0) } == [false, false, false, false])
    #expect(note(one, 4_599))
    #expect(!note(two, 4_599))
    // Above the limit nothing is followed.
    #expect([0, 1, 2, 3, 4].allSatisfy { !note(three, $0) })
    #expect(!note(two, 91_000, .newsstand) && note(two, 177_399, .newsstand) && !note(two, 263_799, .newsstand))
  }

  @Test(
    "A certificate is presented before its notifications, also to a selection and from records",
    arguments: ["tls10.pcap", "tls13-loss.pcap", "tls-known-bad.pcapng", "plain-error.pcap"])
  func presented(trace: String) throws {
    let path = Folder.traces.appending(path: trace).path
    let whole = try dissect(path)
    var expected: [Int: String] = [:]
    for connection in whole.connections
    where whole.notifications.contains(where: { $0.connection == connection.connection }) {
      expected[connection.connection] = connection.tls?.clientSubject
    }
    #expect(expected.isEmpty == !trace.hasPrefix("tls"))
    #expect(whole.subjects == expected)
    var selection = RecordSelection()
    selection.types = [.notification]
    let collected = SharedSink(Collector())
    _ = try RecordSelectionTests.read(path, into: SelectedRecords(collected, selection))
    #expect(collected.sink.subjects == expected)
    var reader = RecordReader()
    var records = Collector()
    let lines = try String(contentsOf: Folder.traces.appending(path: trace + ".jsonl"), encoding: .utf8)
      .split(separator: "\n").map { Array($0.utf8) }
    for line in lines { reader.scan(line.rawBytes) }
    for line in lines { try reader.read(line.rawBytes, into: &records) }
    #expect(expected.allSatisfy { records.subjects[$0.key] == $0.value })
  }

  @Test("A background push that is sent again after a loss is not another push", arguments: [false, true])
  func resent(isLost: Bool) throws {
    let silent = #"{"aps":{"content-available":1}}"#
    var capture = CaptureBuilder()
    let first = capture.connect(from: 40_001)
    // The error response names the first notification, whose identifier nobody else has.
    capture.client(first, push(99, device: 9))
    for _ in 0..<3 { capture.client(first, frame(silent, priority: 5)) }
    if isLost { capture.server(first, refusal(8, 99)) }
    capture.finish(first, byServer: true)
    let second = capture.connect(from: 40_002)
    for _ in 0..<3 { capture.client(second, frame(silent, priority: 5)) }
    capture.finish(second)
    let findings = try #require(try capture.inspected().payloads).findings
    #expect(findings.first { $0.code == "background_too_often" }?.count == (isLost ? nil : 3))
  }

  @Test("An inspection counts kinds and rules, with the first packet and an example")
  func inspection() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, push(1, device: 1))
    capture.client(line, frame("{\"aps\":{\"alert\":\"a\",}}"))
    let first = capture.packets
    capture.client(line, frame("{\"aps\":{\"alert\":\"b\",}}"))
    for _ in 0..<5 { capture.client(line, frame(#"{"aps":{"content-available":1}}"#, priority: 5)) }
    capture.finish(line)
    let payloads = try #require(try capture.inspected().payloads)
    #expect(payloads.kinds.map(\.kind).first == "background" && payloads.kinds.map(\.count).reduce(0, +) == 8)
    let comma = try #require(payloads.findings.first { $0.code == "json_trailing_comma" })
    #expect(comma.count == 2 && comma.firstPacket == first && comma.severity == "error")
    #expect(comma.example?.text == "{\"aps\":{\"alert\":\"a\",}}")
    #expect(comma.example?.line == 1 && comma.example?.column == 20)
    #expect(payloads.findings.first { $0.code == "background_too_often" }?.count == 2)
    #expect(payloads.findings.first?.severity == "error")
  }
}
