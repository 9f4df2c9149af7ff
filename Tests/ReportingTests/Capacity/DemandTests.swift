import Foundation
import Measurement
import Reporting
import TestSupport
import Testing

/// Demands from files, and what a document says of them.
@Suite("Demands")
struct DemandTests {
  private func failure(_ body: () throws -> Void) -> String? {
    do { try body() } catch { return (error as? DemandFailure)?.description }
    return nil
  }

  private func table(_ text: String, maximumSteps: Int = 1_000) throws -> Demand {
    try Demand(csv: Array(text.utf8), source: "d.csv", maximumSteps: maximumSteps)
  }

  // MARK: tables

  @Test("A table's rates last until the next line; the last one as long as the one before it")
  func tables() throws {
    let demand = try table("seconds,rate\n100,5\n130,0\n140.5,7.5\n")
    #expect(demand.fromS == [0, 30, 40.5] && demand.perS == [5, 0, 7.5] && demand.endS == 51)
    #expect(demand.started == nil && demand.origin == .table && demand.source == "d.csv")
    #expect(demand.notifications == 150 + 7.5 * 10.5)
    // Without a first line, with other columns, quotes, comments, CR LF, and times.
    #expect(try table("0,5\n30,6").fromS == [0, 30])
    let other = try table(
      "# made by hand\r\nhost,Rate, \"Time\"\r\na,5,2026-11-27T10:00:00Z\r\n\r\nb,\"6\",2026-11-27T10:01:00.5Z\r\n")
    #expect(other.fromS == [0, 60.5] && other.endS == 121 && other.started == "2026-11-27T10:00:00.000Z")
    // A mean of hours hides peaks.
    #expect(demand.notes.isEmpty)
    #expect(try table("0,5\n60,6").notes.isEmpty)
    #expect(try table("0,5\n3600,6\n3601,7").notes.first?.contains("lasts up to 60 min") == true)
    // Equal rates are one step, which changes nothing.
    #expect(try table("0,5\n1,5\n2,5\n3,6").fromS == [0, 3])
    #expect(try table("0,5\n1,5\n2,5\n3,6").endS == 4)
  }

  @Test("A table that is none says where and why")
  func badTables() {
    for (text, reason) in [
      ("", "two lines"), ("seconds,rate\n1,2\n", "two lines"), ("a,b\n1,2\n2,3", "line 1: expected the columns"),
      ("1,2\n1,3", "line 2: the time does not come after"), ("1,2\n0,3", "line 2: the time does not come after"),
      ("1,2\n2,-3", "line 2: expected notifications a second"), ("1,2\n2,nan", "expected notifications a second"),
      ("1,2\n2,inf", "line 2: expected notifications a second"), ("1,2\n2,1e99", "expected notifications a second"),
      ("1,2\nx,3", "line 2: expected seconds or a time"), ("1,2\n1e300,3", "line 2: expected seconds or a time"),
      ("1,2\n2026-11-27T10:00:00Z,3", "line 2: seconds and times are mixed"), ("1\n2", "line 1: has no rate"),
      ("1,2\n2\u{1B}[31m,3", "'2\\u001b[31m'"), ("1,2\n2,3\n3,4\n4,5", "more than 3 steps; see --max-demand-steps"),
      ("1,2\n" + String(repeating: "9", count: 20_000) + ",3", "line 2: is longer than"),
    ] {
      let problem = failure { _ = try table(text, maximumSteps: 3) }
      #expect(problem?.contains(reason) == true, "\(text.prefix(40)): \(problem ?? "no failure")")
    }
  }

  @Test("Any bytes are a table or a reason, never a trap", arguments: seeds(200, of: 5_000))
  func anyBytes(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let words = [
      "0", "1", "2e3", "-", ",", ",", "\n", "\n", "rate", "time", "seconds", "2026-11-27T10:00:00Z", "\"", " ",
    ]
    let bytes =
      random.happens(oneIn: 4)
      ? random.bytes(random.number(0...60))
      : (0..<random.number(0...30)).flatMap { _ in Array(random.pick(words).utf8) }
    if let demand = try? Demand(csv: bytes, source: "x", maximumSteps: 10) {
      #expect(demand.count >= 1 && demand.count <= 11 && demand.endS > 0 && demand.notifications >= 0)
    }
  }

  // MARK: inspections

  private func inspection(_ values: [Int], _ counts: [Int]) throws -> InspectionReport {
    // Its counts are made by no public initializer.
    let text = """
      {"files":[],"summary":{"packets":0,"connections":0,"notifications":\(counts.reduce(0, +)),"error_responses":0,
      "feedback_tuples":0,"gaps":0,"malformed":0,"undecrypted_connections":0},"connections":[],
      "connections_not_listed":0,"missing_bytes":0,"tls":{"connections":0,"decrypted":0,"resumed":0,"tls_bytes":0,
      "payload_bytes":0},"gaps_by_reason":{},"malformed":0,"notifications_by_command":[0,0,0],
      "fates":{"accepted":98,"rejected":2,"discarded":0,"unknown":0},"error_count":0,"errors_by_status":{},"errors":[],
      "feedback_connections":0,"feedback_tuples":0,"ends":{},"repeatedly_rejected_tokens":[],"findings":[],
      "counts":{"payload_lengths":{"values":[],"counts":[]},"notifications_per_segment":{"values":[],"counts":[]},
      "sent_per_second":{"values":\(values),"counts":\(counts)},"opens_per_second":{"values":[],"counts":[]},
      "lifetimes_s":[],"rejected_tokens":[],"recoveries_s":[],"sending_connections":0,"one_notification_connections":0,
      "feedback_read_per_second":{"values":[],"counts":[]},"providers":[],"unread":{"connections":0,"encrypted":0,
      "without_secret":0,"partly_encrypted":0,"empty":0,"protocols":[],"further":0},"read_feedback_connections":0,
      "late_packets":0,"longest_delay_ns":0}}
      """
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(InspectionReport.self, from: Data(text.utf8))
  }

  @Test("An inspection's seconds are steps, with nothing between them where nothing was sent")
  func inspections() throws {
    let demand = try Demand(try inspection([1_000, 1_001, 1_005], [7, 7, 9]), source: "i.json")
    #expect(demand.fromS == [0, 2, 5] && demand.perS == [7, 0, 9] && demand.endS == 6)
    #expect(demand.notifications == 23 && demand.started == "1970-01-01T00:16:40.000Z")
    #expect(demand.errorShare == 0.02 && demand.notes.isEmpty && demand.origin == .inspection)
  }

  @Test("What an inspection hides is a note, and one without seconds is refused")
  func hidden() throws {
    var report = try inspection([1_000, 1_001], [7, 8])
    report.selection = ["--status", "8"]
    report.summary.notifications = 20
    report.summary.undecryptedConnections = 2
    report.missingBytes = 100
    report.counts?.shard = "1/2"
    let notes = try Demand(report, source: "i.json").notes
    for text in ["--status 8", "part 1/2", "5 notifications", "2 undecrypted connections", "100 B are missing"] {
      #expect(notes.contains { $0.contains(text) }, "\(text): \(notes)")
    }
    #expect(notes.count == 5)
    report.counts = nil
    #expect(failure { _ = try Demand(report, source: "x") }?.contains("inspect the recording again") == true)
    #expect(failure { _ = try Demand(inspection([], []), source: "x") }?.contains("no notifications") == true)
    for (values, counts) in [([5, 5], [1, 1]), ([6, 5], [1, 1]), ([5, 6], [1, -1]), ([5, 6], [1])] {
      #expect(failure { _ = try Demand(inspection(values, counts), source: "x") }?.contains("out of order") == true)
    }
    // Seconds so far apart that one more is none.
    #expect(failure { _ = try Demand(inspection([Int.min, Int.max], [1, 1]), source: "x") } != nil)
    #expect(
      failure { _ = try Demand(inspection([1, 3, 5], [1, 1, 1]), source: "x", maximumSteps: 4) }?
        .contains("--max-demand-steps") == true)
  }

  // MARK: documents

  @Test("A demand comes back from a document as it was; one whose steps are out of order does not")
  func document() throws {
    var demand = try table("0,5\n30,6\n")
    demand.factor = 2
    #expect(demand.peak.perS == 12 && demand.step(0).perS == 10)
    let text = try demand.jsonDocument()
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    func decode(_ text: String) throws -> Demand { try decoder.decode(Demand.self, from: Data(text.utf8)) }
    #expect(try decode(text) == demand)
    for (old, new) in [
      ("\"factor\" : 2", "\"factor\" : 0"), ("30", "0"), ("\"end_s\" : 60", "\"end_s\" : 30"), ("5", "-5"),
      ("5, 6", "5"),
    ] {
      let changed = text.replacingOccurrences(of: old, with: new)
      #expect(changed != text)
      #expect(throws: DecodingError.self) { try decode(changed) }
    }
  }
}
