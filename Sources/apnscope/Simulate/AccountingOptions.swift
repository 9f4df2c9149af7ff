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
      "Append the ledger to this history, an SQLite file; see 'apnscope history --help'.", valueName: "file"),
    completion: .file(extensions: ["sqlite"]))
  var history: String?

  @Option(
    help: ArgumentHelp(
      """
      Write a record of every notification that arrives, with its fate, and of every answer, as 'decode' does, without \
      packets; with - to standard output, which then has nothing else. The gateway never waits for the file.
      """, valueName: "file"), completion: .file())
  var records: String?

  @Option(
    help: ArgumentHelp(
      """
      Continue --records in another file when it is this large: what is full is renamed to FILE.TIME, as \
      arrived.jsonl.20261127T170501Z.
      """, valueName: "bytes"), transform: ByteCount.parse)
  var recordsSize: ByteCount?

  @Option(
    help: ArgumentHelp(
      "Full files of --records-size that stay; older ones of this run are removed. Default: all.", valueName: "count"))
  var recordsFiles: Int?

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
    help: ArgumentHelp(
      "Serve the same counts to Prometheus at http://HOST:PORT/metrics; with --verdict also the verdict so far.",
      valueName: "host:port"),
    transform: ListeningAddress.parse)
  var metrics: ListeningAddress?

  func validate() throws {
    if let recordsSize, recordsSize.bytes < 1 << 10 {
      throw ValidationError("--records-size must be at least 1KiB (got \(recordsSize.bytes)).")
    }
    if let recordsFiles, !(1...1_000_000).contains(recordsFiles) {
      throw ValidationError("--records-files must be 1 to 1000000 (got \(recordsFiles)).")
    }
  }

  /// Requirements of options that a file of settings may meet instead of the command line.
  func requireCompanions() throws {
    if recordsSize != nil, records == nil || recordsAreOutput {
      throw ValidationError("--records-size is of a file: give --records FILE.")
    }
    if recordsFiles != nil, recordsSize == nil { throw ValidationError("--records-files needs --records-size.") }
  }

  /// The limits on files of records; `nil`: they are one.
  var rotation: RotatedFile.Limits? {
    recordsSize.map { RotatedFile.Limits(maximumBytes: $0.bytes, maximumFiles: recordsFiles) }
  }

  /// Whether standard output has records and nothing else.
  var recordsAreOutput: Bool { records == OutputFile.standardOutput }
}
