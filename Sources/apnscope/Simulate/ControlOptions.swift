import ArgumentParser
import GatewayControl

struct ControlOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      """
      Serve what has arrived, counts, verdict, faults and devices over HTTP as JSON, for tests: \
      http://HOST:PORT/openapi.json describes it. Only an address of this machine, except with --allow-remote.
      """, valueName: "host:port"), transform: ListeningAddress.parse)
  var control: ListeningAddress?

  @Flag(
    help: "Let --control listen at an address that other machines can reach: whoever can reach it changes the gateway.")
  var allowRemote = false

  @Option(
    "Memory for what --control lists and judges, and --metrics with --verdict; above, the oldest is forgotten, and the verdict says how much.",
    valueName: "bytes")
  var maxHistory = ByteCount(ObservedGateway.Options().maximumBytes)

  func validate() throws {
    if !(1 << 20...1 << 36).contains(maxHistory.bytes) {
      throw ValidationError("--max-history must be 1MiB to 64GiB (got \(maxHistory.bytes)).")
    }
  }
}
