import Foundation
import Testing

/// The command as it describes itself to tools: what `--experimental-dump-help` prints.
struct SelfDescription: Decodable {
  struct Name: Decodable {
    var kind: String
    var name: String
    var typed: String { (kind == "long" ? "--" : "-") + name }
  }

  struct Argument: Decodable {
    var names: [Name]?
    var abstract: String?
    var shouldDisplay: Bool
  }

  struct Program: Decodable {
    var commandName: String
    var abstract: String?
    var discussion: String?
    var arguments: [Argument]?
    var subcommands: [Program]?

    /// Every option as typed, also short ones.
    var options: [String] {
      (arguments ?? []).filter(\.shouldDisplay).flatMap { ($0.names ?? []).map(\.typed) }
    }

    /// Lines of the discussion that can be copied: those that are indented and begin with the command's name.
    var examples: [String] {
      (discussion ?? "").split(separator: "\n").filter { $0.hasPrefix("  apnscope ") }
        .map { $0.trimmingCharacters(in: .whitespaces) }
    }
  }

  var command: Program
  var subcommands: [Program] { (command.subcommands ?? []).filter { $0.commandName != "help" } }

  static func read(_ command: Command) throws -> SelfDescription {
    let outcome = try command.run("--experimental-dump-help")
    try #require(outcome.status == 0)
    return try JSONDecoder().decode(SelfDescription.self, from: Data(outcome.output.utf8))
  }
}
