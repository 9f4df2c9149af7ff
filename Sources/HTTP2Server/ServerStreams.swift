import Bytes

/// A stream that is open at a server.
struct OpenStream: Sendable {
  var number: UInt32
  /// The client's END_STREAM was received, its content is long enough to be answered, or it was answered.
  var isRequestEnded = false
  /// The client may still send: an answer is followed by RST_STREAM.
  var isClientOpen = true
  /// The value of content-length; `nil` without.
  var expectedLength: Int?
  /// Bytes of content so far.
  var length = 0
  /// The content that is kept, if it came in more than one frame.
  var content: [UInt8] = []
  /// Bytes of DATA, with padding, that no WINDOW_UPDATE has given back.
  var windowUsed = 0
  /// Bytes of DATA that the client allows on the stream.
  var sendWindow: Int
  /// The end of the answer, for which a window is too small.
  var unsent: ArraySlice<UInt8> = []
  /// It is in line for the connection's window.
  var isWaiting = false

  init(_ number: UInt32, sendWindow: Int) { (self.number, self.sendWindow) = (number, sendWindow) }
}

/// The open streams of a session, in slots that are used again.
struct ServerStreams: Sendable {
  private(set) var slots: [OpenStream] = []
  private var free: [Int] = []
  /// The slots of all open streams but the latest.
  private var slotOf: [UInt32: Int] = [:]
  /// The stream that was opened last. The frames of a request mostly come together, so that it is in no dictionary.
  private var latest: (number: UInt32, slot: Int) = (0, 0)
  /// The streams that were reset last by the server: their frames may still come. Each is at its number modulo the count.
  private var reset = [UInt32](repeating: 0, count: 64)
  /// The highest stream that had a place there and has none any more: closed ones up to it may have been reset.
  private var forgotten: UInt32 = 0

  /// The bytes of content that is kept.
  private(set) var keptBytes = 0

  var count: Int { slotOf.count + (latest.number == 0 ? 0 : 1) }

  subscript(slot: Int) -> OpenStream {
    get { slots[slot] }
    _modify { yield &slots[slot] }
  }

  func slot(of number: UInt32) -> Int? {
    guard number != 0 else { return nil }
    return latest.number == number ? latest.slot : slotOf[number]
  }

  var hasOpenClient: Bool { slots.contains { $0.number != 0 && $0.isClientOpen } }

  mutating func open(_ number: UInt32, sendWindow: Int) -> Int {
    if latest.number != 0 { slotOf[latest.number] = latest.slot }
    let slot: Int
    if let last = free.popLast() {
      slot = last
      slots[slot] = OpenStream(number, sendWindow: sendWindow)
    } else {
      slot = slots.count
      slots.append(OpenStream(number, sendWindow: sendWindow))
    }
    latest = (number, slot)
    return slot
  }

  mutating func close(_ slot: Int, isReset: Bool = false) {
    let number = slots[slot].number
    if latest.number == number { latest = (0, 0) } else { slotOf[number] = nil }
    if isReset { noteReset(number) }
    slots[slot].number = 0
    _ = takeContent(slot)
    if !slots[slot].unsent.isEmpty { slots[slot].unsent = [] }
    free.append(slot)
  }

  /// Keeps content of a request.
  mutating func keep(_ content: RawSpan, _ slot: Int) {
    slots[slot].content.append(copying: content)
    keptBytes += content.byteCount
  }

  mutating func takeContent(_ slot: Int) -> [UInt8] {
    let content = slots[slot].content
    guard !content.isEmpty else { return [] }
    keptBytes -= content.count
    slots[slot].content = []
    return content
  }

  mutating func noteReset(_ number: UInt32) {
    let place = Int(number >> 1) & 63
    if reset[place] != number { forgotten = max(forgotten, reset[place]) }
    reset[place] = number
  }

  /// Whether a closed stream was reset, or may have been.
  func wasReset(_ number: UInt32) -> Bool { number <= forgotten || reset[Int(number >> 1) & 63] == number }

  /// The slots of all open streams in the order of their numbers. O(n log n).
  func inOrder() -> [Int] {
    var all = slotOf.map { ($0.key, $0.value) }
    if latest.number != 0 { all.append(latest) }
    return all.sorted { $0.0 < $1.0 }.map(\.1)
  }

  /// Frees memory of streams that were open, if none is.
  mutating func freeSpare() {
    guard count == 0 else { return }
    (slots, free, slotOf) = ([], [], [:])
  }
}
