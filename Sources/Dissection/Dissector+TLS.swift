import Bytes
import PacketCapture
import Records
import TLSDecryption

/// Connections that turn out to be TLS: their bytes go through a `TLSStream`, and its plaintext is read instead.
extension Dissector {
  /// Reads the bytes of a TLS connection. It accesses only the client stream, for locality.
  mutating func consume(_ bytes: RawSpan, at position: StreamPosition, through tls: TLSStream) {
    let slot = position.slot
    let before = clientStreams[slot].session.written
    tls.receive(bytes, from: clientStreams[slot].side(fromHigh: position.fromHigh), at: CapturePoint(position)) {
      consumePlaintext($0, $1, $2, $3, slot)
    }
    output.sink.segment(notifications: clientStreams[slot].session.written - before, at: position.time)
  }

  /// Reads the remainder of bytes of which a lane read the beginning.
  ///
  /// - Parameter notifications: the number that the lane found.
  mutating func consumeRest(
    _ bytes: RawSpan, after taken: Int, notifications: Int, at position: StreamPosition
  ) {
    let slot = position.slot
    let before = clientStreams[slot].session.written - notifications
    clientStreams[slot].tls?.receiveRest(
      bytes.extracting(taken..<bytes.byteCount), from: clientStreams[slot].side(fromHigh: position.fromHigh),
      at: CapturePoint(position)
    ) { consumePlaintext($0, $1, $2, $3, slot) }
    output.sink.segment(notifications: clientStreams[slot].session.written - before, at: position.time)
  }

  /// Continues connections that waited for secrets, after secrets were added.
  mutating func retryTLS() {
    for connection in connections {
      guard let connection, let tls = connection.tls else { continue }
      tls.retry { consumePlaintext($0, $1, $2, $3, connection.slot) }
    }
    retryParked(isFinal: false)
  }

  /// Keeps an ended connection while its secrets may still be found; `false` if secrets would not help.
  mutating func park(_ connection: Connection) -> Bool {
    guard secrets.mayGrow, let waiting = connection.tls?.bytesWaitingForSecrets, waiting > 0 else { return false }
    // The held bytes of parked connections count against the total limit.
    guard parked.count < options.capture.reassembly.maximumConnections else { return false }
    parked.append((connection, clientStreams[connection.slot]))
    return true
  }

  /// Reads and closes the parked connections whose secrets were found, or all if `isFinal`.
  mutating func retryParked(isFinal: Bool) {
    let waiting = parked
    parked = []
    for (connection, clientStream) in waiting {
      // Its old place may be another's by now.
      connection.slot = connections.count
      connections.append(connection)
      clientStreams.append()
      clientStreams[connection.slot] = clientStream
      connection.tls?.retry { consumePlaintext($0, $1, $2, $3, connection.slot) }
      if isFinal || connection.tls?.bytesWaitingForSecrets == 0 {
        close(connection)
      } else {
        parked.append((connection, clientStreams[connection.slot]))
      }
      connections.removeLast()
      clientStreams.removeLast()
    }
  }

  /// Reads the plaintext of a TLS connection.
  mutating func consumePlaintext(
    _ event: borrowing PlaintextEvent, _ side: TLSSide, _ offset: Int, _ point: CapturePoint, _ slot: Int
  ) {
    let fromHigh = clientStreams[slot].isHigh(side)
    let mark = CapturePosition(point)
    switch event {
    case .bytes(let bytes):
      if clientStreams[slot].readWholeFrames(bytes, at: offset, fromHigh: fromHigh, mark, into: &output) { return }
      if let subject = clientStreams[slot].tls?.clientSubject {
        output.sink.presented(subject: subject, connection: clientStreams[slot].connection)
      }
      if let connection = connections[slot] { read(bytes, at: offset, mark, connection, fromHigh) }
    case .gap(let length, let reason):
      guard let connection = connections[slot] else { return }
      let reason: GapRecord.Reason =
        switch reason {
        case .lost: .lost
        case .truncated: .truncated
        case .undecrypted: .undecrypted
        }
      if holds(.init(length: length, reason: reason), at: offset, mark, connection, fromHigh) { return }
      if reading(connection, fromHigh) == .undecided { decide(connection, fromHigh, isFinal: true) }
      readGap(length, reason, at: offset, mark, connection, fromHigh)
    case .end: if let connection = connections[slot] { end(connection, fromHigh) }
    }
  }

  /// The connection turned out to be TLS: held and later bytes go through a decryptor.
  mutating func beginTLS(_ connection: Connection, _ first: RawSpan, fromHigh: Bool) {
    if connection.clientIsHigh == nil, let isClient = TLSRecognition.isFromClient(first) {
      connection.clientIsHigh = fromHigh == isClient
    }
    if connection.clientIsHigh == nil {
      connection.clientIsHigh = connection.flow.map { $0.high.port > $0.low.port } ?? false
    }
    if connection.service == .unknown { connection.decideByPorts(options.ports) }
    // A hello begins the content too, whether or not the packets before it were captured.
    connection.startWasCaptured = TLSRecognition.isFromClient(first) != nil
    let tls = TLSStream(secrets: secrets, limits: options.tls)
    connection.tls = tls
    connection.reading = .undecided
    tlsConnections += 1
    clientStreams[connection.slot] = ClientStream(connection: connection.number, options: options)
    clientStreams[connection.slot].tls = tls
    clientStreams[connection.slot].clientIsHigh = connection.clientIsHigh ?? false
    let point = CapturePoint(time: connection.opened.nanoseconds, packet: 0)
    for (isHigh, missing) in [(false, connection.directions.low.missing), (true, connection.directions.high.missing)]
    where missing > 0 {
      tls.gap(length: missing, reason: .lost, from: connection.side(fromHigh: isHigh), at: point) { _, _, _, _ in }
    }
    for (piece, isHigh) in connection.takeHeld() {
      tls.receive(
        piece.bytes.rawBytes, from: connection.side(fromHigh: isHigh),
        at: CapturePoint(piece.mark)
      ) { consumePlaintext($0, $1, $2, $3, connection.slot) }
    }
  }
}
