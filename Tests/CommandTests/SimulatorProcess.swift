import Foundation
import Measurement
import Testing

/// `apnscope simulate`, running in a folder of its own with the identities of the test run.
final class SimulatorProcess {
  static let topic = "com.example.app"

  /// Identities for gateway and provider, made once and removed at the end of the run.
  private static let identities = Result<URL, any Error> {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apnscope-identities-\(getpid())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let process = try RunningProcess(
      Command.path, ["identity", "--directory", "ids", "--topic", topic, "--revoked", "--expired"], in: folder)
    atexit {
      try? FileManager.default.removeItem(
        at: FileManager.default.temporaryDirectory.appending(path: "apnscope-identities-\(getpid())"))
    }
    let outcome = try process.end()
    try #require(outcome.status == 0, "no identities: \(outcome.errors)")
    return folder.appending(path: "ids")
  }

  /// Makes a folder with `ids` in it, and removes it after `body`.
  static func inFolder<T>(
    isolation: isolated (any Actor)? = #isolation, _ body: (Command) async throws -> T
  ) async throws -> T {
    try await Command.inFolder { command in
      try FileManager.default.copyItem(at: identities.get(), to: command.folder.appending(path: "ids"))
      return try await body(command)
    }
  }

  /// The same for what does not wait for tasks.
  static func inFolder<T>(_ body: (Command) throws -> T) throws -> T {
    try Command.inFolder { command in
      try FileManager.default.copyItem(at: identities.get(), to: command.folder.appending(path: "ids"))
      return try body(command)
    }
  }

  let folder: URL
  private let running: RunningProcess
  let ledgerFile: String
  private let logFile: String

  /// Starts it on free ports, and returns when they can be connected to.
  ///
  /// - Parameters:
  ///   - arguments: what comes beside the ports, `--ledger` and `--log`; `--identity ids` unless `--plain`.
  ///   - preparation: a command that runs it.
  init(
    _ arguments: [String] = [], in command: Command, name: String = "simulator", preparation: [String] = []
  ) throws {
    folder = command.folder
    (ledgerFile, logFile) = ("\(name).ledger.json", "\(name).log.jsonl")
    var all = ["simulate", "--gateway", "127.0.0.1:0", "--ledger", ledgerFile, "--log", logFile]
    if !arguments.contains("--no-feedback") { all += ["--feedback", "127.0.0.1:0"] }
    if !arguments.contains("--plain") { all += ["--identity", "ids"] }
    // It waits for its clients, however busy the machine is.
    for option in ["--handshake-timeout", "--frame-timeout", "--feedback-timeout", "--linger"]
    where !arguments.contains(option) {
      all += [option, "5m"]
    }
    let line = preparation + [Command.path] + all + arguments
    running = try RunningProcess(line[0], Array(line.dropFirst()), in: folder, name: name)
    let isReady = waitUntil {
      let services = [
        "gateway", arguments.contains("--no-feedback") ? nil : "feedback",
        arguments.contains("--metrics") ? "metrics" : nil,
      ].compactMap { $0 }
      return !running.isRunning || services.allSatisfy { port($0) != nil }
    }
    guard isReady, running.isRunning else { throw TimeoutError("the simulator does not start: \(running.errors)") }
  }

  // MARK: while it runs

  var identifier: Int32 { running.identifier }
  var isRunning: Bool { running.isRunning }
  var gateway: Int { port("gateway") ?? 0 }
  var feedback: Int { port("feedback") ?? 0 }
  var metrics: Int { port("metrics") ?? 0 }

  /// The line that names it has been written in full.
  private func port(_ service: String) -> Int? {
    running.output.firstMatch(
      of: try! Regex("(?m)^\(service) \\S*:([0-9]+)(?:/metrics)?$", as: (Substring, Substring).self)
    )
    .flatMap { Int($0.output.1) }
  }

  func send(_ signal: Int32) { running.send(signal) }

  var errors: String { running.errors }

  var openFiles: Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(identifier)/fd").count) ?? 0
  }

  /// How long its threads, together and so far, had a processor or waited for one: on a crowded machine they may have
  /// much to do and little time in which they do it.
  var runnableTime: Duration {
    let tasks = "/proc/\(identifier)/task"
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
    return threads.reduce(.zero) { sum, thread in
      // Nanoseconds on a processor, and in the queue for one.
      let text = (try? String(contentsOfFile: "\(tasks)/\(thread)/schedstat", encoding: .utf8)) ?? ""
      return sum + .nanoseconds(text.split(separator: " ").prefix(2).reduce(Int64(0)) { $0 + (Int64($1) ?? 0) })
    }
  }

  /// The events so far, whole lines only.
  func events() throws -> [[String: Any]] {
    guard let text = try? String(contentsOf: folder.appending(path: logFile), encoding: .utf8),
      let end = text.lastIndex(of: "\n")
    else { return [] }
    return try text[..<end].split(separator: "\n").map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
  }

  /// How many events of this name there are so far.
  func count(of event: String) throws -> Int { try events().count { $0["event"] as? String == event } }

  /// A number from the page of `--metrics`, for a simulator that has one.
  func metric(_ name: String) -> Int? {
    let line = page().split(whereSeparator: \.isNewline).first { $0.hasPrefix("\(name) ") }
    return line.flatMap { Int($0.dropFirst(name.count + 1)) }
  }

  /// The page of `--metrics`, for a simulator that has one; empty if it does not answer.
  func page() -> String {
    guard let client = try? PlainClient(metrics) else { return "" }
    defer { client.close() }
    try? client.send(Array("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8))
    return String(decoding: (try? client.receive()) ?? [], as: UTF8.self)
  }

  /// Waits until so many notifications have come.
  func hasReceived(_ count: Int = 1) -> Bool {
    waitUntil { self.metric("apnscope_gateway_received_total") ?? 0 >= count }
  }

  // MARK: the end

  func end() throws -> Outcome { try running.end() }

  func kill() throws {
    send(SIGKILL)
    _ = try running.end()
  }

  /// Ends it in good order, checks that the books balance, and returns them.
  func stop(with signal: Int32 = SIGTERM) throws -> Ledger {
    send(signal)
    let outcome = try end()
    #expect(outcome.status == 0)
    #expect(outcome.errors == "")
    return try ledger()
  }

  /// The books, which balance.
  func ledger() throws -> Ledger {
    try Self.ledger(ledgerFile, log: logFile, in: folder)
  }

  /// The books of any simulator, which balance.
  static func ledger(_ ledgerFile: String, log logFile: String, in folder: URL) throws -> Ledger {
    let data = try Data(contentsOf: folder.appending(path: ledgerFile))
    expectValid([UInt8](data), .ledger, ledgerFile)
    if let events = try? Data(contentsOf: folder.appending(path: logFile)) {
      expectValid([UInt8](events), .events, logFile)
    }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let ledger = try decoder.decode(Ledger.self, from: data)
    let (gateway, devices) = (ledger.gateway, ledger.devices)
    let rejected = gateway.rejected.values.reduce(0, +)
    #expect(gateway.received == gateway.accepted + rejected + gateway.discarded)
    #expect(
      gateway.accepted + (devices.channel?.restored ?? 0) == devices.delivered + devices.stored + devices.coalesced
        + devices.expired + devices.dropped
        + devices.uninstalled)
    #expect(ledger.connections.count + ledger.connectionsOmitted == gateway.connections)
    #expect(ledger.connections.reduce(0) { $0 + $1.received } == gateway.received)
    #expect(ledger.connections.reduce(0) { $0 + $1.accepted } == gateway.accepted)
    #expect(ledger.connections.reduce(0) { $0 + $1.discarded } == gateway.discarded)
    #expect(ledger.connections.count { $0.rejected != nil } == rejected)
    return ledger
  }

  /// The books as JSON.
  func ledgerObject() throws -> [String: Any] {
    let data = try Data(contentsOf: folder.appending(path: ledgerFile))
    return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }
}
