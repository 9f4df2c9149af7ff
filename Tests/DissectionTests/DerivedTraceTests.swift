import BinaryProtocol
import PacketCapture
import Testing

/// A derived trace must agree with what it was derived from, which the truth vouches for.
@Suite("Derived traces")
struct DerivedTraceTests {
  private func seen(_ trace: String) throws -> Collector { try dissect(Folder.traces.appending(path: trace).path) }

  private func contents(_ trace: String) throws -> [SeenNotification] { try seen(trace).notifications.map(\.content) }

  @Test("Another byte order and finer times change nothing else") func bigEndian() throws {
    let (base, derived) = (try seen("any-device-sll2.pcap"), try seen("big-endian-nanoseconds.pcap"))
    #expect(derived.notifications.map(\.content) == base.notifications.map(\.content))
    #expect(derived.notifications.map(\.packet) == base.notifications.map(\.packet))
    for (a, b) in zip(base.notifications, derived.notifications) {
      // Seven nanoseconds for every packet before it were added.
      #expect(b.time.nanoseconds - a.time.nanoseconds == Int64(7 * (a.packet - 1)))
    }
  }

  @Test("A file cut in a packet has everything before the cut") func cut() throws {
    let (base, derived) = (try seen("plain-error.pcap"), try seen("cut-in-packet.pcap"))
    let packets = try #require(derived.outcomes.first).packets
    #expect(derived.notifications == base.notifications.filter { $0.packet <= packets })
    #expect(derived.notifications.count == 16)
    #expect(derived.outcomes[0].warnings.count == 1)
    #expect(derived.connections.map(\.end) == [.captureEnd])
  }

  @Test("Order and copies of packets do not matter") func disorder() throws {
    let (base, derived) = (try seen("plain-error.pcap"), try seen("shuffled-duplicated.pcap"))
    // The two connections overlap nowhere, but their records may interleave.
    for number in 1...2 {
      #expect(
        derived.notifications.filter { $0.connection == number }.map(\.content)
          == base.notifications.filter { $0.connection == number }.map(\.content))
    }
    #expect(derived.gaps.isEmpty && derived.malformed.isEmpty)
    #expect(derived.connections.allSatisfy { $0.conflictingBytes == 0 })
  }

  /// The frames of the raw dump, dealt to the connections in order by `Traces/make`.
  @Test(
    "Frames carried over other links are the frames of the dump",
    arguments: [
      ("two-interfaces.pcapng", [3, 2]), ("vlan-qinq.pcap", [2, 2]), ("ipv6-unknown-port.pcap", [2, 1]),
    ])
  func links(trace: String, counts: [Int]) throws {
    let (dump, derived) = (try seen("garbage-inside.bin"), try seen(trace))
    #expect(derived.connections.map(\.notifications) == counts)
    var next = 0
    for (number, count) in counts.enumerated() {
      let own = derived.notifications.filter { $0.connection == number + 1 }
      let first = dump.notifications[next].offset
      for (index, decoded) in own.enumerated() {
        var expected = dump.notifications[next + index].content
        (expected.connection, expected.index) = (number + 1, index)
        expected.offset -= first
        #expect(decoded.content == expected)
      }
      next += count
    }
    #expect(derived.gaps.isEmpty && derived.malformed.isEmpty)
  }

  @Test("Two link types and two clocks in one file") func interfaces() throws {
    let derived = try seen("two-interfaces.pcapng")
    #expect(derived.outcomes[0].linkTypes == [.ethernet, .raw])
    let start: Int64 = 1_450_000_000_000_000_000
    // The data packet of each connection is its fourth; one interface counts nanoseconds, the other 1/1024 s.
    #expect(derived.notifications[0].time.nanoseconds == start + 4_000_123)
    #expect(derived.notifications[4].time.nanoseconds == start + Int64(6 * 1024 / 1000) * 1_000_000_000 / 1024)
  }

  @Test("Feedback over TCP is the feedback of the dump, and what is odd is told") func feedback() throws {
    let (dump, derived) = (try seen("feedback-plain.hex"), try seen("feedback-clear.pcap"))
    #expect(Array(derived.tuples.prefix(20)) == dump.tuples)
    #expect(derived.connections.map(\.feedbackTuples) == [20, 0, 2])
    #expect(derived.connections.allSatisfy { $0.service == .feedback && $0.end == .serverFIN })
    #expect(derived.tuples[20].timestamp == 0)
    #expect(derived.tuples[20].token == [UInt8](repeating: 0xa1, count: 8))
    #expect(derived.tuples[21].offset == 14)
    #expect(derived.tuples[21].timestamp == 1_450_000_000)
  }

  @Test("A hex dump is the dump that it shows") func hexDump() throws {
    let (raw, hex) = (try seen("responses.bin"), try seen("responses.hexdump"))
    #expect(raw.captures[0].format == .raw)
    #expect(hex.captures[0].format == .hex)
    #expect(hex.responses.map(\.response) == raw.responses.map(\.response))
    let named: [(UInt8, UInt32)] = [(8, 25), (10, .max), (42, 7), (255, 0)]
    let expected = named.map { ErrorResponse(status: .init(rawValue: $0.0), identifier: $0.1) }
    #expect(raw.responses.map(\.response) == expected)
    #expect(raw.responses.map(\.place.offset) == [0, 6, 12, 18])
  }

  @Test("Several responses settle what each can settle") func errors() throws {
    let derived = try seen("known-bad-and-errors.pcap")
    let fates = derived.connections.sorted { $0.connection < $1.connection }.map {
      [$0.fates.accepted, $0.fates.rejected, $0.fates.discarded, $0.fates.unknown]
    }
    // Five before the known-bad frame; 1 and 3 of six around the rejected 2 and 4; two up to the shutdown; a reset.
    #expect(fates == [[5, 1, 0, 0], [2, 2, 2, 0], [2, 0, 3, 0], [0, 0, 0, 2]])
    #expect(derived.responses.map(\.notification) == [5, 1, 3, nil, 1])
    #expect(derived.responses.map(\.accepted) == [5, 1, 2, nil, 2])
    #expect(derived.responses.map(\.discarded) == [0, 0, 2, nil, 3])
    // Written in the packet before each wait or answer, one millisecond a packet.
    #expect(derived.responses.map(\.latencyNanoseconds) == [81_000_000, 2_000_000, 3_000_000, nil, 4_000_000])
    let ends = derived.connections.sorted { $0.connection < $1.connection }.map(\.end)
    #expect(ends == [.serverFIN, .clientFIN, .serverFIN, .clientRST])
  }

  @Test("Frames whose items do not fit them are refused by identifier, by identifier 0, or not at all")
  func misfits() throws {
    let derived = try seen("items-that-do-not-fit.pcap")
    let fates = derived.connections.sorted { $0.connection < $1.connection }.map {
      [$0.fates.accepted, $0.fates.rejected, $0.fates.discarded, $0.fates.unknown]
    }
    // By identifier and by 0; nobody minds; 0 that may be the first one, that is, that is the only one's, that is nobody's;
    // garbage.
    let expected = [
      [3, 1, 2, 0], [3, 1, 2, 0], [0, 0, 0, 5], [0, 0, 0, 5], [0, 1, 2, 0], [0, 1, 0, 0], [0, 0, 0, 2], [0, 0, 0, 2],
    ]
    #expect(fates == expected)
    #expect(derived.responses.map(\.notification) == [3, 3, nil, 0, 0, nil])
    #expect(derived.responses.map(\.isAmbiguous) == [false, false, true, false, false, false])
    let bad = derived.notifications.filter { $0.problem != nil }
    #expect(bad.map(\.connection) == [1, 2, 2, 3, 3, 3, 3])
    #expect(bad.map(\.identifier) == [4, nil, nil, 1, 1, 3, nil])
    #expect(derived.malformed.map(\.place.offset) == [45])
  }
}
