import Analysis
import Bytes
import Dissection
import GatewaySimulator
import Measurement
import NIOCore
import PacketCapture
import ProviderAPI
import Records
import Synchronization

/// The latest events of a simulator's connections, in bounded memory: what a test asks for while the gateway runs.
///
/// Above its limit the oldest events are forgotten. Of a connection whose beginning is forgotten, the history knows how
/// much it lacks, so that nothing is claimed that the forgotten part may refute.
package final class EventHistory: Sendable {
  /// One item of the history.
  struct Entry: Sendable {
    var item: EventQueue.Item
    /// The number of its first notification among all that were recorded, from 1, and how many it has.
    var first = 0
    var count = 0
    /// The topic of its connection; `nil` if that shows none. Over HTTP/2: that of requests without one.
    var topic: String?
    /// Its notifications over HTTP/2, and their bytes.
    var requests: [ReceivedRequest] = []
    var requestBytes: [UInt8] = []
    var bytes: Int
  }

  /// A connection that is open.
  fileprivate struct Open {
    let opening: ObservedEvent
    var topic: String?
    /// `nil`: it is not over HTTP/2.
    var requests: RequestJoin?
    /// Notifications that were accepted so far, and until the latest reset.
    var accepted = 0
    var acceptedBefore = 0
  }

  /// A connection whose beginning is forgotten.
  fileprivate struct Forgotten {
    var opening: ObservedEvent
    /// Over HTTP/2: what the rest refers to.
    var standing: ObservedSession?
    var missed = EventQueue.Missed()
    var notifications = 0
  }

  fileprivate struct State {
    var entries = EntryLog()
    var heldBytes = 0
    /// The number of the latest notification.
    var last = 0
    var forgottenThrough = 0
    /// The number of the latest notification at the latest reset.
    var lastAtReset = 0
    var open: [UInt64: Open] = [:]
    var forgotten: [UInt64: Forgotten] = [:]
    /// Notifications of connections of which nothing is left.
    var lost = 0
    /// Something was forgotten since the latest reset.
    var isCut = false
    /// Notifications that the recorder had left out at the latest reset, and the part of them of unknown connections.
    var leftOut = (all: 0, unseen: 0)
  }

  /// The memory of an entry without its bytes.
  fileprivate static let entryBytes = 256

  private let maximumBytes: Int
  private let source: String
  private let plainTopic: String?
  private let dissection: DissectionOptions
  private let state = Mutex(State())

  /// - Parameters:
  ///   - source: the name of the gateway in records.
  ///   - plainTopic: the topic of connections without TLS.
  init(maximumBytes: Int, source: String, plainTopic: String?, dissection: DissectionOptions) {
    (self.maximumBytes, self.source, self.dissection) = (maximumBytes, source, dissection)
    self.plainTopic = plainTopic
  }

  // MARK: keeping

  func append(_ items: [EventQueue.Item]) {
    state.withLock { state in
      for item in items { state.append(item, plainTopic, dissection.http2) }
      // The latest read stays, even if it alone is more.
      while state.heldBytes > maximumBytes, state.entries.count > 1, let entry = state.entries.popFirst() {
        state.forget(entry, dissection.http2)
      }
    }
  }

  /// Forgets all notifications. Connections that are open are known, with nothing that came before.
  ///
  /// - Parameter leftOut: notifications that the recorder has left out so far.
  func reset(leftOut: (all: Int, unseen: Int)) {
    state.withLock { state in
      (state.entries, state.heldBytes, state.lost, state.forgotten) = (EntryLog(), 0, 0, [:])
      (state.forgottenThrough, state.lastAtReset, state.leftOut) = (state.last, state.last, leftOut)
      state.isCut = false
      for (number, connection) in state.open {
        state.open[number]?.acceptedBefore = connection.accepted
        state.forgotten[number] = Forgotten(
          opening: connection.opening, standing: connection.requests?.reading)
      }
    }
  }

  // MARK: asking

  /// A view of the history at one time.
  struct View {
    let entries: EntryLog
    /// The number of the latest notification that was recorded; 0 before the first.
    let last: Int
    /// Notifications up to this number are forgotten, and up to the other one by a reset.
    let forgottenThrough: Int
    let lastAtReset: Int
  }

  var view: View {
    state.withLock {
      View(
        entries: $0.entries, last: $0.last, forgottenThrough: $0.forgottenThrough, lastAtReset: $0.lastAtReset)
    }
  }

  /// The verdict on the providers, from what is kept: what is forgotten may have been anything.
  ///
  /// Cost: that of dissecting all that is kept again.
  ///
  /// - Parameters:
  ///   - end: until when connections were observed, in nanoseconds since 1970.
  ///   - leftOut: notifications that the recorder has left out so far.
  /// - Throws: when a temporary file cannot be used.
  func verdict(
    _ options: ProviderInspection.Options, observedUntil end: Int64, leftOut: (all: Int, unseen: Int)
  ) throws(UnnamedFile.Failure) -> ProviderVerdict? {
    let state = state.withLock { $0 }
    let output = RecorderOutput(judging: options)
    var records = ObservedRecords(into: output, source: source, options: dissection)
    var cut = 0
    for (number, connection) in state.forgotten.sorted(by: { $0.key < $1.key }) {
      if let standing = connection.standing {
        if !connection.missed.isEmpty { cut += standing.unfinishedNotifications }
        records.resume(connection.opening, standing.restarted, connection.missed)
        continue
      }
      records.receive(.event(connection.opening))
      if !connection.missed.isEmpty { records.receive(.missed(connection: number, connection.missed)) }
    }
    state.entries.each {
      records.receive($0.item)
      return true
    }
    records.finish(
      observedUntil: Timestamp(nanoseconds: end), lost: state.lost + leftOut.unseen - state.leftOut.unseen)
    var verdict = try output.verdict()
    if state.isCut { verdict?.isCut = true }
    verdict?.notObserved = cut + state.forgottenThrough - state.lastAtReset + leftOut.all - state.leftOut.all
    return verdict
  }
}

extension EventHistory.State {
  fileprivate mutating func append(
    _ item: EventQueue.Item, _ plainTopic: String?, _ limits: ProviderSession.Limits
  ) {
    var entry = EventHistory.Entry(item: item, bytes: EventHistory.entryBytes)
    switch item {
    case .request: return
    case .missed(let number, let missed):
      entry.topic = open[number]?.topic
      open[number]?.accepted += missed.accepted
      open[number]?.requests?.miss(missed)
    case .event(var event):
      let number = event.connection
      switch event.change {
      case .opened(let opening) where opening.service == .http2:
        let topics = opening.tls?.peer?.topics ?? []
        open[number] = EventHistory.Open(
          opening: event, topic: topics.count == 1 ? topics[0] : nil, requests: RequestJoin(limits))
      case .opened(let opening):
        let topic = opening.tls == nil ? plainTopic : opening.tls?.peer?.topic
        open[number] = EventHistory.Open(opening: event, topic: topic)
      case .received(let bytes, var decision):
        entry.topic = open[number]?.topic
        if open[number]?.requests == nil {
          (entry.first, entry.count) = (last + 1, decision.received)
          last += decision.received
        } else {
          open[number]?.requests?.receive(
            bytes.readableBytesSpan, .client, decision.served, at: Timestamp(nanoseconds: event.time))
          takeRequests(number, into: &entry)
          decision.served = []
        }
        open[number]?.accepted = decision.acceptedInAll
        decision.acceptedInAll -= open[number]?.acceptedBefore ?? 0
        event = event.with(.received(bytes.compact, decision))
      case .sent(let bytes):
        open[number]?.requests?.receive(bytes.readableBytesSpan, .server, at: Timestamp(nanoseconds: event.time))
        takeRequests(number, into: &entry)
        event = event.with(.sent(bytes.compact))
      case .closing: break
      // No question is about them.
      case .devices: return
      case .closed(var decision):
        decision.acceptedInAll -= open[number]?.acceptedBefore ?? 0
        open[number]?.requests?.finish(decision.served, at: Timestamp(nanoseconds: event.time))
        takeRequests(number, into: &entry)
        decision.served = []
        event = event.with(.closed(decision))
        open[number] = nil
      }
      entry.bytes += event.heldBytes
      entry.item = .event(event)
    }
    entries.append(entry)
    heldBytes += entry.bytes
  }

  /// Numbers the notifications over HTTP/2 that were joined with their decisions.
  private mutating func takeRequests(_ number: UInt64, into entry: inout EventHistory.Entry) {
    guard let (requests, bytes) = open[number]?.requests?.take(), !requests.isEmpty else { return }
    (entry.requests, entry.requestBytes, entry.topic) = (requests, bytes, open[number]?.topic)
    (entry.first, entry.count) = (last + 1, requests.count)
    last += requests.count
    entry.bytes += bytes.count + requests.count * MemoryLayout<ReceivedRequest>.stride
  }

  /// Keeps of an entry that was removed what the rest of its connection needs.
  fileprivate mutating func forget(_ entry: EventHistory.Entry, _ limits: ProviderSession.Limits) {
    heldBytes -= entry.bytes
    isCut = true
    if entry.count > 0 { forgottenThrough = entry.first + entry.count - 1 }
    switch entry.item {
    case .request: break
    case .missed(let number, let missed):
      let time = Timestamp(nanoseconds: missed.time)
      forgotten[number]?.standing?.miss(missed.received, .client, at: time)
      forgotten[number]?.standing?.miss(missed.sent, .server, at: time)
      forgotten[number]?.missed.add(missed)
    case .event(let event):
      let time = Timestamp(nanoseconds: event.time)
      switch event.change {
      case .opened(let opening):
        forgotten[event.connection] = EventHistory.Forgotten(
          opening: event, standing: opening.service == .http2 ? ObservedSession(limits: limits) : nil)
      case .received(let bytes, let decision):
        forgotten[event.connection]?.standing?.receive(bytes.readableBytesSpan, .client, at: time)
        forgotten[event.connection]?.notifications += decision.received
        forgotten[event.connection]?.missed.add(
          .init(received: bytes.readableBytes, accepted: decision.accepted, time: event.time))
      case .sent(let bytes):
        forgotten[event.connection]?.standing?.receive(bytes.readableBytesSpan, .server, at: time)
        forgotten[event.connection]?.missed.add(.init(sent: bytes.readableBytes, time: event.time))
      case .closing, .devices: break
      case .closed: lost += forgotten.removeValue(forKey: event.connection)?.notifications ?? 0
      }
    }
  }
}

extension EventQueue.Missed {
  fileprivate var isEmpty: Bool { received == 0 && sent == 0 }

  fileprivate mutating func add(_ later: EventQueue.Missed) {
    received += later.received
    accepted += later.accepted
    sent += later.sent
    time = later.time
  }
}

extension ObservedEvent {
  fileprivate func with(_ change: Change) -> ObservedEvent {
    ObservedEvent(connection: connection, time: time, change: change)
  }
}

extension ByteBuffer {
  /// The readable bytes in memory of about their length: a slice keeps all of the buffer that was read into.
  fileprivate var compact: ByteBuffer {
    2 * readableBytes < storageCapacity ? ByteBuffer(bytes: readableBytesView) : self
  }
}
