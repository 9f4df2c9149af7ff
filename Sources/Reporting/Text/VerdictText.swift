import Bytes
import Measurement

/// A verdict on providers as a few lines of text.
struct VerdictText {
  let lines: [String]

  init(_ verdict: ProviderVerdict) {
    var lines = verdict.stories.lines
    if verdict.discarded > 0 {
      let resend = verdict.resend.map { ", after \(Self.times($0))" } ?? ""
      let never = verdict.notSentAgain > 0 ? "; \(grouped(verdict.notSentAgain)) not" : ""
      lines.append(
        "sent again     \(grouped(verdict.sentAgain)) of \(grouped(verdict.discarded)) discarded sendings\(resend)\(never)"
      )
    }
    if let reconnect = verdict.reconnect { lines.append("reconnects     after \(Self.times(reconnect))") }
    var sending = "\(grouped(verdict.connections.sending)) connections with notifications"
    if verdict.connections.ofOneNotification > 0 {
      sending += ", \(grouped(verdict.connections.ofOneNotification)) with a single one"
    }
    if let reads = verdict.notificationsPerRead {
      sending += "; \(fixed(reads.mean, 1)) notifications at once, \(grouped(Int(reads.max))) at most"
    }
    lines.append("sending        \(sending)")
    if let requests = verdict.http2 { lines += Self.lines(of: requests) }
    if verdict.findings.isEmpty {
      lines.append("findings       none")
    } else {
      lines += verdict.findings.enumerated().map { ($0 == 0 ? "findings       " : "               ") + $1.text }
    }
    self.lines = lines
  }

  private static func lines(of requests: InspectionReport.Requests) -> [String] {
    var lines: [String] = []
    if let answers = requests.answerWords(most: 10) {
      let left = requests.answers.count - 10
      lines.append("answers        \(answers)\(left > 0 ? ", and \(left) more kinds" : "")")
    }
    if requests.fates.unknown > 0 { lines.append("unanswered     \(grouped(requests.fates.unknown))") }
    return lines + requests.lines.map { $0.name.padded(to: 15) + ControlCharacters.escaped($0.text) }
  }

  private static func times(_ times: RecoveryTimes) -> String {
    "\(span(times.p50S)) (median), \(span(times.p99S)) (99 %), \(span(times.maxS)) (longest)"
  }
}
