import Foundation
import Synchronization
import TestSupport
import Testing

@testable import GatewaySimulator

/// What a list that was being written looks like to who opens it next: after `kill -9`, and in copies of its files that
/// were taken while writing went on, which is what a crash leaves behind.
@Suite("Feedback list: crashes")
struct FeedbackCrashTests {
  // MARK: kill -9

  @Test("After kill -9 everything is there that was reported durable, and nothing that was removed")
  func kill() async throws {
    try await inTemporaryFolder { folder in
      let report = folder.appendingPathComponent("report")
      try Data().write(to: report)
      for round in 0..<(TestRun.isWhole ? 8 : 3) {
        await #expect(processExitsWith: .signal(SIGKILL), "round \(round)") {
          [path = folder.path as String, round = round as Int] in
          try await Self.writeUntilKilled(folder: URL(fileURLWithPath: path), round: UInt64(round))
        }
        let told = try Self.told(report)
        #expect(told.added > 0, "round \(round)")
        let list = try FeedbackList(path: folder.appendingPathComponent("list").path)
        let found = try await list.all("a", chunk: 10_000)
        #expect(found.allSatisfy { $0.token == token(Int($0.sequence)) }, "round \(round)")
        #expect(found.map(\.sequence).allSatisfy { $0 > told.removed }, "round \(round)")
        // All in a row, from what was perhaps being removed to what was durable or perhaps being added.
        let (first, last) = (found.first?.sequence ?? told.removing + 1, found.last?.sequence ?? told.removing)
        #expect(found.count == Int(last - first) + 1, "round \(round)")
        #expect(first <= told.removing + 1, "round \(round)")
        #expect(last >= told.added, "round \(round)")
        #expect(list.waiting == found.count, "round \(round)")
        #expect(list.state.withLock { $0.lastSequence } >= told.added, "round \(round)")
        try await list.close()
      }
    }
  }

  /// Adds and removes, and writes down what it was told is durable, until a thread of its own process kills it: at a
  /// moment that is drawn, when enough is durable for there to be something to lose. The kernel makes no difference
  /// between that and a kill from outside.
  private static func writeUntilKilled(folder: URL, round: UInt64) async throws {
    let list = try FeedbackList(
      path: folder.appendingPathComponent("list").path, limits: .init(), checkpointPages: 50)
    let report = try FileHandle(forWritingTo: folder.appendingPathComponent("report"))
    try report.seekToEnd()
    let durableBatches = Atomic<Int>(0)
    @Sendable func write(_ kind: String, _ number: Int64) { report.write(Data("\(kind) \(number)\n".utf8)) }
    var random = SeededGenerator(seed: round)
    let (least, delay) = (random.number(10...150), UInt32(random.number(0...20_000)))
    Thread.detachNewThread {
      while durableBatches.load(ordering: .relaxed) < least { usleep(100) }
      usleep(delay)
      Glibc.kill(getpid(), SIGKILL)
    }
    // Tokens are numbered as their sequences are.
    var last = list.state.withLock { $0.lastSequence }
    // More than it gets to, and not without end.
    for _ in 0..<5_000 {
      let batch = (0..<random.number(1...100)).map { _ -> Failure in
        last += 1
        return Failure(topic: "a", token: token(Int(last)), time: UInt32(truncatingIfNeeded: last))
      }
      try list.add(batch) { [last] in
        guard $0 == nil else { return }
        write("added", last)
        durableBatches.add(1, ordering: .relaxed)
      }
      if random.happens(oneIn: 20) {
        let end = try await list.snapshot(topic: "a").sequence
        write("removing", end)
        Task {
          try await list.remove(topic: "a", through: end)
          write("removed", end)
        }
      }
      while list.pendingBytes > 1 << 18 { try await Task.sleep(for: .milliseconds(1)) }
    }
    while true { try await Task.sleep(for: .seconds(1)) }
  }

  private static func told(_ report: URL) throws -> (added: Int64, removing: Int64, removed: Int64) {
    var told: [Substring: Int64] = [:]
    for line in String(decoding: try Data(contentsOf: report), as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ")
      let number = try #require(words.last.flatMap { Int64($0) })
      told[words[0]] = max(told[words[0]] ?? 0, number)
    }
    return (told["added"] ?? 0, told["removing"] ?? 0, told["removed"] ?? 0)
  }

  // MARK: copies

  /// What a copy must hold, and what it must not.
  private struct Known: Sendable {
    var durable: Set<Int> = []
    var removing: Set<Int> = []
    var removed: Set<Int> = []
    var next = 0
    /// Failures that may be added for the time being.
    var allowed = 0
  }

  private final class AddedFailures: Sendable {
    private let known = Mutex(Known())

    func withLock<T: Sendable>(_ body: (inout Known) -> sending T) -> T { known.withLock { body(&$0) } }
  }

  @Test("A copy of the files, taken at any moment, holds all that was reported durable before", arguments: [0, 20])
  func copies(checkpointPages: Int) async throws {
    try await inTemporaryFolder { folder in
      let path = folder.appendingPathComponent("list").path
      let list = try FeedbackList(path: path, limits: .init(), checkpointPages: checkpointPages)
      let known = AddedFailures()
      let rounds = TestRun.isWhole ? 15 : 5
      // Writing goes on during each copy, and the list does not grow with the time that the copies take.
      let each = 600
      try await withThrowingTaskGroup { group in
        for writer in 0..<3 as Range<UInt64> {
          group.addTask { try await Self.add(to: list, known, seed: writer, most: rounds * each) }
        }
        group.addTask {
          while known.withLock({ $0.next }) < rounds * each {
            try await Task.sleep(for: .milliseconds(10))
            try await Self.removeAll(from: list, known)
          }
        }
        var random = SeededGenerator(seed: UInt64(checkpointPages) + 1)
        for round in 1...rounds {
          known.withLock { $0.allowed = round * each }
          // In the middle of what may be written in this round.
          let moment = (round - 1) * each + random.number(1...each / 2)
          while known.withLock({ $0.next }) < moment { try await Task.sleep(for: .milliseconds(1)) }
          try await Self.expectCopy(
            of: list, path, at: folder.appendingPathComponent("copy-\(round)").path, known,
            isLocked: checkpointPages > 0)
        }
        try await group.waitForAll()
      }
      try await list.close()
      #expect(known.withLock { $0.durable.count == $0.next })
    }
  }

  /// Adds failures until there are so many, and for the time being not more than are allowed.
  private static func add(
    to list: FeedbackList, _ known: AddedFailures, seed: UInt64, most: Int
  ) async throws {
    var random = SeededGenerator(seed: seed)
    while true {
      let count = random.number(1...60)
      let first = known.withLock { known -> Int? in
        guard known.next < min(most, known.allowed) else { return known.next < most ? nil : most }
        defer { known.next += count }
        return known.next
      }
      if let first {
        guard first < most else { return }
        let numbers = first..<first + count
        try list.add(numbers.map { Failure(topic: "t\($0 % 2)", token: token($0), time: 1) }) { error in
          if error == nil { known.withLock { $0.durable.formUnion(numbers) } }
        }
      }
      try await Task.sleep(for: .microseconds(random.number(0...2_000)))
    }
  }

  private static func removeAll(from list: FeedbackList, _ known: AddedFailures) async throws {
    let end = try await list.snapshot(topic: "t0").sequence
    let entries = try await list.read(topic: "t0", after: 0, through: end, limit: .max)
    let numbers = entries.map { Int($0.time == 1 ? Self.number($0.token) : -1) }
    known.withLock { $0.removing.formUnion(numbers) }
    try await list.remove(topic: "t0", through: end)
    known.withLock { $0.removed.formUnion(numbers) }
  }

  /// Without checkpoints the file stays as it is and its log only grows, so that a copy is what was at a moment; else the
  /// copy is made between two transactions, when the two files fit to each other.
  private static func expectCopy(
    of list: FeedbackList, _ path: String, at copy: String, _ known: AddedFailures, isLocked: Bool
  ) async throws {
    let before: Known
    if isLocked {
      before = try await list.perform { _ in
        let before = known.withLock { $0 }
        try Self.copy(path, to: copy)
        return before
      }
    } else {
      before = known.withLock { $0 }
      try Self.copy(path, to: copy)
    }
    let opened = try FeedbackList(path: copy)
    let entries = try await opened.all("t0", chunk: 10_000) + opened.all("t1", chunk: 10_000)
    let found = Set(entries.map { Self.number($0.token) })
    let missing = before.durable.subtracting(known.withLock { $0.removing }).subtracting(found).count
    #expect(missing == 0)
    let left = before.removed.intersection(found).count
    #expect(left == 0)
    #expect(opened.waiting == entries.count && entries.count == found.count)
    try await opened.close()
  }

  private static func copy(_ path: String, to copy: String) throws {
    for suffix in ["", "-wal"] {
      try Data(contentsOf: URL(fileURLWithPath: path + suffix)).write(to: URL(fileURLWithPath: copy + suffix))
    }
  }

  private static func number(_ token: [UInt8]) -> Int {
    token.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
  }
}
