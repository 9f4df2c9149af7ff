import ArgumentParser
import GatewaySimulator

extension Scheduling: ExpressibleByArgument {}

struct ListeningOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Address of the gateway. Port 0 picks a free one.", valueName: "host:port",
      default: ListeningAddress(.init(host: "127.0.0.1", port: 2195))), transform: ListeningAddress.parse)
  var gateway = ListeningAddress(.init(host: "127.0.0.1", port: 2195))

  @Option(
    help: ArgumentHelp(
      "Address of the feedback service.", valueName: "host:port",
      default: ListeningAddress(.init(host: "127.0.0.1", port: 2196))), transform: ListeningAddress.parse)
  var feedback = ListeningAddress(.init(host: "127.0.0.1", port: 2196))

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

  func apply(to options: inout SimulatorOptions) {
    options.gateway = gateway.address
    options.feedback = noFeedback ? nil : feedback.address
    if let threads { options.threads = threads }
    options.scheduling = scheduling
  }
}
