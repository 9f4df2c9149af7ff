import Measurement
import MetricsEndpoint

extension Ledger.LocalPush {
  /// The counts as Prometheus metrics.
  var metrics: [Metric] {
    func counter(_ name: Metric.Name, _ help: String, _ count: Int) -> Metric {
      Metric(.counter, name, help: help, .integer(count))
    }
    func labelled(_ label: Metric.LabelName, _ counts: [String: Int]) -> [Metric.Sample] {
      counts.sorted { $0.key < $1.key }.map { .init(labels: [label: $0.key], .integer($0.value)) }
    }
    return [
      counter("apnscope_local_push_connections_total", "TCP connections to local push.", connections),
      counter(
        "apnscope_local_push_handshake_failures_total", "Of these, those whose handshake was not completed.",
        handshakeFailures),
      Metric(
        .counter, "apnscope_local_push_registered_total", help: "Connections on which a user has registered.",
        samples: labelled("channel", registered)),
      Metric(
        .counter, "apnscope_local_push_refused_total", help: "Connections that the server has ended.",
        samples: labelled("reason", refused)),
      counter(
        "apnscope_local_push_malformed_total", "Connections ended for bytes that are no message.", malformed),
      Metric(
        .counter, "apnscope_local_push_received_requests_total", help: "Requests of devices, all acknowledged.",
        samples: labelled("kind", requests)),
      Metric(
        .counter, "apnscope_local_push_requests_total",
        help: "Requests for devices by what has become of them; those that are not acknowledged yet are a gauge.",
        samples: kinds.flatMap { kind, requests in
          requests.outcomes.filter { $0.name != "unacknowledged" }.map {
            .init(labels: ["kind": kind, "outcome": $0.name], .integer($0.count))
          }
        }),
      Metric(
        .gauge, "apnscope_local_push_unacknowledged", help: "Requests that are not acknowledged yet.",
        samples: labelled("kind", Dictionary(uniqueKeysWithValues: kinds.map { ($0.name, $0.requests.unacknowledged) }))
      ),
      counter(
        "apnscope_local_push_stray_acknowledgements_total", "Acknowledgements that nobody awaited.",
        strayAcknowledgements),
      counter(
        "apnscope_local_push_silenced_connections_total", "Connections that the server fell silent on.",
        silencedConnections),
      counter("apnscope_local_push_restarts_total", "Restarts of the server.", restarts),
      Metric(.gauge, "apnscope_local_push_here", help: "Users with a notification channel.", .integer(here)),
    ] + networkMetrics
  }

  /// The counts by network; the label of a network without a name is empty.
  private var networkMetrics: [Metric] {
    let networks = networks.sorted { $0.key < $1.key }
    func samples(_ count: (Network) -> Int) -> [Metric.Sample] {
      networks.map { .init(labels: ["network": $0.key], .integer(count($0.value))) }
    }
    return [
      Metric(
        .gauge, "apnscope_local_push_network_here", help: "Users with a notification channel, by network.",
        samples: samples(\.here)),
      Metric(
        .counter, "apnscope_local_push_network_registered_total",
        help: "Connections on which a user has registered, by network.", samples: samples(\.registered)),
      Metric(
        .counter, "apnscope_local_push_network_restarts_total",
        help: "How often nobody listened, with restarts of the whole server.", samples: samples(\.restarts)),
      Metric(
        .counter, "apnscope_local_push_network_requests_total",
        help: "Requests for devices by network and by what has become of them.",
        samples: networks.flatMap { name, network in
          network.kinds.flatMap { kind, requests in
            requests.outcomes.filter { $0.name != "unacknowledged" }.map {
              .init(labels: ["network": name, "kind": kind, "outcome": $0.name], .integer($0.count))
            }
          }
        }),
    ]
  }
}
