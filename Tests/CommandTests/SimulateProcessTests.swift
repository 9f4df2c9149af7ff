import BinaryProtocol
import Bytes
import Foundation
import Glibc
import Measurement
import TestSupport
import Testing

/// `apnscope simulate` short of something, or ended in the middle of its work.
@Suite("simulate: limits of the system, and ends under load", .waiting)
struct SimulateProcessTests {
  /// Descriptors that the process may have: fewer than it is given connections.
  private static let limit = 64
  /// Connections leave so many descriptors at least to the rest of the process.
  private static let spare = 8
  private static let clientCount = 120

  /// Starts it, and takes descriptors away from it: it has made its plans for more.
  private func limited(in command: Command) throws -> SimulatorProcess {
    let simulator = try SimulatorProcess(["--plain", "--no-feedback"], in: command)
    let outcome = try RunningProcess(
      "prlimit", ["--pid", "\(simulator.identifier)", "--nofile=\(Self.limit):\(Self.limit)"], in: command.folder
    ).end()
    #expect(outcome.status == 0, "\(outcome.errors)")
    return simulator
  }

  /// `(ulimit -n 20; apnscope simulate …)` ended in NIO: "Fatal error … epoll_create: Too many open files".
  @Test("A limit of open files that leaves no room for a connection is told", arguments: [8, 12, 20, 26, 32, 40])
  func tooFewDescriptors(limit: Int) throws {
    try Command.inFolder { command in
      let outcome = try command.shell(
        #"ulimit -n \#(limit) && exec "$apnscope" simulate --plain --gateway 127.0.0.1:0 --no-feedback --for 1ms"#)
      #expect(outcome.status == 69)
      #expect(outcome.output == "")
      #expect(
        outcome.errors
          == "apnscope: this process may open \(limit) files at a time (ulimit -n), too few for one connection; reduce --threads\n"
      )
    }
  }

  @Test("--max-connections is lowered to what there are file descriptors for, with a warning, and holds")
  func loweredConnections() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--plain", "--no-feedback", "--threads", "2", "--max-connections", "5000"], in: command,
        preparation: ["bash", "-c", #"ulimit -n 100 && exec "$0" "$@""#])
      let warning = try #require(
        simulator.errors.wholeMatch(
          of:
            #/apnscope: --max-connections is lowered from 5,000 to (\d+): this process may open 100 files at a time \(ulimit -n\)\n/#
        ), "\(simulator.errors)")
      let most = try #require(Int(warning.1))
      #expect((1..<100).contains(most))
      let clients = try (1...Self.clientCount).map { _ in try PlainClient(simulator.gateway) }
      // The first of them are served, to the last that there is room for.
      #expect(try waitUntil { try simulator.count(of: "refused") == Self.clientCount - most })
      #expect(try waitUntil { try simulator.count(of: "accepted") == most })
      for client in clients { client.close() }
      #expect(try waitUntil { try simulator.count(of: "closed") == most })
      simulator.send(SIGTERM)
      #expect(try simulator.end().status == 0)
      #expect(try simulator.ledger().gateway.connections == Self.clientCount)
    }
  }

  /// With a file-size limit for a full disk: 5,000 were proven accepted, and 75 stood on the list.
  @Test("A list that cannot be written: nothing is proven, and the books say what is lost")
  func fullDisk() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--plain", "--devices-uninstalled", "100%", "--feedback-list", "list.sqlite", "--metrics", "127.0.0.1:0"],
        in: command, preparation: ["bash", "-c", #"trap '' XFSZ; ulimit -f 64 && exec "$0" "$@""#])
      let client = try PlainClient(simulator.gateway)
      try? client.send((1...5_000).flatMap { Frames.framed($0) } + Frames.known)
      let answer = try? client.receive()
      #expect(answer != Frames.response(2, Frames.marker))
      client.close()
      #expect(waitUntil { (simulator.metric("apnscope_feedback_lost_total") ?? 0) > 0 })
      simulator.send(SIGTERM)
      let outcome = try simulator.end()
      #expect(outcome.status == 74)
      #expect(outcome.errors.contains("list.sqlite: "))
      let ledger = try simulator.ledger()
      #expect(ledger.gateway.binary.errorResponses == [:])
      #expect(ledger.feedback.lost > 0)
      #expect(ledger.feedback.lost + ledger.feedback.waiting == ledger.devices.uninstalled)
      #expect(outcome.output.contains(#/ waiting, [\d,]+ lost\n/#))
    }
  }

  @Test("Without file descriptors it waits without working, goes on when some are free, and writes its ledger")
  func fileDescriptors() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try limited(in: command)
      let clients = try (1...Self.clientCount).map { _ in try PlainClient(simulator.gateway) }
      for (number, client) in clients.enumerated() { try client.send(Frames.framed(UInt32(number + 1))) }
      #expect(waitUntil { simulator.openFiles >= Self.limit - 16 })
      #expect(simulator.runnableTime > .zero)
      // A loop that asks again and again for what it cannot get works, or waits for a processor, all the time; one that
      // has nothing to do does neither, but for moments, which can be long on a crowded machine.
      #expect(
        waitUntil {
          let (before, start) = (simulator.runnableTime, ContinuousClock.now)
          usleep(500_000)
          return simulator.runnableTime - before < (ContinuousClock.now - start) / 2
        })
      // libdispatch ended the process once, because it could not open a file of /proc.
      #expect(simulator.openFiles <= Self.limit - Self.spare)
      // Each that ends makes room for another one; all that wait come to be accepted.
      let last = clients[Self.clientCount - 1]
      for client in clients.dropLast() { client.close() }
      try last.send(Frames.known)
      #expect(try last.receive() == Frames.response(2, Frames.marker))
      last.close()
      #expect(try waitUntil { try simulator.count(of: "closed") == Self.clientCount })
      let ledger = try simulator.stop()
      #expect(ledger.gateway.connections == Self.clientCount)
      #expect(ledger.gateway.accepted == Self.clientCount)
    }
  }

  @Test(
    "Two simulators with one identity run beside each other where no file is shared",
    arguments: [["--no-feedback"], ["--feedback-list", "memory"]])
  func besideEachOther(options: [String]) throws {
    try SimulatorProcess.inFolder { command in
      let first = try SimulatorProcess(options, in: command, name: "first")
      let second = try SimulatorProcess(options, in: command, name: "second")
      #expect(first.gateway != second.gateway)
      for simulator in [first, second] { #expect(try simulator.stop().gateway.connections == 0) }
      let files = try FileManager.default.contentsOfDirectory(atPath: command.folder.path)
      #expect(!files.contains("memory"))
      let identity = try FileManager.default.contentsOfDirectory(atPath: command.folder.appending(path: "ids").path)
      #expect(!identity.contains { $0.hasPrefix("feedback.sqlite") })
      // With a file the second one says what to do.
      let third = try SimulatorProcess(in: command, name: "third")
      let fourth = try command.run([
        "simulate", "--identity", "ids", "--gateway", "127.0.0.1:0", "--feedback", "127.0.0.1:0",
      ])
      #expect(fourth.status == 66 && fourth.errors.contains("--feedback-list takes another file, or memory"))
      _ = try third.stop()
    }
  }

  @Test("Without a feedback service a load to uninstalled devices fills no list")
  func noFeedback() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--plain", "--no-feedback", "--max-memory", "64KiB", "--devices-uninstalled", "100%"], in: command)
      let outcome = try command.run(
        ["load", "--plain", "--gateway", "127.0.0.1:\(simulator.gateway)", "--count", "3000"] + LoadProcess.patience)
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      let ledger = try simulator.stop()
      #expect(ledger.devices.uninstalled == 3_000 && ledger.feedback.waiting == 0 && ledger.feedback.lost == 0)
    }
  }

  @Test("Ended at its limit of file descriptors, it writes its ledger")
  func endWithoutFileDescriptors() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try limited(in: command)
      let clients = try (1...Self.clientCount).map { _ in try PlainClient(simulator.gateway) }
      for client in clients { try client.send(Frames.framed(1)) }
      #expect(waitUntil { simulator.openFiles >= Self.limit - 16 })
      simulator.send(SIGTERM)
      // They are shut down, and close.
      for client in clients {
        _ = try? client.receive()
        client.close()
      }
      #expect(try simulator.end().status == 0)
      let ledger = try simulator.ledger()
      // The last may be ended before anything of them is read.
      #expect(ledger.gateway.accepted <= ledger.gateway.connections)
      #expect((20..<Self.limit).contains(ledger.gateway.connections))
    }
  }

  @Test("SIGTERM under load: the ledger is complete, and is what the answers prove", arguments: [SIGTERM, SIGINT])
  func signalUnderLoad(signal: Int32) async throws {
    try await SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--plain", "--no-feedback", "--threads", "2", "--metrics", "127.0.0.1:0"], in: command)
      let port = simulator.gateway
      try await withThrowingTaskGroup(of: (sent: Int, answer: ErrorResponse).self) { group in
        for _ in 1...3 { group.addTask { try Self.fill(port) } }
        #expect(simulator.hasReceived(10_000))
        let ledger = try simulator.stop(with: signal)
        var ends: [(sent: Int, answer: ErrorResponse)] = []
        for try await end in group { ends.append(end) }
        #expect(ends.map(\.answer.status) == [.shutdown, .shutdown, .shutdown])
        #expect(ledger.gateway.accepted == ends.reduce(0) { $0 + Int($1.answer.identifier) })
        #expect(ledger.gateway.received == ends.reduce(0) { $0 + $1.sent })
        #expect(ledger.connections.map(\.end) == [.shutdown, .shutdown, .shutdown])
        for event in ["accepted", "error_response", "closed"] { #expect(try simulator.count(of: event) == 3) }
      }
    }
  }

  /// Keeps a connection full until it is answered.
  private static func fill(_ port: Int) throws -> (sent: Int, answer: ErrorResponse) {
    let client = try PlainClient(port)
    var sent = 0
    while !client.isReadable {
      let next = UInt32(sent + 1)
      try client.send((next..<next + 50).flatMap { Frames.framed($0) })
      sent += 50
    }
    let bytes = try client.receive()
    client.close()
    var offset = 0
    return (sent, try ErrorResponse(parsing: bytes.rawBytes, at: &offset))
  }
}
