import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import Records
import TLSDecryption

/// One connection during dissection: which end is the client, how each direction is read, and the fates of its
/// notifications.
final class Connection {
  /// Bytes that were captured before the reading of their direction was decided.
  struct Held {
    var bytes: [UInt8]
    var offset: Int
    var mark: CapturePosition
    /// Missing bytes, if it is a gap: then there are no others.
    var gap: Gap?
  }

  /// Missing bytes at the beginning of a direction.
  struct Gap {
    var length: Int
    var reason: GapRecord.Reason
  }

  struct Closing {
    var isHigh: Bool
    var isReset: Bool
    var time: Timestamp
    var packet: Int
  }

  /// The state of each direction: `low` is what the flow's low end sent.
  struct DirectionState {
    var held: [Held] = []
    /// Bytes missing before the service of the connection was known.
    var missing = 0
    /// Whether it begins with a gap that is held.
    var lacksBeginning: Bool { held.first?.gap != nil }
  }

  let number: Int
  /// The index of its client stream.
  var slot: Int
  let flow: Flow?
  let opened: Timestamp
  let firstPacket: Int
  /// The number of the file with its first packet; `nil` if there is only one file.
  let firstFile: Int?
  var clientIsHigh: Bool?
  /// The start of both directions was captured, so that their first bytes begin records.
  var startWasCaptured = false
  var service = Service.unknown
  var otherProtocol: OtherProtocol?
  var preamble = PreambleReader()
  /// Bytes of preambles by direction.
  var preambleBytes = (low: 0, high: 0)
  /// Decrypts a TLS connection; its plaintext is read instead.
  var tls: TLSStream?
  /// How an end encrypted what it describes; its plaintext is received.
  private(set) var describedTLS: TLSSummary?
  /// One of its ends describes it, so that nothing of it has to be found out.
  private(set) var isDescribed = false
  var directions = (low: DirectionState(), high: DirectionState())

  var reading = ConnectionReading.undecided
  /// The fates that the summary has counted.
  var settled = FateCounts()
  var missingBytes = 0
  var conflictingBytes = 0
  var limits: [LimitKind] = []
  /// Bytes that the connection had carried when its memory was last checked.
  var carriedBefore = 0
  var firstClosing: (isHigh: Bool, isReset: Bool)?
  var closed = Timestamp.none
  /// The ends whose FIN or RST was not captured.
  var unfinished: (low: ConnectionRecord.OpenEnd?, high: ConnectionRecord.OpenEnd?) = (nil, nil)
  /// Other flows under which it was recorded.
  private var views: [(flow: Flow, isFlipped: Bool)] = []
  /// The first FIN or RST of each end; and the latest one, if it repeats an earlier one.
  private var closings: [Closing] = []
  private var repeatedClosing: Closing?

  init(number: Int, slot: Int, flow: Flow?, opened: Timestamp, firstPacket: Int) {
    self.number = number
    self.slot = slot
    self.flow = flow
    self.opened = opened
    self.firstPacket = firstPacket
    firstFile = PacketNumber.file(firstPacket) > 0 ? PacketNumber.file(firstPacket) : nil
  }

  /// Takes from one of its ends what is otherwise found out.
  func describe(_ service: Service, clientIsHigh: Bool, tls: TLSSummary?) {
    (self.service, self.clientIsHigh, describedTLS) = (service, clientIsHigh, tls)
    (isDescribed, startWasCaptured) = (true, true)
  }

  /// The subject of the client's certificate, as far as is known.
  var clientSubject: String? { tls == nil ? describedTLS?.clientSubject : tls?.clientSubject }

  /// Whether the whole handshake is known, and shows no certificate of the client.
  var presentsNoCertificate: Bool {
    tls?.presentsNoCertificate ?? describedTLS.map { $0.clientSubject == nil } ?? false
  }

  /// Notes a FIN or RST.
  func note(_ closing: Closing) {
    if firstClosing == nil { firstClosing = (closing.isHigh, closing.isReset) }
    closed = closing.time
    if closings.contains(where: { $0.isHigh == closing.isHigh }) {
      repeatedClosing = closing
    } else {
      closings.append(closing)
      repeatedClosing = nil
    }
  }

  /// Other addresses of a connection that are named.
  private static let maximumViews = 16

  /// Whether a direction is known to have ended: by its FIN, or by a RST of either end.
  func hasEnded(fromHigh: Bool) -> Bool { closings.contains { $0.isReset || $0.isHigh == fromHigh } }

  func noteView(_ flow: Flow, isFlipped: Bool) {
    if views.count < Self.maximumViews, !views.contains(where: { $0.flow == flow }) { views.append((flow, isFlipped)) }
  }

  func otherEnds(clientIsHigh: Bool) -> [ConnectionEnds] {
    views.map { flow, isFlipped in
      clientIsHigh != isFlipped
        ? ConnectionEnds(client: flow.high, server: flow.low) : ConnectionEnds(client: flow.low, server: flow.high)
    }
  }

  func outline(clientIsHigh: Bool) -> ConnectionOutline {
    let all = closings + (repeatedClosing.map { [$0] } ?? [])
    return ConnectionOutline(
      isFromBeginning: startWasCaptured, firstPacket: firstPacket,
      closings: all.map {
        ConnectionOutline.Closing(
          isFromClient: $0.isHigh == clientIsHigh, isReset: $0.isReset, time: $0.time, packet: $0.packet)
      })
  }

  /// Both ends and the time of the first packet: unique, and the same in every shard of a recording.
  var stableKey: String? {
    guard let flow else { return nil }
    let ends = "\(flow.low)-\(flow.high)"
    return opened.isKnown ? "\(ends)@\(opened.nanoseconds)" : ends
  }

  /// Begins to read the service's protocol, and returns how each direction is read. The client and the service have to
  /// be known.
  func beginReading(_ limits: ProtocolLimits) -> (low: ClientStream.ReadingMode, high: ClientStream.ReadingMode) {
    reading = ConnectionReading(service, isAligned: startWasCaptured, limits)
    let (client, server) = reading.modes
    return clientIsHigh ?? false ? (low: server, high: client) : (low: client, high: server)
  }

  func side(fromHigh: Bool) -> TLSSide { fromHigh == (clientIsHigh ?? false) ? .client : .server }

  func direction(fromHigh: Bool) -> Direction { fromHigh == (clientIsHigh ?? false) ? .client : .server }

  /// The port that determines the service: the server's, or the known one of the two.
  func decideByPorts(_ ports: [UInt16: Service]) {
    guard let flow else { return }
    let (low, high) = (ports[flow.low.port], ports[flow.high.port])
    if clientIsHigh == nil && (low == nil) != (high == nil) {
      // A client may have a known port as its ephemeral one: a well-known port at the other end indicates this.
      let other = low == nil ? flow.low.port : flow.high.port
      if startWasCaptured || other >= 1_024 { clientIsHigh = low != nil }
    }
    guard let clientIsHigh else { return }
    switch reading {
    case .http2, .messages: return
    case .undecided, .binary, .feedback, .opaque: break
    }
    // Behind a proxy or load balancer, the port in the preamble determines the service.
    service = (clientIsHigh ? low : high) ?? preamble.port.flatMap { ports[$0] } ?? .unknown
  }

  /// Whether the high or the low end sent what begins with a held gap; `nil`: neither.
  var directionWithoutBeginning: Bool? {
    directions.low.lacksBeginning ? false : directions.high.lacksBeginning ? true : nil
  }

  /// Removes and returns held bytes in capture order, so that a response finds its notification.
  func takeHeld() -> [(piece: Held, isHigh: Bool)] {
    // A gap is noticed after what follows it was captured.
    for (index, piece) in directions.low.held.enumerated().dropLast() where piece.gap != nil {
      directions.low.held[index].mark = directions.low.held[index + 1].mark
    }
    for (index, piece) in directions.high.held.enumerated().dropLast() where piece.gap != nil {
      directions.high.held[index].mark = directions.high.held[index + 1].mark
    }
    let held =
      directions.low.held.map { (piece: $0, isHigh: false) } + directions.high.held.map { (piece: $0, isHigh: true) }
    directions.low.held = []
    directions.high.held = []
    let marks = held.map(\.piece.mark)
    // The packet numbers of several files do not show the order if the files overlap.
    let isOfSeveral = Set(marks.map { PacketNumber.file($0.packet) }).count > 1
    func key(_ index: Int) -> (Timestamp, Int, Int) {
      (isOfSeveral ? marks[index].time : .none, marks[index].packet, index)
    }
    let order = held.indices.sorted { key($0) < key($1) }
    return order.map { held[$0] }
  }

  /// Bytes that it holds until more arrive, besides its client stream's.
  var heldBytes: Int {
    func bytes(_ held: [Held]) -> Int { held.reduce(0) { $0 + $1.bytes.count + MemoryLayout<Held>.stride } }
    return bytes(directions.low.held) + bytes(directions.high.held) + reading.heldBytes
      + (tls?.heldBytes ?? 0)
  }

  /// Frees memory that is ready for what comes.
  func freeSpare() {
    reading.freeSpare()
    tls?.freeSpare()
  }

  /// Nothing of the protocol was found yet, so that the bytes may still be TLS.
  func mayTurnOutToBeTLS(_ clientStream: ClientStream) -> Bool {
    switch reading {
    case .http2: return false
    case .messages(let reader) where reader.messages > 0: return false
    case .undecided, .binary, .feedback, .messages, .opaque: break
    }
    return tls == nil && !isDescribed && flow != nil && clientStream.session.written == 0
      && reading.errorResponses == 0 && reading.feedbackTuples == 0
  }
}

extension StreamPosition {
  /// The flow's high end sends. A pattern and no comparison, which would be a call across modules for each event.
  @inline(__always) var fromHigh: Bool {
    if case .reverse = direction { true } else { false }
  }
}
