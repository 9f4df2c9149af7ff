import ProviderAPI
import PushModel

/// How the gateway and the feedback service behave and misbehave. By default they behave.
///
/// All random choices depend on `seed` and the number of the connection only, so that a run with the same connections
/// in the same order has the same choices.
public struct Behavior: Sendable, Equatable {
  public var seed: UInt64 = 1
  /// Asked in order; the first that applies decides.
  public var rejections: [RejectionRule] = []
  public var response = Response()
  /// The number of accepted notifications after which a connection is shut down (status 10).
  public var shutdownAfter: Int?
  public var reading = Reading()
  public var connection = Connection()
  public var feedback = Feedback()
  /// Faults of the HTTP/2 provider API, in the order in which they are asked.
  public var http2Faults: [HTTP2Fault] = []

  public init() {}

  /// Which notifications are rejected though they are valid, and why.
  public struct RejectionRule: Sendable, Equatable {
    /// A condition that notifications meet.
    public enum Condition: Sendable, Equatable {
      /// Every n-th notification over all connections, in the order in which the gateway reads them.
      case every(Int)
      /// Each notification with this probability.
      case probability(Double)
      /// Each notification to an uninstalled app with this probability; the others are accepted, and put their token on
      /// the feedback list.
      case uninstalled(Double)
      /// Notifications whose token begins with these bytes.
      case prefix([UInt8])
      /// Notifications to these tokens.
      case tokens(TokenSet)
    }

    public var condition: Condition
    /// The rejection that the gateway sends.
    public var rejection: Rejection
    /// The reason over HTTP/2.
    package var reason = ProviderReason.badDeviceToken
    /// The HTTP status of the reason.
    package var httpStatus = 400
    /// The only topic whose notifications are rejected; `nil`: those of all topics.
    public var topic: String?
    /// The number of rejections after which the rule is over; `nil`: never.
    public var times: Int?

    public init(
      _ condition: Condition, status: BinaryStatus = .invalidToken, topic: String? = nil, times: Int? = nil
    ) {
      self.condition = condition
      rejection = .status(status)
      self.topic = topic
      self.times = times
    }
  }

  /// The treatment of error responses.
  public struct Response: Sendable, Equatable {
    /// The identifier in an error response: the notification's, another one, or 0.
    public enum Identifier: String, Sendable, CaseIterable {
      case right, wrong, zero
    }

    /// How the gateway closes after a rejection.
    public enum Ending: String, Sendable, CaseIterable {
      /// The error response, close_notify and FIN; what the peer still sends is read and counted.
      case response
      /// No response: close_notify and FIN.
      case fin
      /// No response: RST, which also destroys bytes that the peer's kernel has not delivered yet.
      case rst
    }

    /// Waited between the refusal and the response, evenly drawn. Usual were 100 to 800 ms.
    public var delay: ClosedRange<Duration> = .zero ... .zero
    /// The lengths of the pieces in which it is sent; the last piece has the rest.
    public var pieces: [Int] = []
    /// Waited between two pieces.
    public var pieceDelay: Duration = .milliseconds(20)
    public var identifier = Identifier.right
    public var ending = Ending.response
  }

  /// How fast the gateway reads.
  public struct Reading: Sendable, Equatable {
    /// Bytes a second per connection, as they come from the socket's plaintext: a token bucket of 10 ms (512 bytes at
    /// least), so that in any time no more than the rate times it and 10 ms more are read; with TLS a record more.
    public var bytesPerSecond: Int?
    /// The number of bytes after which the connection is not read for `pause`.
    public var pauseEvery: Int?
    public var pause: Duration = .seconds(1)
    /// SO_RCVBUF in bytes.
    public var receiveBuffer: Int?
  }

  /// Limits on connections: which are accepted, and how long they live.
  public struct Connection: Sendable, Equatable {
    /// The probability that a connection is closed right after its handshake, like a real one with a certificate of the
    /// other environment.
    public var acceptThenClose = 0.0
    /// Topics whose connections are closed right after the handshake.
    public var wrongEnvironmentTopics: Set<String> = []
    /// Probability that a connection's handshake is answered with an alert.
    public var handshakeFailure = 0.0
    /// Open connections per topic; further connections are closed after the handshake.
    public var limitPerTopic: Int?
    /// New connections a second per topic; a topic that exceeds it is refused for the time `refusal`.
    public var reconnectsPerSecond: Int?
    public var refusal: Duration = .seconds(10)
    /// The idle time after which a connection is closed.
    public var idle: Duration?
    /// The age at which a connection is shut down (status 10).
    public var lifetime: Duration?
  }

  /// Faults of the feedback service.
  public struct Feedback: Sendable, Equatable {
    /// The list goes out in pieces of 1 to 7 bytes.
    public var isRagged = false
    /// The service leaves the close to the client, as some servers do.
    public var neverCloses = false
  }
}
