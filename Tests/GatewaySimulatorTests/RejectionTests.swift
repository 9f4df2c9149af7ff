import BinaryProtocol
import Bytes
import Glibc
import Measurement
import TLSFoundation
import TLSTransport
import TestSupport
import Testing

@testable import GatewaySimulator

/// Which notifications are refused though nothing is wrong with them: on the wire and in the books.
@Suite("Behavior: rejections", .waiting)
struct RejectionTests {
  /// Sends notifications 1, 2, … on one connection after the other until all are settled, as a good provider does, and
  /// returns the identifiers that were refused.
  private static func sendAll(_ count: UInt32, to simulation: Simulation) throws -> [UInt32] {
    var refused: [UInt32] = []
    var next: UInt32 = 1
    while next <= count {
      let client = try simulation.client()
      let answer = try client.exchange(frames(next...count))
      client.close()
      guard !answer.isEmpty else { break }
      var offset = 0
      let response = try ErrorResponse(parsing: answer.rawBytes, at: &offset)
      refused.append(response.identifier)
      next = response.identifier + 1
    }
    return refused
  }

  @Test("Every n-th is exact over several connections", arguments: [1, 2, 7])
  func every(interval: Int) async throws {
    let count = 30
    let (refused, ledger) = try await Simulation.run {
      $0.behavior.rejections = [.init(.every(interval), status: .processingError)]
    } body: {
      try Self.sendAll(UInt32(count), to: $0)
    }
    #expect(refused == (1...count).filter { $0 % interval == 0 }.map { UInt32($0) })
    #expect(ledger.gateway.rejected == ["1": count / interval])
    #expect(ledger.gateway.binary.errorResponses == ["1": count / interval])
    #expect(ledger.gateway.accepted == count - count / interval)
  }

  @Test("By probability: a seed is a result, another seed another one, and the share is about right")
  func probability() async throws {
    func run(_ seed: UInt64) async throws -> [UInt32] {
      try await Simulation.run {
        $0.behavior.seed = seed
        $0.behavior.rejections = [.init(.probability(0.2), status: .none)]
      } body: {
        try Self.sendAll(300, to: $0)
      }.result
    }
    let first = try await run(1)
    #expect(try await run(1) == first)
    #expect(try await run(2) != first)
    // 60 expected, deviation 7.
    #expect((30...95).contains(first.count))
  }

  @Test("By prefix and by list, each with its status; the first that applies decides")
  func tokens() async throws {
    let listed = TokenSet([token(3), token(5)])
    let (answers, ledger) = try await Simulation.run {
      $0.behavior.rejections = [
        .init(.prefix([5]), status: .invalidTopicSize), .init(.tokens(listed), status: .invalidToken),
      ]
    } body: { simulation in
      try (2...6).map { try simulation.client().exchange(frame($0)) }
    }
    #expect(answers == [[], response(.invalidToken, 3), [], response(.invalidTopicSize, 5), []])
    #expect(ledger.gateway.rejected == ["8": 1, "6": 1])
    #expect(ledger.gateway.accepted == 3)
  }

  @Test("Of those to uninstalled apps a share is rejected; the others put their token on the feedback list")
  func uninstalled() async throws {
    let devices = try DevicePopulation(shares: .init(uninstalled: 0.5))
    let (refused, ledger) = try await Simulation.run {
      $0.devices = devices
      $0.behavior.rejections = [.init(.uninstalled(0.3))]
    } body: { simulation in
      let refused = try Self.sendAll(400, to: simulation)
      _ = await simulation.wait { $0.gateway.accepted + refused.count == 400 }
      return refused
    }
    // 200 expected of 400, and 60 of these; ten and seven standard deviations.
    #expect((100...300).contains(refused.count + ledger.devices.uninstalled))
    #expect((20...100).contains(refused.count))
    #expect(ledger.gateway.rejected == ["8": refused.count])
    let topicSeed = DevicePopulation.topicSeed(SimulatorOptions().plainTopic, seed: 1)
    #expect(
      refused.allSatisfy {
        devices.device(of: token(Int($0)).rawBytes, topicSeed: topicSeed) == .uninstalled
      })
  }

  @Test(
    "A push with priority 10 that shows nothing is refused once, and counted where payloads are",
    arguments: [false, true], [false, true])
  func silentAtOnce(judges: Bool, checks: Bool) async throws {
    let (answer, ledger) = try await Simulation.run {
      $0.payloads = judges ? PayloadScrutiny() : nil
      $0.rules.push.checksPriority = checks
    } body: { simulation in
      var silent = ByteWriter()
      // Command 1 implies priority 10.
      BinaryFrame.encodeEnhanced(
        identifier: 7, expiration: 0, token: token(7).rawBytes,
        payload: Array(#"{"aps":{"content-available":1}}"#.utf8).rawBytes, into: &silent)
      return try simulation.client().exchange(Array(copying: silent.bytes))
    }
    #expect(answer == (checks ? response(.processingError, 7) : []))
    #expect(ledger.gateway.rejected == (checks ? ["1": 1] : [:]) && ledger.gateway.accepted == (checks ? 0 : 1))
    #expect(ledger.payloads?.kinds == (judges ? ["background": 1] : nil))
  }

  @Test("An empty topic, or one of over 255 bytes, is refused at the first notification", arguments: [0, 1, 255, 256])
  func topicLength(length: Int) async throws {
    let (answer, ledger) = try await Simulation.run {
      $0.plainTopic = String(repeating: "a", count: length)
    } body: { simulation in
      try simulation.client().exchange(frames(1...2))
    }
    let isRefused = length == 0 || length > 255
    #expect(answer == (isRefused ? response(.invalidTopicSize, 1) : []))
    #expect(ledger.gateway.accepted == (isRefused ? 0 : 2))
  }

  @Test("Rules of the protocol come first, and are no turn of the n-th")
  func rulesFirst() async throws {
    let (answers, _) = try await Simulation.run {
      $0.behavior.rejections = [.init(.every(2), status: .none)]
    } body: { simulation in
      [
        try simulation.client().exchange(frame(1)),
        try simulation.client().exchange(frame(2, token: [1])),
        try simulation.client().exchange(frame(3)),
      ]
    }
    #expect(answers == [[], response(.invalidTokenSize, 2), response(.none, 3)])
  }
}

/// How an error response arrives, and how connections end.
@Suite("Behavior: answers", .waiting)
struct AnswerTests {
  @Test("The answer does not come before its delay", arguments: [false, true])
  func delay(tls: Bool) async throws {
    let (taken, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.rejections = [.init(.every(1))]
      $0.behavior.response.delay = .milliseconds(300) ... .milliseconds(400)
    } body: { simulation in
      let client = try simulation.client()
      let start = ContinuousClock.now
      try client.send(frame(1))
      #expect(try client.receiveAll() == response(.invalidToken, 1))
      return ContinuousClock.now - start
    }
    #expect(taken >= .milliseconds(300))
    #expect(ledger.gateway.binary.errorResponses == ["8": 1])
  }

  @Test("Every version of TLS", arguments: [.tls10, .tls11, .tls12, .tls13] as [TLSVersion])
  func versions(version: TLSVersion) async throws {
    let (answers, ledger) = try await Simulation.run(tls: true) {
      $0.behavior.rejections = [.init(.prefix([3]))]
    } body: { simulation in
      let client = try simulation.client(version: version)
      let first = try client.exchange(frames(1...5))
      let second = try simulation.client(version: version)
      try second.send(frames(1...2))
      #expect(await simulation.wait { $0.gateway.accepted == 4 })
      simulation.simulator.shutDownConnections()
      return [first, try second.receiveAll()]
    }
    #expect(answers == [response(.invalidToken, 3), response(.shutdown, 2)])
    #expect(ledger.gateway.discarded == 2)
  }

  /// A record is a piece; without TLS the kernel may join some.
  @Test("It comes in pieces")
  func pieces() async throws {
    let (pieces, _) = try await Simulation.run(tls: true) {
      $0.behavior.rejections = [.init(.every(1))]
      $0.behavior.response.pieces = [1, 3]
      $0.behavior.response.pieceDelay = .milliseconds(50)
    } body: { simulation in
      let client = try simulation.client()
      try client.send(frame(7))
      return try [client.receive(), client.receive(), client.receive(), client.receive()]
    }
    let whole = response(.invalidToken, 7)
    #expect(pieces == [Array(whole[..<1]), Array(whole[1..<4]), Array(whole[4...]), []])
  }

  @Test("A client that ends its half before the answer still gets it")
  func answerAfterEnd() async throws {
    let (answer, ledger) = try await Simulation.run {
      $0.behavior.rejections = [.init(.every(1))]
      $0.behavior.response.delay = .milliseconds(100) ... .milliseconds(100)
      $0.behavior.response.pieces = [2]
    } body: {
      try $0.client().exchange(frame(7))
    }
    #expect(answer == response(.invalidToken, 7))
    #expect(ledger.connections.map(\.end) == [.rejected])
  }

  @Test("The identifier is wrong, or zero", arguments: Behavior.Response.Identifier.allCases)
  func identifier(kind: Behavior.Response.Identifier) async throws {
    let (answer, ledger) = try await Simulation.run {
      $0.behavior.rejections = [.init(.every(3))]
      $0.behavior.response.identifier = kind
    } body: {
      try $0.client().exchange(frames(1...5))
    }
    var offset = 0
    let identifier = try ErrorResponse(parsing: answer.rawBytes, at: &offset).identifier
    switch kind {
    case .right: #expect(identifier == 3)
    case .zero: #expect(identifier == 0)
    case .wrong: #expect(identifier != 3)
    }
    // The books know better.
    #expect(ledger.connections.first?.rejected == .init(status: 8, identifier: 3, notification: 2))
    #expect(ledger.gateway.discarded == 2)
  }

  @Test("No response, just the end", arguments: [false, true], Behavior.Response.Ending.allCases)
  func ending(tls: Bool, ending: Behavior.Response.Ending) async throws {
    let ((answer, ledger), lines) = try await withEventLog { log in
      try await Simulation.run(tls: tls, log: log) {
        $0.behavior.rejections = [.init(.every(2))]
        $0.behavior.response.ending = ending
      } body: { simulation in
        let client = try simulation.client()
        try client.send(frames(1...3))
        return Result { try client.receiveAll() }.mapError { $0 as? ClientError ?? .late }
      }
    }
    switch ending {
    case .response: #expect(answer == .success(response(.invalidToken, 2)))
    case .fin: #expect(answer == .success([]))
    case .rst: #expect(answer == .failure(.reset))
    }
    #expect(ledger.gateway.rejected == ["8": 1])
    #expect(ledger.gateway.binary.errorResponses == (ending == .response ? ["8": 1] : [:]))
    #expect(ledger.connections.map(\.end) == [.rejected])
    #expect(ledger.gateway.discarded == 1)
    let events = lines.filter { $0.contains("response\"") }
    #expect(events.count == 1)
    let event = try #require(events.first)
    #expect(event.contains(ending == .response ? #""event":"error_response""# : #""event":"no_response""#))
    #expect(event.contains(#""status":8,"identifier":2,"notification":1,"accepted":1"#) && !event.contains("reason"))
  }

  @Test("A RST in answer to a frame that came in two pieces", arguments: [false, true])
  func resetAfterCutFrame(tls: Bool) async throws {
    let (answer, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.rejections = [.init(.every(2))]
      $0.behavior.response.ending = .rst
    } body: { simulation in
      let client = try simulation.client()
      let bytes = frames(1...4)
      let cut = frame(1).count + 20
      try client.send(Array(bytes[..<cut]))
      #expect(await simulation.wait { $0.gateway.accepted == 1 })
      try client.send(Array(bytes[cut...]))
      return Result { try client.receiveAll() }.mapError { $0 as? ClientError ?? .late }
    }
    #expect(answer == .failure(.reset))
    #expect(ledger.gateway.received == 4)
    #expect(ledger.gateway.discarded == 2)
  }

  @Test("A connection that is reset before its answer ends once", arguments: [false, true])
  func resetBeforeAnswer(tls: Bool) async throws {
    let (_, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.rejections = [.init(.every(1))]
      $0.behavior.response.delay = .milliseconds(200) ... .milliseconds(200)
      $0.behavior.response.pieces = [1, 1]
    } body: { simulation in
      let client = try simulation.client()
      try client.send(frame(1))
      #expect(await simulation.wait { $0.gateway.received == 1 })
      client.reset()
    }
    #expect(ledger.connections.map(\.end) == [.rejected])
  }

  /// `--response-pieces 3,3`, and a client that leaves after the first: three bytes were counted as a response.
  @Test("A response of which 3 of 6 bytes left is incomplete", arguments: [false, true])
  func incompleteAnswer(tls: Bool) async throws {
    let ((_, ledger), lines) = try await withEventLog { log in
      try await Simulation.run(tls: tls, log: log) {
        $0.behavior.rejections = [.init(.every(2))]
        $0.behavior.response.pieces = [3, 3]
        // Longer than the test: the second piece finds nobody.
        $0.behavior.response.pieceDelay = .seconds(3_600)
      } body: { simulation in
        let client = try simulation.client()
        try client.send(frames(1...3))
        #expect(try client.receive() == Array(response(.invalidToken, 2)[..<3]))
        client.reset()
      }
    }
    #expect(ledger.gateway.rejected == ["8": 1])
    #expect(ledger.gateway.binary.errorResponses == [:])
    #expect(ledger.gateway.binary.errorResponsesIncomplete == 1)
    let event = lines.filter { $0.contains("error_response") }
    #expect(event.count == 1)
    #expect(event.first?.contains(#""event":"error_response_incomplete""#) == true)
    #expect(event.first?.contains(#""reason":"3 of 6 bytes""#) == true)
  }

  @Test("Shutdown after n notifications names the last accepted one")
  func shutdownAfter() async throws {
    let (answer, ledger) = try await Simulation.run {
      $0.behavior.shutdownAfter = 3
    } body: {
      try $0.client().exchange(frames(1...5))
    }
    #expect(answer == response(.shutdown, 3))
    #expect(ledger.gateway.accepted == 3)
    #expect(ledger.gateway.discarded == 2)
    #expect(ledger.gateway.rejected == [:])
    #expect(ledger.gateway.binary.errorResponses == ["10": 1])
    #expect(ledger.connections.map(\.end) == [.shutdown])
    #expect(ledger.connections.first?.rejected == nil)
  }

  @Test("All connections are shut down; those that carried nothing are just closed, and new ones are let in")
  func shutDownConnections() async throws {
    let (answers, ledger) = try await Simulation.run { simulation in
      let clients = try (0..<3).map { _ in try simulation.client() }
      try clients[0].send(frames(1...2))
      try clients[1].send(frames(7...7))
      #expect(await simulation.wait { $0.gateway.accepted == 3 && $0.gateway.connections == 3 })
      simulation.simulator.shutDownConnections()
      var answers = try clients.map { try $0.receiveAll() }
      for client in clients { client.close() }
      answers.append(try simulation.client().exchange(frame(1)))
      return answers
    }
    #expect(answers == [response(.shutdown, 2), response(.shutdown, 7), [], []])
    #expect(ledger.connections.map(\.end.rawValue).sorted() == ["local", "peer_fin", "shutdown", "shutdown"])
    #expect(ledger.gateway.accepted == 4)
  }

  @Test("A shutdown leaves a feedback transfer alone")
  func shutDownDuringFeedback() async throws {
    let list = try FeedbackList(path: nil)
    try await list.put([Failure(topic: Simulation.topic, token: token(1), time: 7)])
    let (tuples, ledger) = try await Simulation.run(list: list) { simulation in
      let client = try simulation.feedbackClient()
      #expect(await simulation.wait { $0.feedback.tuplesSent == 1 })
      simulation.simulator.shutDownConnections()
      let tuples = try client.receiveAll()
      client.close()
      #expect(await simulation.wait { $0.feedback.completed == 1 })
      return tuples
    }
    #expect(tuples.count == 38)
    #expect(ledger.feedback.waiting == 0)
  }

  @Test("A client that does not close after an error is closed, and not before its time", arguments: [false, true])
  func linger(tls: Bool) async throws {
    let (result, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.rejections = [.init(.every(1))]
      $0.linger = .milliseconds(300)
    } body: { simulation in
      let start = ContinuousClock.now
      let client = try simulation.client()
      try client.send(frame(1))
      #expect(try client.receiveAll() == response(.invalidToken, 1))
      // It goes on sending, which is counted, until the gateway has had enough.
      var sent = 0
      while client.sendSome(frame(2)).error == nil, ContinuousClock.now - start < Simulation.patience {
        sent += 1
        usleep(20_000)
      }
      return (sent: sent, taken: ContinuousClock.now - start)
    }
    #expect(result.taken >= .milliseconds(300))
    #expect(ledger.gateway.discarded <= result.sent)
    #expect(ledger.connections.map(\.end) == [.rejected])
  }

}
