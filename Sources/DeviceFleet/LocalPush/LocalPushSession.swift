import Bytes
import DeviceProtocol
import Measurement

/// The rules of an extension's notification channel, without sockets and clock.
///
/// ```
///            connected                 acknowledged
///   away ────────────────► registering ────────────► online
///    ▲                          │                      │
///    │ disconnected             │ no answer, silence   │ leave, silence, no message
///    └──────────────────────── ended ◄─────────────────┘
/// ```
struct LocalPushSession: FleetSession {
  enum State: Equatable {
    /// There is no connection.
    case away
    /// The user was sent at a time, and is not acknowledged.
    case registering(since: Int64)
    case online
    /// Nothing more is read or written on this connection.
    case ended
  }

  /// The request that registers the user.
  private static let registration: UInt32 = 1
  /// Identifiers of earlier requests that a new one is compared with.
  private static let mostRecent = 16
  /// Acknowledgements that wait for a server that does not read.
  private static let mostOwed = 4_096

  private struct Owed {
    let identifier: UInt32
    let isMessage: Bool
  }

  let device: UInt64
  let user: LocalPushMessage.User
  /// Whether it acknowledges what the server asks.
  let acknowledges: Bool
  private let silence: Int64
  private let requestTimeout: Int64
  private(set) var state = State.away
  /// When something came last.
  private var heard: Int64 = 0
  private var order: MessageFraming.ByteOrder?
  private var owed: [Owed] = []
  /// The last identifiers, in no order.
  private var recent: [UInt32] = []
  private var nextRecent = 0
  /// The beginning of a message.
  private var pending: [UInt8] = []

  init(device: UInt64, _ plan: LocalPushPlan, acknowledges: Bool = true) {
    (self.device, self.acknowledges) = (device, acknowledges)
    user = LocalPushMessage.User(device: device)
    (silence, requestTimeout) = (plan.silence.nanoseconds, plan.requestTimeout.nanoseconds)
  }

  var pendingBytes: Int { pending.count }

  var owesAcknowledgement: Bool { state == .online && !owed.isEmpty }

  var deadline: Int64 {
    switch state {
    case .away, .ended: .max
    case .registering(let since): min(since + requestTimeout, heard + silence)
    case .online: heard + silence
    }
  }

  // MARK: the connection

  mutating func connected(_ tools: inout SessionTools) {
    (pending, owed, recent, nextRecent, order) = ([], [], [], 0, nil)
    heard = tools.now
    state = .registering(since: tools.now)
    LocalPushMessage(request: Self.registration, .user(user)).write(to: &tools.output)
    tools.events.append(.localPush(.asked))
  }

  mutating func disconnected() {
    state = .away
    (pending, owed) = ([], [])
  }

  mutating func leave(_ tools: inout SessionTools) {
    guard state != .away, state != .ended else { return }
    acknowledge(&tools)
    state = .ended
  }

  mutating func abandon() { if state != .away { state = .ended } }

  /// The user stays the same one.
  mutating func restore() {}

  mutating func acknowledge(_ tools: inout SessionTools) {
    guard state == .online else { return }
    for request in owed {
      LocalPushMessage(acknowledging: request.identifier).write(order ?? .littleEndian, to: &tools.output)
      tools.events.append(.localPush(.acknowledged(isMessage: request.isMessage)))
    }
    owed.removeAll(keepingCapacity: true)
  }

  mutating func expire(_ tools: inout SessionTools) {
    guard deadline <= tools.now else { return }
    if heard + silence <= tools.now { return end(.silence, &tools) }
    tools.events.append(.localPush(.timedOut))
    end(.unanswered, &tools)
  }

  // MARK: messages

  mutating func receive(_ bytes: RawSpan, _ tools: inout SessionTools) {
    guard state != .away, state != .ended else { return }
    heard = max(heard, tools.now)
    var waiting: [UInt8] = []
    swap(&waiting, &pending)
    waiting = MessageFraming.rest(of: consume waiting, bytes) { read($0, &tools) }
    if state != .ended { pending = waiting }
  }

  /// Reads whole messages, and returns the number of their bytes.
  private mutating func read(_ bytes: RawSpan, _ tools: inout SessionTools) -> Int {
    var framing = MessageFraming(order: order, longestBody: tools.rules.longestMessage)
    var start = 0
    while state != .ended {
      let rest = bytes.extracting(start...)
      let body: Range<Int>
      do throws(MessageFraming.Fault) {
        guard let next = try framing.next(rest) else { break }
        body = next
      } catch {
        tools.events.append(.fault(.framing))
        end(.message, &tools)
        break
      }
      order = framing.order
      do throws(MessageError) {
        take(try tools.localPush.read(rest.extracting(body)), &tools)
      } catch {
        tools.events.append(.fault(.unreadable))
      }
      start += body.upperBound
    }
    return start
  }

  private mutating func take(_ message: LocalPushMessage, _ tools: inout SessionTools) {
    guard case .request = message.command, let content = message.content else {
      guard case .registering = state, message.identifier == Self.registration else {
        return tools.events.append(.fault(.unexpected))
      }
      state = .online
      tools.events.append(.localPush(.registered))
      return tools.events.append(.online)
    }
    guard case .online = state else { return tools.events.append(.fault(.unexpected)) }
    // A server that has sent a request twice gets its acknowledgement twice.
    if acknowledges {
      guard owed.count < Self.mostOwed else { return end(.memory, &tools) }
      owed.append(Owed(identifier: message.identifier, isMessage: content.isMessage))
    }
    guard !recent.contains(message.identifier) else { return tools.events.append(.fault(.duplicate)) }
    if recent.count < Self.mostRecent {
      recent.append(message.identifier)
    } else {
      recent[nextRecent] = message.identifier
      nextRecent = (nextRecent + 1) % Self.mostRecent
    }
    tools.events.append(.localPush(.received(LocalPushReceived(content, sent: message.sent))))
    if let receiver = content.receiver, receiver != user.identifier { tools.events.append(.fault(.unexpected)) }
  }

  private mutating func end(_ cause: SessionEnd, _ tools: inout SessionTools) {
    state = .ended
    tools.events.append(.ends(cause))
  }
}

/// An event that only sessions of local push have.
enum LocalPushEvent: Equatable {
  /// The user was sent, and acknowledged.
  case asked, registered
  /// The registration was not acknowledged in time.
  case timedOut
  case received(LocalPushReceived)
  case acknowledged(isMessage: Bool)
}

/// A request of the server as it is counted.
struct LocalPushReceived: Equatable {
  enum Kind: Equatable { case text, invite, callAction, heartbeat, directory, other }

  var kind: Kind
  /// Bytes of a text.
  var length = 0
  /// When the server sent it, in UNIX nanoseconds; `nil`: it does not say.
  var sent: Int64?

  init(_ content: LocalPushMessage.Content, sent: Int64?) {
    self.sent = sent
    switch content {
    case .text(let text, _, _): (kind, length) = (.text, text.utf8.count)
    case .invite: kind = .invite
    case .callAction: kind = .callAction
    case .heartbeat: kind = .heartbeat
    case .directory: kind = .directory
    case .user, .other: kind = .other
    }
  }
}

extension LocalPushMessage.Content {
  /// Whether a user is shown something.
  fileprivate var isMessage: Bool {
    switch self {
    case .text, .invite: true
    case .user, .callAction, .heartbeat, .directory, .other: false
    }
  }

  /// The identifier of the user that the content is for; `nil`: it is for none.
  fileprivate var receiver: String? {
    switch self {
    case .text(_, _, let receiver), .invite(_, let receiver): receiver.identifier
    case .user, .callAction, .heartbeat, .directory, .other: nil
    }
  }
}
