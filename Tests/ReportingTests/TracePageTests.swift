import Measurement
import Testing

@testable import Reporting

@Suite("Page of a trace")
struct TracePageTests {
  @Test("Nothing at all has a page, in both forms")
  func empty() {
    let page = TracePage(TraceReport()).page
    #expect(page.html.contains("Nothing was read, so this is unknown."))
    #expect(problem(inXML: page.sections.map { $0.blocks.map(\.html).joined() }.joined()) == nil)
    #expect(page.markdown().text.hasPrefix("# Trace: records\n"))
    var answered = TraceReport()
    answered.inspection.summary.errorResponses = 1
    #expect(TracePage(answered).page.html.contains("No notification is in the trace."))
  }

  private static let praise = "No findings: no error"

  private func text(_ change: (inout TraceReport) -> Void) -> String {
    var report = TraceReport()
    report.inspection.summary.notifications = 10
    report.inspection.fates.accepted = 10
    report.inspection.summary.connections = 1
    change(&report)
    return TracePage(report).page.markdown().text
  }

  /// A capture of a web server: "No findings: no error, no loss, no damage."
  @Test("All is well only where all was read and every fate is known")
  func verdict() {
    let good = text { _ in }
    #expect(good.contains(Self.praise) && good.contains("nothing was lost to an error"))
    func unread(_ report: inout TraceReport) {
      report.inspection.summary.notifications = 0
      report.inspection.fates.accepted = 0
    }
    let changes: [(String, (inout TraceReport) -> Void)] = [
      ("nothing read", { unread(&$0) }),
      (
        "no notification",
        {
          unread(&$0)
          $0.inspection.summary.readFeedbackConnections = 1
        }
      ),
      (
        "open",
        {
          $0.inspection.fates.accepted = 9
          $0.inspection.fates.unknown = 1
        }
      ),
      ("encrypted", { $0.inspection.summary.undecryptedConnections = 1 }),
      ("missing", { $0.inspection.missingBytes = 1 }), ("malformed", { $0.inspection.malformed = 1 }),
      ("partial", { $0.warnings = ["The records are partial."] }),
      ("gap", { $0.inspection.gapsByReason = [.lost: 1] }),
    ]
    for (name, change) in changes {
      let text = text(change)
      #expect(!text.contains(Self.praise) && !text.contains("nothing was lost"), "\(name)")
    }
    #expect(text(changes[0].1).contains("No APNs traffic was found"))
  }

  @Test("No more are told to be sent again than were discarded")
  func sentAgain() {
    func note(_ again: Int) -> String {
      text { report in
        report.inspection.fates.discarded = 79
        report.inspection.errorCount = 1
        var error = InspectionReport.ErrorRow()
        (error.discarded, error.sentAgain) = (79, again)
        report.inspection.errors = [error]
        report.errorTimesS = [nil]
      }
    }
    #expect(note(79).contains("79 of them sent again"))
    #expect(!note(138).contains("138 of them sent again"))
  }

  @Test("Absurd numbers and hostile words have a page that is well formed")
  func absurd() {
    let words = "\"><script>alert(1)</script>|`]\u{202e}\u{0}"
    var report = TraceReport()
    report.sources = [.init(name: words, format: words)]
    (report.started, report.lengthS) = (words, .infinity)
    report.warnings = [words]
    report.inspection.summary.notifications = .max / 4
    (report.inspection.summary.connections, report.inspection.errorCount) = (3, 3)
    report.inspection.findings = [.init(.neverResent, count: 1, firstPacket: .max, text: words)]
    report.inspection.gapsByReason.byName = [words: .max]
    report.sent.counts = [.max / 4, -1, 0]
    report.sent.bytes = [.max / 4, -1, 0]
    (report.sent.fromS, report.sent.widthS) = (-.infinity, .nan)
    for (number, time) in [(1, Double.nan), (2, -1e300), (3, 1e300)] {
      var row = InspectionReport.ConnectionRow()
      (row.connection, row.client, row.server) = (number, words, words)
      var tls = InspectionReport.TLSRow()
      (tls.version, tls.clientSubject, tls.problem, tls.decrypted) = (words, words, words, number != 2)
      row.tls = tls
      (row.notifications, row.firstErrorStatus, row.firstErrorName) = (7, .max, words)
      report.inspection.connections.append(row)
      var course = TraceReport.Connection()
      (course.openedS, course.closedS, course.firstRecordS) = (time, -time, 0)
      course.sent = [1, 2, 3, 4]
      report.connections.append(course)
      var error = InspectionReport.ErrorRow()
      (error.connection, error.statusName) = (number, words)
      (error.discarded, error.latencyMs) = (number, -time)
      report.inspection.errors.append(error)
      report.errorTimesS.append(time)
    }
    report.payloads = [.init(0, 1), .init(65_535, .max / 4)]
    report.perSegment = [.init(1, 1), .init(4_096, 1)]
    report.tokens.distinct = 1
    report.tokens.most = [.init(words, 2)]
    let page = TracePage(report, command: [words]).page
    let body = page.html
    #expect(!body.contains("<script>alert") && !body.unicodeScalars.contains("\u{202e}"))
    #expect(problem(inXML: page.sections.map { $0.blocks.map(\.html).joined() }.joined()) == nil)
    let markdown = page.markdown()
    #expect(!markdown.text.replacing("`", with: "").contains("<script>alert(1)</script>|]x"))
    for chart in markdown.charts { #expect(!chart.text.contains("<script")) }
  }
}
