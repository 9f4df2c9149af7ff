import ArgumentParser

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
      "Append one JSON line for every connection that is accepted, refused or closed, and for every error response.",
      valueName: "file"), completion: .file())
  var log: String?

  @Option(
    help: ArgumentHelp("Serve the same counts to Prometheus at http://HOST:PORT/metrics.", valueName: "host:port"),
    transform: ListeningAddress.parse)
  var metrics: ListeningAddress?
}
