import Bytes
import Measurement

/// The planned rate, and the measured share of it.
extension RunReport {
  /// `50,000/s over 4 connections for 20s`: the whole stream's, if the plan is that; else of a merged result it is the
  /// first part's.
  var whatWasAsked: String {
    var words = [pace]
    if case .number(let count)? = result.plan["connections"] {
      words.append("over \(grouped(count)) \(count == 1 ? "connection" : "connections")")
    }
    if case .number(let count)? = result.plan["count"] {
      words.append("until \(grouped(count)) are written")
    } else if case .text(let time)? = result.plan["for"], result.plan["stage"] == nil {
      words.append("for \(time)")
    }
    switch division {
    case .none: break
    case .firstPart: words.append("in the first of its segments")
    case .whole(let segments, let all) where segments.count == all: words.append("from \(grouped(all)) segments")
    case .whole(let segments, let all):
      let which =
        segments.count == 1 ? "segment \(segments[0])/\(all)" : "\(grouped(segments.count)) of \(grouped(all)) segments"
      words.insert("\(which) of", at: 0)
    }
    if let interrupted = result.interrupted {
      switch interrupted.cause {
      case .lost: words.append("(did not come to its end)")
      case .threshold: words.append("(ended by a threshold)")
      case nil: words.append("(interrupted)")
      }
    }
    return words.joined(separator: " ")
  }

  /// The rate alone; with stages, the lowest and highest measured one. `nil` for a merged result whose plan has one
  /// part's rate.
  var askedRate: String? {
    guard let share else { return nil }
    let rates = measuredStageRates.map { $0 * share }
    guard let least = rates.min(), let most = rates.max() else {
      return share == 1 ? pace : plannedRate.map { Unit.perSecond.text($0 * share) }
    }
    return (least == most ? "" : "\(grouped(least)) to ") + Unit.perSecond.text(most)
  }

  /// The number of connections that were asked for; `nil` for a merged result whose plan has one part's number.
  var plannedConnections: Double? {
    guard let share, case .number(let count)? = result.plan["connections"], count >= 1, count.isFinite else {
      return nil
    }
    return share == 1 ? count : result.connections.asked.map(Double.init) ?? count * share
  }

  /// What the plan is of, and what the result is of.
  private enum Division {
    /// Both are of one run, or one stream.
    case none
    /// The plan is of the first of several segments.
    case firstPart
    /// The plan is of the whole stream, the result of these of its segments.
    case whole(segments: [Int], of: Int)
  }

  private var division: Division {
    guard case .text(let text)? = result.plan["segment"] else { return .none }
    guard result.plan["of_whole"] == .flag(true) else {
      return text == "all" || text.contains(",") ? .firstPart : .none
    }
    let pairs = text.split(separator: ",").map { $0.split(separator: "/").compactMap { Int($0) } }
    guard let all = pairs.first?.last, all > 1, pairs.allSatisfy({ $0.count == 2 && $0[1] == all }) else {
      return .none
    }
    return .whole(segments: Set(pairs.map { $0[0] }).sorted(), of: all)
  }

  /// The share of the plan that the result is of; `nil` if the plan is of the first of several parts.
  private var share: Double? {
    switch division {
    case .none: 1
    case .firstPart: nil
    case .whole(let segments, let all): Double(segments.count) / Double(all)
    }
  }

  private var pace: String {
    func rate(_ name: String) -> String? {
      guard case .text(let text)? = result.plan[name] else { return nil }
      guard text.hasSuffix("/s"), let value = Double(text.dropLast(2)), value.isFinite else { return text }
      return Unit.perSecond.text(value)
    }
    switch replaySpeed {
    case .none: break
    case .recorded(let speed): return speed == 1 ? "as recorded" : "\(decimal(speed, 6)) times as fast as recorded"
    case .taken: return "a recording as fast as taken"
    }
    if case .list(let stages)? = result.plan["stage"] {
      return stages.count == 1 ? "one stage" : "\(stages.count) stages"
    }
    if let rate = rate("rate") { return rate }
    if let rate = rate("rate_per_connection") { return "\(rate) per connection" }
    return "as fast as taken"
  }

  /// Whether it was to keep a pace.
  var hasSchedule: Bool { moreWith != nil }

  /// The option to change for a higher rate; `nil` if the run was as fast as possible.
  var moreWith: Prose? {
    switch replaySpeed {
    case .recorded: return .code("--speed") + ", or for all that is taken with " + .code("--speed max")
    case .taken: return nil
    case .none: break
    }
    return [("rate", "--rate"), ("rate_per_connection", "--rate-per-connection"), ("stage", "--stage")]
      .first { result.plan[$0.0] != nil }.map { .code($0.1) + ", or leave it out" }
  }

  /// The reason why the requested rate varied within the measured phase; `nil` if it was constant.
  var reasonToVary: String? {
    if case .recorded = replaySpeed { return "the mean of the recording, whose own rate changes" }
    return Set(measuredStageRates).count > 1 ? "the mean of all stages: the plan changes the rate" : nil
  }

  // MARK: replays

  private enum ReplaySpeed {
    case none
    case recorded(times: Double)
    case taken
  }

  private var replaySpeed: ReplaySpeed {
    guard result.plan["replay"] != nil else { return .none }
    switch result.plan["speed"] {
    case .text("max"): return .taken
    case .text(let text): return .recorded(times: Double(text).flatMap { $0.isFinite ? $0 : nil } ?? 1)
    case .number(let speed) where speed.isFinite: return .recorded(times: speed)
    default: return .recorded(times: 1)
    }
  }

  // MARK: stages

  /// A stage as a plan has it: `10s:500.0..30000.0/s`.
  private struct Stage {
    /// Seconds.
    var length: Double
    var from: Double
    var to: Double

    init?(_ text: String) {
      guard let colon = text.firstIndex(of: ":"), text.hasSuffix("/s"), let length = plannedTime(text[..<colon]) else {
        return nil
      }
      let rates = text[text.index(after: colon)...].dropLast(2).split(separator: "..").map { Double($0) ?? .nan }
      guard rates.count == 1 || rates.count == 2, rates.allSatisfy(\.isFinite) else { return nil }
      (self.length, from, to) = (length, rates[0], rates[rates.count - 1])
    }

    func rate(at time: Double) -> Double { from == to ? from : from + (to - from) * min(1, max(0, time / length)) }
  }

  /// The rate that the plan asks for, over seconds since the run's start; `nil` when it asks for none, or the result
  /// is of several segments.
  var asked: [Point]? {
    guard let share, result.plan["replay"] == nil, let begin = scheduleStart else { return nil }
    let end = min(measured.upperBound, length)
    guard end.isFinite, end > begin else { return nil }
    if case .list = result.plan["stage"] {
      guard !stages.isEmpty else { return nil }
      var points: [Point] = []
      var start = begin
      for stage in stages {
        let last = min(stage.length, end - start)
        guard last > 0 else { break }
        points += [Point(start, stage.from * share), Point(start + last, stage.rate(at: last) * share)]
        start += stage.length
      }
      return points
    }
    return plannedRate.map { [Point(begin, $0 * share), Point(end, $0 * share)] }
  }

  /// The plan's only rate, over all connections; `nil` without one.
  private var plannedRate: Double? {
    func rate(_ name: String) -> Double? {
      guard case .text(let text)? = result.plan[name], text.hasSuffix("/s") else { return nil }
      return Double(text.dropLast(2)).flatMap { $0.isFinite ? $0 : nil }
    }
    if let rate = rate("rate") { return rate }
    guard let each = rate("rate_per_connection"), case .number(let count)? = result.plan["connections"],
      count >= 1, count.isFinite
    else { return nil }
    return each * count
  }

  /// The beginnings of the stages, in seconds since the run's start; empty with fewer than two.
  var stageStarts: [Double] {
    guard share != nil, result.plan["replay"] == nil, stages.count > 1, let begin = scheduleStart else { return [] }
    var starts = [begin]
    for stage in stages.dropLast() { starts.append((starts.last ?? begin) + stage.length) }
    return starts
  }

  /// The schedule begins with the warm-up, or else with the measured phase.
  private var scheduleStart: Double? {
    regions.first { [RunPhase.warmUp.rawValue, RunPhase.measured.rawValue].contains($0.label) }?.from
  }

  /// The plan's stages; empty if one cannot be parsed.
  private var stages: [Stage] {
    guard case .list(let texts)? = result.plan["stage"] else { return [] }
    let stages = texts.compactMap { Stage($0) }
    return stages.count == texts.count ? stages : []
  }

  /// Seconds before the measured phase that the plan leaves out.
  var warmUpOfPlan: Double { time("warm_up") ?? 0 }

  /// Seconds of a setting.
  private func time(_ name: String) -> Double? {
    if case .text(let text)? = result.plan[name] { plannedTime(text[...]) } else { nil }
  }

  /// The rates at the beginning and end of each stage, within the measured phase; empty without stages, or if one
  /// cannot be parsed.
  private var measuredStageRates: [Double] {
    guard result.plan["replay"] == nil, !stages.isEmpty else { return [] }
    // The schedule begins with the warm-up.
    let begin = warmUpOfPlan
    let end = time("for").map { begin + $0 } ?? .infinity
    var (rates, start) = ([Double](), 0.0)
    for stage in stages {
      let (from, to) = (max(start, begin), min(start + stage.length, end))
      // Tolerates rounding in the sums of times.
      if to - from > 1e-6 { rates += [stage.rate(at: from - start), stage.rate(at: to - start)] }
      start += stage.length
    }
    return rates.isEmpty ? stages.flatMap { [$0.from, $0.to] } : rates
  }
}

/// The seconds of a time in a plan, `90s` or `250ms`; `nil` for anything else.
private func plannedTime(_ text: Substring) -> Double? {
  let number = text.prefix { $0.isNumber || $0 == "." }
  guard let value = Double(number), value.isFinite, let size = Units.times.size(of: text.dropFirst(number.count))
  else { return nil }
  return value * size / 1e9
}
