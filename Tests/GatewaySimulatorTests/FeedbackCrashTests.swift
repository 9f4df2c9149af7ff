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

  private static let childVariable = "APNSCOPE_FEEDBACK_CHILD"

  /// Runs in a process of its own, until it is killed: adds and removes, and writes down what it was told is durable.
  @Test("The child that is killed", .enabled(if: ProcessInfo.processInfo.environment[childVariable] != nil))
  func child() async throws {
    let folder = URL(fileURLWithPath: try #require(ProcessInfo.processInfo.environment[Self.childVariable]))
    let list = try FeedbackList(
      path: folder.appendingPathComponent("list").path, limits: .init(), checkpointPages: 50)
    let report = try FileHandle(forWritingTo: folder.appendingPathComponent("report"))
    try report.seekToEnd()
    @Sendable func write(_ kind: String, _ number: Int64) { report.write(Data("\(kind) \(number)\n".utf8)) }
    // Tokens are numbered as their sequences are.
    var last = list.state.withLock { $0.lastSequence }
    var random = SeededGenerator(seed: UInt64(last) &+ 1)
    while true {
      let batch = (0..<random.number(1...100)).map { _ -> Failure in
        last += 1
        return Failure(topic: "a", token: token(Int(last)), time: UInt32(truncatingIfNeeded: last))
      }
      try list.add(batch) { [last] in if $0 == nil { write("added", last) } }
      if random.happens(oneIn: 40) {
        let end = try await list.snapshot(topic: "a").sequence
        write("removing", end)
        Task {
          try await list.remove(topic: "a", through: end)
          write("removed", end)
        }
      }
      while list.pendingBytes > 1 << 18 { try await Task.sleep(for: .milliseconds(1)) }
    }
  }

  @Test("After kill -9 everything is there that was reported durable, and nothing that was removed")
  func kill() async throws {
    try await inTemporaryFolder { folder in
      let report = folder.appendingPathComponent("report")
      try Data().write(to: report)
      var random = SeededGenerator(seed: 1)
      for round in 0..<8 {
        let child = Process()
        child.executableURL = URL(
          fileURLWithPath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        child.arguments = ["--testing-library", "swift-testing", "--filter", "FeedbackCrashTests/child"]
        child.environment = ProcessInfo.processInfo.environment.merging([Self.childVariable: folder.path]) { $1 }
        child.standardOutput = FileHandle.nullDevice
        child.standardError = FileHandle.nullDevice
        let before = try Data(contentsOf: report).count
        try child.run()
        while try Data(contentsOf: report).count < before + 200 && child.isRunning {
          try await Task.sleep(for: .milliseconds(5))
        }
        try await Task.sleep(for: .microseconds(random.number(0...200_000)))
        #expect(child.isRunning, "round \(round)")
        Glibc.kill(child.processIdentifier, SIGKILL)
        child.waitUntilExit()

        let told = try Self.told(report)
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
  }

  private final class Books: Sendable {
    private let known = Mutex(Known())

    func withLock<T: Sendable>(_ body: (inout Known) -> sending T) -> T { known.withLock { body(&$0) } }
  }

  @Test("A copy of the files, taken at any moment, holds all that was reported durable before", arguments: [0, 20])
  func copies(checkpointPages: Int) async throws {
    try await inTemporaryFolder { folder in
      let path = folder.appendingPathComponent("list").path
      let list = try FeedbackList(path: path, limits: .init(), checkpointPages: checkpointPages)
      let known = Books()
      let writers = (0..<3).map { writer in
        Task.detached {
          var random = SeededGenerator(seed: UInt64(writer))
          while !Task.isCancelled {
            let count = random.number(1...60)
            let first = known.withLock { known in
              defer { known.next += count }
              return known.next
            }
            let numbers = first..<first + count
            try list.add(numbers.map { Failure(topic: "t\($0 % 2)", token: token($0), time: 1) }) { error in
              if error == nil { known.withLock { $0.durable.formUnion(numbers) } }
            }
            try await Task.sleep(for: .microseconds(random.number(0...2_000)))
          }
        }
      }
      let remover = Task.detached {
        while !Task.isCancelled {
          try await Task.sleep(for: .milliseconds(30))
          let end = try await list.snapshot(topic: "t0").sequence
          let entries = try await list.read(topic: "t0", after: 0, through: end, limit: .max)
          let numbers = entries.map { Int($0.time == 1 ? Self.number($0.token) : -1) }
          known.withLock { $0.removing.formUnion(numbers) }
          try await list.remove(topic: "t0", through: end)
          known.withLock { $0.removed.formUnion(numbers) }
        }
      }
      var random = SeededGenerator(seed: UInt64(checkpointPages) + 1)
      for round in 0..<15 {
        try await Task.sleep(for: .microseconds(random.number(0...40_000)))
        let copy = folder.appendingPathComponent("copy-\(round)").path
        let before: Known
        if checkpointPages == 0 {
          // Without checkpoints the file stays as it is and its log only grows, so that a copy is what was at a moment.
          before = known.withLock { $0 }
          try Self.copy(path, to: copy)
        } else {
          // Else between two transactions, when the two files fit to each other.
          before = try await list.perform { _ in
            let before = known.withLock { $0 }
            try Self.copy(path, to: copy)
            return before
          }
        }
        let opened = try FeedbackList(path: copy)
        let entries = try await opened.all("t0", chunk: 10_000) + opened.all("t1", chunk: 10_000)
        let found = Set(entries.map { Self.number($0.token) })
        let missing = before.durable.subtracting(known.withLock { $0.removing }).subtracting(found).count
        #expect(missing == 0, "round \(round)")
        let left = before.removed.intersection(found).count
        #expect(left == 0, "round \(round)")
        #expect(opened.waiting == entries.count && entries.count == found.count, "round \(round)")
        try await opened.close()
      }
      for task in writers + [remover] { task.cancel() }
      for task in writers + [remover] { _ = await task.result }
      try await list.close()
      #expect(known.withLock { $0.durable.count == $0.next })
    }
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
