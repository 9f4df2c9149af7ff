import ArgumentParser
import HTTPEndpoint
import Measurement
import NIOPosix
import Reporting
import Synchronization

/// The options of a page that browsers can watch.
struct WebOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Serve the report so far as a page for browsers, which follows the run: http://HOST:PORT/; port 0 picks a free one.",
      valueName: "host:port"), transform: ListeningAddress.parse)
  var web: ListeningAddress?

  @Flag(help: "Let the page of --web end the run: it has a button for that.")
  var webControl = false

  /// Requirements that a file of settings may meet instead of the command line.
  func requireWeb() throws {
    if webControl, web == nil { throw ValidationError("--web-control needs --web.") }
  }

  /// Starts serving, and says where; `nil` without `--web`.
  ///
  /// - Parameter stop: ends the run.
  func start(stop: @escaping @Sendable () -> Void) async throws -> LivePage? {
    guard let address = web?.address else { return nil }
    do {
      let page = try await LivePage.start(host: address.host, port: address.port, stop: webControl ? stop : nil)
      complain("page at http://\(page.address)/")
      return page
    } catch {
      complain("web: \(error)")
      throw ExitStatus.unavailable
    }
  }
}

/// Serves a page of a run so far to browsers, which learn of each change and redraw the sections that differ.
///
/// Pages are made when a browser asks, and take at most a twentieth of a processor: nobody looking costs nothing. Without
/// encryption; on an address of this machine only requests that name this machine are answered, so that no site can let
/// a browser read the page for it.
final class LivePage: Sendable {
  private struct State {
    /// Counts what was published.
    var version = 0
    var isLast = false
    var make: (@Sendable () -> Page)?
    /// The page that was made last.
    var shown: (version: Int, html: String)?
    /// Whether one is being made.
    var isBusy = false
    /// When the next may be made, unless it is the last.
    var rest = ContinuousClock.now

    /// Whether a browser that asks now gets a later page than `shown`.
    var mayMake: Bool { make != nil && version != shown?.version && !isBusy && (isLast || ContinuousClock.now >= rest) }
    /// When a browser asked last.
    var asked: ContinuousClock.Instant?
    /// Whether the last page was fetched.
    var isLastSeen = false
    /// Whether the button was pressed.
    var wasStopped = false
  }

  /// What has to come with a request to stop: only the page has it, so that no other site can send one.
  private let key: String?
  private let stop: (@Sendable () -> Void)?
  private let state = Mutex(State())
  private let endpoint = Mutex<HTTPEndpoint?>(nil)

  private init(stop: (@Sendable () -> Void)?) {
    self.stop = stop
    var random = SystemRandomNumberGenerator()
    key = stop.map { _ in String(random.next(), radix: 16) + String(random.next(), radix: 16) }
  }

  /// Listens at a host and a port.
  ///
  /// - Parameters:
  ///   - port: 0 selects a free one.
  ///   - stop: called when the page's button is pressed; `nil`: there is none.
  /// - Throws: `HTTPEndpoint.StartError`.
  static func start(host: String, port: Int, stop: (@Sendable () -> Void)?) async throws -> LivePage {
    let page = LivePage(stop: stop)
    var limits = HTTPEndpoint.Limits()
    limits.maximumConnections = 32
    limits.answerTimeout = longestWait + .seconds(30)
    let service = HTTPEndpoint.Service {
      await page.answer($0)
    } problem: {
      .text($0.status, $0.sentence)
    }
    let endpoint = try await HTTPEndpoint.start(
      host: host, port: port, group: MultiThreadedEventLoopGroup.singleton, limits: limits, service: service)
    page.endpoint.withLock { $0 = endpoint }
    return page
  }

  /// Whether somebody has ended the run with the page's button.
  var wasStopped: Bool { state.withLock { $0.wasStopped } }

  /// The listening address.
  var address: String { endpoint.withLock { $0?.address } ?? "" }

  // MARK: content

  /// Takes the place of what was published before. Returns at once.
  ///
  /// - Parameter make: makes the page; called at most once, and not if no browser asks before something else comes.
  func publish(_ make: @escaping @Sendable () -> Page) {
    state.withLock { state in
      state.version += 1
      state.make = make
    }
  }

  /// Publishes the page of the whole run, waits until a browser that was watching has asked for it, at most ten seconds,
  /// and ends.
  func finish(_ make: @escaping @Sendable () -> Page) async {
    state.withLock { state in
      state.version += 1
      state.make = make
      state.isLast = true
    }
    let start = ContinuousClock.now
    while start.duration(to: .now) < Self.patience {
      let isDone = state.withLock { state in
        state.isLastSeen || state.asked.map { $0.duration(to: start) > Self.longestWait } ?? true
      }
      if isDone { break }
      try? await Task.sleep(for: .milliseconds(50))
    }
    await endpoint.withLock { $0.take() }?.stop()
  }

  private static let patience = Duration.seconds(10)
  /// How long a browser waits for a change, before it asks again.
  private static let longestWait = Duration.seconds(15)

  // MARK: requests

  private func answer(_ request: HTTPRequest) async -> HTTPAnswer {
    guard request.isForLoopback || !isOfThisMachine else { return .text(403, "This page is for this machine only.") }
    switch (request.method, request.path) {
    case ("GET", "/"): return HTTPAnswer(status: 200, headers: Self.headers("text/html"), body: Array(html().utf8))
    case ("GET", "/events"): return await event(after: request.query)
    case ("POST", "/stop"):
      guard let stop, let key, request.body == Array(key.utf8) else {
        return .text(403, "Only the page of --web-control ends the run.")
      }
      state.withLock { $0.wasStopped = true }
      stop()
      return HTTPAnswer(status: 204)
    case (_, "/"), (_, "/events"), (_, "/stop"):
      return .text(405, "Not allowed.", headers: [("Allow", request.path == "/stop" ? "POST" : "GET, HEAD")])
    default: return .text(404, "The page is at /.")
    }
  }

  private var isOfThisMachine: Bool { address.hasPrefix("127.") || address.hasPrefix("[::1]") }

  private static func headers(_ type: String) -> [(name: String, value: String)] {
    [
      ("Content-Type", "\(type); charset=utf-8"), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
      ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"),
    ]
  }

  /// The page, made anew if there is a later one and it may be made already.
  private func html() -> String {
    let (version, isLast, make) = state.withLock { state -> (Int, Bool, (@Sendable () -> Page)?) in
      state.asked = .now
      guard state.mayMake else { return (0, false, nil) }
      state.isBusy = true
      return (state.version, state.isLast, state.make)
    }
    if let make {
      let began = ContinuousClock.now
      let html = LiveDocument.html(make(), version: version, isLast: isLast, key: key)
      state.withLock { state in
        (state.shown, state.isBusy) = ((version, html), false)
        state.rest = .now + began.duration(to: .now) * 20
      }
    }
    return state.withLock { state in
      if state.isLast, state.shown?.version == state.version { state.isLastSeen = true }
      return state.shown?.html ?? LiveDocument.empty
    }
  }

  /// Waits until there is a page after a version that the browser has, and names its version; a comment if nothing
  /// changed for long.
  private func event(after query: String?) async -> HTTPAnswer {
    let known = query.flatMap { $0.hasPrefix("after=") ? Int($0.dropFirst("after=".count)) : nil } ?? 0
    let start = ContinuousClock.now
    var text = ": nothing new\n\n"
    while start.duration(to: .now) < Self.longestWait, !Task.isCancelled {
      let version = state.withLock { state in
        state.asked = .now
        return state.mayMake ? state.version : state.shown?.version ?? 0
      }
      if version > known {
        text = "data: \(version)\n\n"
        break
      }
      try? await Task.sleep(for: .milliseconds(100))
    }
    return HTTPAnswer(
      status: 200, headers: Self.headers("text/event-stream"), body: Array("retry: 500\n\(text)".utf8))
  }
}
