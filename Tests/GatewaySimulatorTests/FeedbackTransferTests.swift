import BinaryProtocol
import Bytes
import Foundation
import Glibc
import Measurement
import TestSupport
import Testing

@testable import GatewaySimulator

/// From the notification for an app that is gone to the tuple a provider reads, and when the list forgets it.
@Suite("Feedback transfers", .waiting)
struct FeedbackTransferTests {
  private static func tokens(_ bytes: [UInt8]) throws -> [[UInt8]] {
    var offset = 0
    var tokens: [[UInt8]] = []
    while offset < bytes.count {
      tokens.append(Array(copying: try FeedbackTuple(parsing: bytes.rawBytes, at: &offset).token))
    }
    return tokens
  }

  private static func list(_ count: Int, topic: String = Simulation.topic) async throws -> FeedbackList {
    let list = try FeedbackList(path: nil)
    try await list.put((0..<count).map { Failure(topic: topic, token: token($0), time: UInt32($0)) })
    return list
  }

  @Test("Uninstalled, listed, read, cleared", arguments: [false, true])
  func wholeWay(tls: Bool) async throws {
    let (result, ledger) = try await Simulation.run(tls: tls) {
      $0.devices = try DevicePopulation(shares: .init(uninstalled: 1))
      $0.behavior.rejections = [.init(.prefix([4]))]
    } body: { simulation in
      let start = UInt32(time(nil))
      // The answer comes when what was accepted before it is on the list for certain.
      #expect(try simulation.client().exchange(frames(1...5)) == response(.invalidToken, 4))
      #expect(simulation.list.waiting == 3)
      let client = try simulation.feedbackClient()
      let bytes = try client.receiveAll()
      client.close()
      #expect(await simulation.wait { $0.feedback.waiting == 0 })
      #expect(try simulation.feedbackClient().receiveAll() == [])
      var offset = 0
      let first = try FeedbackTuple(parsing: bytes.rawBytes, at: &offset).timestamp
      return (tokens: try Self.tokens(bytes), isInTime: (start...UInt32(time(nil))).contains(first))
    }
    #expect(result.tokens == (1...3).map(token))
    #expect(result.isInTime)
    #expect(ledger.devices.uninstalled == 3)
    #expect(ledger.feedback.connections == 2)
    #expect(ledger.feedback.tuplesSent == 3)
    #expect(ledger.feedback.completed >= 1)
  }

  enum Reader: CaseIterable {
    /// Reads all, then closes: with close_notify, without, after ending its half.
    case closes, closesBare, endsItsHalf
    /// Ends its half before it reads anything.
    case halfClosed
    /// Does not read all, and what it has not read is more than its machine takes for it.
    case leavesAtOnce, leavesWithoutReading, resets, readsHalf
    /// Ends its half with all of it on the way, and closes without reading.
    case halfClosesUnread

    var readsAll: Bool {
      switch self {
      case .closes, .closesBare, .endsItsHalf, .halfClosed: true
      case .leavesAtOnce, .leavesWithoutReading, .resets, .readsHalf, .halfClosesUnread: false
      }
    }
  }

  @Test("The list is cleared when it was read to its end, and only then", arguments: Reader.allCases, [false, true])
  func reader(reader: Reader, tls: Bool) async throws {
    // Of the larger one, which is sent in several pieces, most waits in the gateway's kernel.
    let many = TestRun.isWhole ? 20_000 : 5_000
    for count in reader.readsAll ? [3, many] : [many] {
      let list = try await Self.list(count)
      let (_, ledger) = try await Simulation.run(tls: tls, list: list) { simulation in
        let client = try simulation.feedbackClient(receiveBuffer: 4_096)
        func readAll() throws {
          let bytes = try client.receiveAll()
          #expect(bytes.count == count * 38)
        }
        switch reader {
        case .closes:
          try readAll()
          client.close()
        case .closesBare:
          try readAll()
          client.close(notifies: false)
        case .endsItsHalf:
          try readAll()
          client.finishWriting()
          // Taken off before the client has closed.
          #expect(await simulation.wait { $0.feedback.completed == 1 })
          client.close()
        case .halfClosed:
          client.finishWriting()
          try readAll()
          client.close()
        case .leavesAtOnce: client.close()
        case .leavesWithoutReading:
          #expect(await simulation.wait { $0.feedback.tuplesSent > 0 })
          client.close()
        case .resets:
          _ = try client.receive(10)
          client.reset()
        case .readsHalf:
          _ = try client.receive(count * 19)
          client.close()
        case .halfClosesUnread:
          #expect(await simulation.wait { $0.feedback.tuplesSent == count })
          client.finishWriting()
          // A service that has sent its FIN without waiting sees both halves closed now.
          try await Task.sleep(for: .milliseconds(50))
          client.close()
        }
        if reader.readsAll {
          #expect(await simulation.wait { $0.feedback.waiting == 0 }, "\(count) tokens")
        }
      }
      #expect(ledger.feedback.waiting == (reader.readsAll ? 0 : count), "\(count) tokens")
      #expect(ledger.feedback.completed == (reader.readsAll ? 1 : 0), "\(count) tokens")
    }
  }

  @Test("A service that does not close leaves that to the client", arguments: [false, true])
  func neverCloses(tls: Bool) async throws {
    let list = try await Self.list(5)
    let (tokens, ledger) = try await Simulation.run(tls: tls, list: list) {
      $0.behavior.feedback.neverCloses = true
    } body: { simulation in
      let client = try simulation.feedbackClient()
      var bytes: [UInt8] = []
      while bytes.count < 5 * 38 { bytes += try client.receive() }
      #expect(await simulation.snapshot().feedback.completed == 0)
      client.close()
      #expect(await simulation.wait { $0.feedback.waiting == 0 })
      return try Self.tokens(bytes)
    }
    #expect(tokens == (0..<5).map(token))
    #expect(ledger.feedback.completed == 1)
  }

  /// Ruby, PHP and Perl programs that leave the close to the interpreter were sent the list again and again.
  @Test("Three clients read to the end and keep their sockets: 10, 0 and 0 tuples", arguments: [false, true])
  func keptSockets(tls: Bool) async throws {
    let list = try await Self.list(10)
    let (counts, ledger) = try await Simulation.run(tls: tls, list: list) { simulation in
      var (counts, clients): ([Int], [Client]) = ([], [])
      for number in 1...3 {
        let client = try simulation.feedbackClient()
        counts.append(try client.receiveAll().count / 38)
        clients.append(client)
        #expect(await simulation.wait { $0.feedback.completed == number && $0.feedback.waiting == 0 })
      }
      let open = await simulation.openConnections()
      #expect(open.feedback == 3)
      for client in clients { client.close() }
      return counts
    }
    #expect(counts == [10, 0, 0])
    #expect(ledger.feedback.completed == 3 && ledger.feedback.tuplesSent == 10)
  }

  @Test(
    "A client that never closes is left, and not before its time; a list that arrived with the end behind it is cleared",
    arguments: [false, true])
  func timeout(neverCloses: Bool) async throws {
    let list = try await Self.list(5)
    let ((taken, ledger), lines) = try await withEventLog { log in
      try await Simulation.run(list: list, log: log) {
        $0.behavior.feedback.neverCloses = neverCloses
        $0.feedbackTimeout = .milliseconds(700)
      } body: { simulation in
        let start = ContinuousClock.now
        let client = try simulation.feedbackClient()
        #expect(try client.hasEnded())
        #expect(
          await simulation.wait { _ in
            let open = await simulation.openConnections()
            return open.feedback == 0
          })
        let taken = ContinuousClock.now - start
        client.close()
        return taken
      }
    }
    #expect(taken >= .milliseconds(700))
    // A service that has no time on a busy machine may come to its deadline before it knows that all was acknowledged.
    let isComplete = ledger.feedback.completed == 1
    #expect(!isComplete || !neverCloses && ledger.feedback.tuplesSent == 5)
    #expect(ledger.feedback.waiting == (isComplete ? 0 : 5))
    let reason = isComplete ? "complete" : "incomplete"
    #expect(lines.last?.contains(#""event":"feedback_closed""#) == true)
    #expect(lines.last?.contains(#""reason":"\#(reason)""#) == true, "\(lines)")
  }

  @Test("Failures during a transfer stay for the next one", arguments: [false, true])
  func failuresMeanwhile(tls: Bool) async throws {
    let list = try await Self.list(5_000)
    let (second, ledger) = try await Simulation.run(tls: tls, list: list) {
      $0.devices = try DevicePopulation(shares: .init(uninstalled: 1))
      $0.behavior.rejections = [.init(.prefix([0xff, 0xff]))]
    } body: { simulation in
      let client = try simulation.feedbackClient(receiveBuffer: 4_096)
      var bytes = try client.receive(100)
      // One is new, one is on the list already.
      let provider = try simulation.client()
      let answer = try provider.exchange(frame(70_000) + frame(3_000) + frame(0xffff))
      #expect(answer == response(.invalidToken, 0xffff))
      bytes += try client.receiveAll()
      client.close()
      let count = bytes.count / 38
      #expect(count == 5_000 || count == 4_999)
      #expect(await simulation.wait { $0.feedback.completed == 1 && $0.feedback.waiting == 2 })
      let next = try simulation.feedbackClient()
      let second = try Self.tokens(try next.receiveAll())
      next.close()
      #expect(await simulation.wait { $0.feedback.waiting == 0 })
      return second
    }
    #expect(second == [token(70_000), token(3_000)])
    #expect(ledger.feedback.completed == 2)
  }

  @Test("Ragged writes cut tuples, and lose none", arguments: [false, true])
  func ragged(tls: Bool) async throws {
    let list = try await Self.list(20)
    let (read, ledger) = try await Simulation.run(tls: tls, list: list) {
      $0.behavior.feedback.isRagged = true
    } body: { simulation in
      let client = try simulation.feedbackClient()
      var (bytes, longest, reads): ([UInt8], Int, Int) = ([], 0, 0)
      while true {
        let piece = try client.receive()
        if piece.isEmpty { break }
        bytes += piece
        longest = max(longest, piece.count)
        reads += 1
      }
      client.close()
      #expect(await simulation.wait { $0.feedback.waiting == 0 })
      return (tokens: try Self.tokens(bytes), longest: longest, reads: reads)
    }
    #expect(read.tokens == (0..<20).map(token))
    // A record is a piece; without TLS the kernel may join some.
    if tls { #expect(read.longest <= 7 && read.reads > 100) }
    #expect(ledger.feedback.tuplesSent == 20)
  }

  @Test("A list of any length reaches a slow reader")
  func slowReader() async throws {
    let count = TestRun.isWhole ? 100_000 : 20_000
    let list = try await Self.list(count)
    let (_, ledger) = try await Simulation.run(list: list) { simulation in
      let client = try simulation.feedbackClient(receiveBuffer: 4_096)
      var received: [UInt8] = []
      while received.count < count * 38 {
        received += try client.receive(65_536)
        if received.count % 7 == 0 { usleep(200) }
      }
      let end = try client.receive()
      #expect(end == [])
      #expect(try Self.tokens(received) == (0..<count).map(token))
      client.close()
      #expect(await simulation.wait { $0.feedback.waiting == 0 })
    }
    #expect(ledger.feedback.tuplesSent == count)
    #expect(ledger.feedback.completed == 1)
  }

  @Test("Two topics have lists of their own")
  func topics() async throws {
    let (lists, ledger) = try await Simulation.run(tls: true) {
      $0.devices = try DevicePopulation(shares: .init(uninstalled: 1))
    } body: { simulation in
      for (topic, numbers) in [(Simulation.topic, 1...3), (Simulation.otherTopic, 3...4)]
        as [(String, ClosedRange<UInt32>)]
      {
        let client = try simulation.client(topic: topic)
        _ = try client.exchange(frames(numbers))
      }
      #expect(await simulation.wait { $0.feedback.waiting == 5 })
      let client = try simulation.feedbackClient(topic: Simulation.otherTopic)
      let other = try Self.tokens(try client.receiveAll())
      client.close()
      #expect(await simulation.wait { $0.feedback.waiting == 3 })
      return [other, try Self.tokens(try simulation.feedbackClient(version: .tls13).receiveAll())]
    }
    #expect(lists == [[token(3), token(4)], [token(1), token(2), token(3)]])
    #expect(ledger.feedback.connections == 2)
  }

  @Test("Failures that the list has no room for yet are put on it later, though their connection is gone")
  func noRoom() async throws {
    // Room for 7 failures at a time.
    let list = try FeedbackList(path: nil, limits: .init(maximumPendingBytes: 900))
    let (_, ledger) = try await Simulation.run(list: list) {
      $0.devices = try DevicePopulation(shares: .init(uninstalled: 1))
    } body: { simulation in
      let clients = try (0..<20).map { _ in try simulation.client() }
      for (number, client) in clients.enumerated() {
        let first = UInt32(number) * 6 + 1
        try client.send(frames(first...first + 5))
        client.close()
      }
      #expect(await simulation.wait { $0.gateway.accepted == 120 })
    }
    #expect(ledger.devices.uninstalled == 120)
    #expect(ledger.feedback.waiting == 120)
  }

  /// With a full disk 5,000 notifications were proven accepted, and 75 stood on the list.
  @Test("What cannot be put on the list is proven by no answer, and counted as lost", arguments: [false, true])
  func lost(isAnswerDue: Bool) async throws {
    try await inTemporaryFolder { folder in
      let list = try FeedbackList(
        path: folder.appendingPathComponent("list").path, limits: .init(maximumFileBytes: 64 << 10))
      let ((answer, ledger), lines) = try await withEventLog { log in
        try await Simulation.run(list: list, log: log) {
          $0.devices = try DevicePopulation(shares: .init(uninstalled: 1))
          $0.behavior.rejections = [.init(.prefix([0xff, 0xff]))]
        } body: { simulation in
          let client = try simulation.client()
          _ = client.sendSome(frames(1...5_000) + (isAnswerDue ? frame(0xffff) : []))
          let answer = Result { try client.receiveAll() }.mapError { $0 as? ClientError ?? .late }
          client.close()
          // Nothing is under way any more.
          #expect(
            await simulation.wait {
              let open = await simulation.openConnections()
              return open.gateway == 0 && $0.feedback.lost > 0
                && $0.devices.uninstalled == $0.feedback.waiting + $0.feedback.lost
            })
          let problems = simulation.simulator.takeFailures()
          #expect(problems.count == 1 && problems.first?.contains("full") == true, "\(problems)")
          return answer
        }
      }
      #expect(answer == .success([]) || answer == .failure(.reset) || answer == .failure(.pipe))
      #expect(ledger.gateway.binary.errorResponses == [:])
      #expect(ledger.connections.map(\.end) == [.feedbackLost])
      #expect(ledger.connections.first?.error?.contains("full") == true)
      #expect(ledger.devices.uninstalled == ledger.feedback.waiting + ledger.feedback.lost)
      #expect(lines.last?.contains(#""reason":"feedback_lost""#) == true, "\(lines)")
      try await list.close()
    }
  }

  @Test("An answer that was due already is not given when a failure it would prove is lost")
  func lostBehindAnswer() async throws {
    try await inTemporaryFolder { folder in
      let list = try FeedbackList(
        path: folder.appendingPathComponent("list").path, limits: .init(maximumFileBytes: 4 << 10))
      // Its queue does nothing else until the answer is due.
      let gate = DispatchSemaphore(value: 0)
      let holding = Task { try await list.perform { _ in gate.wait() } }
      let (answer, ledger) = try await Simulation.run(list: list) {
        $0.devices = try DevicePopulation(shares: .init(uninstalled: 1))
        $0.behavior.rejections = [.init(.prefix([0, 0, 9]))]
      } body: { simulation in
        let client = try simulation.client()
        try client.send(frames(1...200) + frame(300, token: [0, 0, 9] + Array(repeating: 1, count: 29)))
        #expect(await simulation.wait { $0.gateway.rejected == ["8": 1] })
        gate.signal()
        try await holding.value
        let answer = Result { try client.receiveAll() }.mapError { $0 as? ClientError ?? .late }
        client.close()
        // How many fit depends on how many came at a time.
        #expect(await simulation.wait { $0.feedback.lost > 0 && $0.feedback.lost + $0.feedback.waiting == 200 })
        _ = simulation.simulator.takeFailures()
        return answer
      }
      #expect(answer == .success([]))
      #expect(ledger.gateway.rejected == ["8": 1] && ledger.gateway.binary.errorResponses == [:])
      #expect(ledger.connections.map(\.end) == [.feedbackLost])
      try await list.close()
    }
  }

  @Test("The device store shows in the ledger: coalesced, expired, dropped, delivered when devices come online")
  func offline() async throws {
    let (_, ledger) = try await Simulation.run {
      $0.devices = try DevicePopulation(shares: .init(offline: 1))
      $0.offline = .init(maximumNotifications: 3)
    } body: { simulation in
      let past = UInt32(time(nil)) - 100
      let client = try simulation.client()
      // Three for one device, one that is not to be stored, one that has expired.
      try client.send(frame(1) + frame(1) + frame(1) + frame(2, expiration: 0) + frame(3, expiration: past))
      #expect(await simulation.wait { $0.gateway.accepted == 5 })
      let first = await simulation.snapshot().devices
      #expect(first.coalesced == 2 && first.expired == 2 && first.stored == 1)
      simulation.simulator.bringDevicesOnline()
      #expect(await simulation.snapshot().devices.delivered == 1)
      try client.send(frames(4...8))
      #expect(await simulation.wait { $0.gateway.accepted == 10 })
    }
    let devices = ledger.devices
    #expect(devices.delivered == 1 && devices.coalesced == 2 && devices.expired == 2)
    #expect(devices.stored == 3 && devices.dropped == 2)
  }
}

/// Gives `body` a log, and returns its lines.
func withEventLog<Result>(_ body: (EventLog) async throws -> Result) async throws -> (Result, [String]) {
  try await inTemporaryFolder { folder in
    let path = folder.appendingPathComponent("log").path
    let log = try EventLog(path: path)
    let result = try await body(log)
    log.close()
    return (result, try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init))
  }
}
