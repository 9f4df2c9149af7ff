import MetricsEndpoint
import NIOPosix
import Testing

extension LibraryExamples {
  @Test("MetricsEndpoint: a count is shown to Prometheus")
  func metrics() async throws {
    let pushes = Metric(
      .counter, "pushes_total", help: "Notifications, by what became of them.",
      samples: [.init(labels: ["fate": "accepted"], 199_974), .init(labels: ["fate": "rejected"], 30)])
    let group = MultiThreadedEventLoopGroup.singleton
    let endpoint = try await MetricsEndpoint.start(host: "127.0.0.1", port: 0, group: group) { [pushes] }
    let page = "http://\(endpoint.address)/metrics"
    // … the closure is called for each page …
    await endpoint.stop()

    #expect(page.hasPrefix("http://127.0.0.1:"))
    #expect(PrometheusText.page(of: [pushes]).contains(#"pushes_total{fate="accepted"} 199974"#))
  }
}
