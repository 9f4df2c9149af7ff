import Bytes
import Testing

@testable import LoadTest

@Suite("A connection's batch")
struct ConnectionBatchTests {
  /// Each notification is `size` bytes.
  private func collect(
    _ batch: inout ConnectionBatch, _ count: Int, size: Int = 100, room: Int = .max, at now: Int64 = 5
  ) -> Int {
    var kept = 0
    let taken = batch.collect(
      SentLog.Piece(index: 0, count: count, attempt: 0), room: room, now: now,
      encode: { _, bytes in bytes.write([UInt8](repeating: 7, count: size).rawBytes) }, keep: { _ in kept += 1 },
      due: { _ in DueTimes(now) })
    #expect(kept == taken)
    return taken
  }

  @Test("It takes as many as it may, and no byte more than it may")
  func limits() {
    var batch = ConnectionBatch(.init(bytes: 1_000, notifications: 64))
    #expect(collect(&batch, 7) == 7 && !batch.isFull(room: .max))
    // The eleventh would not fit, and the buffer holds nothing of it.
    #expect(collect(&batch, 9, size: 150) == 2)
    #expect(batch.isFull(room: .max) && batch.bytes.count == 1_000 && batch.count == 9)
    batch.removeAll()
    #expect(batch.count == 0 && batch.bytes.count == 0 && batch.pieces.isEmpty && !batch.isFull(room: .max))
  }

  @Test("One that is longer than a batch may be goes alone")
  func alone() {
    var batch = ConnectionBatch(.init(bytes: 1_000, notifications: 64))
    #expect(collect(&batch, 3, size: 5_000) == 1)
    #expect(batch.isFull(room: .max) && batch.bytes.count == 5_000)
  }

  @Test("It takes no more than its limit of notifications, or than its connection still takes")
  func notifications() {
    var batch = ConnectionBatch(.init(bytes: 100_000, notifications: 64))
    #expect(collect(&batch, 10, room: 4) == 4 && batch.isFull(room: 4) && !batch.isFull(room: 5))
    #expect(collect(&batch, 100) == 60 && batch.isFull(room: .max))
  }

  @Test("It began when its first notification came, and not when it was asked later")
  func beginning() {
    var batch = ConnectionBatch(.init(bytes: 1_000, notifications: 64))
    _ = collect(&batch, 1, at: 3)
    _ = collect(&batch, 1, at: 9)
    #expect(batch.began == 3 && batch.pieces.map(\.due) == [DueTimes(3), DueTimes(9)])
    #expect(batch.unwritten.map(\.due) == [3, 9])
  }
}
