import Bytes
import HTTP2
import PacketCapture
import ProviderAPI
import PushModel

/// A notification of the HTTP/2 provider API: a view, valid as long as the bytes of its request.
public struct ProviderNotificationRecord: ~Escapable {
  /// Where it is: the packet with its END_STREAM, and the bytes of all its frames from its HEADERS on.
  public let place: RecordPlace
  /// Its number among the connection's notifications, from 0.
  public let index: Int
  /// Its fields: numbers by value, text as ranges in `bytes`.
  public let request: ProviderRequest
  /// Its provider token, which has no signature here; `nil` without one, or if it could not be read.
  public let providerToken: ProviderToken?
  /// How the provider is trusted; `nil` if that is not known.
  public let trust: ProviderTrust?
  /// The bytes that the request's ranges refer to.
  public let bytes: RawSpan
  /// What became of it; `nil` when that is not known while it is written.
  package let outcome: NotificationOutcome?
  /// The verdict on its payload; `nil` when it was not judged.
  package let verdict: PayloadVerdict?

  @_lifetime(copy bytes)
  package init(
    _ request: ProviderRequest, _ bytes: RawSpan, at place: RecordPlace, index: Int, trust: ProviderTrust?,
    providerToken: ProviderToken?, outcome: NotificationOutcome? = nil, verdict: PayloadVerdict? = nil
  ) {
    (self.request, self.place, self.index) = (request, place, index)
    (self.trust, self.providerToken) = (trust, providerToken)
    (self.outcome, self.verdict) = (outcome, verdict)
    self.bytes = bytes
  }

  /// The record with what is known besides its bytes.
  @_lifetime(copy self)
  package func adding(_ outcome: NotificationOutcome?, _ verdict: PayloadVerdict?) -> ProviderNotificationRecord {
    ProviderNotificationRecord(
      request, bytes, at: place, index: index, trust: trust, providerToken: providerToken, outcome: outcome,
      verdict: verdict)
  }

  /// The bytes of a field; empty if it is absent.
  @_lifetime(copy self)
  public func bytes(of field: ByteField) -> RawSpan { bytes.extracting(field.range) }

  /// The text of a field; `nil` if it is absent.
  public func text(of field: ByteField) -> String? {
    field.isPresent ? String(decoding: Array(copying: bytes.extracting(field.range)), as: UTF8.self) : nil
  }

  /// The names of fields that are absent in the record and may be there. Without TLS, a certificate shows to a terminator
  /// alone.
  package var uncertainFields: [String] {
    var fields = request.uncertain
    if trust == nil { fields.insert(.trust) }
    return fields.fieldNames + (outcome?.answer?.isReasonUncertain == true ? ["reason"] : [])
  }

  /// When its HEADERS were captured; `.none` if they are lost.
  public var started: Timestamp { request.started.map { Timestamp(nanoseconds: $0.time) } ?? .none }
}

/// How a provider is trusted.
public enum ProviderTrust: String, Sendable, CaseIterable {
  /// By the provider token of the request.
  case token
  /// By the certificate of the connection.
  case certificate
  /// By nothing.
  case none
}

/// What became of a notification of the provider API, as far as it is known.
package struct NotificationOutcome: Sendable, Equatable {
  package var fate: Fate
  /// Why it was discarded.
  package var cause: DiscardCause?
  /// The answer to it; `nil` without one.
  package var answer: ProviderAnswer?

  package init(fate: Fate, cause: DiscardCause? = nil, answer: ProviderAnswer? = nil) {
    (self.fate, self.cause, self.answer) = (fate, cause, answer)
  }
}

/// What an answer says of its notification.
package struct ProviderAnswer: Sendable, Equatable {
  package var status: Int?
  package var reason: String?
  /// Whether there may be a reason, if there is none here.
  package var isReasonUncertain: Bool
  /// Nanoseconds from the notification's END_STREAM to the answer's HEADERS.
  package var latencyNanoseconds: Int64?

  package init(
    status: Int?, reason: String? = nil, isReasonUncertain: Bool = false, latencyNanoseconds: Int64? = nil
  ) {
    (self.status, self.reason, self.isReasonUncertain) = (status, reason, isReasonUncertain)
    self.latencyNanoseconds = latencyNanoseconds
  }
}
