import BinaryProtocol
import Bytes
import TestSupport
import Testing

/// Conversations with a framer: pieces and gaps in, steps out. The grammar is that of error responses, six bytes each; a
/// piece's mark is its number.
@Suite("Framing over pieces and gaps")
struct RecordFramerTests {
  private static func response(_ identifier: UInt8) -> [UInt8] { [8, 8, 0, 0, 0, identifier] }

  /// Everything that a framer says, one line a step.
  private struct Conversation {
    var framer: RecordFramer<ResponseGrammar, Int>
    private var (offset, piece) = (0, 0)
    private var lines: [String] = []

    init(isAligned: Bool = true) { framer = RecordFramer(grammar: ResponseGrammar(), isAligned: isAligned) }

    mutating func say(_ bytes: [UInt8]) -> [String] {
      piece += 1
      lines = []
      let (offset, piece) = (offset, piece)
      note { framer, record, damage in framer.read(bytes.rawBytes, at: offset, mark: piece, record, damage: damage) }
      self.offset += bytes.count
      return lines
    }

    /// Passes over bytes that the framer was given without `say`.
    mutating func skip(_ length: Int) { offset += length }

    mutating func gap(_ length: Int) -> [String] {
      lines = []
      framer.gap(at: offset, length: length)
      offset += length
      note { framer, record, damage in framer.readFound(record, damage: damage) }
      return lines
    }

    mutating func drop() -> [String] {
      lines = []
      framer.drop()
      note { framer, record, damage in framer.readFound(record, damage: damage) }
      return lines
    }

    mutating func finish() -> [String] {
      lines = []
      framer.finish()
      note { framer, record, damage in framer.readFound(record, damage: damage) }
      return lines
    }

    private mutating func note(
      _ body: (
        inout RecordFramer<ResponseGrammar, Int>, (RawSpan, _ offset: Int, Int) -> Void, (StreamDamage<Int>) -> Void
      ) -> Void
    ) {
      var said: [String] = []
      body(&framer) { record, offset, mark in
        said.append("record \(record.byte(at: record.byteCount - 1)) at \(offset), mark \(mark)")
      } _: { damage in
        let place = "at \(damage.offset), \(damage.length), mark \(damage.mark)"
        said.append("\(Self.name(damage.cause)) \(damage.bytes) \(place)")
      }
      lines += said
    }

    private static func name(_ cause: DamageCause) -> String {
      switch cause {
      case .malformed(let problem): problem.description
      case .cut: "cut"
      case .beforeStart: "before the start"
      case .streamEnd: "stream end"
      case .dropped: "dropped"
      }
    }
  }

  @Test("Whole records are handed out as they are; one in three pieces is put together, with the last piece's mark")
  func pieces() {
    var conversation = Conversation()
    #expect(
      conversation.say(Self.response(1) + Self.response(2)) == ["record 1 at 0, mark 1", "record 2 at 6, mark 1"])
    #expect(conversation.framer.isStraight)
    #expect(conversation.say([8]) == [])
    #expect(!conversation.framer.isStraight)
    #expect(conversation.say([8, 0]) == [])
    #expect(conversation.say([0, 0, 3] + Self.response(4)) == ["record 3 at 12, mark 4", "record 4 at 18, mark 4"])
    #expect(conversation.framer.isStraight && !conversation.framer.hasSeenUnreadable)
    #expect(conversation.finish() == [])
  }

  @Test("Bytes that are no record begin a search, which names them and goes on with the next record")
  func malformed() {
    var conversation = Conversation()
    #expect(conversation.say([7, 7, 7]) == [])
    #expect(conversation.framer.hasSeenUnreadable)
    #expect(
      conversation.say(Self.response(1) + Self.response(2)) == [
        "unknown response command 7 with status 7 [7, 7, 7] at 0, 3, mark 1", "record 1 at 3, mark 2",
        "record 2 at 9, mark 2",
      ])
    #expect(conversation.framer.isStraight)
  }

  @Test("Damage that came in several pieces has the mark of the piece in which it ends")
  func severalPieces() {
    var conversation = Conversation()
    #expect(conversation.say([7, 7]) == [] && conversation.say([7]) == [])
    #expect(
      conversation.say([7, 7] + Self.response(1)) == [
        "unknown response command 7 with status 7 [7, 7, 7, 7, 7] at 0, 5, mark 3", "record 1 at 5, mark 3",
      ])
  }

  @Test("Where a record with a gap ends with the stream, what looks like a record within it is none")
  func endsWithStream() {
    var random = SeededGenerator(seed: 2)
    let inner = random.notification(command: 2)
    let payload = [UInt8](repeating: 0xee, count: 40) + inner + [0xee, 0xee, 0xee]
    let outer = written {
      BinaryFrame.encodeEnhanced(
        identifier: 0x5555_5555, expiration: 0x7b7b_7b7b, token: [UInt8](repeating: 0xaa, count: 32).rawBytes,
        payload: payload.rawBytes, into: &$0)
    }
    func records(_ bytes: [UInt8]) -> [[UInt8]] {
      // The header says how long the record is.
      let pieces: [Piece] = [.bytes(Array(bytes[..<50])), .gap(10), .bytes(Array(bytes[60...]))]
      let run = FramerRun(.standard, pieces)
      #expect(run.tilesTheStream)
      return run.records.map(\.bytes)
    }
    #expect(records(outer) == [])
    #expect(records(outer + inner) == [inner])
    // Where the stream ends earlier, the header may be wrong.
    #expect(records(Array(outer.dropLast())) == [inner])
  }

  @Test("A header before a gap tells where the next record begins")
  func expected() {
    var conversation = Conversation()
    #expect(conversation.say([8, 8, 0]) == [])
    #expect(conversation.gap(1) == ["cut [8, 8, 0] at 0, 3, mark 1"])
    // What looks like a response's beginning within the cut one is passed over.
    #expect(conversation.say([8, 8] + Self.response(5)) == ["cut [8, 8] at 4, 2, mark 2", "record 5 at 6, mark 2"])
    #expect(!conversation.framer.hasSeenUnreadable)
  }

  @Test("What has begun can be given up, and then the stream goes on behind it")
  func dropped() {
    var conversation = Conversation()
    #expect(conversation.say(Self.response(1)) == ["record 1 at 0, mark 1"])
    #expect(conversation.drop() == [] && conversation.framer.isStraight)
    #expect(conversation.say([8, 8, 0]) == [])
    #expect(conversation.drop() == ["dropped [8, 8, 0] at 6, 3, mark 2"] && conversation.framer.heldBytes == 0)
    #expect(
      conversation.say([8, 8, 0] + Self.response(3)) == ["dropped [8, 8, 0] at 9, 3, mark 3", "record 3 at 12, mark 3"])
  }

  @Test("A gap where a record ends costs nothing; a stream that was joined later begins with the rest of a record")
  func between() {
    var conversation = Conversation()
    #expect(conversation.say(Self.response(1)) == ["record 1 at 0, mark 1"])
    #expect(conversation.gap(6) == [])
    #expect(conversation.say(Self.response(3)) == ["record 3 at 12, mark 2"])

    var later = Conversation(isAligned: false)
    #expect(
      later.say([0, 0, 9] + Self.response(1)) == [
        "before the start [0, 0, 9] at 0, 3, mark 1", "record 1 at 3, mark 1",
      ])
  }

  @Test("At the end what is left is named by what began it")
  func ends() {
    var conversation = Conversation()
    #expect(conversation.say(Self.response(1) + [8, 8, 0]) == ["record 1 at 0, mark 1"])
    #expect(conversation.finish() == ["stream end [8, 8, 0] at 6, 3, mark 1"])

    var cut = Conversation()
    #expect(cut.say([8, 8]) == [])
    #expect(cut.gap(1) == ["cut [8, 8] at 0, 2, mark 1"])
    #expect(cut.say([0, 0]) == [])
    #expect(cut.finish() == ["cut [0, 0] at 3, 2, mark 2"])
  }

  @Test("Bytes of which none is a record are handed back whole, as long as all of them are there")
  func unreadable() {
    var conversation = Conversation()
    #expect(conversation.say(Array("HTTP".utf8)) == [])
    #expect(conversation.framer.unreadable(ofLength: 4)?.bytes == Array("HTTP".utf8))
    #expect(conversation.framer.unreadable(ofLength: 4)?.mark == 1)
    #expect(conversation.framer.unreadable(ofLength: 3)?.bytes == nil)
    conversation.framer.dropUnreadable()
    #expect(conversation.finish() == [])

    var used = Conversation()
    #expect(used.say(Self.response(1) + [1, 1]) == ["record 1 at 0, mark 1"])
    #expect(used.framer.unreadable(ofLength: 2)?.bytes == nil)
  }

  @Test("What was found and not yet asked for comes first after a gap, and the header before the gap still counts")
  func notAskedFor() {
    var conversation = Conversation()
    let bytes = [7, 7] + Self.response(1) + Self.response(2) + [8, 8, 0]
    var position = 0
    guard case .damage(let first) = conversation.framer.next(bytes.rawBytes, &position, at: 0, mark: 1) else {
      Issue.record("the two bytes before the records are damage")
      return
    }
    #expect(first.length == 2 && position == bytes.count && !conversation.framer.isStraight)
    conversation.skip(bytes.count)
    #expect(
      conversation.gap(1) == ["record 1 at 2, mark 1", "record 2 at 8, mark 1", "cut [8, 8, 0] at 14, 3, mark 1"])
    #expect(conversation.say([8, 8] + Self.response(5)) == ["cut [8, 8] at 18, 2, mark 1", "record 5 at 20, mark 1"])
  }

  @Test("Each place is looked at once in a search, however the bytes come")
  func lookedAtOnce() {
    final class Counter: @unchecked Sendable { var probes = 0 }
    struct Counting: RecordGrammar {
      var inner = ResponseGrammar()
      let counter: Counter
      func extent(_ bytes: RawSpan, _ offset: Int) -> RecordExtent { inner.extent(bytes, offset) }
      func isTrustworthy(_ record: RawSpan, followedBy rest: RawSpan) -> Bool { true }
      func isCredible(_ record: RawSpan, isAligned: Bool) -> Bool { true }
      mutating func note(firstByte: UInt8) {}
      func canStart(_ bytes: RawSpan, _ offset: Int, atEnd: Bool) -> Plausibility {
        inner.canStart(bytes, offset, atEnd: atEnd)
      }
      func probe(_ bytes: RawSpan, _ offset: Int, beginsBetween: Bool, atEnd: Bool) -> Plausibility {
        counter.probes += 1
        return inner.probe(bytes, offset, beginsBetween: beginsBetween, atEnd: atEnd)
      }
    }
    let counter = Counter()
    var framer = RecordFramer<Counting, Int>(grammar: Counting(counter: counter), isAligned: true)
    let bytes = Self.response(1) + [UInt8](repeating: 1, count: 300) + Self.response(2)
    var (records, damaged) = (0, 0)
    for (offset, byte) in bytes.enumerated() {
      framer.read([byte].rawBytes, at: offset, mark: offset) { _, _, _ in
        records += 1
      } damage: {
        damaged += $0.length
      }
    }
    #expect(records == 2 && damaged == 300)
    // That of the record is asked for as often as it was not all there.
    #expect((299...310).contains(counter.probes), "\(counter.probes)")
  }

  @Test("A frame that a search finds is not handed out when what follows it speaks against it")
  func foundAndNotBelieved() {
    let odd = written {
      BinaryFrame.encodeFramed(
        token: [UInt8](repeating: 0xaa, count: 32).rawBytes, payload: [0xee].rawBytes, identifier: nil, expiration: nil,
        priority: nil, into: &$0)
    }
    var random = SeededGenerator(seed: 1)
    let good = random.notification(command: 2)
    for before in [0, 1, 5] {
      let garbage = [UInt8](repeating: 0xff, count: before)
      let bytes = garbage + odd + [0xfe, 0xfe] + good
      for longest in [7, 5_000] {
        let run = FramerRun(.standard, random.pieces(bytes, longest: longest), isAligned: false)
        #expect(run.records.map(\.bytes) == (longest == 7 && run.records.count == 2 ? [odd, good] : [good]))
        #expect(run.tilesTheStream)
      }
    }
  }

  @Test("A long region is named in parts, so that what is kept stays bounded")
  func long() {
    var conversation = Conversation()
    var named = 0
    for _ in 0..<64 {
      for line in conversation.say([UInt8](repeating: 1, count: 4_096)) {
        #expect(line.contains("[1, 1, 1"))
        named += 1
      }
    }
    #expect((2...4).contains(named))
    #expect(conversation.say(Self.response(1)).last == "record 1 at \(64 * 4_096), mark 65")
  }
}
