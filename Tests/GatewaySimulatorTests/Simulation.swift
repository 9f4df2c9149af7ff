import APNSProtocol
import Bytes
import Foundation
import Measurement
import TLSTransport
import Testing

@testable import GatewaySimulator

/// Tests over real sockets, one at a time: they look at the clock.
@Suite("Loopback", .serialized)
struct Loopback {}

/// A simulator that runs while a test's body does.
struct Simulation: Sendable {
  let simulator: Simulator
  let list: FeedbackList
  let directory: IdentityDirectory?

  static let topic = "com.example.app"
  static let otherTopic = "com.example.other"

  /// Runs the body on a thread of its own, where it may block, then ends the simulator; its books have to balance.
  ///
  /// - Parameter tls: speak TLS; without, connections are plain TCP.
  @discardableResult
  static func run<Result: Sendable>(
    tls: Bool = false, list: FeedbackList? = nil, log: EventLog? = nil,
    _ configure: (inout SimulatorOptions) throws -> Void = { _ in },
    body: @escaping @Sendable (Simulation) throws -> Result
  ) async throws -> (result: Result, ledger: Ledger) {
    try await inTemporaryFolder { folder in
      let list = try list ?? FeedbackList(path: nil)
      var options = SimulatorOptions()
      options.gateway = .init(host: "127.0.0.1", port: 0)
      options.feedback = .init(host: "127.0.0.1", port: 0)
      options.threads = 2
      options.linger = .seconds(2)
      var directory: IdentityDirectory?
      if tls {
        let made = IdentityDirectory(folder.path)
        _ = try made.issue(.init(topics: [topic, otherTopic]))
        var configuration = TLSConfiguration.server(identity: try made.gateway())
        configuration.authorityFile = made.authorityFile
        options.tls = try TLSContext(configuration)
        directory = made
      }
      try configure(&options)
      let simulator = try await Simulator.start(options, feedbackList: list, log: log)
      let simulation = Simulation(simulator: simulator, list: list, directory: directory)
      let outcome: Swift.Result<Result, any Error> = await onThread { try body(simulation) }
      let ledger = await simulator.stop()
      let result = try outcome.get()
      #expect(simulator.takeFailures() == [])
      expectBalance(ledger)
      return (result, ledger)
    }
  }

  func client(
    topic: String = topic, version: TLSVersion = .tls12, receiveBuffer: Int32? = nil, sendBuffer: Int32? = nil
  ) throws -> Client {
    try Client(
      simulator.gateway?.port ?? 0, tls: directory.map { .init(directory: $0, topic: topic, version: version) },
      receiveBuffer: receiveBuffer, sendBuffer: sendBuffer)
  }

  func feedbackClient(topic: String = topic, version: TLSVersion = .tls12, receiveBuffer: Int32? = nil) throws -> Client
  {
    try Client(
      simulator.feedback?.port ?? 0, tls: directory.map { .init(directory: $0, topic: topic, version: version) },
      receiveBuffer: receiveBuffer)
  }

  /// The books as they stand.
  func snapshot() -> Ledger { result { await simulator.snapshot() } }

  /// Waits until the books say so, at most some seconds.
  @discardableResult
  func wait(seconds: Double = 10, until isReached: (Ledger) throws -> Bool) rethrows -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(seconds)
    while clock.now < end {
      if try isReached(snapshot()) { return true }
      usleep(1_000)
    }
    return try isReached(snapshot())
  }

  func openConnections() -> Int { result { await simulator.openConnections().gateway } }
}

/// Does something that blocks on a thread of its own.
func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async -> Result<T, any Error> {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: Result { try body() }) }
  }
}

private final class Box<T: Sendable>: @unchecked Sendable {
  // Safe: written before the semaphore is signalled, read after.
  var value: T?
}

/// Blocks this thread, which is not one of Swift's tasks.
func result<T: Sendable>(_ body: @escaping @Sendable () async -> T) -> T {
  let done = DispatchSemaphore(value: 0)
  let box = Box<T>()
  Task {
    box.value = await body()
    done.signal()
  }
  done.wait()
  return box.value!
}

/// The laws that hold for every ledger.
func expectBalance(_ ledger: Ledger, sourceLocation: SourceLocation = #_sourceLocation) {
  let (gateway, devices, connections) = (ledger.gateway, ledger.devices, ledger.connections)
  func expect(_ condition: Bool, _ law: Comment) { #expect(condition, law, sourceLocation: sourceLocation) }
  let rejected = gateway.rejected.values.reduce(0, +)
  expect(
    gateway.received == gateway.accepted + rejected + gateway.discarded, "received = accepted + rejected + discarded")
  expect(
    gateway.accepted == devices.delivered + devices.stored + devices.coalesced + devices.expired + devices.dropped
      + devices.uninstalled, "accepted = what became of it for devices")
  expect(gateway.connections == gateway.handshakes + gateway.handshakeFailures, "connections = handshakes + failures")
  expect(gateway.connections == connections.count + ledger.connectionsOmitted, "every connection is listed or omitted")
  expect(gateway.malformed <= rejected, "malformed is a part of rejected")
  for (status, count) in gateway.errorResponses where status != "10" {
    expect(count <= gateway.rejected[status] ?? 0, "no more error responses than rejections")
  }
  guard ledger.connectionsOmitted == 0 else { return }
  expect(gateway.received == connections.reduce(0) { $0 + $1.received }, "received, by connection")
  expect(gateway.accepted == connections.reduce(0) { $0 + $1.accepted }, "accepted, by connection")
  expect(gateway.discarded == connections.reduce(0) { $0 + $1.discarded }, "discarded, by connection")
  expect(rejected == connections.count { $0.rejected != nil }, "rejected, by connection")
  for connection in connections {
    expect(
      connection.received == connection.accepted + (connection.rejected == nil ? 0 : 1) + connection.discarded,
      "a connection's received = accepted + rejected + discarded")
  }
}

// MARK: frames

/// A notification as most clients write it: command 2, an identifier, and a token that is its number.
func frame(
  _ identifier: UInt32?, token: [UInt8]? = nil, payload: String = #"{"aps":{"alert":"Ciao"}}"#,
  expiration: UInt32? = nil
) -> [UInt8] {
  let (token, payload) = (token ?? GatewaySimulatorTests.token(Int(identifier ?? 0)), Array(payload.utf8))
  var writer = ByteWriter(capacity: 256)
  PushNotification.encodeFramed(
    token: token.rawBytes, payload: payload.rawBytes, identifier: identifier, expiration: expiration, priority: nil,
    into: &writer)
  return Array(copying: writer.bytes)
}

func frames(_ identifiers: ClosedRange<UInt32>) -> [UInt8] { identifiers.flatMap { frame($0) } }

/// Six bytes, or fewer.
func response(_ status: ErrorResponse.Status, _ identifier: UInt32) -> [UInt8] {
  var writer = ByteWriter(capacity: 64)
  ErrorResponse(status: status, identifier: identifier).encode(into: &writer)
  return Array(copying: writer.bytes)
}

extension Client {
  /// Sends everything, and reads what comes back up to the end.
  func exchange(_ bytes: [UInt8]) throws -> [UInt8] {
    _ = sendSome(bytes)
    finishWriting()
    return try receiveAll()
  }
}
