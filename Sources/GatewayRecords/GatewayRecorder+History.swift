import Analysis
import BinaryProtocol
import Bytes
import GatewaySimulator
import Measurement
import NIOCore
import ProviderAPI
import PushModel

/// What a gateway decided on a notification that it has received.
package struct ReceivedFacts: Sendable {
  /// Its number among all that the gateway has received, from 1, in the order of reading.
  package let number: Int
  /// When it was read, in nanoseconds since 1970.
  package let time: Int64
  package let connection: UInt64
  /// `nil`: the certificate, or the request over HTTP/2, names none.
  package let topic: String?
  package let fate: Fate
  /// Why it was rejected; `nil`: it was not, or over HTTP/2.
  package var rejection: Rejection?
  /// The HTTP status of its answer; `nil`: it has none, or over the binary protocol.
  package var status: Int?
  /// Why it was rejected over HTTP/2.
  package var reason: ProviderReason?
}

/// The fields of a notification that a gateway has received.
package struct ReceivedFields: Sendable {
  /// Of the binary protocol alone.
  package var identifier: UInt32?
  /// UNIX seconds.
  package var expiration: UInt64?
  package var priority: UInt8?
  package var token = ByteField()
  /// As much of it as is kept.
  package var payload = ByteField()
  package var payloadLength = 0
  /// The request over HTTP/2; `nil` over the binary protocol.
  package var request: ProviderRequest?

  init(_ fields: PushFields) {
    (identifier, expiration, priority) = (fields.identifier, fields.expiration.map(UInt64.init), fields.priority)
    (token, payload, payloadLength) = (fields.token, fields.payload, fields.payload.length)
  }

  init(_ request: ProviderRequest) {
    (expiration, priority, token) = (request.expiration, request.priority, request.token)
    (payload, payloadLength, self.request) = (request.payload, request.payloadLength, request)
  }

  /// Whether all of the payload is there.
  package var isPayloadWhole: Bool { request?.isPayloadWhole ?? true }
}

/// Which of the received notifications can be listed.
package struct ReceivedRange: Sendable {
  /// The number of the latest one; 0 before the first.
  package var last = 0
  /// Those up to this number are not kept any more.
  package var forgottenThrough = 0
  /// Those up to this number came before the latest reset; 0: there was none.
  package var lastAtReset = 0
}

/// Questions about the run so far, for a recorder that keeps a history.
extension GatewayRecorder {
  /// Shows the notifications that are kept, in the order of their numbers, until `body` returns `false`.
  ///
  /// Notifications that cannot be parsed are left out. Those that were read last may not be there yet; see `catchUp`.
  ///
  /// - Parameters:
  ///   - number: the notification after which to begin.
  ///   - body: is shown the fields, and the bytes that they are positions in.
  package func eachReceived(
    after number: Int, _ body: (ReceivedFacts, ReceivedFields, RawSpan) -> Bool
  ) -> ReceivedRange {
    guard let view = history?.view else { return ReceivedRange() }
    let range = ReceivedRange(
      last: view.last, forgottenThrough: view.forgottenThrough, lastAtReset: view.lastAtReset)
    view.entries.each(after: number) { entry in
      guard entry.requests.isEmpty else { return Self.show(entry, after: number, body) }
      guard case .event(let event) = entry.item, case .received(let bytes, let decision) = event.change else {
        return true
      }
      let facts = { (index: Int) in
        let isRejected = index == decision.accepted && decision.rejects
        return ReceivedFacts(
          number: entry.first + index, time: event.time, connection: event.connection, topic: entry.topic,
          fate: index < decision.accepted ? .accepted : isRejected ? .rejected : .discarded,
          rejection: isRejected ? decision.rejection : nil)
      }
      return Self.show(bytes.readableBytesSpan, entry, after: number, facts, body)
    }
    return range
  }

  /// Notifications over HTTP/2.
  private static func show(
    _ entry: EventHistory.Entry, after number: Int, _ body: (ReceivedFacts, ReceivedFields, RawSpan) -> Bool
  ) -> Bool {
    guard case .event(let event) = entry.item else { return true }
    for (index, received) in entry.requests.enumerated() where entry.first + index > number {
      let bytes = entry.requestBytes.rawBytes.extracting(received.bytes)
      let topic = received.request.topic
      var facts = ReceivedFacts(
        number: entry.first + index, time: received.request.ended?.time ?? event.time, connection: event.connection,
        topic: topic.isPresent
          ? String(decoding: Array(copying: bytes.extracting(topic.range)), as: UTF8.self) : entry.topic,
        fate: received.decision.fate)
      (facts.status, facts.reason) = (received.decision.status, received.decision.reason)
      guard body(facts, ReceivedFields(received.request), bytes) else { return false }
    }
    return true
  }

  private static func show(
    _ bytes: RawSpan, _ entry: EventHistory.Entry, after number: Int, _ facts: (Int) -> ReceivedFacts,
    _ body: (ReceivedFacts, ReceivedFields, RawSpan) -> Bool
  ) -> Bool {
    var offset = 0
    // A gateway that discards takes frames of any length.
    let limits = ProtocolLimits(maximumFrameLength: .max, maximumTokenLength: 65_535)
    for index in 0..<entry.count {
      guard case .complete(let length) = BinaryFrame.extent(of: bytes, at: offset, limits: limits) else { break }
      let frame = bytes.extracting(offset..<offset + length)
      offset += length
      guard entry.first + index > number else { continue }
      guard body(facts(index), ReceivedFields(fields(of: frame)), frame) else { return false }
    }
    return true
  }

  /// All fields, or those before the first item that does not fit the frame.
  private static func fields(of frame: RawSpan) -> PushFields {
    do throws(ParseError) {
      return try PushFields(parsing: frame)
    } catch {
      return PushFields(fitting: frame)
    }
  }

  /// The notifications that can be listed.
  package var range: ReceivedRange { eachReceived(after: .max) { _, _, _ in false } }

  /// Forgets the notifications so far.
  package func resetHistory() {
    let counts = queue.counts
    history?.reset(leftOut: (counts.lost, counts.unseenLost))
  }

  /// The verdict on the providers since the latest reset, from what is kept. Blocks; the cost is that of reading all that
  /// is kept again.
  ///
  /// - Returns: `nil` without a history.
  /// - Throws: when a temporary file cannot be used.
  package func verdictSoFar(
    _ options: ProviderInspection.Options, at time: Int64
  ) throws(UnnamedFile.Failure) -> ProviderVerdict? {
    let counts = queue.counts
    return try history?.verdict(options, observedUntil: time, leftOut: (counts.lost, counts.unseenLost))
  }
}
