import APNSProtocol
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
  private static let clientCount = 120

  /// Starts it with that limit.
  private func limited(in command: Command) throws -> SimulatorProcess {
    try SimulatorProcess(
      ["--plain", "--no-feedback"], in: command,
      preparation: ["bash", "-c", #"ulimit -n \#(Self.limit) && exec "$0" "$@""#])
  }

  @Test("Without file descriptors it waits without working, goes on when some are free, and writes its ledger")
  func fileDescriptors() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try limited(in: command)
      let clients = try (1...Self.clientCount).map { _ in try PlainClient(simulator.gateway) }
      for (number, client) in clients.enumerated() { try client.send(Frames.framed(UInt32(number + 1))) }
      #expect(waitUntil { simulator.openFiles >= Self.limit - 1 })
      // A loop that asks again and again for what it cannot get works all the time that a processor has for it; one that
      // waits uses next to nothing, on a busy machine no more than on a quiet one.
      let (before, start) = (simulator.processorTime, ContinuousClock.now)
      usleep(1_000_000)
      let (worked, passed) = (simulator.processorTime - before, ContinuousClock.now - start)
      #expect(worked < passed / 2, "\(worked) in \(passed)")
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

  @Test("Ended at its limit of file descriptors, it writes its ledger")
  func endWithoutFileDescriptors() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try limited(in: command)
      let clients = try (1...Self.clientCount).map { _ in try PlainClient(simulator.gateway) }
      for client in clients { try client.send(Frames.framed(1)) }
      #expect(waitUntil { simulator.openFiles >= Self.limit - 1 })
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
      #expect((30..<Self.limit).contains(ledger.gateway.connections))
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
        #expect(ledger.connections.map(\.end) == ["shutdown", "shutdown", "shutdown"])
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
