import Testing

@testable import Reporting

@Suite("Page of a trace")
struct TracePageTests {
  @Test("Nothing at all has a page, in both forms")
  func empty() {
    let page = TracePage(TraceSummary()).page
    #expect(page.html.contains("No notification is in the trace."))
    #expect(problem(inXML: page.sections.map { $0.blocks.map(\.html).joined() }.joined()) == nil)
    #expect(page.markdown().text.hasPrefix("# Trace: records\n"))
  }

  @Test("Absurd numbers and hostile words have a page that is well formed")
  func absurd() {
    let words = "\"><script>alert(1)</script>|`]\u{202e}\u{0}"
    var summary = TraceSummary()
    summary.sources = [.init(name: words, format: words)]
    (summary.started, summary.length) = (words, .infinity)
    summary.warnings = [words]
    (summary.notifications, summary.connectionCount, summary.errorCount) = (.max / 4, 3, 3)
    summary.findings = [.init(words, firstPacket: .max, tone: .bad)]
    summary.sent.counts = [.max / 4, -1, 0]
    summary.sent.bytes = [.max / 4, -1, 0]
    (summary.sent.from, summary.sent.width) = (-.infinity, .nan)
    for (number, time) in [(1, Double.nan), (2, -1e300), (3, 1e300)] {
      var connection = TraceSummary.Connection()
      (connection.number, connection.client, connection.server) = (number, words, words)
      (connection.topic, connection.tls, connection.problem, connection.end) = (words, words, words, words)
      (connection.opened, connection.closed, connection.firstRecord) = (time, -time, 0)
      (connection.notifications, connection.firstError) = (7, words)
      connection.sent = [1, 2, 3, 4]
      summary.connections.append(connection)
      var error = TraceSummary.ErrorResponse()
      (error.connection, error.time, error.name) = (number, time, words)
      (error.discarded, error.latency) = (number, -time)
      summary.errors.append(error)
    }
    summary.payloads = [.init(0, 1), .init(65_535, .max / 4)]
    summary.perSegment = [.init(1, 1), .init(4_096, 1)]
    summary.tokens.distinct = 1
    summary.tokens.most = [.init(words, 2)]
    let page = TracePage(summary, command: [words]).page
    let body = page.html
    #expect(!body.contains("<script") && !body.unicodeScalars.contains("\u{202e}"))
    #expect(problem(inXML: page.sections.map { $0.blocks.map(\.html).joined() }.joined()) == nil)
    let markdown = page.markdown()
    #expect(!markdown.text.replacing("`", with: "").contains("<script>alert(1)</script>|]x"))
    for chart in markdown.charts { #expect(!chart.text.contains("<script")) }
  }
}
