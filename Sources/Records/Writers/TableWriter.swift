import BinaryProtocol
import Bytes
import DeviceProtocol
import PacketCapture
import ProviderAPI
import PushModel

/// Writes records as an aligned table for people: one line for each record, with its main fields, in order of time.
///
/// A connection's row has the time of its end. At most `maximumRows` rows are held back until records with earlier
/// times have been received; a record that is received too late follows rows with later times. A row without a time
/// follows the row of the record before it.
///
/// Bytes from the wire are shown without control characters, which could control a terminal.
public final class TableWriter: RecordSink {
  /// The number of rows held back; half of them are written when there are more.
  package static let maximumRows = 16_384

  /// The texts of the rows held back, concatenated.
  private var text = ByteWriter(capacity: 1 << 20)
  private var rows: [Row] = []
  private var isInOrder = true
  private var latest = Int64.min
  /// The rows to be written now.
  private var page = ByteWriter(capacity: 1 << 20)
  private var times = TimestampFormatter()
  private let output: RecordOutput
  private let notation: FateNotation
  private var fates: FateLookup
  private var verdicts: PayloadVerdicts?
  /// Whether the output has accepted everything so far.
  public private(set) var isOpen = true

  private struct Row {
    var time: Int64
    var offset: Int
    var end: Int
  }

  /// - Parameter judging: how payloads are judged; `nil`: not at all.
  public init(fates: FateNotation = .omitted, judging: PayloadJudging? = nil, output: @escaping RecordOutput) {
    self.output = output
    notation = fates
    self.fates = FateLookup(fates)
    verdicts = judging.map { PayloadVerdicts($0) }
  }

  /// Writes all rows held back.
  public func flush() { write(rows.count) }

  public func pause() { flush() }

  public func presented(subject: String, connection: Int) { verdicts?.note(subject: subject, of: connection) }

  public func ended(connection: Int) { verdicts?.noteEnd(of: connection) }

  /// Writes the first rows in order of time, and keeps the rest.
  private func write(_ count: Int) {
    if !isInOrder {
      // Rows with equal times keep their order.
      rows.sort { ($0.time, $0.offset) < ($1.time, $1.offset) }
      isInOrder = true
    }
    page.removeAll()
    for row in rows[..<count] { page.write(text.bytes.extracting(row.offset..<row.end)) }
    if isOpen && page.count > 0 { isOpen = output(page.bytes) }
    page.removeAll()
    for index in count..<rows.count {
      let (offset, end) = (rows[index].offset, rows[index].end)
      rows[index].offset = page.count
      page.write(text.bytes.extracting(offset..<end))
      rows[index].end = page.count
    }
    rows.removeFirst(count)
    swap(&text, &page)
  }

  public func receive(_ record: CaptureRecord) {
    let types = record.linkTypes.isEmpty ? "" : ", " + record.linkTypes.map(\.description).joined(separator: " ")
    flush()
    // Times of another input may be earlier.
    latest = .min
    begin(.none)
    let number = record.file.map { "\($0): " } ?? ""
    text.write(text: "\(number)\(TableText.printable(record.source)) (\(record.format.rawValue)\(types))\n")
    if !record.selection.isEmpty {
      text.write(text: "selected: \(TableText.printable(record.selection.joined(separator: " ")))\n")
    }
    text.write("time (UTC)                   conn    packet  record        details")
    end()
  }

  public func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    let fate = fates.fate(of: index, on: place.connection)
    let verdict = verdicts?.verdict(fields, frame, place)
    row(NotificationRecord(fields, frame, at: place, index: index, fate: fate, verdict: verdict))
  }

  public func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    let fate = fates.fate(of: index, on: place.connection)
    row(NotificationRecord(fields, frame, at: place, index: index, problem: problem, fate: fate))
  }

  private func row(_ record: borrowing NotificationRecord) {
    let fields = record.notification.fields
    begin(record.place, "notification")
    text.write(UInt8(ascii: "#"))
    text.write(decimal: record.index)
    if let fate = record.fate {
      text.write("  ")
      text.write(fate.word)
    }
    text.write("  command ")
    text.write(decimal: Int(fields.command.rawValue))
    if let identifier = fields.identifier {
      text.write("  id ")
      text.write(decimal: Int(identifier))
    }
    if let expiration = fields.expiration {
      text.write("  expires ")
      text.write(decimal: Int(expiration))
    }
    if let priority = fields.priority {
      text.write("  priority ")
      text.write(decimal: Int(priority))
    }
    text.write("  token ")
    text.write(short: record.notification.token)
    text.write("  ")
    text.write(decimal: fields.payload.length)
    text.write(" B ")
    text.write(preview: record.notification.payload)
    if let problem = record.problem { text.write(text: "  malformed: \(problem)") }
    if let verdict = record.verdict { write(verdict) }
    end()
  }

  private func write(_ verdict: PayloadVerdict) {
    text.write("  ")
    text.write(verdict.kind.word)
    guard !verdict.rules.isEmpty else { return }
    text.write("  lint:")
    for rule in verdict.rules {
      text.write(" ")
      text.write(text: rule.code)
    }
  }

  /// With fates from a first pass the number of discarded notifications is already known.
  public func receiveEarly(_ record: ErrorResponseRecord) {
    var record = record
    switch notation {
    case .omitted: return
    case .ranges, .early: record.discarded = nil
    case .each(let index):
      record.discarded = record.notification.flatMap { named in
        guard index.range(of: named, on: record.place.connection) != nil else { return nil }
        let next = index.range(of: named + 1, on: record.place.connection)
        return next.map { $0.fate == .discarded ? $0.last - named : 0 } ?? 0
      }
    }
    row(record)
  }

  /// Without fates it is written at the end of its connection, when its counts are final.
  public func receive(_ record: ErrorResponseRecord) {
    if case .omitted = notation { row(record) }
  }

  private func row(_ record: ErrorResponseRecord) {
    var details =
      "status \(record.response.status.rawValue) (\(record.response.status))  id \(record.response.identifier)"
    if let named = record.notification {
      details += "  names #\(named)"
      if let accepted = record.accepted { details += "  \(accepted) accepted" }
      if let discarded = record.discarded { details += "  \(discarded) discarded" }
      if let latency = record.latencyNanoseconds { details += "  after \(Self.decimal(Double(latency) / 1e6, 1)) ms" }
    } else if record.isAmbiguous {
      details += "  may or may not name a notification"
    } else {
      details += "  names an unknown identifier"
    }
    line(record.place, "error", details)
  }

  public func receive(_ record: FateRecord) {
    guard fates.writes(record) else { return }
    let place = RecordPlace(connection: record.connection, time: .none, packet: 0, offset: 0, length: 0)
    let range = record.first == record.last ? "#\(record.first)" : "#\(record.first) to #\(record.last)"
    line(place, "fate", "\(range)  \(record.fate.rawValue)")
  }

  public func receive(_ record: borrowing FeedbackRecord) {
    let time = TimestampFormatter.text(Timestamp(nanoseconds: Int64(record.tuple.timestamp) * 1_000_000_000)).prefix(19)
    begin(record.place, "feedback")
    text.write(text: "#\(record.index)  \(time)  token ")
    text.write(short: record.tuple.token)
    end()
  }

  public func receive(_ record: borrowing ProviderNotificationRecord) {
    let verdict = verdicts?.verdict(record)
    row(record.adding(fates.outcome(of: record.index, on: record.place.connection), verdict))
  }

  private func row(_ record: borrowing ProviderNotificationRecord) {
    let request = record.request
    begin(record.place, "notification")
    text.write(text: "#\(record.index)  stream \(request.stream)")
    if let outcome = record.outcome {
      text.write("  ")
      text.write(outcome.fate.word)
      if let cause = outcome.cause { text.write(text: " (\(cause.rawValue))") }
      if let answer = outcome.answer { text.write(text: Self.words(answer)) }
    }
    if request.token.isPresent {
      text.write("  token ")
      text.write(short: record.bytes(of: request.token))
    } else if let path = record.text(of: request.path), request.target != .broadcast {
      text.write(text: "  path \(TableText.printable(path))")
    }
    if let bundle = record.text(of: request.bundle) { text.write(text: "  broadcast \(TableText.printable(bundle))") }
    if let topic = record.text(of: request.topic) { text.write(text: "  topic \(TableText.printable(topic))") }
    if let type = record.text(of: request.pushType) { text.write(text: "  type \(TableText.printable(type))") }
    if let priority = request.priority { text.write(text: "  priority \(priority)") }
    if let expiration = request.expiration { text.write(text: "  expires \(expiration)") }
    if let collapse = record.text(of: request.collapseID) {
      text.write(text: "  collapse \(TableText.printable(collapse))")
    }
    if !request.uncertain.contains(.payload) {
      text.write(text: "  \(request.payloadLength) B ")
      text.write(preview: record.bytes(of: request.payload))
    }
    let uncertain = record.uncertainFields
    if !uncertain.isEmpty { text.write(text: "  uncertain: \(uncertain.joined(separator: " "))") }
    if let verdict = record.verdict { write(verdict) }
    end()
  }

  private static func words(_ answer: ProviderAnswer) -> String {
    var words = answer.status.map { "  status \($0)" } ?? "  status unknown"
    if let reason = answer.reason { words += " (\(TableText.printable(reason)))" }
    if let latency = answer.latencyNanoseconds { words += "  after \(decimal(Double(latency) / 1e6, 1)) ms" }
    return words
  }

  public func receive(_ record: ProviderRecord) {
    switch record {
    case .response(let record):
      let names = record.notification.map { "  answers #\($0)" } ?? ""
      line(record.place, "response", "stream \(record.stream)\(names)\(Self.words(record.answer))")
    case .goAway(let record):
      var details =
        "\(record.direction.rawValue)  last stream \(record.lastStream)  \(TableText.printable(record.error))"
      if let reason = record.reason { details += " (\(TableText.printable(reason)))" }
      if let discarded = record.discarded { details += "  \(discarded) discarded" }
      if let unknown = record.unknown { details += "  \(unknown) unknown" }
      line(record.place, "goaway", details)
    case .reset(let record):
      let names = record.notification.map { "  #\($0)" } ?? ""
      line(
        record.place, "reset",
        "\(record.direction.rawValue)  stream \(record.stream)\(names)  \(TableText.printable(record.error ?? ""))")
    case .settings(let record):
      let values = record.values.map { "  \(TableText.printable($0.name)) \($0.value)" }.joined()
      line(record.place, "settings", record.direction.rawValue + values)
    case .channelRequest(let record):
      var details = "stream \(record.stream)  \(record.action.rawValue)"
      if let bundle = record.bundle { details += "  \(TableText.printable(bundle))" }
      if let channel = record.channelID { details += "  channel \(TableText.printable(channel))" }
      let answer = ProviderAnswer(
        status: record.status, reason: record.reason, latencyNanoseconds: record.latencyNanoseconds)
      if record.status != nil { details += Self.words(answer) }
      line(record.place, "channel", details)
    }
  }

  public func receive(_ record: MessageRecord) {
    switch record {
    case .device(let record): row(record)
    case .localPush(let record): row(record)
    }
  }

  private func row(_ record: DeviceRecord) {
    begin(record.place, "device")
    text.write(text: "\(record.direction.rawValue)  \(record.message.kind)")
    func topic(_ topic: String) { text.write(text: "  topic \(TableText.printable(topic))") }
    func token(_ token: [UInt8]) {
      text.write("  token ")
      text.write(short: token.rawBytes)
    }
    switch record.message {
    case .register(let registration):
      text.write(text: "  device \(registration.device)")
      topic(registration.topic)
      text.write(text: "  \(registration.environment.rawValue)")
      if !registration.language.isEmpty { text.write(text: "  \(TableText.printable(registration.language))") }
      if registration.generation > 0 { text.write(text: "  generation \(registration.generation)") }
    case .registered(let registered):
      text.write(text: "  device \(registered.device)")
      topic(registered.topic)
      token(registered.token)
    case .online(let online):
      text.write(text: online.apps.count == 1 ? "  1 token" : "  \(online.apps.count) tokens")
      if online.hasLowPower { text.write("  low power") }
      for app in online.apps.prefix(Self.shownApps) {
        topic(app.topic)
        token(app.token)
        text.write(text: " to #\(app.received)")
      }
    case .deliver(let delivery):
      text.write(text: "  #\(delivery.sequence)")
      if delivery.isStored { text.write("  stored") }
      if delivery.isRepeated { text.write("  repeated") }
      token(delivery.token)
      topic(delivery.topic)
      if let type = delivery.pushType { text.write(text: "  type \(TableText.printable(type))") }
      text.write(text: "  priority \(delivery.priority)")
      if let expiration = delivery.expiration { text.write(text: "  expires \(expiration)") }
      if let collapse = delivery.collapseID { text.write(text: "  collapse \(TableText.printable(collapse))") }
      text.write(text: "  \(delivery.payload.count) B ")
      text.write(preview: delivery.payload.rawBytes)
    case .acknowledge(let acknowledged, let name, let sequence):
      text.write(text: "  to #\(sequence)")
      token(acknowledged)
      topic(name)
    case .tokenChanged(let change):
      topic(change.topic)
      token(change.old)
      text.write("  new")
      token(change.new)
    case .offline(let reason): if let reason { text.write(text: "  \(TableText.printable(reason))") }
    case .refused(let reason, let name):
      text.write(text: "  \(reason.rawValue)")
      if let name { topic(name) }
    }
    end()
  }

  /// Tokens of a device that a row shows.
  private static let shownApps = 3

  private func row(_ record: LocalPushRecord) {
    func name(_ user: LocalPushMessage.User) -> String {
      TableText.printable("\(user.deviceName) (\(user.identifier))")
    }
    let message = record.message
    begin(record.place, "local push")
    text.write(text: "\(record.direction.rawValue)  \(message.command.rawValue) \(message.identifier)")
    if let content = message.content { text.write(text: "  \(content.name)") }
    switch message.content {
    case .invite(let sender, let receiver)?: text.write(text: "  \(name(sender)) -> \(name(receiver))")
    case .user(let user)?: text.write(text: "  \(name(user))")
    case .callAction(let action, let receiver)?:
      text.write(text: "  \(TableText.printable(action))  \(name(receiver))")
    case .text(let words, let sender, let receiver)?:
      text.write(text: "  \(name(sender)) -> \(name(receiver))  \(words.utf8.count) B ")
      text.write(preview: Array(words.utf8).rawBytes)
    case .heartbeat(let count)?: text.write(text: "  #\(count)")
    case .directory(let users)?: text.write(text: users.count == 1 ? "  1 user" : "  \(users.count) users")
    case .other(let key, let bytes)?:
      text.write(text: "  key \(key)  \(bytes.count) B ")
      text.write(preview: bytes.rawBytes)
    case nil: break
    }
    end()
  }

  public func receive(_ record: GapRecord) {
    let table = record.losesHeaderTable ? "  header table lost" : ""
    line(
      record.place, "gap",
      "\(record.direction.rawValue)  \(record.place.length) B at \(record.place.offset)  \(record.reason.rawValue)"
        + table)
  }

  public func receive(_ record: MalformedRecord) {
    begin(record.place, "malformed")
    text.write(
      text: "\(record.direction.rawValue)  \(record.place.length) B at \(record.place.offset)  \(record.problem)  ")
    text.write(short: record.bytes.rawBytes)
    end()
  }

  public func receive(_ record: ConnectionRecord) {
    ended(connection: record.connection)
    let ends = record.client.flatMap { client in record.server.map { "\(client) -> \($0)  " } } ?? ""
    let spoken =
      (record.otherProtocol.map { " (\($0.name))" } ?? "") + (record.preamble.map { " after \($0.name)" } ?? "")
    var details = "\(record.service.rawValue)\(spoken)  \(ends)\(record.end.rawValue)"
    if let tls = record.tls {
      details += "  " + (tls.version?.description ?? "TLS")
      if let problem = tls.problem { details += tls.isDecrypted ? ": \(problem)" : ", not decrypted: \(problem)" }
    }
    if let http2 = record.http2 {
      details += "  \(record.notifications) notifications, \(http2.responses) answers"
      if record.notifications > 0 {
        details +=
          ": \(record.fates.accepted) accepted, \(record.fates.rejected) rejected, "
          + "\(record.fates.discarded) discarded, \(record.fates.unknown) unknown"
      }
    } else if let messages = record.messages {
      details += "  \(messages) messages"
    } else if record.service == .gateway && record.tls?.isDecrypted != false {
      details +=
        "  \(record.notifications) notifications: \(record.fates.accepted) accepted, \(record.fates.rejected) rejected, "
        + "\(record.fates.discarded) discarded, \(record.fates.unknown) unknown"
    } else if record.service == .feedback && record.tls?.isDecrypted != false {
      details += "  \(record.feedbackTuples) tuples"
    }
    if record.missingBytes > 0 { details += "  \(record.missingBytes) B missing" }
    for ends in record.alsoSeenAs { details += "  also seen as \(ends.client) -> \(ends.server)" }
    let place = RecordPlace(connection: record.connection, time: record.closed, packet: 0, offset: 0, length: 0)
    line(place, "connection", details)
  }

  public func receive(_ record: CaptureLossRecord) {
    let place = RecordPlace(
      connection: 0, time: .none, packet: PacketNumber.joining(file: record.file ?? 0, packet: 0), offset: 0, length: 0)
    let interface = record.loss.interface.map { "  at \(TableText.printable($0))" } ?? ""
    line(place, "capture loss", "\(record.loss.dropped) packets dropped\(interface)")
  }

  public func receive(_ record: DeliveryRecord) {
    let place = RecordPlace(
      connection: record.connection ?? 0, time: record.time, packet: 0, offset: 0, length: 0)
    begin(place, "delivery")
    if let index = record.index { text.write(text: "#\(index)  ") }
    text.write(text: "\(record.outcome.rawValue)  token ")
    text.write(short: record.token.rawBytes)
    end()
  }

  public func receive(_ record: SummaryRecord) {
    begin(.none)
    text.write(
      text: "\(record.packets) packets, \(record.connections) connections, \(record.notifications) notifications, "
        + "\(record.errorResponses) error responses, \(record.feedbackTuples) feedback tuples, "
        + (record.responses > 0 ? "\(record.responses) answers, " : "")
        + (record.messages > 0 ? "\(record.messages) messages, " : "") + "\(record.gaps) gaps, "
        + "\(record.malformed) malformed, \(record.undecryptedConnections) not decrypted"
        + (record.droppedPackets > 0 ? ", \(record.droppedPackets) packets dropped" : "")
        + (record.unreadPackets > 0 ? ", \(record.unreadPackets) packets not read" : ""))
    end()
  }

  // MARK: rows

  private func line(_ place: RecordPlace, _ record: StaticString, _ details: String) {
    begin(place, record)
    text.write(text: details)
    end()
  }

  @inline(__always)
  private func begin(_ time: Timestamp) {
    let key = time.isKnown ? time.nanoseconds : latest
    if key < latest { isInOrder = false } else { latest = key }
    rows.append(Row(time: key, offset: text.count, end: text.count))
  }

  private func begin(_ place: RecordPlace, _ record: StaticString) {
    begin(place.time)
    let start = text.count
    if place.time.isKnown {
      times.write(place.time, into: &text)
      // Microseconds are precise enough.
      text.truncate(to: text.count - 4)
      text.write("  ")
    } else {
      text.write("-")
      pad(to: start + 28)
    }
    if place.connection > 0 { write(place.connection, width: 5) } else { text.write("    -") }
    text.write("  ")
    write(packet: place)
    text.write("  ")
    let word = text.count
    text.write(record)
    pad(to: word + 14)
  }

  /// `12`, or `2:12` for packet 12 of the second of several files.
  private func write(packet place: RecordPlace) {
    guard let file = place.file else {
      if place.packet > 0 { write(place.packet, width: 8) } else { text.write("       -") }
      return
    }
    let packet = "\(file):\(place.packetInFile.map(String.init) ?? "-")"
    pad(to: text.count + max(0, 8 - packet.utf8.count))
    text.write(text: packet)
  }

  private func end() {
    text.write(UInt8(ascii: "\n"))
    rows[rows.count - 1].end = text.count
    if rows.count >= Self.maximumRows { write(rows.count / 2) }
  }

  private func pad(to count: Int) { while text.count < count { text.write(UInt8(ascii: " ")) } }

  private func write(_ number: Int, width: Int) {
    var digits = 1
    var rest = number / 10
    while rest > 0 {
      digits += 1
      rest /= 10
    }
    if digits < width { pad(to: text.count + width - digits) }
    text.write(decimal: number)
  }

  package static func decimal(_ value: Double, _ places: Int) -> String {
    var scale = 1.0
    for _ in 0..<places { scale *= 10 }
    let scaled = Int((value * scale).rounded())
    let digits = String(scaled.magnitude)
    let padded = String(repeating: "0", count: max(0, places + 1 - digits.count)) + digits
    let text = places == 0 ? padded : "\(padded.dropLast(places)).\(padded.suffix(places))"
    return scaled < 0 ? "-" + text : text
  }
}
