import Bytes
import HTTP2
import HTTP2Server

/// Two bytes choose limits; then come steps of a client, which are raw bytes, frames and requests, and of an application,
/// which answers, resets, says GOAWAY and changes the limit on streams.
@Sendable func fuzzServer(_ bytes: RawSpan) {
  let whole = talk(bytes, pieces: 0)
  let split = talk(bytes, pieces: bytes.byteCount & 7 + 1)
  law(whole.events == split.events, "pieces make other events")
  law(whole.output == split.output, "pieces make another output")
  whole.checkOutput()
}

private struct ServerTalk: ~Copyable {
  var session: ServerSession
  let options: ServerOptions
  /// The bytes of each piece; 0: as they come.
  let pieces: Int
  var unread: [UInt8] = []
  var events: [String] = []
  var output: [UInt8] = []
  /// Bytes in the order in which they went over the connection, for the observer.
  var record: [(side: FrameReader.Side, bytes: [UInt8])] = []
  /// Streams that wait for an answer, and those that were answered.
  var waiting: [ServerStream] = []
  var answered: Set<UInt32> = []
  var second: Int64 = 0
  var nextStream: UInt32 = 1
  /// The length of each answer's content; `nil`: requests wait.
  var automatic: Int?
  static let longestAnswer = 70_000

  init(_ options: ServerOptions, pieces: Int) {
    (self.options, self.pieces) = (options, pieces)
    session = ServerSession(options)
  }

  mutating func send(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = Array(pieces == 0 ? rest : rest.prefix(pieces))
      rest = rest.dropFirst(piece.count)
      unread += piece
      read()
      // A session that is idle means the same without its spare memory.
      if pieces > 0 { session.freeSpare() }
    }
    record.append((.client, bytes))
    flush()
  }

  private mutating func read() {
    let bytes = unread
    var offset = 0
    while let event = session.next(bytes.rawBytes, &offset, second: second) { take(event, bytes) }
    unread.removeFirst(offset)
    law(unread.count < 16_384 + FrameHeader.length, "\(unread.count) bytes are not read")
    let most = session.openStreams * (options.keptContent + Self.longestAnswer) + options.maximumBlock
    law(session.heldBytes <= most, "\(session.heldBytes) bytes are held")
    law(session.openStreams <= max(options.maximumOpenStreams, 1), "\(session.openStreams) streams are open")
    law(session.fields.size <= options.maximumFieldList, "a section of \(session.fields.size) bytes")
  }

  private mutating func take(_ event: ServerEvent, _ bytes: [UInt8]) {
    switch event {
    case .began(let stream):
      law(!waiting.contains { $0.slot == stream.slot }, "a slot is used twice")
      waiting.append(stream)
      let fields = session.fields
      events.append("began \(stream.number) \(fields.fields.count) \(fields.size)")
    case .ended(let stream, let content, let length):
      law(waiting.contains(stream), "a stream ends that is not open")
      let kept: [UInt8]
      switch content {
      case .bytes(let range): kept = Array(bytes[range])
      case .kept: kept = session.takeContent(stream.slot)
      }
      law(kept.count == min(length, options.keptContent), "\(kept.count) of \(length) bytes are kept")
      events.append("ended \(stream.number) \(length) \(kept)")
      if let automatic { answer(stream, status: 200, automatic) }
    case .refused(let stream, let cause): events.append("refused \(stream) \(cause)")
    case .abandoned(let stream, let code, let cause):
      law(waiting.contains(stream) || answered.contains(stream.number), "a stream is abandoned that is not open")
      waiting.removeAll { $0 == stream }
      events.append("abandoned \(stream.number) \(code) \(cause)")
    case .violated(let violation): events.append("violated \(violation)")
    case .failed(let failure):
      law(session.hasFailed, "it has failed and does not say so")
      events.append("failed \(failure)")
    case .goAway(let stream, let code): events.append("goaway \(stream) \(code)")
    }
  }

  mutating func answer(_ stream: ServerStream, status: Int, _ length: Int) {
    guard !session.hasFailed else { return }
    waiting.removeAll { $0 == stream }
    answered.insert(stream.number)
    session.answer(stream.slot, status: status, content: [UInt8](repeating: 0x61, count: length)) {
      let value: [UInt8] = [0x31]
      $0.writeField("apns-id", value.rawBytes)
    }
  }

  /// An action of the application.
  mutating func act(_ action: Int, _ value: Int) {
    let place = waiting.isEmpty ? nil : value % waiting.count
    switch action & 15 {
    case 0...3:
      guard let place else { break }
      let length = [0, value, value << 4, Self.longestAnswer][action & 3]
      answer(waiting[place], status: [200, 204, 400, 503][value & 3], length)
    case 4:
      guard let place, !session.hasFailed else { break }
      session.reset(waiting.remove(at: place).slot, .internalError)
    case 5:
      guard let place, !session.hasFailed else { break }
      session.forget(waiting.remove(at: place).slot)
    case 6: session.setStreamLimit(value & 7)
    case 7, 8:
      // As whoever sends it has to: what is above is not answered.
      let last = action & 15 == 7 ? session.highestStream : min(UInt32(value), session.highestStream)
      session.goAway(lastStream: last, debugData: Array("{}".utf8))
      guard !session.hasFailed else { break }
      for stream in waiting where stream.number > last { session.forget(stream.slot) }
      waiting.removeAll { $0.number > last }
    case 9: session.goAway(lastStream: 0x7fff_ffff)
    case 10: session.opensWindows = value & 1 == 0
    case 11: second += Int64(value)
    case 12: automatic = value & 1 == 0 ? nil : value
    case 13: automatic = value << 8
    default: break
    }
    flush()
  }

  mutating func flush() {
    let bytes = Array(copying: session.output.bytes)
    session.output.removeAll()
    output += bytes
    record.append((.server, bytes))
  }

  // MARK: laws of the output

  /// The flags that the types of frames define which a server sends.
  private static let flags: [FrameType: UInt8] = [
    .data: 0x01, .headers: 0x05, .reset: 0, .settings: 0x01, .ping: 0x01, .goAway: 0, .windowUpdate: 0,
  ]

  func checkOutput() {
    var observer = ConnectionReader()
    var seen = ServedObservation()
    var offsets = [0, 0]
    for (side, bytes) in record {
      let place = side == .client ? 0 : 1
      observer.read(
        bytes.rawBytes, from: side, at: offsets[place], arrival: Arrival(time: 0, packet: 0), into: &seen)
      offsets[place] += bytes.count
    }
    observer.finish(.client, into: &seen)
    observer.finish(.server, into: &seen)
    law(seen.violations.isEmpty, "the server breaks \(seen.violations)")
    var (fields, ended): (Set<UInt32>, Set<UInt32>) = ([], [])
    var (resets, goAways, pings, updates, data) = (0, 0, 0, 0, 0)
    var (offset, last, isOver) = (0, UInt32.max, false)
    while offset < output.count {
      let header = FrameHeader(parsing: output.rawBytes.extracting(offset..<output.count))
      guard let header, offset + header.frameLength <= output.count else { return law(false, "a frame is cut") }
      let stream = header.stream
      law(offset > 0 || header.type == .settings, "the first frame is \(header.type)")
      law(!isOver, "\(header.type) behind the end")
      law(output[offset + 5] & 0x80 == 0, "the reserved bit")
      law(header.payloadLength <= seen.longestFrame, "a frame of \(header.payloadLength) bytes")
      guard let flags = Self.flags[header.type] else { return law(false, "a frame of type \(header.type)") }
      law(header.flags.rawValue & ~flags == 0, "\(header.type) with flags \(header.flags)")
      law(stream == 0 || stream & 1 == 1 && stream <= session.highestStream, "a frame on stream \(stream)")
      law(!ended.contains(stream) || header.type == .reset, "\(header.type) behind the end of stream \(stream)")
      let payload = output.rawBytes.extracting(offset + FrameHeader.length..<offset + header.frameLength)
      switch header.type {
      case .headers: law(fields.insert(stream).inserted && answered.contains(stream), "an answer to stream \(stream)")
      case .data:
        law(fields.contains(stream) && header.payloadLength > 0, "DATA on stream \(stream)")
        data += header.payloadLength
      case .reset:
        resets += 1
        ended.insert(stream)
      case .goAway:
        goAways += 1
        law(payload.uint32(at: 0) <= last, "GOAWAY of a higher stream than before")
        last = payload.uint32(at: 0)
        isOver = payload.uint32(at: 4) != 0
      case .ping: pings += 1
      case .windowUpdate: updates += 1
      default: break
      }
      if header.type == .headers || header.type == .data, header.flags.contains(.endStream) { ended.insert(stream) }
      offset += header.frameLength
    }
    let counts = session.counts
    law(isOver == session.hasFailed, "GOAWAY of an error")
    law(counts.resetsSent == resets && counts.goAways == goAways, "resets and GOAWAY are not counted")
    law(counts.pings == pings && counts.windowUpdatesSent == updates, "PING and WINDOW_UPDATE are not counted")
    guard !session.hasFailed else { return }
    law(seen.acknowledgements == seen.settings, "\(seen.settings) SETTINGS, \(seen.acknowledgements) acknowledged")
    law(seen.answeredPings == seen.pings, "PING \(seen.pings) is answered by \(seen.answeredPings)")
    // A connection on which nobody waits holds nothing of its streams.
    if session.openStreams == 0, !session.isWithinRequest { law(session.heldBytes == 0, "\(session.heldBytes) held") }
  }
}

/// The frames and violations that a reader of both directions sees.
private struct ServedObservation: ConnectionHandler {
  var violations: [Violation] = []
  var (settings, acknowledgements) = (0, 0)
  var (pings, answeredPings): ([UInt64], [UInt64]) = ([], [])

  /// The longest payload that the client has ever read; the observer knows since when.
  var longestFrame = 16_384

  mutating func receive(settings: [Setting], _ origin: FrameOrigin) {
    guard origin.side == .client else { return }
    self.settings += 1
    for setting in settings where setting.name == .maximumFrameSize {
      longestFrame = max(longestFrame, Int(setting.value))
    }
  }
  mutating func receiveAcknowledgement(inForce settings: Settings, _ origin: FrameOrigin) {
    if origin.side == .server { acknowledgements += 1 }
  }
  mutating func receive(ping: UInt64, isAcknowledgement: Bool, _ origin: FrameOrigin) {
    if origin.side == .client, !isAcknowledgement { pings.append(ping) }
    if origin.side == .server, isAcknowledgement { answeredPings.append(ping) }
  }
  mutating func receive(_ violation: Violation, _ origin: FrameOrigin) {
    if origin.side == .server { violations.append(violation) }
  }
  mutating func receive(_ section: FieldSection, _ fields: FieldList, on place: StreamPlace, _ origin: FrameOrigin) {}
  mutating func receive(
    content: RawSpan, isWhole: Bool, endsStream: Bool, on place: StreamPlace, _ origin: FrameOrigin
  ) {}
  mutating func receive(reset code: ErrorCode?, on place: StreamPlace, _ origin: FrameOrigin) {}
  mutating func receive(reset code: ErrorCode?, onClosed stream: UInt32, _ origin: FrameOrigin) {}
  mutating func receive(goAway lastStream: UInt32, _ code: ErrorCode, debugData: RawSpan, _ origin: FrameOrigin) {}
  mutating func receiveLossOfSettings() {}
  mutating func receive(missing origin: FrameOrigin, losesFrames: Bool, losesTable: Bool) {}
  mutating func receive(unread cause: FrameReader.UnreadCause, _ origin: FrameOrigin) {}
  mutating func closed(_ place: StreamPlace, _ reason: StreamEnd) {}
}

private func options(_ choice: Int) -> ServerOptions {
  var options = ServerOptions()
  options.streamLimit = [1_000, 1, 3, nil][choice & 3]
  options.excess = [.refused, .protocolError, .goAway, .refused][choice >> 2 & 3]
  if choice & 0x10 != 0 { options.streamWindow = 100 }
  if choice & 0x20 != 0 { (options.keptContent, options.maximumContent) = (16, 200) }
  if choice & 0x40 != 0 { (options.maximumBlock, options.maximumFieldList) = (60, 200) }
  if choice & 0x80 != 0 { options.maximumOpenStreams = 2 }
  if choice & 0x100 != 0 { options.opensWindows = false }
  if choice & 0x200 != 0 {
    let few = Allowance(burst: 3, perSecond: 1)
    (options.floods.resets, options.floods.settings, options.floods.pings) = (few, few, few)
    (options.floods.emptyFrames, options.floods.windowUpdates, options.floods.ignoredFrames) = (few, few, few)
    options.floods.continuations = 2
  }
  return options
}

/// A request's field block of static entries, and one that uses the table.
private let request: [UInt8] = [0x83, 0x87, 0x84]
private let requestWithEntry: [UInt8] = [0x83, 0x87, 0x84, 0x40, 1, 0x78, 1, 0x79]

private func talk(_ bytes: RawSpan, pieces: Int) -> ServerTalk {
  var script = Script(bytes)
  let choice = script.word()
  var talk = ServerTalk(options(choice), pieces: pieces)
  talk.flush()
  // The preface and SETTINGS cost the fuzzer much to find.
  if choice & 0x400 == 0 {
    var writer = ByteWriter(capacity: 64)
    writer.write(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8).rawBytes)
    writer.writeSettings([])
    talk.send(Array(copying: writer.bytes))
  }
  var steps = 0
  while !script.isAtEnd, steps < 500 {
    steps += 1
    var writer = ByteWriter(capacity: 64)
    switch script.byte() & 7 {
    case 0: writer.write(script.take(script.byte()))
    case 1:
      let (type, flags, stream) = (script.byte() % 11, script.byte(), script.byte())
      writer.writeFrame(
        FrameType(rawValue: UInt8(type)), flags: FrameFlags(rawValue: UInt8(flags)), stream: UInt32(stream),
        script.take(script.byte()))
    case 2, 3:
      let flags = script.byte()
      let block = flags & 0x80 == 0 ? request : requestWithEntry
      writer.writeFrame(
        .headers, flags: FrameFlags(rawValue: UInt8(flags & 1 | 4)), stream: talk.nextStream, block.rawBytes)
      talk.nextStream += 2
    case 4:
      let (flags, stream, length) = (script.byte(), script.byte(), min(script.word(), 16_384))
      let content = [UInt8](repeating: 0, count: length)
      writer.writeFrame(.data, flags: FrameFlags(rawValue: UInt8(flags & 1)), stream: UInt32(stream), content.rawBytes)
    case 5:
      let (stream, increment) = (script.byte(), script.word())
      writer.writeWindowUpdate(UInt32(increment) << UInt32(increment & 15), stream: UInt32(stream))
    case 6:
      let (name, value) = (script.byte() & 7, script.word())
      writer.writeSettings([Setting(SettingName(rawValue: UInt16(name)), UInt32(value) << UInt32(value & 15))])
      if name == 0 { writer.writeSettingsAcknowledgement() }
    default: talk.act(script.byte(), script.byte())
    }
    talk.send(Array(copying: writer.bytes))
  }
  return talk
}

/// Conversations for the target.
func serverSeeds() -> [(target: String, bytes: [UInt8])] {
  [
    // Requests and their answers.
    ("server", [0, 0, 7, 12, 5, 2, 0, 4, 1, 1, 0, 9, 2, 1, 3, 0x81, 6, 0, 0, 0]),
    // Answers that wait for windows, one after the other.
    ("server", [0, 0, 7, 13, 255, 2, 1, 2, 1, 2, 1, 5, 0, 0xff, 0x0f, 5, 1, 0xff, 0x0f, 6, 4, 0x0f, 0xf0]),
    // Trailers, padding, CONTINUATION, a reset, GOAWAY.
    ("server", [0, 2, 2, 0, 1, 0, 9, 1, 4, 2, 0x61, 0, 0, 1, 1, 5, 1, 0, 7, 0, 3]),
    ("server", [0, 0, 1, 1, 1, 1, 2, 0x83, 0x87, 1, 9, 4, 1, 1, 0x84, 1, 3, 0, 1, 4, 0, 0, 0, 8, 7, 7, 0]),
    ("server", [3, 0x91, 2, 0, 2, 0, 4, 0, 1, 0, 99, 7, 6, 1, 6, 0, 0, 0, 7, 4, 0, 7, 9, 0, 7, 8, 1]),
  ]
}
