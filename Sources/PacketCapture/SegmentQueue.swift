import Bytes

/// Segments that wait for the reassembler.
///
/// With thousands of connections, the state of a connection is not in the processor's cache, and each segment would
/// wait for memory several times. So the state for a few dozen segments is prefetched before the first one is
/// processed.
struct SegmentQueue: Sendable {
  private struct Entry {
    var segment: TCPSegment
    /// The payload's range in the window.
    var payload: Range<Int>
    var time: Timestamp
    var packet: Int
    var hash: UInt64
  }

  private static let length = 32
  private var entries: [Entry] = []

  var isEmpty: Bool { entries.isEmpty }
  var isFull: Bool { entries.count == Self.length }

  /// - Parameter hash: the result of the reassembler's `prepare(for:)`.
  @inline(__always)
  mutating func append(_ segment: TCPSegment, _ payload: Range<Int>, time: Timestamp, packet: Int, hash: UInt64) {
    entries.append(Entry(segment: segment, payload: payload, time: time, packet: packet, hash: hash))
  }

  /// Passes the segments to the reassembler, in order.
  ///
  /// - Parameter window: the bytes that the ranges of payloads refer to.
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
