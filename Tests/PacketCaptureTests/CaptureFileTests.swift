import TestSupport
import Testing

@testable import PacketCapture

/// pcap and snoop, byte by byte.
struct CaptureFileTests {
  private static let data: [[UInt8]] = [[1, 2, 3], [], Array(repeating: 9, count: 100)]

  @Test("Every kind of pcap", arguments: [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34] as [UInt32], [false, true])
  func everyKindOfPcap(magic: UInt32, bigEndian: Bool) throws {
    let nanosecondsPerTick: Int64 = magic == 0xa1b2_3c4d ? 1 : 1_000
    var file = PcapBuilder(magic: magic, bigEndian: bigEndian, linkType: 113)
    for (index, data) in Self.data.enumerated() {
      file.packet(data, seconds: UInt32(index + 10), fraction: 123_456, original: data.count + index)
    }
    let read = try ReadPackets(file.bytes)
    #expect(read.format == .pcap)
    #expect(read.bytes == Self.data)
    #expect(read.times == (10...12).map { $0 * 1_000_000_000 + 123_456 * nanosecondsPerTick })
    #expect(read.numbers == [1, 2, 3])
    #expect(read.packets.map(\.originalLength) == [3, 1, 102])
    #expect(read.packets.map(\.capturedLength) == [3, 0, 100])
    #expect(read.linkTypes == [.linuxSLL])
    #expect(read.warnings.isEmpty)
  }

  @Test("Seconds are unsigned and fractions may carry") func secondsAreUnsignedAndFractionsMayCarry() throws {
    var file = PcapBuilder()
    file.packet([0], seconds: .max, fraction: 0)
    file.packet([0], seconds: 1, fraction: 2_500_000)
    #expect(try ReadPackets(file.bytes).times == [4_294_967_295_000_000_000, 3_500_000_000])
  }

  @Test("Upper bits of the link type tell of a frame check sequence")
  func upperBitsOfTheLinkTypeTellOfAFrameCheckSequence() throws {
    #expect(try ReadPackets(PcapBuilder(linkType: 0x2400_0001).bytes).linkTypes == [.ethernet])
  }

  @Test("An unknown version is refused") func anUnknownVersionIsRefused() {
    #expect(throws: CaptureError.self) { try ReadPackets(PcapBuilder(major: 1).bytes) }
    #expect(throws: CaptureError.self) { try ReadPackets(PcapngBuilder(major: 2).bytes) }
  }

  @Test("An empty file is no capture") func anEmptyFileIsNoCapture() {
    #expect { try ReadPackets([]) } throws: { ($0 as? CaptureError)?.kind == .notACapture }
  }

  @Test("A missing file and a folder cannot be opened") func aMissingFileAndAFolderCannotBeOpened() throws {
    #expect { try ReadPackets(path: "/nowhere/at/all") } throws: { ($0 as? CaptureError)?.kind == .cannotOpen }
    try withTemporaryFolder { folder in
      #expect { try ReadPackets(path: folder.path) } throws: { ($0 as? CaptureError)?.kind == .cannotOpen }
    }
  }

  @Test("A packet over the limit is damage") func aPacketOverTheLimitIsDamage() throws {
    var file = PcapBuilder()
    file.packet([1, 2, 3])
    file.packet(Array(repeating: 0, count: 101))
    file.packet([4])
    let read = try ReadPackets(file.bytes, options: CaptureOptions(maximumPacketLength: 100))
    #expect(read.bytes == [[1, 2, 3]])
    #expect(read.warnings == ["packet 2 at offset 43 claims 101 bytes; the limit is 100"])
  }

  @Test("A snoop capture is read") func snoop() throws {
    var file = FileBuilder(bytes: Array("snoop\0\0\0".utf8), bigEndian: true)
    file.u32(2)
    file.u32(4)
    for (index, data) in Self.data.enumerated() {
      let padding = (4 - data.count % 4) % 4
      for value in [data.count + 5, data.count, 24 + data.count + padding, 0, index, 7] { file.u32(UInt32(value)) }
      file.bytes += data + [UInt8](repeating: 0xee, count: padding)
    }
    let read = try ReadPackets(file.bytes)
    #expect(read.format == .snoop)
    #expect(read.bytes == Self.data)
    #expect(read.times == [7_000, 1_000_007_000, 2_000_007_000])
    #expect(read.packets.map(\.originalLength) == [8, 5, 105])
    #expect(read.warnings.isEmpty)
    for end in 16..<file.bytes.count {
      let cut = try ReadPackets(Array(file.bytes[..<end]))
      #expect(cut.bytes == Array(Self.data.prefix(cut.bytes.count)))
      #expect(cut.warnings.count == ([16, 44, 68].contains(end) ? 0 : 1), "cut at \(end)")
    }
  }

  @Test("Cut anywhere, what is whole is read", arguments: [0xa1b2_c3d4, 0xa1b2_cd34] as [UInt32])
  func cutAnywhereWhatIsWholeIsRead(magic: UInt32) throws {
    var file = PcapBuilder(magic: magic)
    for data in Self.data { file.packet(data, fraction: 1) }
    for end in 0..<file.bytes.count {
      let bytes = Array(file.bytes[..<end])
      guard end >= 24 else {
        // Too little to be anything; a file of the first bytes alone may be a dump.
        let read = try? ReadPackets(bytes)
        #expect(read?.packets.isEmpty ?? true)
        continue
      }
      let read = try ReadPackets(bytes)
      let whole = file.ends.filter { $0 <= end }.count
      #expect(read.bytes == Array(Self.data.prefix(whole)), "cut at \(end)")
      let isBetween = end == 24 || file.ends.contains(end)
      #expect(read.warnings.count == (isBetween ? 0 : 1), "cut at \(end)")
    }
  }

  @Test("Packets across the blocks of the reader") func packetsAcrossTheBlocksOfTheReader() throws {
    // Records of all lengths, so that a block of the reader ends at every place of a record.
    var random = SeededGenerator(seed: 5)
    let data = (0..<120).map { number in
      [UInt8](repeating: UInt8(number), count: .random(in: 0...60_000, using: &random))
    }
    var file = PcapBuilder()
    for data in data { file.packet(data, fraction: 1) }
    #expect(file.bytes.count > 3 * CaptureOptions().blockLength)
    let read = try ReadPackets(file.bytes)
    #expect(read.bytes == data)
    #expect(read.warnings.isEmpty)
  }

  @Test("Reading stops when the receiver wants no more") func readingStopsWhenTheReceiverWantsNoMore() throws {
    var file = PcapBuilder()
    for data in Self.data { file.packet(data, fraction: 1) }
    let seen = try withFile(file.bytes) { path in
      let input = try CaptureInput.open(path, options: CaptureOptions())
      switch consume input {
      case .dump: return 0
      case .packets(var capture):
        var seen = 0
        try capture.forEachPacket { _, _, _ in
          seen += 1
          return seen < 2
        }
        #expect(capture.packetCount == 2)
        try capture.forEachPacket { packet, _, _ in
          #expect(packet.number == 3)
          seen += 1
          return true
        }
        return seen
      }
    }
    #expect(seen == 3)
  }
}
