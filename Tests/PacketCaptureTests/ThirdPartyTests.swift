import Foundation
import PacketCapture
import TestSupport
import Testing

/// Compares with what others read from captures of other projects.
///
/// The environment variable APNSCOPE_THIRD_PARTY names a folder with captures and `expected.json`. That holds, for
/// every capture, the packet count and for every TCP stream and direction what tshark follows (`followTcp`) and what a
/// second, independent reassembly makes of it (`own`: the first bytes win, with a list of gaps). Where the two differ
/// `own` counts: tshark gives up on streams whose first packet is not the first in the capture.
@Suite(.waiting, .enabled(if: ThirdParty.folder != nil)) struct ThirdPartyTests {
  @Test("Packets and streams are the ones others read", arguments: try ThirdParty.expected().keys.sorted())
  func packetsAndStreamsAreTheOnesOthersRead(capture: String) throws {
    let expected = try #require(ThirdParty.expected()[capture])
    let path = try #require(ThirdParty.folder) + "/" + capture
    guard expected.tsharkExit == 0 || expected.packets > 0 || ThirdParty.readByUsAlone[capture] != nil else {
      // tshark refuses the file: so do we, or there is nothing in it.
      let contents = try? CaptureContents(of: path)
      #expect(contents?.packets.isEmpty ?? true)
      return
    }
    let contents = try CaptureContents(of: path)
    let packets = contents.packets.count + (ThirdParty.numberedByOthers[capture] ?? 0)
    #expect(packets == ThirdParty.readByUsAlone[capture] ?? expected.packets)
    #expect(contents.streams.violations.isEmpty)
    var ours = contents.streams.connectionsByEnds
    #expect(contents.streams.connections.count == expected.tcpStreams - (ThirdParty.splitByOthers[capture] ?? 0))
    var directions: [(name: String, ours: StreamLog.Direction, theirs: ThirdParty.Direction)] = []
    for (number, stream) in (expected.streams ?? [:]).sorted(by: { Int($0.key) ?? 0 < Int($1.key) ?? 0 }) {
      let ends = Set(stream.directions.map(\.node))
      guard let connection = ours[ends]?.first else {
        // tshark could not follow a stream that it does not name.
        if ThirdParty.splitByOthers[capture] != nil || ends == [":0"] { continue }
        Issue.record("no connection for stream \(number) of \(ends)")
        continue
      }
      ours[ends]?.removeFirst()
      for direction in stream.directions {
        directions.append(("\(number) \(direction.node)", connection.direction(from: direction.node), direction))
      }
    }
    let digests = directions.isEmpty ? [] : try sha256(directions.map(\.ours.bytes))
    for (direction, digest) in zip(directions, digests) {
      let name = Comment(rawValue: "stream \(direction.name), \(direction.ours.bytes.count) bytes")
      #expect(digest == direction.theirs.own?.firstWins ?? direction.theirs.followTcp.sha256NoPlaceholders, name)
      if let gaps = direction.theirs.own?.gaps {
        // `own` knows no gap behind the last bytes; we see it from what the snap length cut, the FIN, or the peer.
        var inner = direction.ours.gaps
        var end = direction.ours.length
        while let last = inner.last, last.offset + last.length == end, inner.count > gaps.count {
          end = last.offset
          inner.removeLast()
        }
        #expect(inner.map { [$0.offset, $0.length] } == gaps, name)
      }
    }
  }
}

/// The folder's `expected.json`.
enum ThirdParty {
  struct Capture: Decodable {
    var tsharkExit: Int
    var packets: Int
    var tcpStreams: Int
    var streams: [String: Stream]?
  }

  struct Stream: Decodable { var directions: [Direction] }

  struct Direction: Decodable {
    var node: String
    var followTcp: Followed
    var own: Own?
  }

  struct Followed: Decodable { var sha256NoPlaceholders: String }

  struct Own: Decodable {
    var gaps: [[Int]]
    var firstWins: String
  }

  /// Files that tshark refuses and we read, with the number of packets: an option that overruns its section header, and
  /// a minor version that is not 0. Neither stands in the way of the packets.
  static let readByUsAlone = ["libpcap-shb-option-too-long.pcapng": 1, "libpcap-pcapng-invalid-vers-2.pcapng": 1]

  /// Custom blocks, which tshark counts as packets. We give them a number, but they are none.
  static let numberedByOthers = [
    "pcapng-be-test018.pcapng": 4, "pcapng-be-test102.pcapng": 3, "pcapng-be-test202.pcapng": 3,
    "pcapng-le-test018.pcapng": 4, "pcapng-le-test102.pcapng": 3, "pcapng-le-test202.pcapng": 3,
  ]

  /// Connections that tshark makes two of: recorded backwards, their SYN stands behind the FINs it belongs to.
  static let splitByOthers = ["tcpflow-test5-lines-randomized.pcap": 1]

  static let folder = ProcessInfo.processInfo.environment["APNSCOPE_THIRD_PARTY"]

  private static let contents = Result {
    guard let folder else { return [String: Capture]() }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(
      [String: Capture].self, from: Data(contentsOf: URL(filePath: folder + "/expected.json")))
  }

  static func expected() throws -> [String: Capture] { try contents.get() }
}
