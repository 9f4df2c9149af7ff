/// The requests of one connection of local push, and what the recording proves about their acknowledgements and about
/// heartbeats.
public struct LocalPushTally: Sendable {
  public enum Side: Sendable, CaseIterable { case client, server }

  /// Numbers of requests: `requests` is the sum of `acknowledged`, `late`, `unanswered` and `open`, and before the end of
  /// those that wait.
  public struct Counts: Sendable, Equatable {
    /// Requests of both sides.
    public var requests = 0
    /// Those that were acknowledged in time.
    public var acknowledged = 0
    /// Those that were acknowledged after the limit, with nothing missing before.
    public var late = 0
    /// The other side was recorded until after the limit or to its end, and has not acknowledged them. Where the
    /// recording is cut, a late acknowledgement may be missing.
    public var unanswered = 0
    /// No acknowledgement was recorded, but the recording may lack it.
    public var open = 0
    /// Requests of the server that were heartbeats.
    public var heartbeats = 0
    /// Times longer than `Limits.silence` between two messages of the server with nothing missing between them.
    public var silences = 0
    /// The longest time between two heartbeats with nothing missing between them, in nanoseconds.
    public var longestInterval: Int64 = 0
  }

  /// Times, and what is kept at most.
  public struct Limits: Sendable {
    /// Within this time in nanoseconds a request has to be acknowledged: 10 s.
    public var answer: Int64 = 10_000_000_000
    /// A client that has heard nothing for this time in nanoseconds gives up: 30 s.
    public var silence: Int64 = 30_000_000_000
    /// Requests of a side that wait. What is beyond stays open.
    public var waiting = 10_000

    public init() {}
  }

  private struct Request {
    var time: Int64
    var isCounted: Bool
    /// An acknowledgement came shortly before it, which may be its own.
    var mayBeAnswered = false
  }

  /// The state of one side.
  private struct State {
    /// The times of its requests without an acknowledgement.
    var requests: [UInt32: Request] = [:]
    /// The times of its acknowledgements whose request has not come: of the other direction a part may come later.
    var early: [UInt32: Int64] = [:]
    /// Bytes of it are missing since this time, or before.
    var lacksSince: Int64?
    /// When its last message came.
    var last: Int64?
    /// The last message and the last heartbeat of which nothing is missing until now.
    var unbroken: Int64?
    var heartbeat: Int64?
  }

  public private(set) var counts = Counts()
  private let limits: Limits
  private var client = State()
  private var server = State()

  public init(limits: Limits = Limits()) { self.limits = limits }

  /// Requests that wait for an acknowledgement.
  public var waiting: Int { client.requests.count + server.requests.count }

  /// Notes a message. O(1).
  ///
  /// A part of one side may come later than what the other one answered to it, as it does after a gap.
  ///
  /// - Parameters:
  ///   - message: the next one of its side.
  ///   - side: who sent it.
  ///   - time: of its last byte, in nanoseconds.
  ///   - isCounted: whether a request, or a silence that it ends, is counted. Acknowledgements always take effect.
  public mutating func note(
    _ message: LocalPushMessage, from side: Side, at time: Int64, isCounted: Bool = true
  ) {
    self[side].last = max(self[side].last ?? time, time)
    if side == .server { noteServer(message, time, isCounted: isCounted) }
    switch message.command {
    case .request: ask(message.identifier, side, Request(time: time, isCounted: isCounted))
    case .acknowledge:
      guard let asked = self[side.other].requests.removeValue(forKey: message.identifier) else {
        guard self[side].early.count < limits.waiting else { return noteLoss(of: side) }
        self[side].early[message.identifier] = time
        return
      }
      noteAnswer(to: asked, at: time, self[side])
    }
  }

  private mutating func ask(_ identifier: UInt32, _ side: Side, _ request: Request) {
    if request.isCounted { counts.requests += 1 }
    // Which of two with the same identifier is acknowledged is not known.
    if let asked = self[side].requests.removeValue(forKey: identifier) {
      decide(asked, self[side.other], hasEnded: false)
    }
    var request = request
    if let answered = self[side.other].early.removeValue(forKey: identifier) {
      if answered >= request.time { return noteAnswer(to: request, at: answered, self[side.other]) }
      // Captured times may be wrong by a little, or it is the answer to an earlier request that is missing.
      request.mayBeAnswered = Self.duration(answered, request.time) <= limits.answer
    }
    guard self[side].requests.count < limits.waiting else {
      if request.isCounted { counts.open += 1 }
      return
    }
    self[side].requests[identifier] = request
  }

  private mutating func noteAnswer(to request: Request, at time: Int64, _ answering: State) {
    guard request.isCounted else { return }
    if Self.duration(request.time, time) <= limits.answer {
      counts.acknowledged += 1
    } else if isWhole(answering, after: request.time), !request.mayBeAnswered {
      counts.late += 1
    } else {
      // An earlier acknowledgement may be what is missing.
      counts.open += 1
    }
  }

  /// Whether nothing of a side is missing within the limit after a time. A loss behind a message that came after the
  /// limit takes nothing from what is known.
  private func isWhole(_ answering: State, after time: Int64) -> Bool {
    answering.lacksSince.map { $0 > .min && Self.duration(time, $0) > limits.answer } ?? true
  }

  /// Notes that bytes of a side are missing or could not be read: they were sent after its last message.
  public mutating func noteLoss(of side: Side) {
    self[side].lacksSince = self[side].lacksSince ?? self[side].last ?? .min
    (self[side].unbroken, self[side].heartbeat) = (nil, nil)
  }

  /// Decides about what waits.
  ///
  /// - Parameters:
  ///   - isClientEndRecorded: the recording has the end of the client's direction.
  ///   - isServerEndRecorded: the recording has the end of the server's direction.
  public mutating func finish(isClientEndRecorded: Bool, isServerEndRecorded: Bool) {
    for side in Side.allCases {
      let hasEnded = side == .client ? isServerEndRecorded : isClientEndRecorded
      for asked in self[side].requests.values { decide(asked, self[side.other], hasEnded: hasEnded) }
      self[side].requests = [:]
    }
  }

  /// Counts a request that has no acknowledgement.
  private mutating func decide(_ request: Request, _ answering: State, hasEnded: Bool) {
    guard request.isCounted else { return }
    let asked = request.time
    // Whoever has ended its direction can answer no more.
    let isOver = hasEnded || answering.last.map { Self.duration(asked, $0) > limits.answer } ?? false
    if isOver, isWhole(answering, after: asked), !request.mayBeAnswered {
      counts.unanswered += 1
    } else {
      counts.open += 1
    }
  }

  private mutating func noteServer(_ message: LocalPushMessage, _ time: Int64, isCounted: Bool) {
    if isCounted, let before = server.unbroken, Self.duration(before, time) > limits.silence { counts.silences += 1 }
    server.unbroken = time
    guard message.command == .request, case .heartbeat? = message.content else { return }
    if isCounted { counts.heartbeats += 1 }
    if isCounted, let before = server.heartbeat {
      counts.longestInterval = max(counts.longestInterval, Self.duration(before, time))
    }
    server.heartbeat = time
  }

  /// Times of a recording may be any.
  private static func duration(_ start: Int64, _ end: Int64) -> Int64 {
    let (duration, overflows) = end.subtractingReportingOverflow(start)
    return overflows ? (end > start ? .max : .min) : duration
  }

  private subscript(_ side: Side) -> State {
    get { side == .client ? client : server }
    _modify { if side == .client { yield &client } else { yield &server } }
  }
}

extension LocalPushTally.Side {
  var other: Self { self == .client ? .server : .client }
}
