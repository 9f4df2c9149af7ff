import Foundation
import Measurement
import TestSupport
import Testing

/// `apnscope compare`.
@Suite("compare", .waiting)
struct CompareCommandTests {
  private func write(_ rate: Double, _ name: String, in command: Command, host: String = "here") throws {
    var result = RunResult()
    result.environment.host = host
    result.measuredS = 10
    result.rates.acceptedPerS = rate
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    try encoder.encode(result).write(to: command.folder.appending(path: name))
  }

  @Test("Two sides, parted by --")
  func sides() throws {
    try Command.inFolder { command in
      for number in 1...4 {
        try write(1_000 + Double(number), "a\(number).json", in: command)
        try write(500 + Double(number), "b\(number).json", in: command)
      }
      let outcome = try command.shell("$apnscope compare a?.json -- b?.json")
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.lines[0] == "A  4 runs: a1.json a2.json a3.json a4.json")
      let row = try #require(outcome.lines.first { $0.hasPrefix("accepted_per_s") })
      #expect(row.split(separator: " ") == ["accepted_per_s", "1,003/s", "503/s", "0.501", "0.029", "worse"], "\(row)")
      let json = try command.shell("$apnscope compare a?.json --format json -- b?.json")
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
      #expect(object["kind"] as? String == "compare")
      let figures = try #require(object["figures"] as? [[String: Any]])
      #expect(figures.first?["judgement"] as? String == "worse")
      #expect((figures.first?["a"] as? [String: Any])?["values"] as? [Double] == [1_001, 1_002, 1_003, 1_004])
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
        #expect(outcome.output.contains("2.000  -  ?"))
        #expect(outcome.output.contains("! need at least 4 runs a side"))
        #expect(outcome.lines.contains("  host  here  ->  there"))
        #expect(outcome.output.contains("! the runs were not made in the same place: host"))
      }
    }
  }

  @Test("What cannot be compared is refused: 64, 65 or 66")
  func refused() throws {
    try Command.inFolder { command in
      try write(10, "a.json", in: command)
      try command.write(Array("{}".utf8), "empty.json")
      for (arguments, status, text) in [
        ("a.json", 64, "--"), ("a.json a.json a.json", 64, "--"), ("-- a.json", 64, "before --"),
        ("a.json --fromat json -- a.json", 64, "--fromat"), ("a.json --", 64, "behind --"),
        ("a.json -- empty.json", 65, "empty.json"), ("a.json none.json", 66, "none.json"),
      ] as [(String, Int32, String)] {
        let outcome = try command.shell("$apnscope compare \(arguments)")
        #expect(outcome.status == status, "\(arguments): \(outcome.errors)")
        #expect(outcome.errors.contains(text), "\(outcome.errors)")
        #expect(outcome.output == "")
      }
    }
  }
}
