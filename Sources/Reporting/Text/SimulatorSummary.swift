import Measurement

/// The books as a few lines of text.
package struct SimulatorSummary: Sendable {
  package let text: String

  package init(_ ledger: Ledger) {
    let gateway = ledger.gateway
    // Numbers are statuses of the binary protocol, names reasons of HTTP/2.
    let rejected = gateway.rejected.sorted { (Int($0.key) ?? 256, $0.key) < (Int($1.key) ?? 256, $1.key) }
      .map { "\(grouped($0.value)) x \(Int($0.key) == nil ? "" : "status ")\($0.key)" }
    var http2 = ""
    if let served = ledger.http2 {
      http2 =
        "\nhttp/2         \(grouped(served.connections)) connections, \(grouped(served.received)) notifications, \(grouped(served.incomplete)) incomplete, \(grouped(served.unanswered)) unanswered, \(grouped(served.otherRequests)) other requests, \(grouped(served.violations.values.reduce(0, +))) broken rules, \(grouped(served.floods.values.reduce(0, +))) floods, \(grouped(served.providerTokens.count + served.providerTokensOmitted)) provider tokens"
      if let channels = served.channels {
        http2 +=
          "\nchannels       \(grouped(channels.registered)) registered, \(grouped(channels.keeping)) with a message; \(grouped(channels.created)) created, \(grouped(channels.deleted)) deleted, \(grouped(channels.rejected.values.reduce(0, +))) requests rejected"
      }
      let unknown = served.unknown.accepted + served.unknown.rejected + served.unknown.discarded
      if unknown > 0 || !served.faults.isEmpty {
        let faults = served.faults.sorted { $0.key < $1.key }.map { "\(grouped($0.value)) \($0.key)" }
        http2 +=
          "\nfaults         \(faults.isEmpty ? "-" : faults.joined(separator: ", ")); \(grouped(unknown)) notifications of unknown fate"
      }
    }
    let (devices, feedback) = (ledger.devices, ledger.feedback)
    var deviceChannel = ""
    if let channel = devices.channel {
      deviceChannel =
        "\ndevice channel \(grouped(channel.connections)) connections, \(grouped(channel.registered)) tokens, \(grouped(channel.online)) online; \(grouped(channel.sent)) sent, \(grouped(channel.repeated)) of them again, \(grouped(channel.unacknowledged)) not acknowledged, \(grouped(channel.refused.values.reduce(0, +))) refused, \(grouped(channel.malformed)) malformed"
      if channel.restored > 0 { deviceChannel += ", \(grouped(channel.restored)) restored" }
      if channel.unkept > 0 { deviceChannel += ", \(grouped(channel.unkept)) not kept" }
    }
    if let served = ledger.localPush { deviceChannel += Self.text(served) }
    var payloads = ""
    if let judged = ledger.payloads, !judged.kinds.isEmpty {
      payloads =
        "payloads       \(listed(judged.kinds)); rules broken: \(judged.lint.isEmpty ? "none" : listed(judged.lint))\n"
    }
    var records = ""
    if let written = ledger.records {
      records = "\nrecords        \(grouped(written.notifications)) notifications, \(grouped(written.lost)) lost"
      if let outcomes = written.outcomesLost { records += "; \(grouped(outcomes)) outcomes for devices lost" }
    }
    let lines = (ledger.verdict.map { VerdictText($0).lines } ?? []) + (ledger.expectations ?? []).map(\.line)
    let verdict = lines.map { "\n\($0)" }.joined()
    text = """
      notifications  \(grouped(gateway.received)) received = \(grouped(gateway.accepted)) accepted + \(grouped(gateway.rejected.values.reduce(0, +))) rejected + \(grouped(gateway.discarded)) discarded
      rejected       \(rejected.isEmpty ? "-" : rejected.joined(separator: ", "))\(gateway.binary.malformed > 0 ? ", \(grouped(gateway.binary.malformed)) of them malformed" : "")
      \(payloads)devices        \(grouped(devices.delivered)) delivered, \(grouped(devices.stored)) stored, \(grouped(devices.coalesced)) coalesced, \(grouped(devices.expired)) expired, \(grouped(devices.dropped)) dropped, \(grouped(devices.uninstalled)) uninstalled\(deviceChannel)
      connections    \(grouped(gateway.connections)), \(grouped(gateway.resumed)) resumed, \(grouped(gateway.handshakeFailures)) failed handshakes, \(grouped(gateway.refused)) refused, \(grouped(gateway.binary.incomplete)) ended inside a frame
      feedback       \(grouped(feedback.connections)) connections, \(grouped(feedback.tuplesSent)) tuples sent, \(grouped(feedback.waiting)) waiting\(feedback.lost > 0 ? ", \(grouped(feedback.lost)) lost" : "")\(http2)\(records)\(verdict)
      """
  }

  private static func text(_ served: Ledger.LocalPush) -> String {
    var messages = served.texts
    messages.add(served.invitations)
    messages.add(served.callActions)
    let beats = served.heartbeats
    let most = 10
    let named = served.networks.filter { !$0.key.isEmpty }.sorted { $0.key < $1.key }
    let networks =
      named.prefix(most).map { name, network in
        "\nnetwork        \(name): \(grouped(network.registered)) registered, \(grouped(network.here)) users here; \(grouped(network.texts.sent + network.invitations.sent)) messages sent, \(grouped(network.texts.acknowledged + network.invitations.acknowledged)) acknowledged"
      } + (named.count > most ? ["\nnetwork        and \(grouped(named.count - most)) more"] : [])
    return
      "\nlocal push     \(grouped(served.connections)) connections, \(grouped(served.here)) users here; \(grouped(messages.offered)) messages = \(grouped(messages.acknowledged)) acknowledged + \(grouped(messages.timedOut)) timed out + \(grouped(messages.lost)) lost + \(grouped(messages.unacknowledged)) not acknowledged yet + \(grouped(messages.absent)) absent + \(grouped(messages.overloaded)) overloaded + \(grouped(messages.silenced)) silenced; \(grouped(beats.sent)) heartbeats, \(grouped(beats.acknowledged)) acknowledged"
      + networks.joined()
  }
}
