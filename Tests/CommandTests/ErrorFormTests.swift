import Foundation
import TestSupport
import Testing

@testable import apnscope

/// One voice of errors: every command tells every error alike.
///
/// `apnscope: SUBJECT: problem; advice` in one line without a full stop, or, when the command line is wrong, `apnscope: `
/// and a sentence, the usage and where help is.
@Suite("form of errors", .waiting)
struct ErrorFormTests {
  private struct Case {
    var line: String
    var status: Int32
    var words: String
    init(_ line: String, _ status: Int32, _ words: String) {
      (self.line, self.status, self.words) = (line, status, words)
    }
  }

  private static let cases = [
    Case("decod", 64, "Did you mean 'decode'?"), Case("help nope", 64, "Unknown command 'nope'"),
    Case("--nope", 64, "--nope"),
    Case("decode", 64, "No input"), Case("decode gone.pcap", 66, "No such file"),
    Case("decode text.txt", 65, "neither a packet capture"), Case("decode --fields x a.pcap", 64, "unknown field 'x'"),
    Case("decode --format xml a.pcap", 64, "'xml'"), Case("decode --max-memory 5x a.pcap", 64, "'5x'"),
    Case("decode --output none/x a.pcap", 74, "none/x"), Case("decode --output a.pcap a.pcap", 64, "overwrite"),
    Case("decode --keys gone a.pcap", 66, "gone"), Case("decode --filter foo( a.pcap", 64, "foo("),
    Case("inspect gone", 66, "gone"), Case("inspect run.json", 65, "run.json"),
    Case("inspect --rows x a.pcap", 64, "'x'"),
    Case("follow gone", 66, "gone"), Case("follow --fields x a.pcap", 64, "unknown field"),
    Case("annotate a.pcap", 64, "--output"), Case("annotate gone --output o.pcap", 66, "gone"),
    Case("redact a.pcap", 64, "--output"), Case("redact gone --output o.pcap", 66, "gone"),
    Case("lint gone", 66, "gone"), Case("lint --era 3 text.txt", 64, "2009 to 2021"),
    Case("render gone", 66, "gone"), Case("render --ios 3 text.txt", 64, "--ios"),
    Case("simulate", 64, "--identity"), Case("simulate --plain --gateway 1", 64, "HOST:PORT"),
    Case("simulate --identity gone", 66, "gone"), Case("simulate --plain --reject x=1", 64, "'x=1'"),
    Case("simulate --plain --settings gone", 66, "gone"),
    Case("simulate --plain --gateway 127.0.0.1:0 --no-feedback --log none/x", 74, "none/x"),
    Case("load", 64, "--identity"),
    Case("load --plain --gateway 127.0.0.1:9 --count 1 --give-up 2s", 69, "Connection refused"),
    Case("load --identity gone --count 1", 66, "'apnscope identity"), Case("load --plain --rate x", 64, "'x'"),
    Case("load --plain --threshold foo<1", 64, "unknown metric 'foo'"),
    Case("load --plain --faults foo=1", 64, "unknown fault"),
    Case("load --plain --plan gone", 66, "gone"), Case("load --plan bad.toml", 65, "bad.toml"),
    Case("load --plain --payload-from run.json", 65, "run.json"), Case("load --rps 5", 64, "'--rate'"),
    Case("load --plain --token-file text.txt --print-plan", 65, "text.txt:1: "),
    Case("load --plain --payload-file text.txt --print-plan", 65, "text.txt:1: "),
    Case("load --plain --gateway 127.0.0.1:9 --output none/x", 74, "none/x"),
    Case("load --plain --gateway 127.0.0.1:9 --log none/x", 74, "none/x"),
    Case("devices --plain --count 0", 64, "--count"), Case("devices --ca gone", 66, "gone"),
    Case("devices --plain --dry-run --schedule gone", 66, "gone"),
    Case("merge gone", 66, "gone"), Case("merge text.txt", 65, "text.txt"),
    Case("merge", 64, "Missing expected argument"),
    Case("result gone", 66, "gone"), Case("result text.txt", 65, "text.txt"),
    Case("result", 64, "Missing expected argument"),
    Case("compare gone", 64, "side A"), Case("compare gone gone", 66, "gone"),
    Case("capacity", 64, "--identity"),
    Case("capacity --plain --gateway 127.0.0.1:9 --max-trials 0", 64, "--max-trials"),
    Case("capacity --identity gone --dry-run", 66, "gone"),
    Case("report gone --output o", 66, "gone"), Case("report text.txt --output o", 65, "text.txt"),
    Case("report gone", 64, "--output"),
    Case("history gone", 66, "gone"), Case("history text.txt", 65, "text.txt"),
    Case("history", 64, "Missing expected argument"),
    Case("identity", 64, "--directory"), Case("identity --directory none/x/y --topic a", 74, "none/x/y"),
    Case("schema", 64, "Missing expected argument"), Case("schema nope", 64, "'nope'"), Case("dissector x", 64, "'x'"),
    Case("demo x", 64, "'x'"), Case("demo --output text.txt", 66, "text.txt"),
  ]

  @Test("Every wrong invocation has the exit code of its kind, and one form")
  func form() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap", as: "a.pcap")
      try command.write(Array("hello world\n".utf8), "text.txt")
      try command.write(Array("rate = 5\nfoo = 1\n".utf8), "bad.toml")
      try command.write(Array(#"{"schema":3,"command":"load"}"#.utf8), "run.json")
      for wrong in Self.cases {
        let arguments = wrong.line.split(separator: " ").map(String.init)
        let outcome = try command.run(arguments)
        let lines = outcome.errors.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        let shown = "\(wrong.line): \(outcome.status) \(outcome.errors)"
        #expect(outcome.status == wrong.status && outcome.errors.contains(wrong.words), "\(shown)")
        #expect(outcome.output == "", "\(shown)")
        guard let first = lines.first else { continue }
        #expect(first.hasPrefix("apnscope: ") && !outcome.errors.contains("Error:"), "\(shown)")
        guard wrong.status == 64 else {
          // Each line is a complaint of its own.
          #expect(lines.allSatisfy { $0.hasPrefix("apnscope: ") && !$0.hasSuffix(".") }, "\(shown)")
          // What it is about comes first.
          #expect(lines.allSatisfy { $0.dropFirst("apnscope: ".count).contains(": ") }, "\(shown)")
          continue
        }
        #expect(first.last.map { ".?:".contains($0) } == true, "\(shown)")
        let known = Apnscope.configuration.subcommands.map { $0._commandName }
        let name = arguments.first.flatMap { known.contains($0) ? " \($0)" : nil } ?? ""
        #expect(lines.last == "  See 'apnscope\(name) --help' for more information.", "\(shown)")
        #expect(lines.contains { $0.hasPrefix("Usage: apnscope\(name)") }, "\(shown)")
      }
    }
  }

  @Test("Every command is among the wrong invocations, with one that is a usage error")
  func complete() {
    for command in Apnscope.configuration.subcommands {
      let name = command._commandName
      #expect(Self.cases.contains { $0.line.split(separator: " ").first == name[...] && $0.status == 64 }, "\(name)")
    }
  }

  @Test(
    "The library's messages become sentences of the program",
    arguments: [
      ("Error: Unexpected argument 'x'\nUsage: y", "apnscope: Unexpected argument 'x'.\nUsage: y"),
      ("Error: Did you mean 2s?", "apnscope: Did you mean 2s?"), ("Error: one of:\n  - a", "apnscope: one of:\n  - a"),
      ("apnscope: a: b", "apnscope: a: b"), ("", ""), ("Error: ", "apnscope: "),
    ])
  func voiced(text: String, expected: String) { #expect(Apnscope.voiced(text) == expected) }
}
