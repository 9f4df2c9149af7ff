import BinaryProtocol
import Bytes
import TestSupport
import Testing

/// A record where a framer found it.
struct Framed: Hashable, Sendable {
  var offset: Int
  var bytes: [UInt8]
  var end: Int { offset + bytes.count }
  var range: Range<Int> { offset..<end }
}

/// What a reassembler hands to a framer.
enum Piece: Sendable {
  case bytes([UInt8])
  case gap(Int)

  var count: Int {
    switch self {
    case .bytes(let bytes): bytes.count
    case .gap(let length): length
    }
  }
}

/// Everything a framer made of a stream.
struct FramerRun {
  var records: [Framed] = []
  var damage: [Range<Int>] = []
  private(set) var length = 0

  /// - Parameter isQuick: the ways that cost least are taken where it is their turn, as the dissector does.
  init<G: RecordGrammar>(_ grammar: G, _ pieces: [Piece], isAligned: Bool = true, isQuick: Bool = false) {
    var framer = RecordFramer<G, Int>(grammar: grammar, isAligned: isAligned)
    var (records, damage): ([Framed], [Range<Int>]) = ([], [])
    func record(_ bytes: RawSpan, _ offset: Int, _ mark: Int) {
      records.append(Framed(offset: offset, bytes: Array(copying: bytes)))
    }
    func note(_ found: StreamDamage<Int>) { damage.append(found.offset..<found.offset + found.length) }
    for (number, piece) in pieces.enumerated() {
      switch piece {
      case .bytes(let bytes):
        if isQuick {
          Self.readQuickly(&framer, bytes.rawBytes, at: length, mark: number + 1, record, note)
        } else {
          framer.read(bytes.rawBytes, at: length, mark: number + 1, record, damage: note)
        }
      case .gap(let length):
        framer.gap(at: self.length, length: length)
        framer.readFound(record, damage: note)
        damage.append(self.length..<self.length + length)
      }
      length += piece.count
    }
    framer.finish()
    framer.readFound(record, damage: note)
    (self.records, self.damage) = (records, damage)
  }

  private static func readQuickly<G: RecordGrammar>(
    _ framer: inout RecordFramer<G, Int>, _ bytes: RawSpan, at offset: Int, mark: Int,
    _ record: (RawSpan, _ offset: Int, Int) -> Void, _ damage: (StreamDamage<Int>) -> Void
  ) {
    var position = 0
    if framer.completeBeginning(bytes, &position) {
      record(framer.assembled, framer.start, mark)
      framer.dropAssembled()
    }
    while true {
      if let end = framer.endOfRecord(bytes, at: position) {
        record(bytes.extracting(position..<end), offset + position, mark)
        position = end
      } else if framer.isStraight, position == bytes.byteCount {
        return
      } else if framer.keepBeginning(bytes, at: position, offset: offset, mark: mark) {
        return
      } else {
        switch framer.next(bytes, &position, at: offset, mark: mark) {
        case .record(let range): record(bytes.extracting(range), offset + range.lowerBound, mark)
        case .assembled:
          record(framer.assembled, framer.start, mark)
          framer.dropAssembled()
        case .recovered(let bytes, let offset, let mark): record(bytes.rawBytes, offset, mark)
        case .damage(let found): damage(found)
        case .done: return
        }
      }
    }
  }

  /// Records and damage in the order of their places, one behind the other, from the first byte to the last.
  var tilesTheStream: Bool {
    var end = 0
    let ranges = (records.map(\.range) + damage).sorted {
      ($0.lowerBound, $0.upperBound) < ($1.lowerBound, $1.upperBound)
    }
    for range in ranges {
      guard range.lowerBound == end else { return false }
      end = range.upperBound
    }
    return end == length
  }

  /// What a failed law shows: the records that were lost and those that were invented, by command and place.
  func difference(from expected: [Framed]) -> Comment {
    func names(_ records: [Framed]) -> String { records.map { "\($0.bytes[0])@\($0.range)" }.joined(separator: " ") }
    let lost = expected.filter { !records.contains($0) }
    let invented = records.filter { !expected.contains($0) }
    return "of \(names(expected)): lost \(names(lost)), invented \(names(invented)), damage \(damage)"
  }

  /// Bytes that belong to no record.
  var damaged: Set<Int> { Set(damage.joined()) }
}

/// A stream of records, and where each of them is.
struct Stream: Sendable {
  var bytes: [UInt8] = []
  var records: [Framed] = []

  init(_ records: [[UInt8]] = []) { for record in records { append(record) } }

  mutating func append(_ record: [UInt8]) {
    records.append(Framed(offset: bytes.count, bytes: record))
    bytes += record
  }

  mutating func append(garbage: [UInt8]) { bytes += garbage }

  /// The stream from `start` on, as one whose first byte has offset 0.
  func dropping(_ start: Int) -> Stream {
    var rest = Stream()
    rest.bytes = Array(bytes[start...])
    rest.records = records.filter { $0.offset >= start }.map { Framed(offset: $0.offset - start, bytes: $0.bytes) }
    return rest
  }
}

extension SeededGenerator {
  /// JSON as applications send it.
  mutating func alert() -> [UInt8] {
    let text = String((0..<number(0...40)).map { _ in pick("abcdefghij 0123456789äßé新しい") })
    return Array(#"{"aps":{"alert":"\#(text)","badge":\#(number(0...99))}}"#.utf8)
  }

  /// A notification as clients send it: a token of 32 bytes and JSON.
  mutating func notification(command: Int, expirationEndsInZero: Bool = false) -> [UInt8] {
    let (token, payload) = (bytes(32), alert())
    let identifier = UInt32(happens(oneIn: 2) ? number(0...300) : number(0...0xffff_ffff))
    var expiration = UInt32(number(1_400_000_000...1_900_000_000))
    if expirationEndsInZero { expiration &= 0xffff_ff00 }
    return written { output in
      switch command {
      case 0: BinaryFrame.encodeSimple(token: token.rawBytes, payload: payload.rawBytes, into: &output)
      case 1:
        BinaryFrame.encodeEnhanced(
          identifier: identifier, expiration: expiration, token: token.rawBytes, payload: payload.rawBytes,
          into: &output)
      default:
        BinaryFrame.encodeFramed(
          token: token.rawBytes, payload: payload.rawBytes, identifier: identifier, expiration: expiration,
          priority: 10, into: &output)
      }
    }
  }

  /// Cuts bytes into pieces of 1 to `longest`.
  mutating func pieces(_ bytes: [UInt8], longest: Int) -> [Piece] {
    var (pieces, start): ([Piece], Int) = ([], 0)
    while start < bytes.count {
      let end = min(bytes.count, start + number(1...longest))
      pieces.append(.bytes(Array(bytes[start..<end])))
      start = end
    }
    return pieces
  }
}

extension RecordGrammar where Self == GatewayGrammar {
  static var standard: GatewayGrammar { GatewayGrammar(limits: ProtocolLimits()) }
}
