import Foundation
import GatewaySimulator
import Measurement
import TLSTransport
import TestSupport
import Testing

@testable import LoadTest

/// Waits until that is so. The bound is for what hangs, and no measure of how fast a machine is.
func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
  let end = ContinuousClock.now + .seconds(120)
  while ContinuousClock.now < end {
    if try await condition() { return true }
    try? await Task.sleep(for: .milliseconds(5))
  }
  return false
}

/// A gateway to send loads to, which can go away and come back on the same port.
final class LoadSimulation {
  private(set) var simulator: Simulator?
  private var options: SimulatorOptions
  private let context: TLSContext?
  private let folder: URL?
  /// While no gateway listens, nobody else does.
  private let reserved: ReservedPort
  /// Of the feedback service, for a simulation that has one.
  private let reservedForFeedback: ReservedPort?
  /// Is told all that happens on connections from the next start on.
  var observer: ConnectionObserver?
  /// The books of those that have ended.
  private(set) var ledgers: [Ledger] = []

  static let topic = "com.example.app"

  init(
    tls: Bool = false, isListening: Bool = true, hasFeedback: Bool = false,
    _ configure: (inout SimulatorOptions) -> Void = { _ in }
  ) async throws {
    reserved = try ReservedPort()
    reservedForFeedback = hasFeedback ? try ReservedPort() : nil
    options = SimulatorOptions()
    options.gateway = .init(host: "127.0.0.1", port: reserved.number)
    options.feedback = reservedForFeedback.map { .init(host: "127.0.0.1", port: $0.number) }
    options.threads = 1
    (options.handshakeTimeout, options.frameTimeout) = (.seconds(300), .seconds(300))
    if tls {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("load-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let directory = IdentityDirectory(folder.path)
      _ = try directory.issue(.init(topics: [Self.topic]))
      var server = TLSConfiguration.server(identity: try directory.gateway())
      server.authorityFile = directory.authorityFile
      options.tls = try TLSContext(server)
      var client = TLSConfiguration.client(identity: try directory.provider(topic: Self.topic))
      client.authorityFile = directory.authorityFile
      // As the command's default: there sessions are resumed.
      client.versions = .tls12 ... .tls12
      // The certificate is the gateway's own, whatever its address.
      context = try TLSContext(client)
      self.folder = folder
    } else {
      (context, folder) = (nil, nil)
    }
    configure(&options)
    if isListening { try await start() }
  }

  deinit { if let folder { try? FileManager.default.removeItem(at: folder) } }

  var port: Int { reserved.number }

  func start() async throws {
    guard simulator == nil else { return }
    simulator = try await Simulator.start(
      options, feedbackList: try FeedbackList(path: nil), log: nil, observer: observer)
  }

  func stop() async {
    guard let running = simulator else { return }
    simulator = nil
    ledgers.append(await running.stop())
  }

  /// Of all that ran, when none runs any more.
  func books() async -> Ledger.Gateway {
    await stop()
    var sum = Ledger.Gateway()
    for ledger in ledgers {
      sum.connections += ledger.gateway.connections
      sum.received += ledger.gateway.received
      sum.accepted += ledger.gateway.accepted
      sum.discarded += ledger.gateway.discarded
      sum.rejected.merge(ledger.gateway.rejected, uniquingKeysWith: +)
    }
    return sum
  }

  /// Small, to this gateway. It ends when it is done: its limits of time are for what hangs.
  func plan(_ change: (inout LoadPlan) -> Void = { _ in }) -> LoadPlan {
    var plan = LoadPlan()
    plan.gateway.host = "127.0.0.1"
    plan.gateway.port = port
    plan.verifiesName = false
    if let port = reservedForFeedback?.number {
      var feedback = LoadPlan.Feedback()
      (feedback.service.host, feedback.service.port) = ("127.0.0.1", port)
      feedback.timeout = .seconds(300)
      plan.feedback = feedback
    }
    plan.threads = 1
    plan.count = 2_000
    (plan.duration, plan.drain, plan.markerTimeout) = (.seconds(300), .seconds(300), .seconds(300))
    plan.connections.stagger = .milliseconds(10)
    (plan.connections.connectTimeout, plan.connections.handshakeTimeout) = (.seconds(300), .seconds(300))
    plan.connections.giveUp = .seconds(300)
    plan.connections.maximumBackoff = .milliseconds(200)
    change(&plan)
    return plan
  }

  func runner(_ plan: LoadPlan) throws -> LoadRunner { try LoadRunner(plan, tls: context) }

  func loop(_ plan: LoadPlan) async throws -> LoopbackLoad { try await LoopbackLoad(plan, tls: context) }
}

extension LoadOutcome {
  var books: LoadTally { tally }
}

/// What must hold for every run.
func expectBalance(
  _ outcome: LoadOutcome, _ gateway: Ledger.Gateway?, sourceLocation: SourceLocation = #_sourceLocation
) {
  let (books, sendings) = (outcome.books, outcome.books.sendings)
  func expect(_ condition: Bool, _ law: String) {
    #expect(
      condition, Comment(rawValue: "\(law): \(books), gateway \(String(describing: gateway))"),
      sourceLocation: sourceLocation)
  }
  expect(
    books.generated == books.accepted + books.rejected + books.unknown + books.abandoned + books.pruned,
    "each has one fate")
  expect(
    sendings.written == sendings.accepted + sendings.rejected + sendings.discarded + sendings.unknown,
    "each sending has one fate")
  expect(
    sendings.accepted == books.accepted && sendings.rejected == books.rejected, "what is settled is not sent again")
  expect(sendings.resent <= sendings.written, "resent is a part of written")
  expect(books.up == 0, "no connection is left")
  expect(books.opened == books.closed.values.reduce(0, +), "each connection ends once")
  expect(books.attempted >= books.opened + books.failed, "an attempt has one end")
  if outcome.plan.usesMarkers, outcome.plan.resendsUnknown {
    expect(books.unknown == 0, "markers leave nothing unknown")
  }
  expect(books.prunedOpen <= books.pruned, "what is open is a part of what was pruned")
  expect(books.abandonedOpen <= books.abandoned, "what is open is a part of what was given up")
  let result = outcome.result(Environment())
  for phase in result.phases {
    let sendings = phase.sendings
    expect(
      sendings.written == sendings.accepted + sendings.rejected + sendings.discarded + sendings.unknown,
      "in \(phase.name), each sending has one fate")
    let latency = phase.latency ?? RunResult.Latency()
    let (lag, own, gateways) = (latency.sendLagUs, latency.sendLagOwnUs, latency.sendLagGatewayUs)
    expect(lag.count == own?.count && lag.count == gateways?.count, "in \(phase.name), each lag has two shares")
    // Of each share less than a microsecond is cut off.
    let shares = (own?.mean ?? 0) + (gateways?.mean ?? 0)
    expect(shares <= lag.mean + 1e-6 && shares >= lag.mean - 2, "in \(phase.name), both make the whole")
  }
  let lags = result.phases.reduce(0) { $0 + ($1.latency?.sendLagUs.count ?? 0) }
  let due = sendings.written + books.skipped + books.unsent
  // What was collected, never written and given up has a lag as well.
  expect(lags >= due && lags <= due + books.abandoned - books.abandonedOpen, "all that was due has a lag")
  for invariant in result.verdict.invariants {
    expect(invariant.holds == (!invariant.isAboutProof || books.unknown + books.abandonedOpen == 0), invariant.name)
  }
  if result.verdict.outcome == .proven {
    expect(
      books.generated == books.accepted + books.rejected + books.pruned && books.prunedOpen == 0 && books.unsent == 0,
      "proven is what has an answer, or was pruned")
    expect(outcome.plan.usesMarkers && books.accepted > 0, "without markers, or without success, nothing is proven")
  } else {
    expect(result.verdict.reasons?.isEmpty == false, "what is not proven says why")
    expect(Set(result.verdict.reasons ?? []).isSubset(of: result.warnings), "the reasons are among the warnings")
  }
  guard let gateway else { return }
  let rejected = gateway.rejected.values.reduce(0, +)
  expect(gateway.received <= sendings.written + sendings.proofsAsked, "received at most what was written")
  expect(gateway.accepted >= sendings.accepted, "what is called accepted was")
  expect(gateway.accepted <= sendings.accepted + sendings.unknown, "what was accepted is called so, or unknown")
  expect(rejected >= sendings.rejected, "what is called rejected was")
  expect(
    rejected <= sendings.rejected + sendings.unknown + sendings.proofsAsked,
    "what was rejected is called so, or unknown")
  for (status, count) in books.errorResponses where status != 10 {
    expect(gateway.rejected["\(status)", default: 0] >= count, "responses of status \(status)")
  }
}
