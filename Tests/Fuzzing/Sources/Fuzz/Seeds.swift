import BinaryProtocol
import Bytes
import Dissection
import Glibc
import PacketCapture
import Payload
import PushModel
import Records

/// Longest seed: libFuzzer is fast with short inputs.
private let longest = 16_384

/// Makes `directory/TARGET/…` from recordings: the files themselves, their packets, and the frames found in them.
func writeSeeds(from paths: [String], to directory: String) {
  mkdir(directory, 0o755)
  for target in Fuzz.targets.keys { mkdir("\(directory)/\(target)", 0o755) }
  var number = 0
  func save(_ target: String, _ bytes: [UInt8]) {
    number += 1
    guard let file = fopen("\(directory)/\(target)/seed-\(number)", "w") else { return }
    fwrite(bytes, 1, min(bytes.count, longest), file)
    fclose(file)
  }
  let openings = [
    "CONNECT a:2195 HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2195\r\n", "220 a\r\n",
    "STARTTLS\r\n", "\u{5}\u{1}\u{0}", "\u{5}\u{0}", "\u{4}\u{1}\u{8}\u{13}\u{a}\u{0}\u{0}\u{9}\u{0}",
  ]
  for opening in openings { save("preamble", [31, UInt8(opening.utf8.count) << 1] + Array(opening.utf8)) }
  for seed in providerSeeds() + serverSeeds() + messageSeeds() { save(seed.target, seed.bytes) }
  for form in 0..<16 as Range<UInt8> { save("pasted", [0x80 | form] + Array("\0\u{1}\u{2}{}\"'\\\n".utf8) + (0..<60)) }
  for text in [
    "\t0x0000:  4500 0028 0001 4000\n", "Follow: tcp,raw\nNode 0: 1.2.3.4:5\nNode 1: 1.2.3.4:2195\n0100\n\t0808\n",
    "peers:\n  - peer: 0\n    host: ::1\n    port: 5\n  - peer: 1\n    host: ::1\n    port: 2195\npackets:\n"
      + "  - packet: 4\n    peer: 0\n    data: !!binary |\n      AQAA\n",
  ] { save("pasted", [0] + Array(text.utf8)) }
  for path in paths {
    guard let contents = contents(of: path), let (packets, format) = packets(of: path) else { continue }
    var sink = LawSink()
    sink.collected = []
    let shared = SharedSink(sink)
    var dissection = Dissection(into: shared, options: DissectionOptions())
    if let input = try? CaptureInput.open(path, options: CaptureOptions()) {
      _ = try? dissection.read(input, source: path) { _ in true }
    }
    let frames = (shared.sink.collected ?? []).prefix(200)
    if let keyLog = keyLog(beside: path) {
      for seed in tlsSeeds(packets, keyLog: keyLog) { save("tls", seed) }
      save("keylog", [0] + keyLog)
      save("keylog", [3] + keyLog + keyLog)
    }
    // Even and odd lengths, for usual and narrow limits.
    if format == .pcap || format == .pcapng || format == .snoop {
      save(format == .pcapng ? "pcapng" : "pcap", contents)
      save(format == .pcapng ? "pcapng" : "pcap", contents + [0])
      if format != .snoop { save("blocks", [100] + contents) }
      if let linkType = packets.first?.linkType, let choice = linkTypeChoice(linkType) {
        for narrow in [UInt8(0), 0x40] {
          var script = [choice | narrow]
          for packet in packets.prefix(60) {
            script += [UInt8(packet.bytes.count >> 8 & 0x7f), UInt8(packet.bytes.count & 255)] + packet.bytes
          }
          save("packet", script)
        }
      }
      for packet in packets.prefix(4) { for seed in layerSeeds(packet.linkType, packet.bytes) { save("layers", seed) } }
    } else {
      for choice in 0..<4 { save("dump", [UInt8(choice)] + contents) }
    }
    for frame in frames.prefix(20) { save("frame", frame) }
    let stream = Array(frames.joined())
    guard !stream.isEmpty else { continue }
    save("frame", stream)
    save("redaction", stream)
    // Usual rules at once and in pieces; a shutdown after three; every third refused; narrow limits; no topic.
    for script: [UInt8] in [
      [0, 0, 0, 1, 200], [3, 4, 0, 2, 1], [4, 0, 3, 7, 4], [33, 0, 0, 3, 0], [64, 0, 0, 5, 200], [31, 9, 7, 255, 2],
    ] {
      save("gateway", script + stream)
      save("gateway", script + stream + [9, 9, 9])
    }
    // Two files, and all of one of them late.
    for choice: UInt8 in [1, 5, 7, 0x15, 0x2d] {
      var script = [choice, 0x40, 1, 0x44, 1]
      for (index, frame) in frames.prefix(20).enumerated() {
        for piece in stride(from: 0, to: frame.count, by: 40) {
          script += [0x20 | UInt8(index & 1), UInt8(truncatingIfNeeded: index % 3 == 2 ? -9 : 6)]
          script += frame[piece..<min(piece + 40, frame.count)]
          script += [UInt8](repeating: 0, count: max(0, piece + 40 - frame.count))
        }
      }
      save("recording", script + [0x14, 5, 8, 8, 0, 0, 0, 1])
    }
    save("dump", [0] + stream)
    save("dump", [1] + Array(stream.map { hex($0) }.joined().utf8))
    for choice in [UInt8(8), 0, 4, 9] {
      var script = [choice]
      for frame in frames.prefix(40) { script += [4, UInt8(min(255, max(0, frame.count - 1)))] + frame.prefix(256) }
      script += [5, 5, 8, 8, 0, 0, 0, 1]
      save("stream", script)
    }
    for frame in frames.prefix(10) {
      var position = 0
      if let notification = try? Push(parsing: frame.rawBytes, at: &position) {
        save("json", Array(copying: notification.payload))
        for choice in [UInt8(0), 0x1b, 0x7f] { save("payload", [choice] + Array(copying: notification.payload)) }
      }
    }
  }
  for rule in PayloadRule.allCases {
    for number in 0..<3 {
      save("payload", [UInt8(number * 37)] + FaultyPush(breaking: rule, number: UInt64(number)).payload)
    }
  }
  for text in ["{}", "[1,-0.5e+7,true,false,null]", "\"a\\u00e9\\n\"", " {\"a\" : [ {} ] } "] {
    save("json", Array(text.utf8))
  }
  // Commands 0, 1 and 2; a silent payload; an overrun behind an identifier; pushy's closing frame.
  let token = [UInt8](repeating: 7, count: 32)
  let silent = Array(#"{"aps":{"content\u002davailable":1}}"#.utf8)
  let simple = [0, 0, 32] + token + [0, 2, 0x7b, 0x7d]
  let enhanced = [1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 32] + token + [0, UInt8(silent.count)] + silent
  let overrun: [UInt8] = [2, 0, 0, 0, 11, 3, 0, 4, 0, 0, 0, 8, 1, 0, 32, 7]
  let closing: [UInt8] = [
    2, 0, 0, 0, 24, 1, 0, 0, 2, 0, 0, 3, 0, 4, 0, 0, 0, 7, 4, 0, 4, 0, 0, 0, 0, 5, 0, 1, 10,
  ]
  for frame in [simple, enhanced, overrun, closing] {
    save("gateway", [0, 0, 0, 2, 200] + simple + frame + simple + enhanced)
    save("gateway", [11, 0, 0, 3, 1] + frame + frame)
    save("frame", frame)
  }
  for seed in sealedSeeds() { save("tls", seed) }
  for choice: UInt8 in [0, 3] { save("keylog", [choice] + keyLogOfEveryLabel()) }
  let tuple: [UInt8] = [0x56, 0x0f, 0x3a, 0x80, 0, 32] + Array(1...32)
  save("feedback", tuple + tuple)
  save("dump", [3] + tuple + tuple)
  save("stream", [10, 5, 75] + tuple + tuple)
  save("responses", [8, 8, 0, 0, 0, 7, 8, 10, 0, 0, 0, 9])
  save("dump", [2, 8, 8, 0, 0, 0, 7])
  save("dump", [1] + Array("00000000: 0200 0000 00ff 0200  ........\n*\n00000020: 0000 00\n".utf8))
  save("dump", [1] + Array("00000000  02 00 00 00 00 02 00 00  00 00 |..|\n*\n00000040\n".utf8))
  // SYN, SYN-ACK, data of both sides, a gap, a retransmission, FINs.
  save("segments", [0, 4, 2, 0, 0, 18, 0, 4, 16, 40, 0, 16, 30, 0x14, 16, 20, 0, 60, 4, 16, 50, 4, 17, 0, 0, 17, 0])
  save("segments", [1, 4, 16, 40, 0x14, 16, 40, 0, 90, 0x24, 16, 9, 0, 200, 0, 20, 0, 0x84, 16, 9, 99])
}

/// A packet as it is, and, if it is a frame, that in tunnels: one of each kind, and all in one another.
private func layerSeeds(_ linkType: LinkType, _ bytes: [UInt8]) -> [[UInt8]] {
  func script(_ linkType: LinkType, _ packet: [UInt8]) -> [UInt8] {
    let (type, count) = (linkType.rawValue, packet.count)
    return [16, UInt8(type >> 8 & 0x7f), UInt8(type & 255), UInt8(count >> 8 & 0x7f), UInt8(count & 255)] + packet
  }
  guard linkType == .ethernet, bytes.count < 2_000 else { return [script(linkType, bytes)] }
  func outer(_ payload: [UInt8], _ transport: UInt8) -> [UInt8] {
    let length = 20 + payload.count
    return [UInt8](repeating: 2, count: 12) + [
      8, 0, 0x45, 0, UInt8(length >> 8 & 255), UInt8(length & 255), 0, 0, 0, 0,
    ]
      + [64, transport, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2] + payload
  }
  func udp(_ payload: [UInt8], _ port: UInt16) -> [UInt8] {
    outer([0xc0, 0, UInt8(port >> 8), UInt8(port & 255), 0, 0, 0, 0] + payload, 17)
  }
  let tunnels: [([UInt8]) -> [UInt8]] = [
    { udp([8, 0, 0, 0, 0, 0, 1, 0] + $0, 4_789) }, { udp([12, 0, 0, 3, 0, 0, 1, 0] + $0, 4_790) },
    { udp([1, 0, 0x65, 0x58, 0, 0, 1, 0, 1, 2, 3, 0] + $0, 6_081) },
    { outer([0x20, 0, 0x65, 0x58, 0, 0, 0, 1] + $0, 47) },
    { outer([0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 5, 0, 0, 0, 0] + $0, 47) },
    { outer([0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0] + $0, 47) },
    { outer(Array($0.dropFirst(14)), 4) }, { outer(Array($0.dropFirst(14)), 41) },
    { udp([0x34, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0] + $0.dropFirst(14), 2_152) },
    { udp([1, 0, 0, 1, 1] + $0, 37_008) }, { outer([0x30, 0] + $0, 97) },
    { $0.prefix(12) + [0x88, 0xe7, 0, 0, 0, 1] + $0 }, { $0.prefix(12) + [0x88, 0x47, 0, 1, 1, 64] + $0 },
    { $0.prefix(12) + [0x89, 0x3f, 0, 1, 0, 2, 0, 0] + $0.dropFirst(12) },
    { $0.prefix(12) + [0x89, 0x26, 0, 1, 0, 2] + $0.dropFirst(12) },
  ]
  let all = tunnels.reduce(bytes) { $1($0) }
  let radiotap: [UInt8] = [0, 0, 9, 0, 2, 0, 0, 0, 0, 0x88, 1] + [UInt8](repeating: 0, count: 24)
  return [script(linkType, bytes), script(linkType, all)] + tunnels.map { script(linkType, $0(bytes)) } + [
    script(LinkType(rawValue: 127), radiotap + [0xaa, 0xaa, 3, 0, 0, 0] + bytes.dropFirst(12)),
    script(LinkType(rawValue: 258), [12, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0] + bytes),
  ]
}

/// The key log of a capture `NAME.pcap` is `NAME.keys`.
private func keyLog(beside path: String) -> [UInt8]? {
  path.lastIndex(of: ".").flatMap { contents(of: path[..<$0] + ".keys") }
}

private func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }

private func contents(of path: String) -> [UInt8]? {
  guard let file = fopen(path, "r") else { return nil }
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: longest)
  let count = fread(&bytes, 1, bytes.count, file)
  return Array(bytes.prefix(count))
}

private func packets(of path: String) -> (packets: [(linkType: LinkType, bytes: [UInt8])], format: CaptureFormat)? {
  var packets: [(linkType: LinkType, bytes: [UInt8])] = []
  guard let input = try? CaptureInput.open(path, options: CaptureOptions()) else { return nil }
  switch consume input {
  case .dump(let dump): return ([], dump.format)
  case .packets(var file):
    try? file.forEachPacket { packet, bytes, _ in
      packets.append((packet.linkType, Array(copying: bytes)))
      return packets.count < 200
    }
    return (packets, file.format)
  }
}
