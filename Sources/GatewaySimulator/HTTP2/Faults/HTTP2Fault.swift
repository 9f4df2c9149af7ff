import HTTP2

/// A fault of the HTTP/2 provider API on demand: its kind, and its occasion.
///
/// ```swift
/// options.behavior.http2Faults = [try HTTP2Fault("goaway,every=1000,last=notice"), try HTTP2Fault("delay,time=5ms..50ms")]
/// ```
///
/// A fault hits a notification whose content is complete; what it does concerns this notification, or its connection.
/// Faults are asked in order: each that hits is done, but of those that decide about the answer the first alone.
public struct HTTP2Fault: Sendable, Equatable {
  package var kind: Kind
  package var occasion = Occasion()

  package init(_ kind: Kind, _ occasion: Occasion = Occasion()) { (self.kind, self.occasion) = (kind, occasion) }

  /// The disturbance that a fault is.
  package enum Kind: Sendable, Equatable {
    /// The answer comes later.
    case delay(AnswerDelay)
    /// Answers wait for each other, and come in another order.
    case disorder(Disorder)
    /// There is never an answer: to the notification, which is processed, or to anything on the connection from here on,
    /// where nothing is processed any more.
    case silence(ofConnection: Bool)
    /// GOAWAY.
    case goAway(GoAway)
    /// RST_STREAM with REFUSED_STREAM: the notification is not processed.
    case refuse
    /// RST_STREAM instead of an answer: the notification is processed.
    case reset(ErrorCode)
    /// Another SETTINGS_MAX_CONCURRENT_STREAMS from here on.
    case streamLimit(Int)
    /// TooManyRequests above so many notifications a second to one device token, over all connections.
    case throttle(perSecond: Double)
    /// The connection is closed within the answer.
    case close(CutAnswer)
    /// The connection is read at this rate in bytes/s from here on; `nil`: no window is opened any more.
    case slowReading(bytesPerSecond: Int?)
    /// A frame that no server may send, before the answer or in its place.
    case frame(WrongFrame)
    /// The answer is another one.
    case answer(AlteredAnswer)
  }

  /// The answers that wait for each other.
  package struct Disorder: Sendable, Equatable {
    /// When so many wait they are sent, in an order that is drawn.
    package var depth = 8
    /// The longest time that one waits.
    package var within = Duration.milliseconds(100)
  }

  /// GOAWAY and what follows.
  package struct GoAway: Sendable, Equatable {
    /// The last stream that it names.
    package enum LastStream: String, Sendable, CaseIterable {
      /// The highest one that was received.
      case seen
      /// The highest one whose request was complete; requests above are dropped.
      case answered
      /// 2³¹−1, and after `grace` the highest one that was received (RFC 9113 section 6.8).
      case notice
    }
    package enum End: String, Sendable, CaseIterable {
      /// When all streams that it names are answered.
      case drain
      /// At once, by FIN, or by RST.
      case fin, rst
    }

    package var last = LastStream.seen
    package var code = ErrorCode.noError
    /// The reason in its debug data; empty: there is none.
    package var reason = "Shutdown"
    package var end = End.drain
    package var grace = Duration.seconds(1)
  }

  /// The close of a connection within an answer.
  package struct CutAnswer: Sendable, Equatable {
    package var isReset = false
    /// Bytes of the answer that are sent; `nil`: half of its first frame.
    package var bytes: Int?
  }

  /// How an answer differs from the right one.
  package struct AlteredAnswer: Sendable, Equatable {
    package enum Content: String, Sendable, CaseIterable {
      /// None.
      case none
      /// A page in HTML.
      case html
      /// JSON that ends too early.
      case cut
      /// JSON without a reason.
      case empty
    }
    /// `nil`: the right one.
    package var status: Int?
    /// `nil`: the right one, and for a status of its own `{"reason":"InternalServerError"}`.
    package var content: Content?
  }

  /// When a fault hits: notifications that meet all conditions, and of these all or some.
  package struct Occasion: Sendable, Equatable {
    /// Which of the notifications that meet the conditions.
    package enum Share: Sendable, Equatable {
      case all
      /// Each n-th, over all connections.
      case every(Int)
      /// Each with this probability.
      case probability(Double)
      /// On each connection the first after each period; what concerns a connection needs no notification.
      case period(Duration)
      /// No notification: the connection, when it was idle for so long.
      case idle(Duration)
    }

    package var share = Share.all
    package var topic: String?
    /// The token begins with these bytes.
    package var prefix: [UInt8] = []
    package var token: [UInt8]?
    /// Numbers of notifications on their connection, from 0, in the order of their HEADERS.
    package var index: ClosedRange<Int>?
    /// Numbers of connections in the run, from 1.
    package var connection: ClosedRange<Int>?
    /// Since the fault was set.
    package var from: Duration?
    package var until: Duration?
    /// Hits after which the fault is over; `nil`: never.
    package var times: Int?
  }
}

extension HTTP2Fault.Kind {
  /// The kind's name, as it is typed and in the ledger.
  package var name: String {
    switch self {
    case .delay: "delay"
    case .disorder: "disorder"
    case .silence: "silence"
    case .goAway: "goaway"
    case .refuse: "refuse"
    case .reset: "reset"
    case .streamLimit: "streams"
    case .throttle: "throttle"
    case .close: "close"
    case .slowReading: "slow"
    case .frame: "frame"
    case .answer: "answer"
    }
  }

  /// Whether it concerns a connection, so that it needs no notification.
  var concernsConnection: Bool {
    switch self {
    case .silence(let ofConnection): ofConnection
    case .goAway, .streamLimit, .slowReading: true
    case .delay, .disorder, .refuse, .reset, .throttle, .close, .frame, .answer: false
    }
  }
}

/// Frames that no server may send.
package enum WrongFrame: String, Sendable, CaseIterable {
  /// A type that no RFC defines, which a client has to ignore (RFC 9113 section 4.1).
  case unknownType = "unknown-type"
  /// DATA longer than SETTINGS_MAX_FRAME_SIZE allows (4.2).
  case longFrame = "long-frame"
  /// DATA on a stream that the client has not opened (5.1).
  case idleStream = "idle-stream"
  /// HEADERS on stream 0 (6.2).
  case streamZero = "stream-zero"
  /// DATA with more padding than content (6.1).
  case padding
  /// SETTINGS_INITIAL_WINDOW_SIZE of 2³¹ (6.5.2).
  case settingsValue = "settings-value"
  /// PUSH_PROMISE on the notification's stream (6.6, 8.4).
  case pushPromise = "push-promise"
  /// PING of 7 bytes (6.7).
  case pingLength = "ping-length"
  /// WINDOW_UPDATE of 0 (6.9).
  case windowZero = "window-zero"
  /// WINDOW_UPDATE frames that come to more than 2³¹−1 (6.9.1).
  case windowOverflow = "window-overflow"
  /// CONTINUATION without a field block (6.10).
  case continuation
  /// A second final answer behind the first (8.1).
  case secondAnswer = "second-answer"
  /// An answer with a field name of upper case (8.2).
  case upperCase = "upper-case"
  /// An answer without a status (8.3.2).
  case noStatus = "no-status"
  /// An answer that refers to an entry of the header table that is not there (4.3).
  case table

  /// Whether it takes the place of the answer, so that the provider gets no status.
  var replacesAnswer: Bool { self == .noStatus || self == .table }
}
