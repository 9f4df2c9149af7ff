import BinaryProtocol
import Measurement
import TLSTransport

/// The events of the event log.
extension SimulatorContext {
  func event(
    _ name: String, _ connection: UInt64, client: String, topic: String?, reason: String?, _ info: TLSConnectionInfo?
  ) -> EventLog.Event {
    var event = EventLog.Event(name, time: wallClock.nanoseconds())
    event.connection = Int(connection)
    event.client = client
    event.topic = topic
    event.reason = reason
    if let info {
      event.tls = "\(info.version)"
      event.suite = info.cipherSuite
      event.resumed = info.isResumed
    }
    return event
  }
}

extension GatewayHandler {
  func event(_ name: String, reason: String? = nil, _ info: TLSConnectionInfo? = nil) -> EventLog.Event {
    shared.event(name, number, client: client, topic: topic, reason: reason, info)
  }

  /// The gateway's answer, or none, at the end of a connection.
  ///
  /// - Parameter written: bytes of the response that were, when those are not all.
  func log(_ ending: GatewaySession.Ending, _ response: ErrorResponse?, written: Int? = nil) {
    guard let log = shared.log else { return }
    var event = event(
      response == nil ? "no_response" : written == nil ? "error_response" : "error_response_incomplete")
    event.status = Int(ending.status.rawValue)
    event.identifier = response?.identifier ?? ending.identifier
    event.notification = ending.notification
    event.accepted = session.accepted
    if case .malformed(let error) = ending.cause { event.reason = "\(error)" }
    if life.end == .feedbackLost { event.reason = ConnectionEnd.feedbackLost.rawValue }
    if let written { event.reason = "\(written) of \(ErrorResponse.length) bytes" }
    log.write(event)
  }
}
