import Bytes
import PacketCapture
import TLSDecryption

/// The connections of a capture, each read by a decryptor of its own: the way of a dissection as far as the plaintext,
/// for captures of any application protocol.
struct TLSCaptureRun {
  /// What came out of one direction.
  struct Direction {
    /// The plaintext without the gaps.
    var bytes: [UInt8] = []
    var missing = 0
    var hasEnded = false
  }

  struct Connection {
    var client: String
    var server: String
    /// The beginning of what the client sent, as captured.
    var hello: [UInt8] = []
    var directions: [TLSSide: Direction] = [.client: Direction(), .server: Direction()]
    var summary = TLSSummary()

    func plaintext(from end: String) -> [UInt8] { directions[end == client ? .client : .server]?.bytes ?? [] }
    /// Of a hello that begins the stream and stands in one record.
    var clientRandom: [UInt8] { Array(hello.dropFirst(11).prefix(32)) }
  }

  private(set) var connections: [Connection] = []
  /// What plaintext must never be: out of order, twice, behind an end.
  private(set) var violations: [String] = []

  private var streams: [TLSStream] = []
  /// By the reassembler's slot numbers: the flow, and who opened it as far as a SYN told.
  private var flows: [Int: (flow: Flow, clientIsHigh: Bool?)] = [:]
  private var current: [Int: (connection: Int, clientIsHigh: Bool)] = [:]
  private let secrets: Secrets

  /// - Parameter pieceLength: bytes that a decryptor is given at once; all there are if `nil`.
  init(of path: String, secrets: Secrets, pieceLength: Int? = nil) throws {
    self.secrets = secrets
    let options = CaptureOptions()
    switch try CaptureInput.open(path, options: options) {
    case .dump: throw CaptureError(.notACapture, "is read as a dump")
    case .packets(let file):
      _ = try StreamReader(file, options: options).forEachBatch {
        true
      } _: { batch in
        for block in batch.secrets where block.type == DecryptionSecrets.tlsKeyLog {
          secrets.add(KeyLog(block.data, maximumLines: 1_000))
        }
        batch.forEachEvent { consume($0, at: $1, pieceLength) }
        return true
      }
    }
    for (index, stream) in streams.enumerated() { connections[index].summary = stream.summary }
  }

  private mutating func consume(_ event: borrowing StreamEvent, at position: StreamPosition, _ pieceLength: Int?) {
    let point = CapturePoint(time: position.time.nanoseconds, packet: position.packet)
    switch event {
    case .connection(.opened(let flow)): flows[position.slot] = (flow, nil)
    case .connection(.initiator(let direction)): flows[position.slot]?.clientIsHigh = direction == .reverse
    case .connection(.closed):
      if let connection = current.removeValue(forKey: position.slot)?.connection {
        streams[connection].finish(at: point) { note($0, $1, $2, $3, connection) }
      }
    case .connection: break
    case .bytes(let bytes):
      let (connection, side) = begun(position, bytes)
      if side == .client, connections[connection].hello.count < 43 {
        connections[connection].hello.append(copying: bytes.extracting(0..<min(43, bytes.byteCount)))
      }
      let step = pieceLength ?? bytes.byteCount
      for start in stride(from: 0, to: bytes.byteCount, by: step) {
        let piece = bytes.extracting(start..<min(start + step, bytes.byteCount))
        streams[connection].receive(piece, from: side, at: point) { note($0, $1, $2, $3, connection) }
      }
    case .gap(let length, let reason):
      let (connection, side) = begun(position, RawSpan())
      streams[connection].gap(length: length, reason: reason == .lost ? .lost : .truncated, from: side, at: point) {
        note($0, $1, $2, $3, connection)
      }
    case .end:
      let (connection, side) = begun(position, RawSpan())
      streams[connection].end(from: side, at: point) { note($0, $1, $2, $3, connection) }
    }
  }

  /// The connection of an event; its first one settles who the client is.
  private mutating func begun(_ position: StreamPosition, _ bytes: RawSpan) -> (Int, TLSSide) {
    if let (connection, clientIsHigh) = current[position.slot] {
      return (connection, clientIsHigh == (position.direction == .reverse) ? .client : .server)
    }
    let (flow, initiator) = flows[position.slot]!
    let clientIsHigh =
      initiator ?? TLSRecognition.isFromClient(bytes).map { $0 == (position.direction == .reverse) }
      ?? (flow.high.port > flow.low.port)
    let ends = ["\(flow.low)", "\(flow.high)"]
    current[position.slot] = (streams.count, clientIsHigh)
    streams.append(TLSStream(secrets: secrets, limits: TLSLimits()))
    connections.append(Connection(client: ends[clientIsHigh ? 1 : 0], server: ends[clientIsHigh ? 0 : 1]))
    return (streams.count - 1, clientIsHigh == (position.direction == .reverse) ? .client : .server)
  }

  private mutating func note(
    _ event: borrowing PlaintextEvent, _ side: TLSSide, _ offset: Int, _: CapturePoint, _ connection: Int
  ) {
    var direction = connections[connection].directions[side]!
    if direction.hasEnded { violations.append("plaintext behind the end") }
    if offset != direction.bytes.count + direction.missing {
      violations.append("offset \(offset) after \(direction.bytes.count) bytes and \(direction.missing) missing ones")
    }
    switch event {
    case .bytes(let bytes): direction.bytes.append(copying: bytes)
    case .gap(let length, _):
      if length <= 0 { violations.append("a gap of \(length) bytes") }
      direction.missing += length
    case .end: direction.hasEnded = true
    }
    connections[connection].directions[side] = direction
  }
}
