import Bytes
import PacketCapture
import TestSupport
import Testing

/// Streams that go on further away than sequence numbers tell: an outage of the capture hid more than a gigabyte.
@Suite("More than a gigabyte is missing")
struct FarAwayTests {
  private func capture(missing: Int, after: Int = 40, damaged: Bool = false) -> CaptureBuilder {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for number in 0..<20 { capture.client(line, push(UInt32(number + 1), device: 1)) }
    capture.lose(line, missing)
    if damaged {
      // One segment with a number that is not the stream's.
      capture.client(line, push(999, device: 1))
      capture.lose(line, (1 << 32) - missing - push(999, device: 1).count)
    }
    for number in 20..<20 + after { capture.client(line, push(UInt32(number + 1), device: 1)) }
    capture.finish(line)
    return capture
  }

  @Test("The stream is read on, and the gap says how much is missing", arguments: [900, 1_100, 1_500, 1_900, 2_500])
  func jump(mebibytes: Int) throws {
    let missing = mebibytes << 20
    let seen = try capture(missing: missing).dissected()
    // Until the third segment it is not known that the stream goes on there.
    #expect(seen.notifications.count >= 58 && seen.notifications.last?.identifier == 60)
    let gap = try #require(seen.gaps.first)
    #expect(seen.gaps.count == 1 && gap.reason == .lost)
    #expect(gap.place.length == missing + (60 - seen.notifications.count) * push(1, device: 1).count)
    let record = try #require(seen.connections.first)
    #expect(record.missingBytes == gap.place.length && record.end == .clientFIN)
  }

  @Test("A single segment with a number far away makes no gap")
  func damaged() throws {
    let seen = try capture(missing: 1_500 << 20, damaged: true).dissected()
    #expect(seen.notifications.map(\.identifier) == (1...60).map { UInt32($0) } && seen.gaps.isEmpty)
  }

  @Test("What was recorded a second time, with its own times, is not read again")
  func again() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for number in 0..<20 { capture.client(line, push(UInt32(number + 1), device: 1)) }
    // The second file's clock begins again.
    capture.milliseconds = 5
    capture.lose(line, 1_200 << 20)
    for number in 0..<10 { capture.client(line, push(UInt32(number + 1), device: 1)) }
    #expect(try capture.dissected().notifications.count == 20)
  }
}
