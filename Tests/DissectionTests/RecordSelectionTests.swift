import BinaryProtocol
import Bytes
import Foundation
import PacketCapture
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

/// Selections against a plain filter over all records, which knows records by their JSON alone.
@Suite("Record selections")
struct RecordSelectionTests {
  @Test("A selection is what a filter over all records gives", arguments: some(15, of: TraceTests.baselines))
  func traces(name: String) throws {
    let trace = String(name.dropLast(".jsonl".count))
    var random = SeededGenerator(seed: UInt64(trace.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) }))
    try expectFiltered(Self.path(of: trace), 12, &random)
  }

  @Test("The same where a gateway answers many notifications, in any order", arguments: seeds(20, of: 120))
  func conversations(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let capture = CaptureBuilder.conversations(&random)
    try withTemporaryFile(capture.bytes) { try expectFiltered($0, 6, &random) }
  }

  private func expectFiltered(_ path: String, _ count: Int, _ random: inout SeededGenerator) throws {
    let all = try AllRecords(path)
    for _ in 0..<count {
      let selection = all.someSelection(&random)
      let facts = try Self.read(path, into: RecordingFacts(for: selection))
      let selected = try Self.lines(path, selection, facts)
      let expected = all.filtered(by: selection)
      #expect(selected.records == expected.records, "\(selection.options)")
      #expect(selected.summary == expected.summary, "\(selection.options)")
      for capture in selected.captures { #expect(capture["selection"] as? [String] ?? [] == selection.options) }
      let fates = try Self.lines(path, selection, facts, writing: .ranges).ranges
      #expect(fates == all.fates(of: expected), "\(selection.options)")
      // Connections count only what is selected of them when an inspection sums them up.
      guard !selection.isEmpty else { continue }
      let inspected = SharedSink(Inspection())
      _ = try Self.read(path, into: SelectedRecords(inspected, selection, facts: facts, countsSelected: true))
      let report = inspected.sink.finish()
      #expect(report.summary.notifications == expected.summary["notifications"], "\(selection.options)")
      #expect(report.errorCount == expected.summary["error_responses"], "\(selection.options)")
      let counted = [report.fates.accepted, report.fates.rejected, report.fates.discarded, report.fates.unknown]
      let chosen = ["accepted", "rejected", "discarded", "unknown"].map { fate in
        expected.records.count { $0.hasPrefix(#"{"type":"notification""#) && $0.contains(#","fate":"\#(fate)","#) }
      }
      #expect(counted == chosen, "\(selection.options)")
    }
  }

  @Test("Without a criterion everything is selected") func everything() throws {
    let path = Self.path(of: "feedback-clear.pcap")
    let whole = try decodedLines(path, source: "x")
    let selected = try Self.lines(path, RecordSelection())
    #expect(selected.records.count == whole.split(separator: "\n").count - 2)
    #expect(selected.captures.allSatisfy { $0["selection"] == nil })
  }

  @Test("A limit ends the records, and connections that had not ended by then have none") func limit() throws {
    let path = Self.path(of: "plain-error.pcap")
    let whole = try Self.lines(path, RecordSelection())
    let limited = try Self.lines(path, RecordSelection(), limit: 5)
    #expect(limited.records == Array(whole.records.prefix(5)))
    #expect(limited.captures.first?["selection"] as? [String] == ["--limit=5"])
    #expect(limited.summary["notifications"] == 5)
  }

  @Test("Connections of an inspection count what was selected") func counted() throws {
    var selection = RecordSelection()
    selection.fates = [.discarded]
    let path = Self.path(of: "plain-error.pcap")
    let facts = try Self.read(path, into: RecordingFacts(for: selection))
    let selected = SharedSink(Inspection())
    _ = try Self.read(path, into: SelectedRecords(selected, selection, facts: facts, countsSelected: true))
    let report = selected.sink.finish()
    #expect(report.selection == ["--fate=discarded"])
    #expect(report.summary.notifications == 26)
    #expect(report.summary.connections == 1)
    #expect(report.fates.discarded == 26 && report.fates.accepted == 0 && report.fates.unknown == 0)
    #expect(report.connections.map(\.notifications) == [26])
  }

  @Test(
    "Of tokens the first digits are compared, odd ones too",
    arguments: [
      ("a", true), ("aB", true), ("ab1", true), ("ab12", true), ("ab12c", false), ("b", false), ("ab2", false),
    ])
  func tokens(prefix: String, fits: Bool) throws {
    let token: [UInt8] = [0xab, 0x12]
    #expect(try #require(RecordSelection.TokenPrefix(prefix)).begins(token.rawBytes) == fits)
  }

  @Test("A token that is not hexadecimal is refused", arguments: ["", "xy", "0x12", " 1"]) func noToken(text: String) {
    #expect(RecordSelection.TokenPrefix(text) == nil)
  }

  @Test("Times of day are of the first connection's day, offsets count from it") func moments() {
    // 2015-12-13T09:46:40Z.
    let start = Timestamp(nanoseconds: 1_450_000_000_000_000_000)
    let hour: Int64 = 3_600_000_000_000
    #expect(RecordSelection.Moment.timeOfDay(10 * hour).time(after: start)?.nanoseconds == 1_450_000_800_000_000_000)
    #expect(RecordSelection.Moment.timeOfDay(0).time(after: start)?.nanoseconds == 1_449_964_800_000_000_000)
    #expect(RecordSelection.Moment.offset(5).time(after: start)?.nanoseconds == start.nanoseconds + 5)
    #expect(RecordSelection.Moment.offset(5).time(after: .none) == nil)
    #expect(RecordSelection.Moment.at(start).time(after: .none) == start)
  }

  // MARK: reading

  static func read<Sink: RecordSink>(_ path: String, into sink: Sink) throws -> Sink {
    let shared = SharedSink(sink)
    var dissection = Dissection(into: shared, options: DissectionOptions(), secrets: try secrets(beside: path))
    _ = try dissection.read(try CaptureInput.open(path, options: CaptureOptions()), source: "x") { _ in true }
    dissection.finish()
    return shared.sink
  }

  static func path(of trace: String) -> String { Folder.traces.appending(path: trace).path }

  static func lines(
    _ path: String, _ selection: RecordSelection, _ known: RecordingFacts? = nil, writing notation: FateNotation? = nil,
    limit: Int = .max
  ) throws -> Selected {
    let facts = try known ?? read(path, into: RecordingFacts(for: selection))
    var written: [UInt8] = []
    let writer = JSONLinesWriter(fates: notation ?? .each(facts.fates), judging: PayloadJudging()) { bytes in
      written.append(copying: bytes)
      return true
    }
    _ = try read(path, into: SelectedRecords(writer, selection, facts: facts, limit: limit))
    writer.flush()
    return try Selected(String(decoding: written, as: UTF8.self))
  }

  /// What was written, apart by how it is compared.
  struct Selected {
    var captures: [[String: Any]] = []
    /// All but captures and the summary, as lines.
    var records: [String] = []
    var summary: [String: Int] = [:]
    /// The fates in `fate` records, by connection and notification.
    var ranges: [[Int]: String] = [:]

    init() {}
    init(_ text: String) throws {
      for line in text.split(separator: "\n") {
        let record = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        switch record["type"] as? String {
        case "capture": captures.append(record)
        case "summary": summary = record.compactMapValues { $0 as? Int }
        case "fate":
          let (first, last) = (try #require(record["first"] as? Int), try #require(record["last"] as? Int))
          for index in first...last {
            ranges[[try #require(record["connection"] as? Int), index]] = record["fate"] as? String
          }
        default: records.append(String(line))
        }
      }
    }
  }
}

/// All records of a trace.
private struct AllRecords {
  private var records: [(line: String, fields: [String: Any])] = []
  private var summary: [String: Int] = [:]

  init(_ path: String) throws {
    for line in try decodedLines(path, source: "x").split(separator: "\n") {
      let fields = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      switch fields["type"] as? String {
      case "capture": continue
      case "summary": summary = fields.compactMapValues { $0 as? Int }
      default: records.append((String(line), fields))
      }
    }
  }

  /// The fates of all notifications on the connections of a selection.
  func fates(of selected: RecordSelectionTests.Selected) -> [[Int]: String] {
    let kept = Set(selected.records)
    let connections = Set(
      records.filter { kept.contains($0.line) && $0.fields["type"] as? String == "connection" }
        .compactMap { $0.fields["connection"] as? Int })
    var fates: [[Int]: String] = [:]
    for (_, fields) in records where fields["type"] as? String == "notification" {
      guard let connection = fields["connection"] as? Int, let index = fields["index"] as? Int,
        connections.contains(connection)
      else { continue }
      fates[[connection, index]] = fields["fate"] as? String
    }
    return fates
  }

  /// Criteria that mostly select something.
  func someSelection(_ random: inout SeededGenerator) -> RecordSelection {
    var selection = RecordSelection()
    let some = records.filter { _ in random.happens(oneIn: 5) }
    for _ in 0..<random.number(1...2) {
      guard let fields = (some.isEmpty ? records : some).randomElement(using: &random)?.fields else { break }
      switch random.number(0...7) {
      case 0:
        guard let time = moment(fields) else { break }
        if random.happens(oneIn: 2) { selection.from = time } else { selection.to = time }
      case 1:
        if let token = tokens(fields).randomElement(using: &random), !token.isEmpty {
          selection.tokens += [RecordSelection.TokenPrefix(String(token.prefix(random.number(1...6))))].compactMap {
            $0
          }
        }
      case 2:
        if let identifier = fields["identifier"] as? Int { selection.identifiers.append(UInt32(identifier)) }
      case 3:
        if let connection = fields["connection"] as? Int { selection.connections.append(connection...connection) }
      case 4: if let status = fields["status"] as? Int { selection.statuses.insert(status) }
      case 5: selection.fates.insert(random.pick([.accepted, .rejected, .discarded, .unknown]))
      case 6: selection.topics.formUnion((topics(fields) + messageTopics(fields)).prefix(1))
      default:
        selection.types.insert(
          random.pick([
            .notification, .errorResponse, .feedback, .gap, .malformed, .connection, .device, .localPush,
          ]))
      }
    }
    return selection
  }

  private func moment(_ fields: [String: Any]) -> RecordSelection.Moment? {
    guard let text = fields["time"] as? String, let time = RFC3339.nanoseconds(Array(text.utf8).rawBytes) else {
      return nil
    }
    return .at(Timestamp(nanoseconds: time))
  }

  private func topics(_ fields: [String: Any]) -> [String] {
    let subject = (fields["tls"] as? [String: Any])?["client_subject"] as? String ?? ""
    return subject.split(separator: ",").filter { $0.hasPrefix("UID=") }.map { String($0.dropFirst(4)) }
  }

  private func isMessage(_ fields: [String: Any]) -> Bool {
    ["device", "local_push"].contains(fields["type"] as? String ?? "")
  }

  /// The topics that a message names.
  private func messageTopics(_ fields: [String: Any]) -> [String] {
    guard isMessage(fields) else { return [] }
    return (fields["topics"] as? [String] ?? []) + [fields["topic"] as? String].compactMap { $0 }
  }

  /// The tokens that a record names.
  private func tokens(_ fields: [String: Any]) -> [String] {
    [fields["token"] as? String, fields["new_token"] as? String].compactMap { $0 }
      + (fields["tokens"] as? [String] ?? [])
  }

  func filtered(by selection: RecordSelection) -> RecordSelectionTests.Selected {
    var selected = RecordSelectionTests.Selected()
    if selection.isEmpty { selected.records = records.map(\.line) } else { filter(selection, into: &selected) }
    selected.summary = summary
    let kept = Set(selected.records)
    func count(_ type: String) -> Int { selected.records.count { $0.hasPrefix(#"{"type":"\#(type)""#) } }
    selected.summary["connections"] = count("connection")
    selected.summary["notifications"] = count("notification")
    selected.summary["error_responses"] = count("error_response")
    selected.summary["feedback_tuples"] = count("feedback")
    selected.summary["gaps"] = count("gap")
    // A member of a recording that has messages to devices, and of no other.
    let messages = count("device") + count("local_push")
    selected.summary["messages"] = messages == 0 ? nil : messages
    let broken = records.count {
      kept.contains($0.line) && $0.fields["type"] as? String == "notification" && $0.fields["problem"] != nil
    }
    selected.summary["malformed"] = count("malformed") + broken
    selected.summary["undecrypted_connections"] = records.count {
      kept.contains($0.line) && ($0.fields["tls"] as? [String: Any])?["decrypted"] as? Bool == false
    }
    return selected
  }

  private func filter(_ selection: RecordSelection, into selected: inout RecordSelectionTests.Selected) {
    // What is known of a notification, by connection and index.
    var notifications: [[Int]: [String: Any]] = [:]
    var statuses: [[Int]: Set<Int>] = [:]
    var onTopic: Set<Int> = []
    for (_, fields) in records {
      let connection = fields["connection"] as? Int ?? 0
      if let index = fields["index"] as? Int { notifications[[connection, index]] = fields }
      if let named = fields["notification"] as? Int, let status = fields["status"] as? Int {
        statuses[[connection, named], default: []].insert(status)
      }
      if !selection.topics.isDisjoint(with: topics(fields)) { onTopic.insert(connection) }
    }
    let (from, to) = (text(selection.from), text(selection.to))
    func fits(_ fields: [String: Any]) -> Bool {
      let connection = fields["connection"] as? Int ?? 0
      let type = fields["type"] as? String ?? ""
      if !selection.types.isEmpty, !selection.types.contains(where: { $0.rawValue == type }) { return false }
      if !selection.connections.isEmpty, !selection.connections.contains(where: { $0.contains(connection) }) {
        return false
      }
      if !selection.topics.isEmpty, !onTopic.contains(connection),
        selection.topics.isDisjoint(with: messageTopics(fields))
      {
        return false
      }
      if from != nil || to != nil {
        guard let time = (type == "connection" ? fields["opened"] : fields["time"]) as? String else { return false }
        if let from, time < from { return false }
        if let to, time >= to { return false }
      }
      let named = (fields["notification"] as? Int).flatMap { notifications[[connection, $0]] }
      if !selection.tokens.isEmpty {
        let own = type == "error_response" ? [named?["token"] as? String].compactMap { $0 } : tokens(fields)
        guard own.contains(where: { token in selection.tokens.contains { token.hasPrefix($0.text) } }) else {
          return false
        }
      }
      if !selection.identifiers.isEmpty {
        guard let identifier = fields["identifier"] as? Int, selection.identifiers.contains(UInt32(identifier)) else {
          return false
        }
      }
      if !selection.fates.isEmpty {
        guard let fate = (type == "error_response" ? named?["fate"] : fields["fate"]) as? String,
          selection.fates.contains(where: { $0.rawValue == fate })
        else { return false }
      }
      if !selection.statuses.isEmpty {
        let own = (fields["status"] as? Int).map { [$0] }
        let others = (fields["index"] as? Int).flatMap { type == "notification" ? statuses[[connection, $0]] : nil }
        guard !selection.statuses.isDisjoint(with: Set(own ?? []).union(others ?? [])) else { return false }
      }
      return true
    }
    let chosen = records.map { record in
      let isConnection = record.fields["type"] as? String == "connection"
      return (!isConnection || selection.types.contains(.connection)) && fits(record.fields)
    }
    let connections = Set(zip(records, chosen).filter(\.1).compactMap { $0.0.fields["connection"] as? Int })
    for (record, isChosen) in zip(records, chosen) {
      let stays =
        record.fields["type"] as? String == "connection"
        && connections.contains(record.fields["connection"] as? Int ?? 0)
      if isChosen || stays { selected.records.append(record.line) }
    }
  }

  private func text(_ moment: RecordSelection.Moment?) -> String? {
    if case .at(let time) = moment { TimestampFormatter.text(time) } else { nil }
  }
}
