import Bytes
import Foundation
import Glibc
import Testing

@testable import PacketCapture

/// Where no packet tells how late it is, the reader's clock does.
@Suite("An input that stays open and falls silent")
struct SilenceTests {
  private static let start = ContinuousClock.now
  private static func after(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

  private func expect(_ talk: inout Conversation, isDueLater expected: Bool, at seconds: Double) {
    let isDue = talk.advance(to: Self.after(seconds))
    #expect(isDue == expected, "after \(seconds) s")
  }

  @Test("A reset connection is closed after two seconds of the clock without a packet of it")
  func reset() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "one", ack: 1)
    expect(&talk, isDueLater: false, at: 0)
    talk.client(4, ack: 1, .rst)
    expect(&talk, isDueLater: true, at: 1)
    expect(&talk, isDueLater: true, at: 2.9)
    #expect(!talk.connections[0].isClosed)
    expect(&talk, isDueLater: false, at: 3)
    #expect(talk.connections[0].isClosed && talk.sent() == "one")
    talk.finish()
    #expect(talk.log.violations == [])
  }

  @Test("What comes after a RST makes it wait again") func life() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, ack: 1, .rst)
    expect(&talk, isDueLater: true, at: 0)
    talk.server(1, "late", ack: 1)
    expect(&talk, isDueLater: true, at: 1.9)
    expect(&talk, isDueLater: true, at: 2.5)
    #expect(!talk.connections[0].isClosed && talk.answered() == "late")
    expect(&talk, isDueLater: false, at: 3.9)
    #expect(talk.connections[0].isClosed)
  }

  @Test("Both ends have ended it and bytes are missing: it is closed with a gap") func ended() {
    var talk = Conversation()
    talk.handshake()
    talk.client(4, "two", ack: 1)
    talk.client(7, ack: 1, .fin)
    talk.server(1, ack: 8, .fin)
    expect(&talk, isDueLater: true, at: 0)
    expect(&talk, isDueLater: false, at: 2)
    #expect(talk.connections[0].isClosed && talk.sent() == "two")
    #expect(talk.connections[0].low.gaps == [.init(offset: 0, length: 3, reason: .lost)])
  }

  @Test("Both ends have ended it and its last bytes are missing: it is closed with a gap") func endedAfterLoss() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "one", ack: 1)
    talk.client(7, ack: 1, .fin)
    talk.server(1, ack: 8, .fin)
    expect(&talk, isDueLater: true, at: 0)
    expect(&talk, isDueLater: false, at: 2)
    #expect(talk.connections[0].isClosed)
    #expect(talk.connections[0].low.gaps == [.init(offset: 3, length: 3, reason: .lost)])
    talk.finish()
    #expect(talk.log.violations == [])
  }

  @Test("One end alone was heard and has ended: it waits for the other, which may come later") func oneEnd() {
    var talk = Conversation()
    talk.server(1, "bad", ack: 1)
    talk.server(4, ack: 1, .fin)
    // Where its first bytes are waits for others too, but its end does not.
    expect(&talk, isDueLater: true, at: 0)
    expect(&talk, isDueLater: false, at: 2)
    #expect(!talk.connections[0].isClosed)
    talk.client(1, "one", ack: 1)
    #expect(!talk.connections[0].isClosed && talk.sent() == "one" && talk.answered() == "bad")
    talk.finish()
    #expect(talk.log.violations == [] && talk.connections.count == 1)
  }

  @Test("An end that the other one has not answered leaves it open") func halfEnded() {
    var talk = Conversation()
    talk.handshake()
    talk.server(1, "bad", ack: 1)
    talk.server(4, ack: 1, .fin)
    expect(&talk, isDueLater: false, at: 0)
    expect(&talk, isDueLater: false, at: 9)
    talk.client(1, "late", ack: 4)
    #expect(!talk.connections[0].isClosed && talk.sent() == "late")
  }

  @Test("Bytes that the peer has acknowledged are lost after the silence; others may be sent again")
  func missing() {
    for isAcknowledged in [true, false] {
      var talk = Conversation()
      talk.handshake()
      talk.client(4, "two", ack: 1)
      if isAcknowledged { talk.server(1, ack: 7) }
      expect(&talk, isDueLater: true, at: 0)
      expect(&talk, isDueLater: false, at: 2)
      #expect(!talk.connections[0].isClosed && talk.sent() == (isAcknowledged ? "two" : ""))
      talk.client(1, "one", ack: 1)
      talk.client(7, "three", ack: 1)
      #expect(talk.sent() == (isAcknowledged ? "twothree" : "onetwothree"))
      talk.finish()
      #expect(talk.log.violations == [])
    }
  }

  @Test("The beginning of a capture is the beginning of what it has") func held() {
    var talk = Conversation()
    talk.client(100, "middle")
    expect(&talk, isDueLater: true, at: 0)
    #expect(talk.sent() == "")
    expect(&talk, isDueLater: false, at: 2)
    #expect(talk.sent() == "middle")
  }

  @Test("A segment is as silent as the last moment at which it was there") func clock() {
    var clock = SilenceClock()
    var hasMore = false
    hasMore = clock.note(0, at: Self.after(0), linger: .seconds(2))
    #expect(!hasMore && clock.received == 0)
    hasMore = clock.note(5, at: Self.after(1), linger: .seconds(2))
    #expect(hasMore && clock.received == 0)
    hasMore = clock.note(9, at: Self.after(2), linger: .seconds(2))
    #expect(hasMore && clock.received == 0)
    hasMore = clock.note(9, at: Self.after(3.5), linger: .seconds(2))
    #expect(hasMore && clock.received == 5)
    hasMore = clock.note(9, at: Self.after(4), linger: .seconds(2))
    #expect(!hasMore && clock.received == 9)
  }

  @Test(
    "A reader of a pipe that stays open closes a reset connection without a later packet",
    arguments: [nil, 1_000_000] as [Int64?])
  func reader(reorderWindow: Int64?) throws {
    var capture = PcapBuilder(linkType: 101)
    for (flags, data) in [(0x02, ""), (0x18, "first"), (0x14, "")] as [(UInt8, String)] {
      var header = FileBuilder(bigEndian: true)
      header.u16(40_000)
      header.u16(2_195)
      header.u32(flags == 0x02 ? 999 : flags == 0x18 ? 1_000 : 1_005)
      header.u32(2_000)
      header.bytes += [0x50, flags]
      header.u16(0xffff)
      header.u32(0)
      capture.packet(PacketBuilder.ipv4(header.bytes + Array(data.utf8)), seconds: 1)
    }
    let pipe = Pipe()
    try pipe.fileHandleForWriting.write(contentsOf: Data(capture.bytes))
    var options = CaptureOptions()
    options.reassembly.linger = 1_000_000
    options.reorderWindow = reorderWindow
    let path = "/proc/self/fd/\(pipe.fileHandleForReading.fileDescriptor)"
    guard case .packets(let file) = try CaptureInput.open(path, options: options) else { return }
    let reader = StreamReader(file, options: options)
    var log = StreamLog()
    // The bound is against a hang.
    let end = ContinuousClock.now + .seconds(60)
    _ = try reader.forEachBatch(
      idle: { ContinuousClock.now < end },
      { batch in
        batch.forEachEvent { log.consume($0, at: $1) }
        return log.connections.first?.isClosed != true
      })
    #expect(log.connections.first?.isClosed == true && log.violations == [])
    #expect(String(decoding: log.connections[0].low.bytes, as: UTF8.self) == "first")
    try pipe.fileHandleForWriting.close()
  }
}
