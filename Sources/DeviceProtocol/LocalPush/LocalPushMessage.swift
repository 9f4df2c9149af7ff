import Bytes

/// A message of local push connectivity in the form of Apple's sample of a server: a request, or its acknowledgement.
///
/// `Documentation/local-push.md` says what is known of it. Inner objects keep members that are not known.
public struct LocalPushMessage: Sendable, Equatable {
  /// Whether a message asks or answers.
  public enum Command: String, Sendable, CaseIterable { case request, acknowledge }

  public var command: Command
  /// Names a request, and in an acknowledgement the request that it is for.
  public var identifier: UInt32
  /// `nil` in an acknowledgement.
  public var content: Content?
  /// When it was sent, in UNIX nanoseconds; `nil`: it does not say. A member that apnscope adds, and others ignore.
  public var sent: Int64?

  /// Makes a request.
  ///
  /// - Parameter sent: when it is sent, in UNIX nanoseconds from 0 on; `nil`: it does not say.
  public init(request identifier: UInt32, _ content: Content, sent: Int64? = nil) {
    (command, self.identifier, self.content, self.sent) = (.request, identifier, content, sent)
  }

  /// Makes the acknowledgement of a request.
  public init(acknowledging identifier: UInt32) { (command, self.identifier) = (.acknowledge, identifier) }

  init(_ command: Command, _ identifier: UInt32, _ content: Content?) {
    (self.command, self.identifier, self.content) = (command, identifier, content)
  }

  /// The content of a request, by its coding key.
  public enum Content: Sendable, Equatable {
    /// 0, from the server: an incoming call.
    case invite(from: User, to: User)
    /// 1, from a client, first on each channel: who it is.
    case user(User)
    /// 2: a call is answered, ended or cannot be taken.
    case callAction(String, of: User)
    /// 3: a text for a user.
    case text(String, from: User, to: User)
    /// 4, from the server: it is there.
    case heartbeat(count: UInt64)
    /// 5: the users that are connected; none is listed in the question for them.
    case directory([User])
    /// Any other key, or an object with other members: its bytes.
    case other(key: UInt8, [UInt8])
  }

  /// A user, with the name of the device.
  public struct User: Sendable, Hashable {
    /// A UUID as text.
    public var identifier: String
    public var deviceName: String

    public init(identifier: String, deviceName: String) {
      (self.identifier, self.deviceName) = (identifier, deviceName)
    }

    /// The user of a simulated device, the same one each time.
    ///
    /// - Parameter device: the number of the device in its population.
    public init(device: UInt64) {
      func digits(_ value: UInt64, _ count: Int) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
      }
      let (high, low) = (device >> 48, device & 0xffff_ffff_ffff)
      identifier = "\(digits(high, 8))-0000-4000-8000-\(digits(low, 12))"
      deviceName = "device \(device)"
    }
  }
}

extension LocalPushMessage.Content {
  /// The number that names the content in a message.
  public var codingKey: UInt8 {
    switch self {
    case .invite: 0
    case .user: 1
    case .callAction: 2
    case .text: 3
    case .heartbeat: 4
    case .directory: 5
    case .other(let key, _): key
    }
  }

  /// The name of the content in records.
  public var name: String {
    switch self {
    case .invite: "invite"
    case .user: "user"
    case .callAction: "call_action"
    case .text: "text"
    case .heartbeat: "heartbeat"
    case .directory: "directory"
    case .other: "other"
    }
  }
}
