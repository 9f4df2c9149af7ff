import Bytes
import PushModel

/// The fields of notifications, and the positions of their frames in the block that they were found in.
@usableFromInline
package struct FrameList: Sendable {
  @usableFromInline
  struct Item: Sendable {
    @usableFromInline var fields: PushFields
    /// The frame's offset in the block; if negative, the complement of its offset in `copies`.
    @usableFromInline var start: Int32
    @usableFromInline var length: UInt32
    /// An index into `places`.
    @usableFromInline var place: UInt32
    /// An index into `problems`; `noProblem`: none.
    @usableFromInline var problem: UInt32
    @usableFromInline var offset: Int
    @usableFromInline var index: Int
    /// A digest of the notification, if its lane has one.
    @usableFromInline var digest: UInt64

    @inlinable
    init(
      _ fields: PushFields, start: Int, length: Int, place: Int, problem: UInt32, offset: Int, index: Int,
      digest: UInt64
    ) {
      self.fields = fields
      self.start = Int32(truncatingIfNeeded: start)
      self.length = UInt32(truncatingIfNeeded: length)
      self.place = UInt32(truncatingIfNeeded: place)
      (self.problem, self.offset, self.index, self.digest) = (problem, offset, index, digest)
    }
  }

  @usableFromInline static var noProblem: UInt32 { .max }

  @usableFromInline var items: [Item] = []
  /// Consecutive notifications of one packet share an entry.
  @usableFromInline package var places: [RecordPlace] = []
  @usableFromInline var problems: [String] = []
  /// Frames that are not contiguous in the block: those of two packets, and decrypted ones.
  @usableFromInline var copies: [UInt8] = []

  package init() {}

  @inlinable package var count: Int { items.count }

  package mutating func removeAll() {
    items.removeAll(keepingCapacity: true)
    places.removeAll(keepingCapacity: true)
    problems.removeAll(keepingCapacity: true)
    copies.removeAll(keepingCapacity: true)
  }

  /// - Parameter start: the frame's offset in the block; `nil`: it is not in the block, and copied.
  @inlinable @inline(__always)
  package mutating func append(
    _ fields: PushFields, _ frame: RawSpan, at start: Int?, _ place: RecordPlace, index: Int, digest: UInt64 = 0
  ) {
    add(fields, frame, start, place, index, problem: Self.noProblem, digest)
  }

  /// - Parameter start: the frame's offset in the block; `nil`: it is not in the block, and copied.
  package mutating func append(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at start: Int?, _ place: RecordPlace, index: Int
  ) {
    problems.append(problem)
    add(fields, frame, start, place, index, problem: UInt32(truncatingIfNeeded: problems.count - 1), 0)
  }

  @inlinable @inline(__always)
  package mutating func add(
    _ fields: PushFields, _ frame: RawSpan, _ start: Int?, _ place: RecordPlace, _ index: Int, problem: UInt32,
    _ digest: UInt64
  ) {
    let position = start ?? ~copies.count
    if start == nil { copies.append(copying: frame) }
    let last = places.last
    if last?.packet != place.packet || last?.connection != place.connection || last?.time != place.time {
      places.append(place)
    }
    items.append(
      Item(
        fields, start: position, length: frame.byteCount, place: places.count - 1, problem: problem,
        offset: place.offset, index: index, digest: digest))
  }

  /// Passes notifications to a sink, with the block that they were found in.
  @inlinable @inline(__always)
  package func pass(_ range: Range<Int>, in block: RawSpan, to sink: inout some NotificationSink) {
    forEach(range, in: block) { fields, frame, place, index, problem, _ in
      if let problem {
        sink.receive(malformed: problem, fields, frame, at: place, index: index)
      } else {
        sink.receive(fields, frame, at: place, index: index)
      }
    }
  }

  /// Calls `body` with the parts of notifications, the problem of a malformed one, and the digest.
  @inlinable @inline(__always)
  package func forEach(
    _ range: Range<Int>, in block: RawSpan,
    _ body: (PushFields, RawSpan, RecordPlace, _ index: Int, _ problem: String?, _ digest: UInt64) -> Void
  ) {
    for position in range {
      let item = items[position]
      var place = places[Int(item.place)]
      place.offset = item.offset
      place.length = Int(item.length)
      let problem = item.problem == Self.noProblem ? nil : problems[Int(item.problem)]
      let start = Int(item.start)
      if start >= 0 {
        body(item.fields, block.extracting(start..<start + place.length), place, item.index, problem, item.digest)
      } else {
        let frame = copies.rawBytes.extracting(~start..<(~start) + place.length)
        body(item.fields, frame, place, item.index, problem, item.digest)
      }
    }
  }
}
