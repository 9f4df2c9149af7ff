import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import Records
import TLSDecryption

/// Makes records of connections that one of their ends describes, such as a gateway: their plaintext piece by piece, and
/// what the gateway decided.
///
/// The calls for one connection are in the order of its life; those for several may alternate. Records have no packets.
///
/// ```swift
/// var streams = ObservedStreams(into: writer, options: DissectionOptions())
/// streams.begin(source: "127.0.0.1:2195")
/// streams.open(1, .gateway, from: client, to: server, tls: nil, at: time)
/// streams.receive(frames, .client, of: 1, at: time)
/// streams.settle(1, accepted: 64, rejects: false, discards: false)
/// streams.close(1, at: time)
/// streams.finish(at: time, observedUntil: time)
/// ```
package struct ObservedStreams {
  /// A connection's place among those of the dissector, and what its ends have sent.
  private struct Place {
    let slot: Int
    let client: FlowDirection
    var offsets = StreamOffsets()
    /// Accepted notifications that were missed.
    var missedAccepted = 0

    /// Sequence numbers begin with 0, and the server has received all that the client has sent.
    func position(_ sender: Direction, _ offset: Int, _ time: Timestamp) -> StreamPosition {
      var position = StreamPosition(
        slot: slot, direction: sender == .client ? client : client.opposite, offset: offset, time: time, packet: 0)
      position.sequence = UInt32(truncatingIfNeeded: offset)
      if sender == .server { position.acknowledgement = UInt32(truncatingIfNeeded: offsets.client) }
      return position
    }
  }

  private var dissector: Dissector
  private var source = ""
  private var places: [UInt64: Place] = [:]
  private var freeSlots: [Int] = []

  /// - Parameters:
  ///   - sink: receives the records.
  ///   - options: the limits on what connections hold.
  package init(into sink: any RecordSink, options: DissectionOptions) {
    dissector = Dissector(sink: sink, options: options, secrets: Secrets())
  }

  /// The totals so far.
  package var summary: SummaryRecord { dissector.output.summary }

  /// Whether the sink wants further records.
  package var isOpen: Bool { dissector.output.sink.isOpen }

  /// Announces where the connections are observed; to be called once, before they open.
  package mutating func begin(source: String) {
    self.source = source
    dissector.output.sink.receive(CaptureRecord(source: source, format: .gateway, linkTypes: [], isObserved: true))
  }

  /// Begins a connection.
  ///
  /// - Parameters:
  ///   - number: identifies it in later calls; a number that is in use is ignored.
  ///   - service: what the client connected to; of HTTP/2, the requests tell it.
  ///   - speaksHTTP2: whether it is a connection over HTTP/2.
  ///   - standing: how far such a connection was read before; `nil`: it begins.
  ///   - tls: its TLS, with which the plaintext was encrypted; `nil` without TLS.
  package mutating func open(
    _ number: UInt64, _ service: Service, speaksHTTP2: Bool = false, resuming standing: ObservedSession? = nil,
    from client: Endpoint, to server: Endpoint, tls: TLSSummary?, at time: Timestamp
  ) {
    guard places[number] == nil else { return }
    let (flow, direction) = Flow.of(source: client, destination: server)
    let slot = freeSlots.popLast() ?? places.count
    let connection = dissector.open(slot, flow, time, packet: 0)
    connection.describe(speaksHTTP2 ? .other : service, clientIsHigh: direction == .reverse, tls: tls)
    if speaksHTTP2 {
      dissector.beginHTTP2(connection)
      if let standing {
        connection.reading = .http2(
          HTTP2Reader(standing.session, offsets: standing.offsets, dissector.options.http2))
      }
    } else {
      dissector.clientStreams[slot].readings = connection.beginReading(dissector.options.limits)
    }
    places[number] = Place(slot: slot, client: direction, offsets: standing?.offsets ?? StreamOffsets())
    if let subject = tls?.clientSubject {
      dissector.output.sink.presented(subject: subject, connection: connection.number)
    }
  }

  /// Reads the next bytes that an end has sent.
  package mutating func receive(
    _ bytes: RawSpan, _ sender: Direction, of number: UInt64, at time: Timestamp
  ) {
    guard let place = places[number], let offset = places[number]?.offsets.advance(sender, by: bytes.byteCount) else {
      return
    }
    let position = place.position(sender, offset, time)
    dissector.consume(.bytes(bytes), at: position)
    dissector.memory.add(bytes.byteCount)
    if dissector.memory.isDue { dissector.limitMemory(at: position) }
  }

  /// Tells the fates of the notifications in the client's next bytes, before these are read.
  ///
  /// - Parameters:
  ///   - accepted: how many of them are accepted, from the first on.
  ///   - rejects: whether the gateway rejected the next one.
  ///   - discards: whether it discarded all that follow.
  package mutating func announce(_ number: UInt64, accepted: Int, rejects: Bool, discards: Bool) {
    guard let place = places[number] else { return }
    let (connection, first) = dissector.clientStreams[place.slot].standing
    let rejected = first + accepted
    func announce(_ first: Int, through last: Int, _ fate: Fate) {
      guard last >= first else { return }
      dissector.output.sink.receiveEarly(FateRecord(connection: connection, first: first, last: last, fate: fate))
    }
    announce(first, through: rejected - 1, .accepted)
    if rejects { announce(rejected, through: rejected, .rejected) }
    if discards { announce(rejects ? rejected + 1 : rejected, through: .max, .discarded) }
  }

  /// Notes that bytes were not observed.
  ///
  /// - Parameter accepted: the number of accepted notifications in them.
  package mutating func miss(
    _ length: Int, _ sender: Direction, accepted: Int, of number: UInt64, at time: Timestamp
  ) {
    guard let place = places[number], length > 0, let offset = places[number]?.offsets.advance(sender, by: length)
    else {
      return
    }
    places[number]?.missedAccepted += accepted
    dissector.consume(.gap(length: length, reason: .lost), at: place.position(sender, offset, time))
  }

  /// Passes on that bytes are not in the records, which the connection's reader knows: those before it was resumed.
  package mutating func noteLeftOut(_ length: Int, _ sender: Direction, of number: UInt64, at time: Timestamp) {
    guard length > 0, let connection = recordNumber(of: number) else { return }
    dissector.output.receive(
      GapRecord(
        place: RecordPlace(connection: connection, time: time, packet: 0, offset: 0, length: length),
        direction: sender, reason: .lost))
  }

  /// Applies the gateway's decisions on all notifications so far.
  ///
  /// - Parameters:
  ///   - accepted: how many the gateway accepted, from the first on, with those that were missed.
  ///   - rejects: whether it rejected the one after these, which was in the bytes read last.
  ///   - discards: whether it discards everything else.
  package mutating func settle(_ number: UInt64, accepted: Int, rejects: Bool, discards: Bool) {
    guard let place = places[number] else { return }
    dissector.clientStreams[place.slot].session.settle(
      accepted: accepted - place.missedAccepted, rejects: rejects, discards: discards)
  }

  /// Notes that an end has closed its direction, or the connection.
  package mutating func noteClosing(_ number: UInt64, by sender: Direction, isReset: Bool, at time: Timestamp) {
    guard let place = places[number] else { return }
    dissector.connections[place.slot]?.note(
      .init(isHigh: (sender == .client) == (place.client == .reverse), isReset: isReset, time: time, packet: 0))
  }

  /// Ends a connection.
  package mutating func close(_ number: UInt64, at time: Timestamp) {
    guard let place = places.removeValue(forKey: number), let connection = dissector.connections[place.slot] else {
      return
    }
    connection.closed = max(connection.closed, time)
    dissector.close(connection)
    dissector.connections[place.slot] = nil
    dissector.clientStreams.clear(place.slot)
    freeSlots.append(place.slot)
  }

  /// The number in records of a connection that is open.
  package func recordNumber(of number: UInt64) -> Int? {
    places[number].flatMap { dissector.connections[$0.slot]?.number }
  }

  /// Passes on what became of a notification for its device.
  package mutating func receive(_ record: DeliveryRecord) { dissector.output.sink.receive(record) }

  /// Announces that nothing is observed for a moment: buffered output should be flushed.
  package mutating func pause() { dissector.output.sink.pause() }

  /// Ends the connections that are open, and passes on the totals. To be called once, at the end.
  ///
  /// - Parameters:
  ///   - time: the time of the last call.
  ///   - end: the time until which connections were observed, as long as nothing happened.
  ///   - lost: notifications of connections that were not observed at all.
  package mutating func finish(at time: Timestamp, observedUntil end: Timestamp, lost: Int = 0) {
    for number in places.keys.sorted() { close(number, at: time) }
    if lost > 0 {
      dissector.output.sink.receive(CaptureLossRecord(loss: CaptureLoss(interface: source, systemDropped: lost)))
    }
    var outcome = CaptureOutcome(source: source, format: .gateway)
    outcome.lastTime = max(time, end)
    dissector.output.sink.receive(outcome)
    dissector.output.sink.receive(dissector.output.summary)
    pause()
  }
}
