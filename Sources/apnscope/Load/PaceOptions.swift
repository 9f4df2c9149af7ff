import ArgumentParser
import LoadTest
import Measurement

struct PaceOptions: ParsableArguments {
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Notifications per second, e.g. 50k or 200k/s, or per minute, e.g. 600/m, over all connections of this run; with --segment, of this segment, unless --of-whole is given. Default: as fast as possible.",
      valueName: "rate"), transform: Rate.parse)
  var rate: Rate?

  @Option(
    help: ArgumentHelp("Rate of each connection: --connections times as many in all.", valueName: "rate"),
    transform: Rate.parse)
  var ratePerConnection: Rate?

  @Option(
    help: ArgumentHelp(
      "A stage of the schedule: 1m:50k/s, or 10s:0..50k/s for a ramp; rates as with --rate. Repeatable; stages run in order.",
      valueName: "stage"), transform: StageArgument.parse)
  var stage: [StageArgument] = []

  @Flag(
    help:
      "Space notifications randomly (a Poisson process) instead of evenly. The generator wakes every millisecond, so counts over 10 ms and more follow the process, spacings of a few milliseconds do not."
  )
  var poisson = false

  @Option(
    help:
      "How to treat notifications that could not be sent in time: catch-up (send them late) or skip (skip and count those more than 100 ms late)."
  )
  var behind = LoadPlan.Behind.catchUp

  @Option(
    name: [.customShort("n"), .long],
    help: ArgumentHelp(
      "End after this many notifications, e.g. 10M; with --segment, of this segment, unless --of-whole is given.",
      valueName: "count"),
    transform: Count.parse)
  var count: Count?

  @Option(
    name: [.customShort("d"), .customLong("for")],
    help: ArgumentHelp(
      "End after this time, e.g. 30s or 1m30s. Default: the rest of the stages after --warm-up; with --count or --replay when all is sent, after a day at most; otherwise 60s.",
      valueName: "time"), transform: TimeSpan.parse)
  var duration: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "Unmeasured time before the measured phase; the schedule begins with it.", valueName: "time",
      default: TimeSpan(.zero)),
    transform: TimeSpan.parse)
  var warmUp = TimeSpan(.zero)

  @Option(
    help: ArgumentHelp(
      "Time limit for the end of the run: last answers, and the resends they cause.", valueName: "time",
      default: TimeSpan(.seconds(10))), transform: TimeSpan.parse)
  var drain = TimeSpan(.seconds(10))

  @Flag(
    help:
      "With --segment: --rate, --rate-per-connection, --stage, --count and --connections are those of the whole stream, and divided exactly among the segments. In a plan file: of_whole = true."
  )
  var ofWhole = false

  @Option(
    help: ArgumentHelp(
      "Begin the schedule at this time, so that several machines begin together: 2026-11-22T09:00:00Z, +30s from now, or next:30s for the next multiple of 30 s of the clock. Connections are made before.",
      valueName: "time"), transform: StartArgument.parse)
  var startAt: StartArgument?

  @Option(
    help:
      "How to treat a --start-at that has passed when the connections are made: fail (send nothing and exit with 69) or skip (begin at once; notifications that were due before are not sent, and counted as skipped)."
  )
  var late = PlannedStart.Late.fail

  /// The options that determine the due times of generated notifications.
  static let paced = ["rate", "rate-per-connection", "stage", "poisson"]

  /// The names of the pace options that the user set.
  var given: [String] {
    zip(Self.paced, [rate != nil, ratePerConnection != nil, !stage.isEmpty, poisson]).filter(\.1).map(\.0)
  }

  func validate() throws {
    let given = [
      rate.map { _ in "--rate" }, ratePerConnection.map { _ in "--rate-per-connection" },
      stage.isEmpty ? nil : "--stage",
    ].compactMap { $0 }
    if given.count > 1 { throw ValidationError("\(given[0]) and \(given[1]) exclude each other.") }
    if let ratePerConnection, ratePerConnection.perSecond <= 0 {
      throw ValidationError("--rate-per-connection must be more than 0.")
    }
    if let duration, duration.duration <= .zero { throw ValidationError("--for must be more than 0s.") }
    if let count, count.value < 1 { throw ValidationError("--count must be at least 1 (got \(count.value)).") }
    if let rate, rate.perSecond <= 0 { throw ValidationError("--rate must be more than 0.") }
  }

  func requireSchedule() throws {
    if late == .skip, startAt == nil { throw ValidationError("--late skip needs --start-at.") }
    if given == ["poisson"] { throw ValidationError("--poisson needs --rate, --rate-per-connection or --stage.") }
  }

  /// The plan's connections must be known.
  func apply(to plan: inout LoadPlan) throws {
    var schedule: Schedule?
    plan.behind = behind
    if let ratePerConnection {
      schedule = .constant(ratePerConnection.perSecond * Double(plan.connections.count))
    }
    if let rate { schedule = .constant(rate.perSecond) }
    if !stage.isEmpty { schedule = Schedule(stages: stage.map(\.stage)) }
    if let schedule { plan.pace = .scheduled(schedule, isPoisson: poisson) }
    plan.count = count?.value
    if let duration {
      plan.duration = duration.duration
    } else if !stage.isEmpty, let schedule {
      let length = Duration.seconds(schedule.length)
      guard length <= TimeSpan.longest else { throw ValidationError("all --stage together may take up to 100d.") }
      // The schedule begins with the warm-up.
      guard length > warmUp.duration else {
        throw ValidationError("--warm-up is as long as all stages; nothing would be measured.")
      }
      plan.duration = length - warmUp.duration
    } else if count != nil {
      plan.duration = .seconds(86_400)
    }
    plan.warmUp = warmUp.duration
    plan.drain = drain.duration
    if let startAt {
      plan.start = PlannedStart(at: startAt.time(from: WallClock.system.nanoseconds()), late: late)
    }
  }
}

extension PlannedStart.Late: ExpressibleByArgument {}

extension LoadPlan.Behind: ExpressibleByArgument {}
