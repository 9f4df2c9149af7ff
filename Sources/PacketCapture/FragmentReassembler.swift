import Bytes

/// Reassembles IP datagrams from their fragments. Where fragments overlap, the first captured bytes are kept.
///
/// Memory is bounded: at most `maximumDatagrams` wait (the oldest is evicted), each of at most 64 KiB. A datagram that
/// is incomplete after a minute is dropped (RFC 8200 §4.5), because its identification may be reused.
struct FragmentReassembler {
  struct Piece {
    var source: IPAddress
    var destination: IPAddress
    var identification: UInt32
    /// The offset of the fragment's bytes in the payload of the datagram.
    var offset: Int
    var isLast: Bool
    /// The protocol of the payload; in IPv6 only the first fragment has it.
    var nextHeader: UInt8
    var isV6 = false
    var time: Timestamp
  }

  private struct Key: Hashable {
    var source: IPAddress
    var destination: IPAddress
    var identification: UInt32
    /// The protocol in IPv4, where each protocol has its own identifications (RFC 791 §3.2).
    var nextHeader: UInt8?
  }

  private struct Datagram {
    var started: Timestamp
    var bytes: [UInt8] = []
    /// Sorted ranges that neither overlap nor touch.
    var filled: [Range<Int>] = []
    var length: Int?
    var nextHeader: UInt8 = 0

    init(started: Timestamp) { self.started = started }

    mutating func add(_ piece: Piece, _ data: RawSpan) {
      let range = piece.offset..<piece.offset + data.byteCount
      if piece.isLast && length == nil { length = range.upperBound }
      if piece.offset == 0 && filled.first?.lowerBound != 0 { nextHeader = piece.nextHeader }
      if bytes.count < range.upperBound {
        bytes.append(contentsOf: [UInt8](repeating: 0, count: range.upperBound - bytes.count))
      }
      let first = filled.firstIndex { $0.upperBound >= range.lowerBound } ?? filled.count
      var (last, merged, cursor) = (first, range, range.lowerBound)
      while last < filled.count, filled[last].lowerBound <= range.upperBound {
        copy(data, piece.offset, cursor..<max(cursor, filled[last].lowerBound))
        cursor = max(cursor, filled[last].upperBound)
        merged = min(merged.lowerBound, filled[last].lowerBound)..<max(merged.upperBound, filled[last].upperBound)
        last += 1
      }
      copy(data, piece.offset, cursor..<max(cursor, range.upperBound))
      filled.replaceSubrange(first..<last, with: [merged])
    }

    private mutating func copy(_ data: RawSpan, _ start: Int, _ range: Range<Int>) {
      for offset in range { bytes[offset] = data.byte(at: offset - start) }
    }

    var isComplete: Bool {
      guard let length, let first = filled.first else { return false }
      return first.lowerBound == 0 && first.upperBound >= length
    }
  }

  /// The most ranges of a datagram that do not touch; more are an attack or damage.
  private static let maximumPieces = 512
  private static let patienceNanoseconds: Int64 = 60_000_000_000
  private let maximumDatagrams: Int
  private var waiting: [Key: Datagram] = [:]
  private var order: [Key] = []

  init(maximumDatagrams: Int) { self.maximumDatagrams = max(1, maximumDatagrams) }

  /// Adds a fragment. Returns the payload of the datagram and its protocol if this fragment completes it.
  mutating func add(_ piece: Piece, _ data: RawSpan) -> (nextHeader: UInt8, bytes: [UInt8])? {
    guard piece.offset + data.byteCount <= 65_535, data.byteCount > 0 else { return nil }
    let key = Key(
      source: piece.source, destination: piece.destination, identification: piece.identification,
      nextHeader: piece.isV6 ? nil : piece.nextHeader)
    if let known = waiting[key] {
      let age = piece.time.nanoseconds(since: known.started) ?? 0
      if age > Self.patienceNanoseconds { waiting[key] = Datagram(started: piece.time) }
    } else {
      if order.count >= maximumDatagrams { waiting[order.removeFirst()] = nil }
      order.append(key)
    }
    var datagram = waiting.removeValue(forKey: key) ?? Datagram(started: piece.time)
    datagram.add(piece, data)
    if datagram.isComplete || datagram.filled.count > Self.maximumPieces {
      order.removeAll { $0 == key }
      return datagram.isComplete ? (datagram.nextHeader, Array(datagram.bytes.prefix(datagram.length ?? 0))) : nil
    }
    waiting[key] = datagram
    return nil
  }
}
