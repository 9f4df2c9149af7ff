extension RunResult {
  /// The counts of one of several topics in the whole run. Those of all topics add up to the run's.
  public struct Topic: Sendable, Equatable {
    /// The topic, which a certificate of the load names.
    public var topic: String
    /// The share of the notifications that the weights of the topic's payloads ask for; `nil` when parts of a merged
    /// result differ in it.
    public var share: Double?
    /// Distinct notifications by their fate.
    public var notifications = Notifications()
    /// Sendings by their fate.
    public var sendings = Sendings()
    /// Notifications that were due and never sent.
    public var schedule = Schedule()
    /// Error responses by status.
    public var errorResponses: [String: Int] = [:]
    /// Attempts, connections and how they ended.
    public var connections = Connections()

    package init(_ topic: String, share: Double?) { (self.topic, self.share) = (topic, share) }
  }

  /// The equations of the topics' counts; none without topics.
  var topicInvariants: [Verdict.Invariant] {
    guard let topics else { return [] }
    func all(_ path: KeyPath<Topic, Int>) -> [Int] { topics.map { $0[keyPath: path] } }
    return [
      .init(equation: "generated = sum over topics", notifications.generated, all(\.notifications.generated)),
      .init(equation: "accepted = sum over topics", notifications.accepted, all(\.notifications.accepted)),
      .init(equation: "written = sum over topics", sendings.written, all(\.sendings.written)),
    ]
  }
}

extension RunResult.Topic: Codable {
  private enum CodingKeys: String, CodingKey {
    case topic, share, notifications, sendings, schedule, errorResponses, connections
  }
}

extension RunResult.Topic {
  /// Counts of an unfinished run: what is open is unknown.
  mutating func markOpenUnknown() {
    notifications.markOpenUnknown()
    sendings.markOpenUnknown()
  }
}
