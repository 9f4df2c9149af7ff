import Measurement

/// The resources of a campaign, predicted from measurements: connections, hosts, time, network, and the cost of errors.
public struct CampaignPlan: Sendable, Equatable, Encodable {
  /// The share of a connection's or core's capacity to plan with; the rest is headroom.
  package static let headroom = 0.7

  /// A campaign at one share of errors.
  ///
  /// In the first case the rate, sendings and reconnects are those of the trial that the plan is based on; in the other
  /// cases they follow the goodput law, and are never better.
  public struct Case: Sendable, Equatable, Encodable {
    /// The share of rejected notifications, from 0 to 1.
    public var errorShare: Double
    /// The evidence of the rates at this share.
    public var basis: Basis
    /// Accepted notifications a second on one connection.
    public var perConnectionPerS: Double
    /// Accepted notifications a second on all measured connections together.
    public var acceptedPerS: Double
    /// The number of sendings for each accepted notification: 1 without resends.
    public var sendingsEach: Double
    /// Reconnects a second: in the first case as in the trial; in the others at the demand or, without one, at the
    /// accepted rate.
    public var reconnectsPerS: Double
    /// The seconds that the target's notifications need; `nil` without a target.
    public var secondsForTarget: Double?
    /// The number of connections needed to finish within the target's time; `nil` without such a time, and when no
    /// trial proves a number.
    public var connections: Int?
    /// The evidence of `connections`; `nil` as above.
    public var connectionsBasis: Basis?
    /// The number of machines like this one that are needed, and one more, so that one may fail; `nil` as above, and
    /// when the generator's processor time was not measured.
    public var hosts: Int?
  }

  /// The seconds for which a trial has held the sustained rate, its settling included; `nil`: no trial passed at it.
  public var heldS: Double?
  /// The measured share of errors without deliberate faults, from 0 to 1.
  public var errorShare: Double
  /// The bound that the share is below with 95 % confidence, 3/n, if there were no errors; otherwise `nil`.
  public var errorShareBelow: Double?
  /// The case of the measured share, then cases of common shares.
  public var cases: [Case]
  /// Notifications a second that the target requires; `nil` without a time.
  public var demandPerS: Double?
  /// Bits a second on the wire, with TLS records and TCP/IP headers, at the demand or, without one, at the sustained
  /// rate.
  public var networkBitsPerS: Double
  /// Bytes on the wire for each notification.
  public var bytesEach: Double
  /// The largest resident memory of the generator, in bytes.
  public var memoryBytes: Int
  /// Notes about what the numbers do not show.
  public var notes: [String] = []

  /// `nil` when no rate passed.
  init?(_ document: CapacityDocument, _ analysis: CapacityAnalysis) {
    guard let sustained = document.sustainedPerS, sustained > 0 else { return nil }
    let free = document.trials.filter { $0.verdict != .void && $0.sendings.written > 0 && $0.purpose != .storm }
    // The last trial that passed at the rate and confirmed it; otherwise any. A passed trial above the rate was
    // contradicted by a longer one.
    let steady = document.trials.reversed().filter { $0.verdict == .passed && ($0.offeredPerS ?? 0) <= sustained }
      .max { ($0.offeredPerS ?? 0) < ($1.offeredPerS ?? 0) }
    guard let typical = steady ?? free.first else { return nil }
    heldS = document.heldS
    let errorShare = typical.errorShare
    self.errorShare = errorShare
    let seen = typical.sendings.accepted + typical.sendings.rejected
    if case .lessThan(let bound) = EventShare(events: typical.sendings.rejected, of: seen) { errorShareBelow = bound }
    let law = CapacityAnalysis.goodputLaw(document.trials)?.law
    let need = ConnectionNeed(document)
    let demand = document.target.flatMap { target in
      target.withinS.map { Double(target.notifications) / $0 }
    }
    let each = Double(typical.writtenBytes) / Double(max(1, typical.sendings.written))
    let onWire = each * Self.overhead
    let cores = Double(max(1, document.environment.cores))
    let measuredConnections = document.connections

    let measuredRate = steady?.acceptedPerS ?? sustained

    func plan(_ share: Double, _ basis: Basis, _ accepted: Double, _ sendingsEach: Double, _ reconnects: Double) -> Case
    {
      let connections = demand.flatMap { try? need.connections(for: $0, accepted: accepted).get() }
      var hosts: Int?
      if connections != nil, let demand, let cost = typical.cpuPerNotificationUs, cost > 0 {
        let share = demand * sendingsEach * cost / 1e6 / (cores * Self.headroom)
        hosts = max(2, Int(nearest: min(1e9, share.rounded(.up))) + 1)
      }
      return Case(
        errorShare: share, basis: basis, perConnectionPerS: accepted / Double(measuredConnections),
        acceptedPerS: accepted, sendingsEach: sendingsEach, reconnectsPerS: reconnects,
        secondsForTarget: document.target.map { Double($0.notifications) / accepted }, connections: connections?.count,
        connectionsBasis: connections?.basis, hosts: hosts)
    }
    let mostErrors = document.trials.filter { $0.verdict != .void }.map(\.errorShare).max() ?? 0
    func predicted(_ share: Double, by law: GoodputLaw) -> Case {
      // With fewer errors than measured, the law would predict a higher rate than any measured one.
      let slower = min(1, law.goodput(errorShare: share) / law.goodput(errorShare: errorShare))
      let accepted = measuredRate * slower
      // Trials with intentional errors have about the share that was asked for.
      let basis: Basis = share <= mostErrors * Self.nearlyTheSame ? .interpolated : .extrapolated
      return plan(share, basis, accepted, 1 + share * law.discarded, share * (demand ?? accepted))
    }
    let seconds = typical.settleS + typical.measuredS + typical.drainS
    cases = [
      plan(
        errorShare, .measured, measuredRate,
        Double(typical.sendings.written) / Double(max(1, typical.notifications.accepted)),
        seconds > 0 ? Double(typical.errors) / seconds : 0)
    ]
    if let law { cases += [1e-6, 1e-5, 1e-4, 1e-3].map { predicted($0, by: law) } }
    demandPerS = demand
    networkBitsPerS = (demand ?? sustained) * onWire * 8
    bytesEach = each
    memoryBytes = document.trials.map(\.maxRssBytes).max() ?? 0
    if let demand {
      switch need.connections(for: demand, accepted: measuredRate) {
      case .success(let number): notes += need.notes(on: number, for: demand)
      case .failure(let refusal): notes += need.notes(on: nil, for: demand) + ["\(refusal)"]
      }
    }
    if law == nil { notes.append("\(Self.lack(document)), so the cost of errors is unknown") }
    if let beyond = cases.first(where: { $0.basis == .extrapolated }) {
      notes.append(
        "rates at a share of errors of \(Unit.share.text(beyond.errorShare)) and more are predicted: no trial had more than \(Unit.share.text(mostErrors))"
      )
    }
  }

  private static let nearlyTheSame = 1.1

  /// The reason why there is no goodput law.
  private static func lack(_ document: CapacityDocument) -> String {
    if document.trials.contains(where: \.wasInterrupted) { return "it was interrupted before a trial with errors" }
    if document.trials.contains(where: { $0.purpose == .errors && $0.faultShare > 0 }) {
      return "no law fits the trials with intentional errors"
    }
    return "no trial with intentional errors was run (--error-sweep)"
  }

  /// The share of errors of a case, as it is known: "0.02 %", or "< 0.02 %" when there was none in all that was sent.
  package func shareText(_ one: Case) -> String {
    guard let bound = errorShareBelow, one.errorShare == errorShare else { return Unit.share.text(one.errorShare) }
    return "< " + Unit.share.text(bound)
  }

  /// 29 bytes for each TLS record of 16 KiB (TLS 1.2, AES-GCM), and 66 bytes of Ethernet, IP and TCP for 1,448.
  private static let overhead = (1 + 29.0 / 16_384) * (1 + 66.0 / 1_448)
}
