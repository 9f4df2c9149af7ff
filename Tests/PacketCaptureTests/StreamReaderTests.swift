import Bytes
import Dispatch
import Foundation
import TestSupport
import Testing

@testable import PacketCapture

/// The law of the reading thread: the events, and their order, are those of the packets one by one.
@Suite("Reading ahead")
struct StreamReaderTests {
  @Test(
    "Thousands of connections have the same events in the same order, whatever the blocks are", arguments: [400, 1_300])
  func manyConnections(connections: Int) throws {
    var random = SeededGenerator(seed: UInt64(connections))
    var capture = PcapBuilder(linkType: 101)
    var next = [UInt32](repeating: 1_000, count: connections)
    for number in 0..<6 * connections {
      let line = number < connections ? number : random.number(0...connections - 1)
      // Some are lost, some come again, and some open their connection anew.
      if random.happens(oneIn: 40) { next[line] &+= 5 }
      let data = [UInt8](repeating: UInt8(number & 255), count: random.pick([0, 1, 30, 200]))
      let segment = Self.segment(line, next[line], data, opens: random.happens(oneIn: 60))
      if random.happens(oneIn: 20), data.count > 8 {
        let halves = Self.fragments(segment, number)
        capture.packet(halves.0, seconds: UInt32(number))
        capture.packet(halves.1, seconds: UInt32(number))
      } else {
        capture.packet(PacketBuilder.ipv4(segment), seconds: UInt32(number))
      }
      if !random.happens(oneIn: 30) { next[line] &+= UInt32(data.count) }
    }
    try withTemporaryFolder { folder in
      let path = folder.appending(path: "many.pcap").path
      try Data(capture.bytes).write(to: URL(filePath: path))
      for blockLength in [600, 5_000, 1 << 19] {
        var options = CaptureOptions()
        options.blockLength = blockLength
        let expected = try Self.events(of: path, options)
        #expect(expected.count > 5 * connections)
        #expect(try Self.eventsReadAhead(of: path, options) == expected)
        #expect(try Self.eventsReadAhead(of: path, options, queue: StreamReader.makeQueue()) == expected)
        // The filter lets some through.
        let filter = try PacketFilter("tcp src port 20007 or tcp src port 20011")
        let some = try Self.events(of: path, options, filter)
        #expect(some.count < expected.count / 20 && some.count > 10)
        #expect(try Self.eventsReadAhead(of: path, options, filter) == some)
      }
    }
  }

  @Test("Other work of the reading queue is done while batches wait to be taken, and after reading was ended")
  func sharedQueue() throws {
    var capture = PcapBuilder(linkType: 101)
    for number in 0..<400 {
      let segment = Self.segment(1, 1_000 + UInt32(number) * 100, [UInt8](repeating: 7, count: 100), opens: false)
      capture.packet(PacketBuilder.ipv4(segment), seconds: UInt32(number))
    }
    try withTemporaryFolder { folder in
      let path = folder.appending(path: "one.pcap").path
      try Data(capture.bytes).write(to: URL(filePath: path))
      var options = CaptureOptions()
      options.blockLength = 700
      for depth in [1, 3] {
        guard case .packets(let file) = try CaptureInput.open(path, options: options) else { return }
        let queue = StreamReader.makeQueue()
        let done = DispatchSemaphore(value: 0)
        func works() -> Bool {
          queue.async { done.signal() }
          return done.wait(timeout: .now() + 120) == .success
        }
        let reader = StreamReader(Recording(file), options: options, depth: depth, queue: queue)
        var batches = 0
        let end = try reader.forEachBatch(idle: { true }) { (_: borrowing EventBatch) in
          batches += 1
          #expect(works())
          return batches < 20
        }
        #expect(batches == 20 && end == nil)
        #expect(works())
      }
    }
  }

  /// A segment of one connection of many.
  private static func segment(_ line: Int, _ sequence: UInt32, _ data: [UInt8], opens: Bool) -> [UInt8] {
    var header = FileBuilder(bigEndian: true)
    header.u16(UInt16(20_000 + line))
    header.u16(2_195)
    header.u32(sequence)
    header.u32(2_000)
    header.bytes += [0x50, opens ? 0x02 : 0x18]
    header.u16(0xffff)
    header.u32(0)
    return header.bytes + data
  }

  private static func fragments(_ segment: [UInt8], _ number: Int) -> ([UInt8], [UInt8]) {
    let identification = UInt16(truncatingIfNeeded: number)
    return (
      PacketBuilder.ipv4(Array(segment[..<24]), identification: identification, fragment: 0x2000),
      PacketBuilder.ipv4(Array(segment[24...]), identification: identification, fragment: 3)
    )
  }

  /// Packet by packet.
  private static func events(
    of path: String, _ options: CaptureOptions, _ filter: PacketFilter? = nil
  ) throws -> [String] {
    guard case .packets(var file) = try CaptureInput.open(path, options: options) else { return [] }
    var decoder = PacketDecoder(options: options)
    var reassembler = TCPReassembler(options: options.reassembly)
    var events: [String] = []
    try file.forEachPacket { packet, bytes, _ in
      if let filter, try !filter.matches(packet, bytes) { return true }
      decoder.decode(packet, bytes) { segment, payload in
        reassembler.receive(segment, payload, time: packet.time, packet: packet.number) {
          events.append(text($0, $1))
        }
      }
      return true
    }
    reassembler.finish { events.append(text($0, $1)) }
    return events
  }

  private static func eventsReadAhead(
    of path: String, _ options: CaptureOptions, _ filter: PacketFilter? = nil, queue: DispatchQueue? = nil
  ) throws -> [String] {
    guard case .packets(let file) = try CaptureInput.open(path, options: options) else { return [] }
    let reader = StreamReader(Recording(file), options: options, filter: filter, queue: queue)
    var events: [String] = []
    _ = try reader.forEachBatch(
      idle: { true },
      { batch in
        batch.forEachEvent { events.append(text($0, $1)) }
        return true
      })
    return events
  }

  private static func text(_ event: borrowing StreamEvent, _ position: StreamPosition) -> String {
    let place = "\(position.slot) \(position.direction) \(position.offset) \(position.time) \(position.packet)"
    switch event {
    case .bytes(let bytes): return "\(place): \(Array(copying: bytes))"
    case .gap(let length, let reason): return "\(place): \(length) \(reason)"
    case .end: return "\(place): end"
    case .connection(let change): return "\(place): \(change)"
    }
  }
}
