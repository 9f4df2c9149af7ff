import Foundation
import TestSupport
import Testing

@Suite("inspect", .waiting)
struct InspectCommandTests {
  @Test("Text tells the facts of the recording") func text() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let outcome = try command.run("inspect", "plain-error.pcap")
      #expect(outcome.status == 0)
      #expect(outcome.errors == "")
      for fact in [
        "plain-error.pcap  pcap (EN10MB)  20,722 B  146 packets", "notifications  66 (66 command 1)",
        "fates          7 accepted, 1 rejected, 26 discarded, 32 unknown", "loss: none",
        "26 notifications were discarded after an error response and sent again later",
      ] { #expect(outcome.output.contains(fact)) }
      #expect(!outcome.output.contains("never seen again"))
    }
  }

  @Test("JSON is valid, in snake case, and counts what decode writes") func json() throws {
    try Command.inFolder { command in
      for trace in ["plain-error.pcap", "known-bad-and-errors.pcap", "feedback-clear.pcap", "tls-feedback.pcap"] {
        try command.trace(trace)
        let outcome = try command.run("inspect", "--format", "json", trace)
        #expect(outcome.status == 0)
        let report = try #require(
          try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
        #expect(report["schema"] as? Int == 1 && report["kind"] as? String == "inspect")
        for name in Self.names(in: report) {
          #expect(name.allSatisfy { $0.isLowercase || $0.isNumber || $0 == "_" }, "\(name)")
        }
        let decoded = try command.run("decode", trace).lines
        let last = try #require(decoded.last)
        var summary = try #require(try JSONSerialization.jsonObject(with: Data(last.utf8)) as? [String: Any])
        summary["type"] = nil
        #expect(NSDictionary(dictionary: summary) == report["summary"] as? NSDictionary)
        #expect((report["connections"] as? [Any])?.count == summary["connections"] as? Int)
        let byStatus = try #require(report["errors_by_status"] as? [String: Int])
        #expect(byStatus.values.reduce(0, +) == report["error_count"] as? Int)
      }
    }
  }

  @Test("--rows bounds what the text lists") func rows() throws {
    try Command.inFolder { command in
      try command.trace("known-bad-and-errors.pcap")
      let (all, one) = (
        try command.run("inspect", "known-bad-and-errors.pcap"),
        try command.run("inspect", "--rows", "1", "known-bad-and-errors.pcap")
      )
      #expect(all.output.contains("10.0.0.5:40004"))
      #expect(one.output.contains("10.0.0.5:40001"))
      #expect(!one.output.contains("10.0.0.5:40004"))
      #expect(one.output.contains("and 3 more"))
    }
  }

  @Test("Without rows there are no tables") func noRows() throws {
    try Command.inFolder { command in
      try command.trace("known-bad-and-errors.pcap")
      let outcome = try command.run("inspect", "--rows", "0", "known-bad-and-errors.pcap")
      #expect(outcome.status == 0)
      #expect(!outcome.output.contains("client -> server"))
      #expect(!outcome.output.contains("discarded  latency"))
      for count in [4, 5] { #expect(outcome.output.contains("\n  and \(count) more (--rows)\n")) }
    }
  }

  @Test("Nothing to read, nothing to show") func missing() throws {
    try Command.inFolder { command in
      let outcome = try command.run("inspect", "missing.pcap")
      #expect(outcome.status == 66)
      #expect(outcome.output == "")
    }
  }

  /// Names of an object and of all objects in it. What maps statuses or reasons to counts has values for names.
  private static func names(in value: Any) -> [String] {
    if let object = value as? [String: Any] { return object.flatMap { [$0.key] + names(in: $0.value) } }
    if let array = value as? [Any] { return array.flatMap { names(in: $0) } }
    return []
  }
}
