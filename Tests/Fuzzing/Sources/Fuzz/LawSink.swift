import PushModel

@testable import Analysis
@testable import BinaryProtocol
@testable import Bytes
@testable import PacketCapture
@testable import Records

// The writers live through all runs, because their buffers cost more than a run.
nonisolated(unsafe) private let lines = JSONLinesWriter(fates: .ranges) { output in
  checkLines(output)
  return true
}
nonisolated(unsafe) private let table = TableWriter(fates: .ranges) { _ in true }
nonisolated(unsafe) private let csv = CSVWriter(fates: .ranges) { _ in true }

/// Checks what every dissection must keep: records of a direction cover its bytes exactly once, counts add up, and what
/// the writers make of the records can be read back.
struct LawSink: RecordSink {
  private struct Piece {
    var range: Range<Int>
    /// Bytes that were not captured; all others were.
    var isMissing: Bool
    var what: String
  }

  private struct Totals {
    var pieces: [Direction: [Piece]] = [:]
    var notifications = 0
    var responses = 0
    var tuples = 0
    var messages = 0
    var lastTupleEnd = 0
    /// The notifications before it have a fate.
    var settled = 0
    var fates: [Fate: Int] = [:]
  }

  private var books: [Int: Totals] = [:]
  private var opened = 0
  private var closed = 0
  private var notifications = 0
  private var gaps = 0
  private var malformed = 0
  /// The writers are used when there is one.
  private var inspection: Inspection?
  /// Frames found, for a corpus.
  var collected: [[UInt8]]?

  /// Writing and inspecting take longer than all else, so it is done for some inputs only.
  init(writes: Bool = false) { if writes { inspection = Inspection() } }

  var isOpen: Bool { true }

  /// Everything was read.
  mutating func finish(_ summary: SummaryRecord) {
    if let report = inspection?.finish() {
      lines.flush()
      table.flush()
      csv.flush()
      law(report.findings.allSatisfy { $0.count > 0 }, "a finding that occurs never")
      law(report.summary.notifications == summary.notifications, "the inspection has other notifications")
    }
    law(opened == closed && opened == summary.connections, "\(opened) connections opened, \(closed) closed")
    law(notifications == summary.notifications, "the summary has other notifications")
    law(gaps == summary.gaps && malformed == summary.malformed, "the summary has other damage")
  }

  mutating func receive(_ record: CaptureRecord) {
    guard inspection != nil else { return }
    lines.receive(record)
    table.receive(record)
    csv.receive(record)
    inspection?.receive(record)
  }

  mutating func receive(_ outcome: CaptureOutcome) { inspection?.receive(outcome) }

  mutating func opened(connection: Int, at time: Timestamp) {
    opened += 1
    law(connection == opened, "connection \(connection) after \(opened - 1)")
    books[connection] = Totals()
    inspection?.opened(connection: connection, at: time)
  }

  mutating func segment(notifications: Int, at time: Timestamp) {
    inspection?.segment(notifications: notifications, at: time)
  }

  mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    count(frame, at: place, index: index)
    malformed += 1
    guard inspection != nil else { return }
    lines.receive(malformed: problem, fields, frame, at: place, index: index)
    table.receive(malformed: problem, fields, frame, at: place, index: index)
    csv.receive(malformed: problem, fields, frame, at: place, index: index)
    inspection?.receive(malformed: problem, fields, frame, at: place, index: index)
  }

  private mutating func count(_ frame: RawSpan, at place: RecordPlace, index: Int) {
    law(place.length == frame.byteCount, "a notification's length is not its frame's")
    law(index == books[place.connection]?.notifications, "notification \(index) is out of turn")
    books[place.connection]?.notifications += 1
    notifications += 1
    collected?.append(Array(copying: frame))
    add(place, .client, "notification")
  }

  mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    count(frame, at: place, index: index)
    guard inspection != nil else { return }
    lines.receive(fields, frame, at: place, index: index)
    table.receive(fields, frame, at: place, index: index)
    csv.receive(fields, frame, at: place, index: index)
    inspection?.receive(fields, frame, at: place, index: index)
  }

  /// Notifications over HTTP/2 come in the order in which they end.
  mutating func receive(_ record: borrowing ProviderNotificationRecord) {
    law(record.index >= 0, "a notification's index is negative")
    books[record.place.connection]?.notifications += 1
    notifications += 1
    guard inspection != nil else { return }
    lines.receive(record)
    table.receive(record)
    csv.receive(record)
    inspection?.receive(record)
  }

  mutating func receive(_ record: ProviderRecord) {
    law(books[record.place.connection] != nil, "a record of a connection that is not open")
    guard inspection != nil else { return }
    lines.receive(record)
    table.receive(record)
    csv.receive(record)
    inspection?.receive(record)
  }

  mutating func receive(_ record: MessageRecord) {
    books[record.place.connection]?.messages += 1
    add(record.place, record.direction, "message")
    guard inspection != nil else { return }
    lines.receive(record)
    table.receive(record)
    csv.receive(record)
    inspection?.receive(record)
  }

  mutating func receiveEarly(_ record: ErrorResponseRecord) { inspection?.receiveEarly(record) }

  mutating func receive(_ record: ErrorResponseRecord) {
    books[record.place.connection]?.responses += 1
    if let named = record.notification, let accepted = record.accepted, let discarded = record.discarded {
      law(accepted >= 0 && discarded >= 0 && named >= 0, "negative counts in an error response")
    }
    add(record.place, .server, "response")
    guard inspection != nil else { return }
    lines.receive(record)
    table.receive(record)
    csv.receive(record)
    inspection?.receive(record)
  }

  mutating func receive(_ record: FateRecord) {
    law(
      record.first == books[record.connection]?.settled && record.last >= record.first,
      "fates of \(record.first) to \(record.last) are out of turn")
    books[record.connection]?.settled = record.last + 1
    books[record.connection]?.fates[record.fate, default: 0] += record.last + 1 - record.first
    guard inspection != nil else { return }
    lines.receive(record)
    table.receive(record)
    csv.receive(record)
  }

  mutating func receive(_ record: borrowing FeedbackRecord) {
    law(record.index == books[record.place.connection]?.tuples, "tuple \(record.index) is out of turn")
    books[record.place.connection]?.tuples += 1
    add(record.place, .server, "tuple")
    guard inspection != nil else { return }
    lines.receive(record)
    table.receive(record)
    csv.receive(record)
    inspection?.receive(record)
  }

  mutating func receive(_ record: GapRecord) {
    gaps += 1
    let isMissing = record.reason == .lost || record.reason == .truncated
    // A connection over HTTP/2 may give up streams without a byte.
    if record.place.length > 0 || record.reason != .givenUp {
      add(record.place, record.direction, "gap \(record.reason)", isMissing: isMissing)
    }
    guard inspection != nil else { return }
    lines.receive(record)
    table.receive(record)
    csv.receive(record)
    inspection?.receive(record)
  }

  mutating func receive(_ record: MalformedRecord) {
    malformed += 1
    // Those of HTTP/2 and of messages have none.
    law(
      record.bytes.isEmpty || record.bytes.count == min(64, record.place.length),
      "\(record.bytes.count) bytes shown of \(record.place.length)")
    add(record.place, record.direction, "malformed")
    guard inspection != nil else { return }
    lines.receive(record)
    table.receive(record)
    csv.receive(record)
    inspection?.receive(record)
  }

  mutating func receive(_ record: ConnectionRecord) {
    closed += 1
    if let books = books.removeValue(forKey: record.connection) {
      settle(books, record)
    } else {
      law(false, "connection \(record.connection) ends twice, or never began")
    }
    guard inspection != nil else { return }
    lines.receive(record)
    table.receive(record)
    csv.receive(record)
    inspection?.receive(record)
  }

  mutating func receive(_ record: SummaryRecord) {
    guard inspection != nil else { return }
    lines.receive(record)
    table.receive(record)
    csv.receive(record)
    inspection?.receive(record)
  }

  // MARK: books

  private mutating func add(_ place: RecordPlace, _ direction: Direction, _ what: String, isMissing: Bool = false) {
    law(books[place.connection] != nil, "\(what) of a connection that is not open")
    law(place.offset >= 0 && place.length > 0, "\(what) at \(place.offset) with \(place.length) bytes")
    let piece = Piece(range: place.offset..<place.offset + place.length, isMissing: isMissing, what: what)
    books[place.connection]?.pieces[direction, default: []].append(piece)
  }

  private func settle(_ books: Totals, _ record: ConnectionRecord) {
    let fates = record.fates
    law(
      fates.accepted >= 0 && fates.rejected >= 0 && fates.discarded >= 0 && fates.unknown >= 0
        && fates.accepted + fates.rejected + fates.discarded + fates.unknown == record.notifications,
      "fates \(fates) of \(record.notifications) notifications")
    law(record.notifications == books.notifications, "the connection has other notifications")
    let told = Fate.allCases.map { books.fates[$0, default: 0] }
    law(
      books.settled == record.notifications
        && told == [fates.accepted, fates.rejected, fates.discarded, fates.unknown],
      "fates \(fates) are told as \(told)")
    law(record.errorResponses == books.responses, "the connection has other responses")
    law(record.feedbackTuples == books.tuples, "the connection has other tuples")
    if let messages = record.messages {
      law(messages == books.messages, "the connection has other messages")
      guard record.tls == nil else { return }
      cover(books.pieces[.client] ?? [], record.clientBytes, "client")
      return cover(books.pieces[.server] ?? [], record.serverBytes, "server")
    }
    // Frames of HTTP/2 are not recorded one by one.
    if record.http2 != nil {
      law(record.missingBytes >= 0, "negative bytes are missing")
      return
    }
    guard record.tls == nil, record.service == .gateway || record.service == .feedback else { return }
    // What a provider sends to the feedback service is not read.
    if record.service == .gateway { cover(books.pieces[.client] ?? [], record.clientBytes, "client") }
    cover(books.pieces[.server] ?? [], record.serverBytes, "server")
  }

  /// The records stand one behind the other, and those of captured bytes hold all of them.
  private func cover(_ pieces: [Piece], _ bytes: Int, _ direction: String) {
    var end = 0
    var captured = 0
    for piece in pieces.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
      law(
        piece.range.lowerBound == end,
        "\(direction): \(piece.what) at \(piece.range) where \(end) comes next; pieces: \(pieces.map { "\($0.what) \($0.range)" })"
      )
      end = piece.range.upperBound
      if !piece.isMissing { captured += piece.range.count }
    }
    law(
      captured == bytes,
      "\(direction): records hold \(captured) of \(bytes) bytes; pieces: \(pieces.map { "\($0.what) \($0.range)" })")
  }
}

/// Every line is one JSON object.
private func checkLines(_ output: RawSpan) {
  var start = 0
  for offset in 0..<output.byteCount where output.byte(at: offset) == 0x0a {
    let line = output.extracting(start..<offset)
    law(line.byteCount > 2 && line.byte(at: 0) == UInt8(ascii: "{"), "a line is no object")
    // A payload may be nested as deeply as the scanner goes; its record is one deeper.
    if JSONText.scan(line) == .invalid && !isDeep(line) {
      law(false, "a line is no JSON: " + String(decoding: Array(copying: line), as: UTF8.self))
    }
    start = offset + 1
  }
  law(start == output.byteCount, "the last line does not end")
}

private func isDeep(_ line: RawSpan) -> Bool {
  var openings = 0
  for offset in 0..<line.byteCount where line.byte(at: offset) == 0x5b || line.byte(at: offset) == 0x7b {
    openings += 1
  }
  return openings > JSONText.deepestNesting
}
