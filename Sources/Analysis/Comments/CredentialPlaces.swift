import Bytes
import HTTP2
import PacketCapture
import ProviderAPI
import Records

/// The places of provider tokens' signatures in connections that are read as HTTP/2 in clear, which a copy has not.
///
/// Each signature becomes filler of the same length. What may hold a part of one becomes zeros: strings that a gap or a
/// broken rule cuts, what is behind a gap before the next frame, and payloads that repeat what was sent before.
package struct CredentialPlaces: ConnectionSink {
  private struct Piece {
    var packet: Int
    var range: Range<Int>
  }

  /// One direction of a connection.
  private struct Side {
    let side: HTTP2.FrameReader.Side
    var reader: HTTP2.FrameReader
    /// The stream offset of the next byte.
    var next: Int
    /// The offset up to which frames are understood, and the ranges before it that are not.
    var understood: Int
    var blanks: [Range<Int>] = []
    var pieces: [Piece] = []
    var edits: [PayloadEdits.Edit] = []
    /// The block that has begun, and the places of its parts.
    var block: [UInt8] = []
    var parts: [(block: Int, stream: Range<Int>)] = []
    var blockStream: UInt32?

    init(_ side: HTTP2.FrameReader.Side, _ first: RawSpan, at offset: Int) {
      self.side = side
      let preface = ByteWriter.http2Preface.prefix(first.byteCount)
      let isFirst =
        side == .client
        ? Array(copying: first.extracting(0..<min(first.byteCount, ByteWriter.http2Preface.count))).elementsEqual(
          preface)
        : first.byteCount > 3 && first.byte(at: 3) == FrameType.settings.rawValue
      reader = HTTP2.FrameReader(side, isAligned: isFirst)
      (next, understood) = (offset, offset)
    }

    var heldBytes: Int {
      pieces.count * MemoryLayout<Piece>.stride + blanks.count * MemoryLayout<Range<Int>>.stride
        + edits.reduce(0) { $0 + $1.bytes.count + MemoryLayout<PayloadEdits.Edit>.stride } + block.count
    }
  }

  private struct Connection {
    var (client, server): (Side?, Side?)
    var heldBytes = 0
  }

  private static let longestBlock = 1 << 16

  /// The most bytes that are kept.
  private let limit: Int
  private var connections: [Int: Connection] = [:]
  private var keptBytes = 0
  /// Connections that are beyond the limit.
  private var givenUp: Set<Int> = []
  /// The bytes to replace in the copy.
  package private(set) var edits = PayloadEdits()
  /// Whether TLS was decrypted with HTTP/2 in it: its secrets open provider tokens.
  package private(set) var isBehindSecrets = false

  package init(limit: Int) { self.limit = limit }

  package var takesHTTP2: Bool { true }
  package var isOpen: Bool { true }
  package mutating func receive(_ record: CaptureRecord) {}
  package mutating func receive(_ record: ErrorResponseRecord) {}
  package mutating func receive(_ record: borrowing FeedbackRecord) {}
  package mutating func receive(_ record: GapRecord) {}
  package mutating func receive(_ record: MalformedRecord) {}
  package mutating func receive(_ record: SummaryRecord) {}

  /// Reads the next piece of a direction.
  package mutating func receive(http2 bytes: RawSpan, at place: RecordPlace, _ direction: Direction) {
    guard bytes.byteCount > 0, !givenUp.contains(place.connection) else { return }
    var connection = connections.removeValue(forKey: place.connection) ?? Connection()
    if direction == .client {
      Self.read(bytes, place, .client, &connection.client)
    } else {
      Self.read(bytes, place, .server, &connection.server)
    }
    // Edits are few; pieces grow with every packet.
    let held = MemoryLayout<Piece>.stride + (connection.client?.block.count ?? 0) / 16
    connection.heldBytes += held
    keptBytes += held
    guard keptBytes <= limit else {
      keptBytes -= connection.heldBytes
      givenUp.insert(place.connection)
      return
    }
    connections[place.connection] = connection
  }

  /// Takes the places of a connection that has ended.
  package mutating func receive(_ record: ConnectionRecord) {
    let connection = connections.removeValue(forKey: record.connection)
    let isGivenUp = givenUp.remove(record.connection) != nil
    guard record.http2 != nil else { return }
    guard record.tls == nil else {
      keptBytes -= connection?.heldBytes ?? 0
      isBehindSecrets = true
      return
    }
    guard let client = record.client, let server = record.server else { return }
    var known: [Int: PayloadEdits.KnownPacket] = [:]
    var isNeeded = isGivenUp || record.conflictingBytes > 0 || !record.limits.isEmpty
    if !isNeeded {
      for side in [connection?.client, connection?.server] {
        guard let side else { continue }
        if Self.finish(side, into: &known) { isNeeded = true }
      }
    } else {
      known = [:]
    }
    guard isNeeded else { return }
    edits.add(client, server)
    for ends in record.alsoSeenAs { edits.add(ends.client, ends.server) }
    edits.packets.merge(known) { one, other in
      var one = one
      one.isBlank = one.isBlank || other.isBlank || one.length != other.length
      return one
    }
  }

  // MARK: pieces

  private static func read(
    _ bytes: RawSpan, _ place: RecordPlace, _ name: HTTP2.FrameReader.Side, _ kept: inout Side?
  ) {
    var side = kept.take() ?? Side(name, bytes, at: place.offset)
    if place.offset > side.next {
      let steps = side.reader.gap(at: side.next, length: place.offset - side.next)
      let kept = Array(copying: side.reader.kept)
      for case .frame(let frame) in steps { take(frame, Array(kept[frame.payload]), &side) }
      endBlock(&side)
    }
    side.next = place.offset + bytes.byteCount
    side.pieces.append(Piece(packet: place.packet, range: place.offset..<side.next))
    var position = 0
    reading: while true {
      switch side.reader.next(bytes, &position, at: place.offset, arrival: Arrival(time: 0, packet: 0)) {
      case .done: break reading
      case .preface: note(side.understood..<place.offset + position, &side)
      case .unread, .missing: break
      case .frame(let frame):
        let payload =
          frame.isKept
          ? Array(copying: side.reader.kept.extracting(frame.payload)) : Array(copying: bytes.extracting(frame.payload))
        take(frame, payload, &side)
      }
    }
    kept = side
  }

  /// Notes that a range is understood; what precedes it and was not noted is not.
  private static func note(_ range: Range<Int>, _ side: inout Side) {
    if range.lowerBound > side.understood { side.blanks.append(side.understood..<range.lowerBound) }
    side.understood = max(side.understood, range.upperBound)
  }

  private static func take(_ frame: HTTP2.FrameReader.Place, _ payload: [UInt8], _ side: inout Side) {
    let header = frame.header
    if let stream = side.blockStream, header.type != .continuation || header.stream != stream { endBlock(&side) }
    let start = frame.offset + FrameHeader.length
    // Other frames have no fields, also in what is missing.
    guard header.type.carriesFields else {
      return note(frame.offset..<frame.offset + header.frameLength, &side)
    }
    note(frame.offset..<start + payload.count, &side)
    var part: Range<Int>?
    if frame.isWhole {
      switch try? FrameContent(parsing: payload.rawBytes, of: header) {
      case .headers(let block, _): part = block
      case .pushPromise(_, let block): part = block
      case .continuation(let block) where side.blockStream != nil: part = block
      default: break
      }
    } else if header.type != .continuation || side.blockStream != nil {
      part = FrameContent.start(in: payload.rawBytes, of: header).map { $0..<payload.count }
    }
    guard let part else {
      side.blanks.append(start..<start + payload.count)
      return endBlock(&side)
    }
    side.blockStream = header.stream
    side.parts.append((side.block.count, start + part.lowerBound..<start + part.upperBound))
    side.block += payload[part]
    if header.flags.contains(.endHeaders) || !frame.isWhole || side.block.count > longestBlock { endBlock(&side) }
  }

  /// Ends the block that has begun, also one whose rest does not come.
  private static func endBlock(_ side: inout Side) {
    let coded = CodedBlock(beginning: side.block.rawBytes)
    blank(coded.end..<side.block.count, &side)
    for text in coded.texts {
      guard let decoded = text.decoded(in: side.block.rawBytes) else {
        blank(text.range, &side)
        continue
      }
      let signatures = ProviderToken.signatures(in: decoded.rawBytes)
      if signatures.isEmpty { continue }
      for (distance, byte) in text.coded(decoded, filling: signatures).enumerated() {
        let place = text.range.lowerBound + distance
        if side.block[place] != byte { replace(place, by: byte, &side) }
      }
    }
    side.block.removeAll(keepingCapacity: true)
    (side.parts, side.blockStream) = ([], nil)
  }

  /// Blanks a range of the block.
  private static func blank(_ range: Range<Int>, _ side: inout Side) {
    for part in side.parts {
      let end = part.block + part.stream.count
      let shared =
        max(range.lowerBound, part.block)..<max(max(range.lowerBound, part.block), min(range.upperBound, end))
      if shared.isEmpty { continue }
      let start = part.stream.lowerBound + shared.lowerBound - part.block
      side.blanks.append(start..<start + shared.count)
    }
  }

  private static func replace(_ place: Int, by byte: UInt8, _ side: inout Side) {
    guard let part = side.parts.last(where: { $0.block <= place }) else { return }
    let offset = part.stream.lowerBound + place - part.block
    if let last = side.edits.indices.last, side.edits[last].offset + side.edits[last].bytes.count == offset {
      side.edits[last].bytes.append(byte)
    } else {
      side.edits.append(PayloadEdits.Edit(offset: offset, bytes: [byte]))
    }
  }

  // MARK: packets

  /// Turns places in the stream into places in packets.
  ///
  /// - Returns: whether anything is to be replaced.
  private static func finish(_ side: Side, into packets: inout [Int: PayloadEdits.KnownPacket]) -> Bool {
    var side = side
    for case .frame(let frame) in side.reader.finish() {
      take(frame, Array(copying: side.reader.kept.extracting(frame.payload)), &side)
    }
    endBlock(&side)
    if side.understood < side.next { side.blanks.append(side.understood..<side.next) }
    side.blanks.sort { $0.lowerBound < $1.lowerBound }
    var (blank, edit) = (0, 0)
    for piece in side.pieces {
      var known = packets[piece.packet] ?? PayloadEdits.KnownPacket()
      while blank < side.blanks.count, side.blanks[blank].upperBound <= piece.range.lowerBound { blank += 1 }
      // Ranges may overlap, so a later one can end earlier.
      for range in side.blanks[blank...].prefix(while: { $0.lowerBound < piece.range.upperBound }) {
        let part = range.clamped(to: piece.range)
        known.edits.append(
          PayloadEdits.Edit(
            offset: known.length + part.lowerBound - piece.range.lowerBound,
            bytes: [UInt8](repeating: 0, count: part.count), isBlank: true))
      }
      while edit > 0, edit <= side.edits.count, side.edits[edit - 1].end > piece.range.lowerBound { edit -= 1 }
      while edit < side.edits.count, side.edits[edit].offset < piece.range.upperBound {
        let one = side.edits[edit]
        let part = max(one.offset, piece.range.lowerBound)..<min(one.end, piece.range.upperBound)
        if !part.isEmpty {
          known.edits.append(
            PayloadEdits.Edit(
              offset: known.length + part.lowerBound - piece.range.lowerBound,
              bytes: Array(one.bytes[part.lowerBound - one.offset..<part.upperBound - one.offset])))
        }
        edit += 1
      }
      known.length += piece.range.count
      packets[piece.packet] = known
    }
    return !side.edits.isEmpty || !side.blanks.isEmpty
  }
}

extension PayloadEdits.Edit {
  fileprivate var end: Int { offset + bytes.count }
}
