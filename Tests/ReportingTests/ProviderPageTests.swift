import Measurement
import TestSupport
import Testing

@testable import Reporting

/// The report of a provider under test, with records that are its own or not.
@Suite("Report of a provider")
struct ProviderPageTests {
  private static func ledger() -> Ledger {
    var ledger = Ledger()
    (ledger.started, ledger.ended) = ("2026-01-02T03:04:05.000Z", "2026-01-02T03:05:05.000Z")
    (ledger.gateway.received, ledger.gateway.accepted, ledger.gateway.connections) = (20, 20, 1)
    ledger.devices.delivered = 20
    var records = Ledger.Records()
    records.notifications = 20
    ledger.records = records
    return ledger
  }

  private static func trace(_ notifications: Int, started: String? = "2026-01-02T03:04:06.000Z") -> TraceReport {
    var trace = TraceReport()
    trace.inspection.summary.notifications = notifications
    trace.inspection.notificationsByCommand = [0, 0, notifications]
    (trace.started, trace.lengthS) = (started, 10)
    return trace
  }

  private func text(_ page: ProviderPage) -> String { page.page.markdown().text }

  @Test("Records that are those of the run are not remarked on, and a selection of them is not either")
  func own() {
    #expect(ProviderPage(Self.ledger()).recordsObstacles == [])
    let page = ProviderPage(Self.ledger(), trace: Self.trace(20))
    #expect(page.recordsObstacles == [] && !text(page).contains("of another run"))
    var part = Self.trace(3)
    part.inspection.selection = ["--token", "00"]
    #expect(ProviderPage(Self.ledger(), trace: part).recordsObstacles == [])
    #expect(ProviderPage(Self.ledger(), trace: Self.trace(20, started: nil)).recordsObstacles == [])
    // Behind a gap not all may be seen that was written.
    var gaps = Self.ledger()
    gaps.records?.lost = 3
    #expect(ProviderPage(gaps, trace: Self.trace(19)).recordsObstacles == [])
    // A ledger from before records were counted.
    var earlier = Self.ledger()
    earlier.records = nil
    #expect(ProviderPage(earlier, trace: Self.trace(3)).recordsObstacles == [])
  }

  @Test("Records of a part of the run, or of another run, are the first that the page says")
  func others() throws {
    let part = ProviderPage(Self.ledger(), trace: Self.trace(7))
    #expect(part.recordsObstacles.count == 1)
    let counts = "The records have 7 notifications, and the ledger counts 20"
    for started in ["2026-01-02T03:04:03.000Z", "2026-01-02T03:04:57.000Z", "2025-12-31T00:00:00.000Z"] {
      let other = ProviderPage(Self.ledger(), trace: Self.trace(20, started: started))
      #expect(other.recordsObstacles.count == 1 && text(other).contains("The records are of \(started)"), "\(started)")
    }
    for hasVerdict in [false, true] {
      var ledger = Self.ledger()
      if hasVerdict { ledger.verdict = ProviderVerdict() }
      let text = text(ProviderPage(ledger, trace: Self.trace(7)))
      let remark = try #require(text.firstRange(of: counts))
      let verdict = try #require(text.firstRange(of: hasVerdict ? "Nothing was sent." : "There is no verdict"))
      #expect(remark.lowerBound < verdict.lowerBound)
    }
    var cut = Self.trace(20)
    cut.warnings = ["The records are incomplete: there is no summary."]
    #expect(text(ProviderPage(Self.ledger(), trace: cut)).contains(cut.warnings[0]))
  }

  @Test("That there is no acknowledgement is said of the binary protocol alone")
  func acknowledgement() {
    let words = "has no acknowledgement"
    #expect(text(ProviderPage(Self.ledger(), trace: Self.trace(20))).contains("The protocol \(words)"))
    var both = Self.trace(20)
    both.inspection.http2 = .init()
    let mixed = text(ProviderPage(Self.ledger(), trace: both))
    #expect(mixed.contains("No error responses over the binary protocol. It \(words)"))
    var requests = both
    requests.inspection.notificationsByCommand = [0, 0, 0]
    for feedback in [0, 1] {
      requests.inspection.feedbackConnections = feedback
      let text = text(ProviderPage(Self.ledger(), trace: requests))
      #expect(!text.contains(words) && !text.contains("No error response"), "\(feedback)")
    }
  }
}
