import BinaryProtocol
import PacketCapture
import TestSupport
import Testing

@testable import Records

/// Accepted, rejected, discarded, unknown.
func fates(of record: ConnectionRecord) -> [Int] {
  [record.fates.accepted, record.fates.rejected, record.fates.discarded, record.fates.unknown]
}

/// What became of a connection's notifications.
@Suite("Fates")
struct FateTests {
  @Test("A late error names one, accepts all before and discards all after it, those written later too")
  func lateError() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for index in 0..<20 { capture.client(line, push(UInt32(index), device: UInt8(index))) }
    capture.milliseconds += 300
    capture.server(line, refusal(8, 4))
    // Two were on their way when the response was.
    for index in 20..<22 { capture.client(line, push(UInt32(index), device: UInt8(index))) }
    capture.finish(line, byServer: true)
    let seen = try capture.dissected()
    let response = try #require(seen.responses.first)
    #expect(response.notification == 4)
    #expect(response.accepted == 4)
    #expect(response.discarded == 17)
    // Fifteen more notifications and the response, a millisecond each, and 300 ms.
    #expect(response.latencyNanoseconds == 316_000_000)
    #expect(response.place.packet == 24)
    #expect(seen.early.first?.discarded == 15)
    #expect(fates(of: seen.connections[0]) == [4, 1, 17, 0])
    #expect(seen.connections[0].end == .serverFIN)
  }

  @Test("Shutdown names the last accepted one: nothing is rejected") func shutdown() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for index in 0..<6 { capture.client(line, push(UInt32(index + 1), device: 1)) }
    capture.server(line, refusal(10, 3))
    capture.finish(line, byServer: true)
    let seen = try capture.dissected()
    #expect(seen.responses[0].notification == 2)
    #expect(seen.responses[0].accepted == 3)
    #expect(seen.responses[0].discarded == 3)
    #expect(fates(of: seen.connections[0]) == [3, 0, 3, 0])
  }

  @Test("An identifier that was not seen settles nothing") func unknownIdentifier() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for index in 0..<3 { capture.client(line, push(UInt32(index + 1), device: 1)) }
    capture.server(line, refusal(8, 77))
    capture.finish(line, byServer: true)
    let seen = try capture.dissected()
    #expect(seen.responses.count == 1)
    #expect(seen.responses[0].notification == nil)
    #expect(seen.responses[0].accepted == nil)
    #expect(seen.responses[0].discarded == nil)
    #expect(seen.responses[0].latencyNanoseconds == nil)
    #expect(fates(of: seen.connections[0]) == [0, 0, 0, 3])
  }

  @Test("An identifier used twice names its latest use, and the response says that it was a choice")
  func twice() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for identifier: UInt32 in [1, 2, 3, 1, 2, 3] { capture.client(line, push(identifier, device: 1)) }
    capture.server(line, refusal(8, 2))
    capture.finish(line, byServer: true)
    let seen = try capture.dissected()
    #expect(seen.responses[0].notification == 4)
    #expect(seen.responses[0].candidates == 2)
    #expect(fates(of: seen.connections[0]) == [4, 1, 1, 0])
  }

  @Test("A known-bad frame that is answered proves all before it, even when the answer's identifier is 0")
  func knownBad() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for device in 1...4 as ClosedRange<UInt8> { capture.client(line, plainFrame(device: device)) }
    capture.client(
      line, written { BinaryFrame.encodeFramed(items: [FrameItem(id: .deviceToken, data: [])], into: &$0) })
    capture.server(line, refusal(2, 0))
    capture.finish(line, byServer: true)
    let seen = try capture.dissected()
    #expect(seen.responses[0].notification == 4)
    #expect(fates(of: seen.connections[0]) == [4, 1, 0, 0])
  }

  @Test("A connection that just ends leaves everything open") func silence() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, push(1, device: 1) + push(2, device: 2))
    capture.reset(line, byServer: true)
    let seen = try capture.dissected()
    #expect(fates(of: seen.connections[0]) == [0, 0, 0, 2])
    #expect(seen.connections[0].end == .serverRST)
  }

  @Test("A response that comes after the client's FIN still counts") func afterFIN() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, push(1, device: 1) + push(2, device: 2) + push(3, device: 3))
    capture.halfClose(line)
    capture.server(line, refusal(8, 2))
    capture.halfClose(line, byServer: true)
    let seen = try capture.dissected()
    #expect(fates(of: seen.connections[0]) == [1, 1, 1, 0])
    #expect(seen.connections[0].end == .clientFIN)
  }

  @Test("A response cut into single bytes has the time of its last") func responseInPieces() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, push(9, device: 1))
    for byte in refusal(8, 9) { capture.server(line, [byte]) }
    capture.finish(line, byServer: true)
    let seen = try capture.dissected()
    #expect(seen.responses.map(\.place.packet) == [10])
    #expect(seen.responses[0].latencyNanoseconds == 6_000_000)
  }

  @Test("A response finds what it names although missing bytes held the notifications back") func heldBack() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.lose(line, 50)
    capture.client(line, push(1, device: 1) + push(2, device: 2) + push(3, device: 3))
    capture.server(line, refusal(8, 2))
    // Written afterwards, so it is not what the response of identifier 4 names.
    capture.server(line, refusal(8, 4))
    capture.client(line, push(4, device: 4))
    capture.finish(line, byServer: true)
    let seen = try capture.dissected()
    #expect(seen.gaps.map(\.place.length) == [50])
    #expect(seen.responses.map(\.notification) == [1, nil])
    #expect(seen.responses[0].latencyNanoseconds == 1_000_000)
    #expect(fates(of: seen.connections[0]) == [1, 1, 2, 0])
    // Each response is announced once, as it was finally understood.
    #expect(seen.early.map(\.notification) == [1, nil])
  }

  @Test("All that one packet brings after damage is written before the response in the next")
  func afterDamage() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, push(1, device: 1))
    let garbage = [UInt8](repeating: 0xff, count: 9)
    capture.client(line, garbage + push(2, device: 2) + push(3, device: 3) + push(4, device: 4))
    capture.server(line, refusal(8, 3))
    capture.finish(line, byServer: true)
    let seen = try capture.dissected()
    #expect(seen.early.map(\.notification) == [2])
    #expect(seen.responses[0].latencyNanoseconds == 1_000_000)
    #expect(fates(of: seen.connections[0]) == [2, 1, 1, 0])
  }
}
