import BinaryProtocol
import Bytes
import Testing

/// The judgement of single places: whether a frame can begin there, surely begins there, and is to be believed.
@Suite("Grammar of frames")
struct GatewayGrammarTests {
  private static let grammar = GatewayGrammar.standard

  /// Bytes, and what is said of them while more may come and when none will.
  typealias Judged = (bytes: [UInt8], open: Plausibility, atEnd: Plausibility)

  private static let token = [UInt8](repeating: 0xaa, count: 32)
  private static let json = Array(#"{"aps":{"alert":"hi"}}"#.utf8)
  private static let noJSON: [UInt8] = [0xee, 0xee, 0xee]

  private static func simple(_ payload: [UInt8], token: [UInt8] = token) -> [UInt8] {
    written { BinaryFrame.encodeSimple(token: token.rawBytes, payload: payload.rawBytes, into: &$0) }
  }
  private static func enhanced(_ payload: [UInt8], token: [UInt8] = token, expiration: UInt32 = 0x7b7b_7b7b) -> [UInt8]
  {
    written {
      BinaryFrame.encodeEnhanced(
        identifier: 0x5555_5555, expiration: expiration, token: token.rawBytes, payload: payload.rawBytes, into: &$0)
    }
  }
  private static func framed(_ items: (UInt8, [UInt8])...) -> [UInt8] {
    let items = items.map { FrameItem(id: .init(rawValue: $0.0), data: $0.1) }
    return written { BinaryFrame.encodeFramed(items: items, into: &$0) }
  }

  /// Checks a judgement at offset 0, and behind bytes that belong to nothing.
  private func check(
    _ cases: [Judged], _ location: SourceLocation = #_sourceLocation,
    _ judge: (_ bytes: [UInt8], _ offset: Int, _ atEnd: Bool) -> Plausibility
  ) {
    for (bytes, open, atEnd) in cases {
      for before in [0, 1, 20] {
        let all = [UInt8](repeating: 0xff, count: before) + bytes
        #expect(judge(all, before, false) == open, "\(bytes) behind \(before)", sourceLocation: location)
        #expect(judge(all, before, true) == atEnd, "\(bytes) behind \(before), at the end", sourceLocation: location)
      }
    }
  }

  @Test("A frame can begin where its first bytes allow it")
  func canStart() {
    let long = [UInt8](repeating: 0, count: 8)
    check([
      ([], .needsMore, .no), ([3], .no, .no), ([0x7b], .no, .no), ([0xff], .no, .no),
      // Command 2: a length within the limit, and one of the five items.
      ([2], .needsMore, .yes), ([2, 0, 0, 0], .needsMore, .yes), ([2, 0, 0, 0, 0], .needsMore, .yes),
      ([2, 0, 0, 0, 0, 9], .yes, .yes), ([2, 0, 0, 0, 1], .needsMore, .yes), ([2, 0, 0, 0, 1, 0], .no, .no),
      ([2, 0, 0, 0, 1, 1], .yes, .yes), ([2, 0, 0, 0, 1, 5], .yes, .yes), ([2, 0, 0, 0, 1, 6], .no, .no),
      ([2, 0, 2, 0, 0, 1], .yes, .yes), ([2, 0, 2, 0, 1, 1], .no, .no), ([2, 0, 2, 0, 1], .no, .no),
      ([2, 0xff, 0xff, 0xff, 0xff, 1], .no, .no),
      // Command 1: a token that is not longer than any that was seen.
      ([1], .needsMore, .yes), ([1] + long + [0], .needsMore, .yes), ([1] + long + [0, 0], .yes, .yes),
      ([1] + long + [0, 255], .yes, .yes), ([1] + long + [1, 0], .no, .no),
      // Command 0: likewise, and there is one.
      ([0], .needsMore, .yes), ([0, 0], .needsMore, .yes), ([0, 0, 0], .no, .no), ([0, 0, 1], .yes, .yes),
      ([0, 0, 255], .yes, .yes), ([0, 1, 0], .no, .no),
    ]) { Self.grammar.canStart($0.rawBytes, $1, atEnd: $2) }
  }

  @Test("A frame of items surely begins where every item is what it should be")
  func probeFramed() {
    let whole = Self.framed((1, Self.token), (2, Self.noJSON))
    let numbers = Self.framed((1, Self.token), (2, Self.json), (3, [0, 0, 0, 1]), (4, [0, 0, 0, 1]), (5, [10]))
    check([
      (whole, .yes, .yes), (whole + [9], .yes, .yes), (numbers, .yes, .yes),
      // What is there of one that goes on is credible.
      (Array(numbers.dropLast()), .needsMore, .no), (Array(numbers.prefix(8)), .needsMore, .no),
      (Array(numbers.prefix(5)), .needsMore, .no), ([], .needsMore, .no), ([2], .needsMore, .no),
      (Self.framed((1, Self.token)), .no, .no), (Self.framed((2, Self.json)), .no, .no),
      (Self.framed((1, Self.token), (2, Self.json), (6, [1])), .no, .no),
      (Self.framed((1, Self.token), (2, Self.json), (5, [1, 2])), .no, .no),
      (Self.framed((1, [UInt8](repeating: 7, count: 255)), (2, Self.json)), .yes, .yes),
      (Self.framed((1, [UInt8](repeating: 7, count: 256)), (2, Self.json)), .no, .no),
      // An item that overruns.
      ([2, 0, 0, 0, 4, 1, 0, 9, 1], .no, .no), ([2, 0, 0, 0, 0, 1], .no, .no), ([2, 0, 2, 0, 1, 1], .no, .no),
    ]) { Self.grammar.probe($0.rawBytes, $1, beginsBetween: true, atEnd: $2) }
  }

  @Test("A search does not wait for a frame whose first items are not what they should be")
  func waits() {
    func start(_ rest: UInt8...) -> [UInt8] { [2, 0, 0, 0, 60] + rest }
    check([
      (start(1, 0, 32, 7, 7), .needsMore, .no), (start(1), .needsMore, .no), (start(3, 0, 4, 1), .needsMore, .no),
      (start(3, 0, 5), .no, .no), (start(5, 0, 1, 1, 4, 0, 4), .needsMore, .no), (start(4, 0, 3), .no, .no),
      (start(5, 0, 1, 1, 5, 0, 1), .no, .no), (start(2, 0, 1, 1, 9, 0, 1), .no, .no),
      // No room for the item in the frame; a token that nobody has.
      (start(1, 0, 57, 7), .needsMore, .no), (start(1, 0, 58, 7), .no, .no),
      ([2, 0, 0, 9, 0, 1, 0, 255, 7], .needsMore, .no), ([2, 0, 0, 9, 0, 1, 1, 0, 7], .no, .no),
      ([2, 0, 0, 9, 0, 2, 1, 0, 7], .needsMore, .no),
    ]) { Self.grammar.probe($0.rawBytes, $1, beginsBetween: true, atEnd: $2) }
    // The first byte of the payload is there, and no payload begins with a zero.
    let head = Array(Self.enhanced(Self.json).prefix(45))
    check([
      (head, .needsMore, .no), (head + [0x7b], .needsMore, .no), (head + [1], .needsMore, .no), (head + [0], .no, .no),
    ]) { Self.grammar.probe($0.rawBytes, $1, beginsBetween: true, atEnd: $2) }
  }

  @Test("A frame of command 1 surely begins where it carries JSON, or another can follow")
  func probeEnhanced() {
    let json = Self.enhanced(Self.json)
    let odd = Self.enhanced(Self.noJSON)
    check([
      (json, .yes, .yes), (json + [9, 9, 9], .yes, .yes), (Self.enhanced(Array("7".utf8)) + [9], .yes, .yes),
      (odd, .needsMore, .yes), (odd + [9], .no, .no), (odd + [0, 0, 32], .yes, .yes), (odd + [1], .needsMore, .yes),
      (Self.enhanced([]), .no, .no), (Self.enhanced(Self.json, token: []), .no, .no),
      (Array(json.dropLast()), .needsMore, .no),
    ]) { Self.grammar.probe($0.rawBytes, $1, beginsBetween: true, atEnd: $2) }
  }

  @Test("A frame of command 0 or 1 that holds the beginning of another is none")
  func holdsAnother() {
    let framed = Self.framed((1, Self.token), (2, Self.json))
    let enhanced = Self.enhanced(Self.json)
    func holding(_ inner: [UInt8], at place: Int = 4) -> [UInt8] {
      let (before, room) = (place - 3, 220)
      let token = [UInt8](repeating: 0xaa, count: before) + inner
      return Self.simple(
        Self.json, token: token + [UInt8](repeating: 0xaa, count: max(0, room - token.count)))
    }
    for place in [4, 100, 150] {
      check([
        (holding(framed, at: place), .no, .no), (holding(enhanced, at: place), .no, .no),
        // What only looks like the beginning of one does not count.
        (holding(Array(framed.prefix(5)) + [1, 0xff, 0xff], at: place), .yes, .yes),
        (holding(Self.framed((1, Self.token), (6, [1])), at: place), .yes, .yes),
        (holding(Self.framed((1, Self.token), (2, Self.json), (2, [])), at: place), .yes, .yes),
        (holding(Self.enhanced(Self.noJSON), at: place), .yes, .yes),
        (holding(Self.enhanced([]), at: place), .yes, .yes),
        (holding(Self.enhanced(Self.json, token: []), at: place), .yes, .yes),
        (holding([2, 0, 0, 0, 3, 1, 0, 9], at: place), .yes, .yes),
      ]) { Self.grammar.probe($0.rawBytes, $1, beginsBetween: true, atEnd: $2) }
    }
    // It may begin in the payload, as long as that is near the beginning; later ones are not looked for.
    func inPayload(at place: Int) -> [UInt8] {
      let before = place - 2 - Self.token.count - 3
      return Self.simple([UInt8](repeating: 0xee, count: before) + framed) + [0, 0, 32]
    }
    check([(inPayload(at: 254), .no, .no)]) {
      Self.grammar.probe($0.rawBytes, $1, beginsBetween: true, atEnd: $2)
    }
    var (seen, bytes) = (Self.grammar, inPayload(at: 255))
    seen.note(firstByte: 0)
    var answer = seen.probe(bytes.rawBytes, 0, beginsBetween: true, atEnd: false)
    #expect(answer == .yes)
    bytes = inPayload(at: 254)
    answer = seen.probe(bytes.rawBytes, 0, beginsBetween: true, atEnd: false)
    #expect(answer == .no)
  }

  @Test("A frame of command 0 that ends in the beginning of a longer one waits for the rest of that")
  func endsInAnother() {
    let framed = Self.framed((1, Self.token), (2, Self.json))
    for (length, expected) in [(1, Plausibility.yes), (4, .yes), (5, .yes), (8, .needsMore), (30, .yes)] {
      // One of 8 may go on in the payload; of one of 30 the next item would begin in the JSON, and be none.
      let bytes = Self.simple(Self.json, token: Self.token + framed.prefix(length))
      let answer = Self.grammar.probe(bytes.rawBytes, 0, beginsBetween: true, atEnd: false)
      let last = Self.grammar.probe(bytes.rawBytes, 0, beginsBetween: true, atEnd: true)
      #expect(answer == expected && last == .yes, "\(length)")
    }
    for length in [1, 4, 5, 6, 8, 30] {
      let bytes = Self.simple(Self.noJSON + framed.prefix(length))
      let answer = Self.grammar.probe(bytes.rawBytes, 0, beginsBetween: true, atEnd: false)
      let last = Self.grammar.probe(bytes.rawBytes, 0, beginsBetween: true, atEnd: true)
      #expect(answer == .needsMore && last == .yes, "\(length)")
    }
    // One of the longest payload that was ever allowed is waited for, and no longer one.
    for (length, expected) in [(4_603, Plausibility.needsMore), (4_604, .no)] {
      let header = [2] + written { $0.write(bigEndian: UInt32(length)) } + [1, 0, 32]
      let bytes = Self.simple(Self.noJSON + header) + [9]
      let answer = Self.grammar.probe(bytes.rawBytes, 0, beginsBetween: true, atEnd: false)
      #expect(answer == expected, "\(length)")
    }
  }

  @Test("The end of a command-1 frame whose expiration ends in a zero is no frame of command 0")
  func endOfEnhanced() {
    func probe(
      _ bytes: [UInt8], _ offset: Int, between: Bool = true, atEnd: Bool = false,
      _ grammar: GatewayGrammar = Self.grammar
    ) -> Plausibility { grammar.probe(bytes.rawBytes, offset, beginsBetween: between, atEnd: atEnd) }
    let whole = Self.enhanced(Self.json, expiration: 0x7b7b_7b00)
    // Its first byte tells.
    #expect(probe(whole + [9], 8) == .no)
    // Where it is not there, that the bytes begin a record, or what was seen before tells.
    for missing in 1...8 {
      let rest = Array(whole.dropFirst(missing)) + [9]
      #expect(probe(rest, 8 - missing) == .yes, "\(missing) missing")
      #expect(probe(rest, 8 - missing, between: false) == .no, "\(missing) missing")
    }
    let simple = Array(whole.dropFirst(8))
    var seen = Self.grammar
    seen.note(firstByte: 0)
    #expect(probe(simple + [9], 0, between: false, seen) == .yes)
    seen = Self.grammar
    seen.note(firstByte: 1)
    #expect(probe(simple + [9], 0, between: false, seen) == .no)
    // The bracket of a payload before it, or another of its kind after it.
    #expect(probe([0x7d] + simple + [9], 1, between: false) == .yes)
    #expect(probe([0x7c] + simple + [9], 1, between: false) == .no)
    #expect(probe(simple + [0], 0, between: false) == .yes)
    #expect(probe(simple + [1], 0, between: false) == .no)
    #expect(probe(simple, 0, between: false) == .needsMore)
    #expect(probe(simple, 0, between: false, atEnd: true) == .yes)
    #expect(probe([0x7c] + simple, 1, between: false, atEnd: true) == .no)
    // Without JSON it is never sure by its place alone.
    let odd = Self.simple(Self.noJSON)
    #expect(probe(odd + [9], 0) == .no)
    #expect(probe(odd + [0, 0, 32], 0) == .yes)
    #expect(probe(odd + [0, 0, 0], 0) == .no)
    #expect(probe(Self.simple(Self.json, token: []), 0) == .no && probe(Self.simple([]), 0) == .no)
  }

  @Test("A whole frame is believed for its payload, or for what follows it")
  func trustworthy() {
    let (framed, odd) = (Self.framed((1, Self.token), (2, Self.json)), Self.framed((1, Self.token), (2, Self.noJSON)))
    let bracket = Array("{x".utf8)
    let none: [UInt8] = [2, 0, 0, 0, 1, 9]
    let overrun: [UInt8] = [2, 0, 0, 0, 3, 1, 0, 9]
    let holding = Self.enhanced(Self.noJSON + framed)
    // Before the whole frame, what may be the header of one that does not end within the record.
    let header: [UInt8] = [2, 0, 0, 0x10, 0, 2, 0x0f, 0xf0]
    let holdingTwo = Self.enhanced(Self.noJSON + header + framed)
    let cases: [(record: [UInt8], rest: [UInt8], isBelieved: Bool)] = [
      (framed, [], true), (framed, [2], true), (framed, none, true), (framed, [0, 0, 0], true), (framed, [3], true),
      (odd, [], true), (odd, none, true), (odd, [0, 0, 0], false), (odd, [1], true), (odd, [3], false),
      (odd, [0, 0, 1], true), (odd, [0xff], false),
      (Self.framed((1, Self.token), (2, Array("7".utf8))), [3], true),
      (Self.framed((6, [1])), [], true), (Self.framed((6, [1])), [3], false),
      (overrun, [], true), (overrun, [2], true), (overrun, [1], true), (overrun, [3], false),
      (overrun, [0, 0, 0], false),
      (Self.enhanced(bracket), [], true), (Self.enhanced(bracket), none, true), (Self.enhanced(bracket), [3], false),
      (Self.enhanced(Self.json), [3], true), (Self.enhanced(Self.noJSON), none, false),
      (Self.enhanced(Self.noJSON), [], true), (Self.enhanced(Self.noJSON), [1], true),
      (Self.enhanced([]), [], true), (Self.enhanced([]), [2], true), (Self.enhanced([]), none, false),
      (Self.simple(bracket), none, true), (Self.simple(Self.noJSON), none, false), (Self.simple([]), [3], false),
      (holding, [], false), (holding, [1], false), (holdingTwo, [], false), (holdingTwo, [1], false),
      (Self.enhanced(Self.noJSON + header), [], true),
    ]
    for (record, rest, isBelieved) in cases {
      let said = Self.grammar.isTrustworthy(record.rawBytes, followedBy: rest.rawBytes)
      #expect(said == isBelieved, "\(record), then \(rest)")
    }
  }

  @Test("A record is credible for its items, or for a payload that begins as JSON does; in its place for any payload")
  func credible() {
    let cases: [(record: [UInt8], alone: Bool, inPlace: Bool)] = [
      (Self.framed((1, Self.token), (2, Self.noJSON)), true, true),
      (Self.framed((1, Self.token), (2, [])), true, true),
      (Self.framed((1, Self.token), (2, Self.noJSON), (6, [])), false, true),
      (Self.framed((1, Self.token), (2, Self.json), (6, [])), true, true),
      (Self.framed((1, []), (2, Self.json), (6, [])), false, false),
      (Self.framed((1, [UInt8](repeating: 7, count: 256)), (2, Self.noJSON)), false, true),
      (Self.framed((1, Self.token)), false, false), (Self.framed((2, Self.json)), false, false),
      ([2, 0, 0, 0, 3, 1, 0, 9], false, false),
      (Self.enhanced(Self.json), true, true), (Self.enhanced(Array("{x".utf8)), true, true),
      (Self.enhanced(Self.noJSON), false, true), (Self.enhanced([]), false, false),
      (Self.enhanced(Self.json, token: []), false, false), (Self.simple(Self.json), true, true),
      (Self.simple([0xee], token: [1]), false, true), (Self.enhanced([0x7b], token: [1]), true, true),
    ]
    for (record, alone, inPlace) in cases {
      let isAlone = Self.grammar.isCredible(record.rawBytes, isAligned: false)
      #expect(isAlone == alone, "\(record)")
      let isInPlace = Self.grammar.isCredible(record.rawBytes, isAligned: true)
      #expect(isInPlace == inPlace, "\(record), in its place")
    }
  }
}
