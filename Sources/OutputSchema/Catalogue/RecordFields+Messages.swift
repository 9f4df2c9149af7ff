/// The fields of messages of the device channel and of local push.
extension RecordFields {
  private static func of(_ kinds: String...) -> String {
    "`kind` is " + kinds.map { "`\($0)`" }.joined(separator: " or ")
  }

  static let device: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset, length,
    Field("expiration", .integer, "Until when to deliver it.", unit: .unixSeconds, when: "the message has it"),
    Field("priority", .integer, "The priority of the notification: 10, 5 or 1.", when: of("deliver")),
    Field(
      "token", .hexadecimal, "The device token; of `token_changed` the one that is no longer valid.",
      when: of("registered", "deliver", "acknowledge", "token_changed")),
    Field("payload_length", .integer, "Length of the payload.", unit: .bytes, when: of("deliver")),
    Field(
      "payload", .anything, "The payload as it was; white space outside of strings may be left out.",
      when: "it is valid JSON"),
    Field("payload_base64", .string(.base64), "The payload.", when: "it has bytes and is not valid JSON"),
    Field(
      "kind",
      .values([
        "register": "A device asks for the token of an app.", "registered": "The token.",
        "online": "A device is reachable by its tokens.", "deliver": "A notification.",
        "acknowledge": "The device has all notifications of the token up to `sequence`.",
        "token_changed": "`new_token` is valid instead of `token`.", "offline": "The sender closes the connection.",
        "refused": "The gateway does not do what was asked.",
      ]), "The message."),
    Field("reason", .text, "Why.", when: "it is refused, or the sender says why it is offline"),
    Field("topic", .text, "The app's topic.", when: "the message has one"),
    Field("push_type", .text, "The push type.", when: "the message has it"),
    Field("collapse_id", .text, "The collapse identifier.", when: "the message has it"),
    Field("version", .integer, "The version of the channel.", when: of("register", "online")),
    Field(
      "device", .integer, "The number of the device in its population, from 0.", when: of("register", "registered")),
    Field(
      "environment", .values(["production": "Production.", "development": "Development (sandbox)."]),
      "The environment of the token.", when: of("register")),
    Field("language", .text, "The language of the user as a BCP 47 tag.", when: "the message has it"),
    Field("generation", .integer, "How often the device was restored.", when: of("register")),
    Field("low_power", .boolean, "True: the device saves power.", when: "it does"),
    Field("tokens", .array(.hexadecimal), "The tokens of the device.", when: of("online")),
    Field("topics", .array(.text), "The topic of each of them.", when: of("online")),
    Field(
      "sequences", .array(.integer), "The sequence of the last notification that it has of each; 0: it has none.",
      when: of("online")),
    Field("new_token", .hexadecimal, "The token that is valid now.", when: of("token_changed")),
    Field(
      "sequence", .integer, "The number of the notification among those of the token, from 1.",
      when: of("deliver", "acknowledge")),
    Field(
      "sent", .time, "When the gateway read it from the provider, by the gateway's clock.",
      when: of("deliver") + ", and it is from 1970 to 2261"),
    Field("stored", .boolean, "True: it waited at the gateway.", when: "it did"),
    Field("repeated", .boolean, "True: it was sent on an earlier connection.", when: "it was"),
  ]

  private static let user: [Field] = [
    Field("uuid", .text, "The identifier of the user."), Field("device_name", .text, "The name of the device."),
  ]

  static let localPush: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset, length,
    Field(
      "command", .values(["request": "It asks.", "acknowledge": "It answers the request with its identifier."]),
      "Whether it asks or answers."),
    Field("identifier", .integer, "The identifier of the request."),
    Field("payload_length", .integer, "Length of the content.", unit: .bytes, when: of("other")),
    Field(
      "payload", .anything, "The content as it was; white space outside of strings may be left out.",
      when: of("other") + ", and it is valid JSON"),
    Field(
      "payload_base64", .string(.base64), "The content.", when: of("other") + ", and it has bytes and is not valid JSON"
    ),
    Field(
      "kind",
      .values([
        "invite": "An incoming call.", "user": "The user of the client.",
        "call_action": "A call is answered, ended or refused.",
        "text": "A text for a user.", "heartbeat": "The server is there.", "directory": "The users that are connected.",
        "other": "A content of another key, or with other members.",
      ]), "The content.", when: "it has content"),
    Field("action", .text, "The action in a call.", when: of("call_action")),
    Field(
      "sent", .time, "When it was sent, by its sender's clock; a member that `apnscope` adds.",
      when: "the message says it, from 1970 to 2261"),
    Field("coding_key", .integer, "The number of the content in the message.", when: "it has content"),
    Field("count", .integer, "The number of the heartbeat.", when: of("heartbeat")),
    Field("user", .object(user), "The user of the client.", when: of("user")),
    Field("sender", .object(user), "The user who calls or writes.", when: of("invite", "text")),
    Field(
      "receiver", .object(user), "The user who is called or written to.", when: of("invite", "call_action", "text")),
    Field("message", .text, "The text.", when: of("text")),
    Field("users", .array(.text), "The identifiers of the users.", when: of("directory")),
    Field("device_names", .array(.text), "The name of the device of each of them.", when: of("directory")),
  ]
}
