import Measurement

/// A demand: notifications a second over time, in steps of constant rates.
///
/// Nothing is demanded before its first step and after its end.
public struct Demand: Sendable, Equatable, Codable {
  /// The kind of file that a demand was read from.
  public enum Origin: String, Sendable, Codable {
    /// The document of `apnscope inspect --format json`: what a recording shows as sent.
    case inspection
    /// A table of times and rates.
    case table
    /// A history: what its loads sent, or its simulators received.
    case history
  }

  /// The name of the file.
  public private(set) var source: String
  public private(set) var origin: Origin
  /// The factor of all rates: 2 is twice the demand. Above 0.
  public var factor = 1.0
  /// The time of second 0: UTC, RFC 3339; `nil` when the file has no such times.
  public private(set) var started: String?
  /// The beginnings of the steps in seconds, ascending from 0.
  public private(set) var fromS: [Double]
  /// The rate of each step in notifications a second, before the factor.
  public private(set) var perS: [Double]
  /// The end of the last step.
  public private(set) var endS: Double
  /// The share of rejected notifications in what the file shows, from 0 to 1; `nil`: unknown.
  public private(set) var errorShare: Double?
  /// Sentences about what the file does not show.
  public private(set) var notes: [String]

  private enum CodingKeys: String, CodingKey {
    case source, origin, factor, started, fromS, perS, endS, errorShare, notes
  }

  /// Steps that follow each other; equal neighbours become one.
  ///
  /// - Parameters:
  ///   - steps: beginnings in seconds, the first at 0 and each above the one before, and rates, which are finite and not
  ///     negative; at least one.
  ///   - endS: above the last beginning.
  /// - Returns: `nil` for other values.
  package init?(
    steps: [(fromS: Double, perS: Double)], endS: Double, source: String, origin: Origin, started: String? = nil,
    errorShare: Double? = nil, notes: [String] = []
  ) {
    (fromS, perS) = ([], [])
    fromS.reserveCapacity(steps.count)
    perS.reserveCapacity(steps.count)
    for step in steps where perS.last != step.perS {
      fromS.append(step.fromS)
      perS.append(step.perS)
    }
    (self.endS, self.source, self.origin, self.started) = (endS, source, origin, started)
    (self.errorShare, self.notes) = (errorShare, notes)
    guard isSound else { return nil }
  }

  private var isSound: Bool {
    guard fromS.count == perS.count, fromS.first == 0, let last = fromS.last, endS.isFinite, endS > last,
      factor.isFinite, factor > 0
    else { return false }
    return perS.allSatisfy { $0.isFinite && $0 >= 0 } && zip(fromS, fromS.dropFirst()).allSatisfy { $0 < $1 }
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    source = try container.decode(String.self, forKey: .source)
    origin = try container.decode(Origin.self, forKey: .origin)
    factor = try container.decode(Double.self, forKey: .factor)
    started = try container.decodeIfPresent(String.self, forKey: .started)
    fromS = try container.decode([Double].self, forKey: .fromS)
    perS = try container.decode([Double].self, forKey: .perS)
    endS = try container.decode(Double.self, forKey: .endS)
    errorShare = try container.decodeIfPresent(Double.self, forKey: .errorShare)
    notes = try container.decode([String].self, forKey: .notes)
    guard isSound else {
      throw DecodingError.dataCorruptedError(
        forKey: .fromS, in: container, debugDescription: "the steps of the demand do not follow each other")
    }
  }

  /// A part of a demand with one rate.
  package struct Step: Sendable, Equatable {
    package var fromS: Double
    package var toS: Double
    /// Notifications a second, with the factor.
    package var perS: Double
  }

  package var count: Int { fromS.count }

  /// - Parameter index: from 0 to below `count`.
  package func step(_ index: Int) -> Step {
    Step(
      fromS: fromS[index], toS: index + 1 < fromS.count ? fromS[index + 1] : endS, perS: perS[index] * factor)
  }

  /// The first step with the highest rate.
  package var peak: Step {
    var best = step(0)
    for index in 1..<max(1, count) where perS[index] * factor > best.perS { best = step(index) }
    return best
  }

  /// When something happens, behind a figure: " at 09:00:12", or the seconds from the beginning.
  package func place(of seconds: Double) -> String {
    if let started, let start = unixSeconds(started), start + seconds < 9e9 {
      return " at \(rfc3339(Int64((start + seconds) * 1e9)))"
    }
    return " after \(Unit.seconds.text(seconds))"
  }

  /// All notifications together.
  package var notifications: Double { (0..<count).reduce(0) { $0 + step($1).perS * (step($1).toS - step($1).fromS) } }

  /// The end of the last step in which anything is demanded; 0 when nothing is.
  package var lastDueS: Double { (0..<count).last { perS[$0] > 0 }.map { step($0).toS } ?? 0 }
}
