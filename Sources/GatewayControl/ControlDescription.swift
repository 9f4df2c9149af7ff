import GatewaySimulator
import OutputSchema

/// The OpenAPI document of the endpoint, made from its operations.
enum ControlDescription {
  static func document(version: String) -> JSONValue {
    var paths: [JSONValue.Member] = []
    for operation in ControlOperation.all {
      let member = JSONValue.Member(operation.method.lowercased(), description(of: operation))
      if let place = paths.firstIndex(where: { $0.name == operation.path }),
        case .object(let members) = paths[place].value
      {
        paths[place].value = .object(members + [member])
      } else {
        paths.append(.init(operation.path, .object(pathParameters(operation.path) + [member])))
      }
    }
    return [
      "openapi": "3.1.0",
      "info": [
        "title": "apnscope simulate --control",
        "description":
          "A simulated gateway in a test: what it has received, its counts and verdict, its faults and devices.",
        "version": .string(version),
      ], "paths": .object(paths), "components": ["schemas": .object(schemas)],
    ]
  }

  private static func pathParameters(_ path: String) -> [JSONValue.Member] {
    guard path.contains("{token}") else { return [] }
    let token: JSONValue = [
      "name": "token", "in": "path", "required": true, "description": "The token, in hexadecimal digits.",
      "schema": ["type": "string", "pattern": "^([0-9a-fA-F]{2}){1,1000}$"],
    ]
    return [.init("parameters", [token])]
  }

  private static func description(of operation: ControlOperation) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("operationId", .string(operation.name)), .init("summary", .string(operation.summary)),
    ]
    if !operation.parameters.isEmpty {
      members.append(
        .init(
          "parameters",
          .array(
            operation.parameters.map { parameter in
              [
                "name": .string(parameter.name), "in": "query", "required": .boolean(parameter.isRequired),
                "description": .string(parameter.text), "schema": parameter.schema,
              ]
            })))
    }
    if let body = operation.body {
      members.append(
        .init("requestBody", ["required": true, "content": ["application/json": ["schema": reference(body)]]]))
    }
    members.append(.init("responses", .object(responses(of: operation))))
    return .object(members)
  }

  private static func responses(of operation: ControlOperation) -> [JSONValue.Member] {
    var answer: [JSONValue.Member] = [.init("description", .string(operation.answer.text))]
    if let schema = operation.answer.schema {
      answer.append(.init("content", ["application/json": ["schema": reference(schema)]]))
    }
    // Any request may be malformed, of a page, too long, or of a method or media type that is not there.
    var problems = Set(operation.problems + [400, 403, 404, 405, 413, 431])
    if operation.body != nil { problems.insert(415) }
    return [.init("\(operation.answer.status)", .object(answer))]
      + problems.sorted().map { status in
        .init(
          "\(status)",
          [
            "description": .string(reason(status)),
            "content": ["application/problem+json": ["schema": reference("Problem")]],
          ])
      }
  }

  private static func reason(_ status: Int) -> String {
    switch status {
    case 400: "The request is not as described."
    case 403: "The request comes from a page in a browser, or is for another host."
    case 404: "There is no such path."
    case 405: "The path has no such method."
    case 408: "The notifications did not come in time."
    case 409: "The gateway cannot be changed so while it runs, or what is asked for is not there."
    case 413, 431: "The request is too long."
    case 415: "The body is not JSON."
    case 422: "The values exclude each other."
    default: "The gateway receives faster than it can be asked, or ends."
    }
  }

  private static func reference(_ name: String) -> JSONValue { ["$ref": .string("#/components/schemas/\(name)")] }

  // MARK: schemas

  private static func object(_ properties: [JSONValue.Member], required: [String] = []) -> JSONValue {
    var members: [JSONValue.Member] = [.init("type", "object"), .init("properties", .object(properties))]
    if !required.isEmpty { members.append(.init("required", .array(required.map { .string($0) }))) }
    return .object(members + [.init("additionalProperties", false)])
  }

  private static func list(_ name: String) -> JSONValue { ["type": "array", "items": reference(name)] }

  private static let token: JSONValue = ["type": "string", "pattern": "^([0-9a-fA-F]{2}){1,1000}$"]
  private static let count: JSONValue = ["type": "integer", "minimum": 0]
  private static let positive: JSONValue = [
    "type": "integer", "minimum": 1, "maximum": .number("\(Int32.max)"),
  ]
  private static let seconds: JSONValue = ["type": "number", "minimum": 0, "maximum": 86_400]
  private static let share: JSONValue = ["type": "number", "minimum": 0, "maximum": 1]
  private static let text: JSONValue = ["type": "string"]
  private static let topic: JSONValue = [
    "type": "string", "maxLength": .number("\(FaultDocument.longestTopic)"),
  ]
  private static let state: JSONValue = [
    "type": "string", "enum": ["active", "offline", "uninstalled", "unknown"],
  ]

  private static func orNull(_ schema: JSONValue) -> JSONValue { ["anyOf": [schema, ["type": "null"]]] }

  private static let schemas: [JSONValue.Member] =
    own + lifted(.ledger)
    + [.init("verdict", lifted(.ledger).first.map { property("verdict", of: $0.value) } ?? .object([]))]

  private static let own: [JSONValue.Member] = [
    .init(
      "Problem",
      object(
        [
          .init("type", text), .init("title", text), .init("status", count), .init("detail", text),
          .init("wanted", count), .init("received", count),
        ], required: ["type", "title", "status", "detail"])),
    .init(
      "Service",
      object(
        [
          .init("gateway", text), .init("http2", text), .init("channels", text), .init("feedback", text),
          .init("version", text),
        ],
        required: ["version"])),
    .init("Document", ["type": "object"]),
    .init(
      "Notification",
      object(
        [
          .init("type", ["const": "notification"]), .init("number", positive),
          .init("time", ["type": "string", "format": "date-time"]), .init("connection", positive),
          .init("topic", text), .init("fate", ["type": "string", "enum": ["accepted", "rejected", "discarded"]]),
          .init("status", count), .init("reason", described(text, "Why it was rejected, over HTTP/2.")),
          .init("identifier", count), .init("expiration", count), .init("priority", count),
          .init("token", ["type": "string", "pattern": "^([0-9a-f]{2})+$"]), .init("payload_length", count),
          .init("payload", .object([])), .init("payload_base64", text),
          .init("stream", described(positive, "With the fields after it: over HTTP/2.")), .init("push_type", text),
          .init("apns_id", text), .init("collapse_id", text),
          .init("path", described(text, "If it is not that of a device.")),
        ], required: ["type", "number", "time", "connection", "fate", "payload_length"])),
    .init(
      "Notifications",
      object(
        [
          .init("notifications", list("Notification")),
          .init(
            "last", described(count, "The number of the last notification that was looked at: since, for the next.")),
          .init("more", described(["type": "boolean"], "Whether there may be more after it already.")),
          .init("forgotten", described(count, "Notifications since the latest reset that are no longer kept.")),
        ], required: ["notifications", "last", "more", "forgotten"])),
    .init("Silence", object([.init("for_s", seconds)], required: ["for_s"])),
    .init(
      "Closing",
      object(
        [.init("how", ["type": "string", "enum": ["shutdown", "fin", "rst"]]), .init("topic", topic)],
        required: ["how"])),
    .init(
      "LocalPush",
      object(
        [.init("networks", list("LocalPushNetwork")), .init("control", text), .init("lost_heartbeats", share)],
        required: ["networks", "lost_heartbeats"])),
    .init(
      "LocalPushNetwork",
      object(
        [
          .init("name", described(text, "Empty: it has none.")), .init("address", text),
          .init("here", described(count, "Users with a notification channel.")),
          .init("listens", described(["type": "boolean"], "Not so while it is away.")),
        ], required: ["name", "address", "here", "listens"])),
    .init(
      "LocalPushUsers",
      object(
        [
          .init("users", list("LocalPushUser")),
          .init("count", described(count, "All of them, also those who are not listed.")),
        ], required: ["users", "count"])),
    .init(
      "LocalPushUser",
      object(
        [.init("user", text), .init("device_name", text), .init("network", text)],
        required: ["user", "device_name", "network"])),
    .init("LocalPushMessage", localPushMessage),
    .init(
      "LocalPushOutcome",
      [
        "oneOf": [
          object(
            [
              .init(
                "outcome",
                described(
                  ["type": "string", "enum": ["sent", "absent", "overloaded", "silenced"]], "Of a message for a user."))
            ], required: ["outcome"]),
          object(
            [
              .init("receivers", described(count, "Users who were on the network at that moment.")),
              .init("sent", count),
              .init("absent", described(count, "Those without a channel for it; 1 if nobody was there.")),
              .init("overloaded", count), .init("silenced", count),
            ], required: ["receivers", "sent", "absent", "overloaded", "silenced"]),
        ]
      ]),
    .init("LostHeartbeats", object([.init("share", share)], required: ["share"])),
    .init("LocalPushSilence", object([.init("share", share)], required: ["share"])),
    .init(
      "LocalPushRestart",
      object(
        [
          .init(
            "pause_s",
            ["type": "number", "minimum": 0, "maximum": .number("\(Int(ControlOperation.longestPause))")]),
          .init("network", described(network, "Only this one; without it the whole server.")),
          .init(
            "ending",
            described(
              ["type": "string", "enum": ["closed", "silent"]],
              "closed unless given; silent: messages on open connections are ignored, and nothing is sent on them; closed are only those that the server closes at any time (no registration in time, an unfinished or malformed message, a peer that does not read)."
            )),
        ], required: ["pause_s"])),
    .init("Device", object([.init("token", text), .init("state", state)], required: ["token", "state"])),
    .init("NewState", object([.init("state", state)], required: ["state"])),
    .init("NewDevice", object([.init("token", token), .init("state", state)], required: ["token", "state"])),
    .init(
      "Devices",
      object([.init("devices", list("Device")), .init("more", ["type": "boolean"])], required: ["devices", "more"])),
    .init(
      "NewDevices",
      object(
        [.init("devices", ["type": "array", "items": reference("NewDevice"), "maxItems": 1_000])],
        required: ["devices"])),
    .init("Rejection", rejection),
    .init("HTTP2Fault", object([.init("fault", fault)], required: ["fault"])),
    .init(
      "HTTP2FaultState",
      object([.init("fault", text), .init("hits", count), .init("left", count)], required: ["fault", "hits"])),
    .init(
      "RejectionState",
      object([
        .init("every", positive), .init("probability", share), .init("uninstalled", share), .init("prefix", text),
        .init("token", text),
        .init("tokens", count), .init("status", count), .init("reason", text), .init("http_status", count),
        .init("topic", text), .init("times", positive),
        .init("left", count),
      ])),
    .init(
      "Faults",
      object(
        [.init("reject", list("RejectionState")), .init("http2_fault", list("HTTP2FaultState"))]
          + faults(ofAnswer: true))),
    .init(
      "FaultChanges",
      object(
        [
          .init("reject", orNull(["type": "array", "items": reference("Rejection"), "maxItems": 1_000])),
          .init("http2_fault", orNull(["type": "array", "items": reference("HTTP2Fault"), "maxItems": 100])),
        ] + faults(ofAnswer: false))),
  ]

  /// A user of local push.
  private static let user: JSONValue = [
    "anyOf": [
      ["type": "integer", "minimum": 0, "maximum": .number("\(Int32.max)")],
      ["type": "string", "pattern": "^[!-~]{1,64}$"],
    ]
  ]

  private static let network: JSONValue = [
    "type": "string", "maxLength": .number("\(LocalPushService.longestName)"),
  ]

  /// One of three kinds, each for a user or for a network, and what each has.
  private static let localPushMessage: JSONValue = {
    let words: JSONValue = ["type": "string", "maxLength": .number("\(ControlOperation.longestMessage)")]
    let receivers: [JSONValue.Member] = [
      .init("to", described(user, "An identifier, or the number of a device.")),
      .init("network", described(network, "Everybody who is there at the moment.")),
    ]
    func messages(_ kind: String, _ others: [JSONValue.Member], required: [String]) -> [JSONValue] {
      receivers.map {
        object([.init("kind", ["const": .string(kind)]), $0] + others, required: ["kind", $0.name] + required)
      }
    }
    return [
      "oneOf": .array(
        messages("text", [.init("from", user), .init("text", words)], required: ["text"])
          + messages("invite", [.init("from", user)], required: [])
          + messages("call_action", [.init("action", words)], required: ["action"]))
    ]
  }()

  private static let fault: JSONValue = described(
    ["type": "string", "maxLength": .number("\(FaultDocument.longestFault)")],
    "As --http2-fault has it: goaway,every=100 or silence,token=aa,times=1.")

  private static func described(_ schema: JSONValue, _ text: String) -> JSONValue {
    guard case .object(let members) = schema else { return schema }
    return .object([.init("description", .string(text))] + members)
  }

  /// One of five conditions, and what goes with each.
  private static let rejection: JSONValue = [
    "oneOf": .array(
      [("every", positive), ("probability", share), ("uninstalled", share), ("prefix", token), ("token", token)].map {
        name, schema in
        object(
          [
            .init(name, schema),
            .init("status", ["type": "integer", "minimum": 1, "maximum": 255, "not": ["const": 10]]),
            .init(
              "reason",
              described(
                ["type": "string", "minLength": 1, "maxLength": .number("\(FaultDocument.longestReason)")],
                "Over HTTP/2; BadDeviceToken unless given. One that Apple does not document needs http_status.")),
            .init("http_status", ["type": "integer", "minimum": 300, "maximum": 599]),
            .init("topic", topic), .init("times", positive),
          ], required: [name])
      })
  ]

  private static func faults(ofAnswer: Bool) -> [JSONValue.Member] {
    let members: [(FaultDocument.Key, JSONValue)] = [
      (.responseDelayMinS, seconds), (.responseDelayMaxS, seconds),
      (
        .responsePieces,
        ["type": "array", "items": ["type": "integer", "minimum": 1, "maximum": 6], "maxItems": 1_000]
      ),
      (.responsePieceDelayS, seconds),
      (.responseIdentifier, ["type": "string", "enum": ["right", "wrong", "zero"]]),
      (.responseEnding, ["type": "string", "enum": ["response", "fin", "rst"]]),
      (.shutdownAfter, ["type": "integer", "minimum": 0, "maximum": .number("\(Int32.max)")]), (.readRate, positive),
      (.readPauseEvery, positive), (.readPauseS, seconds), (.acceptThenClose, share),
      (.wrongEnvironment, ["type": "array", "items": topic, "maxItems": 1_000]), (.handshakeFailure, share),
      (.connectionLimit, positive), (.reconnectLimit, positive), (.reconnectRefusalS, seconds),
      (.idleCloseS, seconds), (.lifetimeS, seconds), (.feedbackRagged, ["type": "boolean"]),
      (.feedbackNeverCloses, ["type": "boolean"]),
    ]
    return members.map { key, schema in
      let isOptional = [
        .shutdownAfter, .readRate, .readPauseEvery, .connectionLimit, .reconnectLimit, .idleCloseS, .lifetimeS,
      ]
      .contains(key)
      return .init(key.rawValue, ofAnswer && !isOptional ? schema : orNull(schema))
    }
  }

  /// A schema of this program's outputs and its definitions, among the schemas of the document.
  private static func lifted(_ schema: Schema) -> [JSONValue.Member] {
    guard case .object(let members) = schema.jsonSchema else { return [] }
    let root = members.filter { !["$schema", "$id", "$defs"].contains($0.name) }
    var found = [JSONValue.Member(schema.name, relinked(.object(root)))]
    if case .object(let definitions)? = members.first(where: { $0.name == "$defs" })?.value {
      found += definitions.map { .init($0.name, relinked($0.value)) }
    }
    return found
  }

  private static func relinked(_ value: JSONValue) -> JSONValue {
    switch value {
    case .object(let members):
      .object(
        members.map { member in
          if member.name == "$ref", case .string(let text) = member.value {
            return .init("$ref", .string(text.replacing("#/$defs/", with: "#/components/schemas/")))
          }
          return .init(member.name, relinked(member.value))
        })
    case .array(let elements): .array(elements.map(relinked))
    default: value
    }
  }

  /// The schema of a property of an object.
  private static func property(_ name: String, of schema: JSONValue) -> JSONValue {
    guard case .object(let members) = schema,
      case .object(let properties)? = members.first(where: { $0.name == "properties" })?.value
    else { return .object([]) }
    return properties.first { $0.name == name }?.value ?? .object([])
  }
}
