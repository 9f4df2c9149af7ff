import ArgumentParser
import CommandFiles
import LoadTest
import Measurement

/// How fast a trace is replayed, as typed: 10, 0.5, or max.
struct Speed: Quantity {
  static let notation = "a factor from 1e-6 to 1e6, or max"

  /// The speed factor; `nil`: as fast as the gateway reads.
  var factor: Double?

  init?(argument: String) {
    if argument == "max" { return }
    guard let factor = Double(argument), (1e-6...1e6).contains(factor) else { return nil }
    self.factor = factor
  }

  init(_ factor: Double) { self.factor = factor }

  var defaultValueDescription: String { factor.map { "\($0)" } ?? "max" }
}

struct ReplayOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Send the notifications from records of 'apnscope decode' as recorded; - for standard input.",
      valueName: "records.jsonl"), completion: .file(extensions: ["jsonl"]))
  var replay: String?

  @Option(
    help: ArgumentHelp(
      "Speed relative to the recording, from 1e-6 to 1e6, or max for as fast as possible. Default: 1.",
      valueName: "factor"), transform: Speed.parse)
  var speed: Speed?

  @Option(
    help: ArgumentHelp("Maximum number of notifications of a replay.", valueName: "count", default: Count(100_000_000)),
    transform: Count.parse)
  var replayLimit = Count(100_000_000)

  /// Options that a replay leaves nothing to.
  static let excluded = WorkloadOptions.described + PaceOptions.paced + FeedbackOptions.names

  func requireReplay() throws {
    if replay == nil, speed != nil { throw ValidationError("--speed needs --replay.") }
  }

  /// Whether notifications are due at their recorded times.
  var isPaced: Bool { replay != nil && effectiveSpeed.factor != nil }

  var effectiveSpeed: Speed { speed ?? Speed(1) }

  /// Reads the records. The plan's segment and count must be known.
  ///
  /// - Parameter hasDuration: the plan has a duration; otherwise the run ends when all records are sent.
  func apply(to plan: inout LoadPlan, hasDuration: Bool) throws {
    guard let path = self.replay else { return }
    let replay = try read(path)
    plan.replay = replay
    let (segment, segments) = (plan.workload.segment, plan.workload.segments)
    let share = max(0, (replay.count - segment + segments - 1) / segments)
    plan.count = min(plan.count ?? .max, share)
    var seconds = 86_400.0
    if let factor = effectiveSpeed.factor {
      plan.pace = .recorded(replay, speed: factor)
      seconds += (replay.length / .seconds(1) / factor).rounded(.up)
    }
    // A day more than the replay takes: a gateway may be slow.
    if !hasDuration { plan.duration = min(.seconds(Int(nearest: min(seconds, 1e9))), TimeSpan.longest) }
  }

  private func read(_ path: String) throws -> Replay {
    do {
      return try records(of: path)
    } catch let error as ReplayMaker.FileError {
      complain("\(error)")
      throw ExitStatus.inputOutput
    }
  }

  private func records(of path: String) throws -> Replay {
    var lines = try RecordLines(path)
    var maker = try ReplayMaker(limit: replayLimit.value, directory: TemporaryFiles.folder)
    while try lines.next() {
      do {
        try maker.add(record: lines.text)
      } catch .record(let error) {
        if let kind = FileKind(ofFile: path, beginning: FileKind.beginning(of: path)), kind != .records {
          complain("\(path): \(kind.advice); --replay takes records of 'apnscope decode'")
          throw ExitStatus.damaged
        }
        throw lines.failure(error)
      } catch .file(let error) {
        throw error
      }
    }
    do {
      return try maker.finish()
    } catch .record(let error) {
      complain("\(path): \(error)")
      throw ExitStatus.damaged
    } catch .file(let error) {
      throw error
    }
  }
}
