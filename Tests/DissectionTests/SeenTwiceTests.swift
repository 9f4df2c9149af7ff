import BinaryProtocol
import Bytes
import Foundation
import Measurement
import PacketCapture
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

/// What a host records on several interfaces: each packet twice, with the client's address before and after translation.
@Suite("Connections that were captured twice")
struct SeenTwiceTests {
  /// A packet of a pcap file, little-endian, with Ethernet and IPv4.
  private struct TracePacket {
    var header: [UInt8]
    var bytes: [UInt8]

    func address(at offset: Int) -> [UInt8] { Array(bytes[offset..<offset + 4]) }
    var source: [UInt8] { address(at: 26) }
    var target: [UInt8] { address(at: 30) }

    func translated(_ address: [UInt8], to other: [UInt8]) -> TracePacket {
      var packet = self
      if source == address { packet.bytes.replaceSubrange(26..<30, with: other) }
      if target == address { packet.bytes.replaceSubrange(30..<34, with: other) }
      return packet
    }
  }

  private static let names = [
    "feedback-clear.pcap", "known-bad-and-errors.pcap", "plain-error.pcap", "shuffled-duplicated.pcap",
    "snap-length-120.pcap", "tls-feedback.pcap", "tls-gateway.pcap", "tls-gcm-loss.pcap", "tls-mid-session.pcap",
    "tls-refused-certificate.pcap", "tls-rsa-cbc.pcap", "tls-split-error.pcap", "tls-without-keys.pcap",
    "tls10-loss.pcap", "tls10.pcap", "tls13-loss.pcap", "tls13-mid-session.pcap", "tls13.pcap",
  ]

  private static func packets(_ file: [UInt8]) -> [TracePacket] {
    var packets: [TracePacket] = []
    var offset = 24
    while offset + 16 <= file.count {
      let length = Int(file.rawBytes.uint32(at: offset + 8, bigEndian: false))
      packets.append(
        TracePacket(
          header: Array(file[offset..<offset + 16]), bytes: Array(file[offset + 16..<offset + 16 + length])))
      offset += 16 + length
    }
    return packets
  }

  /// Records without what counts packets, and without the other addresses, in an order that does not depend on them.
  private static func comparable(_ lines: String) throws -> [String] {
    try lines.split(separator: "\n").map { line in
      var record = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      for name in ["packet", "packets", "also_seen_as", "client"] { record[name] = nil }
      return String(decoding: try JSONSerialization.data(withJSONObject: record, options: .sortedKeys), as: UTF8.self)
    }.sorted()
  }

  @Test("A trace that was also recorded behind NAT has the records of one that was not", arguments: some(8, of: names))
  func everyTrace(name: String) throws {
    let path = Folder.traces.appending(path: name)
    let file = [UInt8](try Data(contentsOf: path))
    let packets = Self.packets(file)
    let client = packets[0].source
    // Below and above the server's address, so that both orders of the two ends occur.
    for other in [[1, 2, 3, 4], [250, 2, 3, 4]] as [[UInt8]] {
      var bytes = Array(file[..<24])
      for packet in packets {
        let copy = packet.translated(client, to: other)
        for packet in packet.source == client ? [packet, copy] : [copy, packet] {
          bytes += packet.header + packet.bytes
        }
      }
      try withTemporaryFile(bytes) { twice in
        let keys = path.path + ".keys"
        if FileManager.default.fileExists(atPath: keys) {
          try FileManager.default.copyItem(atPath: keys, toPath: twice + ".keys")
        }
        defer { try? FileManager.default.removeItem(atPath: twice + ".keys") }
        let expected = try Self.comparable(try decodedLines(path.path, source: name))
        for threads in [1, 3] {
          var options = DissectionOptions()
          options.threads = .exactly(threads)
          let found = try Self.comparable(try decodedLines(twice, source: name, options))
          #expect(found == expected)
        }
        let seen = try dissect(twice)
        #expect(seen.connections.allSatisfy { $0.alsoSeenAs.count == 1 })
      }
    }
  }

  @Test("Both addresses are named in records, on the screen and in a finding, and survive a way through records")
  func named() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for index in 1...3 as ClosedRange<UInt32> { capture.client(line, push(index, device: UInt8(index))) }
    capture.server(line, refusal(8, 3))
    capture.finish(line, byServer: true)
    let once = try capture.inspected()
    let bytes = capture.twice(from: [10, 0, 0, 5], as: [172, 17, 0, 2])
    try withTemporaryFile(bytes) { path in
      let seen = try dissect(path)
      let ends = seen.connections.map(\.alsoSeenAs)
      #expect(ends.count == 1 && ends[0].map { "\($0.client)>\($0.server)" } == ["172.17.0.2:40001>10.0.0.9:2195"])
      #expect(seen.connections.map { $0.client?.description } == ["10.0.0.5:40001"])
      let shared = SharedSink(Inspection())
      var dissection = Dissection(into: shared, options: DissectionOptions())
      _ = try dissection.read(.open(path, options: CaptureOptions()), source: path) { _ in true }
      dissection.finish()
      let report = shared.sink.finish()
      #expect(report.connections.map(\.alsoSeenAs) == [[.init(client: "172.17.0.2:40001", server: "10.0.0.9:2195")]])
      let finding = try #require(report.findings.first { $0.kind == .seenTwice })
      #expect(finding.count == 1 && finding.text.contains("counts once"))
      #expect(!report.findings.contains { $0.kind == .acceptedTwice })
      #expect(report.fates == once.fates && report.summary.connections == 1)
      let lines = try decodedLines(path, source: "a")
      #expect(lines.contains(#""also_seen_as":[{"client":"172.17.0.2:40001","server":"10.0.0.9:2195"}]"#))
    }
  }

  @Test("What was sent on two connections with other numbers stays sent twice, and says what it may be")
  func balancer() throws {
    var capture = CaptureBuilder()
    for port in [40_001, 40_002] as [UInt16] {
      let line = capture.connect(from: port)
      capture.client(line, push(1, device: 1) + push(2, device: 2))
      capture.server(line, refusal(8, 2))
      capture.finish(line, byServer: true)
    }
    let report = try capture.inspected()
    let finding = try #require(report.findings.first { $0.kind == .acceptedTwice })
    #expect(finding.text.contains("sent twice, or recorded on both sides of a balancer"))
    #expect(!report.findings.contains { $0.kind == .seenTwice } && report.summary.connections == 2)
  }
}

extension CaptureBuilder {
  /// The file with a copy of each packet in which an address is another.
  fileprivate func twice(from address: [UInt8], as other: [UInt8]) -> [UInt8] {
    var file = Array(bytes[..<24])
    var offset = 24
    while offset < bytes.count {
      let length = Int(bytes.rawBytes.uint32(at: offset + 8))
      let packet = Array(bytes[offset..<offset + 16 + length])
      var copy = packet
      for place in [28, 32] where Array(packet[place..<place + 4]) == address {
        copy.replaceSubrange(place..<place + 4, with: other)
      }
      file += packet + copy
      offset += 16 + length
    }
    return file
  }
}
