import Bytes
import HTTP2
import TestSupport
import Testing

/// A stream of frames, and where each of them is.
struct FrameStream {
  var bytes: [UInt8] = []
  var places: [(header: FrameHeader, range: Range<Int>)] = []

  init(seed: UInt64, frames count: Int) {
    var random = SeededGenerator(seed: seed)
    var stream: UInt32 = 3
    for _ in 0..<count {
      let start = bytes.count
      bytes += frames { writer in
        switch random.number(0...9) {
        case 0...3:
          writer.writeFrame(
            .headers, flags: [.endHeaders], stream: stream, random.bytes(random.number(1...200)).rawBytes)
          stream += 2
        case 4...6:
          let text = Array(String(repeating: "{\"aps\":{}}", count: random.number(1...60)).utf8)
          writer.writeFrame(.data, flags: .endStream, stream: stream - 2, text.rawBytes)
        case 7: writer.writePing(random.next())
        case 8: writer.writeWindowUpdate(UInt32(random.number(1...60_000)), stream: random.happens(oneIn: 2) ? 0 : 1)
        default: writer.writeSettings([Setting(.maximumConcurrentStreams, 100)])
        }
      }
      if let header = FrameHeader(parsing: bytes.rawBytes.extracting(start..<bytes.count)) {
        places.append((header, start..<bytes.count))
      }
    }
  }
}

/// Reads a direction and keeps copies of its frames.
struct FrameRun {
  struct Frame: Equatable {
    var header: FrameHeader
    var offset: Int
    var payload: [UInt8]
    var isWhole: Bool
    var packet: Int
  }

  var reader: FrameReader
  var frames: [Frame] = []
  var unread: [Range<Int>] = []
  var missing: [Range<Int>] = []
  var prefaces = 0

  init(_ side: FrameReader.Side = .server, isAligned: Bool = true, limits: FrameReader.Limits = .init()) {
    reader = FrameReader(side, isAligned: isAligned, limits: limits)
  }

  mutating func read(_ bytes: RawSpan, at offset: Int, packet: Int = 0, startsRecord: Bool = false) {
    var position = 0
    while true {
      let step = reader.next(bytes, &position, at: offset, arrival: arrival(packet), startsRecord: startsRecord)
      if step == .done { break }
      take(step, bytes)
    }
    #expect(position == bytes.byteCount)
  }

  mutating func gap(at offset: Int, length: Int) {
    let nothing: [UInt8] = []
    for step in reader.gap(at: offset, length: length) { take(step, nothing.rawBytes) }
  }

  mutating func finish() {
    let nothing: [UInt8] = []
    for step in reader.finish() { take(step, nothing.rawBytes) }
  }

  private mutating func take(_ step: FrameReader.Step, _ bytes: RawSpan) {
    switch step {
    case .frame(let place):
      let payload: [UInt8]
      if place.isKept {
        payload = Array(copying: reader.kept.extracting(place.payload))
      } else {
        payload = Array(copying: bytes.extracting(place.payload))
      }
      frames.append(
        Frame(
          header: place.header, offset: place.offset, payload: payload, isWhole: place.isWhole,
          packet: place.arrival.packet))
    case .unread(_, let offset, let length, _): unread.append(offset..<offset + length)
    case .missing(let offset, let length): missing.append(offset..<offset + length)
    case .preface: prefaces += 1
    case .done: break
    }
  }

  /// Whether each frame is one of the stream's, and has its bytes.
  func expect(areOf stream: FrameStream) {
    for frame in frames {
      let place = stream.places.first { $0.range.lowerBound == frame.offset }
      #expect(place?.header == frame.header, "no frame begins at \(frame.offset)")
      let payload = stream.bytes[(frame.offset + 9)...].prefix(frame.header.payloadLength)
      #expect(frame.isWhole ? payload.elementsEqual(frame.payload) : payload.starts(with: frame.payload))
    }
  }
}

@Suite("Frames from pieces and gaps") struct FrameReaderTests {
  @Test("Pieces of any length have the same frames", arguments: seeds(30, of: 300)) func pieces(seed: UInt64) {
    let stream = FrameStream(seed: seed, frames: 40)
    var (random, run) = (SeededGenerator(seed: seed), FrameRun())
    var (offset, packet) = (0, 0)
    var ends: [Int] = []
    while offset < stream.bytes.count {
      let end = min(stream.bytes.count, offset + random.number(1...(random.happens(oneIn: 3) ? 5 : 700)))
      packet += 1
      run.read(stream.bytes.rawBytes.extracting(offset..<end), at: offset, packet: packet)
      ends.append(end)
      offset = end
    }
    run.finish()
    run.expect(areOf: stream)
    #expect(run.frames.map(\.offset) == stream.places.map(\.range.lowerBound))
    #expect(!run.frames.contains { !$0.isWhole })
    #expect(run.unread.isEmpty && run.missing.isEmpty)
    // The piece with a frame's last byte.
    for (frame, place) in zip(run.frames, stream.places) {
      #expect(frame.packet == (ends.firstIndex { $0 >= place.range.upperBound } ?? -1) + 1)
    }
  }

  @Test(
    "A gap costs the frames that it touches, and those before the next that are found", arguments: seeds(80, of: 1_000))
  func gaps(seed: UInt64) {
    let stream = FrameStream(seed: seed, frames: 60)
    var (random, run) = (SeededGenerator(seed: seed), FrameRun())
    let start = random.number(0...stream.bytes.count - 2)
    let gap = start..<min(stream.bytes.count - 1, start + random.number(1...900))
    func feed(_ range: Range<Int>) {
      var offset = range.lowerBound
      while offset < range.upperBound {
        let end = min(range.upperBound, offset + random.number(1...400))
        run.read(stream.bytes.rawBytes.extracting(offset..<end), at: offset)
        offset = end
      }
    }
    feed(0..<gap.lowerBound)
    run.gap(at: gap.lowerBound, length: gap.count)
    feed(gap.upperBound..<stream.bytes.count)
    run.finish()
    run.expect(areOf: stream)
    let touched = stream.places.filter { $0.range.overlaps(gap) }
    let found = Set(run.frames.filter(\.isWhole).map(\.offset))
    #expect(touched.allSatisfy { !found.contains($0.range.lowerBound) })
    // A header that was seen tells where the next frame begins; then only one frame is lost.
    let isWithin = touched.count == 1 && touched[0].range.lowerBound + 9 <= gap.lowerBound
    #expect(run.missing.isEmpty == isWithin)
    // Otherwise a search needs two frames behind the gap.
    let expected = stream.places.filter { !$0.range.overlaps(gap) }
    #expect(expected.allSatisfy { found.contains($0.range.lowerBound) })
  }

  @Test("A TLS record behind a gap is believed with one frame") func recordEdge() {
    let ping = frames { $0.writePing(7) }
    var run = FrameRun()
    run.read(ping.rawBytes, at: 0)
    run.gap(at: 17, length: 100)
    run.read(ping.rawBytes, at: 117, packet: 5, startsRecord: true)
    #expect(run.frames.map(\.offset) == [0, 117])
    #expect(run.frames.last?.packet == 5)
    // Without the edge it waits for the next frame.
    run.gap(at: 134, length: 100)
    run.read(ping.rawBytes, at: 234)
    #expect(run.frames.count == 2)
    run.read(ping.rawBytes, at: 251)
    #expect(run.frames.map(\.offset) == [0, 117, 234, 251])
  }

  @Test("What looks like one frame and is followed by none is not taken for one") func lonely() {
    var run = FrameRun()
    run.gap(at: 0, length: 1_000)
    let text = Array("{\"a\":1}".utf8)
    run.read((frames { $0.writePing(7) } + text + text + text).rawBytes, at: 1_000)
    run.finish()
    #expect(run.frames.isEmpty)
    #expect(run.unread == [1_000..<1_038])
  }

  @Test("A stream far above those seen is not plausible") func streams() {
    var run = FrameRun()
    run.read(frames { $0.writeReset(.cancel, stream: 5) }.rawBytes, at: 0)
    run.gap(at: 13, length: 50)
    let far = frames {
      $0.writeReset(.cancel, stream: 1_000_001)
      $0.writeReset(.cancel, stream: 1_000_003)
    }
    run.read(far.rawBytes, at: 63)
    #expect(run.frames.count == 1)
    run.read(
      frames {
        $0.writeReset(.cancel, stream: 7)
        $0.writeReset(.cancel, stream: 9)
      }.rawBytes, at: 63 + far.count)
    #expect(run.frames.map(\.header.stream) == [5, 7, 9])
  }

  @Test("A frame above the limit is named and skipped, and nothing of it is kept") func tooLong() {
    var limits = FrameReader.Limits()
    limits.longestPayload = 1_000
    var run = FrameRun(limits: limits)
    let bytes = frames {
      $0.writeFrame(.data, stream: 1, [UInt8](repeating: 0, count: 5_000).rawBytes)
      $0.writePing(1)
    }
    for offset in stride(from: 0, to: bytes.count, by: 100) {
      run.read(bytes.rawBytes.extracting(offset..<min(bytes.count, offset + 100)), at: offset)
      #expect(run.reader.heldBytes < 1_200)
    }
    #expect(run.frames.map(\.header.type) == [.data, .ping])
    #expect(run.frames.map(\.isWhole) == [false, true])
  }

  @Test("A search that kept a frame above the limit reads on behind it", arguments: [1, 3, 100, 10_000])
  func tooLongInSearch(piece: Int) {
    let stream = frames { writer in
      writer.writePing(1)
      writer.writeWindowUpdate(7, stream: 0)
      writer.writeFrame(.data, stream: 1, [UInt8](repeating: 0x61, count: 150).rawBytes)
      writer.writePing(2)
      writer.writeFrame(.data, flags: .endStream, stream: 1, [UInt8](repeating: 0x62, count: 50).rawBytes)
    }
    var limits = FrameReader.Limits()
    limits.longestPayload = 100
    var run = FrameRun(isAligned: false, limits: limits)
    for start in stride(from: 0, to: stream.count, by: piece) {
      run.read(stream.rawBytes.extracting(start..<min(stream.count, start + piece)), at: start)
    }
    run.finish()
    #expect(run.frames.map(\.header.type) == [.ping, .windowUpdate, .data, .ping, .data])
    #expect(run.frames.map(\.isWhole) == [true, true, false, true, true])
    #expect(run.frames.map(\.offset) == [0, 17, 30, 189, 206] && run.unread.isEmpty)
  }

  @Test("A search keeps no more than a frame, whatever comes") func searchMemory() {
    var run = FrameRun(isAligned: false)
    // Zeros begin frames of no length on stream 0, which no type of frame may have.
    for round in 0..<40 {
      let piece = [UInt8](repeating: round % 2 == 0 ? 0 : 0x41, count: 60_000)
      run.read(piece.rawBytes, at: round * 60_000)
      #expect(run.reader.heldBytes < 200_000)
    }
    run.finish()
    #expect(run.frames.isEmpty)
    #expect(run.unread == [0..<2_400_000])
  }

  @Test("What begins a connection and is no preface is not HTTP/2, to its end") func notHTTP2() {
    var run = FrameRun(.client)
    run.read(Array("POST /".utf8).rawBytes, at: 0)
    run.read(frames { $0.writePing(1) }.rawBytes, at: 6)
    run.finish()
    #expect(run.frames.isEmpty && run.prefaces == 0)
    #expect(run.unread == [0..<6, 6..<23])
    // What follows the length of a preface in the same piece.
    var longer = FrameRun(.client)
    longer.read([UInt8](repeating: 0x47, count: 50).rawBytes, at: 0)
    #expect(longer.unread == [0..<24, 24..<50])
  }

  @Test("A search takes a last frame that the end follows, or another's beginning") func lastFrame() {
    let ping = frames { $0.writePing(1) }
    for (rest, isFound) in [([], true), ([0, 0], true), ([0x41, 0x41], false)] as [([UInt8], Bool)] {
      var run = FrameRun()
      run.gap(at: 0, length: 10)
      run.read((ping + rest).rawBytes, at: 10)
      #expect(run.frames.isEmpty)
      run.finish()
      #expect(run.frames.count == (isFound ? 1 : 0))
    }
  }

  @Test(
    "Frames of every type are found behind a gap, and none with flags or lengths that it has not",
    arguments: [
      (.data, .endStream, 1, 0, true), (.data, [], 1, 0, false), (.data, [], 0, 5, false),
      (.data, .endHeaders, 1, 5, false),
      (.headers, .endHeaders, 1, 5, true), (.headers, .endHeaders, 2, 5, false), (.headers, [], 1, 0, false),
      (.priority, [], 1, 5, true), (.priority, [], 0, 5, false), (.priority, .endStream, 1, 5, false),
      (.reset, [], 1, 4, true), (.reset, [], 0, 4, false), (.settings, [], 0, 12, true), (.settings, [], 1, 12, false),
      (.settings, [], 0, 13, false), (.settings, .acknowledgement, 0, 0, true),
      (.settings, .acknowledgement, 0, 6, false),
      (.settings, [], 0, 606, false), (.ping, .acknowledgement, 0, 8, true), (.ping, [], 0, 7, false),
      (.ping, [], 1, 8, false), (.ping, .endHeaders, 0, 8, false), (.goAway, [], 0, 8, true),
      (.goAway, [], 0, 7, false),
      (.goAway, [], 1, 8, false), (.windowUpdate, [], 0, 4, true), (.windowUpdate, [], 1, 4, true),
      (.windowUpdate, [], 2, 4, false), (.windowUpdate, .endStream, 0, 4, false),
      (.continuation, .endHeaders, 1, 0, true),
      (.continuation, .endStream, 1, 0, false), (.pushPromise, .endHeaders, 1, 8, false),
      (FrameType(rawValue: 10), [], 0, 4, false),
    ] as [(FrameType, FrameFlags, UInt32, Int, Bool)])
  func plausible(type: FrameType, flags: FrameFlags, stream: UInt32, length: Int, isPlausible: Bool) {
    let frame = frames {
      $0.writeFrame(type, flags: flags, stream: stream, [UInt8](repeating: 0x61, count: length).rawBytes)
    }
    var run = FrameRun()
    run.gap(at: 0, length: 10)
    run.read((frame + frames { $0.writePing(1) } + frames { $0.writePing(2) }).rawBytes, at: 10)
    run.finish()
    #expect(run.frames.first?.header.type == (isPlausible ? type : .ping))
    #expect(run.frames.count == (isPlausible ? 3 : 2))
  }

  @Test("A preface is found when the recording lacks only the handshake") func lateStart() {
    let bytes = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frames { $0.writeSettings([]) }
    var run = FrameRun(.client, isAligned: false)
    run.read(bytes.rawBytes, at: 0)
    #expect(run.prefaces == 1)
    #expect(run.frames.map(\.header.type) == [.settings])
    #expect(run.unread.isEmpty)
  }

  @Test("The end cuts a frame, and a gap behind its header leaves its beginning") func cut() {
    let bytes = frames { $0.writeFrame(.headers, flags: .endHeaders, stream: 1, [1, 2, 3, 4, 5].rawBytes) }
    for length in 0..<bytes.count {
      var run = FrameRun()
      run.read(bytes.rawBytes.extracting(0..<length), at: 0)
      run.finish()
      if length < 9 {
        #expect(run.frames.isEmpty)
        #expect(run.unread == (length > 0 ? [0..<length] : []))
      } else {
        #expect(run.frames.map(\.payload) == [Array(bytes[9..<length])])
        #expect(run.frames.map(\.isWhole) == [false])
      }
    }
  }
}
