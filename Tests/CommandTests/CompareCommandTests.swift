import Foundation
import Measurement
import TestSupport
import Testing

/// `apnscope compare`.
@Suite("compare", .waiting)
struct CompareCommandTests {
  private func write(
    _ rate: Double, _ name: String, in command: Command, host: String = "here",
    measuredBy: Int? = RunResult.currentMeasure
  ) throws {
    var result = RunResult()
    result.measuredBy = measuredBy
    result.environment.host = host
    result.measuredS = 10
    (result.rates.acceptedPerS, result.rates.writtenPerS, result.rates.writtenBytesPerS) = (rate, 0, 0)
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    try encoder.encode(result).write(to: command.folder.appending(path: name))
  }

  @Test("Two sides, parted by --; the main figures are judged, the others shown")
  func sides() throws {
    try Command.inFolder { command in
      for number in 1...5 {
        try write(1_000 + Double(number), "a\(number).json", in: command)
        try write(500 + Double(number), "b\(number).json", in: command)
      }
      let outcome = try command.shell("$apnscope compare a?.json -- b?.json")
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.lines[0] == "A  5 runs: a1.json a2.json a3.json a4.json …")
      let row = try #require(outcome.lines.first { $0.hasPrefix("accepted_per_s") })
      #expect(
        row.split(separator: " ") == ["accepted_per_s", "1,003/s", "503/s", "0.501", "0.008", "0.008", "worse"],
        "\(row)")
      let others = try #require(outcome.lines.firstIndex(of: "shown without a verdict"))
      #expect(outcome.lines[others + 1].split(separator: " ") == ["written_per_s", "0/s", "0/s", "1.000", "-", "-"])
      let chosen = try command.shell(
        "$apnscope compare --figure written_per_s --figure accepted_per_s a?.json -- b?.json")
      #expect(chosen.lines.contains { $0.hasPrefix("written_per_s") && $0.hasSuffix("1.000  ~") }, "\(chosen.output)")
      #expect(chosen.lines.contains { $0.hasPrefix("accepted_per_s") && $0.hasSuffix("0.008     0.016  worse") })
      let json = try command.shell("$apnscope compare a?.json --format json -- b?.json")
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
      #expect(object["kind"] as? String == "compare")
      let figures = try #require(object["figures"] as? [[String: Any]])
      #expect(figures.first?["judgement"] as? String == "worse")
      #expect(figures.first?["p_holm"] as? Double == figures.first?["p"] as? Double)
      #expect(figures.last?["judgement"] as? String == "not_judged" && figures.last?["p"] == nil)
      #expect((figures.first?["a"] as? [String: Any])?["values"] as? [Double] == [1_001, 1_002, 1_003, 1_004, 1_005])
    }
  }

  @Test("The page of a comparison says the verdict first, and has both sides in every chart")
  func page() throws {
    try Command.inFolder { command in
      for number in 1...5 {
        try write(1_000 + Double(number), "a\(number).json", in: command)
        try write(500 + Double(number), "b\(number).json", in: command)
      }
      let outcome = try command.shell("$apnscope compare --output page.html a?.json -- b?.json")
      #expect(outcome.status == 0, "\(outcome.errors)")
      let page = try command.read("page.html")
      let body = try #require(page.components(separatedBy: "<main>").last)
      #expect(
        body.contains("<p class=\"callout bad\"><span class=\"sign\">✗</span>B is worse in accepted_per_s (0.501"))
      let charts = body.components(separatedBy: "data-chart=\"").dropFirst()
      #expect(charts.count >= 1)
      for chart in charts {
        #expect(chart.contains("&quot;name&quot;:&quot;A&quot;") && chart.contains("&quot;name&quot;:&quot;B&quot;"))
      }
      #expect(page.contains("apnscope compare --output page.html a1.json"))
      // Without a word of the verdict where there is none.
      let pair = try command.shell("$apnscope compare --output pair.html a1.json b1.json")
      #expect(pair.status == 0, "\(pair.errors)")
      let words = try command.read("pair.html")
      #expect(words.contains("Nothing can be judged: accepted_per_s cannot be judged: a verdict takes 5 runs"))
      #expect(!words.contains("B is worse") && !words.contains("callout good"))
      let wrong = try command.shell("$apnscope compare --output page.pdf a1.json b1.json")
      #expect(wrong.status == 64 && wrong.errors.contains("ending in .html"))
      let same = try command.shell("cp a1.json a.html; $apnscope compare --output a.html a.html b1.json")
      #expect(same.status == 64, "an input is not overwritten")
    }
  }

  @Test("Two files need no --; that they are too few and what differs is said")
  func pair() throws {
    try Command.inFolder { command in
      try write(10, "a.json", in: command)
      try write(20, "b.json", in: command, host: "there")
      for arguments in ["a.json b.json", "a.json -- b.json"] {
        let outcome = try command.shell("$apnscope compare \(arguments)")
        #expect(outcome.status == 0)
        #expect(outcome.output.contains("2.000  -         -  ?"))
        #expect(outcome.output.contains("! at least 5 runs of each side"))
        #expect(outcome.lines.contains("  host  here  ->  there"))
        #expect(outcome.output.contains("! the runs were made on different machines: host"))
      }
    }
  }

  @Test("Runs of 0.1.0 and later ones are shown, not judged, and what they are is said")
  func measures() throws {
    try Command.inFolder { command in
      for number in 1...5 {
        try write(1_000, "a\(number).json", in: command, measuredBy: nil)
        try write(500, "b\(number).json", in: command)
      }
      let outcome = try command.shell("$apnscope compare a?.json -- b?.json")
      #expect(outcome.lines.contains { $0.hasPrefix("accepted_per_s") && $0.hasSuffix("0.500  -         -  ?") })
      #expect(
        outcome.output.contains(
          "! not judged: figures are computed differently by apnscope 0.1.0 (a1.json a2.json a3.json …) and apnscope 0.2.0 or later (b1.json"
        ), "\(outcome.output)")
    }
  }

  @Test("--fail-on: a figure that is worse fails, and one that cannot be judged, too")
  func failing() throws {
    try Command.inFolder { command in
      for number in 1...5 {
        try write(1_000 + Double(number), "a\(number).json", in: command)
        try write(500 + Double(number), "b\(number).json", in: command)
      }
      let figure = "--figure accepted_per_s --junit out.xml"
      func xml() throws -> String { try String(contentsOf: command.folder.appending(path: "out.xml"), encoding: .utf8) }
      let worse = try command.shell("$apnscope compare --fail-on worse \(figure) a?.json -- b?.json")
      #expect(
        worse.status == 99 && worse.errors.contains("accepted_per_s: worse: 0.50 times as much"), "\(worse.errors)")
      #expect(try xml().contains("<failure message=\"worse: 0.50 times as much\"/>"))
      let better = try command.shell("$apnscope compare --fail-on worse \(figure) b?.json -- a?.json")
      #expect(better.status == 0 && better.errors.isEmpty, "\(better.errors)")
      #expect(try xml().contains("tests=\"1\" failures=\"0\""))
      let different = try command.shell("$apnscope compare --fail-on different \(figure) b?.json -- a?.json")
      #expect(different.status == 99 && different.errors.contains("accepted_per_s: better"))
      let same = try command.shell("$apnscope compare --fail-on different \(figure) a?.json -- a?.json")
      #expect(same.status == 0, "\(same.errors)")
      let few = try command.shell("$apnscope compare --fail-on worse \(figure) a?.json -- b1.json")
      #expect(few.status == 99 && few.errors.contains("cannot be judged: a verdict takes 5 runs"), "\(few.errors)")
      let missing = try command.shell("$apnscope compare --fail-on worse --figure send_lag_p99 a?.json -- b?.json")
      #expect(missing.status == 99 && missing.errors.contains("send_lag_p99: cannot be judged"), "\(missing.errors)")
      // Without --fail-on it only tells.
      #expect(try command.shell("$apnscope compare --junit out.xml a?.json -- b?.json").status == 0)
      #expect(try xml().contains("message=\"worse: "))
    }
  }

  @Test("What cannot be compared is refused: 64, 65 or 66")
  func refused() throws {
    try Command.inFolder { command in
      try write(10, "a.json", in: command)
      try command.write(Array("{}".utf8), "empty.json")
      for (arguments, status, text) in [
        ("a.json", 64, "--"), ("a.json a.json a.json", 64, "--"), ("-- a.json", 64, "before --"),
        ("a.json --fromat json -- a.json", 64, "--fromat"), ("a.json --", 64, "after --"),
        ("--figure accepted_pers a.json a.json", 64, "accepted_per_s"),
        ("--figure sustained_per_s a.json a.json", 64, "Unknown figure"), ("a.json -- empty.json", 65, "empty.json"),
        ("a.json none.json", 66, "none.json"),
      ] as [(String, Int32, String)] {
        let outcome = try command.shell("$apnscope compare \(arguments)")
        #expect(outcome.status == status, "\(arguments): \(outcome.errors)")
        #expect(outcome.errors.contains(text), "\(outcome.errors)")
        #expect(outcome.output == "")
      }
    }
  }

  private func write(_ ledger: Ledger, _ name: String, in command: Command) throws {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    try encoder.encode(ledger).write(to: command.folder.appending(path: name))
  }

  @Test("Ledgers are compared as loads are; both kinds together are not, nor by figures of the other")
  func ledgers() throws {
    try Command.inFolder { command in
      for number in 1...5 {
        for (side, rejected) in [("a", 10 + number), ("b", 30 + number)] {
          var ledger = Ledger()
          ledger.started = "2026-11-27T10:00:0\(number).\(side == "a" ? "1" : "2")00Z"
          (ledger.gateway.received, ledger.gateway.accepted) = (1_000, 1_000 - rejected)
          ledger.gateway.rejected = ["8": rejected]
          try write(ledger, "\(side)\(number).json", in: command)
        }
      }
      try write(1_000, "run.json", in: command)
      let outcome = try command.shell("$apnscope compare a?.json -- b?.json")
      #expect(outcome.status == 0 && outcome.lines[0].hasPrefix("A  5 ledgers: a1.json"), "\(outcome.errors)")
      #expect(outcome.lines.contains { $0.hasPrefix("rejected_share") && $0.hasSuffix("worse") }, "\(outcome.output)")
      let json = try command.run("compare", "a1.json", "b1.json", "--format", "json")
      #expect(json.output.contains("\"of\" : \"simulate\""), "\(json.output)")
      #expect(try command.shell("$apnscope compare --fail-on worse a?.json -- b?.json").status == 99)
      #expect(
        try command.shell("$apnscope compare --fail-on worse --figure accepted_share b?.json -- a?.json").status == 0)
      for (arguments, status, text) in [
        ("a1.json run.json", 65, "a1.json: is a ledger of 'simulate', and run.json is a result of 'load'"),
        ("run.json a1.json", 65, "only results of one kind are compared"),
        ("a1.json none.json", 66, "none.json"), ("--figure send_lag_p99 a1.json b1.json", 64, "ledgers have no figure"),
        ("--figure rejected_share run.json run.json", 64, "results of a load have no figure 'rejected_share'"),
        ("--figure rejectedshare a1.json b1.json", 64, "Did you mean 'rejected_share'?"),
      ] as [(String, Int32, String)] {
        let outcome = try command.shell("$apnscope compare \(arguments)")
        #expect(outcome.status == status && outcome.errors.contains(text), "\(arguments): \(outcome.errors)")
      }
    }
  }
}
