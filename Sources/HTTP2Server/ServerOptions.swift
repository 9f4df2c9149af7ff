import HTTP2

/// The settings of a server session, and all limits on a client's use of it.
public struct ServerOptions: Sendable, Equatable {
  /// The answer to a stream above the limit on open streams.
  public enum Excess: String, Sendable, CaseIterable {
    /// RST_STREAM with REFUSED_STREAM: the request may be repeated.
    case refused
    /// RST_STREAM with PROTOCOL_ERROR.
    case protocolError = "protocol_error"
    /// GOAWAY with PROTOCOL_ERROR, which ends the connection.
    case goAway = "goaway"
  }

  /// SETTINGS_MAX_CONCURRENT_STREAMS; `nil`: none is announced.
  public var streamLimit: Int? = 1_000
  /// SETTINGS_INITIAL_WINDOW_SIZE in bytes.
  public var streamWindow = 65_535
  /// SETTINGS_MAX_HEADER_LIST_SIZE in bytes, which is advisory; `nil`: none is announced.
  public var announcedFieldListSize: Int? = 8_000
  /// Whether WINDOW_UPDATE frames are sent. Without, a client can send no more than the windows of the beginning.
  public var opensWindows = true
  public var excess = Excess.refused

  /// The most streams that are open at once, whatever the client may believe before it knows the limit. Further ones
  /// are refused.
  public var maximumOpenStreams = 10_000
  /// The longest field block in bytes, as it is sent.
  public var maximumBlock = 65_536
  /// The largest field section in bytes (RFC 9113 section 10.5.1).
  public var maximumFieldList = 65_536
  /// The bytes of content that are kept of a request. Of longer content the length is known.
  public var keptContent = 8_192
  /// The bytes of content that a request may have. A longer one ends here, and is answered at once.
  public var maximumContent = 1 << 20
  public var floods = FloodLimits()

  public init() {}
}

/// How often a client may do what costs a server more than the client.
///
/// Each is a number that may come at once and a number that is added in each second. Above, the connection ends with
/// GOAWAY and ENHANCE_YOUR_CALM. (CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2024-27316 and others are such floods.)
public struct FloodLimits: Sendable, Equatable {
  /// RST_STREAM frames of the client that close an open stream.
  public var resets = Allowance(burst: 1_000, perSecond: 100)
  /// SETTINGS frames.
  public var settings = Allowance(burst: 100, perSecond: 10)
  /// PING frames.
  public var pings = Allowance(burst: 1_000, perSecond: 100)
  /// DATA frames without content and without END_STREAM.
  public var emptyFrames = Allowance(burst: 1_000, perSecond: 100)
  /// WINDOW_UPDATE frames beyond two for each DATA frame of the server.
  public var windowUpdates = Allowance(burst: 10_000, perSecond: 1_000)
  /// PRIORITY frames, and frames of undefined types.
  public var ignoredFrames = Allowance(burst: 10_000, perSecond: 1_000)
  /// CONTINUATION frames of one field block.
  public var continuations = 16

  public init() {}
}

/// A number of events that may come at once, and how many more with each second.
public struct Allowance: Sendable, Equatable {
  public var burst: Int
  public var perSecond: Int

  public init(burst: Int, perSecond: Int) { (self.burst, self.perSecond) = (burst, perSecond) }
}

/// A kind of frames of which a client sent too many.
public enum Flood: String, Sendable, CaseIterable {
  case resets, settings, pings
  case emptyFrames = "empty_frames"
  case windowUpdates = "window_updates"
  case ignoredFrames = "ignored_frames"
  case continuations
}

/// What is left of an allowance.
struct AllowanceLeft: Sendable {
  private var left: Int
  private var second: Int64 = .min

  init(_ allowance: Allowance) { left = allowance.burst }

  /// Takes one event; `false` if none is left.
  mutating func take(_ allowance: Allowance, second now: Int64) -> Bool {
    if now > second {
      // The difference of two seconds of a clock, so neither overflows after the first call.
      let passed = second == .min ? 0 : Int(now - second)
      left = min(allowance.burst, left + min(passed, 1 << 20) * allowance.perSecond)
      second = now
    }
    guard left > 0 else { return false }
    left -= 1
    return true
  }

  /// Adds events that are justified by something else.
  mutating func add(_ count: Int, _ allowance: Allowance) { left = min(allowance.burst, left + count) }
}
