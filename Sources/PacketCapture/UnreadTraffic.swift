/// Packets without a TCP segment that is read, counted by what they carry.
public struct UnreadTraffic: Sendable {
  public struct Row: Sendable, Hashable {
    public let content: UnreadProtocol
    public fileprivate(set) var packets: Int
    /// The first of them, with the number of its file where there are several (`PacketNumber`).
    package fileprivate(set) var first: Int
    /// The number of the first of them in its file.
    public var firstPacket: Int { PacketNumber.packet(first) }

    /// "13 packets, from packet 1 on: ESP (IP protocol 50); record behind IPsec, or let Wireshark decrypt it".
    public var description: String {
      let count = packets == 1 ? "packet \(firstPacket)" : "\(packets) packets, from packet \(firstPacket) on"
      return "\(count): \(content)" + (content.wayOut.map { "; \($0)" } ?? "")
    }
  }

  /// Rows that are kept apart; a hostile capture has any number.
  private static let limit = 64

  /// In the order in which they appeared.
  public private(set) var rows: [Row] = []
  /// Packets of what has no row, and those of them in which TCP may be.
  public private(set) var furtherPackets = 0
  public private(set) var furtherHiding = 0
  /// The row of the last packet.
  private var latest = 0

  public init() {}

  public var isEmpty: Bool { rows.isEmpty }

  /// Packets in which TCP may be.
  public var hidingPackets: Int {
    rows.reduce(furtherHiding) { $0 + ($1.content.mayHideTCP ? $1.packets : 0) }
  }

  /// The rows as text, those with most packets first.
  ///
  /// - Parameter all: those in which no TCP can be as well.
  public func descriptions(all: Bool) -> [String] {
    let shown = rows.filter { all || $0.content.mayHideTCP }.sorted {
      ($1.packets, $0.first) < ($0.packets, $1.first)
    }
    let more = shown.dropFirst(Self.shown).reduce(all ? furtherPackets : furtherHiding) { $0 + $1.packets }
    return shown.prefix(Self.shown).map(\.description) + (more > 0 ? ["\(more) further packets"] : [])
  }

  private static let shown = 8

  mutating func removeAll() { self = UnreadTraffic() }

  mutating func note(_ content: UnreadProtocol, packet: Int) { add(content, 1, first: packet) }

  package mutating func add(_ other: UnreadTraffic) {
    for row in other.rows { add(row) }
    furtherPackets += other.furtherPackets
    furtherHiding += other.furtherHiding
  }

  package mutating func add(_ row: Row) { add(row.content, row.packets, first: row.first) }

  private mutating func add(_ content: UnreadProtocol, _ packets: Int, first: Int) {
    func isSame(_ row: Row) -> Bool {
      row.content == content && PacketNumber.file(row.first) == PacketNumber.file(first)
    }
    if latest < rows.count, isSame(rows[latest]) {
      rows[latest].packets += packets
    } else if let known = rows.firstIndex(where: isSame) {
      latest = known
      rows[known].packets += packets
    } else if rows.count < Self.limit {
      latest = rows.count
      rows.append(Row(content: content, packets: packets, first: first))
    } else {
      furtherPackets += packets
      if content.mayHideTCP { furtherHiding += packets }
    }
  }
}
