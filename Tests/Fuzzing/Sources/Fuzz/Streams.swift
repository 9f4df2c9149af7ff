import BinaryProtocol
import Bytes
import TLSDecryption

@testable import Dissection
@testable import PacketCapture
@testable import Records

/// Limits as they are, or so narrow that every one of them is hit.
func dissectionOptions(narrow: Bool) -> DissectionOptions {
  var options = DissectionOptions()
  options.capture.maximumHexDumpLength = 1 << 16
  options.capture.maximumBlockLength = 1 << 18
  guard narrow else { return options }
  options.capture.maximumPacketLength = 600
  options.capture.maximumBlockLength = 640
  options.capture.maximumSecretsLength = 64
  options.capture.maximumHexDumpLength = 200
  options.capture.maximumFragmentedDatagrams = 2
  options.capture.reassembly = ReassemblyOptions(
    maximumBufferedBytes: 300, maximumTotalBufferedBytes: 500, maximumConnections: 2, gapPatience: 2, startPatience: 2)
  options.limits = ProtocolLimits(maximumFrameLength: 200, maximumTokenLength: 40, maximumPayloadLength: 120)
  options.maximumIdentifierRuns = 3
  options.maximumWriteTimes = 2
  options.maximumHeldResponses = 1
  return options
}

/// What a reassembler must keep: per direction offsets rise without holes, and nothing comes after the end.
struct StreamLaws {
  private struct DirectionState {
    var next = 0
    var hasEnded = false
    /// Sequence number of offset 0, as the contents tell.
    var base: UInt32?
  }

  private var directions: [Int: [DirectionState]] = [:]

  mutating func check(_ event: borrowing StreamEvent, _ position: StreamPosition, contentsTellSequence: Bool = false) {
    let side = position.direction == .reverse ? 1 : 0
    switch event {
    case .connection(.opened):
      law(directions[position.slot] == nil, "slot \(position.slot) is opened twice")
      directions[position.slot] = [DirectionState(), DirectionState()]
    case .connection(.closed):
      law(directions.removeValue(forKey: position.slot) != nil, "slot \(position.slot) is closed, but not open")
    case .connection: law(directions[position.slot] != nil, "an event of a slot that is not open")
    case .bytes(let bytes):
      law(bytes.byteCount > 0, "no bytes")
      if contentsTellSequence { checkContents(bytes, position, side) }
      advance(position, side, bytes.byteCount)
    case .gap(let length, _):
      law(length > 0, "a gap of \(length)")
      advance(position, side, length)
    case .end:
      advance(position, side, 0)
      directions[position.slot]?[side].hasEnded = true
    }
  }

  func finish() { law(directions.isEmpty, "slots \(directions.keys) are never closed") }

  private mutating func advance(_ position: StreamPosition, _ side: Int, _ length: Int) {
    guard let direction = directions[position.slot]?[side] else {
      return law(false, "bytes of a slot that is not open")
    }
    law(!direction.hasEnded, "something comes after the end")
    law(direction.next == position.offset, "offset \(position.offset) where \(direction.next) comes next")
    directions[position.slot]?[side].next += length
  }

  /// The bytes of a whole word are its sequence number, so delivered bytes tell where they were sent.
  private mutating func checkContents(_ bytes: RawSpan, _ position: StreamPosition, _ side: Int) {
    guard bytes.byteCount >= 8 else { return }
    for skip in 0..<4 {
      let first = bytes.uint32(at: skip) &- UInt32(skip)
      guard first & 3 == UInt32(4 - skip) & 3 else { continue }
      guard (0..<bytes.byteCount).allSatisfy({ bytes.byte(at: $0) == contents(at: first &+ UInt32($0)) }) else {
        continue
      }
      let base = first &- UInt32(truncatingIfNeeded: position.offset)
      if let known = directions[position.slot]?[side].base {
        law(known == base, "bytes of sequence number \(first) at offset \(position.offset) of a stream from \(known)")
      }
      directions[position.slot]?[side].base = base
      return
    }
    law(false, "delivered bytes were not sent in this order")
  }
}

/// The byte that stands at a sequence number: big-endian words that hold their own.
private func contents(at sequence: UInt32) -> UInt8 {
  UInt8(truncatingIfNeeded: (sequence & ~3) >> (8 * (3 - sequence & 3)))
}

private let linkTypes: [UInt16] = [
  0, 1, 9, 12, 14, 50, 51, 101, 108, 113, 228, 229, 239, 276, 147, 6, 8, 10, 100, 104, 105, 107, 109, 117, 119, 122,
  127, 138,
  149, 163, 192, 226, 258,
]

/// A link type and limits from the first byte, then packets with their lengths, through to records.
@Sendable func fuzzPackets(_ bytes: RawSpan) {
  var script = Script(bytes)
  let choice = script.byte()
  let linkType = LinkType(rawValue: linkTypes[(choice & 0x3f) % linkTypes.count])
  let options = dissectionOptions(narrow: choice & 0x40 != 0)
  var decoder = PacketDecoder(options: options.capture)
  var reassembler = TCPReassembler(options: options.capture.reassembly)
  let shared = SharedSink(LawSink(writes: choice & 0x80 != 0))
  var dissector = Dissector(sink: shared, options: options, secrets: Secrets())
  var laws = StreamLaws()
  var number = 0
  while !script.isAtEnd {
    let length = script.word()
    let packetBytes = script.take(length & 0x7fff)
    number += 1
    let packet = Packet(
      number: number, time: Timestamp(nanoseconds: Int64(number) * 100_000_000), linkType: linkType,
      originalLength: packetBytes.byteCount + (length & 0x8000 != 0 ? 10 : 0), capturedLength: packetBytes.byteCount)
    decoder.decode(packet, packetBytes) { segment, payload in
      law(payload.byteCount <= segment.payloadLength, "more payload captured than sent")
      reassembler.receive(segment, payload, time: packet.time, packet: number) { event, position in
        laws.check(event, position)
        dissector.consume(event, at: position)
      }
    }
  }
  reassembler.finish { event, position in
    laws.check(event, position)
    dissector.consume(event, at: position)
  }
  laws.finish()
  finish(dissector, shared)
}

/// TCP segments whose contents are told by their sequence numbers: flags, distances and lengths come from the input.
@Sendable func fuzzSegments(_ bytes: RawSpan) {
  var script = Script(bytes)
  let options = dissectionOptions(narrow: script.byte() & 1 != 0).capture.reassembly
  var reassembler = TCPReassembler(options: options)
  var laws = StreamLaws()
  /// Next sequence number of each side of three flows; the flows begin near a wrap.
  var next = [UInt32](repeating: 0xffff_ff00, count: 6)
  var packet = 0
  var time: Int64 = 0
  while !script.isAtEnd {
    let choice = script.byte()
    let side = (choice & 3) % 3 * 2 + (choice >> 2 & 1)
    let flags = TCPSegment.Flags(rawValue: UInt8(script.byte()) & 0x17)
    let wanted = choice & 0x08 != 0 ? script.word() & 0xfff : script.byte() & 0x3f
    let distance = choice & 0x10 != 0 ? Int(Int16(truncatingIfNeeded: script.word())) : 0
    let acknowledged = choice & 0x20 != 0 ? Int(Int16(truncatingIfNeeded: script.word())) : 0
    let isCut = choice & 0x40 != 0
    if choice & 0x80 != 0 { time += Int64(script.byte()) * 100_000_000 }
    let sequence = next[side] &+ UInt32(truncatingIfNeeded: distance)
    // A SYN takes a number of its own.
    let first = flags.contains(.syn) ? sequence &+ 1 : sequence
    let payload = (0..<(isCut ? wanted / 2 : wanted)).map { contents(at: first &+ UInt32($0)) }
    packet += 1
    let segment = TCPSegment(
      source: endpoint(side), destination: endpoint(side ^ 1), sequence: SequenceNumber(rawValue: sequence),
      acknowledgement: SequenceNumber(rawValue: next[side ^ 1] &+ UInt32(truncatingIfNeeded: acknowledged)),
      flags: flags,
      payloadLength: wanted)
    reassembler.receive(segment, payload.rawBytes, time: Timestamp(nanoseconds: time), packet: packet) {
      laws.check($0, $1, contentsTellSequence: true)
    }
    next[side] = first &+ UInt32(wanted) &+ (flags.contains(.fin) ? 1 : 0)
  }
  reassembler.finish { laws.check($0, $1, contentsTellSequence: true) }
  laws.finish()
}

private func endpoint(_ side: Int) -> Endpoint {
  Endpoint(address: IPAddress(v4: 0x0a00_0001 + UInt32(side)), port: side & 1 == 0 ? 2195 : 40_000)
}

/// What a connection's streams may hold, handed to the dissector as a reassembler would: pieces, gaps and ends of both
/// directions. The first byte chooses limits, ports, and whether the beginning was captured.
@Sendable func fuzzStream(_ bytes: RawSpan) {
  var script = Script(bytes)
  let choice = script.byte()
  let options = dissectionOptions(narrow: choice & 1 != 0)
  let shared = SharedSink(LawSink(writes: choice & 0x80 != 0))
  var dissector = Dissector(sink: shared, options: options, secrets: Secrets())
  let port = [2195, 2196, 12_195, 443][choice >> 1 & 3]
  let flow = Flow(
    low: Endpoint(address: IPAddress(v4: 1), port: 40_000),
    high: Endpoint(address: IPAddress(v4: 2), port: UInt16(port)))
  var position = StreamPosition(slot: 0, direction: .forward, offset: 0, time: Timestamp(nanoseconds: 1), packet: 1)
  dissector.consume(.connection(.opened(flow)), at: position)
  if choice & 8 != 0 {
    dissector.consume(.connection(.initiator(choice & 16 != 0 ? .reverse : .forward)), at: position)
  }
  var offsets = [0, 0]
  var hasEnded = [false, false]
  while !script.isAtEnd {
    let step = script.byte()
    let side = step & 1
    position.direction = side == 1 ? .reverse : .forward
    position.offset = offsets[side]
    position.packet += 1
    position.time = Timestamp(nanoseconds: Int64(position.packet) * 1_000_000)
    if hasEnded[side] { continue }
    switch step >> 1 & 7 {
    case 0:
      let length = 1 + script.word()
      dissector.consume(.gap(length: length, reason: step & 16 != 0 ? .truncated : .lost), at: position)
      offsets[side] += length
    case 1:
      dissector.consume(.connection(.closing(position.direction, isReset: step & 16 != 0)), at: position)
      dissector.consume(.end, at: position)
      hasEnded[side] = true
    default:
      let piece = script.take(1 + (step & 16 != 0 ? script.word() : script.byte()))
      guard piece.byteCount > 0 else { break }
      dissector.consume(.bytes(piece), at: position)
      offsets[side] += piece.byteCount
    }
  }
  for side in 0..<2 where !hasEnded[side] {
    position.direction = side == 1 ? .reverse : .forward
    position.offset = offsets[side]
    dissector.consume(.end, at: position)
  }
  dissector.consume(.connection(.closed), at: position)
  finish(dissector, shared)
}

private func finish(_ dissector: Dissector, _ shared: SharedSink<LawSink>) {
  shared.receive(dissector.output.summary)
  shared.sink.finish(dissector.output.summary)
}

/// The first byte that makes `fuzzPackets` read this link type.
func linkTypeChoice(_ linkType: LinkType) -> UInt8? {
  linkTypes.firstIndex(of: linkType.rawValue).map { UInt8($0) }
}
