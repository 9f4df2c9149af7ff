import Measurement

extension FleetLoop {
  /// A device has joined a network, or is on none: on which ones its extension runs, the plan says.
  ///
  /// - Parameters:
  ///   - wasOnline: before the device was looked at.
  ///   - storm: the storm that has passed since, after which it joins anew, by its place in the plan.
  func noteJoining(_ device: FleetDevice, wasOnline: Bool, storm: Int?) {
    guard let localPush = plan.localPush else { return }
    // The Wi-Fi of one network goes and returns: its devices have not moved.
    if let storm { device.staysOnNetwork = plan.presence.storms[storm].network != nil }
    guard device.presence.wantsOnline, !wasOnline || storm != nil else { return }
    if device.staysOnNetwork {
      device.staysOnNetwork = false
    } else {
      device.joins += 1
      device.network = localPush.network(drawn: device.draws.unit(.network, device.joins))
    }
    switch device.network {
    case .any: break
    case .network(let place): tally.localPush.joins[localPush.networks[place].name, default: 0] += 1
    case .other: tally.localPush.joinsElsewhere += 1
    }
  }

  /// The name of a network; `nil`: the plan does not have it.
  func networkName(_ network: JoinedNetwork) -> String? {
    guard let localPush = plan.localPush, case .network(let place) = network else { return nil }
    return localPush.networks[place].name
  }

  /// Where a device connects to, on the network that it is on.
  func server(for device: FleetDevice) -> FleetPlan.Gateway {
    guard let localPush = plan.localPush, case .network(let place) = device.network else { return plan.gateway }
    return localPush.networks[place].server ?? plan.gateway
  }

  /// Counts what has come on a network. A connection is of the network that it began on.
  private func countOnNetwork(_ device: FleetDevice, _ path: WritableKeyPath<FleetResult.LocalPush.Network, Int>) {
    guard let localPush = plan.localPush, case .network(let place) = device.linkNetwork else { return }
    tally.localPush.networks[localPush.networks[place].name, default: .init()][keyPath: path] += 1
  }

  /// - Parameter time: UNIX nanoseconds.
  func note(_ event: LocalPushEvent, _ device: FleetDevice, _ time: Int64) {
    switch event {
    case .asked: tally.localPush.registrations += 1
    case .registered:
      tally.localPush.registered += 1
      countOnNetwork(device, \.registered)
    case .timedOut: tally.localPush.timedOut += 1
    case .acknowledged(let isMessage):
      tally.localPush.acknowledgements += 1
      if isMessage { tally.notifications.acknowledgements += 1 }
    case .received(let request): note(request, device, time)
    }
  }

  private func note(_ request: LocalPushReceived, _ device: FleetDevice, _ time: Int64) {
    switch request.kind {
    case .heartbeat:
      tally.localPush.heartbeats += 1
      countOnNetwork(device, \.heartbeats)
    case .directory, .callAction, .other: tally.localPush.otherRequests += 1
    case .text:
      tally.localPush.texts += 1
      countOnNetwork(device, \.texts)
      noteMessage(request, time)
    case .invite:
      tally.localPush.invitations += 1
      countOnNetwork(device, \.invitations)
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
