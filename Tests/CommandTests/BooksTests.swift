import Foundation
import TestSupport
import Testing

/// `Scripts/books`, which the demo ends with: it has to see every difference.
@Suite("books", .waiting, .enabled(if: ExternalTool.isInstalled("python3")))
struct BooksTests {
  private static let script = Command.traces.deletingLastPathComponent().appending(path: "Scripts/books").path

  /// 1,000 notifications; one is rejected, 5 are lost behind it, of which the kernel had not sent 2. Two markers. Of five
  /// TCP connections one failed in its handshake here, and one only there.
  private static let load = """
    {"notifications": {"generated": 1000},
     "sendings": {"written": 1005, "resent": 5, "accepted": 999, "rejected": 1, "discarded": 5, "unknown": 0, "markers": 2},
     "error_responses": {"8": 1, "10": 1}, "connections": {"opened": 4, "failed": 1, "attempted": 6},
     "latency": {"drain_ms": {"count": 2}, "tcp_connect_ms": {"count": 5}}}
    """
  private static let ledger = """
    {"gateway": {"received": 1005, "accepted": 999, "rejected": {"2": 2, "8": 1}, "discarded": 3, "connections": 5,
                 "handshakes": 3, "handshake_failures": 1, "error_responses": {"2": 2, "8": 1, "10": 1}}, "feedback": {"tuples_sent": 7}}
    """
  private static let inspection = """
    {"summary": {"notifications": 1005, "connections": 6, "feedback_tuples": 7}, "feedback_connections": 1,
     "fates": {"accepted": 999, "rejected": 3, "discarded": 3, "unknown": 0}, "error_count": 4,
     "errors_by_status": {"2": 2, "8": 1, "10": 1}}
    """

  private func compare(
    load: String = load, ledger: String = ledger, inspection: String? = inspection
  ) throws -> Outcome {
    try Command.inFolder { command in
      try command.write(Array(load.utf8), "run.json")
      try command.write(Array(ledger.utf8), "sim.json")
      if let inspection { try command.write(Array(inspection.utf8), "inspection.json") }
      return try command.shell("'\(Self.script)' run.json sim.json \(inspection == nil ? "" : "inspection.json")")
    }
  }

  @Test("Three books that agree, and two")
  func agree() throws {
    let three = try compare()
    #expect(three.status == 0, "\(three.output)\(three.errors)")
    #expect(three.output.filter { $0 == "✓" }.count == 10)
    #expect(three.output.contains("2 more as sent"))
    let two = try compare(inspection: nil)
    #expect(two.status == 0, "\(two.output)\(two.errors)")
    #expect(!two.output.contains("recording"))
  }

  /// The measured phase has two of the five connections and no marker: from 0.2.0 on `latency` is of it alone.
  @Test("What happened in other phases than the measured one is in the books")
  func phases() throws {
    let latency = "\"latency\": {\"drain_ms\": {\"count\": 2}, \"tcp_connect_ms\": {\"count\": 5}}"
    func counts(_ markers: Int, _ made: Int) -> String {
      "{\"drain_ms\": {\"count\": \(markers)}, \"tcp_connect_ms\": {\"count\": \(made)}}"
    }
    func load(drained: Int, _ sendings: String = "\"markers\": 2") -> String {
      let phases = [counts(0, 3), counts(0, 2), counts(drained, 0)].map { "{\"latency\": \($0)}" }
      return Self.load.replacingOccurrences(of: "\"markers\": 2", with: sendings).replacingOccurrences(
        of: latency, with: "\"latency\": \(counts(0, 2)), \"phases\": [\(phases.joined(separator: ", "))]")
    }
    let outcome = try compare(load: load(drained: 2))
    #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
    // A marker's answer that has no latency is an answer.
    #expect(try compare(load: load(drained: 1)).status == 1)
    #expect(try compare(load: load(drained: 1, "\"markers\": 2, \"markers_answered\": 2")).status == 0)
  }

  /// 6 were written to a connection that the gateway had closed without a word: 2 of these were not sent, 3 not read.
  @Test("What was lost with a connection is in the books of those that saw it")
  func lostWithConnection() throws {
    let outcome = try compare(
      load: Self.load.replacingOccurrences(of: "\"written\": 1005", with: "\"written\": 1011")
        .replacingOccurrences(of: "\"unknown\": 0", with: "\"unknown\": 6"),
      ledger: Self.ledger.replacingOccurrences(of: "\"received\": 1005", with: "\"received\": 1006")
        .replacingOccurrences(of: "\"discarded\": 3", with: "\"discarded\": 4"),
      inspection: Self.inspection.replacingOccurrences(of: "\"notifications\": 1005", with: "\"notifications\": 1009")
        .replacingOccurrences(of: "\"unknown\": 0", with: "\"unknown\": 4"))
    #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
    #expect(outcome.output.contains("The load counts 4 more as sent"))
    #expect(outcome.output.contains("never read 3"))
  }

  /// An error response came when the marker was under way.
  @Test("A marker behind a rejection is lost with the others")
  func lostMarker() throws {
    let outcome = try compare(
      load: Self.load.replacingOccurrences(of: "\"markers\": 2", with: "\"markers\": 3"),
      ledger: Self.ledger.replacingOccurrences(of: "\"received\": 1005", with: "\"received\": 1006")
        .replacingOccurrences(of: "\"discarded\": 3", with: "\"discarded\": 4"),
      inspection: Self.inspection.replacingOccurrences(of: "\"notifications\": 1005", with: "\"notifications\": 1006")
        .replacingOccurrences(of: "\"discarded\": 3", with: "\"discarded\": 4"))
    #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
  }

  private func documents(accepted: Int) -> (load: String, ledger: String, inspection: String) {
    (
      Self.load.replacingOccurrences(of: "\"written\": 1005", with: "\"written\": 1011")
        .replacingOccurrences(of: "\"unknown\": 0", with: "\"unknown\": 6"),
      Self.ledger.replacingOccurrences(of: "\"received\": 1005", with: "\"received\": 1011")
        .replacingOccurrences(of: "\"accepted\": 999", with: "\"accepted\": \(accepted)"),
      Self.inspection.replacingOccurrences(of: "\"notifications\": 1005", with: "\"notifications\": 1011")
        .replacingOccurrences(of: "\"unknown\": 0", with: "\"unknown\": 6")
    )
  }

  /// 6 more were read and accepted, but their connection ended without a word.
  @Test("What the gateway accepted and nothing proves is unknown to the others")
  func acceptedUnknown() throws {
    let documents = self.documents(accepted: 1_005)
    let agreed = try compare(load: documents.load, ledger: documents.ledger, inspection: documents.inspection)
    #expect(agreed.status == 0, "\(agreed.output)\(agreed.errors)")
    #expect(agreed.output.contains("accepted 6 of those that are unknown"))
    for accepted in [998, 1_004, 1_006] {
      let other = self.documents(accepted: accepted)
      let outcome = try compare(load: other.load, ledger: other.ledger, inspection: other.inspection)
      #expect(outcome.status == 1, "\(accepted): \(outcome.output)")
    }
  }

  @Test(
    "One number that is another is seen",
    arguments: [
      ("\"accepted\": 999", "\"accepted\": 998"), ("\"discarded\": 5", "\"discarded\": 4"),
      ("\"discarded\": 3", "\"discarded\": 4"), ("\"8\": 1", "\"8\": 2"), ("\"opened\": 4", "\"opened\": 5"),
      ("\"opened\": 4", "\"opened\": 1"),
      ("\"count\": 5", "\"count\": 6"),
      ("\"attempted\": 6", "\"attempted\": 4"),
      ("\"received\": 1005", "\"received\": 1006"), ("\"received\": 1005", "\"received\": 1008"),
      ("\"notifications\": 1005", "\"notifications\": 1004"), ("\"tuples_sent\": 7", "\"tuples_sent\": 6"),
      ("\"unknown\": 0", "\"unknown\": 1"), ("\"8\": 1, \"10\": 1", "\"8\": 2, \"10\": 0"),
      ("\"error_count\": 4", "\"error_count\": 5"),
    ])
  func differ(number: String, other: String) throws {
    let documents = [Self.load, Self.ledger, Self.inspection]
    for changed in documents.indices where documents[changed].contains(number) {
      var documents = documents
      documents[changed] = documents[changed].replacingOccurrences(of: number, with: other)
      let outcome = try compare(load: documents[0], ledger: documents[1], inspection: documents[2])
      #expect(outcome.status == 1, "\(outcome.output)\(outcome.errors)")
      #expect(outcome.output.contains("✗"))
    }
  }

  /// 5 polls: 4 with 7 tuples together, and one that was cut off behind 2.
  private static func polls(_ incomplete: Int, _ failed: Int = 0) -> String {
    let polls = 4 + incomplete + failed
    return load.replacingOccurrences(
      of: "\"error_responses\": {\"8\": 1, \"10\": 1}",
      with: """
        "error_responses": {"8": 1, "10": 1}, "feedback": {"polls": \(polls), "complete": 4, "incomplete": \(incomplete),
          "failed": \(failed), "tuples": 7, "tuples_cut_off": \(2 * incomplete)}
        """)
  }

  private func compareTuples(
    incomplete: Int = 0, failed: Int = 0, sent: Int = 7, recorded: Int = 7, connections: Int = 4, seen: Int = 4,
    completed: Int = 4
  ) throws -> Outcome {
    try compare(
      load: Self.polls(incomplete, failed),
      ledger: Self.ledger.replacingOccurrences(
        of: "\"tuples_sent\": 7",
        with: "\"tuples_sent\": \(sent), \"connections\": \(connections), \"completed\": \(completed)"),
      inspection: Self.inspection.replacingOccurrences(
        of: "\"feedback_tuples\": 7", with: "\"feedback_tuples\": \(recorded)"
      )
      .replacingOccurrences(of: "\"connections\": 6", with: "\"connections\": \(5 + seen)")
      .replacingOccurrences(of: "\"feedback_connections\": 1", with: "\"feedback_connections\": \(seen)"))
  }

  @Test("The tuples of a load that polls are in three books")
  func tuples() throws {
    let agreed = try compareTuples()
    #expect(agreed.status == 0, "\(agreed.output)\(agreed.errors)")
    #expect(agreed.output.filter { $0 == "✓" }.count == 12)
    for differing in [
      try compareTuples(sent: 6), try compareTuples(sent: 8), try compareTuples(recorded: 6),
      try compareTuples(recorded: 8), try compareTuples(connections: 5), try compareTuples(connections: 3),
      try compareTuples(seen: 3), try compareTuples(completed: 3), try compareTuples(completed: 5),
    ] { #expect(differing.status == 1 && differing.output.contains("✗"), "\(differing.output)") }
    // Of a list that was cut off the service may have sent more, and never less than the others have.
    for (incomplete, failed) in [(1, 0), (0, 1)] {
      let cut = try compareTuples(
        incomplete: incomplete, failed: failed, sent: 9, recorded: 8, connections: 5, seen: 5, completed: 5)
      #expect(cut.status == 0, "\(cut.output)\(cut.errors)")
      for differing in [
        try compareTuples(incomplete: incomplete, failed: failed, sent: 6, connections: 5, seen: 5),
        try compareTuples(incomplete: incomplete, failed: failed, recorded: 6, connections: 5, seen: 5),
        try compareTuples(incomplete: incomplete, failed: failed, connections: 6, seen: 5),
        try compareTuples(incomplete: incomplete, failed: failed, connections: 3, seen: 5),
        try compareTuples(incomplete: incomplete, failed: failed, connections: 5, seen: 6),
      ] { #expect(differing.status == 1, "\(differing.output)") }
    }
  }

  @Test("A book that is not there: 66; none: 64")
  func missing() throws {
    try Command.inFolder { command in
      let absent = try command.shell("'\(Self.script)' run.json sim.json")
      #expect(absent.status == 66)
      #expect(absent.errors.contains("run.json"))
      #expect(try command.shell("'\(Self.script)'").status == 64)
    }
  }
}
