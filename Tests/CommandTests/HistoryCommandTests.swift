import Foundation
import TestSupport
import Testing

/// `load --history` and `apnscope history`.
@Suite("history", .waiting)
struct HistoryCommandTests {
  @Test("Runs are appended, listed, drawn, and given back")
  func runs() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--no-feedback"], in: command)
      for number in 1...3 {
        let outcome = try RunningProcess(
          Command.path,
          [
            "load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--count", "\(number)00",
            "--history", "runs.sqlite", "--output", "\(number).json", "--label", "number=\(number)", "branch=main",
          ] + LoadProcess.patience, in: command.folder
        ).end()
        #expect(outcome.status == 0, "\(outcome.errors)")
      }
      _ = try simulator.stop()
      let list = try command.run("history", "runs.sqlite")
      #expect(list.status == 0, "\(list.errors)")
      #expect(list.lines.count == 4 && list.lines[0].hasPrefix("run  started"))
      #expect(list.lines[0].contains("accepted_per_s") && !list.lines[0].contains("sustained_per_s"))
      let last = try command.run("history", "runs.sqlite", "--last", "2", "--figure", "accepted_per_s")
      #expect(last.lines[0].hasPrefix("accepted_per_s  ") && last.lines[0].hasSuffix(" of 2"))
      #expect(last.lines.filter { $0.first?.isNumber == true }.map { $0.prefix(1) } == ["2", "3"])
      // Plans with another --count are compared apart.
      #expect(
        last.lines[1].hasPrefix("  A branch=main number=2  median ") && last.lines[2].hasPrefix("  B branch=main"))
      #expect(list.lines[3].hasSuffix("  branch=main number=3"))
      let main = try command.run("history", "runs.sqlite", "--label", "branch=main", "number=3")
      #expect(main.lines.count == 2 && main.lines[1].hasPrefix("3 "))
      let different = try command.run("compare", "1.json", "2.json").output
      #expect(different.contains("branch=main number=1"), "\(different)")
      let shown = try command.run("history", "runs.sqlite", "--show", "2")
      #expect(try shown.output == command.read("2.json"))
      #expect(try command.run("history", "runs.sqlite", "--kind", "capacity").output == "no runs\n")
      for name in ["chart.svg", "page.html"] {
        let drawn = try command.run("history", "runs.sqlite", "--figure", "per_write_mean", "--output", name)
        #expect(drawn.status == 0)
        #expect(try command.read(name).contains("per_write_mean"))
      }
      #expect(try command.read("chart.svg").hasPrefix("<svg"))
    }
  }

  @Test("A simulator appends its ledger, which is listed, given back, and laid over a capacity as a demand")
  func ledgers() throws {
    try SimulatorProcess.inFolder { command in
      for number in 1...2 {
        let simulator = try SimulatorProcess(["--no-feedback", "--history", "runs.sqlite"], in: command)
        let load = try RunningProcess(
          Command.path,
          [
            "load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--rate", "\(number)00/s",
            "--for", "2s", "--history", "runs.sqlite",
          ] + LoadProcess.patience, in: command.folder
        ).end()
        #expect(load.status == 0, "\(load.errors)")
        let ledger = try simulator.stop()
        #expect(ledger.gateway.accepted == number * 200)
      }
      let list = try command.run("history", "runs.sqlite", "--kind", "simulate")
      #expect(list.status == 0 && list.lines.count == 3, "\(list.errors)")
      #expect(list.lines[0].contains("rejected_share") && !list.lines[0].contains("send_lag_p99"))
      let shown = try command.run("history", "runs.sqlite", "--show", "2")
      try command.write(Array(shown.output.utf8), "ledger.json")
      try expectValid(file: "ledger.json", .ledger, in: command)
      #expect(try command.run("history", "runs.sqlite", "--figure", "accepted_share").lines.count == 4)
      let capacity = Command.traces.deletingLastPathComponent().appending(path: "Reports/capacity/capacity.json").path
      let mixed = try command.run("report", capacity, "--demand", "runs.sqlite")
      #expect(mixed.status == 65 && mixed.errors.contains("kind=load or kind=simulate"), "\(mixed.errors)")
      for kind in ["load", "simulate"] {
        let demand = try command.run("report", capacity, "--demand", "runs.sqlite,kind=\(kind),factor=2")
        #expect(demand.status == 0 && demand.output.contains("runs.sqlite times 2: "), "\(demand.errors)")
        #expect(demand.output.contains("it fits: the peak, "), "\(demand.output)")
      }
      let before = try command.run("simulate", "--plain", "--gateway", "127.0.0.1:0", "--history", "ledger.json")
      #expect(before.status == 65 && before.errors.contains("not a history"), "\(before.errors)")
    }
  }

  @Test("What cannot be used is refused with a reason: 64, 65, 66 or 74; a load says so before it sends")
  func refused() throws {
    try SimulatorProcess.inFolder { command in
      try command.write(Array("text".utf8), "text.txt")
      for (arguments, status, text) in [
        (["history", "none.sqlite"], 66, "No such file"), (["history", "text.txt"], 65, "not a history"),
        (["history", "x", "--figure", "accepted_pers"], 64, "accepted_per_s"),
        (["history", "x", "--output", "a.svg"], 64, "--figure"),
        (["history", "x", "--figure", "per_write_mean", "--output", "a.png"], 64, ".svg"),
        (["history", "x", "--show", "1", "--last", "2"], 64, "cannot be combined"), (["history"], 64, "file"),
        (["load", "--identity", "ids", "--gateway", "127.0.0.1:1", "--history", "text.txt"], 65, "not a history"),
        (["load", "--identity", "ids", "--gateway", "127.0.0.1:1", "--history", "no/where"], 66, "no/where"),
      ] as [([String], Int32, String)] {
        let outcome = try RunningProcess(Command.path, arguments, in: command.folder).end()
        #expect(outcome.status == status, "\(arguments) \(outcome.errors)")
        #expect(outcome.errors.contains(text), "\(outcome.errors)")
      }
      #expect(try command.read("text.txt") == "text")
    }
  }
}
