import Foundation
import TestSupport
import Testing

/// Files whose names would steer a terminal.
@Suite("Hostile names", .waiting)
struct HostileNameTests {
  private static let name = "e\u{1b}[31m\u{9b}\u{202e}\nx"
  private static let shown = #"e\u001b[31m\u009b\u202e\u000ax"#

  private func expectNoControls(_ text: String) {
    for scalar in text.unicodeScalars where scalar != "\n" {
      let isControl = scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
      #expect(!isControl, "\(scalar.value) in \(text)")
    }
  }

  /// `decode $'e\e[31m'` coloured the terminal.
  @Test("Messages name files escaped, in one line") func messages() throws {
    try Command.inFolder { command in
      for subcommand in ["decode", "inspect", "history", "merge"] {
        let outcome = try command.run(subcommand, Self.name)
        #expect(outcome.status == 66, "\(subcommand)")
        #expect(outcome.errors == "apnscope: \(Self.shown): No such file or directory\n", "\(subcommand)")
      }
      try command.trace("responses.bin", as: Self.name)
      // Mistakes in the command line, found while it is read and later.
      let overwrites = try command.run("decode", "--output", Self.name, Self.name)
      #expect(overwrites.status == 64)
      #expect(overwrites.errors.contains("would overwrite the input \(Self.shown)"))
      let unknown = try command.run("decode", "--\u{1b}[31m", "a")
      #expect(unknown.status == 64)
      #expect(unknown.errors.contains(#"--\u001b[31m"#) && unknown.errors.contains("Usage:"))
      for outcome in [overwrites, unknown] { expectNoControls(outcome.errors) }
    }
  }

  /// Such a file could not be opened at all.
  @Test("A file whose name is no UTF-8 is read, and named with its bytes") func noUTF8() throws {
    try Command.inFolder { command in
      try command.trace("tls-secrets-behind.pcapng", as: "a")
      try command.trace("tls-gateway.pcap", as: "b")
      try command.trace("tls-gateway.pcap.keys", as: "c")
      let made = try command.shell(
        "mv a $'d\\xff\\xe4e\u{e9}'; mv c $'k\\xff'; $apnscope decode $'d\\xff\\xe4e\u{e9}'; $apnscope decode --keys $'k\\xff' b"
      )
      #expect(made.status == 0)
      #expect(made.errors == "")
      #expect(made.output.contains(#""source":"d\\xff\\xe4e\#u{e9}""#))
      #expect(!made.output.contains(#""decrypted":false"#))
      #expect(made.output.contains(#""type":"notification""#))
      let missing = try command.shell("$apnscope inspect $'none\\xff'; $apnscope inspect $'k\\xff'")
      #expect(missing.errors.contains("none\u{fffd}: No such file"))
      #expect(missing.errors.contains(#"k\xff: is a key log"#))
    }
  }

  @Test("What is written names them escaped, in every format") func output() throws {
    try Command.inFolder { command in
      try command.trace("responses.bin", as: Self.name)
      for arguments in [
        ["decode"], ["decode", "--format", "csv"], ["decode", "--format", "table"], ["inspect"],
        ["inspect", "--format", "json"],
      ] {
        let outcome = try command.run(arguments + [Self.name])
        #expect(outcome.status == 0)
        expectNoControls(outcome.output)
        // Foundation has a shorter way to write a line feed.
        if !arguments.contains("table") {
          #expect(outcome.output.replacing(#"\n"#, with: #"\u000a"#).contains(Self.shown), "\(arguments)")
        }
      }
    }
  }
}
