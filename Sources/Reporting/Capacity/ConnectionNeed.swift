import Measurement

/// The number of connections that a demand needs, as far as the trials of a search prove one.
struct ConnectionNeed: Sendable {
  /// A number of connections and its evidence.
  struct Number: Sendable, Equatable {
    var count: Int
    var basis: Basis
  }

  /// The reason why no number is proven, as a sentence.
  struct Refusal: Error, Equatable, CustomStringConvertible { var description: String }

  private let fit: ScalabilityFit?
  /// The connections of the search.
  private let measured: Int
  /// The most connections of a trial.
  private let widest: Int
  /// The most that a trial took, in accepted notifications a second.
  private let most: Double

  init(_ document: CapacityDocument) {
    let taken = document.trials.filter { $0.verdict != .void && $0.purpose != .storm }
    fit = CapacityAnalysis.scalabilityFit(document.trials)
    measured = max(1, document.connections)
    widest = max(measured, taken.map(\.connections).max() ?? 1)
    most = taken.map(\.acceptedPerS).max() ?? 0
  }

  /// The fewest connections that satisfy a demand with headroom: in proportion up to the connections of the search, by
  /// the law over connections up to twice the measured ones, and no number beyond.
  ///
  /// - Parameters:
  ///   - demand: notifications a second.
  ///   - accepted: notifications a second that the connections of the search get accepted.
  func connections(for demand: Double, accepted: Double) -> Result<Number, Refusal> {
    let straight = Int(
      nearest: max(1, min(1e9, (demand / (accepted / Double(measured) * CampaignPlan.headroom)).rounded(.up))))
    guard let fit, let burst = fit.throughput(at: Double(measured)), burst > 0 else {
      // Fewer connections than were measured get at least their part; more are another matter.
      guard straight <= measured else {
        return .failure(
          Refusal(
            description:
              "\(Unit.perSecond.text(demand)) is more than \(counted(measured, "connection")) may be planned to take, and no law over connections was measured: how many it needs is unknown (see --connections-sweep)"
          ))
      }
      return .success(Number(count: straight, basis: straight == measured ? .measured : .interpolated))
    }
    // Bursts are scaled to the sustained rate over the connections of the search.
    let factor = accepted / burst
    let limit = Int(nearest: min(2 * fit.largest, 1e9))
    let count =
      straight > limit
      ? nil
      : (1...max(1, limit)).first { count in
        (fit.throughput(at: Double(count)) ?? 0) * factor * CampaignPlan.headroom >= demand
      }
    guard let count else {
      return .failure(
        Refusal(
          description:
            "\(Unit.perSecond.text(demand)) needs more than twice the \(Int(nearest: fit.largest)) connections that were measured, or more than the gateway sustains: no prediction is made for that many"
        ))
    }
    let basis: Basis =
      count > widest || demand > most ? .extrapolated : count == measured ? .measured : .interpolated
    return .success(Number(count: count, basis: basis))
  }

  /// Sentences about what is predicted and not measured.
  ///
  /// - Parameter number: the answer; `nil`: there is none.
  func notes(on number: Number?, for demand: Double) -> [String] {
    if demand > most {
      let what = number == nil ? "" : ": connections and hosts for it are predicted, not measured"
      return ["\(Unit.perSecond.text(demand)) is more than any trial took (\(Unit.perSecond.text(most)))\(what)"]
    }
    if let count = number?.count, count > widest {
      return ["\(counted(count, "connection")) are predicted: no trial had more than \(grouped(widest))"]
    }
    return []
  }
}
