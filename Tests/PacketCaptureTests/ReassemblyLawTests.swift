import Bytes
import TestSupport
import Testing

@testable import PacketCapture

/// What holds for every stream, however it was cut, mixed and thinned out on its way into the capture.
struct ReassemblyLawTests {
  private static let seeds: [UInt64] = Array(TestSupport.seeds(20, of: 60))

  /// A stream and the pieces of it that were captured.
  private struct Case {
    var random: SeededGenerator
    var stream: [UInt8]
    var start: UInt32
    var pieces: [Range<Int>] = []

    init(seed: UInt64, length: Int = 3_000) {
      random = SeededGenerator(seed: seed)
      stream = random.bytes(length)
      // Most streams cross 2^32 or 2^31, where signed and unsigned distances differ.
      let anywhere = UInt32(truncatingIfNeeded: random.next())
      let edges: [UInt32] = [0, .max, 1 << 31, .max - 1_500, (1 << 31) - 1_500, anywhere]
      start = edges.randomElement(using: &random) ?? 0
    }

    mutating func cut(longest: Int = 200) -> [Range<Int>] {
      var (pieces, offset): ([Range<Int>], Int) = ([], 0)
      while offset < stream.count {
        let end = min(stream.count, offset + Int.random(in: 1...longest, using: &random))
        pieces.append(offset..<end)
        offset = end
      }
      return pieces
    }

    /// Copies of pieces, and pieces that lie across others.
    mutating func overlaps(_ count: Int) -> [Range<Int>] {
      (0..<count).map { _ in
        let start = Int.random(in: 0..<stream.count, using: &random)
        return start..<min(stream.count, start + Int.random(in: 1...300, using: &random))
      }
    }

    func send(_ piece: Range<Int>, _ conversation: inout Conversation) {
      conversation.client(1 + piece.lowerBound, Array(stream[piece]))
    }
  }

  @Test("Any order of any cuts gives the stream", arguments: seeds)
  func anyOrderOfAnyCutsGivesTheStream(seed: UInt64) {
    var given = Case(seed: seed)
    given.pieces = given.cut() + given.overlaps(15)
    given.pieces.shuffle(using: &given.random)
    var conversation = Conversation()
    conversation.clientStart = given.start
    conversation.client(0, "", .syn)
    for piece in given.pieces { given.send(piece, &conversation) }
    conversation.finish()
    #expect(conversation.connections.count == 1)
    #expect(conversation.connections[0].low.bytes == given.stream)
    #expect(conversation.connections[0].low.gaps.isEmpty)
    #expect(conversation.connections[0].conflicts.isEmpty)
    #expect(conversation.log.violations.isEmpty)
    #expect(conversation.bufferedCost == 0)
  }

  @Test("The SYN may stand anywhere", arguments: seeds)
  func theSYNMayStandAnywhere(seed: UInt64) {
    var given = Case(seed: seed)
    given.pieces = given.cut() + given.overlaps(5)
    given.pieces.shuffle(using: &given.random)
    var conversation = Conversation(ReassemblyOptions(startPatience: .max))
    conversation.clientStart = given.start
    let place = Int.random(in: 0...given.pieces.count, using: &given.random)
    for (index, piece) in given.pieces.enumerated() {
      if index == place { conversation.client(0, "", .syn) }
      given.send(piece, &conversation)
    }
    if place == given.pieces.count { conversation.client(0, "", .syn) }
    conversation.finish()
    #expect(conversation.connections.count == 1)
    #expect(conversation.connections[0].low.bytes == given.stream)
    #expect(conversation.connections[0].low.gaps.isEmpty)
    #expect(conversation.connections[0].initiator == .forward)
    #expect(conversation.log.violations.isEmpty)
  }

  @Test("Without a SYN the lowest byte is the first", arguments: seeds)
  func withoutASYNTheLowestByteIsTheFirst(seed: UInt64) {
    var given = Case(seed: seed)
    given.pieces = given.cut()
    given.pieces.shuffle(using: &given.random)
    var conversation = Conversation(ReassemblyOptions(startPatience: .max))
    conversation.clientStart = given.start
    for piece in given.pieces { given.send(piece, &conversation) }
    conversation.finish()
    #expect(conversation.connections[0].low.bytes == given.stream)
    #expect(conversation.connections[0].low.gaps.isEmpty)
    #expect(conversation.log.violations.isEmpty)
  }

  @Test("What is not captured is exactly the gaps", arguments: seeds)
  func whatIsNotCapturedIsExactlyTheGaps(seed: UInt64) {
    var given = Case(seed: seed)
    given.pieces = (given.cut() + given.overlaps(5)).filter { _ in Int.random(in: 0..<3, using: &given.random) > 0 }
    given.pieces.shuffle(using: &given.random)
    var isCaptured = [Bool](repeating: false, count: given.stream.count)
    for piece in given.pieces { for offset in piece { isCaptured[offset] = true } }
    var conversation = Conversation()
    conversation.clientStart = given.start
    conversation.client(0, "", .syn)
    // The FIN, wherever it stands, shows how long the stream was.
    let place = Int.random(in: 0...given.pieces.count, using: &given.random)
    for (index, piece) in given.pieces.enumerated() {
      if index == place { conversation.client(1 + given.stream.count, "", .fin) }
      given.send(piece, &conversation)
    }
    if place == given.pieces.count { conversation.client(1 + given.stream.count, "", .fin) }
    conversation.finish()
    let direction = conversation.connections[0].low
    #expect(direction.bytes == given.stream.indices.filter { isCaptured[$0] }.map { given.stream[$0] })
    var holes: [StreamLog.Gap] = []
    for offset in given.stream.indices where !isCaptured[offset] {
      if let last = holes.last, last.offset + last.length == offset {
        holes[holes.count - 1].length += 1
      } else {
        holes.append(StreamLog.Gap(offset: offset, length: 1, reason: .lost))
      }
    }
    #expect(direction.gaps == holes)
    #expect(conversation.log.violations.isEmpty)
  }

  @Test("Every byte of the file is read or named", arguments: seeds)
  func everyByteOfTheFileIsReadOrNamed(seed: UInt64) {
    // Late pieces, small limits, snap lengths, acknowledgements before and behind the data: nothing is invented.
    var given = Case(seed: seed, length: 6_000)
    given.pieces = given.cut().filter { _ in Int.random(in: 0..<10, using: &given.random) > 0 }
    for _ in 0..<20 {
      let index = Int.random(in: 0..<given.pieces.count - 8, using: &given.random)
      given.pieces.swapAt(index, index + Int.random(in: 1..<8, using: &given.random))
    }
    var conversation = Conversation(
      ReassemblyOptions(maximumBufferedBytes: 2_000, gapPatience: Int.random(in: 1...4, using: &given.random)))
    conversation.clientStart = given.start
    conversation.handshake()
    for piece in given.pieces {
      let captured = Int.random(in: 0..<4, using: &given.random) == 0 ? piece.count / 2 : piece.count
      conversation.client(1 + piece.lowerBound, Array(given.stream[piece].prefix(captured)), wireLength: piece.count)
      if Bool.random(using: &given.random) { conversation.server(1, ack: 1 + piece.upperBound) }
    }
    conversation.finish()
    let direction = conversation.connections[0].low
    // The bytes and the gaps together are the stream, each in its place.
    var (rebuilt, read): ([UInt8], Int) = ([], 0)
    for gap in direction.gaps {
      let bytes = direction.bytes[read..<read + gap.offset - rebuilt.count]
      read += bytes.count
      rebuilt += bytes + given.stream[gap.offset..<gap.offset + gap.length]
    }
    rebuilt += direction.bytes[read...]
    #expect(rebuilt == Array(given.stream.prefix(rebuilt.count)))
    #expect(conversation.log.violations.isEmpty)
  }

  @Test("What waits stays within the limit of a connection", arguments: [UInt64(1), 2, 3])
  func whatWaitsStaysWithinTheLimitOfAConnection(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let limit = 20_000
    var conversation = Conversation(ReassemblyOptions(maximumBufferedBytes: limit))
    conversation.handshake()
    // Pieces that never touch, of one byte up to 1,400, forwards and backwards.
    var highest = 0
    for number in 0..<2_000 {
      let place = 10 + (seed == 2 ? 2_000 - number : number) * 2_000
      let length = number < 1_000 ? 1 : Int.random(in: 1...1_400, using: &random)
      conversation.client(place, random.bytes(length))
      highest = max(highest, conversation.bufferedCost)
    }
    #expect(highest > limit / 2)
    #expect(highest <= limit)
    #expect(conversation.connections[0].limits.contains(.bufferedBytes))
    #expect(conversation.log.violations.isEmpty)
  }

  @Test("What waits stays within the limit of all connections") func whatWaitsStaysWithinTheLimitOfAllConnections() {
    let limit = 20_000
    var conversation = Conversation(ReassemblyOptions(maximumTotalBufferedBytes: limit))
    for port in UInt16(1)...100 {
      conversation.clientPort = port
      conversation.client(0, "", .syn)
      for number in 0..<10 {
        conversation.client(100 + 200 * number, [UInt8](repeating: 7, count: 100))
        #expect(conversation.bufferedCost <= limit)
      }
    }
    #expect(conversation.connections.filter { $0.limits.contains(.totalBufferedBytes) }.count > 50)
    #expect(conversation.connections[0].limits.isEmpty)
    conversation.finish()
    // The limit costs patience, not data.
    #expect(conversation.connections.allSatisfy { $0.low.bytes.count == 1_000 })
    #expect(conversation.bufferedCost == 0)
    #expect(conversation.log.violations.isEmpty)
  }

  @Test("Captures of headers only are bounded too") func headersOnlyCapturesAreBoundedToo() {
    let limit = 20_000
    var conversation = Conversation(ReassemblyOptions(maximumBufferedBytes: limit))
    conversation.client(0, "", .syn)
    for number in 1...2_000 {
      conversation.client(100 * number, "", wireLength: 50)
      #expect(conversation.bufferedCost <= limit)
    }
    #expect(conversation.connections[0].limits.contains(.bufferedBytes))
  }
}

/// In-order bytes are the caller's own memory, not a copy.
struct ReassemblyCopyTests {
  @Test("Bytes in order pass without a copy") func bytesInOrderPassWithoutACopy() {
    var reassembler = TCPReassembler()
    var address: UInt?
    let data = [UInt8](repeating: 1, count: 10_000)
    let segments: [(UInt32, TCPSegment.Flags, Range<Int>)] = [
      (9, .syn, 0..<0), (10, .ack, 0..<5_000), (5_010, .ack, 5_000..<10_000),
    ]
    for (sequence, flags, range) in segments {
      let segment = TCPSegment(
        source: Conversation.client, destination: Conversation.server, sequence: SequenceNumber(rawValue: sequence),
        acknowledgement: SequenceNumber(rawValue: 0), flags: flags, payloadLength: range.count)
      let payload = data.rawBytes.extracting(range)
      reassembler.receive(segment, payload, time: .none, packet: 1) { event, _ in
        if case .bytes(let bytes) = event {
          address = unsafe bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        }
      }
      if !range.isEmpty {
        let expected = unsafe payload.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        #expect(address == expected)
      }
    }
  }
}
