import LoadTest
import Measurement
import MetricsEndpoint

extension LoadSnapshot {
  /// The counts as Prometheus metrics.
  var metrics: [Metric] {
    func counter(_ name: Metric.Name, _ help: String, _ count: Int) -> Metric {
      Metric(.counter, name, help: help, .integer(count))
    }
    func labelled(_ label: Metric.LabelName, _ counts: [String: Int]) -> [Metric.Sample] {
      counts.sorted { $0.key < $1.key }.map { .init(labels: [label: $0.key], .integer($0.value)) }
    }
    return feedbackMetrics + latencyMetrics + [
      counter("apnscope_load_generated_total", "Notifications taken from the workload.", notifications.generated),
      counter("apnscope_load_accepted_total", "Notifications proven accepted.", notifications.accepted),
      counter("apnscope_load_rejected_total", "Notifications rejected.", notifications.rejected),
      counter("apnscope_load_unknown_total", "Notifications whose fate is unknown.", notifications.unknown),
      counter("apnscope_load_abandoned_total", "Notifications abandoned.", notifications.abandoned),
      counter("apnscope_load_skipped_total", "Notifications skipped because they were late.", skipped),
      counter("apnscope_load_written_total", "Sendings written, resent ones included.", sendings.written),
      counter("apnscope_load_resent_total", "Resends.", sendings.resent),
      counter("apnscope_load_discarded_total", "Sendings discarded by the gateway.", sendings.discarded),
      counter(
        "apnscope_load_sendings_unknown_total", "Sendings whose connection ended without an answer.", sendings.unknown),
      counter("apnscope_load_markers_total", "Known-bad frames that prove what was accepted.", sendings.binary.markers),
      counter("apnscope_load_written_bytes_total", "Plaintext bytes written.", writtenBytes),
      Metric(
        .counter, "apnscope_load_error_responses_total", help: "Error responses to notifications.",
        samples: labelled("status", errorResponses)),
      Metric(.gauge, "apnscope_load_connections_up", help: "Connections that are open.", .integer(connectionsUp)),
      counter("apnscope_load_connections_attempted_total", "Attempts to connect.", connections.attempted),
      counter("apnscope_load_connections_opened_total", "Connections opened.", connections.opened),
      counter("apnscope_load_connections_resumed_total", "Connections that resumed a session.", connections.resumed),
      counter("apnscope_load_connections_failed_total", "Attempts that failed.", connections.failed),
      Metric(
        .counter, "apnscope_load_connections_closed_total", help: "Connections that ended.",
        samples: labelled("cause", connections.closed.byName)),
      Metric(
        .gauge, "apnscope_load_send_lag_p99_seconds",
        help: "From when a notification was due to when it was written, in the last second.",
        .real(Double(sendLag99) / 1e6)),
      Metric(
        .gauge, "apnscope_load_phase", help: "1 for the phase that the run is in.",
        samples: Self.phases.map { .init(labels: ["phase": $0], .integer($0 == phase ? 1 : 0)) }),
    ]
  }

  /// Latencies of the whole run, as histograms: those of several segments add up.
  private var latencyMetrics: [Metric] {
    func histogram(_ name: Metric.Name, _ help: String, _ latency: LatencyBuckets.Latency) -> Metric {
      let buckets = zip(LatencyBuckets.bounds, latency.upToBounds).map {
        Metric.Histogram.Bucket(upTo: Double($0) / 1e6, $1)
      }
      return Metric(
        .histogram, name, help: help,
        .histogram(Metric.Histogram(buckets, sum: latency.sum / 1e6, count: latency.count)))
    }
    return [
      histogram(
        "apnscope_load_send_lag_seconds", "From when a notification was due to when it was written.",
        latencies.sendLag),
      histogram(
        "apnscope_load_error_seconds", "From the writing of a rejected notification to its error response.",
        latencies.error),
      histogram(
        "apnscope_load_drain_seconds", "From the writing of a marker to its error response.", latencies.drain),
      histogram(
        "apnscope_load_recover_seconds", "From an error response until its connection is up again and writes.",
        latencies.recover),
      histogram("apnscope_load_tcp_connect_seconds", "From SYN to SYN-ACK.", latencies.tcpConnect),
      histogram("apnscope_load_tls_handshake_seconds", "Full TLS handshakes.", latencies.tlsHandshake),
      histogram("apnscope_load_tls_resumed_seconds", "TLS handshakes that resumed a session.", latencies.tlsResumed),
    ]
  }

  /// Only of loads that poll the feedback service.
  private var feedbackMetrics: [Metric] {
    guard let feedback else { return [] }
    func counter(_ name: Metric.Name, _ help: String, _ count: Int) -> Metric {
      Metric(.counter, name, help: help, .integer(count))
    }
    let polls = ["complete": feedback.complete, "incomplete": feedback.incomplete, "failed": feedback.failed]
    return [
      Metric(
        .counter, "apnscope_load_feedback_polls_total", help: "Polls of the feedback service that have ended.",
        samples: polls.sorted { $0.key < $1.key }.map { .init(labels: ["end": $0.key], .integer($0.value)) }),
      counter("apnscope_load_feedback_tuples_total", "Tuples of complete polls.", feedback.tuples),
      Metric(
        .gauge, "apnscope_load_listed_tokens", help: "Tokens of the load that feedback lists.",
        .integer(feedback.listedTokens ?? 0)),
      counter("apnscope_load_pruned_total", "Notifications to listed tokens that were left out.", pruned),
      counter("apnscope_load_sent_to_listed_total", "Sendings to listed tokens.", feedback.sentToListed),
    ]
  }
}

extension ResultOptions {
  /// The metric that distinguishes this run from others: 1 with labels, for joins in queries.
  func info(_ plan: LoadPlan) -> Metric {
    var values: [Metric.LabelName: String] = [
      "version": Apnscope.version, "seed": "\(plan.workload.seed)",
      "segment": "\(plan.workload.segment + 1)/\(plan.workload.segments)",
    ]
    for (name, value) in labels ?? [:] {
      if let name = Metric.LabelName(validating: name) { values[name] = value }
    }
    return Metric(
      .gauge, "apnscope_load_info", help: "1; its labels are the version, the seed, the segment and those of --label.",
      samples: [.init(labels: values, .integer(1))])
  }
}
