import TestSupport
import Testing

@testable import PacketCapture

/// Compressed captures are told by their first bytes, and read as far as they go.
@Suite(.waiting) struct CompressionTests {
  private static let capture: PcapBuilder = {
    var random = SeededGenerator(seed: 11)
    var file = PcapBuilder()
    for _ in 0..<12 { file.packet(random.bytes(40)) }
    return file
  }()

  private static let tools = ["gzip", "zstd"].filter(ExternalTool.isInstalled)

  private static func compress(_ tool: String, _ bytes: [UInt8]) throws -> [UInt8] {
    try ExternalTool.run(tool, ["-c"], input: bytes)
  }

  @Test("A compressed capture is read", arguments: tools) func aCompressedCaptureIsRead(tool: String) throws {
    let read = try ReadPackets(Self.compress(tool, Self.capture.bytes))
    #expect(read.bytes == (try ReadPackets(Self.capture.bytes)).bytes)
    #expect(read.bytes.count == 12)
    #expect(read.warnings.isEmpty)
  }

  @Test("Several members are one file", arguments: tools) func severalMembersAreOneFile(tool: String) throws {
    let bytes = Self.capture.bytes
    let parts = [bytes[..<30], bytes[30..<31], bytes[31..<400], bytes[400...]]
    let joined = try parts.flatMap { try Self.compress(tool, Array($0)) }
    let read = try ReadPackets(joined)
    #expect(read.bytes == (try ReadPackets(bytes)).bytes)
    #expect(read.warnings.isEmpty)
  }

  @Test("Cut anywhere, what is whole is read", arguments: tools) func cutAnywhereWhatIsWholeIsRead(tool: String) throws
  {
    let whole = try ReadPackets(Self.capture.bytes).bytes
    let compressed = try Self.compress(tool, Self.capture.bytes)
    var most = 0
    for end in 0..<compressed.count {
      // Too little to begin with is no capture; anything else is its beginning and one warning.
      guard let read = try? ReadPackets(Array(compressed[..<end])), read.format == .pcap else { continue }
      #expect(read.bytes == Array(whole.prefix(read.bytes.count)))
      #expect(read.warnings.count == 1, "cut at \(end)")
      most = max(most, read.bytes.count)
    }
    #expect(most > 0)
  }

  @Test("Damage ends the reading with one warning", arguments: tools) func damageEndsTheReadingWithOneWarning(
    tool: String
  ) throws {
    let whole = try ReadPackets(Self.capture.bytes).bytes
    var random = SeededGenerator(seed: 3)
    let compressed = try Self.compress(tool, Self.capture.bytes)
    for _ in 0..<200 {
      var damaged = compressed
      damaged[Int.random(in: 30..<damaged.count, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
      guard let read = try? ReadPackets(damaged) else { continue }
      #expect(read.packets.count <= whole.count)
      #expect(read.warnings.count <= 2)
    }
  }

  @Test("Many blocks of output come from few of input", arguments: tools) func manyBlocksOfOutputComeFromFewOfInput(
    tool: String
  ) throws {
    // 12 MB of the same: the decompressor is full of output long after its input is used up.
    var file = PcapBuilder()
    for _ in 0..<200 { file.packet([UInt8](repeating: 0, count: 60_000)) }
    let read = try ReadPackets(Self.compress(tool, file.bytes))
    #expect(read.packets.count == 200)
    #expect(read.warnings.isEmpty)
  }
}
