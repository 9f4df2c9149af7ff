import BinaryProtocol
import Bytes
import GatewaySimulator
import Measurement
import PushModel
import Records
import TestSupport
import Testing

@testable import GatewayControl

/// A gateway in the hands of a test, as Swift calls.
@Suite("Observed gateway", .waiting)
struct ObservedGatewayTests {
  @Test("Received notifications are listed with the gateway's decisions, and filtered") func lists() async throws {
    try await withGateway { gateway in
      let payload = #"{"aps":{"alert":"Gr\u00fc\u00dfe, \"Otto\""}}"#
      let client = try RawClient(port: gateway.port)
      client.write(frame(1) + frame(2, payload: payload) + frame(3, token: [9]) + frame(4))
      client.endWriting()
      #expect(client.readAll() == response(.invalidTokenSize, 3))

      let all = try await gateway.waitForNotifications(4, within: .seconds(60))
      #expect(all.notifications.map(\.number) == [1, 2, 3, 4] && all.last == 4 && !all.isCut && all.forgotten == 0)
      #expect(all.notifications.map(\.fate) == [.accepted, .accepted, .rejected, .discarded])
      #expect(all.notifications.map(\.rejection) == [nil, nil, .status(.invalidTokenSize), nil])
      #expect(all.notifications.map(\.identifier) == [1, 2, 3, 4])
      #expect(all.notifications.allSatisfy { $0.topic == "com.example.app" && $0.connection == 1 && $0.time > 0 })
      #expect(all.notifications[1].payload == Array(payload.utf8) && all.notifications[2].token == [9])

      func numbers(_ configure: (inout NotificationQuery) -> Void) async throws -> [Int] {
        var query = NotificationQuery()
        configure(&query)
        return try await gateway.notifications(query).notifications.map(\.number)
      }
      #expect(try await numbers { $0.token = .init("09") } == [3])
      #expect(try await numbers { $0.token = .init("0000") } == [1, 2, 4])
      // As it is read on a device, not as it was written.
      #expect(try await numbers { $0.text = "Grüße, \"Otto\"" } == [2])
      #expect(try await numbers { $0.text = "Ciao" } == [1, 3, 4])
      #expect(try await numbers { $0.text = "Ciaó" } == [])
      #expect(try await numbers { $0.topic = "com.example.app" } == [1, 2, 3, 4])
      #expect(try await numbers { $0.topic = "com.example" } == [])
      #expect(try await numbers { $0.fates = [.rejected, .discarded] } == [3, 4])
      #expect(try await numbers { $0.after = 2 } == [3, 4])
      let first = try await gateway.notifications(limit: 3)
      #expect(first.notifications.count == 3 && first.isCut && first.last == 3)
      let none = try await gateway.notifications(limit: 0)
      #expect(none.notifications.isEmpty && none.isCut && none.last == 0)
    }
  }

  @Test("Waiting ends when the notifications are there, and with an error when they do not come") func waits()
    async throws
  {
    try await withGateway { gateway in
      let port = gateway.port
      async let waited = gateway.waitForNotifications(3, within: .seconds(60))
      let client = try RawClient(port: port)
      client.write(frame(1))
      _ = try await gateway.waitForNotifications(1, within: .seconds(60))
      client.write(frame(2) + frame(3))
      #expect(try await waited.notifications.map(\.number) == [1, 2, 3])
      var query = NotificationQuery()
      query.text = "nothing"
      do {
        _ = try await gateway.waitForNotifications(1, query, within: .milliseconds(50))
        Issue.record("it did not throw")
      } catch ObservedGateway.Failure.notReceived(let wanted, let received) {
        #expect(wanted == 1 && received.notifications.isEmpty && received.last == 3)
      }
      client.endWriting()
    }
  }

  @Test("Each notification is in one part of the list, however lists and writes alternate") func parts() async throws {
    try await withGateway { gateway in
      let client = try RawClient(port: gateway.port)
      var seen: [Int] = []
      var query = NotificationQuery()
      for round in 0..<50 {
        client.write((0..<20).flatMap { frame(UInt32(round * 20 + $0)) })
        let part = try await gateway.notifications(query, limit: 7)
        seen += part.notifications.map(\.number)
        query.after = part.last
      }
      client.endWriting()
      _ = client.readAll()
      while seen.count < 1_000 {
        let part = try await gateway.waitForNotifications(1, query, within: .seconds(60))
        seen += part.notifications.map(\.number)
        query.after = part.last
      }
      #expect(seen == Array(1...1_000))
    }
  }

  @Test("The verdict comes while the gateway runs, and begins anew with a reset") func verdict() async throws {
    try await withGateway { gateway in
      let client = try RawClient(port: gateway.port)
      client.write(frame(1) + frame(2, token: [9]) + frame(3))
      client.endWriting()
      _ = client.readAll()
      _ = try await gateway.waitForNotifications(3, within: .seconds(60))
      let verdict = try await gateway.verdict()
      #expect(verdict.sendings == 3 && verdict.discarded == 1 && verdict.stories.accepted == 1)
      // It may be sent again yet.
      #expect(verdict.stories.open == 1 && verdict.stories.lost == 0)
      async let one = gateway.verdict()
      async let other = gateway.verdict()
      let both = try await [one, other]
      #expect(both.allSatisfy { $0.sendings == 3 })

      try await gateway.reset()
      #expect(try await gateway.verdict().sendings == 0)
      #expect(try await gateway.notifications().notifications.isEmpty)
      #expect(await gateway.counts().gateway.received == 0)
      let later = try RawClient(port: gateway.port)
      later.write(frame(7))
      later.endWriting()
      _ = later.readAll()
      #expect(try await gateway.waitForNotifications(1, within: .seconds(60)).notifications.map(\.number) == [4])
      #expect(try await gateway.verdict().stories.accepted == 1)
    }
  }

  @Test("With a small memory the oldest are forgotten, and said to be") func forgets() async throws {
    var keeping = ObservedGateway.Options()
    keeping.maximumBytes = 500_000
    try await withGateway(keeping: keeping) { gateway in
      let client = try RawClient(port: gateway.port)
      for number in 1...20_000 as ClosedRange<UInt32> { client.write(frame(number)) }
      client.endWriting()
      _ = client.readAll()
      var query = NotificationQuery()
      query.token = .init(String(repeating: "0", count: 56) + "00004e20")
      _ = try await gateway.waitForNotifications(1, query, within: .seconds(60))
      let list = try await gateway.notifications(limit: 10_000)
      #expect(list.forgotten > 10_000 && list.forgotten + list.notifications.count == 20_000)
      #expect(list.notifications.last?.number == 20_000)
      #expect(try await gateway.verdict().notObserved == list.forgotten)
    }
  }

  @Test("A gateway that has ended answers no more questions, and none waits for it") func ended() async throws {
    let gateway = try await start()
    _ = await gateway.stop()
    await #expect(throws: ObservedGateway.Failure.self) { try await gateway.notifications() }
    await #expect(throws: ObservedGateway.Failure.self) { try await gateway.verdict() }
  }
}

// MARK: - gateways and frames

extension ObservedGateway {
  var port: Int { simulator.gateway?.port ?? 0 }
}

func start(keeping: ObservedGateway.Options = .init()) async throws -> ObservedGateway {
  var options = SimulatorOptions()
  options.gateway = .init(host: "127.0.0.1", port: 0)
  options.feedback = nil
  options.threads = 2
  options.linger = .seconds(600)
  return try await ObservedGateway.start(options, keeping: keeping)
}

/// Runs a body with a gateway, and ends the gateway.
func withGateway(
  keeping: ObservedGateway.Options = .init(), _ body: (ObservedGateway) async throws -> Void
) async throws {
  let gateway = try await start(keeping: keeping)
  do {
    try await body(gateway)
  } catch {
    _ = await gateway.stop()
    throw error
  }
  let books = await gateway.stop().gateway
  #expect(books.received == books.accepted + books.rejected.values.reduce(0, +) + books.discarded)
}

/// A notification whose token is its number.
func frame(
  _ identifier: UInt32, token: [UInt8]? = nil, payload: String = #"{"aps":{"alert":"Ciao"}}"#
) -> [UInt8] {
  let token =
    token ?? [UInt8](repeating: 0, count: 28) + (0..<4).map { UInt8(truncatingIfNeeded: identifier >> (24 - 8 * $0)) }
  var writer = ByteWriter(capacity: 256)
  BinaryFrame.encodeFramed(
    token: token.rawBytes, payload: Array(payload.utf8).rawBytes, identifier: identifier, expiration: nil,
    priority: nil, into: &writer)
  return Array(copying: writer.bytes)
}

func response(_ status: ErrorResponse.Status, _ identifier: UInt32) -> [UInt8] {
  var writer = ByteWriter(capacity: 64)
  ErrorResponse(status: status, identifier: identifier).encode(into: &writer)
  return Array(copying: writer.bytes)
}
