import Bytes
import HTTP2
import PacketCapture
import ProviderAPI
import Records

/// A connection over HTTP/2 written again with everything redacted, frame by frame.
///
/// Streams, flags, settings, resets, windows and the lengths of content stay. Field blocks are literals that are never
/// indexed, so that none needs another; strings are not Huffman-coded, so that a search in the result finds what is
/// there. Content is redacted as a whole: its frames wait for the last one of their stream. Padding, and frames that
/// RFC 9113 does not define, are zeros.
struct RedactedHTTP2 {
  /// A redacted frame, or the client's preface: its bytes, and its place in the written stream.
  typealias Emit = (_ bytes: RawSpan, _ place: RecordPlace, _ direction: Direction) -> Void

  /// Frames of a stream whose content is not redacted yet.
  private struct Content {
    struct Frame {
      var header: FrameHeader
      var place: RecordPlace
      var length: Int
    }

    var bytes: [UInt8] = []
    var frames: [Frame] = []
    /// It is longer than what readers keep, so it becomes filler.
    var isLong = false

    var heldBytes: Int { bytes.count + frames.count * MemoryLayout<Frame>.stride }
  }

  private struct Side {
    let direction: Direction
    var reader: HTTP2.FrameReader
    var decoder: HPACKDecoder
    var block: [UInt8] = []
    /// The header of the block's first frame, and its priority.
    var blockStart: (header: FrameHeader, priority: [UInt8])?
    var contents: [UInt32: Content] = [:]
    var contentBytes = 0
    /// The original bytes that were read, and the bytes that were written.
    var read = 0
    var written = 0

    init(_ direction: Direction, _ limits: ConnectionReader.Limits) {
      self.direction = direction
      reader = HTTP2.FrameReader(direction == .client ? .client : .server, isAligned: true, limits: limits.frames)
      decoder = HPACKDecoder(limits: limits.fields)
      // Whether its size is allowed is another reader's question.
      decoder.missSettings()
    }

    var heldBytes: Int { reader.heldBytes + decoder.heldBytes + block.count + contentBytes }
  }

  private let redaction: Redaction
  private let limits: ProviderSession.Limits
  private let connection: Int
  // Each is taken out while it is read, so that its memory is not copied. `nil`: given up.
  private var (client, server): (Side?, Side?)
  /// Whether everything so far could be written again.
  private(set) var isWhole = true

  init(_ redaction: Redaction, connection: Int, limits: ProviderSession.Limits) {
    (self.redaction, self.connection, self.limits) = (redaction, connection, limits)
    (client, server) = (Side(.client, limits.connection), Side(.server, limits.connection))
  }

  /// The bytes of memory that depend on input.
  var heldBytes: Int { (client?.heldBytes ?? 0) + (server?.heldBytes ?? 0) }

  /// The original bytes of both directions that were read.
  var readBytes: (client: Int, server: Int) { (client?.read ?? 0, server?.read ?? 0) }

  /// Gives up: the connection is not written.
  mutating func giveUp() {
    isWhole = false
    (client, server) = (nil, nil)
  }

  /// Reads the next piece of a direction.
  mutating func read(_ bytes: RawSpan, at place: RecordPlace, _ direction: Direction, _ emit: Emit) {
    guard var side = direction == .client ? client.take() : server.take() else { return }
    side.read += bytes.byteCount
    let arrival = Arrival(time: place.time.nanoseconds, packet: place.packet)
    var position = 0
    reading: while isWhole {
      switch side.reader.next(bytes, &position, at: place.offset, arrival: arrival) {
      case .done: break reading
      case .preface:
        let preface = ByteWriter.http2Preface
        write(preface.rawBytes, arrival, &side, emit)
      case .unread, .missing: isWhole = false
      case .frame(let frame):
        guard frame.isWhole else {
          isWhole = false
          break
        }
        if frame.isKept {
          let kept = Array(copying: side.reader.kept.extracting(frame.payload))
          take(frame, kept.rawBytes, &side, emit)
        } else {
          take(frame, bytes.extracting(frame.payload), &side, emit)
        }
      }
    }
    if direction == .client { client = side } else { server = side }
    if !isWhole { giveUp() }
  }

  /// Writes what waits for more, at the connection's end.
  mutating func finish(_ emit: Emit) {
    guard isWhole, var client = client.take(), var server = server.take() else { return }
    finish(&client, emit)
    finish(&server, emit)
    (self.client, self.server) = (client, server)
  }

  private mutating func finish(_ side: inout Side, _ emit: Emit) {
    if !side.reader.finish().isEmpty || side.blockStart != nil { isWhole = false }
    for stream in side.contents.keys.sorted() { flush(stream, &side, emit) }
  }

  // MARK: frames

  private mutating func take(_ frame: HTTP2.FrameReader.Place, _ payload: RawSpan, _ side: inout Side, _ emit: Emit) {
    guard let content = try? FrameContent(parsing: payload, of: frame.header),
      side.blockStart == nil
        || frame.header.type == .continuation && frame.header.stream == side.blockStart?.header.stream
    else {
      isWhole = false
      return
    }
    let arrival = frame.arrival
    switch content {
    case .data(let range): takeContent(frame, payload, range, &side, emit)
    case .headers(let block, let priority):
      let start = priority == nil ? block.lowerBound : block.lowerBound - 5
      side.blockStart = (frame.header, Array(copying: payload.extracting(start..<block.lowerBound)))
      takeBlock(payload.extracting(block), frame.header, arrival, &side, emit)
    case .continuation:
      guard side.blockStart != nil else {
        isWhole = false
        return
      }
      takeBlock(payload, frame.header, arrival, &side, emit)
    case .pushPromise: isWhole = false
    case .goAway(_, _, let debugData):
      guard let said = Redaction.answer(payload.extracting(debugData)) else {
        isWhole = false
        return
      }
      let start = Array(copying: payload.extracting(0..<debugData.lowerBound))
      write(frame.header, start + said, arrival, &side, emit)
    case .ping: write(frame.header, redaction.ping(payload), arrival, &side, emit)
    case .reset:
      write(frame.header, Array(copying: payload), arrival, &side, emit)
      flush(frame.header.stream, &side, emit)
    case .settings, .windowUpdate, .priority:
      write(frame.header, Array(copying: payload), arrival, &side, emit)
    case .undefined: write(frame.header, [UInt8](repeating: 0, count: payload.byteCount), arrival, &side, emit)
    }
  }

  private func write(_ header: FrameHeader, _ payload: [UInt8], _ arrival: Arrival, _ side: inout Side, _ emit: Emit) {
    var writer = ByteWriter(capacity: header.frameLength)
    writer.writeFrame(header.type, flags: header.flags, stream: header.stream, payload.rawBytes)
    write(writer.bytes, arrival, &side, emit)
  }

  private func write(_ bytes: RawSpan, _ arrival: Arrival, _ side: inout Side, _ emit: Emit) {
    emit(bytes, place(bytes.byteCount, arrival, &side), side.direction)
  }

  /// The place of the next bytes.
  private func place(_ length: Int, _ arrival: Arrival, _ side: inout Side) -> RecordPlace {
    defer { side.written += length }
    return RecordPlace(
      connection: connection, time: Timestamp(nanoseconds: arrival.time), packet: arrival.packet, offset: side.written,
      length: length)
  }

  // MARK: fields

  private mutating func takeBlock(
    _ part: RawSpan, _ header: FrameHeader, _ arrival: Arrival, _ side: inout Side, _ emit: Emit
  ) {
    guard side.block.count + part.byteCount <= limits.connection.blockLength else {
      isWhole = false
      return
    }
    side.block.append(copying: part)
    guard header.flags.contains(.endHeaders), let start = side.blockStart else { return }
    side.blockStart = nil
    var original: [UInt8] = []
    swap(&original, &side.block)
    var fields = FieldList()
    let broken = side.decoder.decode(original.rawBytes, into: &fields)
    guard broken == nil, !fields.isCut, let coded = try? CodedBlock(parsing: original.rawBytes),
      let block = redacted(fields, Array(original[..<coded.sizeUpdatesEnd]), side.direction)
    else {
      isWhole = false
      return
    }
    writeBlock(block, start.header, start.priority, arrival, &side, emit)
    if start.header.flags.contains(.endStream) { flush(start.header.stream, &side, emit) }
  }

  /// The block of the redacted fields; `nil` if one is not known, or tunnels what is not HTTP.
  private func redacted(_ fields: FieldList, _ sizeUpdates: [UInt8], _ direction: Direction) -> [UInt8]? {
    var redacted = RedactedFields(redaction, isRequest: direction == .client)
    var writer = ByteWriter(capacity: 512)
    var encoder = HPACKEncoder()
    writer.write(sizeUpdates.rawBytes)
    var method: [UInt8]?
    for field in fields.fields where method == nil && field.isNameKnown && field.isValueKnown {
      if fields.name(of: field).holds(":method") { method = Array(copying: fields.value(of: field)) }
    }
    if method == Array("CONNECT".utf8) { return nil }
    for field in fields.fields {
      guard field.isNameKnown, field.isValueKnown else { return nil }
      let (name, value) = redacted.redact(fields.name(of: field), fields.value(of: field), method: method)
      encoder.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, .neverIndexed, .plain, to: &writer)
    }
    return Array(copying: writer.bytes)
  }

  /// The most bytes of a field block in a frame: what every receiver takes, without a priority.
  private static let longestPart = 16_384 - 5

  private func writeBlock(
    _ block: [UInt8], _ header: FrameHeader, _ priority: [UInt8], _ arrival: Arrival, _ side: inout Side, _ emit: Emit
  ) {
    var start = 0
    repeat {
      let end = min(start + Self.longestPart, block.count)
      var flags = start == 0 ? header.flags.intersection([.endStream, .priority]) : []
      if end == block.count { flags.insert(.endHeaders) }
      let part = (start == 0 ? priority : []) + Array(block[start..<end])
      var written = FrameHeader(start == 0 ? .headers : .continuation, flags: flags, stream: header.stream)
      written.payloadLength = part.count
      write(written, part, arrival, &side, emit)
      start = end
    } while start < block.count
  }

  // MARK: content

  private mutating func takeContent(
    _ frame: HTTP2.FrameReader.Place, _ payload: RawSpan, _ range: Range<Int>, _ side: inout Side, _ emit: Emit
  ) {
    let stream = frame.header.stream
    var content = side.contents.removeValue(forKey: stream) ?? Content()
    side.contentBytes -= content.heldBytes
    content.frames.append(
      Content.Frame(
        header: frame.header, place: place(frame.header.frameLength, frame.arrival, &side), length: range.count))
    if !content.isLong { content.bytes.append(copying: payload.extracting(range)) }
    if content.bytes.count > limits.content { (content.isLong, content.bytes) = (true, []) }
    if content.isLong { write(&content, [], side.direction, emit) }
    side.contentBytes += content.heldBytes
    side.contents[stream] = content
    if frame.header.flags.contains(.endStream) { flush(stream, &side, emit) }
  }

  /// Writes the frames of a stream that wait.
  private mutating func flush(_ stream: UInt32, _ side: inout Side, _ emit: Emit) {
    guard var content = side.contents.removeValue(forKey: stream) else { return }
    side.contentBytes -= content.heldBytes
    if content.isLong { return }
    guard
      let bytes = side.direction == .client
        ? redaction.payload(content.bytes) : Redaction.answer(content.bytes.rawBytes)
    else {
      isWhole = false
      return
    }
    write(&content, bytes, side.direction, emit)
  }

  /// Writes frames with their shares of the redacted content; of what is too long, with filler.
  private func write(_ content: inout Content, _ bytes: [UInt8], _ direction: Direction, _ emit: Emit) {
    var start = 0
    for frame in content.frames {
      let isPadded = frame.header.flags.contains(.padded)
      let part =
        content.isLong
        ? [UInt8](repeating: UInt8(ascii: "x"), count: frame.length) : Array(bytes[start..<start + frame.length])
      start += frame.length
      let padding = isPadded ? frame.header.payloadLength - frame.length - 1 : 0
      let payload =
        (isPadded ? [UInt8(truncatingIfNeeded: padding)] : []) + part + [UInt8](repeating: 0, count: padding)
      var writer = ByteWriter(capacity: frame.header.frameLength)
      writer.writeFrame(.data, flags: frame.header.flags, stream: frame.header.stream, payload.rawBytes)
      emit(writer.bytes, frame.place, direction)
    }
    content.frames = []
  }
}
