import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import Records
import TLSDecryption

/// Makes records from reassembled bytes.
///
/// The dissector receives the events of `TCPReassembler`, or the pieces of a raw dump. For each connection it decides
/// which end is the client and what the bytes are, divides the bytes into records, and applies the session rules.
struct Dissector {
  /// The state of more than these is not in the processor's cache when it is needed.
  private static var manyConnections: Int { 512 }

  var output: RecordEmitter
  /// Whether the sink takes the bytes of connections over HTTP/2.
  let takesHTTP2: Bool
  let options: DissectionOptions
  let secrets: Secrets
  var connections: [Connection?] = []
  /// Ended connections whose secrets may still come, with their client streams.
  var parked: [(connection: Connection, clientStream: ClientStream)] = []
  /// The client stream of each connection, at the same index.
  let clientStreams: ClientStreams
  /// Connections that turned out to be TLS and are not closed.
  var tlsConnections = 0
  /// The limit on the memory of all connections.
  var memory: MemoryBudget

  init(sink: any RecordSink, options: DissectionOptions, secrets: Secrets) {
    output = RecordEmitter(sink: sink)
    takesHTTP2 = sink.takesHTTP2
    self.options = options
    self.secrets = secrets
    clientStreams = ClientStreams(options: options)
    memory = MemoryBudget(limit: options.maximumMemory)
  }

  // MARK: connections

  private mutating func consume(_ event: ConnectionEvent, slot: Int, time: Timestamp, packet: Int) {
    if case .opened(let flow) = event {
      _ = open(slot, flow, time, packet: packet)
      return
    }
    guard let connection = connections[slot] else { return }
    switch event {
    case .opened: break
    case .initiator(let direction):
      connection.startWasCaptured = true
      if connection.clientIsHigh == nil { connection.clientIsHigh = direction == .reverse }
    case .closing(let direction, let isReset):
      connection.note(.init(isHigh: direction == .reverse, isReset: isReset, time: time, packet: packet))
    case .conflict(_, _, let length): connection.conflictingBytes += length
    case .alsoSeen(let flow, let isFlipped): connection.noteView(flow, isFlipped: isFlipped)
    case .limit(let kind): if !connection.limits.contains(kind) { connection.limits.append(kind) }
    case .unfinished(let direction, let since, let until):
      let open = ConnectionRecord.OpenEnd(since: since, until: until)
      if direction == .reverse { connection.unfinished.high = open } else { connection.unfinished.low = open }
    case .closed:
      if !park(connection) { close(connection) }
      connections[slot] = nil
      clientStreams.clear(slot)
    }
  }

  /// Begins a connection; `flow` is `nil` for a raw dump.
  mutating func open(_ slot: Int, _ flow: Flow?, _ time: Timestamp, packet: Int) -> Connection {
    output.summary.connections += 1
    let connection = Connection(
      number: output.summary.connections, slot: slot, flow: flow, opened: time, firstPacket: packet)
    while connections.count <= slot {
      connections.append(nil)
      clientStreams.append()
    }
    connections[slot] = connection
    clientStreams[slot] = ClientStream(connection: connection.number, options: options)
    output.sink.opened(connection: connection.number, at: time)
    return connection
  }

  /// A raw dump needs no deciding: its low end is the client, and it begins with a record.
  ///
  /// - Parameter startsHTTP2: a dump of HTTP/2 begins with the connection.
  mutating func beginDump(_ connection: Connection, _ contents: DumpContents, startsHTTP2: Bool) {
    connection.startWasCaptured = true
    connection.clientIsHigh = false
    switch contents {
    case .gateway, .responses: connection.service = .gateway
    case .feedback: connection.service = .feedback
    case .http2, .http2Responses:
      connection.startWasCaptured = startsHTTP2
      return beginHTTP2(connection)
    }
    clientStreams[connection.slot].readings = connection.beginReading(options.limits)
  }

  mutating func count(_ bytes: Int, _ connection: Connection, fromClient: Bool) {
    clientStreams[connection.slot].count(bytes, fromHigh: !fromClient)
  }

  /// Ends all open connections in order, after an interruption.
  mutating func endAll() {
    for connection in connections.compactMap({ $0 }).sorted(by: { $0.number < $1.number }) {
      close(connection)
      connections[connection.slot] = nil
    }
    retryParked(isFinal: true)
  }

  mutating func close(_ connection: Connection) {
    decideFinally(connection)
    if let tls = connection.tls {
      tls.finish(at: CapturePoint(time: connection.closed.nanoseconds, packet: 0)) {
        consumePlaintext($0, $1, $2, $3, connection.slot)
      }
      // Its plaintext may have been too short to decide.
      decideFinally(connection)
    }
    finish(connection, fromHigh: false)
    finish(connection, fromHigh: true)
    releaseResponses(connection)
    endHTTP2(connection)
    clientStreams[connection.slot].reportFates(atEnd: true, to: &output.sink)
    let record = record(of: connection)
    output.sink.receive(record)
    output.summary.noteEnd(of: record)
    settle(connection, record.fates)
    if connection.tls != nil { tlsConnections -= 1 }
  }

  /// Counts the fates of a connection's notifications that are decided now.
  mutating func settle(_ connection: Connection, _ fates: FateCounts) {
    func settle(_ count: Int, _ settled: inout Int, _ sum: inout Int) {
      guard count > settled else { return }
      sum += count - settled
      settled = count
    }
    settle(fates.accepted, &connection.settled.accepted, &output.summary.settled.accepted)
    settle(fates.rejected, &connection.settled.rejected, &output.summary.settled.rejected)
    settle(fates.discarded, &connection.settled.discarded, &output.summary.settled.discarded)
    settle(fates.unknown, &connection.settled.unknown, &output.summary.settled.unknown)
  }

  // MARK: streams

  @inline(__always)
  mutating func consume(_ batch: borrowing EventBatch) {
    batch.forEachEvent { event, position, number in
      prepare(for: number, of: batch)
      consume(event, at: position)
    }
  }

  /// Prefetches what the next event needs: the client stream, and later the sink's state of its connection.
  @inline(__always)
  mutating func prepare(for number: Int, of batch: borrowing EventBatch) {
    guard clientStreams.count > Self.manyConnections else { return }
    if let slot = batch.slot(ofEvent: number + 8) { clientStreams.prefetch(slot) }
    if let slot = batch.slot(ofEvent: number + 4), slot < clientStreams.count {
      clientStreams[slot].prefetch()
      output.sink.prepare(for: clientStreams[slot].connection)
    }
  }

  mutating func consume(_ event: borrowing StreamEvent, at position: StreamPosition) {
    switch event {
    case .connection(let change):
      consume(copy change, slot: position.slot, time: position.time, packet: position.packet)
    case .bytes(let bytes):
      if let tls = clientStreams[position.slot].tls { return consume(bytes, at: position, through: tls) }
      let mark = CapturePosition(position)
      // The usual case accesses only the client stream.
      if clientStreams[position.slot].readWholeFrames(
        bytes, at: position.offset, fromHigh: position.fromHigh, mark, into: &output)
      {
        return
      }
      if let connection = connections[position.slot] {
        read(bytes, at: position.offset, mark, connection, position.fromHigh)
      }
    case .gap(let length, let reason):
      guard let connection = connections[position.slot] else { return }
      let mark = CapturePosition(position)
      connection.missingBytes += length
      if let tls = connection.tls {
        tls.gap(
          length: length, reason: reason == .truncated ? .truncated : .lost,
          from: connection.side(fromHigh: position.fromHigh), at: CapturePoint(position)
        ) { consumePlaintext($0, $1, $2, $3, position.slot) }
        return
      }
      let gap = Connection.Gap(length: length, reason: reason == .truncated ? .truncated : .lost)
      if holds(gap, at: position.offset, mark, connection, position.fromHigh) { return }
      if reading(connection, position.fromHigh) == .undecided { decide(connection, position.fromHigh, isFinal: true) }
      noteMissing(length, connection, position.fromHigh)
      readGap(length, gap.reason, at: position.offset, mark, connection, position.fromHigh)
    case .end:
      guard let connection = connections[position.slot] else { return }
      if let tls = connection.tls {
        tls.end(from: connection.side(fromHigh: position.fromHigh), at: CapturePoint(position)) {
          consumePlaintext($0, $1, $2, $3, position.slot)
        }
      } else {
        end(connection, position.fromHigh)
      }
    }
  }

  mutating func end(_ connection: Connection, _ fromHigh: Bool) {
    // A direction that ends without a byte decides nothing: the other direction may still.
    let direction = fromHigh ? connection.directions.high : connection.directions.low
    if reading(connection, fromHigh) == .undecided && !direction.held.isEmpty {
      decide(connection, fromHigh, isFinal: true)
    }
    finish(connection, fromHigh: fromHigh)
  }

  func reading(_ connection: Connection, _ fromHigh: Bool) -> ClientStream.ReadingMode {
    clientStreams[connection.slot].reading(fromHigh: fromHigh)
  }

  mutating func read(
    _ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Connection, _ fromHigh: Bool
  ) {
    let reading = reading(connection, fromHigh)
    if reading != .undecided && connection.mayTurnOutToBeTLS(clientStreams[connection.slot])
      && TLSRecognition.isRecord(bytes)
    {
      noteOtherPreamble(bytes.byteCount, connection, fromHigh)
      // A capture that begins inside a TLS record, or without the first one, is recognised at the next record.
      hold(bytes, at: offset, mark, connection, fromHigh)
      return beginTLS(connection, bytes, fromHigh: fromHigh)
    }
    switch reading {
    case .gateway: readGateway(bytes, at: offset, mark, connection)
    case .responses: readResponses(bytes, at: offset, mark, connection)
    case .feedback: readFeedback(bytes, at: offset, mark, connection)
    case .http2: readHTTP2(bytes, at: offset, mark, connection, fromHigh)
    case .messages: readMessages(bytes, at: offset, mark, connection, fromHigh)
    case .opaque: return
    case .undecided:
      hold(bytes, at: offset, mark, connection, fromHigh)
      decide(connection, fromHigh, isFinal: false)
    }
  }

  mutating func readGateway(_ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Connection) {
    clientStreams[connection.slot].read(bytes, at: offset, mark, into: &output)
  }

  // MARK: gaps, ends, damage

  func noteMissing(_ length: Int, _ connection: Connection, _ fromHigh: Bool) {
    if fromHigh {
      connection.directions.high.missing += length
    } else {
      connection.directions.low.missing += length
    }
  }

  mutating func readGap(
    _ length: Int, _ reason: GapRecord.Reason, at offset: Int, _ mark: CapturePosition, _ connection: Connection,
    _ fromHigh: Bool
  ) {
    switch (reading(connection, fromHigh), connection.reading) {
    case (.gateway, _):
      clientStreams[connection.slot].gap(at: offset, length: length, mark, into: &output)
    case (.responses, .binary(let reader)):
      reader.framer.gap(at: offset, length: length)
      readFoundResponses(connection)
    case (.feedback, .feedback(let reader)):
      reader.framer.gap(at: offset, length: length)
      readFoundFeedback(connection)
    case (.http2, .http2(let reader)):
      // Its session says what the gap costs.
      return readHTTP2Gap(length, reason, at: offset, mark, connection, fromHigh, reader)
    case (.messages, .messages(let reader)):
      return readMessageGap(length, reason, at: offset, mark, connection, fromHigh, reader)
    default: break
    }
    // Gaps of other protocols are not recorded.
    guard connection.service == .gateway || connection.service == .feedback else { return }
    output.receive(
      GapRecord(
        place: RecordPlace(
          connection: connection.number, time: mark.time, packet: mark.packet, offset: offset, length: length),
        direction: connection.direction(fromHigh: fromHigh), reason: reason))
  }

  mutating func finish(_ connection: Connection, fromHigh: Bool) {
    switch (reading(connection, fromHigh), connection.reading) {
    case (.gateway, _):
      let mark = CapturePosition(time: connection.closed, packet: 0)
      clientStreams[connection.slot].finish(mark, into: &output)
    case (.responses, .binary(let reader)):
      readWholeAnswer(connection)
      reader.framer.finish()
      readFoundResponses(connection)
    case (.feedback, .feedback(let reader)):
      reader.framer.finish()
      readFoundFeedback(connection)
    case (.http2, .http2(let reader)): finishHTTP2(connection, fromHigh: fromHigh, reader)
    case (.messages, .messages(let reader)): finishMessages(connection, fromHigh: fromHigh, reader)
    default: break
    }
  }
}
