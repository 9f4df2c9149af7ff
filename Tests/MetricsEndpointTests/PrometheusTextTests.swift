import MetricsEndpoint
import TestSupport
import Testing

@Suite struct PrometheusTextTests {
  @Test("The page is as Prometheus wants it") func pageAsPrometheusWantsIt() {
    let page = PrometheusText.page(of: [
      Metric(
        .counter, "apnscope_rejected_total", help: "Notifications that were answered with an error response.",
        samples: [.init(labels: ["topic": "com.example.app", "status": "8"], 12), .init(labels: ["status": "10"], 0)]),
      Metric(.gauge, "apnscope_up", help: "", 1),
    ])
    #expect(
      page == """
        # HELP apnscope_rejected_total Notifications that were answered with an error response.
        # TYPE apnscope_rejected_total counter
        apnscope_rejected_total{status="8",topic="com.example.app"} 12
        apnscope_rejected_total{status="10"} 0
        # TYPE apnscope_up gauge
        apnscope_up 1

        """)
  }

  @Test("A histogram has a line for each bound and for all, and its sum and count; labels stay on each")
  func histogram() {
    let histogram = Metric.Histogram([.init(upTo: 0.005, 2), .init(upTo: 1, 7)], sum: 12.5, count: 9)
    let page = PrometheusText.page(of: [
      Metric(
        .histogram, "a_seconds", help: "",
        samples: [.init(labels: ["n": "x"], .histogram(histogram)), .init(.histogram(.init([], sum: 0, count: 0)))])
    ])
    #expect(
      page == """
        # TYPE a_seconds histogram
        a_seconds_bucket{le="0.005",n="x"} 2
        a_seconds_bucket{le="1.0",n="x"} 7
        a_seconds_bucket{le="+Inf",n="x"} 9
        a_seconds_sum{n="x"} 12.5
        a_seconds_count{n="x"} 9
        a_seconds_bucket{le="+Inf"} 0
        a_seconds_sum 0.0
        a_seconds_count 0

        """)
  }

  @Test("No metrics are an empty page") func noMetricsAreAnEmptyPage() {
    #expect(PrometheusText.page(of: []) == "")
  }

  @Test(
    "Each value is written exactly",
    arguments: [
      (Metric.Value.integer(.max), "9223372036854775807"), (.integer(.min), "-9223372036854775808"),
      (9_007_199_254_740_993, "9007199254740993"), (0.1, "0.1"), (1.0, "1.0"), (.real(.infinity), "+Inf"),
      (.real(-.infinity), "-Inf"), (.real(.nan), "NaN"), (.real(.leastNonzeroMagnitude), "5e-324"),
    ])
  func values(_ value: Metric.Value, _ text: String) {
    #expect(PrometheusText.page(of: [Metric(.gauge, "a", help: "", value)]) == "# TYPE a gauge\na \(text)\n")
  }

  @Test("Metrics of one name come under one heading") func metricsOfOneNameComeUnderOneHeading() {
    let page = PrometheusText.page(of: [
      Metric(.gauge, "a", help: "First.", samples: [.init(labels: ["n": "1"], 1)]), Metric(.gauge, "b", help: "", 2),
      Metric(.gauge, "a", help: "Second.", samples: [.init(labels: ["n": "2"], 3)]),
    ])
    #expect(page == "# HELP a First.\n# TYPE a gauge\na{n=\"1\"} 1\na{n=\"2\"} 3\n# TYPE b gauge\nb 2\n")
  }

  @Test("Help keeps its quotes and loses its line feeds") func helpKeepsItsQuotesAndLosesItsLineFeeds() {
    let page = PrometheusText.page(of: [Metric(.gauge, "a", help: "a \"b\"\n\\n\r", 1)])
    #expect(page == "# HELP a a \"b\"\\n\\\\n\r\n# TYPE a gauge\na 1\n")
  }

  /// Whatever a label holds, the page has one line for it, and reading the line as Prometheus does gives it back.
  @Test("Label values of strangers stay in their quotes") func labelValuesOfStrangersStayInTheirQuotes() throws {
    let pieces = ["\\", "\"", "\n", "\r", "}", "{", " ", ",", "=", "#", "é", "\u{1F4F1}", "\u{2028}", "n", "\u{7f}"]
    var random = SeededGenerator(seed: 4)
    for _ in 0..<2_000 {
      let value = (0..<Int.random(in: 0...12, using: &random)).map { _ in
        pieces[Int.random(in: 0..<pieces.count, using: &random)]
      }.joined()
      let page = PrometheusText.page(of: [
        Metric(.counter, "a", help: value, samples: [.init(labels: ["topic": value], 7)])
      ])
      let lines = page.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      #expect(lines.count == (value.isEmpty ? 3 : 4))
      let line = String(decoding: lines[lines.count - 2], as: UTF8.self)
      #expect(line.hasPrefix("a{topic=\"") && line.hasSuffix("\"} 7"))
      #expect(unescaped(line.utf8.dropFirst(9).dropLast(4)) == value)
    }
  }

  @Test("A label cannot end the page") func aLabelCannotEndThePage() {
    let page = PrometheusText.page(of: [Metric(.gauge, "a", help: "", samples: [.init(labels: ["b": "c\0d"], 1)])])
    #expect(page == "# TYPE a gauge\na{b=\"c\u{fffd}d\"} 1\n")
  }

  @Test("Names are validated", arguments: ["", "1a", "a b", "a-b", "é", "a\n", "a{", "a\"", "a:b", "__a"])
  func namesAreValidated(_ text: String) {
    #expect(Metric.LabelName(validating: text) == nil)
    #expect((Metric.Name(validating: text) == nil) == !["a:b", "__a"].contains(text))
  }

  private func unescaped(_ bytes: some Sequence<UInt8>) -> String? {
    var result: [UInt8] = []
    var isEscaped = false
    for byte in bytes {
      if isEscaped {
        switch byte {
        case UInt8(ascii: "n"): result.append(UInt8(ascii: "\n"))
        case UInt8(ascii: "\\"), UInt8(ascii: "\""): result.append(byte)
        default: return nil
        }
        isEscaped = false
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        return nil
      } else {
        result.append(byte)
      }
    }
    return isEscaped ? nil : String(decoding: result, as: UTF8.self)
  }
}
