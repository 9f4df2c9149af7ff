import Measurement
import MetricsEndpoint

extension FleetResult {
  /// The counts as Prometheus metrics.
  var metrics: [Metric] {
    func counter(_ name: Metric.Name, _ help: String, _ count: Int) -> Metric {
      Metric(.counter, name, help: help, .integer(count))
    }
    func labelled(_ label: Metric.LabelName, _ counts: [String: Int]) -> [Metric.Sample] {
      counts.sorted { $0.key < $1.key }.map { .init(labels: [label: $0.key], .integer($0.value)) }
    }
    let metrics = [
      Metric(.gauge, "apnscope_devices_online", help: "Devices that are online.", .integer(devices.onlineAtEnd)),
      Metric(.gauge, "apnscope_devices_asked", help: "Devices of the fleet or segment.", .integer(devices.asked)),
      counter("apnscope_devices_restored_total", "Restores of devices.", devices.restored),
      counter("apnscope_devices_connections_attempted_total", "Attempts to connect.", connections.attempted),
      counter("apnscope_devices_connections_opened_total", "Connections opened.", connections.opened),
      Metric(
        .counter, "apnscope_devices_connections_closed_total", help: "Connections that ended.",
        samples: labelled("cause", connections.closed.byName)),
      counter("apnscope_devices_tokens_total", "Tokens that devices got.", registrations.tokens),
      Metric(
        .counter, "apnscope_devices_refused_total", help: "Refusals of the gateway.",
        samples: labelled("reason", registrations.refused)),
      Metric(
        .counter, "apnscope_devices_received_total", help: "Notifications received, each once.",
        samples: labelled(
          "path",
          ["online": notifications.online, "stored": notifications.stored, "repeated": notifications.repeated])),
      counter("apnscope_devices_duplicates_total", "Notifications received twice.", notifications.duplicates),
      Metric(
        .counter, "apnscope_devices_faults_total", help: "What the gateway must not do.",
        samples: labelled("fault", faults)),
    ]
    guard let push = localPush else { return metrics }
    return metrics + [
      Metric(
        .counter, "apnscope_devices_local_push_joins_total",
        help: "Joinings of networks; those of other ones are \"\".",
        samples: labelled("network", push.joins.merging(["": push.joinsElsewhere], uniquingKeysWith: +))),
      Metric(
        .counter, "apnscope_devices_local_push_requests_total", help: "Requests of the server.",
        samples: labelled(
          "kind",
          [
            "text": push.texts, "invite": push.invitations, "heartbeat": push.heartbeats, "other": push.otherRequests,
          ])),
      counter("apnscope_devices_local_push_acknowledgements_total", "Their acknowledgements.", push.acknowledgements),
      counter("apnscope_devices_local_push_missed_calls_total", "Invitations that came too late.", push.missedCalls),
      counter("apnscope_devices_local_push_registered_total", "Users that were acknowledged.", push.registered),
      Metric(
        .counter, "apnscope_devices_local_push_network_requests_total", help: "Requests of the server by network.",
        samples: push.networks.sorted { $0.key < $1.key }.flatMap { name, network in
          [("text", network.texts), ("invite", network.invitations), ("heartbeat", network.heartbeats)].map {
            .init(labels: ["network": name, "kind": $0], .integer($1))
          }
        }),
    ]
  }
}
