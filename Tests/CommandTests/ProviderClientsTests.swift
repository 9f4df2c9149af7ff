import Foundation
import TestSupport
import Testing

/// `simulate --http2` under the names of Apple's hosts, and libraries and languages that providers push with, unmodified.
@Suite("Providers of others over HTTP/2", .waiting)
struct ProviderClientsTests {
  private static let clients = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "Clients")
  private static let venvs = clients.deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: ".build")

  struct Client: CustomTestStringConvertible, Sendable {
    let name: String
    let count: Int
    var testDescription: String { name }

    /// Whether the client is on this machine: packages from PyPI, and programs, are where Scripts/test has installed them.
    var isInstalled: Bool {
      switch name {
      case "node", "java": ExternalTool.isInstalled(name)
      case "apns2": isInstalled(in: "old-clients")
      default: isInstalled(in: "clients")
      }
    }

    private func isInstalled(in venv: String) -> Bool {
      FileManager.default.fileExists(atPath: venvs.appending(path: "\(venv)/installed").path)
    }
  }

  // apns2 waits 40 ms for each notification: it writes fields and content by themselves, with Nagle's algorithm.
  static let all = [
    Client(name: "aioapns", count: 200), Client(name: "kalyke", count: 100), Client(name: "pyapns_client", count: 100),
    Client(name: "apns2", count: 60), Client(name: "node", count: 200), Client(name: "java", count: 200),
  ].filter(\.isInstalled)

  /// The client's words, the gateway's books, and those of a recording, of one run.
  private struct Run {
    /// By token: `200`, a reason, or `error: …`.
    let said: [String: String]
    let ledger: [String: Any]
    let gateway: [String: Any]
    /// By token, statuses of those accepted and reasons of others, in the order of the requests.
    var answers: [String: [String]] = [:]
    var fates: [String: Int] = [:]
    var reasons: [String: Int] = [:]
    /// Requests of which the gateway did not get the end.
    var incomplete = 0

    /// - Parameter patience: seconds that clients wait for an answer.
    init(_ client: Client, _ options: [String], patience: Int = 30, in command: Command) throws {
      let arguments = ([client.name, String(client.count)] + options).map { "'\($0)'" }.joined(separator: " ")
      let outcome = try command.shell(
        "patience=\(patience) venvs='\(venvs.path)' apnscope=\"$apnscope\" "
          + "unshare --net --mount '\(clients.path)/apns_namespace.sh' \(arguments)")
      #expect(
        outcome.status == 0,
        "\(outcome.output)\(outcome.errors)\((try? command.read("client.log")) ?? "")")
      said = try JSONDecoder().decode([String: String].self, from: Data(command.read("said.json").utf8))
      ledger = try #require(
        try JSONSerialization.jsonObject(with: Data(command.read("ledger.json").utf8)) as? [String: Any])
      gateway = try #require(ledger["gateway"] as? [String: Any])
      let decoded = try command.run(["decode", "--keys", "keys.log", "run.pcapng"])
      #expect(decoded.status == 0, "\(decoded.errors)")
      for line in decoded.lines {
        let record = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        #expect(!["malformed", "gap"].contains(record["type"] as? String), "\(line)")
        guard record["type"] as? String == "notification" else { continue }
        if record["discarded_by"] as? String == "incomplete" {
          incomplete += 1
          continue
        }
        fates[record["fate"] as? String ?? "none", default: 0] += 1
        let reason = record["reason"] as? String
        if let reason { reasons[reason, default: 0] += 1 }
        let token = try #require(record["token"] as? String)
        if let status = record["status"] as? Int { answers[token, default: []].append(reason ?? String(status)) }
      }
    }

    /// The gateway and the recording count the same, and the client was told nothing that is not on the wire.
    ///
    /// What the recording calls unknown, since it has no answer, is in the gateway's books by what the gateway did.
    func checkBooks() throws {
      let http2 = try #require(ledger["http2"] as? [String: Any])
      let unknown = try #require(http2["unknown"] as? [String: Int])
      #expect(gateway["received"] as? Int == fates.values.reduce(0, +))
      #expect(gateway["accepted"] as? Int == fates["accepted", default: 0] + unknown["accepted", default: 0])
      #expect(gateway["discarded"] as? Int == fates["discarded", default: 0] + unknown["discarded", default: 0])
      #expect(fates["unknown", default: 0] == unknown.values.reduce(0, +))
      #expect(gateway["rejected"] as? [String: Int] == reasons)
      #expect(http2["incomplete"] as? Int == incomplete)
      for (token, word) in said where !word.hasPrefix("error: ") {
        #expect(answers[token]?.contains(word) == true, "\(token): \(word), and \(answers[token] ?? [])")
      }
    }
  }

  struct Trouble: CustomTestStringConvertible, Sendable {
    let client: Client
    let fault: String
    var testDescription: String { "\(client.name), \(fault)" }
  }

  // apns2 waits for an answer forever.
  static let troubles = ["goaway,every=40,last=answered", "refuse,every=9", "silence,every=40"].flatMap { fault in
    all.filter { $0.name != "apns2" || !fault.hasPrefix("silence") }.map { Trouble(client: $0, fault: fault) }
  }

  @Test(
    "Through GOAWAY, refused streams and silence the books agree, whatever the client makes of it",
    .enabled(if: LoopbackCapture.isPossible, "needs root and dumpcap"), arguments: some(4, of: troubles))
  func faults(trouble: Trouble) throws {
    try Command.inFolder { command in
      let run = try Run(trouble.client, ["--http2-fault", trouble.fault], patience: 6, in: command)
      try run.checkBooks()
      let http2 = try #require(run.ledger["http2"] as? [String: Any])
      let kind = String(trouble.fault.prefix { $0 != "," })
      #expect((http2["faults"] as? [String: Int])?[kind] ?? 0 > 0)
      #expect(run.said.values.contains("200"))
    }
  }

  @Test(
    "Each notification that the client calls pushed or rejected, with the reason, is in both books",
    .enabled(if: LoopbackCapture.isPossible, "needs root and dumpcap"), arguments: all)
  func answers(client: Client) throws {
    try Command.inFolder { command in
      let run = try Run(
        client,
        [
          "--reject", "every=9,reason=TooManyRequests", "--devices-unknown", "5%", "--devices-uninstalled", "5%",
        ], in: command)
      try run.checkBooks()
      #expect(run.said.count == client.count)
      for word in ["200", "BadDeviceToken", "Unregistered"] { #expect(run.said.values.contains(word), "\(word)") }
      let errors = run.said.filter { $0.value.hasPrefix("error: ") }
      if client.name == "java" {
        // HttpClient fails requests above the limit of one stream that holds until a provider token is verified.
        for token in errors.keys { #expect(run.answers[token] == nil) }
      } else {
        #expect(errors.isEmpty)
      }
      let http2 = try #require(run.ledger["http2"] as? [String: Any])
      if client.name == "kalyke" { #expect(http2["connections"] as? Int == client.count) }
      let tokens = try #require(http2["provider_tokens"] as? [[String: Any]])
      #expect(tokens.isEmpty == (client.name == "apns2"))
    }
  }
}
