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

  private static let praise = "There is nothing that is worth a look"

  private func text(_ change: (inout TraceSummary) -> Void) -> String {
    var summary = TraceSummary()
    (summary.notifications, summary.fates.accepted, summary.connectionCount) = (10, 10, 1)
    change(&summary)
    return TracePage(summary).page.markdown().text
  }

  /// A capture of a web server: "There is nothing that is worth a look: no error, no loss, no damage."
  @Test("All is well only where all was read and every fate is known")
  func verdict() {
    let good = text { _ in }
    #expect(good.contains(Self.praise) && good.contains("nothing was lost to an error"))
    let changes: [(String, (inout TraceSummary) -> Void)] = [
      ("nothing read", { ($0.notifications, $0.fates.accepted, $0.hasRead) = (0, 0, false) }),
      ("no notification", { ($0.notifications, $0.fates.accepted) = (0, 0) }),
      ("open", { ($0.fates.accepted, $0.fates.unknown) = (9, 1) }), ("encrypted", { $0.undecrypted = 1 }),
      ("missing", { $0.missingBytes = 1 }), ("malformed", { $0.malformed = 1 }),
      ("partial", { $0.warnings = ["The records are partial."] }),
      ("gap", { $0.gaps = [.init("stretches", 1)] }),
    ]
    for (name, change) in changes {
      let text = text(change)
      #expect(!text.contains(Self.praise) && !text.contains("nothing was lost"), "\(name)")
    }
    #expect(text(changes[0].1).contains("Nothing of the protocol was read"))
  }

  @Test("No more are told to be sent again than were discarded")
  func sentAgain() {
    func note(_ again: Int) -> String {
      text { summary in
        (summary.fates.discarded, summary.errorCount) = (79, 1)
        var error = TraceSummary.ErrorResponse()
        (error.discarded, error.sentAgain) = (79, again)
        summary.errors = [error]
      }
    }
    #expect(note(79).contains("79 of them sent again"))
    #expect(!note(138).contains("138 of them sent again"))
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
