import Bytes
import TestSupport
import Testing

@testable import PacketCapture

/// A dump of one direction gives the same bytes however it was written down.
@Suite(.waiting) struct RawDumpTests {
  /// Two frames of the protocol, a run of zeros that programs squeeze, and an odd end.
  private static let stream: [UInt8] = {
    var random = SeededGenerator(seed: 21)
    return [2, 0, 0, 0, 40] + random.bytes(40) + [UInt8](repeating: 0, count: 300) + random.bytes(77)
  }()

  private static func read(
    _ file: [UInt8], options: CaptureOptions = CaptureOptions()
  ) throws -> (format: CaptureFormat, bytes: [UInt8], beginning: [UInt8], warnings: [String]) {
    try withFile(file) { path in
      let input = try CaptureInput.open(path, options: options)
      switch consume input {
      case .packets(let file): return (file.format, [], [], [])
      case .dump(var dump):
        let beginning = Array(copying: dump.beginning)
        var bytes: [UInt8] = []
        try dump.forEachPiece { piece, _ in
          bytes.append(copying: piece)
          return true
        }
        return (dump.format, bytes, beginning, dump.warnings)
      }
    }
  }

  private static func hex(_ bytes: some Sequence<UInt8>, separator: String = "") -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: separator)
  }

  @Test("A binary dump is read as it is") func aBinaryDumpIsReadAsItIs() throws {
    let read = try Self.read(Self.stream)
    #expect(read.format == .raw)
    #expect(read.bytes == Self.stream)
    #expect(read.beginning == Self.stream)
    #expect(read.warnings.isEmpty)
  }

  @Test("A binary dump of many blocks") func aBinaryDumpOfManyBlocks() throws {
    let bytes = (0..<(5 << 20)).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8) }
    #expect(try Self.read(bytes).bytes == bytes)
  }

  /// A program that writes dumps, and its arguments.
  private static let programs: [(String, [String])] = [
    ("xxd", []), ("xxd", ["-u"]), ("xxd", ["-c", "8"]), ("xxd", ["-g", "1"]), ("xxd", ["-a"]), ("xxd", ["-p"]),
    ("xxd", ["-p", "-u"]), ("xxd", ["-p", "-c", "256"]), ("hexdump", ["-C"]), ("hexdump", ["-C", "-v"]), ("hd", []),
  ].filter { ExternalTool.isInstalled($0.0) }

  @Test("What dump programs write", arguments: programs) func whatDumpProgramsWrite(
    program: String, arguments: [String]
  ) throws {
    for length in [Self.stream.count, 400, 64, 34, 16, 5, 1] {
      let bytes = Array(Self.stream[..<length])
      let text = try ExternalTool.run(program, arguments, input: bytes)
      // With line ends of either kind, with and without the last one.
      let windows = text.flatMap { $0 == 0x0a ? [0x0d, 0x0a] : [$0] }
      for dump in [text, windows, Array(text.dropLast())] {
        let read = try Self.read(dump)
        #expect(read.format == .hex)
        #expect(read.bytes == bytes, "\(length) bytes")
        #expect(read.warnings.isEmpty)
      }
    }
  }

  @Test("Text of many kinds") func textOfManyKinds() throws {
    let digits = Self.hex(Self.stream)
    let texts = [
      digits, digits.uppercased(), digits + "\n", "\n\n  " + digits, Self.hex(Self.stream, separator: " "),
      Self.hex(Self.stream, separator: ":"), Self.hex(Self.stream, separator: "\n"),
      Self.hex(Self.stream[..<100]) + "\r\n" + Self.hex(Self.stream[100...]),
      Self.hex(Self.stream[..<1]) + " " + Self.hex(Self.stream[1..<5]) + "\n\n" + Self.hex(Self.stream[5...]),
    ]
    for text in texts {
      let read = try Self.read(Array(text.utf8))
      #expect(read.format == .hex, "\(text.prefix(20))")
      #expect(read.bytes == Self.stream, "\(text.prefix(20))")
    }
  }

  @Test("A last line of four bytes is no offset") func aLastLineOfFourBytesIsNoOffset() throws {
    let read = try Self.read(Array("0200000028\n00000005\n".utf8))
    #expect(read.bytes == [2, 0, 0, 0, 0x28, 0, 0, 0, 5])
  }

  @Test("A plain dump of one line longer than a block") func aPlainDumpOfOneLineLongerThanABlock() throws {
    let bytes = [UInt8](repeating: 0xa5, count: 700_000)
    #expect(try Self.read(Array(("b" + Self.hex(bytes).dropFirst()).utf8)).bytes == [0xb5] + bytes.dropFirst())
  }

  @Test("A squeezed dump of a part of a file") func aSqueezedDumpOfAPartOfAFile() throws {
    let text =
      "00001000  01 02 03 04 05 06 07 08  09 0a 0b 0c 0d 0e 0f 10  |................|\n*\n"
      + "00001030  ff  |.|\n00001031\n"
    let line = (1...16).map { UInt8($0) }
    #expect(try Self.read(Array(text.utf8)).bytes == line + line + line + [0xff])
  }

  @Test("A star cannot claim more than the limit") func aStarCannotClaimMoreThanTheLimit() throws {
    let text = "00000000  00 01 02 03\n*\n0fffffffffff  00\n"
    let read = try Self.read(Array(text.utf8), options: CaptureOptions(maximumHexDumpLength: 1_000))
    #expect(read.bytes.count <= 1_001)
  }

  @Test("Over the limit the rest is not read and that is said") func overTheLimitTheRestIsNotReadAndThatIsSaid() throws
  {
    let text = Array(Self.hex(Self.stream, separator: "\n").utf8)
    let read = try Self.read(text, options: CaptureOptions(maximumHexDumpLength: 300))
    #expect(read.bytes == Array(Self.stream[..<100]))
    #expect(read.warnings.count == 1)
  }

  @Test("Lines that are no dump are passed over and counted") func linesThatAreNoDumpArePassedOverAndCounted() throws {
    let lines = (0..<10).map { Self.hex(Self.stream[(16 * $0)..<(16 * $0 + 16)]) }
    let text = (lines[..<9] + ["that was all", "really"] + lines[9...]).joined(separator: "\n")
    let read = try Self.read(Array(text.utf8))
    #expect(read.bytes == Array(Self.stream[..<160]))
    #expect(read.warnings == ["line 10 is not part of a hex dump; 2 such lines were skipped"])
  }

  @Test(
    "Other text is binary",
    arguments: [
      "not hex", "abc", "0200 zz", "{\"aps\":{}}", "deadbeef\nand more\n", "0000000 0002 0000 0028\n", "\n\n",
    ])
  func otherTextIsBinary(text: String) throws {
    let read = try Self.read(Array(text.utf8))
    #expect(read.format == .raw)
    #expect(read.bytes == Array(text.utf8))
  }

  @Test("Dumps may be compressed", .enabled(if: ExternalTool.isInstalled("gzip"))) func dumpsMayBeCompressed() throws {
    let raw = try Self.read(ExternalTool.run("gzip", ["-c"], input: Self.stream))
    #expect(raw.format == .raw && raw.bytes == Self.stream)
    let hex = try Self.read(ExternalTool.run("gzip", ["-c"], input: Array(Self.hex(Self.stream).utf8)))
    #expect(hex.format == .hex && hex.bytes == Self.stream)
  }
}
