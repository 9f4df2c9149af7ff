import TestSupport
import Testing

@testable import LoadTest

@Suite("Sent log")
struct SentLogTests {
  typealias Piece = SentLog.Piece

  /// Each notification's index, written time, and how often it was written before.
  private struct Model {
    var all: [(index: Int, attempt: Int, silences: Int, portion: Int, written: Int64)] = []
  }

  /// Times of so many writes are exact.
  private static let recent = 64

  private func random(_ seed: UInt64, writes: Int, gapOneIn: Int) -> (SentLog, Model) {
    var generator = SeededGenerator(seed: seed)
    var (log, model) = (SentLog(recent: Self.recent), Model())
    var (next, time) = (0, Int64(0))
    for _ in 0..<writes {
      if generator.happens(oneIn: gapOneIn) { next += generator.number(1...50) }
      // Sent again: of before, and with a history.
      if generator.happens(oneIn: 50) { next = max(0, next - generator.number(1...100_000)) }
      var piece = Piece(
        index: next, count: generator.number(1...(generator.happens(oneIn: 50) ? 1_000 : 9)),
        attempt: generator.happens(oneIn: 10) ? generator.number(1...200) : 0)
      if generator.happens(oneIn: 100) { piece.suspect(among: generator.number(1...9)) }
      time += Int64(generator.number(0...5))
      log.append(piece, written: time)
      for index in piece.index..<piece.end {
        model.all.append((index, piece.attempt, piece.silences, piece.portion, time))
      }
      next = piece.end
    }
    return (log, model)
  }

  private func expanded(_ pieces: [Piece]) -> [[Int]] {
    pieces.flatMap { piece in (piece.index..<piece.end).map { [$0, piece.attempt, piece.silences, piece.portion] } }
  }

  @Test("What is left is what was written from there on", arguments: seeds(12, of: 40))
  func left(seed: UInt64) {
    // Long enough for old writes to be packed, in several blocks.
    let (log, model) = random(seed, writes: seed % 8 == 0 ? 3_000 : 200, gapOneIn: 4)
    #expect(log.count == model.all.count)
    var generator = SeededGenerator(seed: ~seed)
    for position in [0, 1, log.count - 1, log.count] + (0..<8).map({ _ in generator.number(0...log.count) }) {
      let pieces = log.pieces(from: position)
      #expect(expanded(pieces) == model.all[position...].map { [$0.index, $0.attempt, $0.silences, $0.portion] })
      #expect(pieces.allSatisfy { $0.count > 0 })
      let end = generator.number(position...log.count)
      let part = model.all[position..<end].map { [$0.index, $0.attempt, $0.silences, $0.portion] }
      #expect(expanded(log.pieces(in: position..<end)) == part)
    }
    #expect(log.pieces(from: log.count + 1).isEmpty)
  }

  @Test("Times of recent writes are exact, of old ones never too late", arguments: 0..<8 as Range<UInt64>)
  func times(seed: UInt64) {
    let (log, model) = random(seed, writes: 1_000, gapOneIn: 3)
    for position in stride(from: 0, to: log.count, by: 97) {
      #expect((log.written(at: position) ?? .max) <= model.all[position].written)
    }
    for position in max(0, log.count - Self.recent)..<log.count {
      #expect(log.written(at: position) == model.all[position].written)
    }
    #expect(log.written(at: -1) == nil)
    #expect(log.written(at: log.count) == nil)
    #expect(SentLog().written(at: 0) == nil)
  }

  @Test("A connection without errors needs no more room the longer it lives")
  func bounded() {
    var log = SentLog(recent: 64, limit: 1 << 14)
    for number in 0..<50_000 { log.append(Piece(index: number * 60, count: 60, attempt: 0), written: Int64(number)) }
    #expect(log.oldMemory == 0)
    #expect(!log.isFull)
    #expect(log.pieces(from: 0).reduce(0) { $0 + $1.count } == 3_000_000)
    #expect(log.pieces(from: 0).count <= 2 * 64)
  }

  @Test("Where nothing runs on a write takes some bytes, and it says when it is full")
  func full() {
    var log = SentLog(recent: 64, limit: 1 << 16)
    var (written, index) = (0, 0)
    var generator = SeededGenerator(seed: 1)
    while !log.isFull, written < 1 << 20 {
      log.append(Piece(index: index, count: 60, attempt: 0), written: 0)
      // As 250 connections in turn.
      index += 250 * 60 + generator.number(-500...500)
      written += 1
    }
    #expect(log.isFull)
    #expect((1 << 16) / 8...(1 << 16) / 3 ~= written)
    #expect(log.count == 60 * written)
  }

  @Test("Pieces from several ends come back in their order", arguments: 0..<40 as Range<UInt64>)
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

  @Test("What may be to blame is halved and halved until it is alone")
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
