import BinaryProtocol
import Bytes
import Measurement
import Synchronization
import TLSFoundation
import TLSTransport
import Testing

@testable import GatewaySimulator

/// A simulator on real sockets that runs while a test's body does.
struct Simulation: Sendable {
  let simulator: Simulator
  let list: FeedbackList
  private let directory: IdentityDirectory?
  private let progress = Progress()

  static let topic = "com.example.app"
  static let otherTopic = "com.example.other"

  /// What tests wait for comes, however slow the machine is, or the test fails.
  static let patience = Duration.seconds(60)

  private final class Progress: Sendable {
    let clients = Atomic<Int>(0)
    let isStopped = Atomic<Bool>(false)
  }

  /// Runs the body, which may block its thread, then ends the simulator; its books have to balance.
  ///
  /// The simulator waits longer for its clients than any test takes, unless it is told not to. When the body has ended
  /// and let go its clients, every connection has to end by itself, with all that was sent in the books.
  ///
  /// - Parameters:
  ///   - tls: speak TLS; without, connections are plain TCP.
  ///   - endsAll: connections end when their clients have gone; not so where the gateway does not read.
  @discardableResult
  static func run<Result>(
    tls: Bool = false, list: FeedbackList? = nil, log: EventLog? = nil, observer: KeptEvents? = nil,
    endsAll: Bool = true, _ configure: (inout SimulatorOptions) throws -> Void = { _ in },
    body: (Simulation) async throws -> Result
  ) async throws -> (result: Result, ledger: Ledger) {
    try await inTemporaryFolder { folder in
      let list = try list ?? FeedbackList(path: nil)
      var options = SimulatorOptions()
      options.gateway = .init(host: "127.0.0.1", port: 0)
      options.feedback = .init(host: "127.0.0.1", port: 0)
      options.threads = 2
      (options.handshakeTimeout, options.frameTimeout) = (.seconds(600), .seconds(600))
      (options.linger, options.feedbackTimeout) = (.seconds(600), .seconds(600))
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
      let simulator = try await Simulator.start(
        options, feedbackList: list, log: log, observer: observer?.observer)
      let simulation = Simulation(simulator: simulator, list: list, directory: directory)
      let result: Result
      do {
        result = try await body(simulation)
      } catch {
        _ = await simulator.stop()
        throw error
      }
      if endsAll { await simulation.expectEnds() }
      let ledger = await simulator.stop()
      #expect(simulator.takeFailures() == [])
      expectBalance(ledger)
      return (result, ledger)
    }
  }

  private init(simulator: Simulator, list: FeedbackList, directory: IdentityDirectory?) {
    (self.simulator, self.list, self.directory) = (simulator, list, directory)
  }

  private func expectEnds() async {
    guard !progress.isStopped.load(ordering: .relaxed) else { return }
    let clients = progress.clients.load(ordering: .relaxed)
    let haveEnded = await wait {
      let open = await openConnections()
      return $0.gateway.connections + $0.feedback.connections == clients && open == (0, 0)
    }
    #expect(haveEnded, "\(clients) clients have gone, and not all connections are counted and ended")
  }

  // MARK: clients

  /// - Parameter raw: its bytes are those of the socket, also where TLS is expected.
  func client(
    topic: String = topic, version: TLSVersion = .tls12, raw: Bool = false, patience: Duration = patience,
    receiveBuffer: Int32? = nil, sendBuffer: Int32? = nil
  ) throws -> Client {
    try connect(simulator.gateway, topic, version, raw, patience, receiveBuffer, sendBuffer)
  }

  func feedbackClient(
    topic: String = topic, version: TLSVersion = .tls12, raw: Bool = false, receiveBuffer: Int32? = nil
  ) throws -> Client {
    try connect(simulator.feedback, topic, version, raw, Self.patience, receiveBuffer, nil)
  }

  /// A device, in plain TCP. It is none of the clients that are counted.
  func deviceClient(patience: Duration = patience) throws -> Client {
    try Client(simulator.deviceChannel?.port ?? 0, patience: patience)
  }

  private func connect(
    _ address: SimulatorOptions.Address?, _ topic: String, _ version: TLSVersion, _ raw: Bool, _ patience: Duration,
    _ receiveBuffer: Int32?, _ sendBuffer: Int32?
  ) throws -> Client {
    progress.clients.add(1, ordering: .relaxed)
    return try Client(
      address?.port ?? 0, tls: raw ? nil : directory.map { .init(directory: $0, topic: topic, version: version) },
      patience: patience, receiveBuffer: receiveBuffer, sendBuffer: sendBuffer)
  }

  // MARK: the simulator

  /// The books as they stand.
  func snapshot() async -> Ledger { await simulator.snapshot() }

  func openConnections() async -> (gateway: Int, feedback: Int) { await simulator.openConnections() }

  /// Waits until the books say so.
  @discardableResult
  func wait(until isReached: (Ledger) async throws -> Bool) async rethrows -> Bool {
    let end = ContinuousClock.now + Self.patience
    while ContinuousClock.now < end {
      if try await isReached(snapshot()) { return true }
      try? await Task.sleep(for: .milliseconds(1))
    }
    return try await isReached(snapshot())
  }

  /// Ends the simulator before the body does.
  @discardableResult
  func stop() async -> Ledger {
    progress.isStopped.store(true, ordering: .relaxed)
    return await simulator.stop()
  }
}

/// The laws that hold for every ledger.
func expectBalance(_ ledger: Ledger, sourceLocation: SourceLocation = #_sourceLocation) {
  let (gateway, devices, connections) = (ledger.gateway, ledger.devices, ledger.connections)
  func expect(_ condition: Bool, _ law: Comment) { #expect(condition, law, sourceLocation: sourceLocation) }
  let rejected = gateway.rejected.values.reduce(0, +)
  expect(
    gateway.received == gateway.accepted + rejected + gateway.discarded, "received = accepted + rejected + discarded")
  expect(
    gateway.accepted + (devices.channel?.restored ?? 0) == devices.delivered + devices.stored + devices.coalesced
      + devices.expired + devices.dropped
      + devices.uninstalled, "accepted = what became of it for devices")
  expect(gateway.connections == gateway.handshakes + gateway.handshakeFailures, "connections = handshakes + failures")
  expect(gateway.connections == connections.count + ledger.connectionsOmitted, "every connection is listed or omitted")
  expect(gateway.binary.malformed <= rejected, "malformed is a part of rejected")
  for (status, count) in gateway.binary.errorResponses where status != "10" {
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
  BinaryFrame.encodeFramed(
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
