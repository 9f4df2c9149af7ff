import Bytes
import Foundation
import TestSupport
import Testing

@testable import PacketCapture

/// What programs and languages print of bytes and packets gives the same bytes.
@Suite("Pasted text", .waiting)
struct PastedTextTests {
  /// Frames as they are: every byte, a payload with quotes, and zeros that dump programs squeeze.
  private static let stream: [UInt8] =
    [1, 0, 0, 0, 7, 0x54, 0xa4, 0x8e, 0, 0, 32] + [UInt8](0...31) + [0, 33]
    + Array(#"{"aps":{"alert":"It's \"low\" tide"#.utf8) + [UInt8](repeating: 0, count: 100) + [UInt8](0...255)

  private static func read(_ text: String) throws -> (format: CaptureFormat, bytes: [UInt8], warnings: [String]) {
    try read(Array(text.utf8))
  }

  private static func read(_ file: [UInt8]) throws -> (format: CaptureFormat, bytes: [UInt8], warnings: [String]) {
    try withFile(file) { path in
      switch try CaptureInput.open(path, options: CaptureOptions()) {
      case .packets(let file): return (file.format, [], [])
      case .dump(var dump):
        var bytes: [UInt8] = []
        try dump.forEachPiece { piece, _ in
          bytes.append(copying: piece)
          return true
        }
        return (dump.format, bytes, dump.warnings)
      }
    }
  }

  private static func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }

  // MARK: forms

  private static func list(_ open: String, _ close: String, _ separator: String, _ text: (UInt8) -> String) -> String {
    open + stream.map(text).joined(separator: separator) + close
  }

  /// A string literal with escapes of bytes, and characters as they are.
  private static func literal(_ open: String, _ quote: Character, _ escape: (UInt8) -> String) -> String {
    var text = open
    for byte in stream {
      switch byte {
      case UInt8(ascii: "\\"): text += "\\\\"
      case let byte where Character(Unicode.Scalar(byte)) == quote: text += "\\" + String(quote)
      case 0x0a: text += "\\n"
      case 0x20...0x7e: text.unicodeScalars.append(Unicode.Scalar(byte))
      default: text += escape(byte)
      }
    }
    return text + String(quote)
  }

  private static let languages: [(name: String, text: String)] = [
    ("Node", list("<Buffer ", ">", " ", hex)),
    (
      "Foundation",
      "<"
        + stride(from: 0, to: stream.count, by: 4).map { stream[$0..<min($0 + 4, stream.count)].map(hex).joined() }
        .joined(separator: " ") + ">"
    ),
    ("Foundation of today", "{length = \(stream.count), bytes = 0x" + stream.map(hex).joined() + "}"),
    (".NET", list("", "", "-") { hex($0).uppercased() }), ("colons", list("", "", ":", hex)),
    ("Python bytes", literal("b'", "'") { "\\x" + hex($0) }), ("Python list", list("[", "]", ", ") { "\($0)" }),
    ("Python bytearray", literal("bytearray(b\"", "\"") { "\\x" + hex($0) } + ")"),
    ("Ruby string", literal("\"", "\"") { $0 == 0x1b ? "\\e" : $0 == 0 ? "\\u0000" : "\\x" + hex($0).uppercased() }),
    ("Go slice", list("[", "]", " ") { "\($0)" }),
    ("Go syntax", list("[]byte{", "}", ", ") { "0x" + String($0, radix: 16) }),
    ("Erlang", list("<<", ">>", ",") { "\($0)" }), ("Java", list("[", "]", ", ") { "\(Int8(bitPattern: $0))" }),
    ("C", list("unsigned char frame[] = {\n  ", "\n};", ", ") { "0x" + hex($0) }),
    ("C#", list("new byte[] { ", " }", ",\n ") { "0x" + hex($0).uppercased() }),
    ("Java source", list("new byte[] {", "}", ", ") { "(byte)0x" + hex($0) }),
    ("shell", list("printf '", "'", "") { "\\x" + hex($0) }),
    ("octal escapes", literal("\"", "\"") { "\\" + octal($0, 3) }),
    ("Perl", literal("\"", "\"") { "\\x{" + hex($0) + "}" }), ("PHP", "string(9) \"" + stream.map(hex).joined() + "\""),
    ("numbers", list("", "", " ") { "\($0)" }), ("hexadecimal numbers", list("", "", ",\n ") { "0x" + hex($0) }),
    ("Rust", list("[", "]", ", ") { "\($0)u8" }), ("a log", "sent: " + stream.map(hex).joined()),
  ]

  private static func octal(_ value: some BinaryInteger, _ width: Int) -> String {
    let text = String(value, radix: 8)
    return String(repeating: "0", count: max(0, width - text.count)) + text
  }

  @Test("What languages print of bytes is read, with headings and prompts around it", arguments: languages)
  func spellings(name: String, text: String) throws {
    for text in [text, text + "\n", "=== RECEIVED DATA ===\n>>> frame\n\(text)\n>>> \n", "$ run --fast\r\n\(text)\r\n"]
    {
      let read = try Self.read(text)
      #expect(read.format == .hex, "\(name)")
      #expect(read.bytes == Self.stream, "\(name): \(text.prefix(60))")
      #expect(read.warnings.isEmpty)
    }
  }

  @Test("A dump of one line longer than what is looked at first is read whole", arguments: ["list", "literal", "Node"])
  func long(form: String) throws {
    let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8) }
    let text =
      switch form {
      case "list": "[" + bytes.map { "\($0)" }.joined(separator: ", ") + "]"
      case "literal": "b'" + bytes.map { "\\x" + Self.hex($0) }.joined() + "'"
      default: "<Buffer " + bytes.map(Self.hex).joined(separator: " ") + ">"
      }
    #expect(try Self.read(text).bytes == bytes)
  }

  @Test("A list of two digits each is decimal, unless one of them begins with 0 or has a letter")
  func pairs() throws {
    let decimal = (0..<40).map { 12 + $0 }
    #expect(
      try Self.read("[" + decimal.map(String.init).joined(separator: ", ") + "]").bytes == decimal.map(UInt8.init))
    let pairs = ["01", "00"] + (0..<38).map { "\(20 + $0)" }
    #expect(try Self.read("[" + pairs.joined(separator: ", ") + "]").bytes == pairs.compactMap { UInt8($0, radix: 16) })
  }

  @Test("What a program left out is a warning")
  func cut() throws {
    let read = try Self.read(
      "<Buffer " + Self.stream.prefix(50).map(Self.hex).joined(separator: " ") + " ... 60 more bytes>")
    #expect(read.bytes == Array(Self.stream.prefix(50)))
    #expect(read.warnings == ["the program that printed the bytes has left some out"])
  }

  // MARK: programs

  private static let programs: [(String, [String])] = [
    ("od", []), ("od", ["-t", "x1"]), ("od", ["-A", "x", "-t", "x1"]), ("od", ["-A", "d", "-t", "x1"]), ("od", ["-x"]),
    ("od", ["-b"]), ("od", ["-c"]), ("od", ["-t", "u1"]), ("od", ["-t", "d1"]), ("od", ["-t", "x1z"]), ("od", ["-v"]),
    ("od", ["-A", "x"]), ("od", ["-A", "n", "-t", "x1"]), ("hexdump", []), ("hexdump", ["-C"]), ("xxd", []),
    ("xxd", ["-i"]), ("xxd", ["-p"]), ("xxd", ["-g", "1"]),
  ].filter { ExternalTool.isInstalled($0.0) }

  @Test("What dump programs write is read, with lines around it and of every length", arguments: programs)
  func printed(program: String, arguments: [String]) throws {
    // Without offsets a line that was repeated cannot be counted.
    let whole = arguments.contains("n") ? Self.stream.filter { $0 > 0 } : Self.stream
    for length in [whole.count, whole.count - 1, 111, 64, 32, 17, 16] {
      let bytes = Array(whole[..<length])
      let text = String(decoding: try ExternalTool.run(program, arguments, input: bytes), as: UTF8.self)
      for text in [text, "$ \(program) < frames\n" + text + "$ \n"] {
        let read = try Self.read(text)
        #expect(read.format == .hex)
        #expect(read.bytes == bytes, "\(length) bytes of \(program) \(arguments): \(text.prefix(80))")
      }
    }
  }

  @Test("Text in UTF-16 is read like any")
  func utf16() throws {
    let text = "<Buffer " + Self.stream.map(Self.hex).joined(separator: " ") + ">\r\n"
    var bytes: [UInt8] = [0xff, 0xfe]
    for unit in text.utf16 { bytes += [UInt8(truncatingIfNeeded: unit), UInt8(unit >> 8)] }
    #expect(try Self.read(bytes).bytes == Self.stream)
  }

  @Test(
    "Text that shows no bytes is none",
    arguments: [
      "Dear all,\n\nthe gateway of 10.0.0.5:2195 says 8.\n", #"{"type":"notification","commands":[1,2,3]}"#,
      "a,b\n1,2\n3,4\n5,6\n7,8\n", "CLIENT_RANDOM 00\n", "2015-12-13 10:00:00 8.8.8.8 200 17\n",
    ])
  func noBytes(text: String) throws {
    #expect(try Self.read(text).format == .raw)
  }

  // MARK: packets

  private static func packets(_ file: [UInt8]) throws -> (notes: [String], packets: [[UInt8]], times: [Int64?]) {
    try withFile(file) { path in
      switch try CaptureInput.open(path, options: CaptureOptions()) {
      case .dump: return ([], [], [])
      case .packets(var file):
        var found: [[UInt8]] = []
        var times: [Int64?] = []
        try file.forEachPacket { packet, bytes, _ in
          found.append(Array(copying: bytes))
          times.append(packet.time.isKnown ? packet.time.nanoseconds : nil)
          return true
        }
        return (file.notes, found, times)
      }
    }
  }

  /// An IP packet of 40 bytes and some.
  private static func packet(_ count: Int) -> [UInt8] {
    [0x45, 0, 0, UInt8(40 + count), 0, 1, 0x40, 0, 0x40, 6, 0, 0, 10, 0, 0, 5, 10, 0, 0, 9]
      + [0x9c, 0x41, 8, 0x93, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0] + (0..<count).map { UInt8($0) }
  }

  private static func printed(_ packet: [UInt8], _ start: String, group: Int) -> String {
    stride(from: 0, to: packet.count, by: 16).map { offset in
      let line = packet[offset..<min(offset + 16, packet.count)]
      let groups = stride(from: line.startIndex, to: line.endIndex, by: group).map { index in
        line[index..<min(index + group, line.endIndex)].map(hex).joined()
      }
      let column = line.map { (0x20...0x7e).contains($0) ? String(Unicode.Scalar($0)) : "." }.joined()
      let digits = String(offset, radix: 16)
      let name = String(repeating: "0", count: 4 - digits.count) + digits
      return start.replacing("@", with: name) + groups.joined(separator: " ") + "  " + column + "\n"
    }.joined()
  }

  @Test("Packets that tcpdump prints are read, with their times where these have a date")
  func tcpdump() throws {
    let sent = [Self.packet(0), Self.packet(7), Self.packet(100)]
    let times = ["1450000000.000001", "2015-12-13 09:46:41.5", "10:00:00.000000"]
    var text = "tcpdump: listening on eth0\n"
    for (packet, time) in zip(sent, times) {
      text += "\(time) IP 10.0.0.5.40001 > 10.0.0.9.2195: Flags [P.], length 7\n"
      text += Self.printed(packet, "\t0x@:  ", group: 2)
    }
    let read = try Self.packets(Array((text + "3 packets captured\n").utf8))
    #expect(read.notes == ["is text of tcpdump, of which the packets are read"])
    #expect(read.packets == sent)
    #expect(read.times == [1_450_000_000_000_001_000, 1_450_000_001_500_000_000, nil])
  }

  @Test("Packets that tshark -x prints are read, and what it has put together is none")
  func tshark() throws {
    let ethernet: [UInt8] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]
    let sent = [ethernet + Self.packet(3), ethernet + Self.packet(60)]
    let text =
      Self.printed(sent[0], "@  ", group: 1) + "\nFrame (114 bytes):\n" + Self.printed(sent[1], "@  ", group: 1)
      + "Reassembled TCP (63 bytes):\n" + Self.printed([UInt8](0...62), "@  ", group: 1)
    #expect(try Self.packets(Array(text.utf8)).packets == sent)
  }

  @Test("A dump that shows a capture file is that capture", arguments: ["hex", "base64"])
  func captureInText(form: String) throws {
    let recording = try CaptureFileBytes.pcap([Self.packet(0), Self.packet(9)])
    let text =
      form == "hex"
      ? recording.map(Self.hex).joined() : Data(recording).base64EncodedString(options: .lineLength76Characters)
    #expect(try Self.packets(Array(text.utf8)).packets == [Self.packet(0), Self.packet(9)])
  }

  @Test("A capture behind text is read, and the text is told", arguments: [1, 87, 1_000])
  func textBefore(count: Int) throws {
    let recording = try CaptureFileBytes.pcap([Self.packet(5)])
    let line = Array(String(repeating: "tcpdump: listening on eth0\n", count: 40).utf8.prefix(count))
    let read = try Self.packets(line + recording)
    #expect(read.packets == [Self.packet(5)])
    #expect(read.notes == ["begins with \(count) bytes of text, which were passed over"])
    // Behind more text, or other bytes, it is none.
    #expect(try Self.packets([UInt8](repeating: 0x2e, count: 1_100) + recording).packets.isEmpty)
    #expect(try Self.packets([0] + recording).packets.isEmpty)
  }

  // MARK: both directions

  /// The bytes of each direction in the order in which they stand.
  private static func directions(_ packets: [[UInt8]]) -> (client: [UInt8], server: [UInt8]) {
    var bytes = (client: [UInt8](), server: [UInt8]())
    for packet in packets {
      let data = packet.dropFirst(20 + Int(packet[32] >> 4) * 4)
      if packet[22] == 8, packet[23] == 0x93 { bytes.client += data } else { bytes.server += data }
    }
    return bytes
  }

  @Test("The two directions of tshark's follow are a connection", arguments: ["raw", "hex", "yaml"], [false, true])
  func follow(form: String, startsAtServer: Bool) throws {
    let client = Self.stream
    let server: [UInt8] = [8, 8, 0, 0, 0, 7]
    func block(_ bytes: [UInt8], _ isServer: Bool) -> String {
      // The first end's lines have no tab.
      let tab = isServer != startsAtServer ? "\t" : ""
      if form == "raw" { return tab + bytes.map(Self.hex).joined() + "\n" }
      return stride(from: 0, to: bytes.count, by: 16).map { offset in
        let digits = String(offset, radix: 16, uppercase: true)
        return tab + String(repeating: "0", count: 8 - digits.count) + digits + "  "
          + bytes[offset..<min(offset + 16, bytes.count)].map(Self.hex).joined(separator: " ") + "  ...\n"
      }.joined()
    }
    let ends = startsAtServer ? ["10.0.0.9:2195", "10.0.0.5:40001"] : ["10.0.0.5:40001", "10.0.0.9:2195"]
    let line = String(repeating: "=", count: 67) + "\n"
    var text =
      "\n\(line)Follow: tcp,\(form)\nFilter: tcp.stream eq 0\nNode 0: \(ends[0])\nNode 1: \(ends[1])\n"
      + block(client, false) + block(server, true) + line
    if form == "yaml" {
      func packet(_ bytes: [UInt8], _ isServer: Bool, _ time: String) -> String {
        "  - packet: 4\n    peer: \(isServer != startsAtServer ? 1 : 0)\n    timestamp: \(time)\n    data: !!binary |\n      "
          + Data(bytes).base64EncodedString(options: .lineLength76Characters).replacing("\r\n", with: "\n      ") + "\n"
      }
      text =
        "peers:\n"
        + ends.enumerated().map { number, end in
          let parts = end.split(separator: ":")
          return "  - peer: \(number)\n    host: \(parts[0])\n    port: \(parts[1])\n"
        }.joined()
      text += "packets:\n" + packet(client, false, "1450000000.25") + packet(server, true, "1450000001.000000001")
    }
    let read = try Self.packets(Array(text.utf8))
    #expect(read.notes == ["is text of tshark's follow, of which the packets are read"])
    let directions = Self.directions(read.packets)
    #expect(directions.client == client && directions.server == server)
    #expect(
      Set(read.times.compactMap(\.self))
        == (form == "yaml" ? [1_450_000_000_250_000_000, 1_450_000_001_000_000_001] : []))
  }
}

/// A small pcap of packets that begin with an IP header.
private enum CaptureFileBytes {
  static func pcap(_ packets: [[UInt8]]) throws -> [UInt8] {
    var output = ByteWriter(capacity: 1_024)
    output.write(bigEndian: 0xa1b2_c3d4 as UInt32)
    output.write(bigEndian: 0x0002_0004 as UInt32)
    output.write(bigEndian: 0 as UInt64)
    output.write(bigEndian: 262_144 as UInt32)
    output.write(bigEndian: 101 as UInt32)
    for packet in packets {
      output.write(bigEndian: 1_450_000_000 as UInt32)
      output.write(bigEndian: 0 as UInt32)
      output.write(bigEndian: UInt32(packet.count))
      output.write(bigEndian: UInt32(packet.count))
      output.write(packet.rawBytes)
    }
    return Array(copying: output.bytes)
  }
}
