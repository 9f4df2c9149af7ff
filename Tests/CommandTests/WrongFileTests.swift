import Foundation
import Measurement
import TestSupport
import Testing

/// A file that is given to a command which does not read its kind.
@Suite("The wrong file", .waiting)
struct WrongFileTests {
  /// One file of every kind, by its name.
  private static func makeFiles(_ command: Command) throws {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    try command.write([UInt8](encoder.encode(RunResult())), "run.json")
    try command.write([UInt8](encoder.encode(Ledger())), "sim.json")
    try command.trace("plain-error.pcap", as: "a.pcap")
    try command.trace("loss-reorder.pcap.gz", as: "a.pcap.gz")
    try command.trace("plain-error.pcap.jsonl", as: "records.jsonl")
    try command.trace("tls-gateway.pcap.keys", as: "sslkeys.log")
    #expect(try command.run("decode", "--format", "csv", "--output", "records.csv", "a.pcap").status == 0)
    // What RunHistory and any SQLite file begin with.
    try command.write(Array("SQLite format 3\0".utf8) + [UInt8](repeating: 0, count: 84), "h.sqlite")
  }

  /// Arguments, and what standard error says.
  private static let cases: [(String, String)] = [
    ("inspect records.jsonl", "records.jsonl: holds records of 'apnscope decode', which 'apnscope report' and"),
    ("decode records.jsonl", "records.jsonl: holds records of 'apnscope decode', which 'apnscope report' and"),
    ("decode - < records.jsonl", "standard input: holds records of 'apnscope decode'"),
    ("inspect records.csv", "records.csv: holds records of 'apnscope decode' as CSV"),
    ("report records.csv --output out", "'apnscope report' reads those of --format jsonl"),
    (
      "report h.sqlite --output out", "h.sqlite: is an SQLite file, perhaps a history of runs, which 'apnscope history'"
    ),
    ("inspect h.sqlite", "which 'apnscope history' reads"),
    (
      "inspect run.json",
      "run.json: is a result of 'apnscope load', which 'apnscope report', 'compare' and 'merge' read"
    ),
    ("inspect sim.json", "sim.json: is a ledger of 'apnscope simulate'"),
    ("inspect sslkeys.log", "sslkeys.log: is a key log; give it with --keys"),
    ("compare a.pcap run.json", "a.pcap: is a packet capture, which 'apnscope inspect', 'decode' and 'report' read"),
    ("compare run.json a.pcap.gz", "a.pcap.gz: is compressed, perhaps a packet capture, which 'apnscope inspect'"),
    ("merge records.jsonl", "holds records of 'apnscope decode', which 'apnscope report'"),
    ("merge h.sqlite", "which 'apnscope history' reads"),
    ("compare run.json sim.json", "sim.json: is a ledger of 'simulate', and run.json is a result of 'load'"),
    ("history run.json", "run.json: is a result of 'apnscope load'"),
    ("history a.pcap", "a.pcap: is a packet capture, which 'apnscope inspect'"),
    ("load --plain --gateway 127.0.0.1:1 --replay a.pcap", "a.pcap: is a packet capture"),
  ]

  @Test("Each command says what the file is and which command reads it; the status stays 65")
  func said() throws {
    try Command.inFolder { command in
      try Self.makeFiles(command)
      for (line, words) in Self.cases {
        let outcome = try command.shell("$apnscope \(line)")
        #expect(outcome.status == 65, "\(line)")
        #expect(outcome.output == "", "\(line)")
        #expect(outcome.errors.contains(words), "\(line): \(outcome.errors)")
        #expect(outcome.errors.split(separator: "\n").count == 1, "\(line): \(outcome.errors)")
      }
      // A document that is no result is none of them.
      try command.write(Array("{\"kinds\": []}".utf8), "other.json")
      #expect(try command.run("inspect", "other.json").errors.contains("neither a packet capture"))
    }
  }
}
