import Bytes
import Foundation
import TestSupport
import Testing

@testable import PacketCapture

@Suite("A capture on a pipe, block by block")
struct BlockStreamTests {
  private static let names = ["plain-error.pcap", "plain-error.pcapng", "ipv6-unknown-port.pcap"]

  private func contents(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: Folder.traces.appending(path: name)))
  }

  private func blocks(
    _ bytes: [UInt8], inPiecesOf count: Int
  ) throws -> [(kind: BlockStream.Kind, bytes: [UInt8])] {
    var stream = BlockStream(maximumBlockLength: 1 << 20)
    var blocks: [(kind: BlockStream.Kind, bytes: [UInt8])] = []
    for start in stride(from: 0, to: bytes.count, by: count) {
      try stream.take(bytes.rawBytes.extracting(start..<min(start + count, bytes.count))) { kind, block in
        blocks.append((kind, Array(copying: block)))
      }
    }
    #expect(stream.pendingBytes == 0)
    return blocks
  }

  private func packets(_ bytes: [UInt8]) throws -> [(packet: Packet, bytes: [UInt8])] {
    try withTemporaryFile(bytes) { path in
      var packets: [(packet: Packet, bytes: [UInt8])] = []
      guard var file = try CaptureInput.openCapture(path, options: CaptureOptions()) else { return [] }
      try file.forEachPacket { packet, bytes, _ in
        packets.append((packet, Array(copying: bytes)))
        return true
      }
      #expect(file.warnings == [])
      return packets
    }
  }

  @Test("Pieces of any length give the same blocks, which hold the same packets", arguments: names)
  func pieces(name: String) throws {
    let bytes = try contents(name)
    let whole = try blocks(bytes, inPiecesOf: bytes.count)
    #expect(whole[0].kind == .section)
    #expect(whole.contains { $0.kind == .interface })
    for count in [1, 7, 60, 1_000] {
      let cut = try blocks(bytes, inPiecesOf: count)
      #expect(cut.map(\.bytes) == whole.map(\.bytes) && cut.map(\.kind) == whole.map(\.kind))
    }
    let (before, after) = (try packets(bytes), try packets(whole.flatMap(\.bytes)))
    #expect(after.count == before.count && whole.count { $0.kind == .packet } == before.count)
    for (one, other) in zip(before, after) {
      #expect(one.bytes == other.bytes && one.packet.time == other.packet.time)
      #expect(one.packet.originalLength == other.packet.originalLength)
      #expect(one.packet.linkType == other.packet.linkType)
    }
  }

  @Test("Any part of the packet blocks after the header is a capture of its own")
  func part() throws {
    let blocks = try blocks(contents("plain-error.pcap"), inPiecesOf: 4_096)
    let header = blocks.prefix { $0.kind != .packet }.flatMap(\.bytes)
    let part = blocks.filter { $0.kind == .packet }[10..<40]
    #expect(try packets(header + part.flatMap(\.bytes)).count == 30)
  }

  @Test("Secrets in a block are those of the key log", arguments: [0, 1, 2, 3, 4])
  func secrets(more: Int) throws {
    let lines = Array("CLIENT_RANDOM 00 11\n".utf8) + [UInt8](repeating: 0x0a, count: more)
    let capture = try contents("plain-error.pcapng") + PcapngBlock.secrets(lines)
    try withTemporaryFile(capture) { path in
      let secrets = CaptureFile.secrets(in: path, options: CaptureOptions())
      #expect(secrets.map(\.data) == [lines] && secrets.map(\.type) == [DecryptionSecrets.tlsKeyLog])
    }
  }

  @Test("Bytes of other formats and impossible lengths end it")
  func damage() throws {
    #expect(throws: CaptureError.self) { _ = try blocks([UInt8](repeating: 0x20, count: 100), inPiecesOf: 10) }
    var bytes = try contents("plain-error.pcapng")
    for length: [UInt8] in [[0, 0, 0, 0], [13, 0, 0, 0], [0xff, 0xff, 0xff, 0x7f]] {
      bytes.replaceSubrange(4..<8, with: length)
      #expect(throws: CaptureError.self) { _ = try blocks(bytes, inPiecesOf: 64) }
    }
    var pcap = try contents("plain-error.pcap")
    pcap.replaceSubrange(32..<36, with: [0xff, 0xff, 0xff, 0x7f])
    #expect(throws: CaptureError.self) { _ = try blocks(pcap, inPiecesOf: 64) }
  }
}
