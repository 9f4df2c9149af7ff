import TestSupport
import Testing

@testable import PacketCapture

/// pcapng, block by block.
struct PcapngTests {
  @Test("Every block that holds a packet", arguments: [false, true])
  func everyBlockThatHoldsAPacket(bigEndian: Bool) throws {
    var file = PcapngBuilder(bigEndian: bigEndian)
    file.interface()
    file.enhanced([1, 2, 3, 4, 5], ticks: 1_500_000, original: 60)
    file.simple([6, 7])
    file.obsolete([8], ticks: 0x1_0000_0001)
    let read = try ReadPackets(file.bytes)
    #expect(read.format == .pcapng)
    #expect(read.bytes == [[1, 2, 3, 4, 5], [6, 7], [8]])
    #expect(read.packets.map(\.originalLength) == [60, 2, 1])
    #expect(read.packets[0].time == Timestamp(nanoseconds: 1_500_000_000))
    #expect(!read.packets[1].time.isKnown)
    #expect(read.packets[2].time == Timestamp(nanoseconds: 0x1_0000_0001 * 1_000))
    #expect(read.warnings.isEmpty)
  }

  /// Resolution, ticks, the nanoseconds they are.
  private static let resolutions: [(UInt8, UInt64, Int64)] = [
    (0, 5, 5_000_000_000), (3, 1_234, 1_234_000_000), (6, 1_234_567, 1_234_567_000),
    (9, 1_234_567_891, 1_234_567_891), (12, 1_234_567_891_999, 1_234_567_891),
    (19, 10_000_000_000_000_000_000, 1_000_000_000), (0x80, 7, 7_000_000_000), (0x81, 3, 1_500_000_000),
    (0x80 | 20, 3 << 19, 1_500_000_000), (0x80 | 63, 3 << 62, 1_500_000_000),
  ]

  @Test("Ticks of each resolution are nanoseconds, rounded down", arguments: resolutions)
  func timeResolutions(resolution: UInt8, ticks: UInt64, nanoseconds: Int64) throws {
    var file = PcapngBuilder()
    file.interface(resolution: resolution)
    file.enhanced([0], ticks: ticks)
    let read = try ReadPackets(file.bytes)
    #expect(read.times == [nanoseconds])
    #expect(read.warnings.isEmpty)
  }

  @Test("A time resolution that cannot be read is said", arguments: [20, 127, 0x80 | 64, 0xff] as [UInt8])
  func aTimeResolutionThatCannotBeReadIsSaid(resolution: UInt8) throws {
    var file = PcapngBuilder()
    file.interface(resolution: resolution)
    file.enhanced([1], ticks: 1)
    let read = try ReadPackets(file.bytes)
    #expect(read.bytes == [[1]])
    #expect(read.warnings.count == 1)
  }

  @Test("Time offsets may be negative") func timeOffsetsMayBeNegative() throws {
    var file = PcapngBuilder()
    file.interface(offset: 1_000_000_000)
    file.interface(resolution: 9, offset: -2)
    file.interface(offset: .max)
    file.enhanced([0], interface: 0, ticks: 500_000)
    file.enhanced([0], interface: 1, ticks: 500_000_000)
    file.enhanced([0], interface: 2, ticks: 1)
    #expect(try ReadPackets(file.bytes).times == [1_000_000_000_500_000_000, -1_500_000_000, .max])
  }

  @Test("Sections have their own byte order and interfaces") func sectionsHaveTheirOwnByteOrderAndInterfaces() throws {
    var first = PcapngBuilder(bigEndian: false)
    first.interface(1)
    first.interface(113, resolution: 9)
    first.enhanced([1], interface: 1, ticks: 5)
    var second = PcapngBuilder(bigEndian: true, after: first)
    second.interface(276, resolution: 3)
    second.enhanced([2], interface: 0, ticks: 5)
    second.enhanced([3], interface: 1)
    var third = PcapngBuilder(bigEndian: false, after: second)
    third.interface(113)
    third.enhanced([4])
    let read = try ReadPackets(third.bytes)
    #expect(read.bytes == [[1], [2], [4]])
    #expect(read.numbers == [1, 2, 4])
    #expect(read.packets.map(\.linkType) == [.linuxSLL, .linuxSLL2, .linuxSLL])
    #expect(read.times == [5, 5_000_000, 0])
    #expect(read.linkTypes == [.ethernet, .linuxSLL, .linuxSLL2])
    // Interface 1 belonged to the section before.
    #expect(read.warnings.count == 1)
  }

  @Test("Unknown blocks are passed over and custom ones numbered")
  func unknownBlocksArePassedOverAndCustomOnesNumbered() throws {
    var file = PcapngBuilder()
    file.block(0x0bad_cafe) { $0.bytes += Array(repeating: 1, count: 33) }
    file.interface()
    file.block(5) { $0.u64(0) }
    file.enhanced([1])
    file.block(0xbad) { $0.u32(32_473) }
    file.block(0x4000_0bad) { $0.u32(32_473) }
    file.enhanced([2])
    let read = try ReadPackets(file.bytes)
    #expect(read.bytes == [[1], [2]])
    // As Wireshark numbers its frames.
    #expect(read.numbers == [1, 4])
    #expect(read.warnings.isEmpty)
  }

  @Test("An unknown block may be longer than any limit") func anUnknownBlockMayBeLongerThanAnyLimit() throws {
    var file = PcapngBuilder()
    file.block(77) { $0.bytes = [UInt8](repeating: 7, count: 3 << 20) }
    file.interface()
    file.enhanced([1])
    let read = try ReadPackets(file.bytes, options: CaptureOptions(maximumBlockLength: 1 << 20))
    #expect(read.bytes == [[1]])
    #expect(read.warnings.isEmpty)
  }

  @Test("Secrets are kept wherever they stand") func secretsAreKeptWhereverTheyStand() throws {
    var file = PcapngBuilder()
    file.secrets("CLIENT_RANDOM 00 11\n")
    file.interface()
    file.enhanced([1])
    file.secrets("odd", type: 5)
    file.secrets("")
    let read = try ReadPackets(file.bytes)
    // An empty block holds nothing.
    #expect(read.secrets.map(\.type) == [0x544c_534b, 5])
    #expect(read.secrets.map { String(decoding: $0.data, as: UTF8.self) } == ["CLIENT_RANDOM 00 11\n", "odd"])
  }

  @Test("Secrets over the limit are skipped with a warning") func secretsOverTheLimitAreSkippedWithAWarning() throws {
    var file = PcapngBuilder()
    file.secrets("123456")
    file.secrets("7890")
    file.secrets("ab")
    let read = try ReadPackets(file.bytes, options: CaptureOptions(maximumSecretsLength: 8 + 2 * 64))
    #expect(read.secrets.map { String(decoding: $0.data, as: UTF8.self) } == ["123456", "ab"])
    #expect(read.warnings.count == 1)
  }

  @Test("A simple packet ends at the snap length") func aSimplePacketEndsAtTheSnapLength() throws {
    var file = PcapngBuilder()
    file.interface(snapLength: 3)
    file.simple([1, 2, 3], original: 50)
    let read = try ReadPackets(file.bytes)
    #expect(read.bytes == [[1, 2, 3]])
    #expect(read.packets[0].originalLength == 50)
  }

  @Test("A packet that overruns its block ends the reading") func aPacketThatOverrunsItsBlockEndsTheReading() throws {
    var file = PcapngBuilder()
    file.interface()
    file.enhanced([1])
    file.block(6) { for value: UInt32 in [0, 0, 0, 100, 100, 0] { $0.u32(value) } }
    file.enhanced([2])
    let read = try ReadPackets(file.bytes)
    #expect(read.bytes == [[1]])
    #expect(read.warnings.count == 1)
  }

  @Test("Cut anywhere, what is whole is read", arguments: [false, true])
  func cutAnywhereWhatIsWholeIsRead(bigEndian: Bool) throws {
    var file = PcapngBuilder(bigEndian: bigEndian)
    file.interface(resolution: 9)
    file.enhanced([1, 2, 3])
    file.secrets("secret")
    file.block(77) { $0.u64(0) }
    file.simple([4])
    file.obsolete([5, 6])
    for end in 12..<file.bytes.count {
      let read = try ReadPackets(Array(file.bytes[..<end]))
      let whole = file.packetEnds.filter { $0 <= end }.count
      #expect(read.bytes == Array([[1, 2, 3], [4], [5, 6]].prefix(whole)), "cut at \(end)")
      #expect(read.warnings.count == (file.ends.contains(end) ? 0 : 1), "cut at \(end)")
    }
  }

  @Test("Damaged bytes never crash", arguments: Array(1...8) as [UInt64])
  func damagedBytesNeverCrash(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var file = PcapngBuilder(bigEndian: seed % 2 == 0)
    file.interface(resolution: 9, offset: 3)
    for _ in 0..<5 { file.enhanced(random.bytes(20)) }
    file.secrets("secret")
    for _ in 0..<100 {
      var bytes = file.bytes
      for _ in 0..<3 { bytes[Int.random(in: 16..<bytes.count, using: &random)] = random.bytes(1)[0] }
      let read = try ReadPackets(bytes)
      #expect(read.bytes.count <= 6)
    }
  }

  /// 20 sections with 65,536 interfaces each took `inspect` 23 s, and its report a line of 447 KB.
  @Test("Of thousands of link types a few are listed, and one warning says so")
  func manyLinkTypes() throws {
    var list = LinkTypeList()
    var file = PcapngBuilder()
    for section in 0..<2 {
      if section > 0 { file = PcapngBuilder(after: file) }
      for number in 0..<1_000 as Range<UInt16> { file.interface(number + 20) }
      for number in 0..<1_000 as Range<UInt32> { file.enhanced([0], interface: number, ticks: 1) }
    }
    let read = try ReadPackets(file.bytes)
    #expect(read.packets.count == 2_000)
    #expect(read.linkTypes == (20..<84 as Range<UInt16>).map(LinkType.init))
    #expect(read.warnings == ["interfaces have more than 64 link types; only the first 64 are listed"])
    for packet in read.packets { list.add(packet.linkType) }
    #expect(list.all == read.linkTypes && list.isCut)
    let batch = try withFile(file.bytes) { path in
      guard case .packets(let file) = try CaptureInput.open(path, options: CaptureOptions()) else { return 0 }
      var listed = 0
      _ = try StreamReader(file, options: CaptureOptions()).forEachBatch(idle: { true }) { batch in
        listed = max(listed, batch.linkTypes.count)
        return true
      }
      return listed
    }
    #expect(batch == 64)
  }
}
