import Foundation
import TestSupport
import Testing

/// A reader of the output that goes away while a large recording is still read.
@Suite("closed pipe", .waiting)
struct ClosedPipeTests {
  /// Half a megabyte is read at a time, and four of that ahead: one recording that has been read to its end when the pipe
  /// closes, while most of it waits to be decoded, and one that has not.
  private static let lengths = [1_500_000, 4_000_000]

  /// A recording like the trace that goes on for long: its connections over and over, each time from other ports.
  private func lengthen(_ trace: String, to length: Int, as name: String, in command: Command) throws {
    let file = [UInt8](try Data(contentsOf: Command.traces.appending(path: trace)))
    var long = Array(file.prefix(24))
    var round = 0
    while long.count < length {
      var packet = 24
      while packet < file.count {
        // In a packet's header, the third of four numbers is its length.
        let end = packet + 16 + Int(file[packet + 8]) + Int(file[packet + 9]) << 8
        var bytes = Array(file[packet..<end])
        // Behind Ethernet's header and that of IPv4 stand the ports; that of the server is 2195.
        let ports = 16 + 14 + 4 * Int(bytes[30] & 15)
        for place in [ports, ports + 2] where Int(bytes[place]) << 8 + Int(bytes[place + 1]) != 2195 {
          (bytes[place], bytes[place + 1]) = (0x80 + UInt8(round >> 8), UInt8(round & 255))
        }
        long += bytes
        packet = end
      }
      round += 1
    }
    try command.write(long, name)
  }

  @Test(
    "A pipe that closes early is a success, each time", arguments: ["jsonl", "csv", "table"],
    ["plain-error.pcap", "tls-gateway.pcap"])
  func closedPipe(format: String, trace: String) throws {
    try Command.inFolder { command in
      for length in Self.lengths { try lengthen(trace, to: length, as: "\(length).pcap", in: command) }
      var keys = ""
      if trace.hasPrefix("tls") {
        try command.trace("\(trace).keys")
        keys = "--keys \(trace).keys"
      }
      let times = TestRun.isWhole ? 8 : 3
      let outcome = try command.shell(
        """
        for i in $(seq \(times)); do
          for file in *.pcap; do
            "$apnscope" decode --format \(format) \(keys) $file | head -n 1 > first
            echo "${PIPESTATUS[0]} $(wc -l < first)"
          done
        done | sort | uniq -c
        """)
      #expect(outcome.errors == "")
      #expect(outcome.lines.map { $0.trimmingCharacters(in: .whitespaces) } == ["\(times * Self.lengths.count) 0 1"])
    }
  }
}
