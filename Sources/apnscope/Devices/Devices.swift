import ArgumentParser
import CommandFiles
import DeviceFleet

struct Devices: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run a fleet of simulated devices that receive from a simulated gateway.",
    discussion: """
      Each device has a connection of its own to the device channel of 'apnscope simulate --device-channel': it registers \
      its apps, gets their tokens, says that it is online, and acknowledges what comes. At the end the command reports what \
      was received, how long it took from the gateway's read to the device, and what became of the connections. \
      Documentation/device-channel.md has the protocol; it is the simulator's own, and nothing of Apple's.

      Devices are numbered from --first. With --seed the token of each is known before: the one that 'apnscope load --seed' \
      sends to, and 'simulate --seed' gives. A token that is another one is counted as an error. Everything that chance \
      decides is drawn from the seed and the device's number, so a fleet behaves the same again, and several processes can \
      share it (--segment 2/4; 'apnscope merge' joins their results).

      Presence: devices come at --connect-rate and stay. --online-for and --offline-for let each go and come by chance: \
      10s is the mean of exponential times, 5s..20s a range. --offline 20s-40s:50% keeps half of the devices away for 20 s; \
      each time span has devices of its own. --storm 30s:5s takes all connections away at 30 s, without a word, and every \
      device comes back at a time of its own within 5 s. A file of --schedule has a time span or storm a line, as \
      'offline 20s-40s:50%' and 'storm 30s:5s'; # begins a remark. Times count from the start of the fleet. \
      --restore 5% restores this share of the devices that come back, --restore 2/s devices at random times: a restored \
      device is of the next generation, asks for other tokens, and has no notifications.

      A device that finds no gateway, or is refused, tries again after --backoff, which doubles up to --max-backoff and varies \
      by half. Tokens, sequences and generations are kept over connections. Sequences of an app only grow, so a sequence \
      that is not above the last one is a duplicate: the gateway has delivered a notification twice, which is an error.

      With --local-push devices are extensions where there is no internet: while they are on a --network they keep a connection \
      to the provider's own server, register their user, and acknowledge what comes. One that has heard nothing for \
      --silence gives up and tries again. Being online is being on a Wi-Fi network, drawn anew at each joining; each network \
      can have a server address of its own (at=). \
      Documentation/local-push.md has the protocol, and what is an assumption.

      Notifications come by one of three paths: online (sent as soon as the gateway had it), stored (it waited there), and \
      repeated (it was sent on an earlier connection that ended before it was acknowledged). --received has a line for each, so \
      that the books of a load, a gateway and devices can be compared one by one.

      It ends after --for, --until-idle, or at SIGINT or SIGTERM: devices acknowledge what they have, and say that they go. A \
      second signal, half a second later or more, ends it at once, without a result. Standard output is a summary (or the result, --format json); on a \
      terminal, standard error shows a line a second. It connects only to this machine unless --allow-remote is given.

      Times are written 250ms, 2s, 1m30s or 1h; rates 500, 2k/s (both a second) or 600/m; counts 1000, 20k or 10M; \
      bytes 4096, 64KiB or 1MB; shares 0.01 or 1%.

      Examples:
        apnscope devices --plain --count 1000 --for 1m
        apnscope devices --ca ids/ca.pem --count 18k --seed 7 -o fleet.json
        apnscope devices --plain --online-for 30s --offline-for 5s..20s
        apnscope devices --plain --count 10k --storm 30s:5s --for 2m
        apnscope devices --plain --offline 20s-40s:50% --restore 1%
        apnscope devices --plain --received got.jsonl --until-idle 10s
        apnscope devices --plain --count 20k --segment 2/4 -o part-2.json
        apnscope devices --plain --local-push 127.0.0.1:2199 --count 1000
        apnscope devices --plain --local-push 127.0.0.1 --network ship
        apnscope devices --plain --local-push localhost --network ship,at=[::1]

      Exit codes: 0 done; 64 usage; 65 a certificate or schedule cannot be used; 66 cannot open a file; 69 no device was \
      ever online; 70 the books do not balance; 74 cannot write; 76 the gateway made errors; 130 ended by a signal before --for or --until-idle (the result is written).
      """)

  @OptionGroup(title: "Where to") var target: FleetTargetOptions
  @OptionGroup(title: "Devices") var fleet: FleetOptions
  @OptionGroup(title: "Local push") var localPush: LocalPushFleetOptions
  @OptionGroup(title: "Presence") var presence: PresenceOptions
  @OptionGroup(title: "Connections") var connections: FleetConnectionOptions
  @OptionGroup(title: "Result") var result: FleetResultOptions

  @Flag(help: "Print the options in effect, with the devices of the segment, and end.")
  var dryRun = false

  func validate() throws {
    if localPush.localPush != nil, result.received != nil {
      throw ValidationError("--received has the notifications of the device channel; local push has none of them.")
    }
    try refuseConflicts(
      reading: [target.ca, presence.schedule].compactMap { $0 },
      writing: [
        ("--output", result.file), ("--received", result.received), FilesInUse.standardOutput,
      ])
  }

  func run() async throws { try await DevicesRun(self).run() }

  /// The plan. Reads the schedule.
  func plan() throws -> FleetPlan {
    var plan = FleetPlan(gateway: .init(host: target.gateway.address.host, port: target.gateway.address.port))
    plan.verifiesName = !target.noVerify && target.pin == nil
    try fleet.apply(to: &plan)
    try presence.apply(to: &plan.presence)
    connections.apply(to: &plan)
    localPush.apply(to: &plan)
    plan.duration = presence.duration?.duration
    plan.untilIdle = presence.untilIdle?.duration
    plan.limits.samples = result.timeline.value
    do { try plan.check() } catch { throw ValidationError("\(error).") }
    return plan
  }
}
