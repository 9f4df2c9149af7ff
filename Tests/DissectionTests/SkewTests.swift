import BinaryProtocol
import Bytes
import Foundation
import PacketCapture
import TestSupport
import Testing

@testable import Records

/// The law of two taps: what became of notifications does not depend on the clocks of the two directions, nor on which
/// of them comes first in the file.
@Suite("Clocks of two taps")
struct SkewTests {
  @Test("The server's packets may be early or late, or all of them first or last", arguments: seeds(30, of: 300))
  func conversations(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    try Self.expectSame(TwoTaps(CaptureBuilder.conversations(&random).bytes), "seed \(seed)")
  }

  @Test("Identifiers that come again, and 0, name what they did", arguments: seeds(30, of: 300))
  func repeated(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var capture = CaptureBuilder()
    let line = capture.connect(handshake: random.happens(oneIn: 2))
    for _ in 0..<random.number(1...30) {
      var frames: [UInt8] = []
      for _ in 0..<random.number(1...3) {
        frames += push(UInt32(random.number(0...3)), device: 1, random.happens(oneIn: 4) ? "longer text" : "")
      }
      capture.client(line, frames)
    }
    capture.server(line, refusal(random.pick([1, 2, 5, 7, 8, 10, 128]), UInt32(random.number(0...3))))
    // Written before the response came, and not acknowledged by it.
    if random.happens(oneIn: 2) { capture.client(line, push(UInt32(random.number(0...3)), device: 2)) }
    capture.finish(line, byServer: true)
    try Self.expectSame(TwoTaps(capture.bytes), "seed \(seed)")
  }

  @Test(
    "Recordings too, under TLS as well",
    arguments: ["plain-error.pcap", "known-bad-and-errors.pcap", "tls-gateway.pcap", "tls10.pcap"])
  func traces(name: String) throws {
    let path = Folder.traces.appending(path: name).path
    let keys = try? Data(contentsOf: URL(filePath: path + ".keys"))
    try Self.expectSame(TwoTaps([UInt8](try Data(contentsOf: URL(filePath: path))), keys: keys), "\(name)")
  }

  @Test("An acknowledgement tells more than times that would deny it, and such a latency is left out")
  func latency() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for number in 1...3 as ClosedRange<UInt32> { capture.client(line, push(number, device: 1)) }
    capture.server(line, refusal(8, 2))
    capture.finish(line, byServer: true)
    let taps = try TwoTaps(capture.bytes)
    let punctual = try #require(try taps.dissected(.shifted(0)).responses.first)
    #expect(punctual.notification == 1 && punctual.latencyNanoseconds == 2_000_000)
    let early = try #require(try taps.dissected(.shifted(-100)).responses.first)
    #expect(early.notification == 1 && early.accepted == 1 && early.discarded == 1 && early.latencyNanoseconds == nil)
  }

  @Test("A notification that the response does not acknowledge is not named, though it has the identifier")
  func notAcknowledged() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, push(5, device: 1))
    capture.server(line, refusal(8, 7))
    capture.client(line, push(7, device: 1))
    capture.finish(line, byServer: true)
    let taps = try TwoTaps(capture.bytes)
    for order in TwoTaps.Order.all {
      let seen = try taps.dissected(order)
      #expect(seen.responses.map(\.notification) == [nil], "\(order)")
      #expect(seen.connections.map(\.fates.unknown) == [2], "\(order)")
    }
  }

  @Test("Without acknowledgements the order of the file counts, as before")
  func withoutAcknowledgements() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for number in 1...3 as ClosedRange<UInt32> { capture.client(line, push(number, device: 1)) }
    capture.server(line, refusal(8, 2))
    capture.finish(line, byServer: true)
    let taps = try TwoTaps(capture.bytes, acknowledgement: 0)
    #expect(try taps.dissected(.shifted(0)).responses.map(\.notification) == [1])
  }

  private static func expectSame(_ taps: TwoTaps, _ comment: Comment) throws {
    let expected = try taps.outcome(.shifted(0))
    for order in TwoTaps.Order.all {
      let outcome = try taps.outcome(order)
      #expect(outcome == expected, "\(order), \(comment)")
    }
  }
}

/// A capture taken apart into its packets, whose directions are put together in another way.
private struct TwoTaps {
  enum Order {
    /// The server's packets have times that are off by so many milliseconds, and are sorted by these.
    case shifted(Int)
    case serverFirst
    case clientFirst

    static let all: [Order] =
      [-200, -100, -45, -9, 9, 45, 100, 200].map { .shifted($0) } + [.serverFirst, .clientFirst]
  }

  /// What became of a connection.
  struct Outcome: Equatable {
    var client: Endpoint?
    var fates: [FateRecord]
    /// The named notification of each response, and how many it proves accepted.
    var named: [[Int?]]
  }

  private var packets: [(time: Int64, isFromServer: Bool, bytes: [UInt8])] = []
  private var linkType: UInt32 = 0
  private let keys: Data?

  /// - Parameter acknowledgement: in all packets that have one; `nil`: as it was.
  init(_ capture: [UInt8], keys: Data? = nil, acknowledgement: UInt32? = nil) throws {
    self.keys = keys
    var found: [(time: Int64, isFromServer: Bool, bytes: [UInt8])] = []
    var linkType: UInt32 = 0
    try withTemporaryFile(capture) { path in
      let options = CaptureOptions()
      guard case .packets(var file) = try CaptureInput.open(path, options: options) else { return }
      var decoder = PacketDecoder(options: options)
      try file.forEachPacket { packet, bytes, _ in
        linkType = UInt32(packet.linkType.rawValue)
        var copy = Array(copying: bytes)
        decoder.decode(packet, bytes) { segment, _ in
          if let acknowledgement {
            // Raw IPv4 without options.
            for place in 0..<4 { copy[28 + place] = UInt8(truncatingIfNeeded: acknowledgement >> (24 - 8 * place)) }
          }
          found.append((packet.time.nanoseconds, segment.source.port < segment.destination.port, copy))
        }
        return true
      }
    }
    (packets, self.linkType) = (found, linkType)
  }

  private func bytes(_ order: Order) -> [UInt8] {
    var ordered = packets
    switch order {
    case .shifted(let milliseconds):
      for index in ordered.indices where ordered[index].isFromServer {
        ordered[index].time += Int64(milliseconds) * 1_000_000
      }
      let places = ordered.indices.sorted { (ordered[$0].time, $0) < (ordered[$1].time, $1) }
      ordered = places.map { ordered[$0] }
    case .serverFirst: ordered = ordered.filter(\.isFromServer) + ordered.filter { !$0.isFromServer }
    case .clientFirst: ordered = ordered.filter { !$0.isFromServer } + ordered.filter(\.isFromServer)
    }
    return written { output in
      for word in [0xa1b2_3c4d, 0x0002_0004, 0, 0, 262_144, linkType] as [UInt32] { output.write(bigEndian: word) }
      for packet in ordered {
        output.write(bigEndian: UInt32(packet.time / 1_000_000_000))
        output.write(bigEndian: UInt32(packet.time % 1_000_000_000))
        output.write(bigEndian: UInt32(packet.bytes.count))
        output.write(bigEndian: UInt32(packet.bytes.count))
        output.write(packet.bytes.rawBytes)
      }
    }
  }

  func dissected(_ order: Order) throws -> Collector {
    try withTemporaryFile(bytes(order)) { path in
      defer { try? FileManager.default.removeItem(atPath: path + ".keys") }
      if let keys { try keys.write(to: URL(filePath: path + ".keys")) }
      return try dissect(path)
    }
  }

  /// Of each connection with notifications, in the order of clients.
  func outcome(_ order: Order) throws -> [Outcome] {
    let seen = try dissected(order)
    let outcomes = seen.connections.filter { $0.notifications > 0 }.map { record in
      Outcome(
        client: record.client,
        fates: seen.fates.filter { $0.connection == record.connection }.map {
          FateRecord(connection: 0, first: $0.first, last: $0.last, fate: $0.fate)
        },
        named: seen.responses.filter { $0.place.connection == record.connection }
          .map { [$0.notification, $0.accepted] })
    }
    return outcomes.sorted { ($0.client?.description ?? "") < ($1.client?.description ?? "") }
  }
}
