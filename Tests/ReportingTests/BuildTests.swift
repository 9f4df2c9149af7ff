import Measurement
import Testing

@testable import Reporting

/// The commit of the apnscope that made a result.
@Suite("Commit of a result")
struct BuildTests {
  private func run(_ commit: String?) -> RunResult {
    var result = syntheticRun(seconds: 12, connections: 2)
    (result.environment.apnscope, result.environment.commit) = ("0.2.0", commit)
    return result
  }

  @Test("A report has the version with the commit where it is known, and without it where not")
  func report() {
    let known = RunReport(run("a1b2c3d")).page.markdown().text
    #expect(known.contains("apnscope 0.2.0 (a1b2c3d)"))
    let unknown = RunReport(run(nil)).page.markdown().text
    #expect(unknown.contains("apnscope 0.2.0") && !unknown.contains("0.2.0 ("))
  }

  @Test("Runs of two commits of one version are told apart")
  func compared() throws {
    func part(_ commit: String?) -> RunResult.Part { RunResult.Part("\(commit ?? "none").json", run(commit)) }
    let differences = Comparison([part("a1b2c3d")], [part("e4f5a6b+")]).differences
    #expect(differences.map(\.name) == ["apnscope"])
    #expect(differences.first?.a == ["0.2.0 (a1b2c3d)"] && differences.first?.b == ["0.2.0 (e4f5a6b+)"])
    #expect(Comparison([part("a1b2c3d")], [part("a1b2c3d")]).differences.isEmpty)
    #expect(Comparison([part("a1b2c3d")], [part(nil)]).differences.count == 1)
  }
}
