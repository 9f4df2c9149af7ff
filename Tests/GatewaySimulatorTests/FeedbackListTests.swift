import Foundation
import Synchronization
import TestSupport
import Testing

@testable import GatewaySimulator

typealias Failure = FeedbackList.Failure

extension FeedbackList {
  /// Adds and waits until the failures are durable.
  func put(_ failures: [Failure]) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      do {
        try add(failures) { error in
          if let error { continuation.resume(throwing: error) } else { continuation.resume() }
        }
      } catch {
        continuation.resume(throwing: error)
      }
    }
  }

  /// The whole list of a topic, read in chunks.
  func all(_ topic: String, chunk: Int = 1_000) async throws -> [Entry] {
    let end = try await snapshot(topic: topic).sequence
    var entries: [Entry] = []
    while true {
      let next = try await read(topic: topic, after: entries.last?.sequence ?? 0, through: end, limit: chunk)
      if next.isEmpty { return entries }
      entries += next
    }
  }
}

/// Gives `body` a folder that is gone afterwards.
func inTemporaryFolder<T>(_ body: (URL) async throws -> T) async throws -> T {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("apnscope-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  return try await body(folder)
}

func token(_ number: Int) -> [UInt8] {
  (0..<32).map { UInt8(truncatingIfNeeded: $0 < 8 ? number >> (8 * $0) : $0) }
}

@Suite("Feedback list")
struct FeedbackListTests {
  // MARK: adding and reading

  @Test("What is added is read in the order of its sequences, in chunks of any size", arguments: [nil, "feedback.db"])
  func order(file: String?) async throws {
    try await inTemporaryFolder { folder in
      let list = try FeedbackList(path: file.map { folder.appendingPathComponent($0).path })
      for first in stride(from: 0, to: 100, by: 10) {
        try await list.put((first..<first + 10).map { Failure(topic: "a", token: token($0), time: UInt32($0)) })
      }
      let entries = try await list.all("a", chunk: 7)
      #expect(entries.map(\.token) == (0..<100).map(token))
      #expect(entries.map(\.time) == (0..<100).map { UInt32($0) })
      #expect(entries.map(\.sequence) == Array(1...100))
      #expect(list.waiting == 100 && list.waiting(topic: "a") == 100)
      #expect(try await list.read(topic: "a", after: 98, through: 99, limit: 10).map(\.sequence) == [99])
      #expect(try await list.read(topic: "a", after: 0, through: 99, limit: 0) == [])
      try await list.close()
    }
  }

  @Test("A token stands once on the list, with the time of its last failure and at the end")
  func again() async throws {
    let list = try FeedbackList(path: nil)
    try await list.put([
      Failure(topic: "a", token: [1], time: 10), Failure(topic: "a", token: [2], time: 11),
      Failure(topic: "a", token: [1], time: 12),
    ])
    try await list.put([Failure(topic: "a", token: [2], time: 9)])
    #expect(
      try await list.all("a") == [
        .init(sequence: 3, time: 12, token: [1]), .init(sequence: 4, time: 9, token: [2]),
      ])
    #expect(list.waiting == 2)
    #expect(try await list.snapshot(topic: "a") == .init(sequence: 4, count: 2))
  }

  @Test(
    "Topics do not mix, whatever their names",
    arguments: [("a", "b"), ("a", ""), ("a\0b", "a\0c"), ("\u{e9}", "e\u{301}")])
  func topics(first: String, second: String) async throws {
    let list = try FeedbackList(path: nil)
    try await list.put([
      Failure(topic: first, token: [1], time: 1), Failure(topic: second, token: [1], time: 2),
      Failure(topic: second, token: [2], time: 3),
    ])
    #expect(try await list.all(first).map(\.time) == [1])
    #expect(try await list.all(second).map(\.time) == [2, 3])
    #expect(list.waiting == 3 && list.waiting(topic: second) == 2)
    let end = try await list.snapshot(topic: second).sequence
    #expect(try await list.remove(topic: second, through: end) == 2)
    #expect(try await list.all(first).map(\.time) == [1])
    #expect(try await list.snapshot(topic: second) == .init(sequence: 0, count: 0))
    #expect(list.waiting == 1 && list.waiting(topic: second) == 0)
  }

  @Test("Tokens of every length, and every time")
  func tokens() async throws {
    let list = try FeedbackList(path: nil)
    var random = SeededGenerator(seed: 1)
    let failures = [0, 1, 5, 31, 32, 33, 100, 255, 256, 4_096, 65_535].map {
      Failure(topic: "a", token: random.bytes($0), time: $0 == 0 ? 0 : $0 == 1 ? .max : random.uint32())
    }
    try await list.put(failures)
    try await list.put(failures)
    let entries = try await list.all("a", chunk: 3)
    #expect(entries.map(\.token) == failures.map(\.token))
    #expect(entries.map(\.time) == failures.map(\.time))
    #expect(list.waiting == failures.count)
  }

  // MARK: transfers

  @Test("What fails again during a transfer stays, whether or not it had been sent")
  func failsDuringTransfer() async throws {
    let list = try FeedbackList(path: nil)
    try await list.put((1...6).map { Failure(topic: "a", token: [$0], time: 1) })
    let snapshot = try await list.snapshot(topic: "a")
    let sent = try await list.read(topic: "a", after: 0, through: snapshot.sequence, limit: 3)
    // One that was sent, one that was not, and a new one.
    try await list.put([2, 5, 7].map { Failure(topic: "a", token: [$0], time: 2) })
    let rest = try await list.read(topic: "a", after: sent[2].sequence, through: snapshot.sequence, limit: 100)
    #expect((sent + rest).map(\.token) == [[1], [2], [3], [4], [6]])
    #expect(try await list.remove(topic: "a", through: snapshot.sequence) == 4)
    #expect(try await list.all("a").map(\.token) == [[2], [5], [7]])
    #expect(list.waiting == 3)
  }

  @Test("A transfer that breaks off changes nothing; sequences never come twice, not even after an empty list")
  func transferBreaksOff() async throws {
    try await inTemporaryFolder { folder in
      let path = folder.appendingPathComponent("list").path
      var list = try FeedbackList(path: path)
      try await list.put([Failure(topic: "a", token: [1], time: 1), Failure(topic: "a", token: [2], time: 1)])
      _ = try await list.read(topic: "a", after: 0, through: 1, limit: 1)
      #expect(try await list.all("a").count == 2)
      #expect(try await list.remove(topic: "a", through: 2) == 2)
      #expect(try await list.remove(topic: "a", through: 2) == 0)
      try await list.close()
      list = try FeedbackList(path: path)
      #expect(list.waiting == 0)
      try await list.put([Failure(topic: "a", token: [1], time: 1)])
      #expect(try await list.all("a").map(\.sequence) == [3])
      try await list.close()
    }
  }

  @Test("Many tokens from four tasks, read, half of them failing again, removed")
  func many() async throws {
    let count = TestRun.isWhole ? 100_000 : 20_000
    try await inTemporaryFolder { folder in
      let path = folder.appendingPathComponent("list").path
      var list = try FeedbackList(path: path)
      try await withThrowingTaskGroup { group in
        for part in 0..<4 {
          group.addTask { [list] in
            for first in stride(from: part * count / 4, to: (part + 1) * count / 4, by: 50) {
              try list.add((first..<first + 50).map { Failure(topic: "a", token: token($0), time: 1) })
            }
          }
        }
        try await group.waitForAll()
      }
      try await list.close()
      list = try FeedbackList(path: path)
      #expect(list.waiting == count)
      let entries = try await list.all("a", chunk: 10_000)
      #expect(Set(entries.map(\.token)) == Set((0..<count).map(token)))
      #expect(zip(entries, entries.dropFirst()).allSatisfy { $0.sequence < $1.sequence })
      let end = try await list.snapshot(topic: "a")
      #expect(end.count == count)
      try await list.put((0..<count / 2).map { Failure(topic: "a", token: token($0 * 2), time: 2) })
      #expect(try await list.remove(topic: "a", through: end.sequence) == count / 2)
      #expect(list.waiting == count / 2)
      let left = try await list.all("a", chunk: 10_000)
      #expect(left.map(\.token) == (0..<count / 2).map { token($0 * 2) })
      try await list.close()
    }
  }

  @Test("The model and the list agree, across closing and opening", arguments: seeds(4, of: 12))
  func law(seed: UInt64) async throws {
    try await inTemporaryFolder { folder in
      var random = SeededGenerator(seed: seed)
      let path = folder.appendingPathComponent("list").path
      var list = try FeedbackList(path: path)
      var model: [String: [(sequence: Int64, token: [UInt8], time: UInt32)]] = [:]
      var last: Int64 = 0
      for step in 0..<60 {
        let topic = random.pick(["a", "b", "c"])
        switch random.number(1...10) {
        case 1:
          try await list.close()
          list = try FeedbackList(path: path)
        case 2...3:
          let end = Int64(random.number(0...Int(last)))
          let before = model[topic, default: []].count
          model[topic, default: []].removeAll { $0.sequence <= end }
          let removed = try await list.remove(topic: topic, through: end)
          #expect(removed == before - model[topic, default: []].count, "step \(step)")
        default:
          let failures = (0..<random.number(0...30)).map { _ in
            Failure(
              topic: random.pick(["a", "b", "c"]), token: [UInt8(random.number(0...40))], time: random.uint32())
          }
          for failure in failures {
            last += 1
            model[failure.topic, default: []].removeAll { $0.token == failure.token }
            model[failure.topic, default: []].append((last, failure.token, failure.time))
          }
          try await list.put(failures)
        }
        for topic in ["a", "b", "c"] {
          let expected = model[topic, default: []]
          let found = try await list.all(topic, chunk: random.number(1...9))
          #expect(found.map(\.sequence) == expected.map(\.sequence), "step \(step)")
          #expect(found.map(\.token) == expected.map(\.token), "step \(step)")
          #expect(found.map(\.time) == expected.map(\.time), "step \(step)")
          #expect(list.waiting(topic: topic) == expected.count, "step \(step)")
        }
        #expect(list.waiting == model.values.reduce(0) { $0 + $1.count }, "step \(step)")
      }
      try await list.close()
    }
  }

  // MARK: limits

  @Test("What waits to be written is bounded, and told")
  func pending() async throws {
    let list = try FeedbackList(path: nil, limits: .init(maximumPendingBytes: 1_000))
    let gate = DispatchSemaphore(value: 0)
    try await withCheckedThrowingContinuation { (started: CheckedContinuation<Void, any Error>) in
      Task {
        try await list.perform { _ in
          started.resume()
          gate.wait()
        }
      }
    }
    // Each call: 96 bytes, and 96 + 4 for its failure.
    var pending: [Int] = []
    var refused: FeedbackListError?
    let completed = Mutex(0)
    do {
      for number in 0..<10 as Range<UInt8> {
        pending.append(
          try list.add([Failure(topic: "a", token: [number, 0, 0, 0], time: 1)]) { _ in completed.withLock { $0 += 1 } }
        )
      }
    } catch {
      refused = error
    }
    #expect(pending.last == pending.count * 196 && pending.count == 5)
    #expect(refused?.kind == .tooMuchPending)
    gate.signal()
    try await list.close()
    #expect(completed.withLock { $0 } == 5 && list.pendingBytes == 0 && list.waiting == 5)
  }

  @Test(
    "Failures that wait are written in transactions of a limited size, or one call's at a time",
    arguments: [
      (1, [[3], [4], [5], [1], [1]]), (7, [[3, 4], [5, 1, 1]]), (8, [[3, 4], [5, 1, 1]]), (12, [[3, 4, 5], [1, 1]]),
      (14, [[3, 4, 5, 1, 1]]),
    ] as [(Int, [[Int]])])
  func transactions(limit: Int, expected: [[Int]]) {
    var state = FeedbackList.State(lastSequence: 0, waiting: [:])
    state.pending = [3, 4, 5, 1, 1].map { count in
      FeedbackList.Batch(failures: (0..<count).map { Failure(topic: "a", token: token($0), time: 0) }) { _ in }
    }
    var taken: [[Int]] = []
    while !state.pending.isEmpty, taken.count < 10 { taken.append(state.takePending(limit).map(\.failures.count)) }
    #expect(taken == expected)
  }

  @Test("A full file refuses failures, tells so, and takes them again when there is room")
  func full() async throws {
    try await inTemporaryFolder { folder in
      let path = folder.appendingPathComponent("list").path
      let list = try FeedbackList(path: path, limits: .init(maximumFileBytes: 200_000))
      try await list.put((0..<100).map { Failure(topic: "a", token: token($0), time: 1) })
      let error = await #expect(throws: FeedbackListError.self) {
        try await list.put((0..<5_000).map { Failure(topic: "a", token: token($0), time: 2) })
      }
      #expect(error?.kind == .full)
      #expect(error?.description == "\(path): database or disk is full")
      // None of the call is on the list.
      #expect(list.waiting == 100 && list.pendingBytes == 0)
      #expect(try await list.all("a").allSatisfy { $0.time == 1 })
      let end = try await list.snapshot(topic: "a").sequence
      #expect(try await list.remove(topic: "a", through: end) == 100)
      try await list.put((0..<100).map { Failure(topic: "a", token: token($0), time: 3) })
      #expect(list.waiting == 100)
      try await list.close()
    }
  }

  // MARK: closing and opening

  @Test("Closing writes what waits; afterwards everything is refused")
  func close() async throws {
    try await inTemporaryFolder { folder in
      let path = folder.appendingPathComponent("list").path
      let list = try FeedbackList(path: path)
      for number in 0..<20_000 { try list.add([Failure(topic: "a", token: token(number), time: 1)]) }
      try await list.close()
      try await list.close()
      #expect(list.waiting == 20_000)
      #expect(throws: FeedbackListError.self) { try list.add([]) }
      let error = await #expect(throws: FeedbackListError.self) { try await list.snapshot(topic: "a") }
      #expect(error?.kind == .closed)
      #expect(try FeedbackList(path: path).waiting == 20_000)
    }
  }

  @Test("Only the owner can read the file and its log, also when the file was made by hand")
  func modes() async throws {
    for mode in [0o644, 0o601, 0o777, 0o400] { try await expectOwnersAlone(mode) }
  }

  private func expectOwnersAlone(_ mode: Int) async throws {
    try await inTemporaryFolder { folder in
      let path = folder.appendingPathComponent("list").path
      #expect(FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: mode]))
      let list = try FeedbackList(path: path)
      try await list.put([Failure(topic: "a", token: [1], time: 1)])
      let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      #expect(files.sorted() == ["list", "list-wal"])
      for file in files {
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.appendingPathComponent(file).path)
        #expect(attributes[.posixPermissions] as? Int == 0o600, "\(file) \(mode)")
      }
      try await list.close()
    }
  }

  @Test("The file of another program is refused, and left as it is")
  func foreign() throws {
    try withTemporaryFolder { folder in
      let path = folder.appendingPathComponent("list").path
      // Our name where it belongs, in what is no database, and in what ends too early for one.
      let (zeros, name) = (Data(repeating: 0, count: 68), Data("apnf".utf8))
      let database = Data("SQLite format 3\0".utf8) + zeros.dropFirst(16)
      for contents in [
        Data("hello".utf8), Data(repeating: 0, count: 4_096), zeros + name + zeros, database + name,
      ] {
        try contents.write(to: URL(fileURLWithPath: path))
        let error = #expect(throws: FeedbackListError.self) { try FeedbackList(path: path) }
        #expect(error?.kind == .notAFeedbackList)
        #expect(error?.description == "\(path): is not a feedback list")
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == contents)
      }
    }
  }

  @Test("Another program's database is refused", .waiting, .enabled(if: ExternalTool.isInstalled("sqlite3")))
  func foreignDatabase() throws {
    try withTemporaryFolder { folder in
      let path = folder.appendingPathComponent("list").path
      _ = try ExternalTool.run("sqlite3", [path, "create table t (x); insert into t values (1)"])
      let before = try Data(contentsOf: URL(fileURLWithPath: path))
      let error = #expect(throws: FeedbackListError.self) { try FeedbackList(path: path) }
      #expect(error?.kind == .notAFeedbackList)
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }
  }

  @Test(
    "A list of a later version, and one that is damaged", .waiting, .enabled(if: ExternalTool.isInstalled("sqlite3")))
  func otherVersion() async throws {
    try await inTemporaryFolder { folder in
      let path = folder.appendingPathComponent("list").path
      try await FeedbackList(path: path).close()
      _ = try ExternalTool.run("sqlite3", [path, "pragma user_version = 2"])
      let error = #expect(throws: FeedbackListError.self) { try FeedbackList(path: path) }
      #expect(error?.kind == .unknownVersion)
      #expect(error?.description == "\(path): is a feedback list of version 2; this program reads version 1")
      _ = try ExternalTool.run("sqlite3", [path, "pragma user_version = 1"])
      var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
      bytes.replaceSubrange(100..<4_096, with: Data(repeating: 0xee, count: 3_996))
      try bytes.write(to: URL(fileURLWithPath: path))
      #expect(throws: FeedbackListError.self) { try FeedbackList(path: path) }
    }
  }

  @Test("A file that is open, one that cannot be, and what is no file")
  func cannotOpen() async throws {
    try await inTemporaryFolder { folder in
      let path = folder.appendingPathComponent("list").path
      let list = try FeedbackList(path: path)
      let second = #expect(throws: FeedbackListError.self) { try FeedbackList(path: path) }
      #expect(second?.kind == .inUse)
      #expect(second?.description == "\(path): is open in another process")
      try await list.close()
      let missing = #expect(throws: FeedbackListError.self) { try FeedbackList(path: "/nowhere/list") }
      #expect(missing?.description == "/nowhere/list: No such file or directory")
      for path in [folder.path, "/dev/null", ""] {
        let error = #expect(throws: FeedbackListError.self) { try FeedbackList(path: path) }
        #expect(error?.kind == .cannotOpen)
      }
    }
  }
}
