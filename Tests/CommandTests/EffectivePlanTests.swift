import Foundation
import Testing

@testable import apnscope

/// The plan that a load is said to have, in its result and as a file.
@Suite("effective plan")
struct EffectivePlanTests {
  private func names(_ arguments: [String]) throws -> Set<String> {
    let command = try Load.parse(["--identity", "ids", "--gateway", "127.0.0.1"] + arguments)
    return Set(EffectivePlan(command, try command.loadPlan()).values.keys.map { $0.replacing("_", with: "-") })
  }

  @Test("It has every option that describes a load, by its name, and nothing else")
  func complete() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apnscope-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let (tokens, payloads) = (folder.appending(path: "tokens"), folder.appending(path: "payloads"))
    try Data("aabb\n".utf8).write(to: tokens)
    try Data("{\"aps\":{}}\n".utf8).write(to: payloads)
    var named: Set<String> = []
    for arguments in [
      [
        "--key", "k", "--pass-phrase-file", "p", "--topic", "com.example.app", "--ca", "c", "--keylog", "l",
        "--ciphers", "ALL", "--tls13-suites", "TLS_AES_128_GCM_SHA256", "--rate", "1/s", "--faults", "oversize=0.1",
        "--lifetime", "1s", "--connection-count", "1", "--count", "1", "--threshold", "unknown<=0",
        "--poll-feedback", "localhost", "--no-prune", "--start-at", "+1h", "--of-whole",
      ],
      ["--rate-per-connection", "1/s", "--payload-template", "{}"], ["--stage", "1s:1/s", "--payload-kind", "alert"],
      ["--token-file", tokens.path, "--payload-file", payloads.path],
      ["--replay", Command.traces.appending(path: "plain-error.pcap.jsonl").path],
    ] { named.formUnion(try names(arguments)) }
    // What is done with a plan and its result; sizes from a file, which are written as --payload; and a template's short
    // name.
    let others: Set<String> = [
      "help", "version", "plan", "print-plan", "output", "format", "history", "metrics", "metrics-linger", "junit",
      "label",
      "payload-from", "stamp", "quiet", "color", "screen", "web", "web-control",
      "log", "log-rate", "log-size",
    ]
    let options = Set(try OptionGrammar(of: Load.self).forms.keys).subtracting(others)
    #expect(named.subtracting(options) == [], "no option is called so")
    #expect(options.subtracting(named) == [], "missing in the plan")
  }
}
