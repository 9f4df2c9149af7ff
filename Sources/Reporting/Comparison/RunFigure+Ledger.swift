import Measurement

extension RunFigure {
  /// The figures of ledgers, in the order in which they are shown. Their names are none of a load's.
  package static let ofLedgers: [RunFigure] = shares + counts + statuses + connections + outcomes + times

  /// Of what arrived, whose number depends on the load.
  private static let shares: [RunFigure] = {
    func share(_ name: String, _ better: Better, _ part: @escaping @Sendable (Ledger) -> Double) -> RunFigure {
      RunFigure(ofLedger: name, .share, better) {
        $0.gateway.received > 0 ? part($0) / Double($0.gateway.received) : nil
      }
    }
    return [
      share("accepted_share", .higher) { Double($0.gateway.accepted) },
      share("rejected_share", .lower) { $0.rejectedCount },
      share("discarded_share", .lower) { Double($0.gateway.discarded) },
    ]
  }()

  private static let counts: [RunFigure] = {
    func count(_ name: String, _ better: Better, _ value: @escaping @Sendable (Ledger) -> Double) -> RunFigure {
      RunFigure(ofLedger: name, .count, better, value)
    }
    return [
      count("received", .neither) { Double($0.gateway.received) },
      count("accepted", .neither) { Double($0.gateway.accepted) },
      count("rejected", .lower) { $0.rejectedCount },
      count("discarded", .lower) { Double($0.gateway.discarded) },
      count("malformed", .lower) { Double($0.gateway.binary.malformed) },
      count("error_responses", .lower) {
        $0.gateway.binary.errorResponses.values.reduce(0) { $0 + Double($1) }
      },
      RunFigure(ofLedger: "received_bytes", .bytes, .neither) { Double($0.gateway.bytes) },
    ]
  }()

  /// Rejections by status: those of the protocol's documentation.
  private static let statuses: [RunFigure] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 255].map { status in
    RunFigure(ofLedger: "status_\(status)", .count, .lower, isLeftOutAtZero: true) {
      Double($0.gateway.rejected["\(status)"] ?? 0)
    }
  }

  private static let connections: [RunFigure] = [
    RunFigure(ofLedger: "connections", .count, .neither) { Double($0.gateway.connections) },
    RunFigure(ofLedger: "handshake_failures", .count, .lower) { Double($0.gateway.handshakeFailures) },
    RunFigure(ofLedger: "refused", .count, .lower) { Double($0.gateway.refused) },
    RunFigure(ofLedger: "resumed_share", .share, .neither) {
      $0.gateway.handshakes > 0 ? Double($0.gateway.resumed) / Double($0.gateway.handshakes) : nil
    },
    RunFigure(ofLedger: "received_per_connection", .count, .neither) {
      $0.gateway.connections > 0 ? Double($0.gateway.received) / Double($0.gateway.connections) : nil
    },
  ]

  /// Of the verdict's distinct notifications, each over all of its sendings.
  private static let outcomes: [RunFigure] = {
    func outcome(
      _ name: String, _ better: Better, _ count: @escaping @Sendable (ProviderVerdict) -> Int
    ) -> [RunFigure] {
      [
        RunFigure(ofLedger: "\(name)_share", .share, better) {
          guard let verdict = $0.verdict, verdict.stories.total > 0 else { return nil }
          return Double(count(verdict)) / Double(verdict.stories.total)
        },
        RunFigure(ofLedger: name, .count, better) { $0.verdict.map { Double(count($0)) } },
      ]
    }
    return outcome("lost", .lower) { $0.stories.lost } + outcome("may_be_lost", .lower) { $0.mayBeLost }
      + outcome("open", .lower) { $0.stories.open } + outcome("accepted_twice", .lower) { $0.stories.acceptedTwice }
      + outcome("recovered", .neither) { $0.stories.recovered } + outcome("expired", .lower) { $0.stories.expired }
      + [
        RunFigure(ofLedger: "sent_again_share", .share, .higher) {
          guard let verdict = $0.verdict, verdict.discarded > 0 else { return nil }
          return Double(verdict.sentAgain) / Double(verdict.discarded)
        }
      ]
  }()

  /// From an error response on, in microseconds as all times.
  private static let times: [RunFigure] = {
    func time(_ name: String, _ seconds: @escaping @Sendable (ProviderVerdict) -> Double?) -> RunFigure {
      RunFigure(ofLedger: name, .microseconds, .lower) { $0.verdict.flatMap(seconds).map { $0 * 1e6 } }
    }
    return [
      time("resend_p50") { $0.resend?.p50S }, time("resend_p99") { $0.resend?.p99S },
      time("resend_max") { $0.resend?.maxS },
      time("reconnect_p50") { $0.reconnect?.p50S }, time("reconnect_p99") { $0.reconnect?.p99S },
    ]
  }()
}

extension Ledger {
  /// All rejections; a sum of what a file says may be any number.
  fileprivate var rejectedCount: Double { gateway.rejected.values.reduce(0) { $0 + Double($1) } }
}
