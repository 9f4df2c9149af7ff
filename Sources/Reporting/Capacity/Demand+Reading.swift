import Bytes
import Measurement

/// The reason why a file has no demand, as a phrase after the file's name.
package struct DemandFailure: Error, Sendable, Equatable, CustomStringConvertible {
  package var description: String
  package init(_ description: String) { self.description = description }
}

extension Demand {
  /// The most steps of a demand by default; a week has 604,800 seconds.
  package static let defaultMaximumSteps = 1_000_000

  private static func tooMany(_ maximum: Int) -> DemandFailure {
    DemandFailure("has more than \(grouped(maximum)) steps; see --max-demand-steps")
  }

  /// Intervals that may overlap, where rates add up.
  struct Interval {
    var from: Double
    var to: Double
    var perS: Double
  }

  // MARK: an inspection

  /// The notifications that a recording shows, second by second.
  ///
  /// - Parameters:
  ///   - report: an inspection of the whole recording, with counts.
  ///   - source: the name of its file.
  package init(_ report: InspectionReport, source: String, maximumSteps: Int = Self.defaultMaximumSteps)
    throws(DemandFailure)
  {
    guard let sent = report.counts?.sentPerSecond else {
      throw DemandFailure(
        "has no notifications by second ('counts'): it was written by apnscope 0.1, or before its reading had ended; inspect the recording again"
      )
    }
    guard let first = sent.values.first, let last = sent.values.last else {
      throw DemandFailure("has no notifications with times")
    }
    guard sent.values.count == sent.counts.count, sent.counts.allSatisfy({ $0 >= 0 }),
      zip(sent.values, sent.values.dropFirst()).allSatisfy({ $0 < $1 })
    else { throw DemandFailure("has notifications by second that are out of order") }
    var steps: [(fromS: Double, perS: Double)] = []
    for (index, second) in sent.values.enumerated() {
      steps.append((Double(second) - Double(first), Double(sent.counts[index])))
      let next = index + 1 < sent.values.count ? sent.values[index + 1] : second
      if Double(next) - Double(second) > 1 { steps.append((Double(second) - Double(first) + 1, 0)) }
      guard steps.count <= maximumSteps else { throw Self.tooMany(maximumSteps) }
    }
    let demand = Demand(
      steps: steps, endS: Double(last) - Double(first) + 1, source: source, origin: .inspection,
      started: Self.time(Double(first)), errorShare: Self.errorShare(report), notes: Self.notes(on: report, sent))
    guard let demand else { throw DemandFailure("has no usable notifications by second") }
    self = demand
  }

  private static func errorShare(_ report: InspectionReport) -> Double? {
    let seen = Double(report.fates.accepted) + Double(report.fates.rejected)
    return seen > 0 ? Double(report.fates.rejected) / seen : nil
  }

  private static func notes(on report: InspectionReport, _ sent: InspectionReport.Values) -> [String] {
    var notes: [String] = []
    if let selection = report.selection {
      notes.append("the demand is a selection of the recording: \(selection.joined(separator: " "))")
    }
    if let shard = report.counts?.shard {
      notes.append("the demand is part \(shard) of the recording")
    }
    let counted = sent.counts.reduce(0.0) { $0 + Double($1) }
    let missing = Double(report.summary.notifications) - counted
    if missing > 0 {
      notes.append("\(grouped(missing)) notifications of the recording have no second, and are not in the demand")
    }
    if report.summary.undecryptedConnections > 0 {
      notes.append(
        "what \(Reporting.counted(report.summary.undecryptedConnections, "undecrypted connection")) carried is not in the demand"
      )
    }
    if report.missingBytes > 0 {
      notes.append("\(Unit.bytes.text(Double(report.missingBytes))) are missing in the recording, and in the demand")
    }
    return notes
  }

  // MARK: a table

  /// A table as CSV: a time and a rate a line, each rate from its time until the next one's, and the last one for as
  /// long as the one before it.
  ///
  /// A first line may name the columns: `time` (UTC, RFC 3339) or `seconds`, and `rate` (notifications a second);
  /// other columns are left out. Without it they are a time of either kind and the rate.
  package init(csv bytes: [UInt8], source: String, maximumSteps: Int = Self.defaultMaximumSteps) throws(DemandFailure) {
    var columns: (time: Int, rate: Int)?
    var times: [Double] = []
    var rates: [Double] = []
    var isOfCalendar = false
    for (index, line) in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
      let line = line.last == 0x0D ? line.dropLast() : line
      if line.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) || line.first == UInt8(ascii: "#") { continue }
      guard line.count <= Self.longestLine else {
        throw DemandFailure("line \(index + 1): is longer than \(Self.longestLine) bytes")
      }
      let cells = Self.cells(line)
      guard let places = columns else {
        if let named = try Self.names(cells, line: index + 1) {
          columns = named
          continue
        }
        columns = (0, 1)
        try Self.take(cells, (0, 1), line: index + 1, &times, &rates, &isOfCalendar)
        continue
      }
      try Self.take(cells, places, line: index + 1, &times, &rates, &isOfCalendar)
      guard times.count <= maximumSteps else { throw Self.tooMany(maximumSteps) }
    }
    guard let first = times.first, let last = times.last, times.count > 1 else {
      throw DemandFailure("needs two lines at least, each with a time and a rate")
    }
    let steps = zip(times, rates).map { (fromS: $0 - first, perS: $1) }
    let demand = Demand(
      steps: steps, endS: last - first + (last - times[times.count - 2]), source: source, origin: .table,
      started: isOfCalendar ? Self.time(first) : nil, notes: Self.notes(onTimes: times))
    guard let demand else { throw DemandFailure("has times that are too far apart") }
    self = demand
  }

  private static let longestLine = 10_000
  /// Seconds that a line may last without a note: who sends for minutes sees seconds, not hours.
  private static let coarse = 60.0

  private static func notes(onTimes times: [Double]) -> [String] {
    let longest = zip(times, times.dropFirst()).map { $1 - $0 }.max() ?? 0
    guard longest > coarse else { return [] }
    return [
      "a line of the demand lasts up to \(Unit.seconds.text(longest)): if its rate is a mean, peaks within it are not seen"
    ]
  }

  private static func cells(_ line: ArraySlice<UInt8>) -> [String] {
    line.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map { cell in
      var cell = cell
      func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
      while let byte = cell.first, isSpace(byte) { cell = cell.dropFirst() }
      while let byte = cell.last, isSpace(byte) { cell = cell.dropLast() }
      if cell.count >= 2, cell.first == UInt8(ascii: "\""), cell.last == UInt8(ascii: "\"") {
        cell = cell.dropFirst().dropLast()
      }
      return String(decoding: cell, as: UTF8.self)
    }
  }

  /// The columns that a first line names; `nil`: it begins with a time.
  private static func names(_ cells: [String], line: Int) throws(DemandFailure) -> (time: Int, rate: Int)? {
    if let first = cells.first, value(first) != nil { return nil }
    let names = cells.map { $0.lowercased() }
    guard let time = names.firstIndex(where: ["time", "seconds"].contains), let rate = names.firstIndex(of: "rate")
    else {
      throw DemandFailure(
        "line \(line): expected the columns 'time' or 'seconds', and 'rate', or a time and a rate, e.g. 2026-11-27T10:00:00Z,1200"
      )
    }
    return (time, rate)
  }

  private static func take(
    _ cells: [String], _ columns: (time: Int, rate: Int), line: Int, _ times: inout [Double], _ rates: inout [Double],
    _ isOfCalendar: inout Bool
  ) throws(DemandFailure) {
    guard cells.count > max(columns.time, columns.rate) else {
      throw DemandFailure("line \(line): has no rate")
    }
    let (text, rateText) = (cells[columns.time], cells[columns.rate])
    guard let time = value(text) else {
      throw DemandFailure(
        "line \(line): expected seconds or a time as 2026-11-27T10:00:00Z (got '\(shown(text))')")
    }
    if times.isEmpty { isOfCalendar = time.isOfCalendar }
    guard time.isOfCalendar == isOfCalendar else {
      throw DemandFailure("line \(line): seconds and times are mixed")
    }
    if let last = times.last, time.seconds <= last {
      throw DemandFailure("line \(line): the time does not come after that of the line before ('\(shown(text))')")
    }
    guard let rate = Double(rateText), rate.isFinite, rate >= 0, rate <= highestRate else {
      throw DemandFailure("line \(line): expected notifications a second, e.g. 1200 (got '\(shown(rateText))')")
    }
    times.append(time.seconds)
    rates.append(rate)
  }

  private static let highestRate = 1e12
  /// Beyond it, seconds of UNIX time cannot be told apart.
  private static let farthestSecond = 1e12

  private static func value(_ text: String) -> (seconds: Double, isOfCalendar: Bool)? {
    if let seconds = unixSeconds(text) { return (seconds, true) }
    guard let seconds = Double(text), seconds.isFinite, abs(seconds) <= farthestSecond else { return nil }
    return (seconds, false)
  }

  /// A cell in a message: without control characters, and not much of it.
  private static func shown(_ text: String) -> String { ControlCharacters.escaped(String(text.prefix(40))) }

  private static func time(_ seconds: Double) -> String? {
    guard seconds >= 0, seconds < 9e9 else { return nil }
    return rfc3339(Int64(seconds * 1e9))
  }

  // MARK: a history

  /// Rates of intervals that overlap.
  init(_ intervals: [Interval], source: String, notes: [String], maximumSteps: Int) throws(DemandFailure) {
    let starts = intervals.filter { $0.to > $0.from && $0.from.isFinite && $0.to.isFinite && $0.perS >= 0 }
    guard let first = starts.map(\.from).min(), let last = starts.map(\.to).max() else {
      throw DemandFailure("has no run with rates")
    }
    let changes =
      (starts.map { (at: $0.from, by: $0.perS, open: 1) } + starts.map { (at: $0.to, by: -$0.perS, open: -1) })
      .sorted { $0.at < $1.at }
    var steps: [(fromS: Double, perS: Double)] = []
    var (rate, open) = (0.0, 0)
    for (index, change) in changes.enumerated() {
      rate += change.by
      open += change.open
      // Sums of rates that are no whole numbers leave a rest.
      if open == 0 { rate = 0 }
      if index + 1 < changes.count, changes[index + 1].at == change.at { continue }
      if change.at < last { steps.append((change.at - first, max(0, rate))) }
      guard steps.count <= maximumSteps else { throw Self.tooMany(maximumSteps) }
    }
    let demand = Demand(
      steps: steps, endS: last - first, source: source, origin: .history, started: Self.time(first), notes: notes)
    guard let demand else { throw DemandFailure("has runs whose times are not usable") }
    self = demand
  }
}
