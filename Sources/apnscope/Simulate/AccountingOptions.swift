import ArgumentParser
import CommandFiles

struct AccountingOptions: ParsableArguments {
  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("End after this time. Default: at SIGINT or SIGTERM.", valueName: "time"),
    transform: TimeSpan.parse)
  var duration: TimeSpan?

  @Option(
    help: ArgumentHelp("Write the ledger to this file at the end, as one JSON document.", valueName: "file"),
    completion: .file())
  var ledger: String?

  @Option(
    help: ArgumentHelp(
      """
      Write a record of every notification that arrives, with its fate, and of every answer, as 'decode' does, without \
      packets; with - to standard output, which then has nothing else. The gateway never waits for the file.
      """, valueName: "file"), completion: .file())
  var records: String?

  @Flag(
    help: """
      Follow every notification through all of its sendings, as 'follow' does, and tell at the end and in the ledger what \
      the providers did: what was lost, accepted twice or sent again, and how they treat connections.
      """)
  var verdict = false

  @Option(
    help: ArgumentHelp(
      "Append one JSON line for every connection that is accepted, refused or closed, and for every error response.",
      valueName: "file"), completion: .file())
  var log: String?

  @Option(
    help: ArgumentHelp("Serve the same counts to Prometheus at http://HOST:PORT/metrics.", valueName: "host:port"),
    transform: ListeningAddress.parse)
  var metrics: ListeningAddress?

  /// Whether standard output has records and nothing else.
  var recordsAreOutput: Bool { records == OutputFile.standardOutput }
}
