/// A member of an object: its name, shape and meaning.
public struct Field: Sendable, Equatable {
  /// The unit of a number.
  public enum Unit: String, Sendable, CaseIterable {
    case seconds = "s"
    case milliseconds = "ms"
    case microseconds = "us"
    case bytes
    case perSecond = "1/s"
    case bytesPerSecond = "bytes/s"
    case bitsPerSecond = "bits/s"
    /// A part of 1: 0.01 is 1 %.
    case share = "share of 1"
    case cores
    /// Seconds since 1970-01-01 UTC.
    case unixSeconds = "UNIX seconds"
    case unixMilliseconds = "UNIX milliseconds"
  }

  /// The period to which a value refers.
  public enum Window: String, Sendable {
    case run = "the whole run"
    /// Counted by the time at which a notification was written.
    case measured = "the measured phase"
    case phase = "its phase"
    case second = "its second"
    case trial = "the whole trial"
    case trialMeasured = "the trial's measured phase"
  }

  /// The condition under which the field is present.
  public enum Presence: Sendable, Equatable {
    case always
    /// Only if this condition holds; a part of a sentence, as "the connection uses TLS".
    case when(String)
    /// Always in documents of this version and later, never in earlier ones.
    case since(String)
    /// Only in documents from before this version.
    case until(String)
  }

  /// The name, which does not change between versions.
  public let name: String
  /// The values that the field can have.
  public let shape: Shape
  /// The meaning, in one or two sentences of Markdown.
  public let text: String
  /// The unit of a number; `nil` for counts and other values.
  public let unit: Unit?
  /// The period to which the value refers, if that is not obvious.
  public let window: Window?
  /// The condition under which the field is present.
  public let presence: Presence

  package init(
    _ name: String, _ shape: Shape, _ text: String, unit: Unit? = nil, of window: Window? = nil,
    when condition: String? = nil, since version: String? = nil, until last: String? = nil
  ) {
    (self.name, self.shape, self.text, self.unit, self.window) = (name, shape, text, unit, window)
    presence =
      condition.map(Presence.when) ?? version.map(Presence.since) ?? last.map(Presence.until) ?? .always
  }

  /// The meaning with the window and the presence, as sentences.
  var description: String {
    var sentences = [text]
    if let window { sentences.append("Of \(window.rawValue).") }
    switch presence {
    case .always: break
    case .when(let condition): sentences.append("Only when \(condition).")
    case .since(let version): sentences.append("Since \(version).")
    case .until(let version): sentences.append("Only before \(version).")
    }
    return sentences.joined(separator: " ")
  }
}
