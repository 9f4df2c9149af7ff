import Bytes
import TLSDecryption
import TestSupport
import Testing

/// What is left of a conversation when bytes of it are missing: everything that can be opened, at its place.
@Suite struct LossTests {
  struct Kind: CustomTestStringConvertible, Sendable {
    var version: TLSConversation.Version
    var suite: String?
    var usesEncryptThenMAC = true
    /// What can be told exactly about what is missing.
    var isExact: Bool {
      version == .tls13 || suite?.contains("GCM") == true || suite?.contains("CCM") == true
        || suite?.contains("CHACHA") == true
    }
    var testDescription: String { "\(version) \(suite ?? "default")\(usesEncryptThenMAC ? "" : " MtE")" }
  }

  static let kinds = [
    Kind(version: .tls10, suite: "AES128-SHA"), Kind(version: .tls10, suite: "AES128-SHA", usesEncryptThenMAC: false),
    Kind(version: .tls11, suite: "AES256-SHA"), Kind(version: .tls12, suite: "AES128-SHA256"),
    Kind(version: .tls12, suite: "AES128-SHA", usesEncryptThenMAC: false),
    Kind(version: .tls12, suite: "ECDHE-RSA-AES128-GCM-SHA256"), Kind(version: .tls12, suite: "AES128-CCM8"),
    Kind(version: .tls12, suite: "ECDHE-RSA-CHACHA20-POLY1305"), Kind(version: .tls13, suite: nil),
    Kind(version: .tls13, suite: "TLS_CHACHA20_POLY1305_SHA256"),
  ]

  /// A client that writes many records of many sizes.
  private static func script(_ generator: inout SeededGenerator) -> [TLSConversation.Action] {
    var script: [TLSConversation.Action] = []
    var value: UInt8 = 0
    for _ in 0..<60 {
      let count =
        Int.random(in: 1...3, using: &generator) == 1
        ? Int.random(in: 1...40, using: &generator) : Int.random(in: 1...2_500, using: &generator)
      script.append(
        .write(
          .client,
          (0..<count).map { _ in
            value &+= 1
            return value
          }))
      if Bool.random(using: &generator) { script.append(.write(.server, [value])) }
    }
    return script
  }

  /// A record of data: where it stands on the wire, and what it holds where in the plaintext.
  private struct Place {
    var wire: Range<Int>
    var plain: Range<Int>
  }

  /// Where the client's records of data are, found by reading record by record.
  private static func places(_ recorded: RecordedConversation) -> [Place] {
    let secrets = Secrets(keyLog: recorded.keyLogText)
    let stream = TLSStream(secrets: secrets, limits: TLSLimits())
    let point = CapturePoint(time: 0, packet: 1)
    var places: [Place] = []
    var wire = 0
    for step in recorded.steps {
      var position = 0
      while position < step.bytes.count {
        let length = 5 + Int(step.bytes[position + 3]) << 8 + Int(step.bytes[position + 4])
        let record = step.bytes.rawBytes.extracting(position..<position + length)
        let place = wire..<wire + length
        stream.receive(record, from: TLSSide(step.side), at: point) { event, side, offset, _ in
          if side == .client, case .bytes(let bytes) = event {
            places.append(Place(wire: place, plain: offset..<offset + bytes.byteCount))
          }
        }
        position += length
        if step.side == .client { wire += length }
      }
    }
    return places
  }

  /// The client's stream in segments, of which some are missing; the server's bytes come first of all.
  private static func arrivals(_ recorded: RecordedConversation, lost: [Range<Int>], segments: [Int]) -> [Arrival] {
    let bytes = recorded.stream(of: .client)
    // The handshake as it was, then the rest in one go.
    var arrivals: [Arrival] = [.bytes(.server, recorded.stream(of: .server))]
    var position = 0
    var cuts = segments + lost.flatMap { [$0.lowerBound, $0.upperBound] }
    cuts = Array(Set(cuts + [bytes.count])).sorted()
    for cut in cuts where cut > position {
      if lost.contains(where: { $0.lowerBound <= position && cut <= $0.upperBound }) {
        arrivals.append(.gap(.client, cut - position))
      } else {
        arrivals.append(.bytes(.client, Array(bytes[position..<cut])))
      }
      position = cut
    }
    return arrivals
  }

  @Test("Every whole record behind a loss is opened, at its place", arguments: kinds, some(4, of: Array(0..<12)))
  func everyWholeRecordBehindALossIsOpenedAtIts(kind: Kind, seed: Int)
    throws
  {
    var generator = SeededGenerator(seed: UInt64(seed) &* 7_919 &+ 11)
    var conversation = TLSConversation(version: kind.version, suite: kind.suite)
    conversation.usesEncryptThenMAC = kind.usesEncryptThenMAC
    conversation.script = Self.script(&generator)
    let recorded = try conversation.record()
    let places = Self.places(recorded)
    #expect(places.last?.plain.upperBound == recorded.clientPlaintext.count)
    let first = try #require(places.first).wire.lowerBound
    let end = recorded.stream(of: .client).count
    var lost: [Range<Int>] = []
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      let start: Int
      let length: Int
      switch Int.random(in: 0..<3, using: &generator) {
      case 0:
        // Whole records.
        let from = Int.random(in: 0..<places.count - 1, using: &generator)
        let to = min(places.count - 1, from + Int.random(in: 0...5, using: &generator))
        (start, length) = (places[from].wire.lowerBound, places[to].wire.upperBound - places[from].wire.lowerBound)
      default:
        start = Int.random(in: first..<end - 1, using: &generator)
        length = min(end - start, Int.random(in: 1...(Bool.random(using: &generator) ? 50 : 9_000), using: &generator))
      }
      let range = start..<start + length
      if !lost.contains(where: {
        $0.overlaps(range) || $0.upperBound == range.lowerBound || range.upperBound == $0.lowerBound
      }) {
        lost.append(range)
      }
    }
    let segments = (0..<80).map { _ in Int.random(in: 0...end, using: &generator) }
    let run = StreamRun(
      Self.arrivals(recorded, lost: lost, segments: segments), secrets: Secrets(keyLog: recorded.keyLogText))

    #expect(run.summary.problem == nil)
    #expect(run.client.wrongOffsets == 0)
    let placed = run.client.placed
    var missed = 0
    for place in places where !lost.contains(where: { $0.overlaps(place.wire) }) {
      let content = Array(recorded.clientPlaintext[place.plain])
      if kind.isExact {
        let found = placed.contains { $0.offset == place.plain.lowerBound && $0.bytes == content }
        #expect(found, "record at \(place.wire) of \(lost)")
      } else if !placed.contains(where: { $0.bytes == content }) {
        missed += 1
      }
    }
    // TLS 1.0 loses a block with each loss that ends between records, never more.
    #expect(missed <= (kind.version == .tls10 ? lost.count : 0))
    if kind.isExact {
      for (offset, bytes) in placed { #expect(Array(recorded.clientPlaintext[offset..<offset + bytes.count]) == bytes) }
    } else {
      // Nothing is made up: what is given out stands in what was said, in order.
      var from = 0
      for (_, bytes) in placed {
        let rest = recorded.clientPlaintext[from...]
        let found = rest.firstRange(of: bytes)
        #expect(found != nil)
        from = found?.upperBound ?? from
      }
    }
    let lostPlain = places.filter { place in lost.contains { $0.overlaps(place.wire) } }.map(\.plain.count).reduce(0, +)
    let gaps = run.client.gaps.map(\.length).reduce(0, +)
    if kind.isExact && !lost.contains(where: { $0.upperBound >= end - 40 }) { #expect(gaps == lostPlain) }
    _ = gaps
  }

  /// What is left of a cut record is random, so it may look like the header of a long one.
  @Test("What only looks like a record hides none", arguments: kinds, [false, true])
  func whatOnlyLooksLikeARecordHidesNone(kind: Kind, isEnded: Bool) throws {
    var conversation = TLSConversation(version: kind.version, suite: kind.suite)
    conversation.usesEncryptThenMAC = kind.usesEncryptThenMAC
    conversation.insertsEmptyFragments = false
    conversation.script = (1...20).map { .write(.client, [UInt8](repeating: $0, count: 200)) }
    let recorded = try conversation.record()
    let places = Self.places(recorded)
    var bytes = recorded.stream(of: .client)
    let cut = places[5].wire
    bytes.replaceSubrange(cut.lowerBound + 60..<cut.lowerBound + 65, with: [23, 3, bytes[cut.lowerBound + 2], 0x30, 0])
    var arrivals: [Arrival] = [
      .bytes(.server, recorded.stream(of: .server)), .bytes(.client, Array(bytes[..<cut.lowerBound])),
      .gap(.client, 50), .bytes(.client, Array(bytes[cut.lowerBound + 50..<places[12].wire.upperBound])),
    ]
    arrivals.append(isEnded ? .end(.client) : .gap(.client, bytes.count - places[12].wire.upperBound))
    let run = StreamRun(arrivals, secrets: Secrets(keyLog: recorded.keyLogText))
    for value in UInt8(1)...13 where value != 6 {
      // TLS 1.0 with the MAC inside may lose the first of them.
      if value == 7 && kind.version == .tls10 { continue }
      #expect(run.client.plaintext.count { $0 == value } == 200, "write \(value)")
    }
  }
}
