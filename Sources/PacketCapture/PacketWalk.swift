import Bytes

/// Iterates over the records of a capture file: the position, the counts, the packet that is held, and what the next
/// record needs.
///
/// The walk has neither the input nor the parser, so that both can change while a window is borrowed; the processing of
/// packets is compiled for each parser.
struct PacketWalk {
  /// The number of packets so far.
  private(set) var packetCount = 0
  /// The number of the file, added to the numbers of packets that go into batches (`PacketNumber`).
  var base = 0
  /// A packet after this time is held and ends the batch.
  var limit = Timestamp(nanoseconds: .max)
  /// The next packet, if it was read ahead.
  private(set) var held: HeldPacket?
  /// Whether the last reading ended because no input came within the file's patience; more input may come.
  private(set) var isQuiet = false
  /// Messages about damage that ended the reading.
  private(set) var warnings: [String] = []
  /// The offset of the window in the file, for messages, and the offset in the window up to which it was parsed.
  private var position = 0
  private var offset = 0
  private var unmet = Unmet()

  /// Bytes that the next record needs and the last window did not have.
  private struct Unmet {
    var needs = 0
    var skip = 0
  }

  /// How a batch ended.
  enum BatchEnd {
    case more
    /// The file has no more packets.
    case last
    /// The next packet is later than the limit; it is held.
    case held
    /// No input came within the file's patience.
    case quiet
  }

  /// The result of a step through a window.
  private enum Step {
    case packet(Packet, Range<Int>)
    case end(WindowEnd)
  }

  private enum WindowEnd {
    /// The receiver wants no more packets.
    case stopped
    case damaged(CaptureError)
    case needs(Int)
    case skip(Int)
  }

  // MARK: ways to read

  /// Calls `body` with each packet and the number of bytes read from disk, until it returns `false`.
  mutating func forEachPacket(
    of input: inout InputFile, _ parser: inout some CaptureParser, _ body: (Packet, RawSpan, Int) throws -> Bool
  ) throws {
    while true {
      switch try meet(&input) {
      case .met: break
      case .ended: return
      case .quiet: continue
      }
      let bytesRead = input.bytesRead
      begin(at: input.position)
      let end = try pass(input.window, &parser) { packet, bytes in try body(packet, bytes, bytesRead) }
      input.consume(offset)
      if !goesOn(after: end) { return }
    }
  }

  /// Reads the next packet and holds it, unless a packet is held. Returns `false` at the end of the file, and if it
  /// `isQuiet`.
  mutating func holdNext(of input: inout InputFile, _ parser: inout some CaptureParser) throws -> Bool {
    while held == nil {
      guard try meet(&input) == .met else { return false }
      begin(at: input.position)
      switch next(in: input.window, &parser) {
      case .packet(let packet, let range):
        held = HeldPacket(packet: packet, bytes: Array(copying: input.window.extracting(range)))
      case .end(let end):
        if !goesOn(after: end) { return false }
      }
      input.consume(offset)
    }
    return true
  }

  /// Returns the held packet, with its number in the recording, and stops holding it.
  mutating func takeHeld() -> HeldPacket? {
    defer { held = nil }
    held?.packet.number |= base
    return held
  }

  /// Reads the stream events of the next block into `batch`, and moves the block there as well.
  mutating func readBatch(
    of input: inout InputFile, _ parser: inout some CaptureParser, _ batch: inout EventBatch, _ path: inout PacketPath
  ) throws -> BatchEnd {
    // Wait for new data only now: a batch from a pipe must not wait for later data.
    switch try meet(&input) {
    case .met: break
    case .ended: return .last
    case .quiet: return .quiet
    }
    // Also if the walk throws: the bytes of the events so far are in this block.
    defer { input.giveAway(&batch.block) }
    begin(at: input.position)
    let end = try pass(input.blockWindow, &parser, to: &batch, &path)
    input.consume(offset)
    batch.bytesRead = input.bytesRead
    if case .stopped = end { return .held }
    return goesOn(after: end) ? .more : .last
  }

  // MARK: a window

  private mutating func begin(at position: Int) {
    self.position = position
    offset = 0
  }

  /// The next packet of a window.
  @inline(__always)
  private mutating func next(in window: RawSpan, _ parser: inout some CaptureParser) -> Step {
    while true {
      let step: CaptureStep
      do throws(CaptureError) {
        step = try parser.next(in: window, at: &offset, position: position)
      } catch {
        return .end(.damaged(error))
      }
      switch step {
      case .packet(let packet, let range):
        packetCount += 1
        return .packet(packet, range)
      case .other: continue
      case .needs(let count): return .end(.needs(count))
      case .skip(let count): return .end(.skip(count))
      }
    }
  }

  /// Calls `body` with the packets of a window.
  private mutating func pass(
    _ window: RawSpan, _ parser: inout some CaptureParser, to body: (Packet, RawSpan) throws -> Bool
  ) throws -> WindowEnd {
    while true {
      switch next(in: window, &parser) {
      case .packet(let packet, let range):
        if try !body(packet, window.extracting(range)) { return .stopped }
      case .end(let end): return end
      }
    }
  }

  /// Adds the packets of a window to a batch, up to the limit.
  private mutating func pass(
    _ window: BlockWindow, _ parser: inout some CaptureParser, to batch: inout EventBatch, _ path: inout PacketPath
  ) throws -> WindowEnd {
    // Also if the filter throws.
    defer { batch.receiveWaiting(in: window, &path.reassembler) }
    while true {
      switch next(in: window.bytes, &parser) {
      case .packet(var packet, let range):
        let bytes = window.bytes.extracting(range)
        if packet.time > limit {
          held = HeldPacket(packet: packet, bytes: Array(copying: bytes))
          return .stopped
        }
        packet.number |= base
        try batch.take(packet, bytes, in: window, &path)
      case .end(let end): return end
      }
    }
  }

  /// Notes what the next record needs. Returns `false` if the reading ends.
  private mutating func goesOn(after end: WindowEnd) -> Bool {
    switch end {
    case .stopped: return false
    case .damaged(let error):
      warnings.append(error.message)
      return false
    case .needs(let count): unmet.needs = count
    case .skip(let count): unmet.skip = count
    }
    return true
  }

  // MARK: what the next record needs

  private enum Meeting {
    case met
    /// The file ends before.
    case ended
    /// A pipe does not have the bytes yet.
    case quiet
  }

  /// Reads the bytes that the next record needs.
  private mutating func meet(_ input: inout InputFile) throws -> Meeting {
    isQuiet = false
    let rest = input.count
    if unmet.skip > 0, try !input.skip(unmet.skip) { return end(input) }
    unmet.skip = 0
    if unmet.needs > 0 {
      switch try input.fillPatiently(atLeast: unmet.needs) {
      case .filled: break
      case .ended: return rest > 0 ? end(input) : .ended
      case .quiet:
        isQuiet = true
        return .quiet
      }
    }
    unmet = Unmet()
    return .met
  }

  /// Notes that the file ends within a record.
  private mutating func end(_ input: borrowing InputFile) -> Meeting {
    // Compressed contents that end early have their own warning.
    if input.warning == nil {
      warnings.append(
        "the file ends in the middle of a record, after packet \(packetCount); all complete records were read")
    }
    return .ended
  }
}
