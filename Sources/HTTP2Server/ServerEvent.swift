import HTTP2

/// An open stream.
public struct ServerStream: Sendable, Hashable {
  /// The stream's number.
  public var number: UInt32
  /// A number that no other open stream has, from `began` until the stream is closed: the index of whatever is kept for
  /// each stream. Small, and used again.
  public var slot: Int

  public init(number: UInt32, slot: Int) { (self.number, self.slot) = (number, slot) }
}

/// Where the content of a request is.
public enum ServerContent: Sendable, Equatable {
  /// This range of the bytes that were given to `ServerSession.next`.
  case bytes(Range<Int>)
  /// In the session, for `ServerSession.takeContent`.
  case kept
}

/// Why a request is not processed.
public enum RefusalCause: Sendable, Hashable {
  /// More streams than allowed are open.
  case streamLimit
  /// The stream is above the last one of a GOAWAY.
  case goAway
}

/// An event on a connection, caused by its client.
public enum ServerEvent: Sendable, Equatable {
  /// A request began; its fields are in `ServerSession.fields` until the next event.
  case began(ServerStream)
  /// A request is complete. `length` is that of its content, of which `keptContent` are there at most.
  case ended(ServerStream, ServerContent, length: Int)
  /// A request that is not processed; its fields are in `ServerSession.fields`. Its stream is reset or ignored.
  case refused(stream: UInt32, RefusalCause)
  /// The client reset an open stream, or broke a rule on it, and the session reset it.
  case abandoned(ServerStream, ErrorCode, by: AbandonmentCause)
  /// A rule was broken on a stream that is not open.
  case violated(Violation)
  /// The client broke a rule of the connection, or flooded it: GOAWAY is in the output, and nothing else is read.
  case failed(ConnectionFailure)
  /// GOAWAY of the client.
  case goAway(lastStream: UInt32, ErrorCode)
}

/// Why a stream ended before its answer.
public enum AbandonmentCause: Sendable, Hashable {
  case client
  case violation(Rule)
}

/// Why a session ended a connection.
public enum ConnectionFailure: Sendable, Hashable {
  case violation(Violation)
  case flood(Flood)
}
