import Measurement
import SQLite

extension RunHistory {
  /// What the runs of a kind sent or received over time: of loads second by second, of simulators the mean of each run.
  /// Rates of runs at the same time add up.
  ///
  /// - Parameters:
  ///   - kind: `load` or `simulate`; `nil`: whichever the history has.
  ///   - source: the name of the history.
  ///   - maximumSteps: the most steps of the demand.
  /// - Throws: `HistoryError`, and `DemandFailure` for runs without rates, or of both kinds.
  package func demand(
    kind: String?, source: String, maximumSteps: Int = Demand.defaultMaximumSteps
  ) throws -> Demand {
    let kinds: Set<String>
    let intervals: [Demand.Interval]
    do {
      (kinds, intervals) = try database.perform { database in
        var kinds: Set<String> = []
        try database.forEachRow("SELECT DISTINCT kind FROM run WHERE kind IN ('load', 'simulate')") { row in
          if let kind = row[0].text { kinds.insert(kind) }
        }
        guard let wanted = kind ?? (kinds.count == 1 ? kinds.first : nil) else { return (kinds, []) }
        return try (
          kinds, wanted == "load" ? Self.seconds(database, maximumSteps) : Self.wholeRuns(database, maximumSteps)
        )
      }
    } catch let failure as DemandFailure {
      throw failure
    } catch {
      throw HistoryError(error, file: source)
    }
    if kind == nil, kinds.count > 1 {
      throw DemandFailure(
        "has loads and simulators, which may be of the same notifications: add kind=load or kind=simulate")
    }
    let isOfLoads = (kind ?? kinds.first) == "load"
    return try Demand(
      intervals, source: source,
      notes: [
        isOfLoads
          ? "the demand is what loads wrote, which were limited by their plans and gateways"
          : "the demand is the mean of each run of a simulator: peaks within a run are not in it"
      ], maximumSteps: maximumSteps)
  }

  /// The seconds of all loads. A second lasts until the next one of its run begins, which is not to the microsecond.
  private static func seconds(_ database: SQLConnection, _ maximum: Int) throws -> [Demand.Interval] {
    var samples = try intervals(
      database, maximum,
      sql: """
        SELECT run.id AS id, run.started AS started, json_extract(sample.value, '$.t_s') AS from_s, 1.0 AS length_s,
          json_extract(sample.value, '$.written') AS count
        FROM run, json_each(run.document, '$.series') AS sample
        WHERE run.kind = 'load' AND json_valid(run.document) ORDER BY run.id, sample.id
        """)
    for index in samples.indices.dropLast() where samples[index].run == samples[index + 1].run {
      let length = samples[index + 1].interval.from - samples[index].interval.from
      guard length > 0.5, length < 1.5 else { continue }
      let interval = samples[index].interval
      samples[index].interval = Demand.Interval(
        from: interval.from, to: samples[index + 1].interval.from,
        perS: interval.perS * (interval.to - interval.from) / length)
    }
    return samples.map(\.interval)
  }

  /// The runs of all simulators.
  private static func wholeRuns(_ database: SQLConnection, _ maximum: Int) throws -> [Demand.Interval] {
    try intervals(
      database, maximum,
      sql: """
        SELECT id, started, 0.0 AS from_s, json_extract(document, '$.ended') AS ended,
          json_extract(document, '$.gateway.received') AS count
        FROM run WHERE kind = 'simulate' AND json_valid(document)
        """
    ).map(\.interval)
  }

  private static func intervals(
    _ database: SQLConnection, _ maximum: Int, sql: String
  ) throws -> [(run: Int, interval: Demand.Interval)] {
    var intervals: [(run: Int, interval: Demand.Interval)] = []
    try database.forEachRow(sql) { row in
      guard let run = row["id"].integer, let start = row["started"].text.flatMap(unixSeconds),
        let from = row["from_s"].real, let count = row["count"].real, count >= 0
      else { return }
      let ended = row["ended"].text.flatMap(unixSeconds).map { $0 - start }
      guard let length = ended ?? row["length_s"].real, length > 0 else { return }
      guard intervals.count < maximum else {
        throw DemandFailure("has more than \(grouped(maximum)) steps; see --max-demand-steps")
      }
      intervals.append((Int(run), Demand.Interval(from: start + from, to: start + from + length, perS: count / length)))
    }
    return intervals
  }
}
