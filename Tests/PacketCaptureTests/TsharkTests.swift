import Foundation
import TestSupport
import Testing

@testable import PacketCapture

/// tshark reads the same bytes from the project's own recordings.
@Suite(.waiting, .enabled(if: ExternalTool.isInstalled("tshark"))) struct TsharkTests {
  @Test("Tshark follows the same bytes", arguments: OwnTraces.captures) func tsharkFollowsTheSameBytes(capture: String)
    throws
  {
    let path = OwnTraces.folder + "/" + capture
    let contents = try CaptureContents(of: path)
    #expect(contents.streams.violations.isEmpty)
    let count = contents.streams.connections.count
    var ours = contents.streams.connectionsByEnds
    let streams = (0..<min(count, 40)).flatMap { ["-z", "follow,tcp,raw,\($0)"] }
    guard !streams.isEmpty else { return }
    // 2 is how tshark ends after a file that is cut short; what is whole it has read.
    let output = try ExternalTool.run("tshark", ["-n", "-q", "-r", path] + streams, statuses: [0, 2])
    let followed = FollowedStream.all(in: String(decoding: output, as: UTF8.self))
    #expect(followed.count == min(count, 40))
    for stream in followed where stream.first.node != ":0" {
      let ends: Set<String> = [stream.first.node, stream.second.node]
      let connection = try #require(ours[ends]?.first, "no connection between \(ends)")
      ours[ends]?.removeFirst()
      for (node, bytes) in [stream.first, stream.second] {
        #expect(connection.direction(from: node).bytes == bytes, "from \(node)")
      }
    }
  }
}

/// tshark finds the same segments in the same tunnels.
@Suite(.waiting, .enabled(if: ExternalTool.isInstalled("tshark"))) struct TsharkTunnelTests {
  /// What tshark 4.0 does not look into as it is set, or not without a sign of the frame before: none of them is its own
  /// idea of the format.
  private static let unlike: Set<String> = [
    "VXLAN of flannel", "PKTAP of old", "GTP-U, a frame", "WCCP 2", "Ethernet in IPv6", "FRELAY of Cisco",
    "AVS under Prism", "Ethernet over MPLS", "Ethernet over MPLS, control word", "Ethernet over MPLS, address like IP",
    "ERSPAN III, IP", "bridged", "C_HDLC, PPP", "FabricPath", "SLL of a GRE interface", "PFLOG of FreeBSD",
    "PKTAP of a big-endian host", "SLIP",
  ]

  @Test("Tshark finds the same segments in tunnels") func sameSegments() throws {
    var builder = PcapngBuilder()
    var interfaces: [LinkType] = []
    let packets = TunnelTests.packets.filter { !Self.unlike.contains($0.0) }
    for (_, linkType, bytes) in packets {
      let place = interfaces.firstIndex(of: linkType) ?? interfaces.count
      if place == interfaces.count {
        builder.interface(linkType.rawValue)
        interfaces.append(linkType)
      }
      builder.enhanced(bytes, interface: UInt32(place))
    }
    let output = try ExternalTool.run(
      "tshark",
      [
        "-n", "-r", "-", "-T", "fields", "-E", "occurrence=l", "-e", "tcp.srcport", "-e", "tcp.dstport", "-e",
        "tcp.len",
      ],
      input: builder.bytes)
    let lines = String(decoding: output, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
    for (packet, line) in zip(packets, lines) { #expect(line == "50000\t2195\t12", "\(packet.0)") }
    #expect(lines.count == packets.count + 1)
  }
}

/// The captures that come with the project.
enum OwnTraces {
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Traces").path

  static let captures: [String] = {
    let files = FileManager.default.enumerator(atPath: folder)?.allObjects as? [String] ?? []
    return files.filter { $0.contains(".pcap") && ![".jsonl", ".md", ".keys"].contains(where: $0.hasSuffix) }.sorted()
  }()
}
