import Bytes
import HTTP2
import PushModel

/// One connection of a provider with APNs over HTTP/2, as an observer sees it: requests, answers, and what became of each
/// notification.
///
/// A plain value without I/O or clock. It takes the pieces of both directions as they were captured, with gaps, and calls
/// a handler with requests, answers and fates in order.
///
/// The fates (RFC 9113 sections 6.8, 8.1 and 8.7):
/// - a final status of 200 to 299 accepts, any other rejects;
/// - REFUSED_STREAM discards, and so does a GOAWAY whose last stream is below, unless an answer to a higher stream shows
///   the last stream to be untrue: the server has not processed it;
/// - a request that never ended is discarded, if its end cannot be missing from the recording;
/// - everything else is unknown: streams reset for another reason, or without an answer at the connection's end.
///
/// An answer counts, even if a GOAWAY excludes its stream. So a fate is decided when the stream is closed, or with the
/// connection.
///
/// Memory: the limits, each for one connection.
public struct ProviderSession: Sendable {
  /// Limits on what a connection can make the session keep.
  public struct Limits: Sendable, Equatable {
    /// Frames, fields and streams.
    public var connection = ConnectionReader.Limits()
    /// The most bytes of content kept of a request or of an answer. Longer content has its length only.
    public var content = 8_192
    /// The most different provider tokens that are told apart. Further ones have no number.
    public var providerTokens = 1_000
    /// The most reasons of rejections that an observer counts apart. Further ones are counted together.
    public var rejectionReasons = 64

    /// The default limits.
    public init() {}
  }

  /// The use of the connection, by the paths of its requests.
  public enum Service: Sendable, Hashable {
    /// Notifications.
    case gateway
    /// Channel management.
    case channels
    /// Other requests only.
    case other
  }

  /// How one direction ended.
  public enum Ending: Sendable, Hashable {
    /// By FIN or RST, so that nothing follows.
    case closed
    /// The recording ends, or stops seeing the connection.
    case recordingEnds
  }

  private var reader: ConnectionReader
  private var state: SessionState

  /// Makes the session of a connection.
  ///
  /// - Parameters:
  ///   - isFromStart: whether the first bytes of both directions are the first of the connection.
  ///   - limits: what it keeps at most.
  public init(isFromStart: Bool = true, limits: Limits = Limits()) {
    reader = ConnectionReader(isFromStart: isFromStart, limits: limits.connection)
    state = SessionState(limits, isFromStart: isFromStart)
  }

  // MARK: what is known

  /// The notifications with each fate; those whose fate is not decided are in none.
  public var fates: FateCounts { state.fates }
  /// The number of notifications so far.
  public var notifications: Int { state.notifications }
  /// The number of final answers to any request.
  public var responses: Int { state.responses }
  /// The different provider tokens in the order of their first use, at most `Limits.providerTokens`; one that cannot be
  /// read has a problem. Empty after `drop`.
  public var providerTokens: [Result<ProviderToken, ProviderToken.Problem>] { state.tokens.list }
  /// Whether `providerTokens` are all that the connection has used: none can be missing, or is beyond the limit.
  public var areProviderTokensCounted: Bool { state.tokens.isComplete }
  /// The requests whose provider token was sent in full and added to no header table, and the bytes of these values as
  /// they were coded.
  public var literalTokens: (count: Int, bytes: Int) { state.tokens.literals }
  /// The PRIORITY frames of the client.
  public var priorityFrames: Int { state.priorityFrames }
  /// The use of the connection; `nil` before the first request whose path is known.
  public var service: Service? { state.service }
  /// The most streams that were open at once; `nil` if frames may be missing.
  public var openStreamsMaximum: Int? { state.openStreamsMaximum }
  /// The server's limit on open streams that is in force; `nil` without one, or if it is not known.
  public var streamLimit: Int? { state.areSettingsKnown ? state.streamLimit : nil }
  /// The first limit on open streams that was in force; `nil` if there was none, or it is not known.
  public var firstStreamLimit: Int? { state.firstStreamLimit }
  /// The GOAWAY frames of the server.
  public var goAways: Int { state.goAways }
  /// The RST_STREAM frames of both sides.
  public var resets: Int { state.resets }
  /// Whether every entry of a side's header table is known.
  public func isTableKnown(of side: FrameReader.Side) -> Bool { reader.isTableKnown(of: side) }
  /// The bytes of content that a side may send before a WINDOW_UPDATE; `nil` if frames may be missing.
  public func connectionWindow(of side: FrameReader.Side) -> Int? { reader.connectionWindow(of: side) }
  /// The bytes of memory that depend on input, without memory that is ready for what comes.
  ///
  /// - Complexity: O(1).
  public private(set) var heldBytes = 0

  /// Frees memory that is ready for what comes, of a connection that is idle.
  public mutating func freeSpare() {
    reader.freeSpare()
    state.freeSpare()
    count()
  }

  /// Notifications that have begun, and whose requests were not handed out.
  package var unfinishedNotifications: Int { state.unfinishedNotifications }

  /// Begins anew with all counts, as if the connection began here with the header tables, settings and streams that it
  /// has: what was sent before is in no count and no event.
  package mutating func restart() { state.restart() }

  /// Counts what is held. Not when it is asked for: an observer asks before and after each piece, of a value so large that
  /// reading it costs a copy.
  private mutating func count() { heldBytes = reader.heldBytes + state.heldBytes }

  // MARK: input

  /// Reads a piece of one direction.
  ///
  /// - Parameters:
  ///   - bytes: the next bytes of the direction.
  ///   - side: the sender.
  ///   - offset: the stream offset of the first byte.
  ///   - arrival: where the piece came from.
  ///   - startsRecord: whether a TLS record begins with the piece, and none that continues a full one.
  ///   - isAhead: whether the sender had received bytes of the other side that were not read yet.
  ///   - handler: receives what happens.
  public mutating func read(
    _ bytes: RawSpan, from side: FrameReader.Side, at offset: Int, arrival: Arrival, startsRecord: Bool = false,
    isAhead: Bool = false, into handler: inout some ProviderHandler
  ) {
    read(bytes, from: side, at: offset, arrival: arrival, startsRecord: startsRecord, isAhead: isAhead) {
      handler.receive($0, $1)
    }
  }

  /// Reads a piece of one direction, and calls a function with what happens; otherwise as above.
  public mutating func read(
    _ bytes: RawSpan, from side: FrameReader.Side, at offset: Int, arrival: Arrival, startsRecord: Bool = false,
    isAhead: Bool = false, _ receive: (ProviderEvent, RawSpan) -> Void
  ) {
    state.now = arrival
    state.isAhead = isAhead
    var position = 0
    var isRead = false
    while !isRead {
      isRead = reader.read(
        bytes, &position, from: side, at: offset, arrival: arrival, startsRecord: startsRecord, into: &state)
      state.handOut(receive)
    }
    count()
  }

  /// Notes that bytes of one direction are missing.
  public mutating func gap(
    from side: FrameReader.Side, at offset: Int, length: Int, arrival: Arrival, into handler: inout some ProviderHandler
  ) {
    gap(from: side, at: offset, length: length, arrival: arrival) { handler.receive($0, $1) }
  }

  /// Notes that bytes of one direction are missing, and calls a function with what happens.
  public mutating func gap(
    from side: FrameReader.Side, at offset: Int, length: Int, arrival: Arrival,
    _ receive: (ProviderEvent, RawSpan) -> Void
  ) {
    state.now = arrival
    reader.gap(from: side, at: offset, length: length, arrival: arrival, into: &state) { $0.handOut(receive) }
    state.handOut(receive)
    count()
  }

  /// Notes the end of one direction. The second one ends the connection, and decides the fates that are open.
  ///
  /// - Parameters:
  ///   - side: the sender.
  ///   - ending: whether bytes may follow that were not recorded.
  ///   - arrival: when it ended.
  ///   - handler: receives what happens.
  public mutating func finish(
    _ side: FrameReader.Side, _ ending: Ending, arrival: Arrival, into handler: inout some ProviderHandler
  ) {
    finish(side, ending, arrival: arrival) { handler.receive($0, $1) }
  }

  /// Notes the end of one direction, and calls a function with what happens.
  public mutating func finish(
    _ side: FrameReader.Side, _ ending: Ending, arrival: Arrival, _ receive: (ProviderEvent, RawSpan) -> Void
  ) {
    state.now = arrival
    if ending == .recordingEnds {
      if side == .client { state.mayClientContinue = true } else { state.mayServerContinue = true }
    }
    reader.finish(side, into: &state) { $0.handOut(receive) }
    state.handOut(receive)
    count()
  }

  /// Gives up what has begun and not ended, as beyond a limit on memory: the rest of it counts as missing.
  ///
  /// - Parameters:
  ///   - offsets: the stream offsets of the next bytes of both directions.
  ///   - arrival: when it was given up.
  ///   - receive: called with what happens.
  public mutating func drop(
    at offsets: (client: Int, server: Int), arrival: Arrival, _ receive: (ProviderEvent, RawSpan) -> Void
  ) {
    state.now = arrival
    reader.drop(at: offsets, arrival: arrival, into: &state) { $0.handOut(receive) }
    // What happened comes first: freeing the spare memory empties the queue.
    state.handOut(receive)
    state.giveUpTokens()
    state.freeSpare()
    count()
  }
}
