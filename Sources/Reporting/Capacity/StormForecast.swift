import Measurement

/// The time until all connections are back when all of them open at once, with full handshakes: a reconnect storm.
///
/// It is that of a trial which did so. Fewer connections take their part of its time, and at most all of it; up to
/// twice as many take as many times longer; for more there is no answer.
public struct StormForecast: Sendable, Equatable, Encodable {
  /// The number of connections.
  public var connections: Int
  /// The seconds until all are back; `nil` when no trial proves a time.
  public var seconds: Double?
  /// The evidence of `seconds`; `nil` without them.
  public var basis: Basis?
  /// The number of the trial that the time is from; `nil` without one.
  public var trial: Int?
  /// Handshakes a second in that trial.
  public var handshakesPerS: Double?
  /// Percentiles of the trial's full handshakes in microseconds; `nil` without TLS.
  public var handshakeP50Us: Int?
  public var handshakeP99Us: Int?
  /// Sentences about what the time does not show, or why there is none.
  public var notes: [String] = []

  /// Connections beyond this multiple of the measured ones have no prediction.
  private static let reach = 2.0

  /// The forecasts of a document: of the numbers that it asks for, otherwise of those that were tried.
  static func all(of document: CapacityDocument) -> [StormForecast] {
    let trials = document.trials.filter { $0.purpose == .storm }
    return (document.storms ?? trials.map(\.connections)).map { StormForecast($0, from: trials) }
  }

  init(_ connections: Int, from trials: [CapacityTrial]) {
    self.connections = connections
    // Of those with equally many connections the last one, which is another try if there are several.
    let complete = Array(trials.filter(Self.isComplete).reversed())
    guard
      let trial = complete.filter({ $0.connections >= connections }).min(by: { $0.connections < $1.connections })
        ?? complete.reversed().max(by: { $0.connections < $1.connections }), let opening = trial.opening
    else {
      notes = [Self.lack(trials)]
      return
    }
    // As numbers of any size, since a document may have any.
    guard connections > 0, Double(connections) <= Self.reach * Double(trial.connections) else {
      notes = [
        "no answer for \(counted(connections, "connection")): the most that a trial opened at once are \(grouped(trial.connections)), and no prediction is made for more than twice as many"
      ]
      return
    }
    self.trial = trial.number
    seconds = opening.seconds * Double(connections) / Double(trial.connections)
    basis =
      connections == trial.connections ? .measured : connections < trial.connections ? .interpolated : .extrapolated
    handshakesPerS = Double(opening.opened) / opening.seconds
    (handshakeP50Us, handshakeP99Us) = (opening.handshakeP50Us, opening.handshakeP99Us)
    switch basis {
    case .measured, nil: break
    case .interpolated:
      notes.append(
        "no trial opened so few: the time is at most that of \(grouped(trial.connections)), \(Unit.seconds.text(opening.seconds))"
      )
    case .extrapolated:
      notes.append("no trial opened so many: the time is predicted from the pace of \(grouped(trial.connections))")
    }
    if opening.failed > 0 {
      notes.append("\(counted(opening.failed, "attempt")) failed in that trial, and its back-off is in the time")
    }
    if opening.cpuCores > 0.9 * Double(trial.availableCores) {
      notes.append("the generator used more than 90 % of its processor time for it: the gateway may be faster")
    }
    if !trial.reasons.isEmpty {
      notes.append("other processes disturbed the trial: the gateway may be faster")
    }
  }

  /// Whether all connections of a trial were opened at once, with full handshakes, and were taken by the gateway.
  private static func isComplete(_ trial: CapacityTrial) -> Bool {
    guard let opening = trial.opening, !trial.wasInterrupted else { return false }
    return trial.connections > 0 && opening.seconds > 0 && opening.staggerS == 0 && opening.resumed == 0
      && opening.opened >= trial.connections && opening.up >= trial.connections
  }

  private static func lack(_ trials: [CapacityTrial]) -> String {
    guard let trial = trials.last else {
      return "no trial opened connections at once: 'apnscope capacity --storm' makes one"
    }
    if trial.wasInterrupted { return "it was interrupted in the trial that opened connections at once" }
    guard let opening = trial.opening else { return "trial \(trial.number) has no figures of its connections" }
    return
      "not all connections were back: \(grouped(min(opening.opened, opening.up))) of \(grouped(trial.connections)) after \(Unit.seconds.text(opening.seconds)), \(counted(opening.failed, "failed attempt"))"
  }
}
