import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import PushModel
import TestSupport
import Testing

@testable import Analysis
@testable import Records

/// The parts in which an inspection remembers what was sent.
@Suite("Sendings")
struct SendingsTests {
  /// Digests that share a bucket of a window of 64: its number is the upper five bits of the product.
  private static let crowded: [UInt64] = {
    var random = SeededGenerator(seed: 1)
    var digests: [UInt64] = []
    while digests.count < 12 {
      let digest = random.next()
      if (digest &* 0x9e37_79b9_7f4a_7c15) >> 59 == 3 { digests.append(digest) }
    }
    return digests
  }()

  @Test("A full bucket forgets its oldest place, and says how far back the others reach") func fullBucket() {
    let digests = Self.crowded
    var window = RepeatWindow(window: 64)
    for place in 0..<8 { #expect(window.note(digests[place], at: place) == -1) }
    #expect(window.reach == .max)
    // The first is noted again, so that the second is the oldest.
    #expect(window.note(digests[0], at: 8) == 0)
    #expect(window.note(digests[8], at: 9) == -1 && window.reach == 7)
    #expect(window.note(digests[0], at: 10) == 8)
    #expect(window.note(digests[2], at: 11) == 2)
    #expect(window.note(digests[1], at: 12) == -1 && window.reach == 7)
    #expect(window.note(digests[8], at: 13) == 9)
  }

  @Test("A bucket whose places are beyond the window forgets nothing that is within") func oldBucket() {
    let digests = Self.crowded
    var window = RepeatWindow(window: 64)
    for number in 0..<12 { #expect(window.note(digests[number], at: number * 60) == -1) }
    #expect(window.reach == .max)
    #expect(window.note(digests[11], at: 700) == 660)
  }

  @Test("Repeats are those of a plain search, as far as the window reaches", arguments: seeds(10, of: 100))
  func plainSearch(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var window = RepeatWindow(window: 64)
    var places: [UInt64: Int] = [:]
    let digests = (0..<random.number(5...200)).map { _ in random.next() | 1 }
    for place in 0..<2_000 {
      let digest = random.pick(digests)
      let found = window.note(digest, at: place)
      if let before = places[digest], place - before <= min(64, window.reach) {
        #expect(found == before)
      } else {
        #expect(found == -1 || found == places[digest])
      }
      places[digest] = place
    }
  }

  @Test("A filter knows all that was put in, and little else") func filter() {
    var filter = DigestFilter()
    var random = SeededGenerator(seed: 2)
    #expect(!filter.mayHave(7))
    let digests = (0..<1_000).map { _ in random.next() }
    for digest in digests { filter.insert(digest) }
    #expect(digests.allSatisfy { filter.mayHave($0) })
    #expect((0..<1_000).count { _ in filter.mayHave(random.next()) } < 20)
  }

  @Test("Fates of connections are known until a window after their end") func recentFates() {
    var fates = RecentFates(limit: 1_000)
    for connection in 1...5_000 {
      fates.add(FateRecord(connection: connection, first: 0, last: 3, fate: .accepted))
      fates.add(FateRecord(connection: connection, first: 4, last: 4, fate: .rejected))
      fates.add(FateRecord(connection: connection, first: 5, last: 9, fate: .discarded))
      fates.add(FateRecord(connection: connection, first: 10, last: 12, fate: .discarded))
      let known = [0, 3, 4, 5, 9, 12, 13].map { fates.fate(of: $0, on: connection) }
      #expect(known == [.accepted, .accepted, .rejected, .discarded, .discarded, .discarded, nil])
      fates.end(connection, total: connection * 13, window: 130)
      #expect(fates.fate(of: 0, on: connection - 10) == (connection > 10 ? .accepted : nil))
      #expect(fates.fate(of: 0, on: connection - 11) == nil)
    }
  }

  @Test("Fates above the limit, and those behind a missing range, are unknown") func fateLimit() {
    var fates = RecentFates(limit: 2)
    fates.add(FateRecord(connection: 1, first: 5, last: 6, fate: .accepted))
    #expect(fates.fate(of: 5, on: 1) == nil)
    fates.add(FateRecord(connection: 2, first: 0, last: 0, fate: .accepted))
    fates.add(FateRecord(connection: 3, first: 0, last: 0, fate: .rejected))
    fates.add(FateRecord(connection: 4, first: 0, last: 0, fate: .rejected))
    #expect((2...4).map { fates.fate(of: 0, on: $0) } == [.accepted, .rejected, nil])
  }

  @Test(
    "The beginning of a payload ends with a whole character",
    arguments: [
      (String(repeating: "a", count: 60), String(repeating: "a", count: 60)),
      (String(repeating: "a", count: 61), String(repeating: "a", count: 60) + "…"),
      (String(repeating: "a", count: 59) + "éz", String(repeating: "a", count: 59) + "…"),
      (String(repeating: "a", count: 57) + "😀zz", String(repeating: "a", count: 57) + "…"),
    ])
  func payloadText(payload: String, expected: String) {
    let bytes = Array(payload.utf8)
    let beginning = NotificationBeginning(
      token: [1, 0xab], tokenLength: 2, payload: Array(bytes.prefix(NotificationBeginning.payloadBytes)),
      payloadLength: bytes.count)
    #expect(beginning.payloadText == expected)
    #expect(beginning.tokenText == "01ab")
  }

  @Test(
    "The beginnings of tokens and payloads of any length are kept, each in its place of the ring",
    arguments: seeds(8, of: 80))
  func beginningsOfAnyLength(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let maximum = random.pick([32, 64, 2_048])
    var beginnings = Beginnings(maximum: maximum)
    var kept: [Int: (token: [UInt8], payload: [UInt8])] = [:]
    for number in 0..<3 * maximum {
      let slot = number % maximum
      let token = random.bytes(random.pick([32, 32, 0, 31, 33, 300]))
      let payload = random.bytes(random.pick([130, 0, 1, 59, 60, 61, 63, 64, 65, 2_048]))
      beginnings.note(token.rawBytes, payload.rawBytes, at: slot)
      kept[slot] = (token, payload)
      let asked = random.number(0...min(number, maximum - 1))
      guard let expected = kept[asked] else { continue }
      let found = beginnings[asked]
      #expect(found.token == Array(expected.token.prefix(32)) && found.tokenLength == expected.token.count)
      #expect(found.payload == Array(expected.payload.prefix(60)) && found.payloadLength == expected.payload.count)
    }
  }
}
