import Measurement
import Testing

@Suite("Failed attempts to connect")
struct ConnectFailureWarningTests {
  private func connections(_ failures: [String: Int]?) -> RunResult.Connections {
    var connections = RunResult.Connections()
    (connections.attempted, connections.failed, connections.failures) = (20, 9, failures)
    return connections
  }

  @Test("No reason was counted, or no attempt failed")
  func none() {
    for failures in [nil, [:], ["refused": 0]] as [[String: Int]?] {
      #expect(connections(failures).failureWarning == nil && connections(failures).commonestFailure == nil)
    }
  }

  @Test(
    "Reasons come with the commonest first, the same counts by name, and no more than three",
    arguments: [
      (["refused": 9], "refused"), (["refused": 9, "reset": 0], "refused"),
      (["refused": 4, "timed out": 5], "5 x timed out, 4 x refused"),
      (["c": 3, "a": 3, "b": 3], "3 x a, 3 x b, 3 x c"),
      (["a": 1, "b": 2, "c": 3, "d": 4], "4 x d, 3 x c, 2 x b, 1 for other reasons"),
      (["a": 1, "b": 2, "c": 3, "d": 4, "e": 1], "4 x d, 3 x c, 2 x b, 2 for other reasons"),
    ])
  func reasons(failures: [String: Int], text: String) {
    #expect(connections(failures).failureWarning == "9 of 20 attempts to connect failed: " + text)
  }

  @Test("The commonest is the first of them")
  func commonest() {
    let commonest = connections(["a": 1, "b": 4, "c": 4]).commonestFailure
    #expect(commonest?.reason == "b" && commonest?.count == 4)
  }
}
