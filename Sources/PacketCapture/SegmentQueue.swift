import Bytes

/// Segments on their way to the reassembler.
///
/// With thousands of connections the state of none is in the processor's cache, and a segment would wait several times
/// for memory. So what a few dozen segments need is asked for before the first is received.
struct SegmentQueue: Sendable {
  private struct Entry {
    var segment: TCPSegment
    /// In the window.
    var payload: Range<Int>
    var time: Timestamp
    var packet: Int
    var hash: UInt64
  }

  private static let length = 32
  private var entries: [Entry] = []

  var isEmpty: Bool { entries.isEmpty }
  var isFull: Bool { entries.count == Self.length }

  /// - Parameter hash: what the reassembler's `prepare(for:)` returned.
  @inline(__always)
  mutating func append(_ segment: TCPSegment, _ payload: Range<Int>, time: Timestamp, packet: Int, hash: UInt64) {
    entries.append(Entry(segment: segment, payload: payload, time: time, packet: packet, hash: hash))
  }

  /// Passes the segments to the reassembler, in order.
  ///
  /// - Parameter window: their payloads stand in it.
  @inline(__always)
  mutating func receiveAll(
    in window: RawSpan, _ reassembler: inout TCPReassembler, _ emit: StreamReceiver
  ) {
    for entry in entries { reassembler.prepareState(for: entry.hash) }
    for entry in entries {
      let payload = window.extracting(entry.payload)
      reassembler.receive(entry.segment, payload, time: entry.time, packet: entry.packet, emit)
    }
    entries.removeAll(keepingCapacity: true)
  }
}
