import Bytes

@testable import PacketCapture

/// Two hosts and a reassembler that sees their segments, one call a packet, in the order of the capture.
///
/// Sequence numbers are given relative to each side's SYN: 0 is the SYN, 1 the first byte.
struct Conversation {
  static let client = Endpoint(address: IPAddress(v4: 0x0a00_0001), port: 50_000)
  static let server = Endpoint(address: IPAddress(v4: 0x1100_0001), port: 2_195)

  private var reassembler: TCPReassembler
  private(set) var log = StreamLog()
  /// Seconds; moves on by a millisecond a packet.
  var time = 0.0
  private var packet = 0
  var clientStart: UInt32 = 4_294_967_290
  var serverStart: UInt32 = 1_000
  var clientPort = client.port
  var hasTimes = true
  /// Of both sides.
  var window = UInt16.max
  var windowScale: UInt8?

  init(_ options: ReassemblyOptions = ReassemblyOptions()) { reassembler = TCPReassembler(options: options) }

  var bufferedCost: Int { reassembler.bufferedCost }

  /// The connections so far, the client's direction first.
  var connections: [StreamLog.Connection] { log.connections }
  func sent(_ connection: Int = 0) -> String { text(log.connections[connection].low.bytes) }
  func answered(_ connection: Int = 0) -> String { text(log.connections[connection].high.bytes) }
  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  /// The client sends. `wireLength` is set when the snap length cut the data.
  mutating func client(
    _ sequence: Int, _ data: String = "", ack: Int? = nil, _ flags: TCPSegment.Flags = [], wireLength: Int? = nil
  ) {
    client(sequence, Array(data.utf8), ack: ack, flags, wireLength: wireLength)
  }

  mutating func client(
    _ sequence: Int, _ data: [UInt8], ack: Int? = nil, _ flags: TCPSegment.Flags = [], wireLength: Int? = nil
  ) {
    let source = Endpoint(address: Self.client.address, port: clientPort)
    send(source, Self.server, clientStart, sequence, data, ack.map { (serverStart, $0) }, flags, wireLength)
  }

  /// The server sends.
  mutating func server(
    _ sequence: Int, _ data: String = "", ack: Int? = nil, _ flags: TCPSegment.Flags = [], wireLength: Int? = nil
  ) {
    let target = Endpoint(address: Self.client.address, port: clientPort)
    send(
      Self.server, target, serverStart, sequence, Array(data.utf8), ack.map { (clientStart, $0) }, flags, wireLength)
  }

  /// SYN, SYN-ACK, ACK.
  mutating func handshake() {
    client(0, .syn)
    server(0, ack: 1, .syn)
    client(1, ack: 1)
  }

  private mutating func client(_ sequence: Int, _ flags: TCPSegment.Flags) { client(sequence, "", flags) }

  private mutating func send(
    _ source: Endpoint, _ destination: Endpoint, _ start: UInt32, _ sequence: Int, _ data: [UInt8],
    _ acknowledgement: (start: UInt32, number: Int)?, _ flags: TCPSegment.Flags, _ wireLength: Int?
  ) {
    packet += 1
    time += 0.001
    var segment = TCPSegment(
      source: source, destination: destination, sequence: SequenceNumber(rawValue: start).advanced(by: sequence),
      acknowledgement: SequenceNumber(rawValue: acknowledgement?.start ?? 0).advanced(by: acknowledgement?.number ?? 0),
      flags: acknowledgement == nil ? flags : flags.union(.ack), payloadLength: wireLength ?? data.count)
    segment.window = window
    if flags.contains(.syn) { segment.windowScale = windowScale }
    let moment = hasTimes ? Timestamp(nanoseconds: Int64(time * 1e9)) : .none
    reassembler.receive(segment, data.rawBytes, time: moment, packet: packet) { log.consume($0, at: $1) }
  }

  /// The reader's clock goes on; whether something is due later.
  mutating func advance(to now: ContinuousClock.Instant) -> Bool {
    reassembler.advance(to: now) { log.consume($0, at: $1) }
  }

  /// The capture ends.
  mutating func finish() {
    reassembler.finish { log.consume($0, at: $1) }
    log.checkAllClosed()
  }
}
