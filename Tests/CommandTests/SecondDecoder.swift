import Foundation
import TestSupport
import Testing

/// `Tests/SecondDecoder`: a decoder that shares nothing with this project's, and what it reads from a capture.
struct SecondDecoder {
  struct Frame: Decodable {
    var identifier: UInt32?
    /// Its items over- or underrun it.
    var misfit: Bool
    var fate: String
    /// The whole frame, in hexadecimal digits.
    var bytes: String
  }

  struct Response: Decodable {
    var status: Int
    var identifier: UInt32
    /// The index of the frame that it names.
    var notification: Int?
  }

  struct Connection: Decodable {
    var client: String
    /// `nil` when it is not one to a gateway.
    var frames: [Frame]?
    var responses: [Response]?

    func count(_ fate: String) -> Int { frames?.count { $0.fate == fate } ?? 0 }
  }

  static let isPossible = ExternalTool.isInstalled("python3")
  private static let folder = Command.traces.deletingLastPathComponent().appending(path: "Tests/SecondDecoder")

  let command: Command
  /// What ports mean, as options.
  var ports: [String] = []

  private func run(_ program: String, _ arguments: [String]) throws -> Outcome {
    let path = Self.folder.appending(path: program).path
    return try RunningProcess("python3", [path] + arguments, in: command.folder).end()
  }

  func connections(of capture: String) throws -> [Connection] {
    let outcome = try run("decode.py", ports + [capture])
    try #require(outcome.status == 0, "\(outcome.errors)")
    let decoder = JSONDecoder()
    return try outcome.lines.map { try decoder.decode(Connection.self, from: Data($0.utf8)) }
  }

  /// What `apnscope decode` prints for the capture, beside what this decoder reads: differences, and how much of what was
  /// compared.
  ///
  /// - Parameters:
  ///   - isPiped: decode gets the capture as standard input.
  ///   - changed: what becomes of the records first.
  func compare(
    _ capture: String, isPiped: Bool = false, changed: (String) -> String = { $0 }
  ) throws -> (status: Int32, text: String, counts: [String: Int]) {
    let arguments = ["decode"] + ports + [isPiped ? "-" : capture]
    let input = isPiped ? command.folder.appending(path: capture) : nil
    let decoded = try RunningProcess(Command.path, arguments, in: command.folder, input: input).end()
    try #require(decoded.status == 0, "\(decoded.errors)")
    try command.write(Array(changed(decoded.output).utf8), "records.jsonl")
    let outcome = try run("compare.py", ports + [capture, "records.jsonl"])
    let counts = try JSONDecoder().decode([String: Int].self, from: Data((outcome.lines.last ?? "").utf8))
    return (outcome.status, outcome.output + outcome.errors, counts)
  }

  /// Makes a capture of many conversations by chance.
  func makeConversations(seed: UInt64, _ file: String) throws {
    let outcome = try run("conversations.py", ["\(seed)", file])
    try #require(outcome.status == 0, "\(outcome.errors)")
  }
}
