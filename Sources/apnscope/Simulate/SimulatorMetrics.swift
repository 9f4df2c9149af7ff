import GatewayControl
import GatewaySimulator
import Measurement
import MetricsEndpoint

extension ObservedGateway {
  /// The verdict on the providers as Prometheus metrics: that of a few seconds ago, from what is kept. They are gauges,
  /// because what is open may be decided yet, and what is no longer kept is no longer in them.
  func metrics() async -> [Metric] {
    guard let verdict = await recentVerdict() else { return [] }
    func gauge(_ name: Metric.Name, _ help: String, _ count: Int) -> Metric {
      Metric(.gauge, name, help: help, .integer(count))
    }
    var metrics = [
      Metric(
        .gauge, "apnscope_verdict_notifications", help: "Distinct notifications by outcome.",
        samples: StoryOutcome.allCases.map {
          .init(labels: ["outcome": $0.name], .integer(verdict.stories[$0]))
        }),
      gauge("apnscope_verdict_discarded", "Sendings that were discarded after an error response.", verdict.discarded),
      gauge("apnscope_verdict_sent_again", "Discarded sendings that were sent again.", verdict.sentAgain),
      gauge(
        "apnscope_verdict_not_observed",
        "Notifications that are no longer kept, or were left out, and are in no other of these figures.",
        verdict.notObserved),
    ]
    if let resend = verdict.resend {
      metrics.append(
        Metric(
          .gauge, "apnscope_verdict_resend_seconds",
          help: "Time from an error response to the sending again of what it discarded.",
          samples: [("0.5", resend.p50S), ("0.99", resend.p99S), ("1", resend.maxS)].map {
            .init(labels: ["quantile": $0.0], .real($0.1))
          }))
    }
    return metrics
  }
}

extension Simulator {
  /// The ledger's counts as Prometheus metrics.
  func metrics() async -> [Metric] {
    let ledger = await snapshot()
    let open = await openConnections()
    let (gateway, devices, feedback) = (ledger.gateway, ledger.devices, ledger.feedback)
    func value(_ count: Int) -> Metric.Value { .integer(count) }
    func byStatus(_ counts: [String: Int]) -> [Metric.Sample] {
      counts.sorted { $0.key < $1.key }.map { .init(labels: ["status": $0.key], value($0.value)) }
    }
    func counter(_ name: Metric.Name, _ help: String, _ count: Int) -> Metric {
      Metric(.counter, name, help: help, value(count))
    }
    var metrics = [
      Metric(
        .gauge, "apnscope_gateway_info", help: "1; its label is the version.",
        samples: [.init(labels: ["version": Apnscope.version], 1)]),
      counter("apnscope_gateway_connections_total", "TCP connections accepted.", gateway.connections),
      Metric(
        .gauge, "apnscope_gateway_connections_open", help: "Connections that are open.", value(open.gateway)),
      counter("apnscope_gateway_handshakes_total", "Handshakes completed.", gateway.handshakes),
      counter("apnscope_gateway_handshakes_resumed_total", "Handshakes that resumed a session.", gateway.resumed),
      counter(
        "apnscope_gateway_handshake_failures_total", "Connections whose handshake failed.", gateway.handshakeFailures),
      counter("apnscope_gateway_refused_total", "Connections closed right after their handshake.", gateway.refused),
      counter("apnscope_gateway_received_total", "Notifications received.", gateway.received),
      counter("apnscope_gateway_accepted_total", "Notifications accepted.", gateway.accepted),
      Metric(
        .counter, "apnscope_gateway_rejected_total", help: "Notifications rejected.",
        samples: byStatus(gateway.rejected)),
      counter(
        "apnscope_gateway_discarded_total", "Notifications discarded after an error response.", gateway.discarded),
      counter(
        "apnscope_gateway_malformed_total", "Rejections of bytes that are not a frame.", gateway.binary.malformed),
      counter("apnscope_gateway_incomplete_total", "Connections that ended inside a frame.", gateway.binary.incomplete),
      Metric(
        .counter, "apnscope_gateway_error_responses_total", help: "Error responses sent.",
        samples: byStatus(gateway.binary.errorResponses)),
      counter(
        "apnscope_gateway_error_responses_incomplete_total",
        "Error responses of which only a part was sent.", gateway.binary.errorResponsesIncomplete),
      counter("apnscope_gateway_received_bytes_total", "Plaintext bytes from providers.", gateway.bytes),
      counter("apnscope_devices_delivered_total", "Notifications delivered to devices.", devices.delivered),
      counter("apnscope_devices_coalesced_total", "Notifications replaced by a later one.", devices.coalesced),
      counter("apnscope_devices_expired_total", "Notifications that expired.", devices.expired),
      counter("apnscope_devices_dropped_total", "Notifications dropped for lack of space.", devices.dropped),
      counter("apnscope_devices_uninstalled_total", "Notifications for uninstalled apps.", devices.uninstalled),
      Metric(
        .gauge, "apnscope_devices_stored", help: "Notifications stored for devices.", value(devices.stored)),
      counter("apnscope_feedback_connections_total", "Connections to the feedback service.", feedback.connections),
      counter(
        "apnscope_feedback_handshake_failures_total", "Feedback connections whose handshake failed.",
        feedback.handshakeFailures),
      counter("apnscope_feedback_completed_total", "Feedback lists read completely.", feedback.completed),
      counter("apnscope_feedback_tuples_sent_total", "Feedback tuples sent.", feedback.tuplesSent),
      counter(
        "apnscope_feedback_lost_total", "Failures that could not be put on a feedback list.", feedback.lost),
      Metric(.gauge, "apnscope_feedback_waiting", help: "Tokens on feedback lists.", value(feedback.waiting)),
    ]
    if let channel = devices.channel {
      metrics += [
        counter("apnscope_devices_connections_total", "TCP connections of devices.", channel.connections),
        counter("apnscope_devices_sent_total", "Notifications sent to devices.", channel.sent),
        counter(
          "apnscope_devices_repeated_total", "Of these, those that were sent before, on a connection that ended.",
          channel.repeated),
        Metric(
          .counter, "apnscope_devices_refused_total", help: "Requests of devices that were refused.",
          samples: channel.refused.sorted { $0.key < $1.key }.map {
            .init(labels: ["reason": $0.key], value($0.value))
          }),
        counter(
          "apnscope_devices_unkept_total", "Notifications not accepted because they could not be kept.",
          channel.unkept),
        Metric(.gauge, "apnscope_devices_registered", help: "Valid tokens of devices.", value(channel.registered)),
        Metric(.gauge, "apnscope_devices_online", help: "Of these, those that are connected.", value(channel.online)),
        Metric(
          .gauge, "apnscope_devices_unacknowledged", help: "Notifications sent to devices and not acknowledged.",
          value(channel.unacknowledged)),
      ]
    }
    if let localPush = ledger.localPush { metrics += localPush.metrics }
    guard let served = ledger.http2 else { return metrics }
    metrics += [
      counter("apnscope_http2_connections_total", "TCP connections over HTTP/2.", served.connections),
      counter("apnscope_http2_received_total", "Notifications over HTTP/2.", served.received),
      Metric(
        .counter, "apnscope_http2_answers_total", help: "Answers to all requests over HTTP/2.",
        samples: byStatus(served.answers)),
      counter("apnscope_http2_incomplete_total", "Notifications over HTTP/2 that never ended.", served.incomplete),
      counter("apnscope_http2_goaways_total", "GOAWAY frames sent.", served.goaways),
      counter("apnscope_http2_resets_sent_total", "RST_STREAM frames sent.", served.resetsSent),
      counter(
        "apnscope_http2_unknown_total", "Notifications whose provider was told nothing of them.",
        served.unknown.accepted + served.unknown.rejected + served.unknown.discarded),
      Metric(
        .counter, "apnscope_http2_faults_total", help: "Faults that were done on demand.",
        samples: served.faults.sorted { $0.key < $1.key }.map { .init(labels: ["kind": $0.key], value($0.value)) }),
      counter(
        "apnscope_http2_violations_total", "Rules of HTTP/2 that clients broke.",
        served.violations.values.reduce(0, +)),
      counter(
        "apnscope_http2_floods_total", "Connections ended for what a client did too often.",
        served.floods.values.reduce(0, +)),
      counter(
        "apnscope_http2_provider_tokens_total", "Provider tokens accepted.",
        served.providerTokens.count + served.providerTokensOmitted),
    ]
    return metrics
  }
}
