import TestSupport
import Testing

@testable import LoadTest

@Suite("Sent log")
struct SentLogTests {
  typealias Piece = SentLog.Piece

  /// Each notification's index, written time, and how often it was written before.
  private struct Model {
    var all: [(index: Int, attempt: Int, written: Int64)] = []
  }

  private func random(_ seed: UInt64, writes: Int, gapOneIn: Int) -> (SentLog, Model) {
    var generator = SeededGenerator(seed: seed)
    var (log, model) = (SentLog(), Model())
    var (next, time) = (0, Int64(0))
    for _ in 0..<writes {
      if generator.happens(oneIn: gapOneIn) { next += generator.number(1...50) }
      let piece = Piece(index: next, count: generator.number(1...9), attempt: generator.happens(oneIn: 10) ? 1 : 0)
      time += Int64(generator.number(0...5))
      log.append(piece, written: time)
      for index in piece.index..<piece.end { model.all.append((index, piece.attempt, time)) }
      next = piece.end
    }
    return (log, model)
  }

  private func expanded(_ pieces: [Piece]) -> [[Int]] {
    pieces.flatMap { piece in (piece.index..<piece.end).map { [$0, piece.attempt] } }
  }

  @Test("what is left is what was written from there on", arguments: 0..<40 as Range<UInt64>)
  func left(seed: UInt64) {
    // Some long enough for old writes to be joined.
    let (log, model) = random(seed, writes: seed % 8 == 0 ? 20_000 : 300, gapOneIn: 4)
    #expect(log.count == model.all.count)
    var generator = SeededGenerator(seed: ~seed)
    for position in [0, 1, log.count - 1, log.count] + (0..<20).map({ _ in generator.number(0...log.count) }) {
      let pieces = log.pieces(from: position)
      #expect(expanded(pieces) == model.all[position...].map { [$0.index, $0.attempt] })
      #expect(pieces.allSatisfy { $0.count > 0 })
    }
    #expect(log.pieces(from: log.count + 1).isEmpty)
  }

  @Test("times of recent writes are exact, of old ones never too late", arguments: 0..<8 as Range<UInt64>)
  func times(seed: UInt64) {
    let (log, model) = random(seed, writes: 20_000, gapOneIn: 3)
    for position in stride(from: 0, to: log.count, by: 97) {
      #expect((log.written(at: position) ?? .max) <= model.all[position].written)
    }
    for position in max(0, log.count - SentLog.recent)..<log.count {
      #expect(log.written(at: position) == model.all[position].written)
    }
    #expect(log.written(at: -1) == nil)
    #expect(log.written(at: log.count) == nil)
    #expect(SentLog().written(at: 0) == nil)
  }

  @Test("a connection without errors needs no more room the longer it lives")
  func bounded() {
    var log = SentLog(limit: 1 << 14)
    for number in 0..<200_000 { log.append(Piece(index: number * 60, count: 60, attempt: 0), written: Int64(number)) }
    #expect(log.entryCount <= 2 * SentLog.recent)
    #expect(!log.isFull)
    #expect(log.pieces(from: 0).reduce(0) { $0 + $1.count } == 12_000_000)
  }

  @Test("where nothing runs on, it says when it is full")
  func full() {
    var log = SentLog(limit: 1 << 14)
    var written = 0
    while !log.isFull, written < 1 << 20 {
      log.append(Piece(index: written * 100, count: 60, attempt: 0), written: 0)
      written += 1
    }
    #expect(written == 1 << 14)
  }

  @Test("pieces from several ends come back in their order", arguments: 0..<40 as Range<UInt64>)
  func sorted(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var (pieces, next) = ([Piece](), 0)
    for _ in 0..<generator.number(0...60) {
      next += generator.number(0...3)
      pieces.append(Piece(index: next, count: generator.number(1...20), attempt: generator.number(0...1)))
      next += pieces[pieces.count - 1].count
    }
    let expected = expanded(pieces)
    let sorted = Piece.sorted(pieces.shuffled(using: &generator))
    #expect(expanded(sorted) == expected)
    #expect(sorted.count <= pieces.count)
    for (a, b) in zip(sorted, sorted.dropFirst()) { #expect(a.end < b.index || a.attempt != b.attempt) }
  }

  @Test("what may be to blame is halved and halved until it is alone")
  func blame() {
    var piece = Piece(index: 0, count: 5_000, attempt: 0)
    #expect(!piece.isSuspect)
    var (count, rounds) = (5_000, 0)
    while piece.alone == 0, rounds < 50 {
      piece.suspect(among: count)
      count = min(count, piece.portion)
      rounds += 1
    }
    #expect(piece.isSuspect)
    #expect(rounds <= 8)
  }
}
