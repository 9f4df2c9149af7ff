import Foundation
import TestSupport
import Testing

/// Recordings of mirrored traffic: what is inside of tunnels is decoded, and what is not read is named.
@Suite("Tunnels", .waiting)
struct TunnelCommandTests {
  /// A pcap file whose packets are changed one by one; none changes the file's order.
  private struct Capture {
    private let header: [UInt8]
    private var records: [(head: [UInt8], packet: [UInt8])] = []

    init(_ trace: String) throws {
      let bytes = [UInt8](try Data(contentsOf: Command.traces.appending(path: trace)))
      header = Array(bytes.prefix(24))
      var offset = 24
      while offset + 16 <= bytes.count {
        let length = Int(bytes[offset + 8]) | Int(bytes[offset + 9]) << 8 | Int(bytes[offset + 10]) << 16
        records.append((Array(bytes[offset..<offset + 8]), Array(bytes[offset + 16..<offset + 16 + length])))
        offset += 16 + length
      }
    }

    var count: Int { records.count }

    /// The file with the packets that each becomes, behind a header for the link type.
    func bytes(linkType: UInt8 = 1, _ change: ([UInt8]) -> [[UInt8]]) -> [UInt8] {
      var file = Array(header.prefix(20)) + [linkType, 0, 0, 0]
      for record in records {
        for packet in change(record.packet) {
          let length = [UInt8(packet.count & 255), UInt8(packet.count >> 8 & 255), 0, 0]
          file += record.head + length + length + packet
        }
      }
      return file
    }
  }

  private static func u16(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 255), UInt8(value & 255)] }

  /// A packet of IPv4 from tunnel end to tunnel end, in a frame.
  private static func outer(_ payload: [UInt8], _ transport: UInt8) -> [UInt8] {
    [UInt8](repeating: 2, count: 12) + [8, 0, 0x45, 0] + u16(20 + payload.count) + [0, 0, 0, 0, 64, transport, 0, 0]
      + [172, 31, 1, 4, 172, 31, 9, 9] + payload
  }

  private static func vxlan(_ frame: [UInt8], to port: Int = 4_789) -> [UInt8] {
    outer(u16(49_152) + u16(port) + u16(16 + frame.count) + [0, 0, 8, 0, 0, 0, 0, 0, 9, 0] + frame, 17)
  }

  private func records(_ output: String) -> [String] {
    // Without what tells of the file itself.
    output.split(separator: "\n").filter { !$0.contains(#""type":"capture""#) && !$0.contains(#""type":"summary""#) }
      .map(String.init)
  }

  @Test("A mirrored recording has the records of the original") func inside() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap", as: "a.pcap")
      let plain = try command.run("decode", "a.pcap")
      let capture = try Capture("plain-error.pcap")
      try command.write(capture.bytes { [Self.vxlan($0)] }, "vxlan.pcap")
      try command.write(
        capture.bytes { [Self.outer([0x30, 0, 0x65, 0x58, 0, 0, 0, 1, 0, 0, 0, 2] + $0, 47)] }, "gre.pcap")
      try command.write(capture.bytes { [Self.vxlan($0, to: 5_000)] }, "port.pcap")
      try command.write(capture.bytes { [Self.vxlan(Self.vxlan(Self.vxlan($0)))] }, "deep.pcap")
      for arguments in [
        ["vxlan.pcap"], ["gre.pcap"], ["--vxlan-port", "5000", "port.pcap"], ["deep.pcap"],
        ["--max-encapsulation", "3", "deep.pcap"],
      ] {
        let outcome = try command.run(["decode"] + arguments)
        #expect(outcome.status == 0 && outcome.errors == "")
        #expect(records(outcome.output) == records(plain.output), "\(arguments)")
      }
    }
  }

  @Test("A copy of each packet changes no count and no outcome") func twice() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap", as: "a.pcap")
      let capture = try Capture("plain-error.pcap")
      try command.write(capture.bytes { [$0, Self.vxlan($0)] }, "beside.pcap")
      try command.write(capture.bytes { [$0, $0] }, "twice.pcap")
      func connections(_ file: String) throws -> NSArray {
        let report = try JSONSerialization.jsonObject(
          with: Data(try command.run("inspect", "--format", "json", file).output.utf8))
        return try #require((report as? NSDictionary)?["connections"] as? NSArray)
      }
      let expected = try connections("a.pcap")
      #expect(expected.count == 2)
      let stories = try command.run("follow", "a.pcap").output.split(separator: "\n").filter {
        $0.contains(#""story""#)
      }
      for file in ["beside.pcap", "twice.pcap"] {
        #expect(try connections(file) == expected)
        let told = try command.run("follow", file).output.split(separator: "\n").filter { $0.contains(#""story""#) }
        #expect(told.count == stories.count)
      }
    }
  }

  @Test("What is not read is named with its count, first packet, name, number and a way out") func unread() throws {
    try Command.inFolder { command in
      let capture = try Capture("plain-error.pcap")
      try command.write(capture.bytes { [Self.outer([1, 2, 3, 4] + $0, 50)] }, "esp.pcap")
      try command.write(capture.bytes { [Self.vxlan($0, to: 5_000)] }, "port.pcap")
      try command.write(capture.bytes(linkType: 189) { [$0] }, "usb.pcap")
      try command.write(capture.bytes { [Self.vxlan(Self.vxlan($0))] }, "deep.pcap")
      try command.write(capture.bytes { _ in [Self.outer(Self.u16(9) + Self.u16(53) + [0, 8, 0, 0], 17)] }, "udp.pcap")
      try command.write(capture.bytes { [$0, Self.outer([1, 2, 3, 4] + $0, 50)] }, "both.pcap")
      let all =
        "no notifications or feedback found: 146 of the 146 packets are not read: 146 packets, from packet 1 on: "
      for (arguments, text) in [
        (["esp.pcap"], all + "ESP (IP protocol 50); record behind IPsec, or let Wireshark decrypt it"),
        (["port.pcap"], all + "UDP in the form of VXLAN (UDP port 5000); --vxlan-port 5000 reads it"),
        (["usb.pcap"], all + "USB_LINUX (link type 189); record the network interface"),
        (
          ["--max-encapsulation", "1", "deep.pcap"],
          all + "packets in more tunnels than are looked into; --max-encapsulation looks into more"
        ),
        (
          ["udp.pcap"],
          "no notifications or feedback found: none of the 146 packets belongs to a TCP connection: 146 packets, "
            + "from packet 1 on: UDP (IP protocol 17)"
        ),
      ] {
        let outcome = try command.run(["inspect"] + arguments)
        #expect(outcome.status == 0)
        #expect(outcome.output.contains(text), "\(outcome.output)")
        let file = arguments.last ?? ""
        let warns = file != "udp.pcap"
        #expect(outcome.errors.contains("\(file): 146 of 146 packets are not read: ") == warns, "\(outcome.errors)")
        // And so from its records.
        #expect(try command.shell("$apnscope decode \(arguments.joined(separator: " ")) > a.jsonl").status == 0)
        #expect(try command.shell("$apnscope report a.jsonl --output out").status == 0)
        let page = try command.read("out/report.md").replacingOccurrences(of: #"\_"#, with: "_")
        #expect(page.contains(text.split(separator: "; ")[0]))
      }
      // Beside what is read it is a finding.
      let both = try command.run("inspect", "both.pcap")
      #expect(both.output.contains("146 of the 292 packets are not read: 146 packets, from packet 2 on: ESP"))
    }
  }
}
