import Measurement

/// The gateway's books beside those of the run, line by line.
struct Agreement {
  struct Line {
    var name: String
    var ours: String
    var theirs: String
    var rule: String
    var holds: Bool
  }

  /// What must hold between this side's number and the gateway's. Its words are made of the numbers that are checked.
  enum Rule {
    case equal
    /// The gateway's may be more, by so many at most.
    case more([Allowance])
    /// The gateway's may be less, because some never arrived, or more, by so many at most.
    case lessOrMore([Allowance])
    case none

    /// Notifications that may be in the gateway's number and are not in this side's.
    typealias Allowance = (count: Int, what: String)

    // Counts of a document may be anything: differences instead of sums, which cannot overflow for what is not negative.
    func holds(_ ours: Int, _ theirs: Int) -> Bool {
      switch self {
      case .equal: ours == theirs
      case .more(let allowed):
        theirs >= ours && theirs.subtractingReportingOverflow(ours).partialValue <= Self.sum(allowed)
      case .lessOrMore(let allowed):
        theirs <= ours || theirs.subtractingReportingOverflow(ours).partialValue <= Self.sum(allowed)
      case .none: theirs == 0
      }
    }

    var text: String {
      switch self {
      case .equal: "equal"
      case .none: "none"
      case .more(let allowed):
        Self.sum(allowed) == 0 ? "equal" : "the gateway's is more by \(Self.words(allowed)) at most"
      case .lessOrMore(let allowed):
        Self.sum(allowed) == 0
          ? "the gateway's is not more; less, if some never arrived"
          : "the gateway's is more by \(Self.words(allowed)) at most; less, if some never arrived"
      }
    }

    private static func sum(_ allowed: [Allowance]) -> Int {
      allowed.reduce(0) { $0.addingReportingOverflow($1.count).partialValue }
    }

    private static func words(_ allowed: [Allowance]) -> String {
      allowed.filter { $0.count > 0 }.map { "\(grouped($0.count)) \($0.what)" }.joined(separator: " and ")
    }
  }

  private(set) var lines: [Line] = []

  init(_ result: RunResult, _ ledger: Ledger) {
    let (sendings, gateway) = (result.sendings, ledger.gateway)
    let unknown: Rule.Allowance = (sendings.unknown, "unknown")
    let markers: Rule.Allowance = (sendings.markers, sendings.markers == 1 ? "marker" : "markers")
    let rejected = gateway.rejected.values.reduce(0) { $0.addingReportingOverflow($1).partialValue }
    add("accepted", sendings.accepted, gateway.accepted, .more([unknown]))
    add("rejected", sendings.rejected, rejected, .more([markers, unknown]))
    add("discarded", sendings.discarded, gateway.discarded, .lessOrMore([markers, unknown]))
    add("written, received", sendings.written, gateway.received, .lessOrMore([markers]))
    let statuses = Set(result.errorResponses.keys).union(gateway.errorResponses.keys)
    for status in statuses.sorted(by: { (Int($0) ?? .max, $0) < (Int($1) ?? .max, $1) }) {
      add(
        "responses of status \(status)", result.errorResponses[status] ?? 0, gateway.errorResponses[status] ?? 0,
        .more([markers]))
    }
    add("connections with a handshake", result.connections.opened, gateway.handshakes, .equal)
    add("sessions resumed", result.connections.resumed, gateway.resumed, .equal)
    add("malformed frames", 0, gateway.malformed, .none)
  }

  private mutating func add(_ name: String, _ ours: Int, _ theirs: Int, _ rule: Rule) {
    lines.append(
      Line(
        name: name, ours: grouped(ours), theirs: grouped(theirs), rule: rule.text, holds: rule.holds(ours, theirs)))
  }
}
