import Bytes
import DeviceProtocol
import Measurement

/// The rules that all devices of a fleet have in common.
struct FleetRules: Sendable, Equatable {
  /// The most apps of a device: `DeviceSession` has a bit for each.
  static let mostApps = 64

  /// The topics of the apps that each device has.
  var topics: [String]
  var environment = DeviceMessage.Registration.Environment.production
  var language = ""
  /// The seed of the population's tokens; `nil`: any token is right.
  var tokenSeed: UInt64?
  /// Longer tokens are refused, because each device keeps its own.
  var longestToken = 128
  /// The longest body of a message; a longer one ends the connection.
  var longestMessage = 64 << 10

  /// Whether a device may have such a token.
  func isPossible(_ token: [UInt8]) -> Bool { (1...longestToken).contains(token.count) }

  /// The token that a device should get; `nil`: any.
  func token(of device: UInt64, generation: UInt64) -> [UInt8]? {
    tokenSeed.map { MadeTokens(seed: $0, generation: generation)[device] }
  }
}

/// The memory that the sessions of an event loop read and write with, one at a time.
struct SessionTools: ~Copyable {
  let rules: FleetRules
  var framing: MessageFraming
  var reader = DeviceMessageReader()
  var localPush = LocalPushReader()
  /// The time of the call, in nanoseconds since the fleet's start.
  var now: Int64 = 0
  /// Bytes that the session has written, which its caller sends.
  var output = ByteWriter(capacity: 1 << 10)
  /// Events in their order, which its caller takes.
  var events: [SessionEvent] = []

  init(_ rules: FleetRules) {
    self.rules = rules
    framing = MessageFraming(order: .bigEndian, longestBody: rules.longestMessage)
  }

  mutating func write(_ message: DeviceMessage) { message.write(to: &output) }

  /// The events since the last call.
  mutating func takeEvents() -> [SessionEvent] {
    let taken = events
    events = []
    return taken
  }
}

/// An event of a device's session.
enum SessionEvent: Equatable {
  /// It asked for a token, and it got one.
  case asked, registered
  /// It told the gateway that it is reachable.
  case online
  case received(DeviceMessage.Delivery)
  case acknowledged
  case tokenChanged
  case refused(DeviceMessage.Refusal)
  /// An event of local push alone.
  case localPush(LocalPushEvent)
  /// The gateway did what it must not.
  case fault(SessionFault)
  /// The connection is to be closed.
  case ends(SessionEnd)
}

/// An error of the gateway.
enum SessionFault: String, CaseIterable, Sendable {
  /// A notification whose sequence is not above the last one of its app.
  case duplicate
  /// A token that is not the one of the seed.
  case wrongToken = "wrong_token"
  /// A notification for a token that the device does not have.
  case unknownToken = "unknown_token"
  /// A message that has no meaning where it came.
  case unexpected
  /// JSON that is no message, or lacks a member.
  case unreadable
  /// A message of a name that is not known.
  case unknownMessage = "unknown_message"
  /// Bytes that are no message: the connection cannot be read on.
  case framing
}

/// Why a session wants its connection to be closed.
enum SessionEnd: Equatable {
  case gatewayOffline, refused, message, memory
  /// Nothing was heard for too long, or a request was not acknowledged in time.
  case silence, unanswered
}
