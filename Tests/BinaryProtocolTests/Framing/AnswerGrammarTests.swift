import BinaryProtocol
import Bytes
import Testing

/// The judgement of single places in the two streams that come from Apple's side.
@Suite("Grammars of answers and of the feedback service")
struct AnswerGrammarTests {
  private func check<G: RecordGrammar>(
    _ grammar: G, _ cases: [(bytes: [UInt8], open: Plausibility, atEnd: Plausibility)],
    canStart: Bool, _ location: SourceLocation = #_sourceLocation
  ) {
    for (bytes, open, atEnd) in cases {
      for before in [0, 1, 9] {
        let all = [UInt8](repeating: 0xff, count: before) + bytes
        for (isEnd, expected) in [(false, open), (true, atEnd)] {
          let probed = grammar.probe(all.rawBytes, before, beginsBetween: true, atEnd: isEnd)
          let said = canStart ? grammar.canStart(all.rawBytes, before, atEnd: isEnd) : probed
          #expect(said == expected, "\(bytes) behind \(before), at the end: \(isEnd)", sourceLocation: location)
        }
      }
    }
  }

  @Test("An error response begins with 8 and a documented status", arguments: [false, true])
  func responses(canStart: Bool) {
    check(
      ResponseGrammar(),
      [
        ([], .needsMore, .no), ([8], .needsMore, .no), ([8, 8, 0, 0, 0], .needsMore, .no), ([7], .no, .no),
        ([8, 8, 0, 0, 0, 1], .yes, .yes), ([8, 8, 0, 0, 0, 1, 9], .yes, .yes), ([8, 9, 0, 0, 0, 1], .no, .no),
        ([8, 10, 0, 0, 0, 1], .yes, .yes), ([8, 128, 0, 0, 0, 1], .yes, .yes), ([9, 8, 0, 0, 0, 1], .no, .no),
      ], canStart: canStart)
  }

  @Test("A whole response is believed; it is credible with the documented command")
  func wholeResponses() {
    let (documented, other): ([UInt8], [UInt8]) = ([8, 1, 0, 0, 0, 1], [0, 1, 0, 0, 0, 1])
    let isBelieved = ResponseGrammar().isTrustworthy(documented.rawBytes, followedBy: [9].rawBytes)
    #expect(isBelieved)
    let isCredible = ResponseGrammar().isCredible(documented.rawBytes, isAligned: false)
    #expect(isCredible)
    let isOtherCredible = ResponseGrammar().isCredible(other.rawBytes, isAligned: true)
    #expect(!isOtherCredible)
    let extent = ResponseGrammar().extent(documented.rawBytes, 0)
    #expect(extent == .complete(6))
  }

  private static let feedback = FeedbackGrammar(limits: ProtocolLimits())

  private static func time(_ time: UInt32) -> [UInt8] { written { $0.write(bigEndian: time) } }
  private static func tuple(_ token: Int, at when: UInt32 = 1_450_000_000) -> [UInt8] {
    let token = [UInt8](repeating: 0xaa, count: token)
    return written { FeedbackTuple(timestamp: when, token: token.rawBytes).encode(into: &$0) }
  }

  @Test("A tuple can begin with a time from 2009 to 2038 or none, and the length of a token")
  func tupleHeaders() {
    check(
      Self.feedback,
      [
        ([], .needsMore, .no), (Self.time(1_450_000_000) + [0], .needsMore, .no),
        (Self.time(1_450_000_000) + [0, 32], .yes, .yes), (Self.time(1_450_000_000) + [0, 0], .no, .no),
        (Self.time(1_450_000_000) + [0, 1], .yes, .yes), (Self.time(1_450_000_000) + [0, 255], .yes, .yes),
        (Self.time(1_450_000_000) + [1, 0], .no, .no), (Self.time(0) + [0, 32], .yes, .yes),
        // 1 January 2009 is 1230768000 = 0x495c0780, 19 January 2038 is 0x7fffffff.
        (Self.time(1_230_768_000) + [0, 32], .yes, .yes), (Self.time(1_230_767_999) + [0, 32], .no, .no),
        (Self.time(0x7fff_ffff) + [0, 32], .yes, .yes), (Self.time(0x8000_0000) + [0, 32], .no, .no),
        (Self.time(1) + [0, 32], .no, .no),
      ], canStart: true)
  }

  @Test("A tuple surely begins where its token has 32 bytes, or another tuple follows")
  func tuples() {
    check(
      Self.feedback,
      [
        ([], .needsMore, .no), (Self.tuple(32), .yes, .yes), (Self.tuple(32) + [9], .yes, .yes),
        (Array(Self.tuple(32).dropLast()), .needsMore, .no), (Self.tuple(32, at: 1), .no, .no),
        // Zeros abound, so a tuple without a time is not enough.
        (Self.tuple(32, at: 0), .needsMore, .yes), (Self.tuple(32, at: 0) + Self.tuple(32), .yes, .yes),
        (Self.tuple(31), .needsMore, .yes), (Self.tuple(33) + Self.tuple(9), .yes, .yes),
        (Self.tuple(33) + [1], .needsMore, .no), (Self.tuple(33) + Self.tuple(32, at: 5), .no, .no),
      ], canStart: false)
  }

  @Test("A whole tuple is believed; it is credible with a time and a token")
  func wholeTuples() {
    for (bytes, isCredible) in [
      (Self.tuple(32), true), (Self.tuple(1), true), (Self.tuple(255), true), (Self.tuple(32, at: 0), false),
      (Self.tuple(0), false), (Self.tuple(256), false), (Self.tuple(32, at: 9), false),
    ] {
      let inPlace = Self.feedback.isCredible(bytes.rawBytes, isAligned: true)
      #expect(inPlace == isCredible, "\(bytes)")
      let alone = Self.feedback.isCredible(bytes.rawBytes, isAligned: false)
      #expect(alone == isCredible, "\(bytes)")
      let isBelieved = Self.feedback.isTrustworthy(bytes.rawBytes, followedBy: [1].rawBytes)
      #expect(isBelieved)
      let extent = Self.feedback.extent(bytes.rawBytes, 0)
      #expect(extent == .complete(bytes.count))
    }
  }
}
