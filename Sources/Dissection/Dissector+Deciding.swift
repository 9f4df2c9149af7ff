import BinaryProtocol
import Bytes
import PacketCapture
import Records
import TLSDecryption

/// Decides what a connection is: which end is the client, whether it is TLS or has a preamble, and which protocol it
/// carries.
extension Dissector {
  /// Bytes of a direction that are examined before a connection on an unknown port counts as another protocol.
  private static var sniffedBytes: Int { 4_096 }
  /// 2009-01-01, in UNIX seconds.
  private static var firstFeedback: UInt32 { 1_230_768_000 }

  func hold(_ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Connection, _ fromHigh: Bool) {
    let held = Connection.Held(bytes: Array(copying: bytes), offset: offset, mark: mark)
    if fromHigh {
      connection.directions.high.held.append(held)
    } else {
      connection.directions.low.held.append(held)
    }
  }

  /// Holds a gap before the first bytes of a direction, since these may be HTTP/2; `false` if there is nothing to decide.
  func holds(
    _ gap: Connection.Gap, at offset: Int, _ mark: CapturePosition, _ connection: Connection, _ fromHigh: Bool
  ) -> Bool {
    let direction = fromHigh ? connection.directions.high : connection.directions.low
    guard reading(connection, fromHigh) == .undecided, connection.startWasCaptured, direction.held.isEmpty else {
      return false
    }
    let held = Connection.Held(bytes: [], offset: offset, mark: mark, gap: gap)
    if fromHigh { connection.directions.high.held = [held] } else { connection.directions.low.held = [held] }
    return true
  }

  /// Reads what was held.
  mutating func readHeld(_ pieces: [(piece: Connection.Held, isHigh: Bool)], _ connection: Connection) {
    let wasTLS = connection.tls != nil
    for (piece, isHigh) in pieces {
      // It may turn out to be TLS meanwhile.
      if !wasTLS, let tls = connection.tls {
        let (side, point) = (connection.side(fromHigh: isHigh), CapturePoint(piece.mark))
        if let gap = piece.gap {
          tls.gap(length: gap.length, reason: gap.reason == .truncated ? .truncated : .lost, from: side, at: point) {
            consumePlaintext($0, $1, $2, $3, connection.slot)
          }
        } else {
          tls.receive(piece.bytes.rawBytes, from: side, at: point) {
            consumePlaintext($0, $1, $2, $3, connection.slot)
          }
        }
      } else if let gap = piece.gap {
        if !wasTLS { noteMissing(gap.length, connection, isHigh) }
        readGap(gap.length, gap.reason, at: piece.offset, piece.mark, connection, isHigh)
      } else {
        read(piece.bytes.rawBytes, at: piece.offset, piece.mark, connection, isHigh)
      }
    }
  }

  /// Decides how the connection is read if enough is known; then reads held bytes.
  mutating func decide(_ connection: Connection, _ fromHigh: Bool, isFinal: Bool) {
    guard let isHigh = connection.directionWithoutBeginning else {
      return decideByBeginning(connection, fromHigh, isFinal: isFinal)
    }
    switch claimHTTP2AfterLoss(connection, fromHigh, isFinal: isFinal) {
    case .yes: return beginHTTP2(connection)
    case .needsMore: return
    case .no: break
    }
    if let kind = declaredMessages(connection) ?? claimMessagesAfterLoss(connection, isHigh) {
      return beginMessages(kind, connection)
    }
    // Nothing else is recognised without its beginning: what followed the gap has no part in it.
    let pieces = connection.takeHeld()
    let gap = pieces.firstIndex { $0.piece.gap != nil && $0.isHigh == isHigh } ?? 0
    for (piece, isHigh) in pieces[..<gap] {
      hold(piece.bytes.rawBytes, at: piece.offset, piece.mark, connection, isHigh)
    }
    decideByBeginning(connection, isHigh, isFinal: true)
    readHeld(Array(pieces[gap...]), connection)
  }

  private mutating func decideByBeginning(_ connection: Connection, _ fromHigh: Bool, isFinal: Bool) {
    connection.decideByPorts(options.ports)
    if connection.flow != nil, connection.tls == nil, waitsForPreamble(connection, fromHigh, isFinal: isFinal) {
      return
    }
    let direction = fromHigh ? connection.directions.high : connection.directions.low
    let first = direction.held.flatMap(\.bytes)
    let negotiated = connection.tls.flatMap { OtherProtocol($0.summary) }
    var isBinary = false
    switch connection.tls == nil ? TLSRecognition.begins(first.rawBytes) : .no {
    case .yes:
      dropText(connection)
      return beginTLS(connection, first.rawBytes, fromHigh: fromHigh)
    case .needsMore where !isFinal && !first.isEmpty: return
    case .needsMore, .no:
      let isLast = isFinal || first.count >= Self.sniffedBytes
      switch claimHTTP2(first.rawBytes, connection, fromHigh, isAligned: true, isFinal: isLast) {
      case .yes: return beginHTTP2(connection)
      case .needsMore: return
      case .no: if isDeclaredHTTP2(connection) { return beginHTTP2(connection) }
      }
      if let kind = declaredMessages(connection), !first.isEmpty { return beginMessages(kind, connection) }
      switch claimMessages(first, isFinal: isFinal) {
      case .yes(let kind): return beginMessages(kind, connection)
      case .needsMore: return
      case .no: break
      }
      // What TLS negotiated counts less than the bytes.
      if negotiated != nil, !first.isEmpty {
        switch binary(first, connection, fromHigh, isFinal: isLast).verdict {
        case .yes: isBinary = true
        case .needsMore: return
        case .no: break
        }
      }
      if !isBinary, hasNegotiatedHTTP2(connection) { return beginHTTP2(connection) }
      if connection.service == .unknown {
        switch sniff(first, connection, fromHigh, isFinal: isFinal || first.count >= Self.sniffedBytes) {
        case .needsMore: return
        case .yes: break
        case .no:
          if case .yes = claimHTTP2(first.rawBytes, connection, fromHigh, isAligned: false, isFinal: isLast) {
            return beginHTTP2(connection)
          }
        }
      }
    }
    if connection.otherProtocol == nil {
      connection.otherProtocol = isBinary ? nil : negotiated ?? OtherProtocol(beginning: first)
      // On a known port only the first bytes are conclusive: bytes from mid-stream may happen to spell a method.
      if connection.otherProtocol != nil, connection.startWasCaptured || connection.otherProtocol == .http2 {
        connection.service = .other
      }
    }
    if connection.clientIsHigh == nil {
      connection.clientIsHigh = connection.flow.map { $0.high.port > $0.low.port } ?? false
    }
    // A port that is known at both ends determines the service once the client is known.
    if connection.service == .unknown && connection.otherProtocol == nil { connection.decideByPorts(options.ports) }
    if connection.tls == nil, connection.otherProtocol == nil, connection.service == .gateway, connection.flow != nil,
      connection.startWasCaptured,
      GatewayGrammar(limits: options.limits).canStart(first.rawBytes, 0, atEnd: true) == .yes
    {
      dropText(connection)
    }
    clientStreams[connection.slot].readings = connection.beginReading(options.limits)
    if !connection.startWasCaptured { clientStreams[connection.slot].beginAnywhere() }
    readHeld(connection.takeHeld(), connection)
  }

  mutating func decideFinally(_ connection: Connection) {
    for fromHigh in [false, true] where reading(connection, fromHigh) == .undecided {
      let direction = fromHigh ? connection.directions.high : connection.directions.low
      if !direction.held.isEmpty { decide(connection, fromHigh, isFinal: true) }
    }
    if connection.service == .unknown { connection.decideByPorts(options.ports) }
    // A proxy that opened no tunnel: all there is is its protocol.
    if connection.preamble.kind == .httpConnect, !connection.preamble.isOpen, connection.tls == nil,
      reading(connection, false) == .undecided, reading(connection, true) == .undecided
    {
      connection.otherProtocol = .http1
      connection.service = .other
    }
  }

  /// The rest of one direction is another protocol's.
  mutating func makeOpaque(_ connection: Connection, fromHigh: Bool) {
    if fromHigh {
      clientStreams[connection.slot].readings.high = .opaque
    } else {
      clientStreams[connection.slot].readings.low = .opaque
    }
  }

  /// Whether the first bytes of one direction, on an unknown port, are this protocol's; if so, notes the service.
  private func sniff(
    _ first: [UInt8], _ connection: Connection, _ fromHigh: Bool, isFinal: Bool
  ) -> Plausibility {
    let (verdict, found) = binary(first, connection, fromHigh, isFinal: isFinal)
    if let (service, fromClient) = found {
      connection.service = service
      connection.clientIsHigh = fromClient == fromHigh
    }
    return verdict
  }

  /// Whether the first bytes of one direction are those of a service of the binary protocol, and which.
  private func binary(
    _ first: [UInt8], _ connection: Connection, _ fromHigh: Bool, isFinal: Bool
  ) -> (verdict: Plausibility, found: (service: Service, fromClient: Bool)?) {
    guard !first.isEmpty else { return (isFinal ? .no : .needsMore, nil) }
    func mayBe(client: Bool) -> Bool { connection.clientIsHigh.map { ($0 == fromHigh) == client } ?? true }
    var needsMore = false
    var found: (service: Service, fromClient: Bool)?
    func take(_ plausibility: Plausibility, _ service: Service, fromClient: Bool) -> Bool {
      if plausibility == .needsMore { needsMore = true }
      guard plausibility == .yes else { return false }
      found = (service, fromClient)
      return true
    }
    let bytes = first.rawBytes
    if mayBe(client: true),
      take(
        GatewayGrammar(limits: options.limits)
          .probe(bytes, 0, beginsBetween: connection.startWasCaptured, atEnd: isFinal), .gateway, fromClient: true)
    {
      return (.yes, found)
    }
    if mayBe(client: false) {
      if first.count <= ErrorResponse.length,
        take(ResponseGrammar().canStart(bytes, 0, atEnd: isFinal), .gateway, fromClient: false)
      {
        return (.yes, found)
      }
      let tuple = FeedbackGrammar(limits: options.limits)
        .probe(bytes, 0, beginsBetween: connection.startWasCaptured, atEnd: isFinal)
      // In mid-stream few bytes look like a tuple; the feedback service did not exist before 2009.
      let isDated = connection.startWasCaptured || (first.count >= 4 && bytes.uint32(at: 0) >= Self.firstFeedback)
      if isDated || tuple == .needsMore, take(tuple, .feedback, fromClient: false) { return (.yes, found) }
    }
    return (needsMore && !isFinal ? .needsMore : .no, nil)
  }
}
