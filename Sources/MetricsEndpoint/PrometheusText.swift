import Bytes

/// Prometheus' text exposition format 0.0.4.
///
/// ```
/// # HELP apnscope_rejected_total Notifications that were answered with an error response.
/// # TYPE apnscope_rejected_total counter
/// apnscope_rejected_total{status="8",topic="com.example.app"} 12
/// ```
public enum PrometheusText {
  /// The media type of a page.
  public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  /// The text of a page. Metrics with the same name share one heading, the first one's, as the format requires; labels
  /// are sorted by name.
  public static func page(of metrics: [Metric]) -> String {
    var groups: [Metric] = []
    var places: [Metric.Name: Int] = [:]
    for metric in metrics {
      if let place = places[metric.name] {
        groups[place].samples += metric.samples
      } else {
        places[metric.name] = groups.count
        groups.append(metric)
      }
    }
    var page = ByteWriter(capacity: 1 << 12)
    for metric in groups { page.write(metric) }
    return String(decoding: [UInt8](copying: page.bytes), as: UTF8.self)
  }
}

extension ByteWriter {
  fileprivate mutating func write(_ metric: Metric) {
    let name = metric.name.description
    if !metric.help.isEmpty {
      write("# HELP ")
      write(text: name)
      write(" ")
      write(escaping: metric.help, quotes: false)
      write("\n")
    }
    write("# TYPE ")
    write(text: name)
    write(" ")
    write(text: metric.kind.rawValue)
    write("\n")
    for sample in metric.samples {
      if case .histogram(let histogram) = sample.value {
        write(histogram, name, sample.labels)
      } else {
        write(name, sample.labels, sample.value)
      }
    }
  }

  /// One line for each bound, and for all values; then sum and count.
  private mutating func write(_ histogram: Metric.Histogram, _ name: String, _ labels: [Metric.LabelName: String]) {
    for bucket in histogram.buckets {
      write(name + "_bucket", labels, .integer(bucket.count), upTo: bucket.bound.description)
    }
    write(name + "_bucket", labels, .integer(histogram.count), upTo: "+Inf")
    write(name + "_sum", labels, .real(histogram.sum))
    write(name + "_count", labels, .integer(histogram.count))
  }

  private mutating func write(
    _ name: String, _ labels: [Metric.LabelName: String], _ value: Metric.Value, upTo bound: String? = nil
  ) {
    write(text: name)
    var labels = labels
    if let bound { labels["le"] = bound }
    if !labels.isEmpty { write(labels) }
    write(" ")
    write(value)
    write("\n")
  }

  private mutating func write(_ labels: [Metric.LabelName: String]) {
    var separator: StaticString = "{"
    for (name, value) in labels.sorted(by: { $0.key < $1.key }) {
      write(separator)
      write(text: name.description)
      write("=\"")
      write(escaping: value, quotes: true)
      write("\"")
      separator = ","
    }
    write("}")
  }

  private mutating func write(_ value: Metric.Value) {
    switch value {
    case .integer(let number): write(decimal: number)
    case .real(let number) where number.isNaN: write("NaN")
    case .real(let number) where number.isInfinite: write(number < 0 ? "-Inf" : "+Inf")
    case .real(let number): write(text: number.description)
    // Has lines of its own.
    case .histogram(let histogram): write(decimal: histogram.count)
    }
  }

  /// A quote is escaped in the value of a label only: in a help text a backslash before it would be shown.
  private mutating func write(escaping text: String, quotes: Bool) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\\"): write("\\\\")
      case UInt8(ascii: "\n"): write("\\n")
      case UInt8(ascii: "\"") where quotes: write("\\\"")
      // Prometheus' own parser treats NUL as the end of the page.
      case 0: write("\u{fffd}")
      default: write(byte)
      }
    }
  }
}
