import Foundation
import TestSupport
import Testing

/// The pages of `apnscope report` and `compare`, as a browser shows them.
@Suite("report: pages", .waiting)
struct ReportPagesTests {
  /// A page, and the command that makes it; `Traces/` and `Reports/` are those of the project.
  struct Input: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var command: String
    var page = "out/report.html"
  }

  /// Of the project's own results and traces, one of each kind and more.
  static let inputs = [
    Input(
      testDescription: "a load with its ledger",
      command: "report Reports/benchmark/run.json --ledger Reports/benchmark/ledger.json --output out"),
    Input(testDescription: "a search", command: "report Reports/capacity/capacity.json --output out"),
    Input(testDescription: "a trace with losses", command: "report Traces/known-bad-and-errors.pcap --output out"),
    Input(
      testDescription: "a comparison",
      command: """
        compare --output comparison.html Reports/benchmark/run.json Reports/benchmark/run.json -- \
        Reports/benchmark/run.json
        """, page: "comparison.html"),
    Input(testDescription: "a ledger", command: "report Reports/benchmark/ledger.json --output out"),
    Input(
      testDescription: "a load beside a baseline",
      command: "report Reports/benchmark/run.json --baseline Reports/benchmark/run.json --output out"),
    Input(testDescription: "a trace of one error", command: "report Traces/plain-error.pcap --output out"),
    Input(
      testDescription: "a trace through TLS",
      command:
        "report Reports/trace/trace.pcap.gz --keys Reports/trace/trace.keys --output out"),
  ]

  private func inFolderWithPage<T>(_ input: Input, _ body: (Command) throws -> T) throws -> T {
    try Command.inFolder { command in
      let project = Command.traces.deletingLastPathComponent()
      for folder in ["Traces", "Reports"] {
        try FileManager.default.createSymbolicLink(
          at: command.folder.appending(path: folder), withDestinationURL: project.appending(path: folder))
      }
      let outcome = try command.shell("$apnscope \(input.command)")
      #expect(outcome.status == 0, "\(outcome.errors)")
      return try body(command)
    }
  }

  /// Text without its charts, which are no HTML; the tool does not know charts within charts.
  private static func withoutCharts(_ page: String) -> String {
    var (text, depth) = ("", 0)
    for part in page.replacing("</svg>", with: "<svg/").components(separatedBy: "<svg").enumerated() {
      var rest = part.element[...]
      if part.offset > 0 {
        let isEnd = rest.hasPrefix("/")
        depth += isEnd ? -1 : 1
        if isEnd { rest = rest.dropFirst() }
      }
      if depth == 0 { text += rest }
    }
    return text
  }

  @Test("They are valid HTML", .enabled(if: ExternalTool.isInstalled("tidy")), arguments: inputs)
  func valid(input: Input) throws {
    try inFolderWithPage(input) { command in
      try command.write(Array(Self.withoutCharts(try command.read(input.page)).utf8), "plain.html")
      let tidy = try command.shell("tidy -q -e plain.html")
      #expect(tidy.status == 0 && tidy.errors == "", "\(tidy.errors)")
    }
  }

  /// Looks at a page and tells the page that it is in what is wrong.
  private static let inspection = #"""
    <script>
    addEventListener('load', () => {
      const wrong = [], root = document.documentElement;
      if (root.scrollWidth > innerWidth + 1) wrong.push('the page is ' + root.scrollWidth + ' wide in a window of ' + innerWidth);
      for (const entry of performance.getEntriesByType('resource')) wrong.push(entry.name + ' was asked for');

      // The first screen has the verdict and the picture.
      const first = document.querySelector('svg.apns-chart').getBoundingClientRect();
      if (first.bottom > innerHeight) wrong.push('the first chart ends at ' + first.bottom + ' of ' + innerHeight);
      if (!document.querySelector('.lead > .callout:nth-child(2)')) wrong.push('the page does not begin with a verdict');

      // Words and columns are seen, or a shadow tells that there are more.
      for (const box of document.querySelectorAll('.scroll')) {
        const style = getComputedStyle(box);
        if (box.scrollWidth > box.clientWidth + 1 && !style.backgroundAttachment.includes('local')) wrong.push('a table is cut without a sign');
      }
      for (const element of document.querySelectorAll('p, li, dd, dt, td, th, h1, h2, h3, figcaption, summary, pre')) {
        if (!element.closest('.lead > h2') && element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1)
          wrong.push('"' + element.textContent.slice(0, 40) + '" is cut');
      }
      if (innerWidth >= 700) for (const cell of document.querySelectorAll('table.many td:first-child')) {
        if (cell.offsetParent && getComputedStyle(cell).display !== 'table-cell') wrong.push('a table is a list');
      }
      if (innerWidth < 500) for (const cell of document.querySelectorAll('table.many td')) {
        const box = cell.getBoundingClientRect();
        if (box.right > innerWidth + 1) wrong.push('"' + cell.textContent + '" is off the screen');
      }

      // Rows that are coloured stand out.
      for (const table of document.querySelectorAll('table')) {
        const rows = [...table.tBodies[0].rows].filter(row => !row.classList.contains('note'));
        const ground = row => getComputedStyle(row.cells[0]).backgroundColor;
        const coloured = rows.filter(row => !['rgba(0, 0, 0, 0)', 'transparent'].includes(ground(row)));
        if (coloured.length > 2 && coloured.length * 3 > rows.length) wrong.push(coloured.length + ' of ' + rows.length + ' rows are coloured');
        if (rows.length > 65) wrong.push('a table has ' + rows.length + ' rows');
      }
      for (const fold of document.querySelectorAll('details')) if (fold.open) wrong.push('"' + fold.textContent.slice(0, 20) + '" is unfolded');

      const overlaps = svg => {
        const name = svg.getAttribute('aria-label').slice(0, 40), box = svg.getBoundingClientRect();
        const texts = [...svg.querySelectorAll('text')]
          .filter(text => getComputedStyle(text).display !== 'none' && getComputedStyle(text).visibility !== 'hidden')
          .map(text => [text.textContent, text.getBoundingClientRect()]);
        texts.forEach(([text, a], index) => {
          if (a.left < box.left - 2 || a.right > box.right + 2 || a.top < box.top - 2 || a.bottom > box.bottom + 2)
            wrong.push(name + ': "' + text + '" is cut');
          for (const [other, b] of texts.slice(index + 1))
            if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
              && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
              wrong.push(name + ': "' + text + '" lies on "' + other + '"');
        });
      };
      const charts = [...document.querySelectorAll('svg.apns-chart')];
      for (const svg of charts) {
        const name = svg.getAttribute('aria-label').slice(0, 40);
        if (!svg.querySelector('path.x')) wrong.push(name + ' has no axis');
        if (!svg.querySelector('path.l, rect[class^=f], path[class*=c], circle')) wrong.push(name + ' has no data');
        if (!(svg.querySelector('desc')?.textContent.length > 10)) wrong.push(name + ' has no description');
        const numbers = svg.closest('figure').querySelector('details.numbers');
        if (!(numbers?.querySelectorAll('tbody tr').length > 0)) wrong.push(name + ' has no numbers');
        overlaps(svg);
      }

      // Values and zoom by the keyboard, the mouse and touch.
      const key = (svg, key) => svg.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      const pointer = (svg, type, pointerType, share, id = 1) => {
        const box = svg.getBoundingClientRect();
        svg.dispatchEvent(new PointerEvent(type, { pointerType, pointerId: id, button: 0, bubbles: true, clientX: box.left + box.width * (86 + 620 * share) / 720, clientY: box.top + box.height / 2 }));
      };
      const hasCursor = svg => svg.querySelector('path.cursor').getAttribute('d') !== '';
      const width = svg => svg.querySelector('svg.z')?.getAttribute('viewBox').split(' ')[2];
      const window = svg => width(svg) ?? [...svg.querySelectorAll('circle')].map(dot => dot.getAttribute('cx')).join();
      for (const figure of document.querySelectorAll('figure')) {
        const svgs = [...figure.querySelectorAll('svg.apns-chart')], svg = svgs[0], last = svgs.at(-1);
        const name = svg.getAttribute('aria-label').slice(0, 40), data = JSON.parse(svg.dataset.chart);
        const output = figure.querySelector('output'), before = svg.outerHTML;
        if (svg.tabIndex !== 0) wrong.push(name + ' has no focus');
        const numbers = figure.querySelector('details.numbers');
        if (data.series.length && data.x.layout !== 'percentile' && !numbers.querySelector('p')) {
          // The last row of the numbers is what the script tells at the end.
          key(svg, 'End');
          const row = [...numbers.querySelector('tbody').lastElementChild.cells].map(cell => cell.textContent);
          const told = output.textContent;
          for (const [index, cell] of row.entries()) if (cell !== '–' && !told.includes(cell)) wrong.push(name + ': "' + told + '" has no ' + cell);
          if (!svgs.every(hasCursor)) wrong.push(name + ' has no cursor');
        }
        pointer(svg, 'pointermove', 'mouse', .4);
        if (output.textContent.length < 2) wrong.push(name + ' tells nothing');
        const same = charts.filter(other => JSON.stringify(['label', 'low', 'high'].map(key => JSON.parse(other.dataset.chart).x[key])) === JSON.stringify(['label', 'low', 'high'].map(key => data.x[key])));
        if (data.x.layout === 'linear') {
          if (!same.every(hasCursor)) wrong.push(name + ': the cursor is not on every chart of its axis');
          const whole = window(svg);
          const zooms = {
            keys: () => key(svg, '+'),
            mouse: () => { pointer(svg, 'pointerdown', 'mouse', .3); pointer(svg, 'pointermove', 'mouse', .5); pointer(svg, 'pointerup', 'mouse', .5); },
            touch: () => { pointer(svg, 'pointerdown', 'touch', .45, 1); pointer(svg, 'pointerdown', 'touch', .55, 2); pointer(svg, 'pointermove', 'touch', .8, 2); pointer(svg, 'pointerup', 'touch', .8, 2); pointer(svg, 'pointerup', 'touch', .45, 1); },
            button: () => [...figure.querySelectorAll('button')].at(-1).click(),
          };
          for (const [way, zoom] of Object.entries(zooms)) {
            zoom();
            if (window(svg) === whole) wrong.push(name + ' does not zoom by ' + way);
            if (new Set(same.map(width).filter(Boolean)).size > 1) wrong.push(name + ': not every chart of its axis zooms');
            overlaps(last);
            key(svg, '0');
            if (window(svg) !== whole) wrong.push(name + ' does not show all again');
          }
          key(svg, 'Escape');
          if (svg.outerHTML !== before) wrong.push(name + ' is not what it was before');
        } else key(svg, 'Escape');
      }
      // On paper: what the style says of it holds on the screen now.
      for (const sheet of document.styleSheets) for (const rule of [...sheet.cssRules]) {
        if (rule.media?.mediaText !== 'print') continue;
        document.head.appendChild(document.createElement('style')).textContent = [...rule.cssRules].map(each => each.cssText).join(' ');
      }
      for (const fold of document.querySelectorAll('section > details')) {
        if (fold.lastElementChild.getBoundingClientRect().height === 0 || !fold.lastElementChild.checkVisibility({ contentVisibilityAuto: true }))
          wrong.push('"' + fold.textContent.slice(0, 20) + '" is not printed');
      }
      for (const element of document.querySelectorAll('details.numbers, nav, .values-at'))
        if (element.getBoundingClientRect().height > 0) wrong.push('"' + element.textContent.slice(0, 20) + '" is printed');
      for (const svg of charts) overlaps(svg);
      parent.postMessage('inspected ' + charts.length + ': ' + [...new Set(wrong)].slice(0, 8).join('; ') + '.', '*');
    });
    </script>
    """#

  /// How a page is looked at: a window's size, and the reader's colours.
  static let views = [(1_600, 900, "light"), (1_280, 800, "dark"), (800, 900, "light"), (390, 844, "dark")]

  /// A page in a window, which may be narrower than a browser's.
  private static func frame(_ page: String, _ width: Int, _ height: Int) -> String {
    """
    <!DOCTYPE html><html><head><title>no answer</title></head><body style="margin:0">
    <script>addEventListener('message', event => { document.title = event.data })</script>
    <iframe src="\(page)" style="border:0;width:\(width)px;height:\(height)px"></iframe></body></html>
    """
  }

  private static func chromium(_ arguments: String) -> String {
    """
    HOME="$PWD/home" timeout 240 chromium --headless=new --no-sandbox --disable-gpu --no-first-run \
    --disable-background-networking --disable-component-update --user-data-dir="$PWD/profile" \
    --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr --v=0 \(arguments)
    """
  }

  @Test(
    "The picture is on the first screen, no word is cut or lies on another, and charts have values and zoom, wide or narrow",
    .enabled(if: ExternalTool.isInstalled("chromium")), arguments: some(5, of: inputs))
  func browser(input: Input) throws {
    try inFolderWithPage(input) { command in
      let page = try command.read(input.page)
      try command.write(
        Array(page.replacing("</body>", with: Self.inspection + "</body>").utf8), "inspected.html")
      let charts = page.split(separator: "<svg class=\"apns-chart\"").count - 1
      #expect(charts > 0)
      for (width, height, scheme) in Self.views {
        try command.write(Array(Self.frame("inspected.html", width, height).utf8), "frame.html")
        let outcome = try command.shell(
          Self.chromium(
            """
            --window-size=\(max(500, width)),\(height + 100) --blink-settings=preferredColorScheme=\(scheme == "dark" ? 0 : 1) \
            --virtual-time-budget=5000 --dump-dom "file://$PWD/frame.html"
            """))
        #expect(outcome.status == 0, "\(outcome.errors)")
        let title = title(outcome.output)
        #expect(title == "inspected \(charts): .", "\(width), \(scheme): \(title)")
        #expect(!outcome.errors.contains("CONSOLE"), "\(outcome.errors)")
      }
    }
  }

  @Test(
    "On paper everything is unfolded but the tables of numbers",
    .enabled(if: ExternalTool.isInstalled("chromium") && ExternalTool.isInstalled("pdftotext")))
  func printed() throws {
    try inFolderWithPage(Self.inputs[0]) { command in
      for withScript in [true, false] {
        let page = try command.read("out/report.html")
        let shown = withScript ? page : page.replacing("script-src 'unsafe-inline'", with: "script-src 'none'")
        try command.write(Array(shown.utf8), "printed.html")
        let outcome = try command.shell(
          Self.chromium("--print-to-pdf=page.pdf --no-pdf-header-footer \"file://$PWD/printed.html\"")
            + " && pdftotext -layout page.pdf page.txt")
        #expect(outcome.status == 0, "\(outcome.errors)")
        // Sentences wrap.
        let text = try command.read("page.txt").split(whereSeparator: \.isWhitespace).joined(separator: " ")
        for words in ["The books balance", "Plan, with every default", "send_buffer = ", "Glossary", "loop lag"] {
          #expect(text.contains(words), "\(words), script: \(withScript)")
        }
        #expect(!text.contains("Numbers") && !text.contains("for values; drag"), "script: \(withScript)")
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
