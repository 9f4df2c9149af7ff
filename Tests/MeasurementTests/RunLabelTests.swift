import Measurement
import Testing

@Suite("Labels of runs")
struct RunLabelTests {
  @Test(
    "A label is a name and any text", arguments: [("branch=main", "branch", "main"), ("_a1=b=c d", "_a1", "b=c d")])
  func parts(text: String, name: String, value: String) throws {
    let label = try RunLabel(text)
    #expect(label.name == name && label.value == value)
  }

  @Test(
    "Other texts are refused",
    arguments: [
      "branch", "=main", "1a=b", "a-b=c", "__a=b", "seed=1", "a=", "a=b\u{1b}[0m", "a=\u{85}",
      String(repeating: "a", count: 65) + "=b", "a=" + String(repeating: "b", count: 257),
    ])
  func refused(text: String) { #expect(throws: RunLabel.SyntaxError.self) { try RunLabel(text) } }

  @Test("Merged parts have the labels that all have")
  func merged() throws {
    func part(_ labels: [String: String]?) -> RunResult.Part {
      var result = RunResult()
      result.labels = labels
      return RunResult.Part("a", result)
    }
    let (a, b) = (part(["branch": "main", "node": "a"]), part(["branch": "main", "node": "b"]))
    #expect(try RunResult.merging([a, b]).labels == ["branch": "main"])
    #expect(try RunResult.merging([a, a]).labelText == "branch=main node=a")
    #expect(try RunResult.merging([a, part(nil)]).labels == nil && RunResult.merging([part(nil), a]).labels == nil)
  }
}
