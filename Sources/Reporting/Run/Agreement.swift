import Measurement

/// Compares the gateway's books with those of a run or a capture, line by line.
struct Agreement {
  struct Line {
    var name: String
    var ours: String
    var theirs: String
    var rule: String
    var holds: Bool
  }

  /// The required relation between this side's number and the gateway's. Its text is made from the checked numbers.
  enum Rule {
    /// The gateway's may be higher, by at most this many.
    case more([Allowance])
    /// The gateway's may be lower by at most this many, or higher.
    case near(less: [Allowance], more: [Allowance])
    /// The gateway's may be lower, because some never arrived, or higher by at most this many.
    case lessOrMore([Allowance])
    /// The service's may be higher, because lists were cut off.
    case cutOff
    case none

    /// Notifications that may be in the gateway's number and are not in this side's.
    typealias Allowance = (count: Int, what: String)

    // Counts of a document may be arbitrary: differences of non-negative numbers cannot overflow, unlike sums.
    func holds(_ ours: Int, _ theirs: Int) -> Bool {
      switch self {
      case .more(let allowed):
        theirs >= ours && theirs.subtractingReportingOverflow(ours).partialValue <= Self.sum(allowed)
      case .near(let less, let more):
        theirs >= ours
          ? theirs.subtractingReportingOverflow(ours).partialValue <= Self.sum(more)
          : ours.subtractingReportingOverflow(theirs).partialValue <= Self.sum(less)
      case .lessOrMore(let allowed):
        theirs <= ours || theirs.subtractingReportingOverflow(ours).partialValue <= Self.sum(allowed)
      case .cutOff: theirs >= ours
      case .none: theirs == 0
      }
    }

    var text: String {
      switch self {
      case .none: "none"
      case .cutOff: "the service's is not less; more, because lists were cut off"
      case .more(let allowed):
        Self.sum(allowed) == 0 ? "equal" : "the gateway's is more by \(Self.words(allowed)) at most"
      case .near(let less, let more):
        Self.sum(less + more) == 0 ? "equal" : "the gateway's is \(Self.words(less: less, more: more))"
      case .lessOrMore(let allowed):
        Self.sum(allowed) == 0
          ? "the gateway's is not more; less, if some never arrived"
          : "the gateway's is more by \(Self.words(allowed)) at most; less, if some never arrived"
      }
    }

    private static func sum(_ allowed: [Allowance]) -> Int {
      allowed.reduce(0) { $0.addingReportingOverflow($1.count).partialValue }
    }

    private static func words(less: [Allowance], more: [Allowance]) -> String {
      [("less", less), ("more", more)].filter { sum($0.1) > 0 }.map { "\($0) by \(words($1)) at most" }
        .joined(separator: ", or ")
    }

    private static func words(_ allowed: [Allowance]) -> String {
      allowed.filter { $0.count > 0 }.map { "\(grouped($0.count)) \($0.what)" }.joined(separator: " and ")
    }
  }

  private(set) var lines: [Line] = []

  init(_ result: RunResult, _ ledger: Ledger) {
    let (sendings, gateway) = (result.sendings, ledger.gateway)
    let unknown: Rule.Allowance = (sendings.unknown, "unknown")
    let markers: Rule.Allowance = (sendings.binary.markers, sendings.binary.markers == 1 ? "marker" : "markers")
    let rejected = gateway.rejected.values.reduce(0) { $0.addingReportingOverflow($1).partialValue }
    add("accepted", sendings.accepted, gateway.accepted, .more([unknown]))
    add("rejected", sendings.rejected, rejected, .more([markers, unknown]))
    add("discarded", sendings.discarded, gateway.discarded, .lessOrMore([markers, unknown]))
    add("written, received", sendings.written, gateway.received, .lessOrMore([markers]))
    let statuses = Set(result.binary.errorResponses.keys).union(gateway.binary.errorResponses.keys)
    for status in statuses.sorted(by: { (Int($0) ?? .max, $0) < (Int($1) ?? .max, $1) }) {
      add(
        "responses of status \(status)", result.binary.errorResponses[status] ?? 0,
        gateway.binary.errorResponses[status] ?? 0,
        .more([markers]))
    }
    // The side that sends the last handshake message completes first; the other side may still fail.
    let handshakes = Rule.near(
      less: [(gateway.handshakeFailures, "that failed there")], more: [(result.connections.failed, "that failed here")])
    add("connections with a handshake", result.connections.opened, gateway.handshakes, handshakes)
    add("sessions resumed", result.connections.resumed, gateway.resumed, handshakes)
    let sendsMalformed = result.binary.errorResponses["128"] != nil
    add(
      "malformed frames", result.binary.errorResponses["128"] ?? 0, gateway.binary.malformed,
      sendsMalformed ? .more([markers, unknown]) : .none)
    if let feedback = result.feedback { addFeedback(feedback, ledger.feedback) }
  }

  /// A capture, which sees what was sent: also what the gateway did not read, because it had closed the connection.
  init(_ report: InspectionReport, _ ledger: Ledger) {
    let (fates, gateway) = (report.fates, ledger.gateway)
    let rejected = gateway.rejected.values.reduce(0) { $0.addingReportingOverflow($1).partialValue }
    let unknown: Rule.Allowance = (fates.unknown, "unknown")
    add("accepted", fates.accepted, gateway.accepted, .more([unknown]))
    add("rejected", fates.rejected, rejected, .more([]))
    add("discarded", fates.discarded, gateway.discarded, .lessOrMore([unknown]))
    add("sent, received", report.summary.notifications, gateway.received, .lessOrMore([]))
    let statuses = Set(report.errorsByStatus.keys.map(String.init)).union(gateway.binary.errorResponses.keys)
    for status in statuses.sorted(by: { (Int($0) ?? .max, $0) < (Int($1) ?? .max, $1) }) {
      let seen = Int(status).flatMap { report.errorsByStatus[$0] } ?? 0
      add("responses of status \(status)", seen, gateway.binary.errorResponses[status] ?? 0, .more([]))
    }
    let connections = report.summary.connections.subtractingReportingOverflow(report.feedbackConnections).partialValue
    add("connections", connections, gateway.connections, .more([]))
    add("feedback tuples", report.summary.feedbackTuples, ledger.feedback.tuplesSent, .more([]))
    add("feedback connections", report.feedbackConnections, ledger.feedback.connections, .more([]))
  }

  /// Of lists that were cut off the service may have sent more, and of the connections of failed polls it may know.
  private mutating func addFeedback(_ feedback: RunResult.Feedback, _ theirs: Ledger.Feedback) {
    let isCutOff = feedback.incomplete > 0 || feedback.failed > 0
    let polls = feedback.complete.addingReportingOverflow(feedback.incomplete).partialValue
    add("feedback tuples", feedback.tuples, theirs.tuplesSent, isCutOff ? .cutOff : .more([]))
    add("feedback polls", polls, theirs.connections, .more([(feedback.failed, "that failed here")]))
    // The service counts a list as read when this machine's kernel has taken it.
    add("feedback lists read", feedback.complete, theirs.completed, isCutOff ? .cutOff : .more([]))
  }

  private mutating func add(_ name: String, _ ours: Int, _ theirs: Int, _ rule: Rule) {
    lines.append(
      Line(
        name: name, ours: grouped(ours), theirs: grouped(theirs), rule: rule.text, holds: rule.holds(ours, theirs)))
  }
}
