import BinaryProtocol
import Bytes
import TestSupport
import Testing

/// Laws of `RecordFramer` over the gateway's grammar. The seed in a failure's arguments gives the same stream again.
@Suite("Framing laws")
struct FramerLawTests {
  // MARK: cuts

  /// Tokens, payloads and items that clients were seen to send, JSON or not.
  private func oddStream(_ random: inout SeededGenerator) -> Stream {
    var stream = Stream()
    for _ in 0..<random.number(1...12) {
      let token = random.bytes(random.pick([0, 5, 8, 32, 32, 32, 54, 80, 100]))
      let payload = random.happens(oneIn: 3) ? random.bytes(random.number(1...90)) : random.alert()
      let identifier = random.happens(oneIn: 3) ? nil : UInt32(random.number(0...70_000))
      stream.append(
        written {
          switch random.number(0...2) {
          case 0:
            // An empty token is no notification of command 0 that a search could find again.
            let token = [UInt8](repeating: 9, count: 32)
            BinaryFrame.encodeSimple(token: token.rawBytes, payload: payload.rawBytes, into: &$0)
          case 1:
            BinaryFrame.encodeEnhanced(
              identifier: identifier ?? 0, expiration: 0, token: token.rawBytes, payload: payload.rawBytes, into: &$0)
          default:
            BinaryFrame.encodeFramed(
              token: token.rawBytes, payload: payload.rawBytes, identifier: identifier, expiration: nil,
              priority: random.happens(oneIn: 2) ? 5 : nil, into: &$0)
          }
        })
    }
    return stream
  }

  @Test("However a stream is cut, its records are the same", arguments: seeds(12, of: 200))
  func cuts(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let stream = oddStream(&random)
    for longest in [1, 2, 7, 100, 5_000] {
      let run = FramerRun(.standard, random.pieces(stream.bytes, longest: longest))
      #expect(run.records == stream.records, run.difference(from: stream.records))
      #expect(run.damage.isEmpty, "pieces of up to \(longest)")
    }
  }

  @Test("The quick ways come to the same as all others, damaged or not", arguments: seeds(20, of: 200))
  func quick(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var stream = oddStream(&random)
    if random.happens(oneIn: 2) {
      for _ in 0..<random.number(1...3) { stream.bytes[random.number(0...stream.bytes.count - 1)] = random.bytes(1)[0] }
    }
    for longest in [1, 2, 7, 100, 5_000] {
      var pieces = random.pieces(stream.bytes, longest: longest)
      if random.happens(oneIn: 3) { pieces.insert(.gap(random.number(1...60)), at: random.number(0...pieces.count)) }
      let (run, quick) = (FramerRun(.standard, pieces), FramerRun(.standard, pieces, isQuick: true))
      #expect(quick.records == run.records && quick.damage == run.damage, quick.difference(from: run.records))
      #expect(quick.tilesTheStream)
    }
  }

  @Test("A stream that stops inside a record ends in damage, and in nothing else", arguments: seeds(4, of: 20))
  func prefixes(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let stream = Stream((0..<3).map { _ in random.notification(command: random.number(0...2)) })
    for end in some(60, of: Array(0...stream.bytes.count)) {
      let run = FramerRun(.standard, random.pieces(Array(stream.bytes[..<end]), longest: 60))
      let whole = stream.records.filter { $0.end <= end }
      let last = whole.last?.end ?? 0
      #expect(run.records == whole, run.difference(from: whole))
      #expect(run.damage == (last == end ? [] : [last..<end]), "\(end) bytes")
    }
  }

  // MARK: garbage

  @Test("Garbage that no record holds is exactly what is damaged", arguments: seeds(12, of: 200))
  func foreignGarbage(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var (stream, garbage): (Stream, Set<Int>) = (Stream(), [])
    // One command, or all three.
    let commands = random.pick([[0], [1], [2], [0, 1, 2]])
    for _ in 0..<random.number(2...8) {
      stream.append(random.notification(command: random.pick(commands)))
      guard random.happens(oneIn: 2) else { continue }
      let bytes = (0..<random.number(1...30)).map { _ in UInt8.random(in: 0xc0...0xff, using: &random) }
      garbage.formUnion(stream.bytes.count..<stream.bytes.count + bytes.count)
      stream.append(garbage: bytes)
    }
    for longest in [1, 50, 5_000] {
      let run = FramerRun(.standard, random.pieces(stream.bytes, longest: longest))
      #expect(run.records == stream.records, run.difference(from: stream.records))
      #expect(run.damaged == garbage, "pieces of up to \(longest)")
      #expect(run.tilesTheStream)
    }
  }

  @Test("Among random bytes every record is found and none is invented", arguments: seeds(12, of: 200))
  func randomGarbage(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var stream = Stream()
    let commands = random.pick([[1], [2], [1, 2]])
    for _ in 0..<random.number(2...8) {
      stream.append(random.notification(command: random.pick(commands)))
      if random.happens(oneIn: 2) { stream.append(garbage: random.bytes(random.number(1...40))) }
    }
    for longest in [1, 50, 5_000] {
      let run = FramerRun(.standard, random.pieces(stream.bytes, longest: longest))
      #expect(run.records == stream.records, run.difference(from: stream.records))
      #expect(run.tilesTheStream)
    }
  }

  // MARK: gaps

  @Test("A gap costs the records it touches, and no other", arguments: seeds(20, of: 300))
  func gaps(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    // Not command 0 beside the others: the end of a command-1 record may then be one of command 0 as well.
    let commands = random.pick([[0], [1], [2], [1, 2]])
    let zero = commands == [2] && random.happens(oneIn: 2)
    let stream = Stream(
      (0..<random.number(2...10)).map { _ in
        random.notification(command: random.pick(commands), expirationEndsInZero: zero)
      })
    let start = random.number(0...stream.bytes.count - 1)
    let end = min(stream.bytes.count, start + random.number(1...300))
    let whole = stream.records.filter { $0.end <= start || $0.offset >= end }
    let pieces =
      random.pieces(Array(stream.bytes[..<start]), longest: 120) + [.gap(end - start)]
      + random.pieces(Array(stream.bytes[end...]), longest: 120)
    let run = FramerRun(.standard, pieces)
    #expect(run.records == whole, run.difference(from: whole))
    #expect(run.tilesTheStream)
  }

  @Test("A header before a gap tells where the next record is, whatever that looks like")
  func headerBeforeGap() {
    // The second record has no token, so that a search would not trust it.
    let first = written {
      BinaryFrame.encodeEnhanced(
        identifier: 1, expiration: 0, token: [UInt8](repeating: 7, count: 32).rawBytes,
        payload: [UInt8](repeating: 0x20, count: 200).rawBytes, into: &$0)
    }
    let second = written {
      BinaryFrame.encodeEnhanced(
        identifier: 2, expiration: 0, token: [UInt8]().rawBytes, payload: [UInt8]().rawBytes, into: &$0)
    }
    let stream = Stream([first, second])
    for start in 45...200 {
      let run = FramerRun(
        .standard, [.bytes(Array(stream.bytes[..<start])), .gap(30), .bytes(Array(stream.bytes[(start + 30)...]))])
      #expect(run.records == [stream.records[1]], "gap \(start)..<\(start + 30)")
      #expect(run.tilesTheStream)
    }
  }

  // MARK: starts

  @Test(
    "From any byte of a stream on, exactly the whole records are found",
    arguments: [(0, false), (1, false), (1, true), (2, false), (2, true)], seeds(1, of: 3))
  func midStream(kind: (command: Int, expirationEndsInZero: Bool), seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let stream = Stream(
      (0..<5).map { _ in
        random.notification(command: kind.command, expirationEndsInZero: kind.expirationEndsInZero)
      })
    for start in some(60, of: Array(0..<stream.bytes.count)) {
      // The zero byte and what follows it are a whole record of command 0, and nothing else is there to tell.
      if kind.command == 1, kind.expirationEndsInZero, start == stream.records[4].offset + 8 { continue }
      let rest = stream.dropping(start)
      for longest in [1, 100, 5_000] {
        let run = FramerRun(.standard, random.pieces(rest.bytes, longest: longest), isAligned: false)
        #expect(run.records == rest.records, run.difference(from: rest.records))
        #expect(run.tilesTheStream)
      }
    }
  }

  // MARK: wrong lengths

  @Test("A wrong length costs the records that it covers, and no other", arguments: seeds(20, of: 300))
  func wrongLengths(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let commands = random.pick([[1], [2], [1, 2]])
    var stream = Stream(
      (0..<random.number(3...9)).map { _ in random.notification(command: random.pick(commands)) })
    let victim = random.pick(stream.records)
    // Offset of a length field, and how long the record claims to be when it holds `value`.
    let isFramed = victim.bytes[0] == 2
    let field = isFramed ? 3 : random.pick([9, 45])
    let old = Int(victim.bytes.rawBytes.uint16(at: field))
    var value = old
    while value == old {
      value = random.happens(oneIn: 4) ? random.number(0...0xffff) : max(0, old + random.number(-40...150))
    }
    stream.bytes[victim.offset + field] = UInt8(value >> 8)
    stream.bytes[victim.offset + field + 1] = UInt8(value & 0xff)
    var claimed = victim.end + value - old
    if field == 9 {
      // The payload's length then stands elsewhere.
      let extent = BinaryFrame.extent(
        of: stream.bytes.rawBytes, at: victim.offset, limits: ProtocolLimits())
      if case .complete(let length) = extent { claimed = victim.offset + length }
    }
    let covered = victim.offset..<max(victim.end, claimed)
    let safe = stream.records.filter { !$0.range.overlaps(covered) }
    let run = FramerRun(.standard, random.pieces(stream.bytes, longest: random.pick([1, 80, 5_000])))
    for record in safe {
      #expect(run.records.contains(record), run.difference(from: stream.records))
    }
    for record in run.records where !stream.records.contains(record) {
      #expect(covered.contains(record.offset), run.difference(from: stream.records))
    }
    #expect(run.tilesTheStream)
  }
}
