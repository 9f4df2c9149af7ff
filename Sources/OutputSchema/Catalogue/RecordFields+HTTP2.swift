/// The fields of records over HTTP/2.
extension RecordFields {
  static let stream = Field("stream", .integer, "Its stream.", when: "over HTTP/2", since: "0.3")
  static let apnsID = Field("apns_id", .text, "The `apns-id`.", when: "there is one", since: "0.3")
  static let channelID = Field(
    "channel_id", .text, "The `apns-channel-id`.", when: "there is one", since: "0.3")
  static let requestID = Field(
    "request_id", .text, "The `apns-request-id`.", when: "there is one", since: "0.3")
  static let status = Field("status", .integer, "The HTTP status of the answer.", when: "it is known")
  static let reason = Field(
    "reason", .text, "The reason in the answer, as Apple names it.", when: "there is one", since: "0.3")

  static let answerLatency = Field(
    "latency_ms", .number, "From the request's END_STREAM to the answer's HEADERS, as the capture saw them.",
    unit: .milliseconds, when: "both times are known", since: "0.3")

  static let uncertain = Field(
    "uncertain", .array(.text),
    "Fields that are absent here and may have been sent: bytes that tell them are lost, or they hold a credential; `headers`: other header fields.",
    when: "there are any", since: "0.3")

  static let providerToken: [Field] = [
    Field("key_id", .text, "The identifier of its key, `kid`.", when: "it could be read"),
    Field("team_id", .text, "The identifier of the team, `iss`.", when: "it could be read"),
    Field(
      "issued_at", .integer, "When it was issued, `iat`, rounded down.", unit: .unixSeconds, when: "it could be read"),
    Field(
      "number", .integer, "Its number among the different ones of the connection, from 1.",
      when: "none can be missing, and there are not more than `--max-provider-tokens`"),
  ]

  static let response: [Field] = [
    packetFile, connectionNumber, time, packet, offset, length, status,
    Field(
      "timestamp", .integer, "When APNs learned that the token is not valid.", unit: .unixMilliseconds,
      when: "there is one", since: "0.3"),
    reason,
    Field(
      "notification", .integer, "`index` of the notification that it answers.", when: "it answers one", since: "0.3"),
    answerLatency, stream, apnsID,
    Field("apns_unique_id", .text, "The `apns-unique-id`.", when: "there is one", since: "0.3"),
    channelID, requestID, uncertain,
  ]
  static let errorCode = Field(
    "error", .text, "The error code by its name, or as a hexadecimal number.", when: "it is not cut off", since: "0.3")

  static let goAway: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset, length,
    Field("reason", .text, "The reason in its debug data.", when: "there is one", since: "0.3"),
    Field(
      "discarded", .integer, "Unanswered notifications on streams above: certainly not processed.",
      when: "the server sent it, and no frames may be missing"),
    Field(
      "unknown", .integer, "Unanswered notifications on other streams.",
      when: "the server sent it, and no frames may be missing"),
    Field("last_stream", .integer, "The last stream that its sender has processed or may process."),
    errorCode,
  ]

  static let reset: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset, length,
    Field(
      "notification", .integer, "`index` of the stream's notification.", when: "it is open, and has one", since: "0.3"),
    stream, errorCode,
  ]

  static let settings: [Field] = [
    packetFile, connectionNumber, direction, time, packet, offset, length,
    Field(
      "values", .map(key: .text, value: .integer),
      "The settings by their names without SETTINGS_, in their order; of a repeated one the last value."),
  ]

  static let channelRequest: [Field] = [
    packetFile, connectionNumber, time, packet, offset, length,
    status, reason, answerLatency, stream,
    Field(
      "action",
      .values([
        "create": "A channel is created.", "read": "A channel is read.", "delete": "A channel is deleted.",
        "read_all": "All channels of the app are read.",
      ]), "The action that the request asks for."),
    Field("bundle", .text, "The bundle identifier in the path."),
    channelID, requestID,
  ]

  static let tableLosses: [Field] = [
    Field("client", .integer, "The client's."),
    Field("server", .integer, "The server's."),
  ]
}
