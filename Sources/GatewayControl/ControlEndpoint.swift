import Bytes
import GatewaySimulator
import HTTPEndpoint
import NIOCore
import Reporting

/// Serves an observed gateway over HTTP: what it has received, its counts and verdict, its faults and devices.
///
/// `GET /openapi.json` describes all operations. Answers are JSON; what cannot be done is a problem document (RFC 9457).
/// There is no encryption and no authentication, and requests that a browser makes for a page are refused: the default is
/// an address of this machine alone.
public final class ControlEndpoint: Sendable {
  /// Limits on the resources that clients can use.
  public struct Limits: Sendable {
    /// Simultaneous connections; a further one closes the oldest. Each request that waits is one.
    public var maximumConnections = 64
    /// The most bytes of a request.
    public var maximumRequestBytes = 1 << 20
    /// The most bytes of memory for the notifications of an answer: those that exceed it are left for the next one.
    public var maximumAnswerBytes = 4 << 20
    public init() {}
  }

  /// The reason why the endpoint cannot listen.
  public struct StartError: Error, CustomStringConvertible {
    /// A sentence with the address.
    public let description: String
  }

  /// The longest time in seconds that a request may wait or be answered.
  static let longestWait = 600

  private let endpoint: HTTPEndpoint
  /// The listening address: `127.0.0.1:9103`.
  public var address: String { endpoint.address }

  private init(_ endpoint: HTTPEndpoint) { self.endpoint = endpoint }

  /// Listens at a host and a port, and serves until `stop()`.
  ///
  /// - Parameters:
  ///   - gateway: what is controlled.
  ///   - host: a name or an IP address.
  ///   - port: the port; 0 selects a free one.
  ///   - acceptsRemote: whether the address may be one that other machines can reach: they can change the gateway.
  ///   - group: the event loops of the server.
  ///   - version: the version of the program, for the description.
  /// - Throws: a `StartError` if the host is unknown or not allowed, or the address cannot be bound.
  public static func start(
    for gateway: ObservedGateway, host: String = "127.0.0.1", port: Int, acceptsRemote: Bool = false,
    group: any EventLoopGroup, limits: Limits = Limits(), version: String = "0"
  ) async throws -> ControlEndpoint {
    var serverLimits = HTTPEndpoint.Limits()
    serverLimits.maximumConnections = limits.maximumConnections
    serverLimits.maximumRequestBytes = limits.maximumRequestBytes
    serverLimits.answerTimeout = .seconds(longestWait + 60)
    let control = ControlService(
      gateway, version: version, acceptsRemote: acceptsRemote, maximumAnswerBytes: limits.maximumAnswerBytes)
    let service = HTTPEndpoint.Service {
      await control.answer($0)
    } problem: {
      ControlProblem($0.status, $0.sentence).answer
    }
    do {
      return ControlEndpoint(
        try await HTTPEndpoint.start(
          host: host, port: port, acceptsRemote: acceptsRemote, group: group, limits: serverLimits, service: service))
    } catch {
      throw StartError(description: "\(error)")
    }
  }

  /// Stops listening and closes all connections.
  public func stop() async { await endpoint.stop() }
}

/// Answers the requests of a control endpoint.
struct ControlService: Sendable {
  let gateway: ObservedGateway
  let version: String
  let acceptsRemote: Bool
  let maximumAnswerBytes: Int

  /// The most bytes of a path: a token takes 2,000, and three times as many with percent signs.
  private static let longestPath = 8_192

  init(_ gateway: ObservedGateway, version: String, acceptsRemote: Bool, maximumAnswerBytes: Int) {
    (self.gateway, self.version) = (gateway, version)
    (self.acceptsRemote, self.maximumAnswerBytes) = (acceptsRemote, maximumAnswerBytes)
  }

  func answer(_ request: HTTPRequest) async -> HTTPAnswer {
    do {
      return try await answerOrThrow(request)
    } catch let problem as ControlProblem {
      return problem.answer
    } catch let failure as ObservedGateway.Failure {
      return problem(failure).answer
    } catch let error as SimulatorError {
      return ControlProblem(409, error.description).answer
    } catch is CancellationError {
      return ControlProblem(503, "the gateway ends").answer
    } catch {
      return ControlProblem(503, "\(error)").answer
    }
  }

  private func problem(_ failure: ObservedGateway.Failure) -> ControlProblem {
    guard case .notReceived(let wanted, let received) = failure else { return ControlProblem(503, failure.description) }
    var problem = ControlProblem(408, failure.description)
    problem.members = ["wanted": wanted, "received": received.matching]
    return problem
  }

  private func answerOrThrow(_ request: HTTPRequest) async throws -> HTTPAnswer {
    guard !request.isOfPage else {
      throw ControlProblem(403, "the request comes from a page in a browser")
    }
    // A site can let its own name mean 127.0.0.1; to a browser its page and this endpoint are one site then.
    guard acceptsRemote || request.isForLoopback else {
      throw ControlProblem(
        403, "the request is for another host; this endpoint is asked as localhost, or by its IP address")
    }
    // It would be taken apart, and be in the answer.
    guard request.path.utf8.count <= Self.longestPath else { throw ControlProblem(404, "there is no path so long") }
    let segments = try request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map {
      try QueryParameters.resolved($0, plusIsBlank: false)
    }
    let matching = ControlOperation.all.filter { $0.matches(segments) }
    guard !matching.isEmpty else {
      throw ControlProblem(404, "there is no \(request.path); GET /openapi.json describes what there is")
    }
    // A path without a variable is meant before one with.
    let named = matching.filter { $0.variable(segments) == nil }
    let candidates = named.isEmpty ? matching : named
    guard let operation = candidates.first(where: { $0.method == request.method }) else {
      let allowed = candidates.map(\.method) + (candidates.contains { $0.method == "GET" } ? ["HEAD"] : [])
      var problem = ControlProblem(405, "\(request.path) takes \(allowed.joined(separator: ", "))")
      problem.headers = [("Allow", allowed.joined(separator: ", "))]
      throw problem
    }
    let query = try QueryParameters(request.query, allowed: operation.parameters.map(\.name))
    if operation.body == nil { try request.requireNoBody() }
    return try await operation.run(self, Call(request: request, query: query, variable: operation.variable(segments)))
  }

  /// A request to an operation.
  struct Call: Sendable {
    let request: HTTPRequest
    let query: QueryParameters
    /// The text in place of the variable of the path.
    let variable: String?

    /// The token in the path.
    var token: [UInt8] {
      get throws(ControlProblem) {
        guard let variable, let token = TokenText.bytes(variable) else {
          throw ControlProblem(400, "a token \(TokenText.expected)")
        }
        return token
      }
    }
  }
}

extension Array {
  /// The first place from which on a condition holds; elements are sorted by it.
  func partitioningIndex(where condition: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = low + (high - low) / 2
      if condition(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
