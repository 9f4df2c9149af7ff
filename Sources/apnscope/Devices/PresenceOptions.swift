import ArgumentParser
import Bytes
import CommandFiles
import DeviceFleet

/// When devices are reachable.
struct PresenceOptions: ParsableArguments {
  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("End after this time. Default: at SIGINT or SIGTERM.", valueName: "time"),
    transform: TimeSpan.parse)
  var duration: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "End when for this time no notification came and no connection began or ended.", valueName: "time"),
    transform: TimeSpan.parse)
  var untilIdle: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "How long a device stays online: a mean, e.g. 30s, or a range, e.g. 20s..40s. Default: it stays.",
      valueName: "time"), transform: StayArgument.parse)
  var onlineFor: StayArgument?

  @Option(
    help: ArgumentHelp(
      "How long it stays away after that: a mean or a range. Default: 10s.", valueName: "time"),
    transform: StayArgument.parse)
  var offlineFor: StayArgument?

  @Option(
    help: ArgumentHelp(
      "A time span from the start, and the share of devices that is offline in it, e.g. 20s-40s:50%. Repeatable.",
      valueName: "span"), transform: AbsenceArgument.parse)
  var offline: [AbsenceArgument] = []

  @Option(
    help: ArgumentHelp(
      "When all connections are lost at once, and within which time devices come back, e.g. 30s:5s; with ,network=NAME those of a network. Repeatable.",
      valueName: "storm"), transform: StormArgument.parse)
  var storm: [StormArgument] = []

  @Option(
    help: ArgumentHelp(
      "A file of time spans and storms, one a line: 'offline 20s-40s:50%' or 'storm 30s:5s'.", valueName: "file"),
    completion: .file())
  var schedule: String?

  @Option(
    help: ArgumentHelp(
      "Devices that are restored from a copy: a share of those that come back, e.g. 1%, or a rate, e.g. 2/s.",
      valueName: "share|rate"), transform: RestoreArgument.parse)
  var restore: RestoreArgument?

  @Option(
    help: ArgumentHelp(
      "Share of leavings that reset the connection instead of telling the gateway.", valueName: "share"),
    transform: Share.parse)
  var resetOnLeave: Share?

  func validate() throws {
    if let duration, duration.duration <= .zero { throw ValidationError("--for must be more than 0s.") }
    if let untilIdle, untilIdle.duration <= .zero { throw ValidationError("--until-idle must be more than 0s.") }
    if offlineFor != nil, onlineFor == nil {
      throw ValidationError("--offline-for needs --online-for: without it devices stay.")
    }
  }

  func apply(to presence: inout PresencePlan) throws {
    presence.online = onlineFor?.length
    if let offlineFor { presence.offline = offlineFor.length }
    let (absences, storms) = try schedule.map(Self.read) ?? ([], [])
    presence.absences = offline.map(\.absence) + absences
    presence.storms = (storm.map(\.storm) + storms).sorted { $0.time < $1.time }
    presence.restoring = restore?.restoring
    presence.resetShare = resetOnLeave?.value ?? 0
  }

  /// The longest schedule in bytes.
  private static let maximumLength = 1 << 20

  /// Reports an error and throws an exit code if the file cannot be read, or a line is neither a span nor a storm.
  private static func read(_ path: String) throws -> ([PresencePlan.Absence], [PresencePlan.Storm]) {
    let bytes: [UInt8]
    do {
      bytes = try WholeFile.read(path, maximumLength: maximumLength)
    } catch {
      complain("\(path): \(error)")
      throw ExitStatus.cannotOpen
    }
    var (absences, storms) = ([PresencePlan.Absence](), [PresencePlan.Storm]())
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
    for (number, line) in lines.enumerated() {
      func isSpace(_ character: Character) -> Bool { character == " " || character == "\t" || character == "\r" }
      // The name of a network may have spaces.
      var words = line.prefix { $0 != "#" }.split(maxSplits: 1, whereSeparator: isSpace).map(String.init)
      guard let first = words.first else { continue }
      while words.count == 2, let last = words[1].last, isSpace(last) { words[1].removeLast() }
      while words.count == 2, let next = words[1].first, isSpace(next) { words[1].removeFirst() }
      if words.count == 2, first == "offline", let absence = AbsenceArgument(argument: words[1]) {
        absences.append(absence.absence)
      } else if words.count == 2, first == "storm", let storm = StormArgument(argument: words[1]) {
        storms.append(storm.storm)
      } else {
        complain("\(path):\(number + 1): expected 'offline \(AbsenceArgument.form)' or 'storm \(StormArgument.form)'")
        throw ExitStatus.damaged
      }
    }
    return (absences, storms)
  }
}

/// The length of stays as typed: 30s, a mean, or 20s..40s.
struct StayArgument: Quantity {
  static let notation = "a mean time, e.g. 30s, or a range, e.g. 20s..40s, up to 100d"

  var length: PresencePlan.Length

  init?(argument: String) {
    if let mean = TimeSpan(argument: argument) {
      guard mean.duration > .zero else { return nil }
      length = .mean(mean.duration)
    } else if let range = TimeSpanRange(argument: argument) {
      length = .range(range.durations)
    } else {
      return nil
    }
  }

  static func guess(_ text: String) -> String? { TimeSpan.guess(text) }
}

/// A time span and the share of devices that is away in it, as typed: 20s-40s:50%.
struct AbsenceArgument: Quantity {
  static let form = "20s-40s:50%"
  static let notation = "a time span and a share, e.g. \(form)"

  var absence: PresencePlan.Absence

  init?(argument: String) {
    let parts = argument.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, let share = Share(argument: parts[1]) else { return nil }
    let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
    guard ends.count == 2, let from = TimeSpan(argument: ends[0]), let to = TimeSpan(argument: ends[1]),
      from.duration < to.duration
    else { return nil }
    absence = .init(span: from.duration..<to.duration, share: share.value)
  }
}

/// When all connections are lost and within which time devices come back, as typed: 30s:5s.
struct StormArgument: Quantity {
  static let form = "30s:5s"
  static let notation = "a time and the time within which devices come back, e.g. \(form)"

  var storm: PresencePlan.Storm

  init?(argument: String) {
    let (rest, network) = NetworkMark.split(argument)
    let parts = rest.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, let time = TimeSpan(argument: parts[0]), let within = TimeSpan(argument: parts[1]) else {
      return nil
    }
    storm = .init(time: time.duration, within: within.duration, network: network)
  }
}

/// Restores as typed: a share of the devices that come back, 1%, or a rate, 2/s.
struct RestoreArgument: Quantity {
  static let notation = "a share of the devices that come back, e.g. 1%, or a rate, e.g. 2/s"

  var restoring: PresencePlan.Restoring

  init?(argument: String) {
    if argument.contains("/") {
      guard let rate = Rate(argument: argument) else { return nil }
      restoring = .rate(rate.perSecond)
    } else {
      guard let share = Share(argument: argument) else { return nil }
      restoring = .share(share.value)
    }
  }
}
