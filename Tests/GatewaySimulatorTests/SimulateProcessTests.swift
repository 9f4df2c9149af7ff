import APNSProtocol
import Bytes
import Foundation
import Glibc
import Measurement
import Synchronization
import Testing

@testable import GatewaySimulator

extension Loopback {
  /// `apnscope simulate` as a process, short of something or ended in the middle of its work.
  @Suite("Simulator as a process")
  struct SimulateProcessTests {
    /// Built beside the test bundle.
    private static let command: String = {
      let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") }.map { URL(fileURLWithPath: $0) }
      let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
      let paths = [
        bundle?.deletingLastPathComponent(), Bundle.main.executableURL?.deletingLastPathComponent(),
        root.appendingPathComponent(".build/debug"),
      ].compactMap { $0?.appendingPathComponent("apnscope").path }
      return paths.first { FileManager.default.isExecutableFile(atPath: $0) } ?? "apnscope"
    }()

    private struct Running {
      let process: Process
      let folder: URL
      let port: Int

      /// Processor time so far, in clock ticks.
      var ticks: Int {
        let text = (try? String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8)) ?? ""
        let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
        return fields.count > 12 ? (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0) : 0
      }

      var openFiles: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.processIdentifier)/fd").count) ?? 0
      }

      func end(_ signal: Int32 = SIGTERM) throws -> Ledger {
        kill(process.processIdentifier, signal)
        process.waitUntilExit()
        #expect(process.terminationReason == .exit && process.terminationStatus == 0)
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Ledger.self, from: Data(contentsOf: folder.appendingPathComponent("ledger.json")))
      }
    }

    /// Runs the command behind a line of the shell's, such as `ulimit -n 64`.
    private static func run(
      _ preparation: String = "true", _ arguments: String = "", _ body: @escaping @Sendable (Running) throws -> Void
    ) async throws {
      try await inTemporaryFolder { folder in
        let output = folder.appendingPathComponent("output")
        try Data().write(to: output)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/bash")
        // A test runs on a thread that blocks signals, which a process inherits; env gives them back.
        process.arguments = [
          "-c",
          "\(preparation) && exec env --default-signal=TERM,INT '\(command)' simulate --plain --gateway 127.0.0.1:0 --no-feedback --ledger ledger.json \(arguments)",
        ]
        process.currentDirectoryURL = folder
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = process.standardOutput
        try process.run()
        defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
        try await onThread {
          var port = 0
          for _ in 0..<1_000 where port == 0 && process.isRunning {
            usleep(10_000)
            let text = (try? String(contentsOf: output, encoding: .utf8)) ?? ""
            let line = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
              .first { $0.hasPrefix("gateway ") }
            port = line?.split(separator: ":").last.flatMap { Int($0) } ?? 0
          }
          try #require(port != 0, "it does not listen")
          try body(Running(process: process, folder: folder, port: port))
        }.get()
      }
    }

    @Test("Without file descriptors it waits without working, goes on when some are free, and writes its ledger")
    func fileDescriptors() async throws {
      try await Self.run("ulimit -n 64") { running in
        let files = running.openFiles
        let clients = try (0..<120).map { _ in try Client(running.port, patience: 20) }
        for (number, client) in clients.enumerated() { try client.send(frame(UInt32(number))) }
        for _ in 0..<500 where running.openFiles < 64 { usleep(10_000) }
        #expect(running.openFiles >= 63)
        usleep(300_000)
        let before = running.ticks
        usleep(1_000_000)
        // A busy loop would be 100.
        #expect(running.ticks - before < 30)
        // Each that ends makes room for another one; all that wait come to be accepted.
        let last = clients[119]
        for client in clients.dropLast() { client.close() }
        try last.send(frame(1_000, token: []))
        #expect(try last.receiveAll() == response(.missingDeviceToken, 1_000))
        last.close()
        for _ in 0..<1_000 where running.openFiles > files { usleep(10_000) }
        let ledger = try running.end()
        expectBalance(ledger)
        #expect(ledger.gateway.connections == 120)
        #expect(ledger.gateway.accepted == 120)
      }
    }

    @Test("Ended at its limit of file descriptors, it writes its ledger")
    func endWithoutFileDescriptors() async throws {
      try await Self.run("ulimit -n 64") { running in
        let clients = try (0..<120).map { _ in try Client(running.port) }
        for client in clients { try client.send(frame(1)) }
        for _ in 0..<500 where running.openFiles < 64 { usleep(10_000) }
        let ending = Mutex(Optional<Ledger>.none)
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
          ending.withLock { $0 = try? running.end() }
          done.signal()
        }
        // They are shut down, and close.
        for client in clients {
          _ = try? client.receiveAll()
          client.close()
        }
        done.wait()
        let ledger = try #require(ending.withLock { $0 })
        expectBalance(ledger)
        // The last may be ended before anything of them is read.
        #expect(ledger.gateway.accepted <= ledger.gateway.connections)
        #expect((30..<64).contains(ledger.gateway.connections))
      }
    }

    @Test("SIGTERM under load: the ledger is complete, and is what the answers prove", arguments: [SIGTERM, SIGINT])
    func signalUnderLoad(signal: Int32) async throws {
      try await Self.run("true", "--threads 2 --log log.jsonl") { running in
        let answers = Mutex<[ErrorResponse]>([])
        let sent = Atomic<Int>(0)
        let done = DispatchSemaphore(value: 0)
        let port = running.port
        for _ in 0..<3 {
          Thread.detachNewThread {
            defer { done.signal() }
            guard let client = try? Client(port) else { return }
            var next: UInt32 = 1
            while client.sendSome(frames(next...next + 49)).error == nil {
              next += 50
              sent.wrappingAdd(50, ordering: .relaxed)
              guard client.isReadable else { continue }
              if let bytes = try? client.receiveAll() {
                var offset = 0
                if let answer = try? ErrorResponse(parsing: bytes.rawBytes, at: &offset) {
                  answers.withLock { $0.append(answer) }
                }
              }
              break
            }
            client.close()
          }
        }
        for _ in 0..<1_000 where sent.load(ordering: .relaxed) < 50_000 { usleep(10_000) }
        let start = ContinuousClock.now
        let ledger = try running.end(signal)
        #expect(ContinuousClock.now - start < .seconds(20))
        for _ in 0..<3 { done.wait() }
        expectBalance(ledger)
        let proven = answers.withLock { $0 }
        #expect(proven.map(\.status) == [.shutdown, .shutdown, .shutdown])
        #expect(ledger.gateway.accepted == proven.reduce(0) { $0 + Int($1.identifier) })
        #expect(ledger.gateway.received == sent.load(ordering: .relaxed))
        #expect(ledger.connections.map(\.end) == ["shutdown", "shutdown", "shutdown"])
        let log = try String(contentsOf: running.folder.appendingPathComponent("log.jsonl"), encoding: .utf8)
        let events = log.split(separator: "\n").map { line in
          line.split(separator: "\"event\":\"").dropFirst().first?.prefix { $0 != "\"" } ?? ""
        }
        #expect(events.count { $0 == "accepted" } == 3)
        #expect(events.count { $0 == "error_response" } == 3)
        #expect(events.count { $0 == "closed" } == 3)
      }
    }
  }
}
