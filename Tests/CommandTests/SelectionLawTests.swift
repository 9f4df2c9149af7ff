import Foundation
import TestSupport
import Testing

/// What is said of a selected notification is what is said of it without a selection.
@Suite("Selections change no outcome", .waiting)
struct SelectionLawTests {
  private static let traces = ["tls-incident.pcap", "known-bad-and-errors.pcap", "plain-error.pcap"]
  private static let selections = [
    ["--fate", "discarded"], ["--fate", "accepted"], ["--fate", "rejected", "--fate", "unknown"], ["--status", "8"],
    ["--connection", "2"], ["--identifier", "9"], ["--from", "200ms"], ["--to", "300ms"], ["--type", "error_response"],
  ]

  private func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  private func stories(_ arguments: [String], in command: Command) throws -> [String: String] {
    try command.run(["follow"] + arguments).lines.map(object).reduce(into: [:]) { told, record in
      guard record["type"] as? String == "notification_story" else { return }
      let json = try JSONSerialization.data(
        withJSONObject: record["payload"] ?? record["payload_base64"] ?? "", options: [.sortedKeys, .fragmentsAllowed])
      let payload = String(decoding: json, as: UTF8.self)
      let key = "\(record["token"] ?? "") \(payload) \(record["first_sent"] ?? "")"
      told[key] = "\(record["outcome"] ?? "") \(record["open_reason"] ?? "")"
    }
  }

  @Test("inspect, report and follow agree on the selected ones, and with what they say without", arguments: traces)
  func agree(trace: String) throws {
    try Command.inFolder { command in
      try command.trace(trace)
      var input = [trace]
      if FileManager.default.fileExists(atPath: Command.traces.appending(path: "\(trace).keys").path) {
        try command.trace("\(trace).keys")
        input += ["--keys", "\(trace).keys"]
      }
      let whole = try stories(input, in: command)
      #expect(!whole.isEmpty)
      let wholeErrors = try object(try command.run(["inspect", "--format", "json"] + input).output)["errors"]
      for selection in Self.selections {
        let selected = try stories(input + (selection[0] == "--type" ? [] : selection), in: command)
        for (notification, outcome) in selected { #expect(whole[notification] == outcome, "\(selection)") }
        let inspected = try object(try command.run(["inspect", "--format", "json"] + selection + input).output)
        if selection[0] != "--type" {
          // Frames without a token, which follow tells apart by payload, are counted one by one.
          let told = inspected["stories"] as? [String: Any] ?? [:]
          for outcome in ["lost", "recovered", "accepted_twice", "expired"] {
            let count = selected.values.count { $0.hasPrefix(outcome + " ") }
            #expect(told[outcome] as? Int ?? 0 == count, "\(selection) \(outcome)")
          }
        }
        // A response that is listed says the same of what it refused and discarded.
        for error in inspected["errors"] as? [[String: Any]] ?? [] {
          let same = (wholeErrors as? [[String: Any]] ?? []).filter {
            $0["packet"] as? Int == error["packet"] as? Int && $0["identifier"] as? Int == error["identifier"] as? Int
          }
          #expect(same.count == 1 && (error as NSDictionary).isEqual(same.first), "\(selection)")
        }
        let page = try command.run(["report", "--output", "page"] + selection + input)
        #expect(page.status == 0)
        let text = try String(contentsOf: command.folder.appending(path: "page/report.md"), encoding: .utf8)
        if selection[0] != "--type" {
          for outcome in ["recovered", "accepted twice", "rejected", "open"] {
            let count = selected.values.count { $0.hasPrefix(outcome.replacing(" ", with: "_") + " ") }
            let row = text.split(separator: "\n").first { line in
              let cells = line.split(separator: "|").map {
                $0.trimmingCharacters(in: CharacterSet(charactersIn: " ✓✗!"))
              }
              return cells.count == 4 && cells[0] == outcome
            }
            #expect((row == nil) == (count == 0), "\(selection) \(outcome)")
            if let row { #expect(row.contains("| \(count) |"), "\(selection) \(row)") }
          }
        }
      }
    }
  }
}
