/// One side of a stream.
struct StreamHalf: Sendable {
  /// A field section was received, or is lost.
  var hasFields = false
  /// END_STREAM was received, or the other side's loss makes up for it.
  var hasEnded = false
  /// The content-length field; `nil` without one.
  var expectedLength: Int?
  /// The length of the content, without padding.
  var length = 0
  /// Whether all content was there.
  var isLengthKnown = true
  /// The bytes of DATA that the flow control counts, minus the increments of its window.
  var windowUsed = 0
}

/// An open stream.
struct OpenStream: Sendable {
  var number: UInt32
  var client = StreamHalf()
  var server = StreamHalf()
  /// The number of losses in the client's direction before it was opened.
  var clientLosses: Int

  subscript(side: FrameReader.Side) -> StreamHalf {
    get { side == .client ? client : server }
    set { if side == .client { client = newValue } else { server = newValue } }
  }
}

/// The open streams of a connection, in slots that are used again.
struct StreamTable: Sendable {
  private(set) var slots: [OpenStream?] = []
  private var free: [Int] = []
  private var slotOf: [UInt32: Int] = [:]
  /// Streams in the order in which they were opened; some are closed.
  private var order: [UInt32] = []
  private var firstInOrder = 0
  /// Numbers of streams that were closed last, each at its number modulo the count.
  private var closed = [UInt32](repeating: 0, count: 256)
  /// The stream found last: a HEADERS frame and its DATA come together.
  private var latest: (number: UInt32, slot: Int) = (0, 0)

  var count: Int { slotOf.count }
  var heldBytes: Int { slots.count * MemoryLayout<OpenStream?>.stride + (order.count + 2 * slotOf.count) * 8 }

  mutating func slot(of number: UInt32) -> Int? {
    // The connection, whose number 0 also stands for no latest stream, has no slot.
    guard number != 0 else { return nil }
    if latest.number == number { return latest.slot }
    guard let slot = slotOf[number] else { return nil }
    latest = (number, slot)
    return slot
  }

  subscript(slot: Int) -> OpenStream? {
    get { slots[slot] }
    @inline(__always) _modify { yield &slots[slot] }
  }

  mutating func open(_ stream: OpenStream) -> Int {
    let slot: Int
    if let last = free.popLast() {
      slot = last
      slots[slot] = stream
    } else {
      slot = slots.count
      slots.append(stream)
    }
    slotOf[stream.number] = slot
    latest = (stream.number, slot)
    order.append(stream.number)
    if order.count > 2 * count + 1_024 {
      order = order[firstInOrder...].filter { slotOf[$0] != nil }
      firstInOrder = 0
    }
    return slot
  }

  mutating func close(_ slot: Int) {
    guard let stream = slots[slot] else { return }
    closed[Int(stream.number >> 1) & 255] = stream.number
    slots[slot] = nil
    slotOf[stream.number] = nil
    free.append(slot)
    if latest.number == stream.number { latest = (0, 0) }
  }

  /// Frees the memory of the slots, if no stream is open: then they are numbered from 0 again.
  mutating func freeSlots() {
    guard slotOf.isEmpty else { return }
    (slots, free, order, firstInOrder) = ([], [], [], 0)
  }

  /// Whether the stream is among those that were closed last.
  func wasClosed(_ number: UInt32) -> Bool { closed[Int(number >> 1) & 255] == number }

  /// The open stream that was opened first.
  mutating func oldest() -> Int? {
    while firstInOrder < order.count {
      if let slot = slotOf[order[firstInOrder]] { return slot }
      firstInOrder += 1
    }
    return nil
  }

  /// The slots of all open streams in the order of their numbers.
  func inOrder() -> [Int] { slotOf.sorted { $0.key < $1.key }.map(\.value) }
}
