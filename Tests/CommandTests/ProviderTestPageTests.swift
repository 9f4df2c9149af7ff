import Foundation
import TestSupport
import Testing

/// `Documentation/provider-tests.md`: what it tells people to type is typed.
@Suite("the page about tests of providers", .waiting)
struct ProviderTestPageTests {
  private static let page =
    (try? String(
      contentsOf: Command.traces.deletingLastPathComponent().appending(path: "Documentation/provider-tests.md"),
      encoding: .utf8)) ?? ""

  /// The blocks for the shell, in their order.
  private static var script: String {
    let blocks = page.components(separatedBy: "```").enumerated().filter { !$0.offset.isMultiple(of: 2) }
      .map { String($0.element.dropFirst("sh\n".count)) }
    // Those of steps are indented.
    return blocks.joined(separator: "\n").replacing(#/(?m)^ {3}/#, with: "")
  }

  @Test("What the page tells the shell works", .enabled(if: ExternalTool.isInstalled("jq"), "jq is not installed"))
  func shell() throws {
    try Command.inFolder { command in
      let head = """
        set -eu
        trap 'kill ${simulator:-} 2> /dev/null || true' EXIT
        apnscope() { "$apnscope" "$@"; }

        """
      // A function in the background is a shell of its own, which signals would end in its place.
      let script = ("\n" + Self.script).replacing("\napnscope simulate", with: "\n\"$apnscope\" simulate")
      try command.write(Array((head + script).utf8), "page.sh")
      let outcome = try command.shell("timeout 200 bash ./page.sh")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      #expect(
        outcome.output == "true\ntrue\ntrue\ntrue\ntrue\n" && outcome.errors == "", "\(outcome.output)\(outcome.errors)"
      )
      #expect(try command.read("result.xml").contains("tests=\"2\" failures=\"0\""))
    }
  }

  @Test("The page names each path of the endpoint's description")
  func paths() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      let paths = try #require(try gateway.get("/openapi.json").object()["paths"] as? [String: [String: Any]])
      #expect(paths.count > 10)
      for (path, operations) in paths {
        let row = Self.page.split(separator: "\n").filter { $0.hasPrefix("| `") }
          .filter { $0.contains("\(path.replacing("{token}", with: "TOKEN"))`") || $0.contains("\(path)?") }
        for method in operations.keys where method != "parameters" {
          #expect(row.contains { $0.contains(method.uppercased()) }, "\(method) \(path)")
        }
      }
      _ = try gateway.stop()
    }
  }
}
