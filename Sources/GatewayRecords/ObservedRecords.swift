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
  /// Notifications in records that the sink has passed on.
  private(set) var written = 0

  init(into sink: any RecordSink, source: String, options: DissectionOptions) {
    streams = ObservedStreams(into: sink, options: options)
    streams.begin(source: source)
  }

  var summary: SummaryRecord { streams.summary }

  mutating func receive(_ item: EventQueue.Item) {
    switch item {
    case .event(let event): receive(event)
    case .missed(let connection, let missed):
      let time = Timestamp(nanoseconds: missed.time)
      streams.miss(missed.received, .client, notifications: missed.notifications, of: connection, at: time)
      streams.miss(missed.sent, .server, notifications: 0, of: connection, at: time)
    }
  }

  private mutating func receive(_ event: ObservedEvent) {
    let (number, time) = (event.connection, Timestamp(nanoseconds: event.time))
    latest = max(latest, time)
    switch event.change {
    case .opened(let opening):
      streams.open(
        number, opening.service == .gateway ? .gateway : .feedback, from: Self.endpoint(opening.client),
        to: Self.endpoint(opening.server), tls: opening.tls.map(TLSSummary.init), at: time)
    case .received(let bytes, let decision):
      streams.announce(
        number, accepted: decision.accepted, rejects: decision.rejectsNext, discards: decision.ending != nil)
      streams.receive(bytes.readableBytesSpan, .client, of: number, at: time)
      streams.settle(number, accepted: decision.acceptedInAll, ending: decision.ending)
    case .sent(let bytes): streams.receive(bytes.readableBytesSpan, .server, of: number, at: time)
    case .closing(let byPeer, let isReset):
      streams.noteClosing(number, by: byPeer ? .client : .server, isReset: isReset, at: time)
    case .closed(let decision):
      streams.settle(number, accepted: decision.acceptedInAll, ending: decision.ending)
      streams.close(number, at: time)
    }
  }

  /// Has the sink pass on what it has buffered.
  mutating func pause() {
    streams.pause()
    noteWritten()
  }

  mutating func finish() {
    streams.finish(at: latest)
    noteWritten()
  }

  private mutating func noteWritten() { if streams.isOpen { written = streams.summary.notifications } }

  /// An address that is not known is 0.0.0.0:0.
  private static func endpoint(_ text: String) -> Endpoint {
    Endpoint(text) ?? Endpoint(address: IPAddress(v4: 0), port: 0)
  }
}

extension TLSSummary {
  /// What the gateway knows of a connection's TLS.
  init(_ info: TLSConnectionInfo) {
    self.init()
    version = info.version
    if info.suiteNumber != 0 {
      let suite = CipherSuite(code: info.suiteNumber)
      (self.suite, keyExchange) = (suite, suite.keyExchange)
    }
    isResumed = info.isResumed
    clientSubject = info.peer?.subject
  }
}
