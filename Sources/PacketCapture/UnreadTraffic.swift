/// Counts of packets without a decoded TCP segment, by the reason.
public struct UnreadTraffic: Sendable {
  /// The packets with one reason.
  public struct Row: Sendable, Hashable {
    /// The reason.
    public let content: UnreadProtocol
    /// The number of packets.
    public fileprivate(set) var packets: Int
    /// The number of the first packet, with the number of its file if there are several (`PacketNumber`).
    package fileprivate(set) var first: Int
    /// The number of the first packet in its file.
    public var firstPacket: Int { PacketNumber.packet(first) }

    /// A sentence for the user: "13 packets, from packet 1 on: ESP (IP protocol 50); record behind IPsec, or let
    /// Wireshark decrypt it".
    public var description: String {
      let count = packets == 1 ? "packet \(firstPacket)" : "\(packets) packets, from packet \(firstPacket) on"
      return "\(count): \(content)" + (content.wayOut.map { "; \($0)" } ?? "")
    }
  }

  /// The most rows: a hostile capture may need any number.
  private static let limit = 64

  /// The rows in the order in which they appeared, at most 64.
  public private(set) var rows: [Row] = []
  /// The number of packets without a row.
  public private(set) var furtherPackets = 0
  /// The number of packets without a row that may contain TCP.
  public private(set) var furtherHiding = 0
  /// The row of the last packet.
  private var latest = 0

  /// Counts without a packet.
  public init() {}

  /// Whether no packet was counted.
  public var isEmpty: Bool { rows.isEmpty }

  /// The number of packets that may contain TCP.
  public var hidingPackets: Int {
    rows.reduce(furtherHiding) { $0 + ($1.content.mayHideTCP ? $1.packets : 0) }
  }

  /// A sentence for each row, those with most packets first.
  ///
  /// - Parameter all: whether to include rows whose packets cannot contain TCP.
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
