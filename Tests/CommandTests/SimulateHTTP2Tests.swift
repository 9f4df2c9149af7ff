import Foundation
import TestSupport
import Testing

/// `simulate --http2` and clients that others wrote: what each believes equals the ledger, and a recording of it.
@Suite("simulate --http2 and real clients", .waiting)
struct SimulateHTTP2Tests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  private static let python = root.appending(path: ".build/http2/bin/python").path
  private static let client = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appending(path: "Clients/http2_client.py").path
  static let hasHTTPX = FileManager.default.fileExists(atPath: root.appending(path: ".build/http2/installed").path)
  static let token = String(repeating: "0f", count: 32)

  /// `apnscope simulate --http2` on a free port.
  private final class Service {
    let running: RunningProcess
    private let command: Command
    private(set) var lines: [String] = []
    var port: Int { Int(lines.first { $0.hasPrefix("http2 ") }?.split(separator: ":").last ?? "") ?? 0 }

    init(_ arguments: [String], in command: Command) throws {
      self.command = command
      running = try RunningProcess(
        Command.path,
        [
          "simulate", "--http2", "127.0.0.1:0", "--ready-file", "ready", "--ledger", "ledger.json", "--log",
          "log.jsonl",
        ]
          + arguments, in: command.folder, name: "service")
      let file = command.folder.appending(path: "ready")
      let isReady = waitUntil {
        lines = (try? String(contentsOf: file, encoding: .utf8))?.split(separator: "\n").map(String.init) ?? []
        return !running.isRunning || !lines.isEmpty
      }
      guard isReady, running.isRunning else { throw TimeoutError("simulate does not start: \(running.errors)") }
    }

    /// Ends it; the ledger fits its schema, and balances.
    func stop() throws -> [String: Any] {
      running.send(SIGTERM)
      let outcome = try running.end()
      #expect(outcome.status == 0)
      #expect(outcome.errors == "")
      let data = try Data(contentsOf: command.folder.appending(path: "ledger.json"))
      expectValid([UInt8](data), .ledger, "ledger.json")
      let log = try Data(contentsOf: command.folder.appending(path: "log.jsonl"))
      expectValid([UInt8](log), .events, "log.jsonl")
      let ledger = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
      let gateway = try #require(ledger["gateway"] as? [String: Any])
      let http2 = try #require(ledger["http2"] as? [String: Any])
      let connections = try #require(ledger["connections"] as? [[String: Any]])
      func number(_ object: [String: Any], _ name: String) -> Int { object[name] as? Int ?? -1 }
      let rejected = (gateway["rejected"] as? [String: Int])?.values.reduce(0, +)
      #expect(
        number(gateway, "received") == number(gateway, "accepted") + (rejected ?? 0) + number(gateway, "discarded"))
      #expect(
        number(http2, "received") == number(http2, "accepted") + number(http2, "rejected") + number(http2, "discarded"))
      for name in ["received", "accepted", "discarded"] {
        #expect(connections.reduce(0) { $0 + number($1, name) } == number(gateway, name))
      }
      return ledger
    }
  }

  private func run(_ program: String, _ arguments: [String], in command: Command) throws -> String {
    let process = try RunningProcess(program, arguments, in: command.folder)
    let outcome = try process.end()
    #expect(outcome.status == 0, "\(program): \(outcome.errors)")
    return process.output
  }

  private func curl(_ arguments: [String], _ service: Service, path: String, in command: Command) throws -> String {
    try run(
      "curl", ["-s", "-i", "--http2-prior-knowledge"] + arguments + ["http://127.0.0.1:\(service.port)\(path)"],
      in: command)
  }

  // MARK: one answer after the other

  @Test("curl: an answer for each of what is right and wrong; the books have them") func curlAnswers() throws {
    try Command.inFolder { command in
      let service = try Service(["--plain", "--sandbox"], in: command)
      #expect(service.lines == ["http2 127.0.0.1:\(service.port)"])
      let topic = ["-H", "apns-topic: com.example.app", "-d", "{\"aps\":{}}"]
      let accepted = try curl(topic, service, path: "/3/device/\(Self.token)", in: command)
      #expect(accepted.hasPrefix("HTTP/2 200"))
      #expect(accepted.contains("\napns-unique-id: "))
      for (arguments, path, answer) in [
        (topic, "/3/device/xyz", "HTTP/2 400|BadDeviceToken"),
        (["-d", "{}"], "/3/device/0f", "HTTP/2 400|MissingTopic"),
        (topic, "/4/device/0f", "HTTP/2 404|BadPath"), (["-d", "{}"], "/", "HTTP/2 404|BadPath"),
        (["-H", "apns-topic: x"], "/3/device/0f", "HTTP/2 405|MethodNotAllowed"),
      ] {
        let parts = answer.split(separator: "|")
        let text = try curl(arguments, service, path: path, in: command)
        #expect(text.hasPrefix(parts[0]))
        #expect(text.hasSuffix("{\"reason\":\"\(parts[1])\"}"))
      }
      let ledger = try service.stop()
      let gateway = try #require(ledger["gateway"] as? [String: Any])
      #expect(gateway["received"] as? Int == 5)
      #expect(gateway["accepted"] as? Int == 1)
      #expect(
        gateway["rejected"] as? [String: Int]
          == ["BadDeviceToken": 1, "BadPath": 1, "MissingTopic": 1, "MethodNotAllowed": 1])
      let http2 = try #require(ledger["http2"] as? [String: Any])
      #expect(http2["other_requests"] as? Int == 1)
      #expect(http2["answers"] as? [String: Int] == ["200": 1, "400": 2, "404": 2, "405": 1])
      #expect(http2["connections"] as? Int == 6)
      #expect((http2["provider_tokens"] as? [Any])?.isEmpty == true)
    }
  }

  // MARK: books

  private struct Decoded {
    var notifications = 0
    var fates: [String: Int] = [:]
    var reasons: [String: Int] = [:]
    /// Status and reason by apns-id.
    var answers: [String: String] = [:]
    var malformed = 0

    init(_ text: String) throws {
      for line in text.split(separator: "\n") {
        let record = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        switch record["type"] as? String {
        case "notification":
          notifications += 1
          fates[record["fate"] as? String ?? "none", default: 0] += 1
          let reason = record["reason"] as? String
          if let reason { reasons[reason, default: 0] += 1 }
          if let identifier = record["apns_id"] as? String {
            answers[identifier] = "\(record["status"] as? Int ?? 0) \(reason ?? "-")"
          }
        case "malformed": malformed += 1
        default: break
        }
      }
    }
  }

  @Test(
    "What curl, nghttp, h2load and httpx believe, the ledger has, and decode of a recording, for each notification",
    .enabled(
      if: LoopbackCapture.isPossible && hasHTTPX && ExternalTool.isInstalled("h2load"),
      "needs root, dumpcap, h2load, and httpx, which Scripts/test installs"))
  func books() throws {
    try Command.inFolder { command in
      let service = try Service(
        [
          "--plain", "--reject", "every=7,reason=TooManyRequests", "--reject", "every=11,reason=Custom,http=499",
          "--devices-unknown", "5%", "--devices-uninstalled", "5%", "--devices-offline", "10%",
        ], in: command)
      let capture = try LoopbackCapture(port: service.port, file: "run.pcapng", in: command)
      var accepted = 0
      for number in 0..<5 {
        let text = try curl(
          ["-H", "apns-topic: t", "-d", "{}"], service, path: "/3/device/\(number)\(number)", in: command)
        if text.hasPrefix("HTTP/2 200") { accepted += 1 }
      }
      try command.write(Array("{\"aps\":{\"alert\":\"x\"}}".utf8), "body")
      let url = "http://127.0.0.1:\(service.port)/3/device/\(Self.token)"
      let nghttp = try run(
        "nghttp",
        ["-v", "-n", "-d", "body", "-H", "apns-topic: com.example.app", "-H", ":method: POST", "-m", "20", url],
        in: command)
      accepted += nghttp.matches(of: #/recv \(stream_id=\d+\) :status: 200/#).count
      let load = try run(
        "h2load", ["-c", "4", "-m", "50", "-n", "2000", "-d", "body", "-H", "apns-topic: com.example.app", url],
        in: command)
      let codes = try #require(load.firstMatch(of: #/status codes: (\d+) 2xx, 0 3xx, (\d+) 4xx, 0 5xx/#))
      #expect((Int(codes.output.1) ?? 0) + (Int(codes.output.2) ?? 0) == 2_000)
      accepted += Int(codes.output.1) ?? 0
      let believed = try run(
        Self.python,
        [Self.client, "--url", "http://127.0.0.1:\(service.port)", "--count", "300", "--connections", "3"], in: command)
      let answers = try #require(
        try JSONSerialization.jsonObject(with: Data(believed.utf8)) as? [String: [String: Any]])
      #expect(answers.count == 300)
      accepted += answers.values.count { $0["status"] as? Int == 200 }
      let ledger = try service.stop()
      try capture.end()

      let decoded = try Decoded(command.run("decode", "run.pcapng", "--format", "jsonl").output)
      let gateway = try #require(ledger["gateway"] as? [String: Any])
      let rejected = try #require(gateway["rejected"] as? [String: Int])
      #expect(gateway["received"] as? Int == decoded.notifications)
      #expect(decoded.notifications == 5 + 20 + 2_000 + 300)
      #expect(gateway["accepted"] as? Int == accepted)
      #expect(decoded.fates == ["accepted": accepted, "rejected": rejected.values.reduce(0, +)])
      #expect(rejected == decoded.reasons)
      #expect((rejected["Custom"] ?? 0) > 100)
      #expect(decoded.malformed == 0)
      for (identifier, answer) in answers {
        let text = "\(answer["status"] as? Int ?? 0) \(answer["reason"] as? String ?? "-")"
        #expect(decoded.answers[identifier] == text)
      }
      let devices = try #require(ledger["devices"] as? [String: Int])
      #expect((devices["stored"] ?? 0) > 0)
      #expect(
        accepted
          == ["delivered", "stored", "coalesced", "expired", "dropped", "uninstalled"].reduce(0) {
            $0 + (devices[$1] ?? 0)
          })
    }
  }

  // MARK: TLS and trust

  @Test("TLS with ALPN and without; another protocol is refused", .enabled(if: ExternalTool.isInstalled("nghttp")))
  func tls() throws {
    try SimulatorProcess.inFolder { command in
      let service = try Service(["--identity", "ids"], in: command)
      let arguments = [
        "-s", "-o", "/dev/null", "-w", "%{http_version} %{response_code}", "--cacert", "ids/ca.pem", "-H",
        "apns-topic: com.example.app", "-d", "{}",
      ]
      let url = "https://localhost:\(service.port)/3/device/\(Self.token)"
      let resolve = ["--resolve", "localhost:\(service.port):127.0.0.1"]
      #expect(try run("curl", ["--http2"] + arguments + resolve + [url], in: command) == "2 200")
      #expect(
        try run("curl", ["--http2-prior-knowledge", "--no-alpn"] + arguments + resolve + [url], in: command) == "2 200")
      let other = try RunningProcess("curl", ["--http1.1"] + arguments + resolve + [url], in: command.folder).end()
      #expect(other.status != 0)
      let old = try RunningProcess(
        "curl", ["--http2", "--tls-max", "1.1"] + arguments + resolve + [url], in: command.folder
      ).end()
      #expect(old.status != 0)
      let gateway = try #require(try service.stop()["gateway"] as? [String: Any])
      #expect(gateway["accepted"] as? Int == 2)
      #expect(gateway["handshake_failures"] as? Int == 2)
    }
  }

  @Test("Trust by certificate: its topic, and no other; without one 403") func certificates() throws {
    try SimulatorProcess.inFolder { command in
      let service = try Service(["--identity", "ids", "--trust", "certificate"], in: command)
      let url = "https://localhost:\(service.port)/3/device/\(Self.token)"
      func answer(_ arguments: [String]) throws -> String {
        try run(
          "curl",
          ["-s", "--http2", "--cacert", "ids/ca.pem", "--resolve", "localhost:\(service.port):127.0.0.1", "-d", "{}"]
            + arguments + [url], in: command)
      }
      let certificate = ["--cert", "ids/com.example.app.pem", "--key", "ids/com.example.app.key"]
      #expect(try answer(certificate) == "")
      #expect(try answer(certificate + ["-H", "apns-topic: com.example.app"]) == "")
      #expect(
        try answer(certificate + ["-H", "apns-topic: com.example.other"]) == #"{"reason":"TopicDisallowed"}"#)
      #expect(try answer(["-H", "apns-topic: com.example.app"]) == #"{"reason":"MissingProviderToken"}"#)
      let ledger = try service.stop()
      let gateway = try #require(ledger["gateway"] as? [String: Any])
      #expect(gateway["accepted"] as? Int == 2)
      #expect(gateway["rejected"] as? [String: Int] == ["TopicDisallowed": 1, "MissingProviderToken": 1])
      #expect((ledger["connections"] as? [[String: Any]])?.compactMap { $0["topic"] as? String }.count == 3)
    }
  }

  /// The `authorization` of a provider token that the key AuthKey_ABCDE12345.p8, which is made for it, has signed.
  private func sign(isDER: Bool = false, in command: Command) throws -> String {
    // As a provider in a shell makes one: DER by openssl, raw from that.
    let script = #"""
      set -e
      openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out AuthKey_ABCDE12345.p8 2> /dev/null
      b64() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
      head=$(printf '{"alg":"ES256","kid":"ABCDE12345"}' | b64)
      claims=$(printf '{"iss":"TEAM567890","iat":%d}' "$(($(date +%s) - 100))" | b64)
      printf '%s.%s' "$head" "$claims" | openssl dgst -sha256 -sign AuthKey_ABCDE12345.p8 -out der
      if [ "$1" = der ]; then cp der signature; else
        openssl asn1parse -inform DER -in der | sed -n 's/.*INTEGER *:\(.*\)/\1/p' |
          while read -r n; do printf '%64s' "$n" | tr ' ' 0; done | xxd -r -p > signature
      fi
      printf 'bearer %s.%s.%s' "$head" "$claims" "$(b64 < signature)" > token
      """#
    _ = try run("bash", ["-c", script, "sign", isDER ? "der" : "raw"], in: command)
    return try String(contentsOf: command.folder.appending(path: "token"), encoding: .utf8)
  }

  @Test("Trust by provider token: verified, in the ledger without its signature", arguments: [false, true])
  func providerTokens(isDER: Bool) throws {
    try Command.inFolder { command in
      let start = ContinuousClock.now
      let authorization = try sign(isDER: isDER, in: command)
      let signature = try #require(authorization.split(separator: ".").last)
      let service = try Service(["--plain", "--provider-key", "AuthKey_ABCDE12345.p8,,TEAM567890"], in: command)
      let arguments = ["-H", "apns-topic: com.example.app", "-d", "{}"]
      let path = "/3/device/\(Self.token)"
      #expect(try curl(arguments, service, path: path, in: command).hasSuffix(#"{"reason":"MissingProviderToken"}"#))
      for _ in 0..<2 {
        let trusted = try curl(
          arguments + ["-H", "authorization: \(authorization)"], service, path: path, in: command)
        #expect(trusted.hasPrefix("HTTP/2 200"))
      }
      let damaged = authorization.replacing(signature, with: String(signature.reversed()))
      let refused = try curl(arguments + ["-H", "authorization: \(damaged)"], service, path: path, in: command)
      #expect(refused.hasSuffix(#"{"reason":"InvalidProviderToken"}"#))
      let ledger = try service.stop()
      let http2 = try #require(ledger["http2"] as? [String: Any])
      let tokens = try #require(http2["provider_tokens"] as? [[String: Any]])
      #expect(tokens.count == 1)
      #expect(tokens.first?["key_id"] as? String == "ABCDE12345")
      #expect(tokens.first?["team_id"] as? String == "TEAM567890")
      // It was 100 s old when it was made, by a clock of whole seconds, and no older than since then.
      let elapsed = Int((ContinuousClock.now - start).components.seconds)
      #expect((100...102 + elapsed).contains(tokens.first?["age_s"] as? Int ?? 0))
      #expect(tokens.first?["connections"] as? Int == 2)
      // The signature is a credential: it is in nothing that was written.
      for name in ["ledger.json", "log.jsonl"] {
        let text = try String(contentsOf: command.folder.appending(path: name), encoding: .utf8)
        #expect(!text.contains(signature))
      }
      #expect(!service.running.output.contains(signature))
      let log = try String(contentsOf: command.folder.appending(path: "log.jsonl"), encoding: .utf8)
      let told = log.split(separator: "\n").filter { $0.contains(#""event":"provider_token""#) }
      #expect(told.count == 2)
      #expect(told.allSatisfy { $0.contains(#""key_id":"ABCDE12345","team_id":"TEAM567890","issued_at":"2"#) })
    }
  }

  @Test("A key of some topics is for these; one of the other environment for none") func keyScopes() throws {
    try Command.inFolder { command in
      let authorization = try sign(in: command)
      for (scope, flags, topic, reason) in [
        ("topics=t+com.example.app", [], "com.example.app", nil),
        ("topics=t", [], "com.example.app", "TopicDisallowed"),
        ("environment=sandbox", ["--sandbox"], "t", nil),
        ("environment=sandbox", [], "t", "BadEnvironmentKeyIdInToken"),
        (
          "environment=production,topics=t", ["--sandbox", "--http2-rule", "key-environment=InvalidProviderToken"], "t",
          "InvalidProviderToken"
        ),
      ] as [(String, [String], String, String?)] {
        let service = try Service(
          ["--plain", "--provider-key", "AuthKey_ABCDE12345.p8,,TEAM567890,\(scope)"] + flags, in: command)
        let answer = try curl(
          ["-H", "apns-topic: \(topic)", "-H", "authorization: \(authorization)", "-d", "{}"], service,
          path: "/3/device/\(Self.token)", in: command)
        #expect(reason.map { answer.hasSuffix(#"{"reason":"\#($0)"}"#) } ?? answer.hasPrefix("HTTP/2 200"), "\(scope)")
        let http2 = try #require(try service.stop()["http2"] as? [String: Any])
        let tokens = try #require(http2["provider_tokens"] as? [[String: Any]])
        // A key of the wrong topic has a good token.
        #expect(tokens.count == (reason == nil || reason == "TopicDisallowed" ? 1 : 0))
      }
    }
  }

  // MARK: payloads

  @Test("Payloads are counted by kind and rule, and refused with a reason where that is asked") func payloads() throws {
    try Command.inFolder { command in
      let wrong = #"{"aps":{"alert":"x",}}"#
      for (options, reason) in [
        ([], nil), (["--strict-payloads"], "BadRequestPayload"),
        (["--strict-payloads", "reason=PayloadEmpty"], "PayloadEmpty"),
        (["--no-lint"], nil),
      ] as [([String], String?)] {
        let service = try Service(["--plain"] + options, in: command)
        for text in [wrong, #"{"aps":{"content-available":1}}"#] {
          let answer = try curl(
            ["-H", "apns-topic: t", "-d", text], service, path: "/3/device/\(Self.token)", in: command)
          let isRefused = text == wrong && reason != nil
          #expect(answer.hasPrefix("HTTP/2 \(isRefused ? 400 : 200)"))
          if isRefused, let reason { #expect(answer.hasSuffix(#"{"reason":"\#(reason)"}"#)) }
        }
        let payloads = try service.stop()["payloads"] as? [String: Any]
        #expect((payloads == nil) == (options == ["--no-lint"]))
        guard let payloads else { continue }
        #expect(payloads["kinds"] as? [String: Int] == ["background": 1, "invalid": 1])
        #expect((payloads["lint"] as? [String: Int])?["json_trailing_comma"] == 1)
      }
    }
  }

  // MARK: beside the binary gateway

  @Test("Beside the binary gateway: one ledger, and devices that both know") func both() throws {
    try Command.inFolder { command in
      try command.write(Array("\(Self.token) active\n".utf8), "devices")
      let service = try Service(
        ["--plain", "--gateway", "127.0.0.1:0", "--no-feedback", "--devices-file", "devices"], in: command)
      let names = service.lines.map { $0.split(separator: " ")[0] }
      #expect(names == ["gateway", "http2"])
      let gatewayPort = Int(service.lines[0].split(separator: ":").last ?? "") ?? 0
      let provider = try PlainClient(gatewayPort)
      try provider.send(Frames.framed(1))
      #expect(try provider.receive() == Frames.response(8, 1))
      provider.close()
      let topic = ["-H", "apns-topic: com.example.app", "-d", "{}"]
      #expect(try curl(topic, service, path: "/3/device/\(Self.token)", in: command).hasPrefix("HTTP/2 200"))
      #expect(
        try curl(topic, service, path: "/3/device/0f", in: command).hasSuffix(#"{"reason":"BadDeviceToken"}"#))
      let ledger = try service.stop()
      let gateway = try #require(ledger["gateway"] as? [String: Any])
      #expect(gateway["received"] as? Int == 3)
      #expect(gateway["rejected"] as? [String: Int] == ["8": 1, "BadDeviceToken": 1])
      let http2 = try #require(ledger["http2"] as? [String: Any])
      #expect(http2["received"] as? Int == 2)
    }
  }

  static let ends: [(options: [String], signal: Int32?, reason: String)] = [
    (["--idle-close", "300ms"], nil, "IdleTimeout"), (["--lifetime", "300ms"], nil, "Shutdown"),
    ([], SIGUSR1, "Shutdown"), ([], SIGTERM, "Shutdown"),
  ]

  @Test(
    "Idleness, age, SIGUSR1 and the end of the run send GOAWAY with a reason, and the gateway's end", arguments: ends)
  func goAway(options: [String], signal: Int32?, reason: String) throws {
    try Command.inFolder { command in
      let service = try Service(["--plain"] + options, in: command)
      let client = try PlainClient(service.port)
      try client.send(HTTP2Bytes.preface)
      // SETTINGS: the connection is there. They are read with what follows, since the end may be there as well.
      #expect(waitUntil { client.isReadable })
      if let signal { service.running.send(signal) }
      let received = try client.receive()
      #expect(String(decoding: received, as: UTF8.self).contains(#"{"reason":"\#(reason)"}"#))
      if signal == SIGUSR1 {
        // The gateway goes on.
        #expect(
          try curl(["-H", "apns-topic: t", "-d", "{}"], service, path: "/3/device/0f", in: command)
            .hasPrefix("HTTP/2 200"))
      }
      let http2 = try #require(try service.stop()["http2"] as? [String: Any])
      let log = try String(contentsOf: command.folder.appending(path: "log.jsonl"), encoding: .utf8)
      let told = log.split(separator: "\n").filter { $0.contains(#""event":"goaway""#) }
      // curl's connection may be there at the end, too.
      #expect(http2["goaways"] as? Int == told.count)
      let first = told.filter { $0.contains(#""connection":1,"#) }
      #expect(first.count == 1 && first[0].contains(#""last_stream":0,"reason":"\#(reason)""#))
    }
  }

  @Test("A client that does not read is read no further, and others are answered meanwhile") func unreadAnswers() throws
  {
    try Command.inFolder { command in
      let service = try Service(["--plain", "--http2-limit", "pings=100000000"], in: command)
      let client = try PlainClient(service.port)
      try client.send(HTTP2Bytes.preface)
      let ping: [UInt8] = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
      let pings = Array(repeating: ping, count: 4_000).flatMap { $0 }
      var (sent, still) = (0, 0)
      // More than the buffers of both systems: the gateway has stopped reading, and has answered others meanwhile.
      while still < 3, sent < 256 << 20 {
        let start = sent % pings.count
        let taken = client.sendNow(Array(pings[start...]))
        sent += taken
        guard taken == 0 else {
          still = 0
          continue
        }
        still += 1
        let answer = try curl(["-H", "apns-topic: t", "-d", "{}"], service, path: "/3/device/0f", in: command)
        #expect(answer.hasPrefix("HTTP/2 200"))
      }
      #expect(sent < 256 << 20)
      let http2 = try #require(try service.stop()["http2"] as? [String: Any])
      let answered = http2["pings"] as? Int ?? 0
      #expect(answered > 0 && answered * ping.count < sent)
      client.close()
    }
  }

  // MARK: faults

  @Test(
    "Faults: what h2load and httpx lose, refuse and wait for is in the ledger, and a recording has the same fates",
    .enabled(
      if: LoopbackCapture.isPossible && hasHTTPX && ExternalTool.isInstalled("h2load"),
      "needs root, dumpcap, h2load, and httpx, which Scripts/test installs"))
  func faults() throws {
    try Command.inFolder { command in
      try command.write(Array("5\n10\n15\n".utf8), "delays")
      let service = try Service(
        [
          "--plain", "--http2-fault", "refuse,every=10", "--http2-fault", "reset,every=7,code=INTERNAL_ERROR",
          "--http2-fault", "answer,status=503,every=9", "--http2-fault", "delay,file=delays,every=2",
          "--http2-fault", "goaway,every=500,last=notice,grace=20ms", "--http2-fault",
          "close,every=700,way=fin,bytes=4",
        ], in: command)
      let capture = try LoopbackCapture(port: service.port, file: "run.pcapng", in: command)
      try command.write(Array("{\"aps\":{\"alert\":\"x\"}}".utf8), "body")
      let url = "http://127.0.0.1:\(service.port)/3/device/\(Self.token)"
      for _ in 0..<3 {
        // h2load counts what fails and does not end with an error of its own.
        _ = try RunningProcess(
          "h2load", ["-c", "3", "-m", "20", "-n", "600", "-d", "body", "-H", "apns-topic: com.example.app", url],
          in: command.folder
        ).end()
      }
      let ledger = try service.stop()
      try capture.end()
      let decoded = try Decoded(command.run("decode", "run.pcapng", "--format", "jsonl").output)
      let http2 = try #require(ledger["http2"] as? [String: Any])
      let unknown = try #require(http2["unknown"] as? [String: Int])
      func count(_ name: String) -> Int { http2[name] as? Int ?? -1 }
      #expect(decoded.notifications == count("received") + count("incomplete"))
      #expect(decoded.fates["accepted"] == count("accepted") - (unknown["accepted"] ?? 0))
      #expect(decoded.fates["rejected"] == count("rejected") - (unknown["rejected"] ?? 0))
      #expect(
        (decoded.fates["discarded"] ?? 0) + (decoded.fates["unknown"] ?? 0)
          == count("discarded") + count("incomplete") + (unknown["accepted"] ?? 0) + (unknown["rejected"] ?? 0))
      let faults = try #require(http2["faults"] as? [String: Int])
      #expect(Set(faults.keys) == ["refuse", "reset", "answer", "delay", "goaway", "close"])
      // So are answers that waited when their connection was closed.
      #expect((faults["reset"] ?? 0) > 0 && (unknown["accepted"] ?? 0) >= (faults["reset"] ?? 0))
    }
  }

  @Test("A connection that was idle answers no more, and another one does; curl gives up") func silentConnection()
    throws
  {
    try Command.inFolder { command in
      let service = try Service(
        ["--plain", "--http2-fault", "silence,idle=300ms,connection=1", "--metrics", "127.0.0.1:0"], in: command)
      let client = try PlainClient(service.port)
      try client.send(HTTP2Bytes.preface)
      let topic = ["-H", "apns-topic: t", "-d", "{}"]
      let metrics = try #require(service.lines.first { $0.hasPrefix("metrics ") }?.dropFirst("metrics ".count))
      #expect(
        waitUntil {
          let counts = try? run("curl", ["-s", "--max-time", "20", String(metrics)], in: command)
          return counts?.contains(#"apnscope_http2_faults_total{kind="silence"} 1"#) == true
        })
      _ = try client.receiveNow()
      // PING.
      try client.send([0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
      #expect(try curl(topic, service, path: "/3/device/0f", in: command).hasPrefix("HTTP/2 200"))
      #expect(try client.receiveNow().isEmpty)
      let http2 = try #require(try service.stop()["http2"] as? [String: Any])
      #expect(http2["faults"] as? [String: Int] == ["silence": 1])
      #expect(http2["pings"] as? Int == 1)
    }
  }

  @Test("A certificate that ends: clients that look see it") func certificateEnds() throws {
    try SimulatorProcess.inFolder { command in
      for (time, isValid) in [("1h", true), ("0s", false)] {
        let service = try Service(["--identity", "ids", "--certificate-ends", time], in: command)
        let outcome = try RunningProcess(
          "curl",
          [
            "-s", "-S", "--http2", "--cacert", "ids/ca.pem", "--resolve", "localhost:\(service.port):127.0.0.1", "-H",
            "apns-topic: t", "-d", "{}", "https://localhost:\(service.port)/3/device/0f",
          ], in: command.folder
        ).end()
        #expect((outcome.status == 0) == isValid)
        if !isValid { #expect(outcome.errors.contains("expired")) }
        // It removes its ready file.
        _ = try service.stop()
      }
    }
  }

  @Test("A file of delays that is none: 66") func badDelays() throws {
    try Command.inFolder { command in
      try command.write(Array("soon\n".utf8), "delays")
      for file in ["delays", "missing"] {
        let outcome = try SimulateUsageTests.run(
          ["--plain", "--http2", "127.0.0.1:0", "--http2-fault", "delay,file=\(file)"], in: command, ports: false)
        #expect(outcome.status == 66)
        #expect(outcome.errors.contains(file))
      }
    }
  }

  // MARK: usage

  static let usage: [([String], String)] = [
    (["--plain", "--trust", "any"], "need --http2"),
    (["--plain", "--http2", "127.0.0.1:0", "--trust", "token"], "needs --provider-key"),
    (["--plain", "--http2", "127.0.0.1:0", "--http2-rule", "nonsense=1"], "--http2-rule takes"),
    (["--plain", "--http2", "127.0.0.1:0", "--streams", "0"], "--streams must be"),
    (["--plain", "--http2", "127.0.0.1:0", "--http2-fault", "explode"], "no fault is 'explode'"),
    (["--plain", "--http2", "127.0.0.1:0", "--http2-limit", "pings=x"], "--http2-limit takes"),
    (["--plain", "--http2-fault", "refuse"], "need --http2"),
    (["--plain", "--http2-limit", "pings=1"], "need --http2"),
    (["--plain", "--certificate-ends", "1s"], "needs --identity"),
    (["--plain", "--http2", "127.0.0.1:0", "--provider-key", "k,a,b,c"], "--provider-key takes"),
    (["--plain", "--http2", "127.0.0.1:0", "--provider-key", "k,environment=both"], "--provider-key takes"),
    (["--plain", "--http2", "127.0.0.1:0", "--provider-key", "k,topics=a+"], "--provider-key takes"),
    (["--plain", "--http2", "127.0.0.1:0", "--provider-key", "k,topics=a,topics=b"], "--provider-key takes"),
    (["--plain", "--http2", "127.0.0.1:0", "--strict-payloads", "reason=Own"], "not 'reason=Own'"),
    (["--plain", "--http2", "127.0.0.1:0", "--reject", "every=1,reason=Own"], "reason=R"),
  ]

  @Test("What cannot be meant is said before anything listens", arguments: usage)
  func badUsage(arguments: [String], words: String) throws {
    try Command.inFolder { command in
      let outcome = try SimulateUsageTests.run(arguments, in: command, ports: false)
      #expect(outcome.status == 64)
      #expect(outcome.errors.contains(words))
    }
  }

  @Test("A key that is none: 65; one that is not there: 66") func badKeys() throws {
    try Command.inFolder { command in
      try command.write(Array("no key\n".utf8), "key.p8")
      for (key, status) in [("key.p8", Int32(65)), ("missing.p8", 66)] {
        let outcome = try SimulateUsageTests.run(
          ["--plain", "--http2", "127.0.0.1:0", "--provider-key", key], in: command, ports: false)
        #expect(outcome.status == status)
        #expect(outcome.errors.contains(key))
      }
    }
  }
}
