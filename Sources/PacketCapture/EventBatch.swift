import Bytes

/// The stream events of one block of a capture file, with the block: handed from the reading thread to the dissecting
/// thread.
public struct EventBatch: Sendable {
  private enum Entry: Sendable {
    /// Bytes that stand here in `block`, or from `block.count` on in `copies`.
    case bytes(start: UInt32, count: UInt32)
    case gap(length: Int, reason: GapReason)
    case end
    case connection(Int)
  }

  var block: [UInt8] = []
  /// Bytes that do not stand in the block: they waited for others before them, or came in IP fragments.
  private var copies: [UInt8] = []
  private var entries: [(entry: Entry, position: StreamPosition)] = []
  private var connectionEvents: [ConnectionEvent] = []
  private var waiting = SegmentQueue()

  /// The part of each file in the batch; as a rule there is one.
  public internal(set) var files: [FilePart] = []
  /// Packets in the batch; those that passed the filter.
  public var packets: Int { files.reduce(0) { $0 + $1.packets } }
  public var matchingPackets: Int { files.reduce(0) { $0 + $1.matchingPackets } - foreignPackets }
  /// The part of the recording to read, and the number of packets in other parts.
  var shard: Shard?
  private var foreignPackets = 0
  /// Bytes of all events.
  private var eventBytes = 0
  /// Link types that packets had, in the order in which they appeared, 64 of a file at most.
  public var linkTypes: [LinkType] { files.flatMap(\.linkTypes) }
  /// Packets without a TCP segment that is read, with the numbers of their files (`PacketNumber`).
  package private(set) var unread = UnreadTraffic()
  /// Of the file that is read at the moment; a part of its own when the batch is handed over.
  var current = FilePart(file: 0)
  /// Secrets blocks that stand before or between the packets.
  public internal(set) var secrets: [DecryptionSecrets] = []
  /// Bytes read from disk so far.
  public internal(set) var bytesRead = 0

  mutating func removeAll() {
    copies.removeAll(keepingCapacity: true)
    entries.removeAll(keepingCapacity: true)
    connectionEvents.removeAll(keepingCapacity: true)
    files.removeAll(keepingCapacity: true)
    foreignPackets = 0
    eventBytes = 0
    unread.removeAll()
    secrets = []
  }

  /// Bytes of events that stand in no block.
  var copiedBytes: Int { copies.count }
  var isEmpty: Bool { entries.isEmpty }

  /// Counts a packet of the current file; whether the filter lets it through.
  @inline(__always)
  mutating func note(_ packet: Packet, _ bytes: RawSpan, _ filter: PacketFilter?) throws -> Bool {
    current.note(packet)
    if let filter, try !filter.matches(packet, bytes) { return false }
    current.matchingPackets += 1
    return true
  }

  /// Takes one packet of the current file to its events; its bytes may stand in the window.
  @inline(__always)
  mutating func take(
    _ packet: Packet, _ bytes: RawSpan, in window: BlockWindow, _ path: inout PacketPath
  ) throws {
    guard try note(packet, bytes, path.filter) else { return }
    deliver(packet, bytes, in: window, &path)
  }

  /// Takes one packet, which was counted, through decoder and reassembler.
  @inline(__always)
  mutating func deliver(_ packet: Packet, _ bytes: RawSpan, in window: BlockWindow, _ path: inout PacketPath) {
    if let shard { return deliver(packet, bytes, of: shard, blockLength: window.blockLength, &path) }
    let other = path.decoder.decode(packet, bytes) { segment, payload in
      if path.reassembler.isLarge, let place = window.bytes.byteOffsets(of: payload) {
        let hash = path.reassembler.prepare(for: segment)
        waiting.append(segment, place, time: packet.time, packet: packet.number, hash: hash)
        if waiting.isFull { receiveWaiting(in: window, &path.reassembler) }
        return
      }
      if !waiting.isEmpty { receiveWaiting(in: window, &path.reassembler) }
      path.reassembler.receive(segment, payload, time: packet.time, packet: packet.number) { event, position in
        add(event, position, in: window)
      }
    }
    if let other { note(other, packet: packet.number) }
  }

  /// The same for a packet whose bytes are copied, as it was held.
  mutating func take(_ held: HeldPacket, _ path: inout PacketPath) throws {
    try take(held.packet, held.bytes.rawBytes, in: .none(blockLength: block.count), &path)
  }

  mutating func deliver(_ held: HeldPacket, _ path: inout PacketPath) {
    deliver(held.packet, held.bytes.rawBytes, in: .none(blockLength: block.count), &path)
  }

  @inline(never)
  private mutating func note(_ content: UnreadProtocol, packet: Int) { unread.note(content, packet: packet) }

  /// Passes the segments that wait to the reassembler; call it before the window moves.
  @inline(never)
  mutating func receiveWaiting(in window: BlockWindow, _ reassembler: inout TCPReassembler) {
    var segments = SegmentQueue()
    swap(&segments, &waiting)
    segments.receiveAll(in: window.bytes, &reassembler) { event, position in add(event, position, in: window) }
    swap(&segments, &waiting)
  }

  /// The same as `deliver` for a packet that may belong to another part of the recording. Its bytes are copied.
  @inline(never)
  private mutating func deliver(
    _ packet: Packet, _ bytes: RawSpan, of shard: Shard, blockLength: Int, _ path: inout PacketPath
  ) {
    var isForeign = !shard.isFirst
    let other = path.decoder.decode(packet, bytes) { segment, payload in
      isForeign = !shard.contains(segment)
      if isForeign { return }
      path.reassembler.receive(segment, payload, time: packet.time, packet: packet.number) { event, position in
        add(event, position, in: .none(blockLength: blockLength))
      }
    }
    if isForeign { foreignPackets += 1 }
    if let other, shard.isFirst { note(other, packet: packet.number) }
  }

  /// Adds an event; its bytes may stand in the window.
  @inline(__always)
  mutating func add(_ event: borrowing StreamEvent, _ position: StreamPosition, in window: BlockWindow) {
    switch event {
    case .bytes(let bytes):
      var start = window.blockLength + copies.count
      if let place = window.bytes.byteOffsets(of: bytes) {
        start = window.start + place.lowerBound
      } else {
        copies.append(copying: bytes)
      }
      let entry = Entry.bytes(
        start: UInt32(truncatingIfNeeded: start), count: UInt32(truncatingIfNeeded: bytes.byteCount))
      entries.append((entry, position))
      eventBytes += bytes.byteCount
    case .gap(let length, let reason): entries.append((.gap(length: length, reason: reason), position))
    case .end: entries.append((.end, position))
    case .connection(let change):
      entries.append((.connection(connectionEvents.count), position))
      connectionEvents.append(copy change)
    }
  }

  /// How much there is to take apart: an event, or a kilobyte, is one.
  package var weight: Int { entries.count + eventBytes >> 10 }

  /// Memory that its events may make a reader hold, in bytes: arrays have up to twice the room that they need, and a
  /// piece is noted with its place.
  package var growth: Int { 2 * (eventBytes + 64 * entries.count) }

  /// Where the last event is.
  package var lastPosition: StreamPosition? { entries.last?.position }

  /// Calls `body` with the bytes of the block, in which most events' bytes stand.
  package func withBlock(_ body: (RawSpan) -> Void) { body(block.rawBytes) }

  /// The connection's slot of an event; `nil` after the last one.
  @inline(__always)
  package func slot(ofEvent number: Int) -> Int? { number < entries.count ? entries[number].position.slot : nil }

  /// Calls `body` with every event in the order in which it was made known.
  public func forEachEvent(_ body: StreamReceiver) { forEachEvent { event, position, _ in body(event, position) } }

  /// The same, with the event's number from 0.
  @inline(__always)
  package func forEachEvent(_ body: (borrowing StreamEvent, StreamPosition, _ number: Int) -> Void) {
    let block = block.rawBytes
    let copies = copies.rawBytes
    for number in entries.indices {
      let (entry, position) = entries[number]
      switch entry {
      case .bytes(let start, let count):
        let start = Int(start)
        if start < block.byteCount {
          body(.bytes(block.extracting(start..<start + Int(count))), position, number)
        } else {
          let place = start - block.byteCount
          body(.bytes(copies.extracting(place..<place + Int(count))), position, number)
        }
      case .gap(let length, let reason): body(.gap(length: length, reason: reason), position, number)
      case .end: body(.end, position, number)
      case .connection(let index): body(.connection(connectionEvents[index]), position, number)
      }
    }
  }
}
