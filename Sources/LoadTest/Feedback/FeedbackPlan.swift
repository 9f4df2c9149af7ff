extension LoadPlan {
  /// How a load polls the feedback service, and what it does with the tokens that the service lists.
  ///
  /// A token counts as listed when a list that was read to its end has it with a time after the token's registration.
  /// All tokens are registered at the start of the run.
  public struct Feedback: Sendable {
    /// The service's host, port and addresses. TLS is that of the connections to the gateway.
    public var service = Gateway()
    /// The time from the start of the schedule to the first poll, and from poll to poll.
    public var interval = Duration.seconds(10)
    /// The time limit of a poll. A poll that takes longer is cut off, and counts as incomplete.
    public var timeout = Duration.seconds(30)
    /// The maximum number of tuples of a poll. A list that has more is cut off, and its poll counts as incomplete.
    public var maximumTuples = 10_000_000
    /// Whether notifications to listed tokens are left out.
    public var prunes = true
    /// The maximum number of tokens that are remembered, in at most 64 bytes each while a poll changes them. A tuple
    /// with a further token is counted; notifications to the token are sent.
    public var maximumTokens = 1_000_000

    public init() { service.port = 2196 }
  }
}
