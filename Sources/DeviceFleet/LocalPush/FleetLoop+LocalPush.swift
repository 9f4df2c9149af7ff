import Measurement

extension FleetLoop {
  /// A device has joined a network, or is on none: on which ones its extension runs, the plan says.
  ///
  /// - Parameters:
  ///   - wasOnline: before the device was looked at.
  ///   - isStormy: a storm has passed since, after which it joins anew.
  func noteJoining(_ device: FleetDevice, wasOnline: Bool, isStormy: Bool) {
    guard let localPush = plan.localPush, device.presence.wantsOnline, !wasOnline || isStormy else { return }
    device.joins += 1
    guard !localPush.networks.isEmpty else { return }
    let draw = device.draws.unit(.network, device.joins)
    if let place = localPush.network(drawn: draw) {
      device.isOnNetwork = true
      tally.localPush.joins[localPush.networks[place].name, default: 0] += 1
    } else {
      device.isOnNetwork = false
      tally.localPush.joinsElsewhere += 1
    }
  }

  /// - Parameter time: UNIX nanoseconds.
  func note(_ event: LocalPushEvent, _ time: Int64) {
    switch event {
    case .asked: tally.localPush.registrations += 1
    case .registered: tally.localPush.registered += 1
    case .timedOut: tally.localPush.timedOut += 1
    case .acknowledged(let isMessage):
      tally.localPush.acknowledgements += 1
      if isMessage { tally.notifications.acknowledgements += 1 }
    case .received(let request): note(request, time)
    }
  }

  private func note(_ request: LocalPushReceived, _ time: Int64) {
    switch request.kind {
    case .heartbeat: tally.localPush.heartbeats += 1
    case .directory, .callAction, .other: tally.localPush.otherRequests += 1
    case .text:
      tally.localPush.texts += 1
      noteMessage(request, time)
    case .invite:
      tally.localPush.invitations += 1
      guard let microseconds = noteMessage(request, time), let callTime = plan.localPush?.callTime else { return }
      tally.localPush.invitationUs.record(microseconds)
      if microseconds > Int(clamping: callTime.nanoseconds / 1_000) { tally.localPush.missedCalls += 1 }
    }
  }

  /// - Returns: the time since it was sent in microseconds; `nil`: it is not known.
  @discardableResult
  private func noteMessage(_ request: LocalPushReceived, _ time: Int64) -> Int? {
    tally.lastReceived = time
    tally.notifications.received += 1
    tally.notifications.online += 1
    tally.notifications.payloadBytes += request.length
    guard let sent = request.sent else {
      tally.localPush.untimed += 1
      return nil
    }
    let microseconds = Self.microseconds(sent, time)
    if microseconds < 0 { tally.notifications.early += 1 }
    tally.latency.onlineUs.record(microseconds)
    return microseconds
  }
}
