import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import ProviderAPI
import PushModel
import TLSDecryption
import TLSFoundation

/// Reads records back: the lines that `JSONLinesWriter` writes (Documentation/records.md) go into a sink as if they came
/// from the dissector.
///
/// The lines are needed twice. An error response comes after all notifications of its connection, but takes effect when
/// it arrived; and the first packet of a connection is in its last record. So every line is passed to `scan(_:)` first,
/// and then again to `read(_:into:)`. What is kept between the two passes is limited.
public struct RecordReader: ~Copyable {
  /// Limits on what is kept of earlier lines.
  public struct Limits: Sendable {
    /// The number of error responses and of connections' times that the first pass keeps; further ones take effect
    /// at the position of their lines.
    public var remembered = 1 << 16
    /// The number of connections that are open at a time.
    public var connections = ReassemblyOptions().maximumConnections
    /// The number of fate ranges kept for open connections; further ones are not passed on. 0: none are.
    public var fateRanges = FateIndex.usualMaximumRanges
    public init() {}
  }

  /// Larger numbers of bytes or packets are refused, so that no sum overflows.
  static let maximumBytes = 1 << 36
  static let maximumFiles = 1 << 22

  private let limits: Limits
  /// By run of the command: `capture` records divide the lines into files, whose packets are numbered separately.
  /// Numbered files of one run share an entry, since a connection may continue from one to the next.
  private var files = [File()]
  private var file = 0
  private var remembered = 0
  /// Connections that have begun and whose record has not come, by number.
  private var open: [Int: Counts] = [:]
  /// An offset added to the file's connection numbers: each file that was written by its own run begins with 1.
  private var base = 0
  private var highest = 0
  private var mayRestart = false
  private var fateRanges = 0
  /// Whether the records are a selection: counts in the records of connections may exceed the number of records.
  public private(set) var isSelection = false { didSet { census.isSelection = isSelection } }
  /// Whether a record with a fate was read.
  public private(set) var hasFates = false
  private var segment = (connection: 0, packet: 0, count: 0, time: Timestamp.none)
  private var output = ByteWriter(capacity: 1 << 12)
  private var scratch = ByteWriter(capacity: 1 << 12)
  /// Totals of the records read; where records are missing, of the counts in connections' records.
  public private(set) var summary = SummaryRecord()
  private var census = RecordCensus()
  /// The number of records of unknown types, which are skipped.
  public private(set) var unknownRecords = 0
  /// The number of records of known types that were read.
  public private(set) var records = 0

  private struct File {
    /// The file's error responses, in the order of their lines.
    var responses: [(record: ErrorResponseRecord, isDone: Bool)] = []
    /// Indexes of `responses` in the order of their packets; those before `next` have taken effect.
    var order: [Int] = []
    var next = 0
    var linesSeen = 0
    var opened: [Int: Timestamp] = [:]
    /// Subjects of client certificates, which name topics.
    var subjects: [Int: String] = [:]
  }

  private struct Counts {
    var opened: Timestamp
    var notifications = 0
    var errorResponses = 0
    var feedbackTuples = 0
    var messages = 0
    /// The protocol of the messages.
    var messageProtocol: OtherProtocol?
    /// The fates of its notifications, inferred from its error responses.
    var fates = InferredFates()
    /// The fates of its notifications that records state, in the order of the records.
    var ranges: [FateRecord] = []
  }

  /// A sentence about missing records; `nil` if none are known to be missing. Valid after `finish(into:)`.
  public var missing: String? { census.missing }

  /// Makes a reader of one trace: one that has not scanned a line.
  public init(limits: Limits = Limits()) { self.limits = limits }

  // MARK: first pass

  /// Reads a line, without its line feed, in the first pass. Errors are left to `read(_:into:)`.
  public mutating func scan(_ line: RawSpan) {
    switch Self.firstType(of: line) {
    case "capture":
      let fields = try? Self.fields(line)
      if let fields, !fields.list("selection").isEmpty { isSelection = true }
      if let fields, fields.continuesRun { return }
      files.append(File())
    case "error_response":
      guard remembered < limits.remembered, let fields = try? Self.fields(line),
        let record = try? fields.errorResponse()
      else { return }
      remembered += 1
      files[files.count - 1].responses.append((record, false))
    case "connection":
      guard remembered < limits.remembered, let fields = try? Self.fields(line),
        let number = try? fields.number("connection"), let time = try? fields.time("opened"), time.isKnown
      else { return }
      remembered += 1
      files[files.count - 1].opened[number] = time
      files[files.count - 1].subjects[number] = fields.text("tls.client_subject")
    default: return
    }
  }

  /// The type of a record that begins with its type, without reading the rest.
  private static func firstType(of line: RawSpan) -> String? {
    var offset = 0
    func skipSpace() { while offset < line.byteCount, RecordMembers.isSpace(line.byte(at: offset)) { offset += 1 } }
    for word in ["{", "\"type\"", ":", "\""] as [StaticString] {
      skipSpace()
      guard offset + word.utf8CodeUnitCount <= line.byteCount, line.holds(word, at: offset) else { return nil }
      offset += word.utf8CodeUnitCount
    }
    let start = offset
    while offset < line.byteCount, offset - start < 32, line.byte(at: offset) != UInt8(ascii: "\"") { offset += 1 }
    return String(decoding: Array(copying: line.extracting(start..<offset)), as: UTF8.self)
  }

  private static func fields(_ line: RawSpan) throws(RecordError) -> RecordFields? {
    guard let members = try RecordMembers(line) else { return nil }
    return try RecordFields(members)
  }

  // MARK: second pass

  /// Reads a line in the second pass; empty lines are skipped.
  ///
  /// A line that throws changes nothing.
  ///
  /// - Parameters:
  ///   - line: one JSON object, without its line feed.
  ///   - sink: takes the record, and responses that took effect before it.
  /// - Throws: `RecordError` when the line is no record, or lacks a field.
  public mutating func read(_ line: RawSpan, into sink: inout some RecordSink) throws(RecordError) {
    if Self.firstType(of: line) == "notification" { return try notification(line, &sink) }
    guard let fields = try Self.fields(line) else { return }
    guard let type = fields.text("type") else { throw RecordError("not a record: missing field 'type'") }
    switch type {
    case "notification": try notification(line, &sink)
    case "capture": try capture(fields, &sink)
    case "error_response": try errorResponse(fields, &sink)
    case "fate": try fate(fields, &sink)
    case "feedback": try feedback(fields, &sink)
    case "gap":
      guard let reason = fields.text("reason").flatMap(GapRecord.Reason.init) else {
        throw RecordError("unknown 'reason'")
      }
      sink.receive(
        GapRecord(
          place: try place(fields), direction: fields.direction, reason: reason,
          losesHeaderTable: fields.flag("header_table") ?? false))
      summary.gaps += 1
      census.found.gaps += 1
    case "malformed":
      sink.receive(
        MalformedRecord(
          place: try place(fields), direction: fields.direction, problem: fields.text("problem") ?? "", bytes: [])
      )
      summary.malformed += 1
      census.found.malformed += 1
    case "connection": try connection(fields, &sink)
    case "capture_loss": try loss(fields, &sink)
    case "delivery": try delivery(fields, &sink)
    case "summary":
      let stated = try fields.summary()
      summary.packets += stated.packets
      summary.droppedPackets += stated.droppedPackets
      summary.unreadPackets += stated.unreadPackets
      summary.unread += stated.unread.prefix(max(0, Self.maximumUnread - summary.unread.count))
      census.add(stated)
    case "device": try message(.device, line, fields, &sink)
    case "local_push": try message(.localPush, line, fields, &sink)
    default:
      guard let record = try fields.providerRecord(type, at: try provider(fields, &sink)) else {
        unknownRecords += 1
        return
      }
      endSegment(&sink)
      if case .response = record {
        summary.responses += 1
        census.found.responses += 1
      }
      sink.receive(record)
    }
    records += 1
  }

  /// The place of a record of HTTP/2, with which its connection may begin.
  private mutating func provider(
    _ fields: RecordFields, _ sink: inout some RecordSink
  ) throws(RecordError) -> RecordPlace {
    var place = try fields.place()
    guard RecordType(rawValue: fields.text("type") ?? "") != nil else { return place }
    place.connection = try begin(place.connection, place.time, &sink)
    return place
  }

  private mutating func message(
    _ type: RecordType, _ line: RawSpan, _ fields: RecordFields, _ sink: inout some RecordSink
  ) throws(RecordError) {
    var place = try fields.place()
    let message = try fields.message(type, payload: try Self.payload(line, fields))
    place.connection = try begin(place.connection, place.time, &sink)
    endSegment(&sink)
    open[place.connection]?.messages += 1
    open[place.connection]?.messageProtocol = type == .device ? .devices : .localPush
    summary.messages += 1
    census.found.messages += 1
    sink.receive(MessageRecord(message, at: place, fields.direction))
  }

  /// Ends connections without a final record, and reports the totals. Call it once.
  public mutating func finish(into sink: inout some RecordSink) {
    endSegment(&sink)
    census.begun = summary.connections
    for (number, counts) in open.sorted(by: { $0.key < $1.key }) {
      let fates = counts.fates.fates(of: counts.notifications)
      let isGateway = fates.written > 0 || counts.errorResponses > 0
      var record = ConnectionRecord(
        connection: number, service: isGateway ? .gateway : counts.feedbackTuples > 0 ? .feedback : .unknown,
        client: nil, server: nil, opened: counts.opened, closed: .none, end: .captureEnd, tls: nil, clientBytes: 0,
        serverBytes: 0, missingBytes: 0, notifications: fates.written, errorResponses: counts.errorResponses,
        feedbackTuples: counts.feedbackTuples, fates: fates, conflictingBytes: 0, limits: [])
      if let other = counts.messageProtocol {
        (record.service, record.otherProtocol, record.messages) = (.other, other, counts.messages)
      }
      record.notCaptured = ConnectionRecord.NotCaptured(start: true, client: .init(), server: .init())
      summary.notifications += fates.written - counts.notifications
      summary.noteEnd(of: record)
      reportFates(counts.ranges, of: record.notifications, on: number, &sink)
      sink.receive(record)
    }
    sink.receive(summary)
  }

  /// Lines about unread packets that are kept.
  private static let maximumUnread = 64

  private func loss(_ fields: RecordFields, _ sink: inout some RecordSink) throws(RecordError) {
    let (dropped, most) = (try fields.required("dropped", most: Self.maximumBytes), Self.maximumBytes)
    let interface = try fields.number("interface_dropped", most: most)
    let system = try fields.number("os_dropped", most: most)
    sink.receive(
      CaptureLossRecord(
        file: try fields.number("file", most: Self.maximumFiles),
        loss: CaptureLoss(
          interface: fields.text("interface"), interfaceDropped: interface,
          systemDropped: system ?? (interface == nil ? dropped : nil),
          received: try fields.number("received", most: most))))
  }

  /// The record's place, with the connection's number among all files.
  private func place(_ fields: RecordFields) throws(RecordError) -> RecordPlace {
    var place = try fields.place()
    place.connection += base
    return place
  }

  /// Begins a connection with its first record; returns its number among all files.
  private mutating func begin(
    _ number: Int, _ time: Timestamp, _ sink: inout some RecordSink
  ) throws(RecordError) -> Int {
    if mayRestart, number + base <= highest { base = highest }
    mayRestart = false
    let own = number + base
    guard open[own] == nil else { return own }
    guard open.count < limits.connections else {
      throw RecordError("more than \(limits.connections) connections open at a time; raise --max-connections")
    }
    if own > highest + 1 || own < highest, let lowest = open.keys.min(),
      max(own, highest) - min(own, lowest) > limits.connections
    {
      throw RecordError(
        "connection \(number) is too far from \(lowest - base), which has not ended; raise --max-connections")
    }
    let opened = files.indices.contains(file) ? files[file].opened[number] ?? time : time
    open[own] = Counts(opened: opened)
    highest = max(highest, own)
    summary.connections += 1
    sink.opened(connection: own, at: opened)
    if files.indices.contains(file), let subject = files[file].subjects[number] {
      sink.presented(subject: subject, connection: own)
    }
    return own
  }

  private mutating func endSegment(_ sink: inout some RecordSink) {
    if segment.count > 0 { sink.segment(notifications: segment.count, at: segment.time) }
    segment.count = 0
  }

  // MARK: records

  private mutating func notification(_ line: RawSpan, _ sink: inout some RecordSink) throws(RecordError) {
    guard var members = try RecordMembers(line) else { return }
    var notification = RecordedNotification()
    notification.padsInside = true
    var place = RecordPlace(connection: 0, time: .none, packet: 0, offset: 0, length: 0)
    var index = 0
    var problem: String?
    var fate: Fate?
    // One over HTTP/2 shows by its stream, and may have longer numbers.
    var isOfProviderAPI = false
    var fault: RecordError?
    func read(_ member: RecordMembers.Member, of members: borrowing RecordMembers) throws(RecordError) {
      if members.isName("packet", of: member) {
        place.packet |= try members.number(member, "packet")
      } else if members.isName("file", of: member) {
        place.packet |= PacketNumber.joining(
          file: try members.number(member, "file", most: Self.maximumFiles), packet: 0)
      } else if members.isName("offset", of: member) {
        place.offset = try members.number(member, "offset")
      } else if members.isName("length", of: member) {
        place.length = try members.number(member, "length", most: 1 << 32)
      } else if members.isName("index", of: member) {
        index = try members.number(member, "index")
      } else if members.isName("fate", of: member) {
        let word = members.line.extracting(try members.string(member, "fate"))
        fate = Fate.allCases.first {
          word.byteCount == $0.word.utf8CodeUnitCount && word.holds($0.word, at: 0)
        }
      } else if members.isName("stream", of: member) {
        isOfProviderAPI = true
      } else if members.isName("problem", of: member), member.kind == .string {
        problem = RecordText.unescaped(members.line.extracting(member.value))
      } else {
        try notification.read(member, of: members)
      }
    }
    while let member = members.next() {
      do throws(RecordError) { try read(member, of: members) } catch { fault = fault ?? error }
    }
    if isOfProviderAPI { return try providerNotification(line, &sink) }
    if let fault { throw fault }
    guard notification.connection > 0 else { throw RecordError("missing field 'connection'") }
    output.removeAll()
    _ = try notification.encode(line, into: &output, scratch: &scratch)
    let fields: PushFields
    do {
      fields = try PushFields(parsing: output.bytes)
    } catch {
      throw RecordError("the fields do not form a notification: \(error)")
    }
    if let time = notification.time { place.time = Timestamp(nanoseconds: time) }
    if place.length == 0 { place.length = output.count }
    if PacketNumber.packet(place.packet) > 0 { takeEffect(before: place.packet, &sink) }
    place.connection = try begin(notification.connection, place.time, &sink)
    if segment.connection != place.connection || segment.packet != place.packet { endSegment(&sink) }
    segment = (place.connection, place.packet, segment.count + 1, place.time)
    open[place.connection]?.notifications += 1
    if let fate { note(FateRecord(connection: place.connection, first: index, last: index, fate: fate)) }
    summary.notifications += 1
    census.found.notifications += 1
    records += 1
    if let problem {
      summary.malformed += 1
      census.found.malformed += 1
      sink.receive(malformed: problem, fields, output.bytes, at: place, index: index)
    } else {
      sink.receive(fields, output.bytes, at: place, index: index)
    }
  }

  /// A notification over HTTP/2, which has a stream.
  private mutating func providerNotification(_ line: RawSpan, _ sink: inout some RecordSink) throws(RecordError) {
    guard let fields = try Self.fields(line) else { return }
    var place = try fields.place()
    place.connection = try begin(place.connection, place.time, &sink)
    let read = try ReadProviderNotification(fields, payload: try Self.payload(line, fields), place: place)
    endSegment(&sink)
    open[place.connection]?.notifications += 1
    if let fate = read.fate { note(fate) }
    summary.notifications += 1
    census.found.notifications += 1
    records += 1
    sink.receive(
      ProviderNotificationRecord(
        read.request, read.bytes.rawBytes, at: place, index: read.index, trust: read.trust,
        providerToken: read.providerToken))
  }

  /// The payload of a notification as it was on the wire; white space that was left out is inserted before its end.
  private static func payload(_ line: RawSpan, _ fields: RecordFields) throws(RecordError) -> [UInt8]? {
    guard var members = try RecordMembers(line), let length = try fields.number("payload_length") else { return nil }
    var writer = ByteWriter(capacity: min(length, line.byteCount))
    while let member = members.next() {
      if members.isName("payload_base64", of: member) {
        guard writer.write(bytesOfBase64: line.extracting(member.value)) else {
          throw RecordError("'payload_base64' is not Base64")
        }
        return Array(copying: writer.bytes)
      }
      guard members.isName("payload", of: member) else { continue }
      let isText = member.kind == .string
      let range = isText ? member.value.lowerBound - 1..<member.value.upperBound + 1 : member.value
      RecordText.write(restoringControlsOf: line.extracting(range), bytesLess: range.count - length, into: &writer)
      var payload = Array(copying: writer.bytes)
      let missing = length - payload.count
      guard missing > 0, missing <= maximumPadding, let last = payload.popLast() else { return payload }
      payload += [UInt8](repeating: UInt8(ascii: " "), count: missing) + [last]
      return payload
    }
    return nil
  }

  /// White space in a payload that is restored, in bytes.
  private static let maximumPadding = 1 << 24

  /// Adds a record's fates to the fates of its connection.
  private mutating func note(_ record: FateRecord) {
    hasFates = true
    guard limits.fateRanges > 0, let count = open[record.connection]?.ranges.count else { return }
    if let last = open[record.connection]?.ranges.last, last.fate == record.fate, last.cause == record.cause,
      last.last + 1 == record.first
    {
      open[record.connection]?.ranges[count - 1].last = record.last
    } else if fateRanges < limits.fateRanges {
      fateRanges += 1
      open[record.connection]?.ranges.append(record)
    }
  }

  /// Passes a connection's fates to the sink, from the first notification to the last; fates in no record are unknown.
  private mutating func reportFates(
    _ ranges: [FateRecord], of notifications: Int, on connection: Int, _ sink: inout some RecordSink
  ) {
    guard limits.fateRanges > 0 else { return }
    fateRanges -= ranges.count
    var next = 0
    func reportUnknown(before end: Int, _ sink: inout some RecordSink) {
      if end > next { sink.receive(FateRecord(connection: connection, first: next, last: end - 1, fate: .unknown)) }
    }
    // Records may be reordered or duplicated.
    for range in ranges.sorted(by: { ($0.first, $0.last) < ($1.first, $1.last) }) where range.first >= next {
      reportUnknown(before: range.first, &sink)
      sink.receive(range)
      next = range.last + 1
    }
    reportUnknown(before: notifications, &sink)
  }

  private mutating func fate(_ fields: RecordFields, _ sink: inout some RecordSink) throws(RecordError) {
    guard let fate = fields.text("fate").flatMap(Fate.init) else {
      throw RecordError("unknown fate")
    }
    let first = try fields.required("first", most: Self.maximumBytes)
    let last = try fields.required("last", most: Self.maximumBytes)
    guard last >= first else { throw RecordError("'last' is less than 'first'") }
    let connection = try begin(try fields.required("connection"), .none, &sink)
    note(
      FateRecord(
        connection: connection, first: first, last: last, fate: fate,
        cause: fields.text("discarded_by").flatMap(DiscardCause.init)))
  }

  private mutating func capture(_ fields: RecordFields, _ sink: inout some RecordSink) throws(RecordError) {
    if let schema = try fields.number("schema"), schema != CaptureRecord.schema {
      throw RecordError("unsupported schema \(schema) of records; this apnscope reads schema \(CaptureRecord.schema)")
    }
    endSegment(&sink)
    if !fields.continuesRun {
      file += 1
      mayRestart = true
    }
    var record = CaptureRecord(
      file: try fields.number("file", most: Self.maximumFiles), source: fields.text("source") ?? "",
      format: fields.text("format").flatMap(CaptureFormat.init) ?? .raw,
      linkTypes: fields.list("link_types").prefix(100).compactMap { name in
        (0...UInt16(300)).lazy.map(LinkType.init).first { $0.description == name }
      }, selection: fields.list("selection"))
    record.isOfSelection = !record.selection.isEmpty
    sink.receive(record)
  }

  private mutating func errorResponse(_ fields: RecordFields, _ sink: inout some RecordSink) throws(RecordError) {
    var record = try fields.errorResponse()
    record.place.connection = try begin(record.place.connection, record.place.time, &sink)
    endSegment(&sink)
    open[record.place.connection]?.errorResponses += 1
    open[record.place.connection]?.fates.add(record)
    summary.errorResponses += 1
    census.found.errorResponses += 1
    var isDone = false
    if files.indices.contains(file) {
      let line = files[file].linesSeen
      files[file].linesSeen += 1
      if line < files[file].responses.count {
        isDone = files[file].responses[line].isDone
        files[file].responses[line].isDone = true
      }
    }
    if !isDone { sink.receiveEarly(record) }
    sink.receive(record)
  }

  /// Applies the error responses of the file before a packet, if their notifications were seen.
  private mutating func takeEffect(before packet: Int, _ sink: inout some RecordSink) {
    guard files.indices.contains(file), files[file].next < files[file].responses.count else { return }
    if files[file].order.isEmpty {
      files[file].order = files[file].responses.indices.sorted {
        let (a, b) = (files[file].responses[$0].record.place, files[file].responses[$1].record.place)
        return (a.packet, $0) < (b.packet, $1)
      }
    }
    while files[file].next < files[file].order.count {
      let place = files[file].order[files[file].next]
      var record = files[file].responses[place].record
      guard record.place.packet < packet else { return }
      files[file].next += 1
      guard record.place.packetInFile != nil, record.notification != nil, !files[file].responses[place].isDone else {
        continue
      }
      files[file].responses[place].isDone = true
      record.place.connection += base
      endSegment(&sink)
      sink.receiveEarly(record)
    }
  }

  private mutating func feedback(_ fields: RecordFields, _ sink: inout some RecordSink) throws(RecordError) {
    var place = try fields.place()
    scratch.removeAll()
    guard let token = fields.text("token"), scratch.write(bytesOfHexadecimal: Array(token.utf8).rawBytes) else {
      throw RecordError("'token' is not hexadecimal")
    }
    let timestamp = UInt32(try fields.required("timestamp"))
    let index = try fields.number("index", most: Self.maximumBytes) ?? 0
    place.connection = try begin(place.connection, place.time, &sink)
    open[place.connection]?.feedbackTuples += 1
    summary.feedbackTuples += 1
    census.found.feedbackTuples += 1
    sink.receive(
      FeedbackRecord(place: place, index: index, tuple: FeedbackTuple(timestamp: timestamp, token: scratch.bytes)))
  }

  /// The connection may have ended.
  private mutating func delivery(_ fields: RecordFields, _ sink: inout some RecordSink) throws(RecordError) {
    scratch.removeAll()
    guard let token = fields.text("token"), scratch.write(bytesOfHexadecimal: Array(token.utf8).rawBytes) else {
      throw RecordError("'token' is not hexadecimal")
    }
    guard let outcome = fields.text("outcome").flatMap(DeliveryRecord.Outcome.init) else {
      throw RecordError("unknown 'outcome'")
    }
    let connection = try fields.number("connection").map { $0 + base }
    sink.receive(
      DeliveryRecord(
        connection: connection, index: try fields.number("index", most: Self.maximumBytes),
        time: try fields.time("time"), outcome: outcome, token: Array(copying: scratch.bytes)))
  }

  private mutating func connection(_ fields: RecordFields, _ sink: inout some RecordSink) throws(RecordError) {
    var record = try fields.connection()
    record.connection = try begin(record.connection, record.opened, &sink)
    endSegment(&sink)
    let counts = open.removeValue(forKey: record.connection)
    census.add(record)
    // The connection's counts hold even if some of its records are missing.
    let found = counts?.notifications ?? 0
    record.fates.unknown += max(0, max(record.notifications, found) - record.fates.written)
    record.notifications = record.fates.written
    reportFates(counts?.ranges ?? [], of: record.notifications, on: record.connection, &sink)
    summary.notifications += record.notifications - found
    summary.noteEnd(of: record)
    sink.receive(record)
  }

}
