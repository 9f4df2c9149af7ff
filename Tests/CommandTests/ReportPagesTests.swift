import Foundation
import TestSupport
import Testing

/// The pages of `apnscope report`, as a browser shows them.
@Suite("report: pages", .waiting)
struct ReportPagesTests {
  /// What `report` makes a page of: the project's own results and traces. A name stands for a file in the project.
  static let inputs = [
    ["Reports/benchmark/run.json", "--ledger", "Reports/benchmark/ledger.json"],
    ["Reports/benchmark/run.json", "--baseline", "Reports/benchmark/run.json"],
    ["Reports/capacity/capacity.json"],
    ["Traces/plain-error.pcap"],
    ["Traces/tls-late-error.pcap.gz", "--keys", "Traces/tls-late-error.pcap.gz.keys"],
    ["Traces/known-bad-and-errors.pcap"],
  ]

  private func inFolderWithPage<T>(_ input: [String], _ body: (Command) throws -> T) throws -> T {
    try Command.inFolder { command in
      let project = Command.traces.deletingLastPathComponent()
      let arguments = input.map { $0.hasPrefix("--") ? $0 : project.appending(path: $0).path }
      let outcome = try command.shell("'\(Command.path)' report '\(arguments.joined(separator: "' '"))' --output out")
      #expect(outcome.status == 0, "\(outcome.errors)")
      return try body(command)
    }
  }

  @Test("They are valid HTML", .enabled(if: ExternalTool.isInstalled("tidy")), arguments: inputs)
  func valid(input: [String]) throws {
    try inFolderWithPage(input) { command in
      let tidy = try command.shell("tidy -q -e out/report.html")
      #expect(tidy.status == 0 && tidy.errors == "", "\(tidy.errors)")
    }
  }

  /// Looks at every chart of a page and says what is wrong in the page's title.
  private static let inspection = """
    <script>
    addEventListener('load', () => {
      const wrong = [];
      const width = document.documentElement.scrollWidth;
      if (width > innerWidth + 1) wrong.push('the page is ' + width + ' wide in a window of ' + innerWidth);
      for (const entry of performance.getEntriesByType('resource')) wrong.push(entry.name + ' was asked for');
      const charts = document.querySelectorAll('svg.apns-chart');
      for (const svg of charts) {
        const name = svg.getAttribute('aria-label'), box = svg.getBoundingClientRect();
        if (!svg.querySelector('path.x')) wrong.push(name + ' has no axis');
        if (!svg.querySelector('path.l, rect[class^=f], path[class^=c], circle')) wrong.push(name + ' has no data');
        const texts = [...svg.querySelectorAll('text')].filter(text => getComputedStyle(text).display != 'none')
          .map(text => [text.textContent, text.getBoundingClientRect()]);
        texts.forEach(([text, a], index) => {
          if (a.left < box.left - 2 || a.right > box.right + 2 || a.top < box.top - 2 || a.bottom > box.bottom + 2)
            wrong.push(name + ': "' + text + '" is cut');
          for (const [other, b] of texts.slice(index + 1))
            if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
              && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
              wrong.push(name + ': "' + text + '" lies on "' + other + '"');
        });
      }
      document.title = 'inspected ' + charts.length + ': ' + wrong.join('; ') + '.';
    });
    </script>
    """

  @Test(
    "Every chart has axes and data, no word is cut or lies on another, wide or narrow, and nothing is asked for",
    .enabled(if: ExternalTool.isInstalled("chromium")), arguments: some(3, of: inputs))
  func browser(input: [String]) throws {
    try inFolderWithPage(input) { command in
      let page = try command.read("out/report.html")
      try command.write(Array(page.replacing("</body>", with: Self.inspection + "</body>").utf8), "out/inspected.html")
      let charts = page.split(separator: "<svg class=\"apns-chart\"").count - 1
      #expect(charts > 0)
      for width in [1_280, 800, 500] {
        let outcome = try command.shell(
          """
          HOME="$PWD/home" timeout 240 chromium --headless=new --no-sandbox --disable-gpu --no-first-run \
          --disable-background-networking --disable-component-update --user-data-dir="$PWD/profile" \
          --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr --v=0 --window-size=\(width),900 \
          --dump-dom "file://$PWD/out/inspected.html"
          """)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.contains("<title>inspected \(charts): .</title>"), "\(width): \(title(outcome.output))")
        #expect(!outcome.errors.contains("CONSOLE"), "\(outcome.errors)")
      }
    }
  }

  private func title(_ page: String) -> Substring {
    guard let start = page.firstRange(of: "<title>"), let end = page.firstRange(of: "</title>") else {
      return "no page"
    }
    return page[start.upperBound..<end.lowerBound]
  }
}
