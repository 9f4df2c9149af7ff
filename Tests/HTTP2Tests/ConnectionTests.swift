import Bytes
import HTTP2
import TestSupport
import Testing

/// Feeds both sides of a connection, whatever is written as one piece.
struct Talk {
  var reader: ConnectionReader
  var log = ConnectionLog()
  var encoders: [FrameReader.Side: HPACKEncoder] = [.client: HPACKEncoder(), .server: HPACKEncoder()]
  private var offsets: [FrameReader.Side: Int] = [.client: 0, .server: 0]

  init(_ limits: ConnectionReader.Limits = .init(), settings: [Setting] = []) {
    reader = ConnectionReader(limits: limits)
    client {
      $0.write(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8).rawBytes)
      $0.writeSettings([])
    }
    server {
      $0.writeSettings(settings)
      $0.writeSettingsAcknowledgement()
    }
    client { $0.writeSettingsAcknowledgement() }
  }

  mutating func client(_ write: (inout ByteWriter) -> Void) { send(.client, write) }
  mutating func server(_ write: (inout ByteWriter) -> Void) { send(.server, write) }

  private mutating func send(_ side: FrameReader.Side, _ write: (inout ByteWriter) -> Void) {
    let bytes = frames(write)
    let offset = offsets[side, default: 0]
    reader.read(bytes.rawBytes, from: side, at: offset, arrival: arrival(0), into: &log)
    offsets[side] = offset + bytes.count
  }

  mutating func lose(_ side: FrameReader.Side, _ length: Int) {
    let offset = offsets[side, default: 0]
    reader.gap(from: side, at: offset, length: length, arrival: arrival(0), into: &log)
    offsets[side] = offset + length
  }

  mutating func finish() {
    reader.finish(.client, into: &log)
    reader.finish(.server, into: &log)
  }

  mutating func block(_ side: FrameReader.Side, _ fields: [(String, String)]) -> [UInt8] {
    var encoder = encoders[side] ?? HPACKEncoder()
    defer { encoders[side] = encoder }
    return encoder.block(fields.map { TestField(name: $0.0, value: $0.1) })
  }

  static let request = [(":method", "POST"), (":scheme", "https"), (":path", "/x")]

  mutating func request(
    _ stream: UInt32, _ fields: [(String, String)] = request, end: Bool = true
  ) {
    let block = block(.client, fields)
    client {
      $0.writeFrame(.headers, flags: end ? [.endHeaders, .endStream] : .endHeaders, stream: stream, block.rawBytes)
    }
  }

  mutating func response(_ stream: UInt32, _ fields: [(String, String)] = [(":status", "200")], end: Bool = true) {
    let block = block(.server, fields)
    server {
      $0.writeFrame(.headers, flags: end ? [.endHeaders, .endStream] : .endHeaders, stream: stream, block.rawBytes)
    }
  }

  mutating func data(_ stream: UInt32, _ length: Int, end: Bool = true, _ side: FrameReader.Side = .client) {
    let bytes = [UInt8](repeating: 0x61, count: length)
    let flags: FrameFlags = end ? .endStream : []
    if side == .client {
      client { $0.writeFrame(.data, flags: flags, stream: stream, bytes.rawBytes) }
    } else {
      server { $0.writeFrame(.data, flags: flags, stream: stream, bytes.rawBytes) }
    }
  }

  var rules: [Rule] { log.violations.map(\.rule) }
}

@Suite("Connections of HTTP/2") struct ConnectionTests {
  @Test("A stream is open until both sides have ended it") func life() {
    var talk = Talk()
    talk.request(1, end: false)
    #expect(talk.reader.openStreams == 1)
    talk.response(1, end: false)
    talk.data(1, 10)
    #expect(talk.log.closed.isEmpty)
    talk.data(1, 3, .server)
    #expect(talk.log.closed == [1: .closed])
    #expect(talk.reader.openStreams == 0)
    #expect(talk.log.contents[1]?.count == 13)
    #expect(talk.rules.isEmpty)
  }

  @Test("Interim responses precede the final one, and trailers follow the content") func sections() {
    var talk = Talk()
    talk.request(1)
    talk.response(1, [(":status", "103")], end: false)
    talk.response(1, [(":status", "200")], end: false)
    talk.data(1, 3, end: false, .server)
    talk.response(1, [("x-check", "1")])
    #expect(talk.log.sections.map(\.kind) == [.request, .interimResponse, .response, .trailers])
    #expect(talk.rules.isEmpty)
  }

  @Test("Settings are in force when they are acknowledged") func settings() {
    var talk = Talk()
    talk.server { $0.writeSettings([Setting(.maximumConcurrentStreams, 7), Setting(.headerTableSize, 100)]) }
    #expect(talk.reader.settingsInForce(of: .server)?.maximumConcurrentStreams == nil)
    talk.client { $0.writeSettingsAcknowledgement() }
    #expect(talk.reader.settingsInForce(of: .server)?.maximumConcurrentStreams == 7)
    #expect(talk.log.inForce.last?.headerTableSize == 100)
    // The smaller table is to be acknowledged in the next block, too.
    talk.request(1)
    #expect(talk.rules == [.sizeUpdateMissing])
    talk.lose(.server, 1_000)
    #expect(talk.reader.settingsInForce(of: .server) == nil)
    #expect(talk.reader.settingsInForce(of: .client) == nil)
    #expect(talk.log.lossesOfSettings == 1)
  }

  @Test("Frames as long as the receiver has announced are allowed, and longer ones are not") func frameSize() {
    var talk = Talk()
    talk.request(1, end: false)
    talk.data(1, 16_384, end: false)
    #expect(talk.rules.isEmpty)
    talk.data(1, 16_385, end: false)
    #expect(talk.rules == [.frameTooLong])
    talk.server { $0.writeSettings([Setting(.maximumFrameSize, 20_000)]) }
    talk.data(1, 20_000, end: false)
    #expect(talk.rules.count == 1)
    talk.data(1, 20_001, end: false)
    #expect(talk.rules == [.frameTooLong, .frameTooLong])
  }

  @Test("A larger header table is allowed from its announcement on") func tableSize() {
    var talk = Talk()
    talk.server { $0.writeSettings([Setting(.headerTableSize, 8_192)]) }
    talk.encoders[.client]?.resize(to: 8_192)
    talk.request(1)
    #expect(talk.rules.isEmpty)
    talk.encoders[.client]?.resize(to: 8_193)
    talk.request(3)
    #expect(talk.rules == [.sizeUpdateAboveLimit])
  }

  @Test("More content than a window allows is a violation, unless WINDOW_UPDATE may be missing") func windows() {
    func send(_ prepare: (inout Talk) -> Void) -> [Rule] {
      var talk = Talk()
      talk.request(1, end: false)
      prepare(&talk)
      for _ in 0..<4 { talk.data(1, 16_384, end: false) }
      talk.finish()
      return talk.rules
    }
    // 65,536 bytes, and both windows have 65,535.
    #expect(send { _ in } == [.windowExceeded, .windowExceeded])
    #expect(send { $0.server { $0.writeWindowUpdate(1) } } == [.windowExceeded])
    #expect(
      send {
        $0.server {
          $0.writeWindowUpdate(1)
          $0.writeWindowUpdate(1, stream: 1)
        }
      } == [])
    #expect(
      send {
        $0.server {
          $0.writeWindowUpdate(1)
          $0.writeSettings([Setting(.initialWindowSize, 65_536)])
        }
      } == [])
    #expect(send { $0.lose(.server, 50) } == [])
  }

  @Test("The connection's window is known as long as nothing is missing") func connectionWindow() {
    var talk = Talk()
    talk.request(1, end: false)
    talk.data(1, 100)
    talk.server { $0.writeWindowUpdate(1_000) }
    #expect(talk.reader.connectionWindow(of: .client) == 66_435)
    #expect(talk.reader.connectionWindow(of: .server) == 65_535)
    talk.lose(.server, 10)
    #expect(talk.reader.connectionWindow(of: .client) == nil)
  }

  @Test("A window does not grow above its limit") func overflow() {
    var talk = Talk()
    talk.request(1, end: false)
    talk.server { $0.writeWindowUpdate(0x7fff_ffff - 65_535) }
    talk.server { $0.writeWindowUpdate(0x7fff_ffff - 65_535, stream: 1) }
    talk.finish()
    #expect(talk.rules.isEmpty)
    var other = Talk()
    other.request(1, end: false)
    other.server { $0.writeWindowUpdate(0x7fff_ffff - 65_534) }
    other.server { $0.writeWindowUpdate(0x7fff_ffff - 65_534, stream: 1) }
    other.finish()
    #expect(other.rules == [.windowOverflow, .windowOverflow])
    #expect(other.log.violations.map(\.isStreamError) == [false, true])
  }

  @Test("A response that is captured before its request is no violation") func responseFirst() {
    var talk = Talk()
    talk.response(1)
    talk.request(1)
    #expect(talk.rules.isEmpty)
    #expect(talk.log.sections.map(\.kind) == [.response, .request])
    #expect(talk.log.closed == [1: .closed])
  }

  @Test("A gap within DATA loses neither table nor frames") func gapInData() {
    var talk = Talk()
    talk.request(1, Talk.request + [("x-topic", "a")], end: false)
    talk.client {
      $0.write(FrameHeader(.data, flags: .endStream, stream: 1, payloadLength: 100))
      $0.write([UInt8](repeating: 1, count: 40).rawBytes)
    }
    talk.lose(.client, 30)
    talk.client { $0.write([UInt8](repeating: 1, count: 30).rawBytes) }
    talk.request(3, Talk.request + [("x-topic", "a")])
    #expect(talk.log.missing.map(\.losesTable) == [false])
    #expect(talk.log.partialContents == [1])
    #expect(talk.log.ended == [1, 3])
    #expect(talk.log.sections.last?.fields.last == "x-topic: a")
    #expect(talk.reader.isTableKnown(of: .client))
    #expect(talk.log.lossesOfSettings == 0)
  }

  @Test("A gap within a field block loses the table, and no other frame") func gapInBlock() {
    var talk = Talk()
    let block = talk.block(.client, Talk.request + [("x-topic", "a")])
    talk.client {
      $0.write(FrameHeader(.headers, flags: [.endHeaders, .endStream], stream: 1, payloadLength: block.count))
      $0.write(block.rawBytes.extracting(0..<5))
    }
    talk.lose(.client, block.count - 5)
    talk.request(3, Talk.request + [("x-topic", "a")])
    #expect(talk.log.missing.map(\.losesTable) == [true])
    #expect(talk.log.sections.map(\.extent) == [.cut, .whole])
    #expect(talk.log.sections.last?.fields == [":method: POST", ":scheme: https", "?: ?", "?: ?"])
    #expect(talk.rules.isEmpty)
  }

  @Test("Frames of a request whose HEADERS are lost open its stream, and those of a closed one do not")
  func lostHeaders() {
    var talk = Talk()
    talk.request(1)
    talk.response(1)
    talk.lose(.client, 200)
    talk.data(3, 5)
    talk.client { $0.writePing(1) }
    talk.data(1, 5)
    talk.client { $0.writePing(1) }
    #expect(talk.log.contents.keys.sorted() == [3])
    #expect(talk.log.ended.filter { $0 == 3 }.count == 1)
    talk.response(3)
    #expect(talk.log.closed == [1: .closed, 3: .closed])
    #expect(talk.rules.isEmpty)
  }

  @Test("A block in CONTINUATION frames is one section, also when another frame interrupts it") func continuation() {
    var talk = Talk()
    let block = talk.block(.client, Talk.request)
    talk.client {
      $0.writeFrame(.headers, stream: 1, block.rawBytes.extracting(0..<1))
      $0.writeFrame(.continuation, stream: 1, block.rawBytes.extracting(1..<2))
      $0.writeFrame(.continuation, flags: .endHeaders, stream: 1, block.rawBytes.extracting(2..<block.count))
    }
    #expect(talk.log.sections.map(\.extent) == [.whole])
    #expect(talk.log.sections.first?.length == 27 + block.count)
    talk.client {
      $0.writeFrame(.headers, stream: 3, [0x83].rawBytes)
      $0.writePing(1)
    }
    #expect(talk.rules == [.blockInterrupted])
    #expect(talk.log.sections.last?.extent == .cut)
    #expect(talk.log.sections.last?.fields == [":method: POST"])
  }

  @Test("A block above the limit is lost, and so is the table") func longBlock() {
    var limits = ConnectionReader.Limits()
    limits.blockLength = 100
    for continuations in [0, 1] {
      var talk = Talk(limits)
      let block = talk.block(.client, Talk.request + [("x", String(repeating: "~", count: 200))])
      talk.client {
        if continuations == 0 {
          $0.writeFrame(.headers, flags: .endHeaders, stream: 1, block.rawBytes)
        } else {
          $0.writeFrame(.headers, stream: 1, block.rawBytes.extracting(0..<90))
          $0.writeFrame(.continuation, flags: .endHeaders, stream: 1, block.rawBytes.extracting(90..<block.count))
        }
      }
      #expect(talk.rules == [.blockTooLong])
      #expect(talk.log.sections.map(\.extent) == [.lost])
      #expect(!talk.reader.isTableKnown(of: .client))
    }
  }

  @Test("The end of a connection ends its streams in order") func connectionEnd() {
    var talk = Talk()
    for stream in [1, 3, 5] as [UInt32] { talk.request(stream) }
    talk.reader.finish(.client, into: &talk.log)
    #expect(talk.log.closed.isEmpty)
    talk.response(3)
    talk.reader.finish(.server, into: &talk.log)
    #expect(talk.log.closed == [1: .connectionEnd, 3: .closed, 5: .connectionEnd])
  }

  @Test("Memory has limits, whatever a client opens and announces") func memory() {
    var limits = ConnectionReader.Limits()
    limits.openStreams = 100
    var talk = Talk(limits)
    for number in 0..<5_000 {
      talk.request(UInt32(2 * number + 1), end: false)
      talk.server { $0.writeSettings([Setting(.headerTableSize, 4_096)]) }
    }
    #expect(talk.reader.openStreams == 100)
    #expect(talk.log.closed.values.filter { $0 == .limit }.count == 4_900)
    #expect(talk.reader.heldBytes < 200_000)
    #expect(!talk.log.isSlotShared)
  }

  @Test("RST_STREAM on stream 0 concerns no stream, also when it is cut") func resetOnConnection() {
    for length in [9, 10, 13] {
      var talk = Talk()
      talk.client { $0.write(frames { $0.writeReset(.cancel, stream: 0) }.rawBytes.extracting(0..<length)) }
      talk.finish()
      #expect(talk.log.resets.isEmpty)
      #expect(talk.rules == (length == 13 ? [.resetOnConnection] : []))
    }
  }

  @Test("A field block that is cut keeps that it ends its stream") func cutEnd() {
    for end in [true, false] {
      var talk = Talk()
      let block = talk.block(.client, Talk.request)
      talk.client {
        $0.write(
          FrameHeader(
            .headers, flags: end ? [.endHeaders, .endStream] : .endHeaders, stream: 1, payloadLength: block.count))
        $0.write(block.rawBytes.extracting(0..<2))
      }
      talk.finish()
      #expect(talk.log.sections.map(\.endsStream) == [end])
      #expect(talk.log.sections.map(\.extent) == [.cut])
    }
  }

  @Test("Only the size of the table is acknowledged to the decoder") func acknowledgedSize() {
    var talk = Talk()
    talk.server { $0.writeSettings([Setting(.headerTableSize, 100)]) }
    talk.server { $0.writeSettings([Setting(.maximumConcurrentStreams, 5)]) }
    talk.request(1)
    #expect(talk.rules.isEmpty)
    talk.client { $0.writeSettingsAcknowledgement() }
    talk.request(3)
    #expect(talk.rules == [.sizeUpdateMissing])
    // It is owed once.
    talk.client { $0.writeSettingsAcknowledgement() }
    talk.request(5)
    #expect(talk.rules == [.sizeUpdateMissing])
  }

  @Test(
    "Names and values that no message may have are named",
    arguments: [
      ("x[y", "v", nil), ("x@y", "v", nil), ("xZy", "v", .fieldNameCharacter), ("xAy", "v", .fieldNameCharacter),
      ("x y", "v", .fieldNameCharacter), ("x\u{7f}", "v", .fieldNameCharacter), ("x:y", "v", .fieldNameCharacter),
      ("", "v", .fieldNameCharacter), ("x", " v", .fieldValueCharacter), ("x", "v\t", .fieldValueCharacter),
      ("x", "a\nb", .fieldValueCharacter), ("x", "a\0b", .fieldValueCharacter), ("x", "", nil), ("x", "a b", nil),
      ("te", "trailers", nil), ("te", "gzip", .connectionField), ("keep-alive", "1", .connectionField),
      ("proxy-connection", "1", .connectionField), ("transfer-encoding", "1", .connectionField),
      ("upgrade", "1", .connectionField), (":path", "/y", .pseudoFieldOrder), (":status", "200", .pseudoFieldOrder),
    ] as [(String, String, Rule?)])
  func names(name: String, value: String, rule: Rule?) {
    var talk = Talk()
    talk.request(1, Talk.request + [("a", "b"), (name, value)])
    #expect(talk.rules == (rule.map { [$0] } ?? []))
    #expect(talk.log.violations.allSatisfy { $0.isStreamError && $0.stream == 1 })
  }

  @Test("Pseudo-fields are those of the message, once each") func pseudoFields() {
    func rules(_ fields: [(String, String)], response: Bool = false) -> [Rule] {
      var talk = Talk()
      talk.request(1, response ? Talk.request : fields)
      if response { talk.response(1, fields) }
      return talk.rules
    }
    #expect(rules([(":method", "GET"), (":scheme", "https"), (":path", "")]) == [.pseudoFieldMissing])
    #expect(rules([(":method", "GET"), (":path", "/")]) == [.pseudoFieldMissing])
    #expect(rules([(":method", "GET"), (":scheme", "https"), (":path", "a")]) == [.pathForm])
    #expect(rules([(":method", "GET"), (":scheme", "http"), (":path", "*")]) == [.pathForm])
    #expect(rules([(":method", "OPTIONS"), (":scheme", "https"), (":path", "*")]) == [])
    #expect(rules([(":method", "GET"), (":scheme", "urn"), (":path", "a")]) == [])
    #expect(rules([(":method", "CONNECT"), (":authority", "a")]) == [])
    #expect(rules([(":method", "CONNECT")]) == [.connectFields])
    #expect(rules([(":method", "CONNECT"), (":authority", "a"), (":scheme", "https")]) == [.connectFields])
    #expect(rules([(":method", "CONNECTS"), (":authority", "a")]) == [.pseudoFieldMissing])
    // An extended CONNECT (RFC 8441) has them, and its server may have offered it.
    let extended = [(":method", "CONNECT"), (":scheme", "https"), (":path", "/"), (":authority", "a")]
    #expect(rules(extended + [(":protocol", "websocket")]) == [])
    #expect(rules(extended) == [.connectFields])
    // A field of the static table may be one that no message has.
    #expect(rules(Talk.request + [("transfer-encoding", "")]) == [.connectionField])
    #expect(rules(Talk.request + [(":path", "/")]) == [.pseudoFieldRepeated])
    #expect(rules(Talk.request + [(":status", "200")]) == [.pseudoFieldUnknown])
    #expect(rules(Talk.request + [(":new", "x")]) == [.pseudoFieldUnknown])
    #expect(rules([("x", "y")], response: true) == [.statusMissing])
    #expect(rules([(":status", "200"), (":path", "/")], response: true) == [.pseudoFieldUnknown])
  }

  @Test("The length of the content is the one that is announced") func contentLength() {
    for (announced, rule) in [("10", nil), ("11", Rule.contentLength), ("x", .contentLength)] as [(String, Rule?)] {
      var talk = Talk()
      talk.request(1, Talk.request + [("content-length", announced)], end: false)
      talk.data(1, 4, end: false)
      talk.data(1, 6)
      #expect(talk.rules == (rule.map { [$0] } ?? []))
    }
  }

  @Test("Many streams one after the other need no memory") func manyStreams() {
    var talk = Talk()
    // The first one stays open, before all others in their order.
    talk.request(1)
    for number in 1..<5_000 {
      talk.request(UInt32(2 * number + 1))
      talk.response(UInt32(2 * number + 1))
    }
    #expect(talk.reader.openStreams == 1)
    #expect(talk.reader.heldBytes < 80_000)
  }

  @Test("The first frame of a side is SETTINGS, if its beginning was seen") func firstFrame() {
    let ping = frames { $0.writePing(1) }
    for isFromStart in [true, false] {
      var (reader, log) = (ConnectionReader(isFromStart: isFromStart), ConnectionLog())
      reader.read((ping + ping).rawBytes, from: .server, at: 0, arrival: arrival(0), into: &log)
      #expect(log.violations.map(\.rule) == (isFromStart ? [.firstFrame] : []))
    }
    var (reader, log) = (ConnectionReader(), ConnectionLog())
    reader.read(
      frames { $0.writeSettingsAcknowledgement() }.rawBytes, from: .server, at: 0, arrival: arrival(0), into: &log)
    #expect(log.violations.map(\.rule) == [.firstFrame])
  }

  @Test("Memory that was freed is made again") func freed() {
    var talk = Talk()
    for stream in stride(from: 1, to: 41, by: 2) as StrideTo<UInt32> {
      talk.request(stream, Talk.request + [("x-topic", "a")])
      talk.reader.freeSpare()
      talk.response(stream)
    }
    let held = talk.reader.heldBytes
    talk.reader.freeSpare()
    #expect(talk.reader.heldBytes < held)
    #expect(
      talk.log.sections.filter { $0.kind == .request }.map { $0.fields.last }
        == Array(repeating: "x-topic: a", count: 20))
    #expect(talk.rules.isEmpty)
    // A frame that has begun is kept.
    talk.client { $0.write([0, 0, 8, 6].rawBytes) }
    talk.reader.freeSpare()
    talk.client { $0.write([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7].rawBytes) }
    #expect(talk.log.pings == [7])
  }

  @Test("In a recording that begins in the middle nothing is claimed that depends on the beginning") func middle() {
    var reader = ConnectionReader(isFromStart: false)
    var log = ConnectionLog()
    var encoder = HPACKEncoder()
    _ = encoder.block([TestField(name: "x-old", value: "1")])
    let block = encoder.block([
      TestField(name: ":path", value: "/x"), TestField(name: "x-old", value: "1"),
      TestField(name: "x-new", value: "2"),
    ])
    let bytes = frames {
      $0.write([1, 2, 3, 0, 0, 9].rawBytes)
      $0.writeFrame(.headers, flags: [.endHeaders, .endStream], stream: 901, block.rawBytes)
      $0.writeWindowUpdate(5, stream: 899)
      $0.writeReset(.cancel, stream: 897)
    }
    reader.read(bytes.rawBytes, from: .client, at: 5_000, arrival: arrival(3), into: &log)
    reader.finish(.client, into: &log)
    reader.finish(.server, into: &log)
    #expect(log.unread.map(\.range) == [5_000..<5_006])
    #expect(log.sections.map(\.fields) == [[":path: /x", "?: ?", "x-new: 2"]])
    #expect(log.violations.isEmpty)
  }

  @Test("Words of a violation name the section and the stream") func words() {
    #expect(Violation(.pingSize).description == "PING is not 8 bytes long, RFC 9113 6.7")
    #expect(Violation(.frameAfterEnd, stream: 5).description == "a frame after END_STREAM, RFC 9113 5.1 (stream 5)")
    #expect(Set(Rule.allCases.map(\.words)).count >= Rule.allCases.count - 1)
    for rule in Rule.allCases {
      #expect(rule.section.hasPrefix("RFC 9113 ") || rule.section.hasPrefix("RFC 7541 "))
      #expect(rule.section.hasPrefix("RFC 7541") == (Violation(rule).code == .compressionError))
    }
    #expect(ErrorCode.refusedStream.description == "REFUSED_STREAM")
    #expect(ErrorCode(rawValue: 77).description == "0x4d")
    #expect(SettingName.maximumConcurrentStreams.description == "MAX_CONCURRENT_STREAMS")
    #expect(FrameType.goAway.description == "GOAWAY")
  }

  @Test("Reading pauses while the handler is full, and goes on where it was") func pause() {
    let bytes = frames {
      $0.write(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8).rawBytes)
      $0.writeSettings([])
      for _ in 0..<3 { $0.writePing(7) }
    }
    var (reader, log, position, calls) = (ConnectionReader(), ConnectionLog(), 0, 0)
    log.isFull = true
    var isRead = false
    while !isRead {
      isRead = reader.read(
        bytes.rawBytes, &position, from: .client, at: 0, arrival: arrival(1), startsRecord: false, into: &log)
      calls += 1
    }
    // The preface, SETTINGS, three PING, and the end.
    #expect(calls == 6 && log.pings == [7, 7, 7] && position == bytes.count)
  }
}
