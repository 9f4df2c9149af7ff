import ArgumentParser
import Bytes
import CommandFiles
import Measurement
import Reporting

/// A file with a demand, as typed: monday.json,factor=2 or runs.sqlite,kind=load.
struct DemandArgument: Quantity {
  static let notation =
    "a file, optionally followed by ,factor=N (above 0) and ,kind=load or ,kind=simulate (of a history)"

  var file: String
  var factor = 1.0
  var kind: String?

  /// Settings stand behind the file, whose name may have commas.
  init?(argument: String) {
    var file = argument[...]
    while let comma = file.lastIndex(of: ",") {
      let pair = file[file.index(after: comma)...].split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2 else { break }
      switch pair[0] {
      case "factor":
        guard let factor = Double(pair[1]), factor > 0, factor <= 1e6 else { return nil }
        self.factor = factor
      case "kind":
        guard pair[1] == "load" || pair[1] == "simulate" else { return nil }
        kind = String(pair[1])
      default: break
      }
      guard pair[0] == "factor" || pair[0] == "kind" else { break }
      file = file[..<comma]
    }
    guard !file.isEmpty else { return nil }
    self.file = String(file)
  }
}

/// What a capacity is wanted for.
struct CapacityQuestions: ParsableArguments {
  @Option(
    name: .customLong("target"), help: ArgumentHelp("Notifications of a campaign, e.g. 50M.", valueName: "count"),
    transform: Count.parse)
  var count: Count?

  @Option(help: ArgumentHelp("Time for the campaign, e.g. 10m.", valueName: "time"), transform: TimeSpan.parse)
  var within: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "A demand over time to lay over the capacity: an inspection ('inspect --format json'), a CSV with time (or seconds) and rate, or a history; with ,factor=2 twice as much.",
      valueName: "file"), completion: .file(extensions: ["json", "csv", "sqlite"]), transform: DemandArgument.parse)
  var demand: DemandArgument?

  @Option(
    help: ArgumentHelp(
      "Numbers of connections that all open at once, with full handshakes, e.g. 1k: how long until they are back. capacity makes a trial for each.",
      valueName: "counts"), transform: CountList.parse)
  var storm: CountList?

  @Option(
    help: ArgumentHelp(
      "A result of 'apnscope devices': when the last device has the campaign of --target, and which share is away.",
      valueName: "fleet.json"), completion: .file(extensions: ["json"]))
  var devices: String?

  @Option(help: ArgumentHelp("Most steps of a demand; a longer one is refused.", valueName: "count"))
  var maxDemandSteps = Demand.defaultMaximumSteps

  var isEmpty: Bool { count == nil && within == nil && demand == nil && storm == nil && devices == nil }

  /// The files that are read for the questions.
  var files: [String] { [demand?.file, devices].compactMap { $0 } }

  func validate() throws {
    if let count, count.value < 1 { throw ValidationError("--target must be at least 1 (got \(count.value)).") }
    if within != nil, count == nil { throw ValidationError("--within needs --target.") }
    if let within, within.duration <= .zero { throw ValidationError("--within must be more than 0s.") }
    guard (2...100_000_000).contains(maxDemandSteps) else {
      throw ValidationError("--max-demand-steps must be 2 to 100000000 (got \(maxDemandSteps)).")
    }
  }

  /// Puts the questions into a document, in place of its own ones of the same kind. Reads the demand.
  func apply(to document: inout CapacityDocument) throws {
    if let count {
      document.target = .init(notifications: count.value, withinS: within.map { $0.duration / .seconds(1) })
    }
    if let demand { document.demand = try demand.read(maximumSteps: maxDemandSteps) }
    if let storm { document.storms = storm.values }
    if let devices {
      guard document.target != nil else {
        throw ValidationError("--devices needs --target: the campaign whose last device is asked for.")
      }
      let fleet = try complaining { try ResultDocument.readFleet(devices) }
      guard fleet.localPush == nil else {
        complain("\(devices): is of local push, whose notifications come from no gateway")
        throw ExitStatus.damaged
      }
      document.devices = MeasuredFleet(fleet, source: devices)
    }
  }
}

extension DemandArgument {
  /// Reads the file, whose kind its content shows.
  func read(maximumSteps: Int) throws -> Demand {
    do {
      var demand = try complaining { try contents(maximumSteps) }
      demand.factor = factor
      return demand
    } catch let failure as DocumentFailure {
      throw ExitStatus.complaining(of: failure)
    } catch let failure as DemandFailure {
      complain("\(file): \(failure)")
      throw ExitStatus.damaged
    }
  }

  private func contents(_ maximumSteps: Int) throws -> Demand {
    let beginning = FileKind.beginning(of: file)
    if FileKind(beginning: beginning) == .history {
      return try RunHistory(reading: file).demand(kind: kind, source: file, maximumSteps: maximumSteps)
    }
    if kind != nil { throw DemandFailure("is not a history, and kind= is of one") }
    let data = try ResultDocument.contents(of: file)
    if data.first(where: { $0 != 0x20 && !(0x09...0x0D).contains($0) }) == UInt8(ascii: "{") {
      return try Demand(try ResultDocument.inspection(in: data, file), source: file, maximumSteps: maximumSteps)
    }
    if let kind = FileKind(beginning: beginning) {
      throw DemandFailure("\(kind.advice); expected a demand: an inspection, a CSV or a history")
    }
    return try Demand(csv: Array(data), source: file, maximumSteps: maximumSteps)
  }
}
