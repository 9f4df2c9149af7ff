import DeviceProtocol

extension LocalPushMessage.Content {
  /// The most bytes of a text, and of an action.
  public static let longestText = 16 << 10

  /// A message for a user, from its parts as a file or a request has them.
  ///
  /// - Parameters:
  ///   - kind: `text`, `invite` or `call_action`; anything else gives `nil`.
  ///   - text: of a text; `nil`: it is empty.
  ///   - action: of a call action, which has no other form.
  ///   - sender: `nil`: the server.
  public init?(
    kind: String, text: String?, action: String?, from sender: LocalPushMessage.User?,
    to receiver: LocalPushMessage.User
  ) {
    guard [text, action].allSatisfy({ ($0 ?? "").utf8.count <= Self.longestText }),
      (1...LocalPushServer.longestIdentifier).contains(receiver.identifier.utf8.count),
      (sender?.identifier ?? "").utf8.count <= LocalPushServer.longestIdentifier
    else { return nil }
    switch kind {
    case "text": self = .text(text ?? "", from: sender ?? .server, to: receiver)
    case "invite": self = .invite(from: sender ?? .server, to: receiver)
    case "call_action":
      guard let action else { return nil }
      self = .callAction(action, of: receiver)
    default: return nil
    }
  }
}
