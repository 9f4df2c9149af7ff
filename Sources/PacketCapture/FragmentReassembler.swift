import Bytes

/// Puts IP datagrams back together from their fragments; the first bytes for a place win.
///
/// Bounded: at most `maximumDatagrams` wait at a time (the oldest gives way), none above 64 KiB.
struct FragmentReassembler {
  struct Piece {
    var source: IPAddress
    var destination: IPAddress
    var identification: UInt32
    /// Where its bytes belong in the datagram's payload.
    var offset: Int
    var isLast: Bool
  }

  private struct Key: Hashable {
    var source: IPAddress
    var destination: IPAddress
    var identification: UInt32
  }

  private struct Datagram {
    var bytes: [UInt8] = []
    var filled: [Range<Int>] = []
    var length: Int?

    mutating func add(_ piece: Piece, _ data: RawSpan) {
      let range = piece.offset..<piece.offset + data.byteCount
      if piece.isLast && length == nil { length = range.upperBound }
      if bytes.count < range.upperBound {
        bytes.append(contentsOf: [UInt8](repeating: 0, count: range.upperBound - bytes.count))
      }
      for offset in range where !filled.contains(where: { $0.contains(offset) }) {
        bytes[offset] = data.byte(at: offset - range.lowerBound)
      }
      filled.append(range)
    }

    var isComplete: Bool {
      guard let length else { return false }
      var end = 0
      for range in filled.sorted(by: { $0.lowerBound < $1.lowerBound }) {
        if range.lowerBound > end { return false }
        end = max(end, range.upperBound)
      }
      return end >= length
    }
  }

  /// Pieces of one datagram; more are an attack or damage.
  private static let maximumPieces = 512
  private let maximumDatagrams: Int
  private var waiting: [Key: Datagram] = [:]
  private var order: [Key] = []

  init(maximumDatagrams: Int) { self.maximumDatagrams = max(1, maximumDatagrams) }

  /// Adds a fragment; returns the datagram's payload when this one completes it.
  mutating func add(_ piece: Piece, _ data: RawSpan) -> [UInt8]? {
    guard piece.offset + data.byteCount <= 65_535, data.byteCount > 0 else { return nil }
    let key = Key(source: piece.source, destination: piece.destination, identification: piece.identification)
    if waiting[key] == nil {
      if order.count >= maximumDatagrams { waiting[order.removeFirst()] = nil }
      order.append(key)
    }
    var datagram = waiting.removeValue(forKey: key) ?? Datagram()
    datagram.add(piece, data)
    if datagram.isComplete || datagram.filled.count > Self.maximumPieces {
      order.removeAll { $0 == key }
      return datagram.isComplete ? Array(datagram.bytes.prefix(datagram.length ?? 0)) : nil
    }
    waiting[key] = datagram
    return nil
  }
}
