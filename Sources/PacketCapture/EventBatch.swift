import Bytes

/// The stream events of one block of a capture file, with the block's bytes: passed from the reading thread to the
/// dissecting thread.
public struct EventBatch: Sendable {
  private enum Entry: Sendable {
    /// Bytes at this offset of `block`, or, from `block.count` on, of `copies`.
    case bytes(start: UInt32, count: UInt32)
    case gap(length: Int, reason: GapReason)
    case end
    case connection(Int)
  }

  var block: [UInt8] = []
  /// Bytes that are not in the block: they waited for preceding bytes, or came in IP fragments.
  private var copies: [UInt8] = []
  private var entries: [(entry: Entry, position: StreamPosition)] = []
  private var connectionEvents: [ConnectionEvent] = []
  private var waiting = SegmentQueue()

  /// The part of each file in the batch; usually one.
  public internal(set) var files: [FilePart] = []
  /// The number of packets in the batch.
  public var packets: Int { files.reduce(0) { $0 + $1.packets } }
  /// The number of packets that passed the filter and are in the part of the recording to read.
  public var matchingPackets: Int { files.reduce(0) { $0 + $1.matchingPackets } - foreignPackets }
  /// The part of the recording to read, and the number of packets in other parts.
  var shard: Shard?
  private var foreignPackets = 0
  /// The bytes of all events.
  private var eventBytes = 0
  /// The link types of packets in the order in which they appear, at most 64 of each file.
  public var linkTypes: [LinkType] { files.flatMap(\.linkTypes) }
  /// Packets without a decoded TCP segment, with the numbers of their files (`PacketNumber`).
  package private(set) var unread = UnreadTraffic()
  /// The part of the file that is being read; `files` gets it when the batch is handed over.
  var current = FilePart(file: 0)
  /// The secrets blocks before and between the packets.
  public internal(set) var secrets: [DecryptionSecrets] = []
  /// The number of bytes read from disk so far.
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

  /// The number of bytes that were copied because they are in no block.
  var copiedBytes: Int { copies.count }
  var isEmpty: Bool { entries.isEmpty }

  /// Counts a packet of the current file. Returns whether the filter matches the packet.
  @inline(__always)
  mutating func note(_ packet: Packet, _ bytes: RawSpan, _ filter: PacketFilter?) throws -> Bool {
    current.note(packet)
    if let filter, try !filter.matches(packet, bytes) { return false }
    current.matchingPackets += 1
    return true
  }

  /// Counts, filters and decodes one packet of the current file, and adds its events; its bytes may be in the window.
  @inline(__always)
  mutating func take(
    _ packet: Packet, _ bytes: RawSpan, in window: BlockWindow, _ path: inout PacketPath
  ) throws {
    guard try note(packet, bytes, path.filter) else { return }
    deliver(packet, bytes, in: window, &path)
  }

  /// Decodes and reassembles one packet that was counted already.
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

  /// Like `take(_:_:in:_:)`, for a held packet, whose bytes are copied.
  mutating func take(_ held: HeldPacket, _ path: inout PacketPath) throws {
    try take(held.packet, held.bytes.rawBytes, in: .none(blockLength: block.count), &path)
  }

  mutating func deliver(_ held: HeldPacket, _ path: inout PacketPath) {
    deliver(held.packet, held.bytes.rawBytes, in: .none(blockLength: block.count), &path)
  }

  @inline(never)
  private mutating func note(_ content: UnreadProtocol, packet: Int) { unread.note(content, packet: packet) }

  /// Passes the waiting segments to the reassembler; to be called before the window moves.
  @inline(never)
  mutating func receiveWaiting(in window: BlockWindow, _ reassembler: inout TCPReassembler) {
    var segments = SegmentQueue()
    swap(&segments, &waiting)
    segments.receiveAll(in: window.bytes, &reassembler) { event, position in add(event, position, in: window) }
    swap(&segments, &waiting)
  }

  /// Like `deliver(_:_:in:_:)`, for a packet that may belong to another part of the recording. Its bytes are copied.
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

  /// Adds an event; its bytes may be in the window.
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

  /// The work of dissecting the batch: 1 for each event and for each 1,024 bytes.
  package var weight: Int { entries.count + eventBytes >> 10 }

  /// An upper bound of the memory that a reader needs to hold the events, in bytes. Arrays may allocate twice what they
  /// need, and a piece is stored with its position.
  package var growth: Int { 2 * (eventBytes + 64 * entries.count) }

  /// The position of the last event.
  package var lastPosition: StreamPosition? { entries.last?.position }

  /// Calls `body` with the bytes of the block, which has the bytes of most events.
  package func withBlock(_ body: (RawSpan) -> Void) { body(block.rawBytes) }

  /// The slot of the connection of an event; `nil` after the last event.
  @inline(__always)
  package func slot(ofEvent number: Int) -> Int? { number < entries.count ? entries[number].position.slot : nil }

  /// Calls `body` with every event, in the order in which the reassembler emitted them.
  ///
  /// Events of one direction are in stream order. The bytes are borrowed for the call.
  public func forEachEvent(_ body: StreamReceiver) { forEachEvent { event, position, _ in body(event, position) } }

  /// Like `forEachEvent(_:)`, with the number of the event from 0.
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
