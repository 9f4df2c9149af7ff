import Foundation
import Measurement
import Reporting
import SQLite
import Testing

@Suite("History")
struct RunHistoryTests {
  private func inFolder(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apnscope-history-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder.appending(path: "runs.sqlite").path)
  }

  private func run(_ rate: Double, version: String = "1") -> RunResult {
    var result = RunResult()
    result.started = "2026-11-21T10:00:00.000Z"
    result.environment.apnscope = version
    result.environment.host = "lab"
    result.environment.command = ["apnscope", "load"]
    result.measuredS = 1
    result.rates.acceptedPerS = rate
    return result
  }

  private func execute(_ path: String, _ sql: String) throws {
    try SQLDatabase(path: path, label: "test").perform { try $0.execute(sql) }
  }

  private func kind(_ body: () throws -> Void) -> HistoryError.Kind? {
    do { try body() } catch { return (error as? HistoryError)?.kind }
    return nil
  }

  @Test("What is appended is there again, in order, with its figures and its document")
  func appended() throws {
    try inFolder { path in
      for rate in [10.0, 20, 30] {
        // Each by a process of its own, as it were.
        try RunHistory(appendingTo: path).append(run(rate), document: "{\"rate\":\(rate)}")
      }
      var capacity = CapacityDocument()
      capacity.sustainedPerS = 7
      try RunHistory(appendingTo: path).append(capacity, document: "{}")
      let history = try RunHistory(reading: path)
      let runs = try history.runs()
      #expect(runs.map(\.number) == [1, 2, 3, 4])
      #expect(runs.map(\.kind) == ["load", "load", "load", "capacity"])
      #expect(runs.prefix(3).map { $0.figures["accepted_per_s"] } == [10, 20, 30])
      #expect(runs[3].figures == ["sustained_per_s": 7])
      #expect(runs[0].host == "lab" && runs[0].command == "apnscope load")
      // No errors: no figure, and not 0.
      #expect(runs[0].figures["error_p99"] == nil)
      #expect(try history.runs(kind: "load", last: 2).map(\.number) == [2, 3])
      #expect(try history.document(2) == "{\"rate\":20.0}")
      #expect(try history.document(9) == nil)
    }
  }

  @Test("Files of others are left alone: no database, another program's, a newer history, no file")
  func refused() throws {
    try inFolder { path in
      #expect(kind { _ = try RunHistory(reading: path) } == .cannotOpen)
      #expect(!FileManager.default.fileExists(atPath: path))
      try Data(
        "no database, but text that is longer than a header, so that it is looked at in full: 0123456789 0123456789"
          .utf8
      )
      .write(to: URL(filePath: path))
      let before = try Data(contentsOf: URL(filePath: path))
      #expect(kind { _ = try RunHistory(appendingTo: path) } == .notAHistory)
      #expect(kind { _ = try RunHistory(reading: path) } == .notAHistory)
      #expect(try Data(contentsOf: URL(filePath: path)) == before)
      try FileManager.default.removeItem(atPath: path)
      try execute(path, "CREATE TABLE run (id INTEGER)")
      #expect(kind { _ = try RunHistory(appendingTo: path) } == .notAHistory)
      try FileManager.default.removeItem(atPath: path)
      _ = try RunHistory(appendingTo: path)
      try execute(path, "PRAGMA user_version = 2")
      for attempt in [{ _ = try RunHistory(appendingTo: path) }, { _ = try RunHistory(reading: path) }] {
        #expect(kind(attempt) == .newerSchema)
      }
      #expect(kind { _ = try RunHistory(appendingTo: "/") } == .cannotOpen)
    }
  }

  @Test("A file from before a figure was known gets its column, and keeps its runs")
  func newFigure() throws {
    try inFolder { path in
      try RunHistory(appendingTo: path).append(run(10), document: "{}")
      try execute(path, "ALTER TABLE run DROP COLUMN loop_lag_p99")
      #expect(try RunHistory(reading: path).runs().count == 1)
      try RunHistory(appendingTo: path).append(run(20), document: "{}")
      #expect(try RunHistory(reading: path).runs().map { $0.figures["accepted_per_s"] } == [10, 20])
    }
  }

  @Test("A history that another program holds is said to be locked", .timeLimit(.minutes(5)))
  func locked() throws {
    try inFolder { path in
      let history = try RunHistory(appendingTo: path)
      // Another program, whose lock is held from one access to another.
      let other = try SQLDatabase(path: path, label: "test")
      try other.perform { try $0.execute("BEGIN EXCLUSIVE") }
      #expect(kind { try history.append(run(1), document: "{}") } == .locked)
      try other.perform { try $0.execute("COMMIT") }
      try history.append(run(1), document: "{}")
    }
  }

  @Test("Runs of 0.1.0 are told from later ones by their documents")
  func measures() throws {
    try inFolder { path in
      let history = try RunHistory(appendingTo: path)
      try history.append(run(10), document: #"{"kind":"load"}"#)
      try history.append(run(20), document: #"{"measured_by":2}"#)
      for odd in ["no JSON", #"{"measured_by":"two"}"#, #"{"measured_by":9}"#] {
        try history.append(run(30), document: odd)
      }
      try history.append(CapacityDocument(), document: "{}")
      let runs = try history.runs()
      #expect(runs.map(\.hasOldMeasure) == [true, false, true, true, true, false])
      #expect(runs.map(\.kindAndState).prefix(2) == ["load, old measure", "load"])
      #expect(RunHistory.mixesMeasures(runs) && !RunHistory.mixesMeasures([runs[0], runs[2], runs[5]]))
    }
  }

  @Test("A median is of runs of one measure, and the others have no ratio to it")
  func mixed() {
    func run(_ number: Int, _ rate: Double, measuredBy: Int?) -> RunHistory.Run {
      RunHistory.Run(
        number: number, kind: "load", started: "s", apnscope: "1", host: "h", command: "",
        figures: ["accepted_per_s": rate], measuredBy: measuredBy)
    }
    let runs = [run(1, 900, measuredBy: nil), run(2, 100, measuredBy: 2), run(3, 300, measuredBy: 2)]
    let chart = HistoryChart("accepted_per_s", runs)
    #expect(chart.median == 200 && chart.comparable.count == 2)
    #expect(chart.ratioToMedian(runs[0], 900, in: chart.groups) == nil)
    #expect(chart.ratioToMedian(runs[1], 100, in: chart.groups) == 0.5)
    #expect(chart.chart.events.map(\.label) == ["changes of measure"])
    let html = chart.page(of: "runs.sqlite").html
    #expect(html.contains("load, old measure") && html.contains(RunHistory.noteOnMeasures))
    // Alone they have one.
    let old = HistoryChart("accepted_per_s", Array(runs.prefix(1)))
    #expect(old.median == 900 && old.ratioToMedian(runs[0], 900, in: old.groups) == 1)
    #expect(!old.page(of: "runs.sqlite").html.contains(RunHistory.noteOnMeasures))
  }

  @Test("Runs are found by their labels, and compared with those of the same plan and labels")
  func labels() throws {
    try inFolder { path in
      let history = try RunHistory(appendingTo: path)
      let labels: [[String: String]?] = [
        ["branch": "main"], ["branch": "x \"y'", "host": "a"], nil, ["branch": "main"],
      ]
      for (rate, labels) in zip([100.0, 50, 70, 300], labels) {
        var result = run(rate)
        result.labels = labels
        result.plan = ["rate": .text("1k/s")]
        try history.append(result, document: try result.jsonDocument())
      }
      try history.append(run(1), document: "no JSON")
      let runs = try history.runs()
      #expect(runs.map(\.labels) == ["branch=main", "branch=x \"y' host=a", "", "branch=main", ""])
      #expect(try history.runs(labels: [RunLabel("branch=main")]).map(\.number) == [1, 4])
      #expect(try history.runs(last: 1, labels: [RunLabel("branch=main")]).map(\.number) == [4])
      #expect(try history.runs(labels: [RunLabel("branch=x \"y'"), RunLabel("host=a")]).map(\.number) == [2])
      #expect(try history.runs(labels: [RunLabel("branch=main"), RunLabel("host=a")]).isEmpty)
      let chart = HistoryChart("accepted_per_s", runs)
      let groups = chart.groups
      #expect(groups.map(\.name) == ["A branch=main", "B branch=x \"y' host=a", "C", "D"])
      #expect(groups.map(\.median) == [200, 50, 70, 1] && groups.map(\.count) == [2, 1, 1, 1])
      #expect(chart.ratioToMedian(runs[0], 100, in: groups) == 0.5)
      #expect(chart.name(of: runs[3], in: groups) == "A branch=main")
    }
  }

  @Test("A figure over runs: its median, a bar for each, a chart with a point for each")
  func chart() throws {
    let runs = [10.0, 30, 20, 40].enumerated().map { index, rate in
      RunHistory.Run(
        number: index + 1, kind: "load", started: "s", apnscope: index < 2 ? "1" : "2", host: "h", command: "",
        figures: index == 2 ? [:] : ["accepted_per_s": rate])
    }
    let chart = HistoryChart("accepted_per_s", runs)
    #expect(chart.median == 30)
    #expect(chart.sparkline == "▁▆█")
    #expect(chart.chart.marks.allSatisfy { $0.points.map(\.x) == [1, 2, 4] })
    #expect(chart.chart.events.map(\.x) == [4])
    #expect(chart.page(of: "runs.sqlite").html.contains("30/s"))
    #expect(HistoryChart("accepted_per_s", []).sparkline == nil)
    #expect(HistoryChart("accepted_per_s", [runs[0], runs[0]]).sparkline == "▄▄")
  }
}
