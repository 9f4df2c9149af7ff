import Bytes
import HTTP2
import HTTP2Server

/// A client and the session under test, joined in memory; an observer of both directions holds them to the rules.
final class Pair {
  var session: ServerSession
  /// What was sent and the session has not read.
  private var unread: [UInt8] = []
  private(set) var events: [ServerEvent] = []
  /// The paths of requests, by their streams.
  private(set) var paths: [UInt32: String] = [:]
  private(set) var contents: [UInt32: [UInt8]] = [:]
  private var slots: [UInt32: Int] = [:]
  private var encoder = HPACKEncoder()
  private var observer = ConnectionReader()
  var seen = Observation()
  /// Everything that the session has written.
  private(set) var written: [UInt8] = []
  private var offsets = (client: 0, server: 0)
  /// Answers each request when it is complete.
  var answers = true
  var answer: (status: Int, content: [UInt8]) = (200, [])
  var second: Int64 = 0

  /// - Parameter greets: sends the preface and SETTINGS, and acknowledges those of the session.
  init(_ options: ServerOptions = ServerOptions(), settings: [Setting] = [], greets: Bool = true) {
    session = ServerSession(options)
    flush()
    guard greets else { return }
    send { writer in
      writer.writePreface()
      writer.writeSettings(settings)
      writer.writeSettingsAcknowledgement()
    }
  }

  // MARK: the client

  func send(_ write: (inout ByteWriter) -> Void) {
    var writer = ByteWriter()
    write(&writer)
    send(Array(copying: writer.bytes))
  }

  /// Sends bytes in pieces of this length; after each the session may be taken for idle.
  func send(_ bytes: [UInt8], pieces: Int = .max, freesSpare: Bool = false) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(pieces))
      rest = rest.dropFirst(pieces)
      observe(piece, from: .client, at: offsets.client)
      offsets.client += piece.count
      unread += piece
      read()
      if freesSpare { session.freeSpare() }
    }
  }

  func block(_ fields: [(String, String)], _ indexing: HPACKEncoder.Indexing = .incremental) -> [UInt8] {
    var writer = ByteWriter()
    encoder.beginBlock(&writer)
    for (name, value) in fields {
      encoder.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, indexing, to: &writer)
    }
    return Array(copying: writer.bytes)
  }

  static func fields(_ path: String, _ more: [(String, String)] = []) -> [(String, String)] {
    [(":method", "POST"), (":scheme", "https"), (":path", path), (":authority", "localhost")] + more
  }

  /// A request's HEADERS.
  func open(
    _ stream: UInt32, _ path: String = "/a", ends: Bool = false, _ more: [(String, String)] = []
  ) {
    let block = block(Self.fields(path, more))
    send {
      $0.writeFrame(.headers, flags: ends ? [.endHeaders, .endStream] : .endHeaders, stream: stream, block.rawBytes)
    }
  }

  func data(_ stream: UInt32, _ content: [UInt8], ends: Bool = true) {
    send { $0.writeFrame(.data, flags: ends ? .endStream : [], stream: stream, content.rawBytes) }
  }

  func request(_ stream: UInt32, _ content: [UInt8] = Array("{}".utf8)) {
    open(stream, "/\(stream)")
    data(stream, content)
  }

  // MARK: the server

  func respond(_ stream: UInt32) {
    guard let slot = slots[stream] else { return }
    slots[stream] = nil
    session.answer(slot, status: answer.status, content: answer.content) { $0.writeField("x-id", [0x31].rawBytes) }
    flush()
  }

  private func read() {
    let bytes = unread
    var offset = 0
    while let event = session.next(bytes.rawBytes, &offset, second: second) {
      events.append(event)
      switch event {
      case .began(let stream):
        for field in session.fields.fields where Array(copying: session.fields.name(of: field)) == Array(":path".utf8) {
          paths[stream.number] = String(decoding: Array(copying: session.fields.value(of: field)), as: UTF8.self)
        }
        slots[stream.number] = stream.slot
      case .ended(let stream, let content, _):
        switch content {
        case .bytes(let range): contents[stream.number] = Array(bytes[range])
        case .kept: contents[stream.number] = session.takeContent(stream.slot)
        }
        if answers { respond(stream.number) }
      case .abandoned(let stream, _, _): slots[stream.number] = nil
      default: break
      }
    }
    unread.removeFirst(offset)
    flush()
  }

  /// Takes what the session has written.
  func flush() {
    let bytes = Array(copying: session.output.bytes)
    session.output.removeAll()
    written += bytes
    observe(bytes, from: .server, at: offsets.server)
    offsets.server += bytes.count
  }

  private func observe(_ bytes: [UInt8], from side: FrameReader.Side, at offset: Int) {
    observer.read(bytes.rawBytes, from: side, at: offset, arrival: Arrival(time: 0, packet: 0), into: &seen)
  }

  /// Lets the observer decide what depends on both directions.
  func finish() {
    observer.finish(.client, into: &seen)
    observer.finish(.server, into: &seen)
  }

  var hasFailed: Bool { session.hasFailed }
  var isDrained: Bool { session.isDrained }
  var hasSaidGoAway: Bool { session.hasSaidGoAway }
  var openStreams: Int { session.openStreams }
  var counts: ServerCounts { session.counts }

  /// The error code of the GOAWAY with which the session ended the connection.
  var failure: ErrorCode? { seen.goAways.last?.code }
}

/// What an observer saw of both directions.
struct Observation: ConnectionHandler {
  /// Status and content of answers, by stream; ended: with END_STREAM.
  var statuses: [UInt32: [Int]] = [:]
  var contents: [UInt32: [UInt8]] = [:]
  var ended: Set<UInt32> = []
  var dataFrames = 0
  /// RST_STREAM of the server.
  var resets: [UInt32: ErrorCode] = [:]
  var goAways: [(last: UInt32, code: ErrorCode, debug: String)] = []
  var settings: [[Setting]] = []
  var acknowledgements = 0
  var pings: [UInt64] = []
  /// Rules that the server broke, or the client.
  var violations: [(side: FrameReader.Side, rule: Rule)] = []
  var serverViolations: [Rule] { violations.filter { $0.side == .server }.map(\.rule) }

  mutating func receive(_ section: FieldSection, _ fields: FieldList, on place: StreamPlace, _ origin: FrameOrigin) {
    guard origin.side == .server else { return }
    statuses[place.stream, default: []].append(section.status ?? 0)
    if section.endsStream { ended.insert(place.stream) }
  }
  mutating func receive(
    content: RawSpan, isWhole: Bool, endsStream: Bool, on place: StreamPlace, _ origin: FrameOrigin
  ) {
    guard origin.side == .server else { return }
    dataFrames += 1
    contents[place.stream, default: []].append(copying: content)
    if endsStream { ended.insert(place.stream) }
  }
  mutating func receive(reset code: ErrorCode?, on place: StreamPlace, _ origin: FrameOrigin) {
    if origin.side == .server { resets[place.stream] = code }
  }
  mutating func receive(reset code: ErrorCode?, onClosed stream: UInt32, _ origin: FrameOrigin) {
    if origin.side == .server { resets[stream] = code }
  }
  mutating func receive(goAway lastStream: UInt32, _ code: ErrorCode, debugData: RawSpan, _ origin: FrameOrigin) {
    if origin.side == .server {
      goAways.append((lastStream, code, String(decoding: Array(copying: debugData), as: UTF8.self)))
    }
  }
  mutating func receive(settings: [Setting], _ origin: FrameOrigin) {
    if origin.side == .server { self.settings.append(settings) }
  }
  mutating func receiveAcknowledgement(inForce settings: Settings, _ origin: FrameOrigin) {
    if origin.side == .server { acknowledgements += 1 }
  }
  mutating func receiveLossOfSettings() {}
  mutating func receive(ping: UInt64, isAcknowledgement: Bool, _ origin: FrameOrigin) {
    if origin.side == .server, isAcknowledgement { pings.append(ping) }
  }
  mutating func receive(_ violation: Violation, _ origin: FrameOrigin) {
    violations.append((origin.side, violation.rule))
  }
  mutating func receive(missing origin: FrameOrigin, losesFrames: Bool, losesTable: Bool) {}
  mutating func receive(unread cause: FrameReader.UnreadCause, _ origin: FrameOrigin) {}
  mutating func closed(_ place: StreamPlace, _ reason: StreamEnd) {}
}

extension ByteWriter {
  mutating func writePreface() {
    let preface = ByteWriter.http2Preface
    write(preface.rawBytes)
  }
}
