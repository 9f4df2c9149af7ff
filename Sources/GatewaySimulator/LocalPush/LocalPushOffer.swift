import DeviceProtocol

/// A message of the server's own for a user, or for everybody who is on a network when it is sent.
public struct LocalPushOffer: Sendable, Equatable {
  /// The most bytes of a text, and of an action.
  public static let longestText = 16 << 10

  public enum Kind: Sendable, Equatable {
    case text(String, from: LocalPushMessage.User)
    case invite(from: LocalPushMessage.User)
    case callAction(String)
  }

  public enum Receiver: Sendable, Equatable {
    case user(LocalPushMessage.User)
    /// By its name.
    case network(String)
  }

  public var kind: Kind
  public var receiver: Receiver

  public init(_ kind: Kind, to receiver: Receiver) { (self.kind, self.receiver) = (kind, receiver) }

  /// A message from its parts as a file or a request has them.
  ///
  /// - Parameters:
  ///   - kind: `text`, `invite` or `call_action`; anything else gives `nil`.
  ///   - text: of a text; `nil`: it is empty.
  ///   - action: of a call action, which has no other form.
  ///   - sender: `nil`: the server.
  public init?(
    kind: String, text: String?, action: String?, from sender: LocalPushMessage.User?, to receiver: Receiver
  ) {
    guard [text, action].allSatisfy({ ($0 ?? "").utf8.count <= Self.longestText }),
      (sender?.identifier ?? "").utf8.count <= LocalPushServer.longestIdentifier
    else { return nil }
    if case .user(let user) = receiver {
      guard (1...LocalPushServer.longestIdentifier).contains(user.identifier.utf8.count) else { return nil }
    }
    switch kind {
    case "text": self.init(.text(text ?? "", from: sender ?? .server), to: receiver)
    case "invite": self.init(.invite(from: sender ?? .server), to: receiver)
    case "call_action":
      guard let action else { return nil }
      self.init(.callAction(action), to: receiver)
    default: return nil
    }
  }

  /// The message as one of its receivers gets it.
  func content(for user: LocalPushMessage.User) -> LocalPushMessage.Content {
    switch kind {
    case .text(let text, let sender): .text(text, from: sender, to: user)
    case .invite(let sender): .invite(from: sender, to: user)
    case .callAction(let action): .callAction(action, of: user)
    }
  }

  /// The kind of requests that it counts among.
  var countedKind: LocalPushKind {
    switch kind {
    case .text: .text
    case .invite: .invite
    case .callAction: .callAction
    }
  }
}
