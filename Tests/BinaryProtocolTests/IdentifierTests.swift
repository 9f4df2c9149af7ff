import BinaryProtocol
import TestSupport
import Testing

/// Identifiers are opaque and not unique (counters in either byte order, restarted, random, constant). Whatever they
/// look like, a response names the latest notification that carries the identifier.
@Suite("Provider session: identifiers")
struct IdentifierTests {
  @Test("Counters that restart for every batch: the latest use is named, the earlier one is told of")
  func restartingCounter() {
    var talk = Conversation()
    talk.write(1...100)
    talk.write(1...50)
    #expect(talk.named(by: 30) == .init(129, accepted: 129, candidates: 2))
    #expect(talk.named(by: 51) == .init(50, accepted: 50, candidates: 1))
    #expect(talk.named(by: 1).notification == 100)
    talk.receive(.invalidToken, 30)
    #expect(talk.fates == [129, 1, 20, 0])
  }

  @Test("After many batches with the same identifiers the last batch is named", arguments: [2, 3, 10])
  func batches(length: UInt32) {
    var talk = Conversation()
    for _ in 0..<20 { talk.write(1...length) }
    for identifier in 1...length {
      #expect(talk.named(by: identifier).notification == 19 * Int(length) + Int(identifier) - 1)
      #expect(talk.named(by: identifier).candidates == 20)
    }
    #expect(talk.named(by: 0).notification == nil)
    #expect(talk.named(by: length + 1).notification == nil)
  }

  /// A client that skips `htonl`: 1, 2, 3 … in the wrong byte order.
  @Test("A little-endian counter names each notification", arguments: [3, 256, 257, 1_000, 65_536, 70_000] as [UInt32])
  func littleEndianCounter(count: UInt32) {
    for first in [0, 1, 250] as [UInt32] {
      var talk = Conversation()
      talk.write((0..<count).lazy.map { (first + $0).byteSwapped })
      var positions = Set(stride(from: 0, to: count, by: max(1, Int(count) / 40)))
      for edge in [0, 1, 254, 255, 256, 257, 65_535 - first, 65_536 - first, count - 1] where edge < count {
        positions.insert(edge)
      }
      for position in positions {
        #expect(talk.named(by: (first + position).byteSwapped) == .init(Int(position), accepted: Int(position)))
      }
      #expect(talk.named(by: (first + count).byteSwapped).notification == nil)
    }
  }

  @Test("Random identifiers name each notification, and nothing else", arguments: 1...5 as ClosedRange<UInt64>)
  func random(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var indices: [UInt32: Int] = [:]
    var talk = Conversation()
    for index in 0..<600 {
      let identifier = random.uint32()
      indices[identifier] = index
      talk.write([identifier])
    }
    for (identifier, index) in indices { #expect(talk.named(by: identifier).notification == index) }
    let absent = (0..<200).map { _ in random.uint32() }.filter { indices[$0] == nil }
    for identifier in absent { #expect(talk.named(by: identifier).notification == nil) }
  }

  @Test(
    "A constant identifier fits every notification; the last one is taken", arguments: [0, 1, 0xffff_ffff] as [UInt32])
  func constant(identifier: UInt32) {
    var talk = Conversation()
    talk.write(repeatElement(identifier, count: 40))
    #expect(talk.named(by: identifier) == .init(39, accepted: 39, candidates: 40))
    #expect(talk.named(by: identifier &+ 1).notification == nil)
  }

  @Test("Counting down, also through zero")
  func descending() {
    var talk = Conversation()
    talk.write((0..<100).map { UInt32(50) &- $0 })
    for position in 0..<100 as Range<UInt32> {
      #expect(talk.named(by: 50 &- position) == .init(Int(position), accepted: Int(position)))
    }
    #expect(talk.named(by: 51).notification == nil)
    #expect(talk.named(by: 50 &- 100).notification == nil)
  }

  @Test("Counting up through the largest number")
  func wrapping() {
    var talk = Conversation()
    talk.write((0..<100).map { UInt32.max - 49 &+ $0 })
    #expect(talk.named(by: .max).notification == 49)
    #expect(talk.named(by: 0).notification == 50)
    #expect(talk.named(by: 49).notification == 99)
    #expect(talk.named(by: 50).notification == nil)
  }

  /// An arithmetic progression modulo 2³² visits 2³²/2^z numbers before it repeats, z being the zero bits at the end of
  /// its step. Steps that go round within the run are where the latest use differs from the first.
  @Test(
    "Evenly spaced identifiers with any step",
    arguments: [
      1, 2, 3, 10, 0xffff_ffff, 0xffff_fffe, 0x8000_0000, 0x4000_0000, 0xc000_0000, 0x0100_0000, 0x0300_0000,
      0x1000_0000,
      0x6000_0001, 0x9e37_79b9, 0x7fff_ffff, 0x5555_5555, 0x6000_0000, 0x0001_0000,
    ] as [UInt32])
  func evenlySpaced(step: UInt32) {
    for first in [0, 1, 0xdead_beef] as [UInt32] {
      var talk = Conversation()
      let identifiers = (0..<700).map { first &+ step &* $0 }
      talk.write(identifiers)
      var latest: [UInt32: Int] = [:]
      var uses: [UInt32: Int] = [:]
      for (index, identifier) in identifiers.enumerated() {
        latest[identifier] = index
        uses[identifier, default: 0] += 1
      }
      for (identifier, index) in latest {
        let verdict = talk.named(by: identifier)
        #expect(verdict == .init(index, accepted: index, candidates: uses[identifier]!))
        if latest[identifier &+ 1] == nil { #expect(talk.named(by: identifier &+ 1).notification == nil) }
      }
    }
  }

  @Test("When the history is full the oldest are forgotten and recent ones still found", arguments: [1, 2, 7, 64])
  func forgetting(maximumRuns: Int) {
    var talk = Conversation(maximumIdentifierRuns: maximumRuns)
    var random = SeededGenerator(seed: 11)
    // Distinct: the index stands in the upper half.
    let identifiers = (0..<1_000).map { UInt32($0) << 16 | UInt32(random.number(0...0xffff)) }
    talk.write(identifiers)
    #expect(talk.named(by: identifiers[0]).notification == nil)
    #expect(talk.named(by: identifiers[999]).notification == 999)
    // Half of the runs survive, each of at least one identifier.
    for index in (1_000 - max(1, maximumRuns / 2))..<1_000 {
      #expect(talk.named(by: identifiers[index]).notification == index)
    }
    // Forgotten is not lost: all of them are still counted.
    #expect(talk.fates == [0, 0, 0, 1_000])
    talk.receive(.invalidToken, identifiers[0])
    #expect(talk.session.unresolvedResponses == 1)
    talk.receive(.invalidToken, identifiers[999])
    #expect(talk.fates == [999, 1, 0, 0])
  }

  @Test("A counter needs one run however long it is")
  func oneRun() {
    var talk = Conversation(maximumIdentifierRuns: 1)
    talk.write(1...20_000)
    #expect(talk.named(by: 1).notification == 0)
    #expect(talk.named(by: 20_000).notification == 19_999)
  }
}
