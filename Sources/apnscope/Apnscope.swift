import ArgumentParser

@main
struct Apnscope: AsyncParsableCommand {
  static let version = "0.1.0"

  static let configuration = CommandConfiguration(
    commandName: "apnscope",
    abstract: "Makes the binary provider protocol of the Apple Push Notification service visible and measurable.",
    discussion: """
      The protocol (gateway on TCP 2195, feedback on 2196) has no acknowledgement: success is silence, an error arrives \
      late, and everything written after the bad notification is lost. decode and inspect read recordings of it and show \
      what was sent, what was refused, and what was lost without anybody noticing. simulate is a gateway and a feedback \
      service that provider code can be tested against; identity makes the certificates for it. load sends synthetic \
      notifications to a gateway and keeps exact books; merge joins what several machines wrote, and report makes \
      pages of results.

      Exit codes: 0 done; 64 usage; 65 not a capture, a file that cannot be used, or --strict found damage; 66 cannot \
      open a file; 69 a port cannot be had, or the gateway not reached; 70 a load's books do not balance; 74 cannot read \
      or write; 99 a threshold failed; 130 interrupted.
      """,
    version: version,
    subcommands: [
      Decode.self, Inspect.self, Simulate.self, Load.self, Merge.self, Compare.self, Capacity.self, Report.self,
      History.self, IdentityCommand.self,
    ])
}
