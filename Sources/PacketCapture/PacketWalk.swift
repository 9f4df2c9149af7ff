import Bytes

/// The walk through the records of a capture file: how far it is, what it has counted and holds, and what it needs.
///
/// It has neither the input nor the parser, so that both can change beside it while a window is borrowed; what it does
/// with packets is compiled for each parser.
struct PacketWalk {
  /// Packets so far.
  private(set) var packetCount = 0
  /// Is added to the numbers of packets that go into batches (`PacketNumber`).
  var base = 0
  /// A packet after this time is held and ends the batch.
  var limit = Timestamp(nanoseconds: .max)
  /// A packet that was read ahead and is the next one.
  private(set) var held: HeldPacket?
  /// The last reading ended because no input came within the file's patience: more may come.
  private(set) var isQuiet = false
  /// What ended the reading before the end of the file.
  private(set) var warnings: [String] = []
  /// Of the window: where it begins in the file, for messages, and how far it has been read.
  private var position = 0
  private var offset = 0
  private var unmet = Unmet()

  /// What the next record needs that the last window did not have.
  private struct Unmet {
    var needs = 0
    var skip = 0
  }

  /// How a batch ended.
  enum BatchEnd {
    case more
    /// It was the file's last.
    case last
    /// The next packet is after the limit; it is held.
    case held
    /// Nothing came within the file's patience.
    case quiet
  }

  /// What a step through a window came to.
  private enum Step {
    case packet(Packet, Range<Int>)
    case end(WindowEnd)
  }

  private enum WindowEnd {
    /// The receiver wants no more.
    case stopped
    case damaged(CaptureError)
    case needs(Int)
    case skip(Int)
  }

  // MARK: ways to read

  /// Calls `body` with every packet and the bytes that were read from disk, until it returns `false`.
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

  /// Reads the next packet, if none is held, and holds it; `false` at the end of the file, and when it `isQuiet`.
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

  /// Gives away the packet that is held, with its number in the recording.
  mutating func takeHeld() -> HeldPacket? {
    defer { held = nil }
    held?.packet.number |= base
    return held
  }

  /// Reads the next block's streams into `batch` and gives the block away with them.
  mutating func readBatch(
    of input: inout InputFile, _ parser: inout some CaptureParser, _ batch: inout EventBatch, _ path: inout PacketPath
  ) throws -> BatchEnd {
    // The data that ended the last batch is read now: a batch of a pipe must not wait for later data.
    switch try meet(&input) {
    case .met: break
    case .ended: return .last
    case .quiet: return .quiet
    }
    // Also when the walk throws: the events so far have their bytes in this block.
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

  /// Passes the packets of a window to a batch, up to the limit.
  private mutating func pass(
    _ window: BlockWindow, _ parser: inout some CaptureParser, to batch: inout EventBatch, _ path: inout PacketPath
  ) throws -> WindowEnd {
    // Also when the filter throws.
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

  /// Notes what the next record needs; `false` where reading ends.
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
    /// The file ends first.
    case ended
    /// A pipe does not have it yet.
    case quiet
  }

  /// Reads what the next record needs.
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

  /// The file ends within a record.
  private mutating func end(_ input: borrowing InputFile) -> Meeting {
    // Compressed contents that end early have their own warning.
    if input.warning == nil {
      warnings.append(
        "the file ends in the middle of a record, after packet \(packetCount); all complete records were read")
    }
    return .ended
  }
}
