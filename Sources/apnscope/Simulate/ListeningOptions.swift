import ArgumentParser
import GatewaySimulator

extension Scheduling: ExpressibleByArgument {}

struct ListeningOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Address of the binary gateway. Port 0 picks a free one. Default: 127.0.0.1:2195, with --http2 none.",
      valueName: "host:port"), transform: ListeningAddress.parse)
  var gateway: ListeningAddress?

  @Option(
    help: ArgumentHelp(
      "Address of the feedback service. Default: 127.0.0.1:2196, with --http2 alone none.", valueName: "host:port"),
    transform: ListeningAddress.parse)
  var feedback: ListeningAddress?

  @Flag(help: "Do not run a feedback service.")
  var noFeedback = false

  @Option(
    help: ArgumentHelp("Threads for connections. Default: one per core.", valueName: "count"))
  var threads: Int?

  @Option(
    help: ArgumentHelp(
      """
      Scheduling of these threads: batch does not preempt senders on the same machine, and reads more at once; normal may \
      preempt them for every record.
      """, valueName: "policy"))
  var scheduling = Scheduling.batch

  func validate() throws {
    if let threads, !(1...256).contains(threads) {
      throw ValidationError("--threads must be 1 to 256 (got \(threads)).")
    }
  }

  /// - Parameter servesHTTP2: whether there is an HTTP/2 service: the binary one then runs only if it is asked for.
  func apply(to options: inout SimulatorOptions, servesHTTP2: Bool) {
    options.gateway = gateway?.address ?? (servesHTTP2 ? nil : options.gateway)
    options.feedback = feedback?.address ?? (options.gateway == nil ? nil : options.feedback)
    if noFeedback { options.feedback = nil }
    if let threads { options.threads = threads }
    options.scheduling = scheduling
  }
}
