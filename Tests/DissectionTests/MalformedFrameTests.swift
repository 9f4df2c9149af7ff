import BinaryProtocol
import Bytes
import Measurement
import TestSupport
import Testing

@testable import Dissection
@testable import Records

/// Frames whose own length is right and whose items are not, and what a gateway reads at the beginning of a connection.
@Suite("Frames whose items do not fit")
struct MalformedFrameTests {
  /// An item of a command-2 frame; `length` is what it claims.
  private func item(_ id: UInt8, _ data: [UInt8], length: Int? = nil) -> [UInt8] {
    let length = length ?? data.count
    return [id, UInt8(length >> 8), UInt8(length & 0xff)] + data
  }

  private func frame(_ items: [UInt8]...) -> [UInt8] {
    let body = items.flatMap { $0 }
    return [2] + number(UInt32(body.count)) + body
  }

  private func number(_ value: UInt32) -> [UInt8] { written { $0.write(bigEndian: value) } }

  private func token(_ device: UInt8) -> [UInt8] { [UInt8](repeating: device, count: 32) }
  private let payload = Array(#"{"aps":{"alert":"hi"}}"#.utf8)

  private func good(_ identifier: UInt32) -> [UInt8] {
    frame(item(1, token(UInt8(identifier + 1))), item(2, payload), item(3, number(identifier)))
  }

  /// As go-libapns 3.0.0 writes every notification that has a priority: one byte of it, and a length of four.
  private func longPriority(_ identifier: UInt32) -> [UInt8] {
    frame(
      item(1, token(UInt8(identifier + 1))), item(2, payload), item(3, number(identifier)),
      item(4, number(2_000_000_000)), item(5, [10], length: 4))
  }

  /// As rpush writes a token that is one byte short: nothing behind it can be read.
  private func shortToken(_ identifier: UInt32) -> [UInt8] {
    frame(item(1, Array(token(1).dropLast()), length: 32), item(2, payload), item(3, number(identifier)))
  }

  /// 21 notifications of which the eleventh does not fit, and the gateway's answer.
  private func capture(_ misfit: [UInt8], answer: [UInt8]) -> CaptureBuilder {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for identifier in 0..<21 as Range<UInt32> { capture.client(line, identifier == 10 ? misfit : good(identifier)) }
    capture.server(line, answer)
    capture.finish(line, byServer: true)
    return capture
  }

  @Test("A frame with an overrun keeps its place, its fields and its fate, and is named by its identifier")
  func named() throws {
    let seen = try capture(longPriority(10), answer: refusal(128, 10)).dissected()
    #expect(seen.notifications.map(\.index) == Array(0..<21))
    let misfit = seen.notifications[10]
    #expect(misfit.identifier == 10 && misfit.token == token(11) && misfit.payload == payload)
    #expect(misfit.expiration == 2_000_000_000 && misfit.priority == nil)
    #expect(misfit.problem?.contains("item 5 of length 4 overruns its frame") == true)
    #expect(seen.notifications.count { $0.problem != nil } == 1)
    #expect(seen.responses.map(\.notification) == [10])
    #expect(fates(of: seen.connections[0]) == [10, 1, 10, 0])
    #expect(seen.summaries[0].notifications == 21 && seen.summaries[0].malformed == 1)
    #expect(seen.summaries[0].isDamaged && seen.malformed.isEmpty)
  }

  @Test("Status 128 with identifier 0 names the first frame that does not fit, and not the notification 0")
  func nameless() throws {
    let seen = try capture(shortToken(10), answer: refusal(128, 0)).dissected()
    #expect(seen.notifications.count == 21)
    #expect(seen.notifications[10].identifier == nil)
    #expect(seen.responses.map(\.notification) == [10])
    #expect(fates(of: seen.connections[0]) == [10, 1, 10, 0])
  }

  @Test("Every notification of a client that writes all of them so is there, with a finding")
  func all() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for identifier in 1...40 as ClosedRange<UInt32> { capture.client(line, longPriority(identifier)) }
    capture.server(line, refusal(128, 1))
    capture.finish(line, byServer: true)
    let seen = try capture.dissected()
    #expect(seen.notifications.compactMap(\.identifier) == Array(1...40))
    #expect(fates(of: seen.connections[0]) == [0, 1, 39, 0])
    let report = try capture.inspected()
    #expect(report.summary.notifications == 40 && report.malformed == 40)
    let kinds = report.findings.map(\.kind)
    #expect(kinds.contains(.malformedItems) && !kinds.contains(.malformed))
    #expect(!kinds.contains(.unresolvedResponse) && !kinds.contains(.unknownFate))
  }

  @Test("JSON Lines and CSV show what could be read, and the problem")
  func output() throws {
    let bytes = capture(longPriority(10), answer: refusal(128, 10)).bytes
    var lines = ""
    try withTemporaryFile(bytes) { path in
      let writer = JSONLinesWriter {
        lines += String(decoding: Array(copying: $0), as: UTF8.self)
        return true
      }
      let shared = SharedSink(writer)
      var dissection = Dissection(into: shared, options: DissectionOptions())
      _ = try dissection.read(try .open(path, options: DissectionOptions().capture), source: path) { _ in true }
      dissection.finish()
      shared.sink.flush()
    }
    let misfit = try #require(lines.split(separator: "\n").first { $0.contains(#""problem""#) })
    #expect(misfit.contains(#""identifier":10,"expiration":2000000000,"token":"0b0b"#))
    #expect(misfit.hasSuffix(#""problem":"item 5 of length 4 overruns its frame at offset 79"}"#), "\(misfit)")
  }

  @Test("A finding tells an ending without an error response from one whose response names none")
  func withoutResponse() throws {
    for (answer, kind) in [([], .unknownFate), (refusal(8, 77), .unknownFateAfterResponse)] as [([UInt8], FindingKind)]
    {
      var capture = CaptureBuilder()
      let line = capture.connect()
      for identifier in 1...5 as ClosedRange<UInt32> { capture.client(line, good(identifier)) }
      if !answer.isEmpty { capture.server(line, answer) }
      capture.finish(line, byServer: true)
      let kinds = try capture.inspected().findings.map(\.kind).filter { $0.rawValue.hasPrefix("unknown_fate") }
      #expect(kinds == [kind])
    }
  }

  @Test("Identifier 0 that may mean none settles nothing, is marked, and is a finding")
  func ambiguous() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for identifier in 0..<20 as Range<UInt32> { capture.client(line, good(identifier)) }
    capture.server(line, refusal(8, 0))
    capture.finish(line, byServer: true)
    let seen = try capture.dissected()
    #expect(seen.responses.map(\.isAmbiguous) == [true])
    #expect(seen.responses[0].notification == nil && seen.responses[0].accepted == nil)
    #expect(fates(of: seen.connections[0]) == [0, 0, 0, 20])
    #expect(try capture.inspected().findings.map(\.kind).contains(.ambiguousZero))
  }

  @Test("Status 128 with identifier 0 after bytes that are no frame names nothing", arguments: [1, 20] as [UInt32])
  func unreadable(count: UInt32) throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for identifier in 0..<count { capture.client(line, good(identifier)) }
    capture.client(line, [7, 7, 7])
    capture.server(line, refusal(128, 0))
    capture.finish(line, byServer: true)
    let seen = try capture.dissected()
    #expect(seen.responses.map(\.notification) == [nil])
    #expect(fates(of: seen.connections[0]) == [0, 0, 0, Int(count)])
  }

  @Test("Frames without a token that can be read are neither known-bad ones nor each other")
  func notKnownBad() throws {
    var capture = CaptureBuilder()
    for port in [40_001, 40_002] as [UInt16] {
      let line = capture.connect(from: port)
      for identifier in 1...5 as ClosedRange<UInt32> {
        capture.client(line, frame(item(3, number(identifier)), item(1, token(1), length: 99)))
      }
      capture.server(line, refusal(128, 1))
      capture.finish(line, byServer: true)
    }
    let kinds = Set(try capture.inspected().findings.map(\.kind))
    #expect(kinds.contains(.malformedItems))
    #expect(kinds.isDisjoint(with: [.knownBad, .resent, .unusualTokenLength, .tokenFailedAgain]), "\(kinds)")
  }

  @Test(
    "A recording of nothing else is written in pieces, and its end is told when nobody reads", arguments: [false, true])
  func pieces(csv: Bool) throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for identifier in 1...2_000 as ClosedRange<UInt32> { capture.client(line, longPriority(identifier % 200)) }
    capture.finish(line)
    var largest = 0
    let output: RecordOutput = { bytes in
      largest = max(largest, bytes.byteCount)
      return true
    }
    func write(_ sink: some RecordSink) throws {
      try withTemporaryFile(capture.bytes) { path in
        let shared = SharedSink(sink)
        var dissection = Dissection(into: shared, options: DissectionOptions())
        _ = try dissection.read(try .open(path, options: DissectionOptions().capture), source: path) { _ in true }
        dissection.finish()
      }
    }
    if csv { try write(CSVWriter(output: output)) } else { try write(JSONLinesWriter(output: output)) }
    #expect(largest > 0 && largest < 1 << 18, "\(largest)")
  }

  // MARK: a captured beginning

  @Test("At a captured beginning a frame is what its lengths say, as it is for the gateway")
  func beginning() throws {
    // A payload length of three bytes, as rapns wrote it in 2011: to a gateway this is an empty payload.
    let notification = [1] + number(1_234) + number(86_400) + [0, 32] + [UInt8](repeating: 0xaa, count: 32)
    let bytes = notification + [0, 0, 0x61] + Array(#"{"aps":{"alert":"hello"}}"#.utf8)
    for pieces in [1, 7, bytes.count] {
      var capture = CaptureBuilder()
      let line = capture.connect()
      for start in stride(from: 0, to: bytes.count, by: pieces) {
        capture.client(line, Array(bytes[start..<min(start + pieces, bytes.count)]))
      }
      capture.finish(line)
      let seen = try capture.dissected()
      #expect(seen.notifications.map(\.length) == [45])
      #expect(seen.notifications.first?.identifier == 1_234 && seen.notifications.first?.payload == [])
      #expect(seen.malformed.map(\.place.offset) == [45])
      #expect(seen.malformed.first?.place.length == bytes.count - 45)
    }
  }
}
