import Bytes
import TestSupport
import Testing

@testable import PacketCapture

/// IPv4 and IPv6 headers, true and lying, and fragments of both.
struct NetworkLayerTests {
  private static let tcp = PacketBuilder.tcp()

  // MARK: lengths

  @Test("Ethernet padding is not payload") func ethernetPaddingIsNotPayload() {
    let packet = PacketBuilder.ipv4(PacketBuilder.tcp([1])) + [UInt8](repeating: 0, count: 5)
    #expect(Decoded(packet, .raw).segments.map(\.payload) == [[1]])
  }

  @Test("Total length zero means all there is") func totalLengthZeroMeansAllThereIs() {
    #expect(Decoded(PacketBuilder.ipv4(Self.tcp, total: 0), .raw).text == "notification")
    let cut = Decoded(PacketBuilder.ipv4(Self.tcp, total: 0), .raw, originalLength: 1_052)
    #expect(cut.segments.map(\.payloadLength) == [1_012])
    #expect(Decoded(PacketBuilder.ipv6(Self.tcp, declared: 0), .raw).text == "notification")
  }

  @Test("Lying lengths never reach beyond the packet") func lyingLengthsNeverReachBeyondThePacket() {
    #expect(Decoded(PacketBuilder.ipv4(Self.tcp, total: 60_000), .raw).segments.map(\.payloadLength) == [12])
    #expect(Decoded(PacketBuilder.ipv6(Self.tcp, declared: 60_000), .raw).segments.map(\.payloadLength) == [12])
    // A total length that does not hold the headers carries nothing.
    for total in [1, 19, 20, 39] { #expect(Decoded(PacketBuilder.ipv4(Self.tcp, total: total), .raw).segments.isEmpty) }
    #expect(Decoded(PacketBuilder.ipv6(Self.tcp, declared: 19), .raw).segments.isEmpty)
    // Header lengths below their minimum, or beyond the packet.
    for (place, value) in [(0, UInt8(0x44)), (0, 0x4f), (32, 0x40), (32, 0xf0)] {
      var packet = PacketBuilder.ipv4(PacketBuilder.tcp([]))
      packet[place] = value
      #expect(Decoded(packet, .raw).segments.isEmpty, "byte \(place) is \(value)")
    }
  }

  @Test("Options are stepped over") func optionsAreSteppedOver() {
    let tcp = PacketBuilder.tcp(options: [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2])
    #expect(Decoded(PacketBuilder.ipv4(tcp, options: [7, 3, 4, 0]), .raw).text == "notification")
  }

  @Test("The snap length may cut the TCP options") func theSnapLengthMayCutTheTCPOptions() {
    let packet = PacketBuilder.ipv4(PacketBuilder.tcp(options: [UInt8](repeating: 1, count: 12)))
    let decoded = Decoded(Array(packet[..<45]), .raw, originalLength: packet.count)
    #expect(decoded.segments.map(\.payloadLength) == [12])
    #expect(decoded.segments.map(\.payload) == [[]])
  }

  // MARK: IPv6 extension headers

  private static let extensions: [(String, UInt8, [UInt8])] = [
    ("hop by hop", 0, [6, 0, 0, 0, 0, 0, 0, 0]), ("routing", 43, [6, 1] + [UInt8](repeating: 0, count: 14)),
    ("destination", 60, [6, 0, 0, 0, 0, 0, 0, 0]), ("authentication", 51, [6, 4] + [UInt8](repeating: 0, count: 22)),
    ("chain", 0, [60, 0, 0, 0, 0, 0, 0, 0, 43, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]),
    ("atomic fragment", 44, PacketBuilder.fragmentHeader(offset: 0, more: false)),
    (
      "options behind an atomic fragment", 44,
      PacketBuilder.fragmentHeader(next: 60, offset: 0, more: false) + [6, 0, 0, 0, 0, 0, 0, 0]
    ),
  ]

  @Test("Extension headers are stepped over", arguments: extensions) func extensionHeadersAreSteppedOver(
    name: String, next: UInt8, headers: [UInt8]
  ) {
    let packet = PacketBuilder.ipv6(headers + Self.tcp, next: next)
    #expect(Decoded(packet, .raw).text == "notification")
    for end in 0..<packet.count {
      for segment in Decoded(Array(packet[..<end]), .raw, originalLength: packet.count).segments {
        #expect(segment.payloadLength == 12)
      }
    }
  }

  @Test("Extension headers without an end carry nothing") func extensionHeadersWithoutAnEndCarryNothing() {
    let endless = [UInt8](repeating: 0, count: 400)
    #expect(Decoded(PacketBuilder.ipv6(endless, next: 0), .raw).segments.isEmpty)
    #expect(Decoded(PacketBuilder.ipv6([6, 255] + endless, next: 0), .raw).segments.isEmpty)
    #expect(Decoded(PacketBuilder.ipv6(Self.tcp, next: 59), .raw).segments.isEmpty)
  }

  // MARK: fragments

  private static let long = PacketBuilder.tcp(Array(repeating: 0x61, count: 4) + (0..<200).map { UInt8($0) })

  /// The segment in pieces of 16, 64 and the remaining bytes.
  private static func pieces(v6: Bool, identification: UInt16 = 7) -> [[UInt8]] {
    [(0, 16), (16, 80), (80, long.count)].map { start, end in
      let part = Array(long[start..<end])
      let more = end < long.count
      let place = UInt16(start / 8) | (more ? 0x2000 : 0)
      guard v6 else { return PacketBuilder.ipv4(part, identification: identification, fragment: place) }
      let header = PacketBuilder.fragmentHeader(offset: start, more: more, identification: UInt32(identification))
      return PacketBuilder.ipv6(header + part, next: 44)
    }
  }

  @Test(
    "Fragments in any order", arguments: [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [0, 0, 2, 2, 1]], [false, true])
  func fragmentsInAnyOrder(order: [Int], v6: Bool) {
    var decoded = Decoded()
    for (index, piece) in order.enumerated() {
      #expect(decoded.segments.isEmpty)
      decoded.add(Self.pieces(v6: v6)[piece], .raw)
      if index == order.count - 1 { #expect(decoded.segments.map(\.payload) == [Array(Self.long[20...])]) }
    }
  }

  @Test("The first bytes of overlapping fragments win") func theFirstBytesOfOverlappingFragmentsWin() {
    var decoded = Decoded()
    decoded.add(PacketBuilder.ipv4(Array(Self.long[..<40]), fragment: 0x2000), .raw)
    decoded.add(PacketBuilder.ipv4([UInt8](repeating: 0xff, count: 64), fragment: 0x2000 | 2), .raw)
    decoded.add(PacketBuilder.ipv4(Array(Self.long[72...]), fragment: 9), .raw)
    let expected = Array(Self.long[..<40]) + [UInt8](repeating: 0xff, count: 40) + Array(Self.long[80...])
    #expect(decoded.segments.map(\.payload) == [Array(expected[20...])])
  }

  @Test("An extension header behind the fragment header") func anExtensionHeaderBehindTheFragmentHeader() {
    let options: [UInt8] = [6, 0, 0, 0, 0, 0, 0, 0]
    let whole = options + Self.tcp
    var decoded = Decoded()
    for (start, end) in [(16, whole.count), (0, 16)] {
      let header = PacketBuilder.fragmentHeader(next: 60, offset: start, more: end < whole.count)
      decoded.add(PacketBuilder.ipv6(header + whole[start..<end], next: 44), .raw)
    }
    #expect(decoded.text == "notification")
  }

  @Test("Datagrams are told apart by their identification") func datagramsAreToldApartByTheirIdentification() {
    var decoded = Decoded()
    let (one, other) = (Self.pieces(v6: false, identification: 1), Self.pieces(v6: false, identification: 2))
    for index in 0..<3 {
      decoded.add(one[index], .raw)
      decoded.add(other[2 - index], .raw)
    }
    #expect(decoded.segments.count == 2)
    #expect(decoded.segments.allSatisfy { $0.payload == Array(Self.long[20...]) })
  }

  @Test("An identification that comes round again is another datagram")
  func anIdentificationThatComesRoundAgainIsAnotherDatagram() {
    var decoded = Decoded()
    decoded.add(PacketBuilder.ipv4([UInt8](repeating: 0xff, count: 80), fragment: 0x2000), .raw, seconds: 0)
    for piece in Self.pieces(v6: false) { decoded.add(piece, .raw, seconds: 100) }
    #expect(decoded.segments.map(\.payload) == [Array(Self.long[20...])])
  }

  @Test("A fragment that was cut completes nothing") func aFragmentThatWasCutCompletesNothing() {
    var decoded = Decoded()
    let pieces = Self.pieces(v6: false)
    decoded.add(pieces[0], .raw)
    decoded.add(pieces[1], .raw)
    decoded.add(Array(pieces[2].dropLast()), .raw, originalLength: pieces[2].count)
    #expect(decoded.segments.isEmpty)
  }

  @Test("Datagrams that wait are bounded") func datagramsThatWaitAreBounded() {
    var reassembler = FragmentReassembler(maximumDatagrams: 2)
    func add(_ identification: UInt32, _ offset: Int) -> [UInt8]? {
      let piece = FragmentReassembler.Piece(
        source: IPAddress(v4: 1), destination: IPAddress(v4: 2), identification: identification, offset: offset,
        isLast: offset > 0, nextHeader: 6, time: .none)
      return reassembler.add(piece, [UInt8](repeating: UInt8(identification), count: 8).rawBytes)?.bytes
    }
    for identification: UInt32 in [1, 2, 3] { #expect(add(identification, 0) == nil) }
    // The oldest gave way; the others are whole with their second half.
    #expect(add(3, 8) == [UInt8](repeating: 3, count: 16))
    #expect(add(2, 8) == [UInt8](repeating: 2, count: 16))
    #expect(add(1, 8) == nil)
  }

  @Test("Damaged packets never crash", arguments: Array(1...6) as [UInt64])
  func damagedPacketsNeverCrash(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let packets =
      [PacketBuilder.ipv4(Self.tcp), PacketBuilder.ipv6(Self.tcp)] + Self.pieces(v6: false) + Self.pieces(v6: true)
      + Self.extensions.map { PacketBuilder.ipv6($0.2 + Self.tcp, next: $0.1) }
    var decoded = Decoded()
    for _ in 0..<300 {
      var packet = packets.randomElement(using: &random) ?? []
      for _ in 0..<3 { packet[Int.random(in: 0..<packet.count, using: &random)] = random.bytes(1)[0] }
      packet = Array(packet.prefix(Int.random(in: 0...packet.count, using: &random)))
      decoded.add(packet, .raw, originalLength: Int.random(in: 0...2_000, using: &random))
    }
    #expect(decoded.segments.allSatisfy { $0.payload.count <= $0.payloadLength })
  }
}
