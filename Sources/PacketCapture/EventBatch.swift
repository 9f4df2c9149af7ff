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

  /// Packets in the batch; those that passed the filter; those that the snap length cut.
  public private(set) var packets = 0
  public internal(set) var matchingPackets = 0
  public private(set) var cutPackets = 0
  public private(set) var firstTime = Timestamp.none
  public private(set) var lastTime = Timestamp.none
  /// Link types that packets had, in the order in which they appeared, 64 at most.
  public var linkTypes: [LinkType] { packetTypes.all }
  private var packetTypes = LinkTypeList()
  /// Secrets blocks that stand before or between the packets.
  public internal(set) var secrets: [DecryptionSecrets] = []
  /// Bytes read from disk so far.
  public internal(set) var bytesRead = 0

  mutating func removeAll() {
    copies.removeAll(keepingCapacity: true)
    entries.removeAll(keepingCapacity: true)
    connectionEvents.removeAll(keepingCapacity: true)
    packets = 0
    matchingPackets = 0
    cutPackets = 0
    firstTime = .none
    lastTime = .none
    packetTypes = LinkTypeList()
    secrets = []
  }

  @inline(__always)
  mutating func note(_ packet: Packet) {
    packets += 1
    if packet.capturedLength < packet.originalLength { cutPackets += 1 }
    if packet.time.isKnown {
      if !firstTime.isKnown || packet.time < firstTime { firstTime = packet.time }
      if packet.time > lastTime { lastTime = packet.time }
    }
    packetTypes.add(packet.linkType)
  }

  /// Adds an event; the window that its bytes may stand in begins at `offset` of the block.
  @inline(__always)
  mutating func add(
    _ event: borrowing StreamEvent, _ position: StreamPosition, in window: RawSpan, at offset: Int, blockLength: Int
  ) {
    switch event {
    case .bytes(let bytes):
      var start = blockLength + copies.count
      if let place = window.byteOffsets(of: bytes) {
        start = offset + place.lowerBound
      } else {
        copies.append(copying: bytes)
      }
      let entry = Entry.bytes(
        start: UInt32(truncatingIfNeeded: start), count: UInt32(truncatingIfNeeded: bytes.byteCount))
      entries.append((entry, position))
    case .gap(let length, let reason): entries.append((.gap(length: length, reason: reason), position))
    case .end: entries.append((.end, position))
    case .connection(let change):
      entries.append((.connection(connectionEvents.count), position))
      connectionEvents.append(copy change)
    }
  }

  /// Calls `body` with every event in the order in which it was made known.
  public func forEachEvent(_ body: StreamReceiver) {
    let block = block.rawBytes
    let copies = copies.rawBytes
    for (entry, position) in entries {
      switch entry {
      case .bytes(let start, let count):
        let start = Int(start)
        if start < block.byteCount {
          body(.bytes(block.extracting(start..<start + Int(count))), position)
        } else {
          let place = start - block.byteCount
          body(.bytes(copies.extracting(place..<place + Int(count))), position)
        }
      case .gap(let length, let reason): body(.gap(length: length, reason: reason), position)
      case .end: body(.end, position)
      case .connection(let index): body(.connection(connectionEvents[index]), position)
      }
    }
  }
}
