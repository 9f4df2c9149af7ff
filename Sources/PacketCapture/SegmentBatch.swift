import Bytes

/// The TCP segments of one block of a capture file, with the block itself: what is handed from the thread that reads to
/// the one that dissects.
public struct SegmentBatch {
  /// A segment, the packet it came in, and where its captured payload stands.
  struct Entry {
    var segment: TCPSegment
    var time: Timestamp
    var packet: Int
    /// In `block`, or from `block.count` on in `datagrams`.
    var payload: Range<Int>
  }

  var block: [UInt8] = []
  /// Payloads that do not stand in the block, because they were put together from IP fragments.
  var datagrams: [UInt8] = []
  var entries: [Entry] = []

  /// Packets in the batch; those that passed the filter; those that the snap length cut.
  public internal(set) var packets = 0
  public internal(set) var matchingPackets = 0
  public internal(set) var cutPackets = 0
  public internal(set) var firstTime = Timestamp.none
  public internal(set) var lastTime = Timestamp.none
  /// Link types that packets had, in the order in which they appeared.
  public internal(set) var linkTypes: [LinkType] = []
  /// Bytes read from disk so far.
  public internal(set) var bytesRead = 0

  mutating func removeAll() {
    datagrams.removeAll(keepingCapacity: true)
    entries.removeAll(keepingCapacity: true)
    packets = 0
    matchingPackets = 0
    cutPackets = 0
    firstTime = .none
    lastTime = .none
    linkTypes = []
  }

  @inline(__always)
  mutating func note(_ packet: Packet) {
    packets += 1
    if packet.capturedLength < packet.originalLength { cutPackets += 1 }
    if packet.time.isKnown {
      if !firstTime.isKnown || packet.time < firstTime { firstTime = packet.time }
      if packet.time > lastTime { lastTime = packet.time }
    }
    if linkTypes.last != packet.linkType && !linkTypes.contains(packet.linkType) { linkTypes.append(packet.linkType) }
  }

  /// Adds a segment; the window that its payload may stand in begins at `offset` of the block.
  @inline(__always)
  mutating func add(
    _ segment: TCPSegment, _ payload: RawSpan, in packet: Packet, _ window: RawSpan, at offset: Int, blockLength: Int
  ) {
    var range = offset..<offset
    if payload.byteCount > 0 {
      if let place = window.byteOffsets(of: payload) {
        range = offset + place.lowerBound..<offset + place.upperBound
      } else {
        range = blockLength + datagrams.count..<blockLength + datagrams.count + payload.byteCount
        datagrams.append(copying: payload)
      }
    }
    entries.append(Entry(segment: segment, time: packet.time, packet: packet.number, payload: range))
  }

  /// Calls `body` with every segment in the order of the file.
  public func forEachSegment(_ body: (TCPSegment, RawSpan, _ time: Timestamp, _ packet: Int) -> Void) {
    let block = block.rawBytes
    let datagrams = datagrams.rawBytes
    for entry in entries {
      if entry.payload.lowerBound < block.byteCount {
        body(entry.segment, block.extracting(entry.payload), entry.time, entry.packet)
      } else {
        let start = entry.payload.lowerBound - block.byteCount
        body(entry.segment, datagrams.extracting(start..<start + entry.payload.count), entry.time, entry.packet)
      }
    }
  }
}
