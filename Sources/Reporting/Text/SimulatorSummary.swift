import Measurement

/// The books as a few lines of text.
public struct SimulatorSummary: Sendable {
  public let text: String

  public init(_ ledger: Ledger) {
    let gateway = ledger.gateway
    let rejected = gateway.rejected.sorted { (Int($0.key) ?? 0) < (Int($1.key) ?? 0) }
      .map { "\(grouped($0.value)) x status \($0.key)" }
    let (devices, feedback) = (ledger.devices, ledger.feedback)
    text = """
      notifications  \(grouped(gateway.received)) received = \(grouped(gateway.accepted)) accepted + \(grouped(gateway.rejected.values.reduce(0, +))) rejected + \(grouped(gateway.discarded)) discarded
      rejected       \(rejected.isEmpty ? "-" : rejected.joined(separator: ", "))\(gateway.malformed > 0 ? ", \(grouped(gateway.malformed)) of them malformed" : "")
      devices        \(grouped(devices.delivered)) delivered, \(grouped(devices.stored)) stored, \(grouped(devices.coalesced)) coalesced, \(grouped(devices.expired)) expired, \(grouped(devices.dropped)) dropped, \(grouped(devices.uninstalled)) uninstalled
      connections    \(grouped(gateway.connections)), \(grouped(gateway.resumed)) resumed, \(grouped(gateway.handshakeFailures)) failed handshakes, \(grouped(gateway.refused)) refused, \(grouped(gateway.incomplete)) ended inside a frame
      feedback       \(grouped(feedback.connections)) connections, \(grouped(feedback.tuplesSent)) tuples sent, \(grouped(feedback.waiting)) waiting\(feedback.lost > 0 ? ", \(grouped(feedback.lost)) lost" : "")
      """
  }
}
