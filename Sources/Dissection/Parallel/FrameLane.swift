import BinaryProtocol
import Bytes
import PushModel

/// The lane of sinks that receive notifications one by one: the fields of each, and the position of its frame.
public struct FrameLane: RecordLane {
  public struct Batch: Sendable {
    fileprivate struct Item {
      var fields: PushFields
      /// The frame's offset in the block; if negative, the complement of its offset in `copies`.
      var start: Int32
      var length: UInt32
      /// An index into `places`.
      var place: UInt32
      /// An index into `problems`; `noProblem`: none.
      var problem: UInt32
      var offset: Int
      var index: Int
      /// The digest of token and payload (`SentNotification`); only a `DigestLane` sets it.
      var digest: UInt64 = 0
    }

    fileprivate static let noProblem = UInt32.max

    fileprivate var items: [Item] = []
    /// Consecutive notifications of one packet share an entry.
    fileprivate var places: [RecordPlace] = []
    fileprivate var problems: [String] = []
    /// Frames that are not contiguous in the block: those of two packets, and decrypted ones.
    fileprivate var copies: [UInt8] = []

    fileprivate mutating func removeAll() {
      items.removeAll(keepingCapacity: true)
      places.removeAll(keepingCapacity: true)
      problems.removeAll(keepingCapacity: true)
      copies.removeAll(keepingCapacity: true)
    }
  }

  fileprivate var batch = Batch()
  private var blockAddress = 0
  private var blockLength = 0

  public var position: Int { batch.items.count }

  public static func makeBatch() -> Batch { Batch() }

  public mutating func begin(_ batch: inout Batch, _ block: RawSpan) {
    swap(&self.batch, &batch)
    self.batch.removeAll()
    blockAddress = Self.address(of: block)
    blockLength = block.byteCount
  }

  public mutating func end(_ batch: inout Batch) { swap(&self.batch, &batch) }

  /// Only compared: nothing is read through it.
  @inline(__always)
  private static func address(of bytes: RawSpan) -> Int {
    unsafe bytes.withUnsafeBytes { Int(bitPattern: $0.baseAddress) }
  }

  @inline(__always)
  public mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    add(fields, frame, place, index, problem: Batch.noProblem)
  }

  public mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    batch.problems.append(problem)
    add(fields, frame, place, index, problem: UInt32(truncatingIfNeeded: batch.problems.count - 1))
  }

  @inline(__always)
  private mutating func add(
    _ fields: PushFields, _ frame: RawSpan, _ place: RecordPlace, _ index: Int, problem: UInt32
  ) {
    var start = Self.address(of: frame) - blockAddress
    if start < 0 || start + frame.byteCount > blockLength {
      start = ~batch.copies.count
      batch.copies.append(copying: frame)
    }
    let last = batch.places.last
    if last?.packet != place.packet || last?.connection != place.connection || last?.time != place.time {
      batch.places.append(place)
    }
    batch.items.append(
      Batch.Item(
        fields: fields, start: Int32(truncatingIfNeeded: start), length: UInt32(truncatingIfNeeded: frame.byteCount),
        place: UInt32(truncatingIfNeeded: batch.places.count - 1), problem: problem, offset: place.offset,
        index: index))
  }
}

extension FrameLane.Batch {
  /// Passes notifications to a sink, with the block that `begin` took.
  @inline(__always)
  mutating func pass(_ range: Range<Int>, in block: RawSpan, to sink: inout some RecordSink) {
    forEach(range, in: block) { fields, frame, place, index, problem, _ in
      if let problem {
        sink.receive(malformed: problem, fields, frame, at: place, index: index)
      } else {
        sink.receive(fields, frame, at: place, index: index)
      }
    }
  }

  /// Calls `body` with the parts of notifications, the problem of a malformed one, and the digest.
  @inline(__always)
  mutating func forEach(
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

/// The lane of an inspection, which also wants to know whether a notification was sent before.
public struct DigestLane: RecordLane {
  public static var cost: LaneCost { .medium }
  private var frames = FrameLane()

  public init() {}

  public var position: Int { frames.position }
  public static func makeBatch() -> FrameLane.Batch { FrameLane.Batch() }
  public mutating func begin(_ batch: inout FrameLane.Batch, _ block: RawSpan) { frames.begin(&batch, block) }
  public mutating func end(_ batch: inout FrameLane.Batch) { frames.end(&batch) }

  @inline(__always)
  public mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    frames.receive(fields, frame, at: place, index: index)
    frames.batch.items[frames.position - 1].digest = SentNotification.digest(
      token: frame.extracting(fields.token.range), payload: frame.extracting(fields.payload.range))
  }

  public mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    frames.receive(malformed: problem, fields, frame, at: place, index: index)
  }
}
