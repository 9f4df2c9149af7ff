import BinaryProtocol
import Bytes
import PacketCapture
import TestSupport
import Testing

@testable import Dissection

/// The memory of what all connections have begun and not finished.
@Suite("Unfinished frames have one limit, of all connections together")
struct MemoryLimitTests {
  private static func options(memory: Int) -> DissectionOptions {
    var options = DissectionOptions()
    (options.maximumMemory, options.capture.blockLength) = (memory, 4_000)
    return options
  }

  /// Of a frame of 100,000 bytes all but the last, in pieces.
  private static let begun: [[UInt8]] = {
    let frame: [UInt8] = [2, 0, 1, 0x86, 0xa0, 2, 0xff, 0xff] + Array(repeating: 0, count: 40_000)
    return stride(from: 0, to: frame.count, by: 1_000).map { Array(frame[$0..<min($0 + 1_000, frame.count)]) }
  }()

  @Test("The oldest are given up, with a gap and the name of the limit, and what is whole is not touched")
  func oldest() throws {
    var capture = CaptureBuilder()
    let honest = capture.connect(from: 39_999)
    for number in 0..<10 { capture.client(honest, push(UInt32(number + 1), device: 1)) }
    // The beginning of one more, which is small and may stay.
    let late = push(11, device: 1)
    capture.client(honest, Array(late[..<20]))
    for number in 0..<30 {
      let line = capture.connect(from: UInt16(40_001 + number))
      for piece in Self.begun { capture.client(line, piece) }
    }
    capture.client(honest, Array(late[20...]))
    capture.finish(honest)
    let free = try capture.dissected(Self.options(memory: 64 << 20))
    #expect(free.connections.allSatisfy { $0.limits.isEmpty } && !free.gaps.contains { $0.reason == .givenUp })
    let tight = try capture.dissected(Self.options(memory: 400_000))
    #expect(
      tight.notifications.count == 11 && tight.notifications.map(\.identifier) == free.notifications.map(\.identifier))
    let hit = tight.connections.filter { $0.limits == [.memory] }.map(\.connection).sorted()
    // The first ones, without a hole, and not the last.
    #expect(hit == Array(2..<(2 + hit.count)) && (15..<30).contains(hit.count), "\(hit)")
    for gap in tight.gaps where gap.reason == .givenUp {
      #expect(hit.contains(gap.place.connection) && gap.place.length <= 40_008 && gap.direction == .client)
    }
    #expect(Set(tight.gaps.filter { $0.reason == .givenUp }.map(\.place.connection)) == Set(hit))
  }

  @Test("A connection that gave up a frame is read on behind it")
  func goesOn() throws {
    var capture = CaptureBuilder()
    let line = capture.connect(from: 40_001)
    capture.client(line, push(1, device: 1))
    // A frame of 60,000 bytes: other connections' frames fill the memory before it is whole.
    let long = push(2, device: 1, String(repeating: "x", count: 60_000))
    capture.client(line, Array(long[..<50_000]))
    for number in 0..<20 {
      let other = capture.connect(from: UInt16(41_001 + number))
      for piece in Self.begun { capture.client(other, piece) }
    }
    capture.client(line, Array(long[50_000...]))
    for number in 3..<10 { capture.client(line, push(UInt32(number), device: 1)) }
    capture.server(line, refusal(8, 5))
    capture.finish(line)
    let tight = try capture.dissected(Self.options(memory: 300_000))
    let own = tight.notifications.filter { $0.connection == 1 }
    #expect(own.map(\.identifier) == [1, 3, 4, 5, 6, 7, 8, 9])
    let record = try #require(tight.connections.first { $0.connection == 1 })
    #expect(record.limits == [.memory] && record.fates.rejected == 1)
    let gaps = tight.gaps.filter { $0.place.connection == 1 }
    #expect(gaps.allSatisfy { $0.reason == .givenUp } && gaps.reduce(0) { $0 + $1.place.length } == long.count)
  }

  @Test("Handshakes whose keys are not known count against the limit")
  func handshakes() throws {
    var capture = CaptureBuilder()
    // A ClientHello with a session ticket of 6,000 bytes: type | length u24 | version | random | session | suites | no
    // compression | extensions.
    let ticket: [UInt8] = [0, 35, 0x17, 0x70] + Array(repeating: 7, count: 6_000)
    let body: [UInt8] =
      [3, 3] + Array(repeating: 1, count: 32) + [0, 0, 2, 0xc0, 0x2f, 1, 0, 0x17, 0x74] + ticket
    let message: [UInt8] = [1, 0, UInt8(body.count >> 8), UInt8(body.count & 0xff)] + body
    let record: [UInt8] = [22, 3, 1, UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message
    for number in 0..<100 {
      let line = capture.connect(from: UInt16(40_001 + number))
      for start in stride(from: 0, to: record.count, by: 1_400) {
        capture.client(line, Array(record[start..<min(start + 1_400, record.count)]))
      }
    }
    let free = try capture.dissected(Self.options(memory: 64 << 20))
    #expect(free.connections.allSatisfy { $0.limits.isEmpty && $0.tls != nil })
    let tight = try capture.dissected(Self.options(memory: 200_000))
    #expect(tight.connections.count { $0.limits == [.memory] } > 70)
  }

  @Test("Undecided connections and feedback count against the limit")
  func others() throws {
    var capture = CaptureBuilder()
    for number in 0..<200 {
      // On a port that says nothing, byte by byte.
      let line = capture.connect(from: UInt16(40_001 + number), to: 9_999)
      for byte in [2, 0, 0, 16, 0, 1, 0, 32] + [UInt8](repeating: 9, count: 22) { capture.client(line, [byte]) }
      let feedback = capture.connect(from: UInt16(50_001 + number), to: 2_196)
      capture.server(feedback, [1, 2, 3, 4, 0, 32] + Array(repeating: 7, count: 20))
    }
    let tight = try capture.dissected(Self.options(memory: 20_000))
    #expect(tight.connections.count { $0.limits == [.memory] } > 150)
  }
}
