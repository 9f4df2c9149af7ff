import Bytes
import HTTP2Server
import ProviderAPI

/// Broadcasts, and the management of their channels.
extension ProviderGateway {
  /// The bytes of answers that may wait for a window when a list of channels is asked for: it is long, and a client that
  /// opens no window could ask for many.
  private static let mostUnsent = 1 << 20

  /// Decides on a broadcast whose path, method and trust are good.
  mutating func decideBroadcast(_ slot: Int, _ content: RawSpan, _ length: Int) -> Verdict {
    let request = requests[slot].request
    func rejected(_ reason: ProviderReason) -> Verdict { .rejected(reason, status: reason.documentedStatus ?? 400) }
    guard let channels else { return rejected(.featureNotEnabled) }
    let app = request.bundle
    if let reason = appFault(slot) { return rejected(reason) }
    if let reason = request.broadcastFault { return rejected(reason) }
    if let reason = payloadFault(request, content, length, .unknown) { return rejected(reason) }
    let reason = channels.broadcast(
      to: request.channelID ?? "", of: app, expiration: request.expiration, now: now)
    return reason.map(rejected) ?? .accepted
  }

  /// Whether the app of a path is none, or not one that the connection's certificate names, or the token's key is for.
  private func appFault(_ slot: Int) -> ProviderReason? {
    let app = requests[slot].request.bundle
    guard !app.isEmpty, Self.isTopic(Array(app.utf8)) else { return .badPath }
    if let token = requests[slot].token { return tokens.allows(app, token) ? nil : .topicMismatch }
    guard case .certificate(let topics?) = trust else { return nil }
    return topics.contains(app) ? nil : .topicMismatch
  }

  /// Does what a request to channel management asks, and answers it.
  mutating func manage(_ slot: Int, _ content: RawSpan) {
    // The copy shares its memory, and is gone before the next request is read into this place.
    let request = requests[slot].request
    if let reason = request.managementFault { return refuseManagement(slot, reason) }
    guard case .channel(let action) = request.target else { return refuseManagement(slot, .badPath) }
    if request.hasDuplicates { return refuseManagement(slot, .duplicateHeaders) }
    if let reason = trustFault(slot) ?? appFault(slot) { return refuseManagement(slot, reason) }
    guard let channels else { return refuseManagement(slot, .featureNotEnabled) }
    switch action {
    case .create:
      let settings: ChannelSettings
      do throws(ChannelSettings.RejectedSettings) {
        settings = try ChannelSettings(parsing: content)
      } catch {
        return refuseManagement(slot, error.reason)
      }
      guard let identifier = channels.create(settings, of: request.bundle) else {
        return refuseManagement(slot, .cannotCreateChannelConfig)
      }
      counts.channels.created += 1
      answerManagement(slot, 201, channel: identifier)
    case .read:
      guard let identifier = named(slot, request) else { return }
      guard let channel = channels.channel(identifier, of: request.bundle) else {
        return refuseManagement(slot, .channelNotRegistered)
      }
      counts.channels.read += 1
      answerManagement(slot, 200, Array(channel.settings.text.utf8))
    case .delete:
      guard let identifier = named(slot, request) else { return }
      guard channels.delete(identifier, of: request.bundle) else {
        return refuseManagement(slot, .channelNotRegistered)
      }
      counts.channels.deleted += 1
      answerManagement(slot, 204)
    case .readAll:
      guard session.unsentBytes <= Self.mostUnsent else { return refuseManagement(slot, .serviceUnavailable) }
      counts.channels.listed += 1
      var writer = ByteWriter(capacity: 256)
      writer.write("{\"channels\":[")
      for (place, identifier) in channels.all(of: request.bundle).enumerated() {
        if place > 0 { writer.write(",") }
        writer.write(jsonString: identifier, onlyRequired: true)
      }
      writer.write("]}")
      answerManagement(slot, 200, Array(copying: writer.bytes))
    }
  }

  /// The channel that a request names; without a good one it is answered.
  private mutating func named(_ slot: Int, _ request: ServedRequest) -> String? {
    guard let identifier = request.channelID else {
      refuseManagement(slot, .missingChannelID)
      return nil
    }
    return identifier
  }

  /// A notification that comes here is one in all books, with the answer that it gets.
  private mutating func refuseManagement(_ slot: Int, _ reason: ProviderReason) {
    let status = reason.documentedStatus ?? 400
    if requests[slot].request.target.isNotification {
      counts.rejected[reason, default: 0] += 1
      served?.append(Verdict.rejected(reason, status: status).served(session.stream(of: slot)))
    } else {
      counts.channels.rejected[reason, default: 0] += 1
    }
    answerManagement(slot, status, Self.content(reason))
  }

  private mutating func answerManagement(
    _ slot: Int, _ status: Int, _ content: [UInt8] = [], channel: String? = nil
  ) {
    noteAnswer(status)
    writeAnswer(slot, status, content.isEmpty ? nil : content, channel: channel)
  }
}
