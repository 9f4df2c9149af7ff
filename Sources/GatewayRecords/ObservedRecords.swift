import BinaryProtocol
import Dissection
import GatewaySimulator
import PacketCapture
import Records
import TLSDecryption
import TLSTransport

/// Makes records of the events of a simulator's connections.
struct ObservedRecords {
  private var streams: ObservedStreams
  /// The time of the latest event.
  private var latest = Timestamp.none
  /// Notifications in records that the sink has flushed.
  private(set) var written = 0
  /// Whether the sink has written everything so far.
  private let isWriting: () -> Bool
  /// Connections that are open, or of which notifications wait for devices.
  private var standings: [UInt64: Standing] = [:]

  private struct Standing {
    /// The connection's number in records.
    let number: Int
    /// Fates are then those that its answers tell, as in a recording.
    let speaksHTTP2: Bool
    /// Notifications whose outcome for their device is to come.
    var waiting = 0
    var isClosed = false
  }

  init(into output: RecorderOutput, source: String, options: DissectionOptions) {
    streams = ObservedStreams(into: output.sink, options: options)
    isWriting = output.isWriting
    streams.begin(source: source)
  }

  var summary: SummaryRecord { streams.summary }

  mutating func receive(_ item: EventQueue.Item) {
    switch item {
    case .event(let event): receive(event)
    case .request: break
    case .missed(let connection, let missed):
      let time = Timestamp(nanoseconds: missed.time)
      streams.miss(missed.received, .client, accepted: missed.accepted, of: connection, at: time)
      streams.miss(missed.sent, .server, accepted: 0, of: connection, at: time)
    }
  }

  private mutating func receive(_ event: ObservedEvent) {
    let (number, time) = (event.connection, Timestamp(nanoseconds: event.time))
    latest = max(latest, time)
    switch event.change {
    case .opened(let opening): open(number, opening, resuming: nil, at: time)
    case .received(let bytes, let decision):
      announce(number, decision)
      streams.receive(bytes.readableBytesSpan, .client, of: number, at: time)
      settle(number, decision)
      standings[number]?.waiting += decision.stored
    case .sent(let bytes): streams.receive(bytes.readableBytesSpan, .server, of: number, at: time)
    case .closing(let byPeer, let isReset):
      streams.noteClosing(number, by: byPeer ? .client : .server, isReset: isReset, at: time)
    case .closed(let decision):
      settle(number, decision)
      streams.close(number, at: time)
      standings[number]?.isClosed = true
      dropStanding(of: number)
    case .devices(let outcomes): for outcome in outcomes { receive(outcome) }
    }
  }

  private mutating func open(
    _ number: UInt64, _ opening: ObservedEvent.Opening, resuming standing: ObservedSession?, at time: Timestamp
  ) {
    streams.open(
      number, opening.service == .gateway ? .gateway : .feedback, speaksHTTP2: opening.service == .http2,
      resuming: standing, from: Self.endpoint(opening.client), to: Self.endpoint(opening.server),
      tls: opening.tls.map(TLSSummary.init), at: time)
    guard let record = streams.recordNumber(of: number) else { return }
    standings[number] = Standing(number: record, speaksHTTP2: opening.service == .http2)
  }

  /// Begins a connection over HTTP/2 in its middle.
  ///
  /// - Parameters:
  ///   - event: its opening.
  ///   - standing: how far it was read.
  ///   - missed: the bytes of before that count as left out.
  mutating func resume(_ event: ObservedEvent, _ standing: ObservedSession, _ missed: EventQueue.Missed) {
    guard case .opened(let opening) = event.change else { return }
    let time = Timestamp(nanoseconds: missed.time)
    open(event.connection, opening, resuming: standing, at: Timestamp(nanoseconds: event.time))
    streams.noteLeftOut(missed.received, .client, of: event.connection, at: time)
    streams.noteLeftOut(missed.sent, .server, of: event.connection, at: time)
  }

  private mutating func receive(_ outcome: DeviceOutcome) {
    let number = outcome.origin.connection
    let standing = standings[number]
    streams.receive(
      DeliveryRecord(
        connection: standing?.number, index: standing.map { _ in outcome.origin.index },
        time: Timestamp(nanoseconds: outcome.time * 1_000_000), outcome: .init(outcome.kind), token: outcome.token))
    guard outcome.kind != .uninstalled else { return }
    standings[number]?.waiting -= 1
    dropStanding(of: number)
  }

  /// An outcome may be told before the notification; when events were left out, some are missing here.
  private mutating func dropStanding(of number: UInt64) {
    if let standing = standings[number], standing.isClosed, standing.waiting <= 0 { standings[number] = nil }
  }

  private mutating func announce(_ number: UInt64, _ decision: ObservedEvent.Decision) {
    guard standings[number]?.speaksHTTP2 == false else { return }
    streams.announce(
      number, accepted: decision.accepted, rejects: decision.rejects, discards: decision.discardsRest)
  }

  private mutating func settle(_ number: UInt64, _ decision: ObservedEvent.Decision) {
    guard standings[number]?.speaksHTTP2 == false else { return }
    streams.settle(
      number, accepted: decision.acceptedInAll, rejects: decision.rejects, discards: decision.discardsRest)
  }

  /// Flushes the sink.
  mutating func flush() {
    streams.pause()
    noteWritten()
  }

  /// - Parameters:
  ///   - end: the time until which connections were observed.
  ///   - lost: notifications of connections that were not observed at all.
  mutating func finish(observedUntil end: Timestamp, lost: Int) {
    streams.finish(at: latest, observedUntil: end, lost: lost)
    noteWritten()
  }

  private mutating func noteWritten() { if isWriting() { written = streams.summary.notifications } }

  /// An address that is not known is 0.0.0.0:0.
  private static func endpoint(_ text: String) -> Endpoint {
    Endpoint(text) ?? Endpoint(address: IPAddress(v4: 0), port: 0)
  }
}

extension DeliveryRecord.Outcome {
  init(_ kind: DeviceOutcome.Kind) {
    self =
      switch kind {
      case .delivered: .delivered
      case .coalesced: .coalesced
      case .expired: .expired
      case .dropped: .dropped
      case .uninstalled: .uninstalled
      case .stored: .stored
      }
  }
}

extension TLSSummary {
  /// The parameters that a gateway negotiated with a client.
  init(_ info: TLSConnectionInfo) {
    self.init()
    version = info.version
    if info.suiteNumber != 0 {
      let suite = CipherSuite(code: info.suiteNumber)
      (self.suite, keyExchange) = (suite, suite.keyExchange)
    }
    isResumed = info.isResumed
    chosenProtocol = info.applicationProtocol
    clientSubject = info.peer?.subject
  }
}
