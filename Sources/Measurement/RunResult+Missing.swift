/// The parts missing from a merged result, as failed invariants.
struct Missing {
  /// The segments of all parts together; `nil` if a part has none, or parts are of different streams.
  private(set) var segments: Segments?
  /// Why segments cannot be joined.
  private var misfits: [String] = []
  /// Parts whose run was lost, with where.
  private var lost: [String] = []
  private let unreadable: [String]

  init(_ parts: [PartBrief], unreadable: [String]) {
    self.unreadable = unreadable
    for part in parts where part.isLost {
      // A merged result names the runs itself.
      let named = part.warnings.filter { $0.hasSuffix(Self.lostRun) }
      if named.isEmpty { lost.append("\(part.name)\(Self.lostRun)") } else { lost += named }
    }
    for part in parts {
      let text = part.segment ?? "1/1"
      guard let of = Segments(text) else {
        misfits.append("\(part.name): '\(text)' is not a segment")
        continue
      }
      guard segments == nil || segments?.count == of.count else {
        misfits.append("\(part.name) and \(parts[0].name) have different numbers of segments")
        continue
      }
      if segments == nil { segments = of } else { segments?.add(of) }
    }
    if !misfits.isEmpty { segments = nil }
  }

  var warnings: [String] {
    (misfits.isEmpty ? segments?.warnings ?? [] : [misfits[0]]) + unique(lost) + unreadable
  }

  /// - Parameter allowed: that something is missing; not that something is there twice.
  func invariants(allowed: Bool) -> [RunResult.Verdict.Invariant] {
    var invariants: [RunResult.Verdict.Invariant] = []
    func add(_ name: String, _ problems: [String], proof: String? = nil) {
      if let proof, problems.isEmpty {
        invariants.append(.init(name, holds: true, detail: proof))
      } else if !problems.isEmpty {
        invariants.append(.init(name, holds: false, detail: Segments.list(problems)))
      }
    }
    if let segments, segments.isDivided {
      let missing = segments.missing.map { "\($0) is missing" }
      add(
        Self.segments, (allowed ? [] : missing) + segments.repeated.map { "\($0) is there more than once" },
        proof: missing.isEmpty ? "\(segments.count) of \(segments.count)" : nil)
    } else {
      add(Self.segments, misfits)
    }
    guard !allowed else { return invariants }
    add(Self.runs, unique(lost))
    // Missing segments are reported already, and may be added by a later merge.
    if segments?.missing.isEmpty ?? true { add(Self.documents, unreadable) }
    return invariants
  }

  /// Whether it is an invariant that is evaluated again in a later merge. Unreadable documents are not.
  static func judges(_ invariant: RunResult.Verdict.Invariant) -> Bool {
    [segments, runs].contains { invariant.name == $0 || invariant.name.hasSuffix(": \($0)") }
  }

  private static let segments = "every segment is there, once"
  private static let runs = "every run came to its end"
  private static let documents = "every document could be read"
  private static let lostRun = " is of a run that did not come to its end"
}

extension RunResult {
  /// Marks the books of an unfinished run as lost, for the case that the process is killed: open notifications count as
  /// unknown, so that the books balance.
  ///
  /// - Parameters:
  ///   - phase: the current phase.
  ///   - afterS: seconds since the phase began.
  ///   - goesOn: whether the run is still under way, for a page that follows it.
  package mutating func markLost(in phase: RunPhase, afterS: Double, goesOn: Bool = false) {
    interrupted = goesOn ? nil : Interruption(phase: phase, afterS: afterS, cause: .lost)
    let open = notifications.markOpenUnknown()
    let unsettled = sendings.markOpenUnknown()
    if let open = topics?.indices { for index in open { topics?[index].markOpenUnknown() } }
    if let last = phases.indices.last {
      phases[last].notifications.unknown += open
      phases[last].sendings.unknown += unsettled
    }
    verdict.thresholds = []
    verdict.invariants = invariants(usesMarkers: false)
    if !goesOn { verdict.invariants.append(Missing.lostRun(self)) }
    // Statements that assume a finished run.
    let said = verdict.reasons ?? []
    warnings.removeAll { said.contains($0) }
    let after = (afterS * 10).rounded() / 10
    let reason =
      "the run \(goesOn ? "goes on" : "did not finish"): these are its books after \(after) s of the phase '\(phase.rawValue)'"
    warnings.insert(reason, at: 0)
    (verdict.outcome, verdict.reasons) = (.unproven, [reason])
  }
}

extension RunResult.Notifications {
  /// Counts notifications without a fate as unknown, and returns how many they are.
  @discardableResult
  mutating func markOpenUnknown() -> Int {
    let open = generated &- [accepted, rejected, unknown, abandoned, pruned ?? 0].reduce(0, sum)
    unknown += open
    unproven = sum(unproven, open)
    return open
  }
}

extension RunResult.Sendings {
  /// Counts sendings without a fate as unknown, and returns how many they are.
  @discardableResult
  mutating func markOpenUnknown() -> Int {
    let open = written &- [accepted, rejected, discarded, unknown].reduce(0, sum)
    unknown += open
    return open
  }
}

extension Missing {
  /// An invariant of a lost run's own document: the run was lost.
  fileprivate static func lostRun(_ result: RunResult) -> RunResult.Verdict.Invariant {
    .init(runs, holds: false, detail: "these are the last books that were saved")
  }
}
