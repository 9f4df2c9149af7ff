import Foundation
import TestSupport
import Testing

/// `apnscope simulate --control` without TLS, running in a folder, as a test of a provider uses it.
final class ControlledGateway {
  static let topic = "com.example.app"

  let folder: URL
  let gateway: Int
  let control: Int
  /// The lines of the ready file.
  let places: [String]
  private let running: RunningProcess

  /// Starts it on free ports, and returns when they can be connected to.
  init(_ options: [String] = [], in command: Command) throws {
    folder = command.folder
    let line = ["simulate", "--plain", "--no-feedback", "--gateway", "127.0.0.1:0", "--ready-file", "ready"]
    let listens = options.contains("--control") ? [] : ["--control", "127.0.0.1:0"]
    let running = try RunningProcess(Command.path, line + listens + options, in: folder)
    let ready = folder.appending(path: "ready")
    let isReady = waitUntil { !running.isRunning || FileManager.default.fileExists(atPath: ready.path) }
    guard isReady, running.isRunning else { throw TimeoutError("the simulator does not start: \(running.errors)") }
    let text = try String(contentsOf: ready, encoding: .utf8)
    gateway = try #require(text.firstMatch(of: #/(?m)^gateway \S*:([0-9]+)$/#).flatMap { Int($0.output.1) })
    control = try #require(text.firstMatch(of: #/(?m)^control http://\S*:([0-9]+)$/#).flatMap { Int($0.output.1) })
    places = text.split(separator: "\n").map(String.init)
    self.running = running
  }

  var output: String { running.output }
  var identifier: Int32 { running.identifier }

  /// Bytes of memory that it has at the moment.
  var residentBytes: Int {
    let text = (try? String(contentsOfFile: "/proc/\(identifier)/statm", encoding: .utf8)) ?? ""
    return (Int(text.split(separator: " ").dropFirst().first ?? "") ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  /// Ends it in good order.
  func stop() throws -> Outcome {
    running.send(SIGTERM)
    let outcome = try running.end()
    #expect(outcome.status == 0 && outcome.errors == "", "\(outcome.errors)")
    return outcome
  }

  // MARK: asking

  /// What the endpoint answers.
  struct Answer {
    let status: Int
    /// The fields of the head, their names in lower case.
    let fields: [String: String]
    let body: [UInt8]

    init(_ bytes: [UInt8]) throws {
      let end = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("\r\n\r\n".utf8)) }, "no head")
      let lines = String(decoding: bytes[..<end], as: UTF8.self).components(separatedBy: "\r\n")
      status = try #require(lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) })
      let pairs = lines.dropFirst().map { $0.split(separator: ":", maxSplits: 1).map(String.init) }
      fields = Dictionary(
        pairs.map { ($0[0].lowercased(), $0.last?.trimmingCharacters(in: .whitespaces) ?? "") },
        uniquingKeysWith: { $1 })
      body = Array(bytes[(end + 4)...])
    }

    /// The document.
    func object(_ place: SourceLocation = #_sourceLocation) throws -> [String: Any] {
      try #require(
        try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any],
        "\(status) \(String(decoding: body, as: UTF8.self))", sourceLocation: place)
    }

    /// The notifications of a list.
    func notifications(_ place: SourceLocation = #_sourceLocation) throws -> [[String: Any]] {
      #expect(status == 200, "\(String(decoding: body, as: UTF8.self))", sourceLocation: place)
      return try #require(try object(place)["notifications"] as? [[String: Any]], sourceLocation: place)
    }

    func identifiers(_ place: SourceLocation = #_sourceLocation) throws -> [Int?] {
      try notifications(place).map { $0["identifier"] as? Int }
    }

    func number(_ path: String..., at place: SourceLocation = #_sourceLocation) throws -> Int? {
      var value: Any? = try object(place)
      for name in path { value = (value as? [String: Any])?[name] }
      return value as? Int
    }
  }

  /// A request that has been sent.
  struct Question {
    let client: PlainClient
    var isAnswered: Bool { client.isReadable }
    func answer() throws -> Answer {
      defer { client.close() }
      return try Answer(try client.receive())
    }
  }

  /// Sends a request; its answer can be awaited later.
  ///
  /// - Parameter body: is sent as `application/json` unless the fields name another type.
  func begin(
    _ method: String, _ path: String, _ body: String? = nil, fields: [String] = ["Host: localhost"]
  ) throws -> Question {
    var head = ["\(method) \(path) HTTP/1.1"] + fields
    if let body {
      if !fields.contains(where: { $0.hasPrefix("Content-Type") }) { head.append("Content-Type: application/json") }
      head.append("Content-Length: \(body.utf8.count)")
    }
    let client = try PlainClient(control)
    try client.send(Array((head.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")).utf8))
    return Question(client: client)
  }

  func ask(
    _ method: String, _ path: String, _ body: String? = nil, fields: [String] = ["Host: localhost"]
  ) throws -> Answer {
    try begin(method, path, body, fields: fields).answer()
  }

  func get(_ path: String) throws -> Answer { try ask("GET", path) }

  /// Changes something, which has to be possible.
  func change(_ method: String, _ path: String, _ body: String? = nil, at place: SourceLocation = #_sourceLocation)
    throws
  {
    let answer = try ask(method, path, body)
    #expect(
      (200...204).contains(answer.status), "\(String(decoding: answer.body, as: UTF8.self))", sourceLocation: place)
  }

  /// Waits until so many notifications have come, and returns them.
  func wait(_ count: Int, _ filter: String = "", at place: SourceLocation = #_sourceLocation) throws -> Answer {
    let answer = try get("/notifications/wait?count=\(count)&within_s=120\(filter)")
    #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))", sourceLocation: place)
    return answer
  }
}
