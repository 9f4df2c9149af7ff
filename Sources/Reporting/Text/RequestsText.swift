import Bytes
import Measurement

extension InspectionReport.Requests {
  /// Answers to notifications, the most frequent first: `3 x 200, 1 x 410 Unregistered`; `nil` without any.
  func answerWords(most: Int) -> String? {
    guard !answers.isEmpty else { return nil }
    return answers.prefix(most).map { row in
      let name = [row.status.map(String.init), row.reason].compactMap { $0 }.joined(separator: " ")
      return "\(grouped(row.count)) x \(name.isEmpty ? "of a lost status" : ControlCharacters.escaped(name))"
    }.joined(separator: ", ")
  }

  /// What the figures say, by name; those that were not measured are left out.
  var lines: [(name: String, text: String)] {
    var lines: [(name: String, text: String)] = []
    if !discardedBy.isEmpty {
      let causes = discardedBy.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
      lines.append(
        ("discarded", causes.map { "\(grouped($0.value)) \(Self.words(ofCause: $0.key))" }.joined(separator: ", ")))
    }
    if !goaways.isEmpty { lines.append(("GOAWAY", goAwayWords)) }
    if !resets.isEmpty {
      let errors = resets.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
      lines.append(
        ("resets", errors.map { "\(grouped($0.value)) \($0.key)" }.joined(separator: ", ") + " of the gateway"))
    }
    if let latency {
      let times = [latency.quantile(0.5), latency.quantile(0.99), latency.maximum].map { span(Double($0) / 1e6) }
      lines.append(
        (
          "latency",
          "\(times[0]) (median), \(times[1]) (99 %), at most \(times[2]), of \(counted(latency.count, "answer"))"
        ))
    }
    if let openStreams {
      var text = "\(grouped(openStreams.quantile(0.5))) open (median), at most \(grouped(openStreams.maximum))"
      if let streamLimitLowest, let streamLimitHighest {
        text +=
          streamLimitLowest == streamLimitHighest
          ? ", \(grouped(streamLimitHighest)) allowed"
          : ", \(grouped(streamLimitLowest)) to \(grouped(streamLimitHighest)) allowed"
      }
      lines.append(("streams", text))
    }
    if let perConnection, perConnection.count > 1 {
      lines.append(
        (
          "a connection",
          "\(grouped(perConnection.quantile(0.5))) notifications (median), at most \(grouped(perConnection.maximum))"
        ))
    }
    if let headerBytes {
      lines.append(
        (
          "header",
          "\(grouped(headerBytes.quantile(0.5))) bytes a notification (median), at most \(grouped(headerBytes.maximum))"
        ))
    }
    if providerTokens.map({ $0 > 0 }) ?? (tokenAgeLeastS != nil) {
      var text = providerTokens.map { counted($0, "provider token") } ?? "provider tokens, some of which may be missing"
      if let tokenAgeLeastS, let tokenAgeGreatestS {
        text += ", \(Self.age(tokenAgeLeastS)) to \(Self.age(tokenAgeGreatestS)) old when used"
      }
      lines.append(("tokens", text))
    }
    if let pings {
      var text = "\(counted(pings, "PING")) of providers, \(grouped(pingsAnswered ?? 0)) known to be answered"
      if let pingMsLeast, let pingMsGreatest {
        text += ", in \(span(pingMsLeast / 1e3)) to \(span(pingMsGreatest / 1e3))"
      }
      lines.append(("pings", text))
    }
    return lines
  }

  /// A cause in words.
  static func words(ofCause cause: String) -> String {
    switch cause {
    case "refused_stream": "refused (REFUSED_STREAM)"
    case "goaway": "excluded by GOAWAY"
    case "incomplete": "never ended"
    default: cause
    }
  }

  private static func age(_ seconds: Double) -> String { seconds < 0 ? "-\(span(-seconds))" : span(seconds) }
}
