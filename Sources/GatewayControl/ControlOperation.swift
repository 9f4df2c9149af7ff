import Bytes
import GatewaySimulator
import HTTPEndpoint
import Measurement
import NIOPosix
import OutputSchema
import PushModel
import Records

/// An operation of the endpoint: how it is asked, described and carried out.
struct ControlOperation: Sendable {
  /// A parameter of the query.
  struct Parameter: Sendable {
    let name: String
    let text: String
    let schema: JSONValue
    var isRequired = false
  }

  /// An answer that is no problem.
  struct Answer: Sendable {
    let status: Int
    let text: String
    /// The name of its schema; `nil`: it has no body.
    var schema: String?
  }

  let method: String
  /// Its segments; one in braces is a variable.
  let path: String
  /// The name of the operation in programs that are made from the description.
  let name: String
  let summary: String
  var parameters: [Parameter] = []
  /// The name of the schema of the request's body; `nil`: it has none.
  var body: String?
  let answer: Answer
  /// The statuses of its problems, besides those of every operation.
  var problems: [Int] = []
  let run: @Sendable (ControlService, ControlService.Call) async throws -> HTTPAnswer

  private var segments: ArraySlice<Substring> {
    path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
  }

  func matches(_ path: [String]) -> Bool {
    let segments = segments
    return segments.count == path.count && zip(segments, path).allSatisfy { $0.first == "{" || $0 == $1 }
  }

  /// The text in place of the variable; `nil`: there is none.
  func variable(_ path: [String]) -> String? {
    zip(segments, path).first { $0.0.first == "{" }?.1
  }

  /// The most notifications or devices of an answer.
  static let most = 10_000
  /// The most characters that are looked for in payloads.
  static let longestText = 1_000

  static let all: [ControlOperation] = service + received + books + faults + devices + localPush
}

// MARK: - the service

extension ControlOperation {
  /// Where the gateway listens.
  private struct Places: Encodable {
    var gateway: String?
    var http2: String?
    var channels: String?
    var feedback: String?
    var version: String
  }

  private static let service = [
    ControlOperation(
      method: "GET", path: "/", name: "getService",
      summary: "Where the gateway, its HTTP/2 provider API and its feedback service listen.",
      answer: Answer(status: 200, text: "The addresses.", schema: "Service")
    ) { service, _ in
      let simulator = service.gateway.simulator
      return try .json(
        Places(
          gateway: simulator.gateway.map { "\($0)" }, http2: simulator.http2.map { "\($0)" },
          channels: simulator.channelManagement.map { "\($0)" }, feedback: simulator.feedback.map { "\($0)" },
          version: service.version))
    },
    ControlOperation(
      method: "GET", path: "/openapi.json", name: "getDescription", summary: "This description.",
      answer: Answer(status: 200, text: "An OpenAPI document.", schema: "Document")
    ) { service, _ in .json(text: ControlDescription.document(version: service.version).text + "\n") },
    ControlOperation(
      method: "POST", path: "/reset", name: "reset",
      summary:
        "Begins anew: no notification is listed, counts and verdict begin at 0, feedback lists are empty, and faults and devices are those of the start. Open connections stay open.",
      answer: Answer(status: 204, text: "Done.")
    ) { service, _ in
      try await service.gateway.reset()
      return .done
    },
  ]
}

// MARK: - received notifications

extension ControlOperation {
  private static let filters = [
    Parameter(
      name: "token", text: "The beginning of the token, in hexadecimal digits.",
      schema: ["type": "string", "pattern": "^[0-9a-fA-F]{1,1000}$"]),
    Parameter(
      name: "topic", text: "The topic; over the binary protocol that of the connection.", schema: ["type": "string"]),
    Parameter(
      name: "apns_id", text: "The apns-id, over HTTP/2; the case of its letters does not matter.",
      schema: ["type": "string"]),
    Parameter(name: "collapse_id", text: "The apns-collapse-id, over HTTP/2.", schema: ["type": "string"]),
    Parameter(name: "push_type", text: "The apns-push-type, over HTTP/2.", schema: ["type": "string"]),
    Parameter(
      name: "text",
      text: "A part of any string in the payload, after JSON's escapes are resolved.",
      schema: ["type": "string", "maxLength": JSONValue.number("\(longestText)")]),
    Parameter(
      name: "fate", text: "The gateway's decision.",
      schema: ["type": "string", "enum": ["accepted", "rejected", "discarded"]]),
    Parameter(
      name: "since", text: "Only notifications with a higher number.",
      schema: ["type": "integer", "minimum": 0, "maximum": JSONValue.number("\(Int32.max)")]),
  ]

  private static func query(_ parameters: QueryParameters) throws(ControlProblem) -> NotificationQuery {
    var query = NotificationQuery()
    if let text = parameters["token"] {
      guard text.utf8.count <= 1_000, let prefix = RecordSelection.TokenPrefix(text) else {
        throw ControlProblem(400, "'token' has to be 1 to 1000 hexadecimal digits")
      }
      query.token = prefix
    }
    query.topic = parameters["topic"]
    (query.apnsID, query.collapseID) = (parameters["apns_id"], parameters["collapse_id"])
    query.pushType = parameters["push_type"]
    query.text = parameters["text"]
    guard query.text?.unicodeScalars.count ?? 0 <= longestText else {
      throw ControlProblem(400, "'text' has to be at most \(longestText) characters")
    }
    if let text = parameters["fate"] {
      guard let fate = Fate(rawValue: text), fate != .unknown else {
        throw ControlProblem(400, "'fate' has to be accepted, rejected or discarded")
      }
      query.fates = [fate]
    }
    query.after = try parameters.number("since", in: 0...Int(Int32.max), default: 0)
    return query
  }

  private static let received = [
    ControlOperation(
      method: "GET", path: "/notifications", name: "listNotifications",
      summary:
        "The notifications that the gateway has received, in the order of reading, with its decisions. A notification has the names of a record of decode.",
      parameters: filters + [
        Parameter(
          name: "limit", text: "The most notifications of the answer; 1000 unless given.",
          schema: ["type": "integer", "minimum": 1, "maximum": JSONValue.number("\(most)")])
      ],
      answer: Answer(status: 200, text: "Those that match.", schema: "Notifications"), problems: [503]
    ) { service, call in
      let limit = try call.query.number("limit", in: 1...most, default: 1_000)
      return list(
        try await service.gateway.notifications(
          try query(call.query), limit: limit, maximumBytes: service.maximumAnswerBytes))
    },
    ControlOperation(
      method: "GET", path: "/notifications/wait", name: "waitForNotifications",
      summary:
        "Waits until a number of notifications have come that match, those of before included. The answer comes at once when they have, and is a problem (408) when the time is over. It has the first of them, those that fit into an answer: if more is true, since lists the others.",
      parameters: filters + [
        Parameter(
          name: "count", text: "How many notifications; 1 unless given.",
          schema: ["type": "integer", "minimum": 1, "maximum": JSONValue.number("\(most)")]),
        Parameter(
          name: "within_s", text: "The most seconds to wait; 10 unless given.",
          schema: ["type": "number", "minimum": 0, "maximum": JSONValue.number("\(ControlEndpoint.longestWait)")]),
      ],
      answer: Answer(status: 200, text: "The notifications that were waited for.", schema: "Notifications"),
      problems: [408, 503]
    ) { service, call in
      let count = try call.query.number("count", in: 1...most, default: 1)
      let time = try call.query.seconds("within_s", upTo: Double(ControlEndpoint.longestWait), default: 10)
      return list(
        try await service.gateway.waitForNotifications(
          count, try query(call.query), within: time, maximumBytes: service.maximumAnswerBytes))
    },
  ]

  private static func list(_ received: ReceivedNotifications) -> HTTPAnswer {
    var text = "{\"notifications\":["
    for (index, notification) in received.notifications.enumerated() {
      var output = JSONFieldWriter(capacity: 512)
      notification.write(to: &output)
      text += index == 0 ? "\n" : ",\n"
      // Without the line's end.
      text += String(decoding: Array(copying: output.output.bytes).dropLast(), as: UTF8.self)
    }
    text += "],\n\"last\":\(received.last),\"more\":\(received.isCut),\"forgotten\":\(received.forgotten)}\n"
    return .json(text: text)
  }
}

// MARK: - books

extension ControlOperation {
  private static let books = [
    ControlOperation(
      method: "GET", path: "/counts", name: "getCounts",
      summary: "The gateway's counts since the latest reset, as in the ledger, without the list of connections.",
      answer: Answer(status: 200, text: "The counts so far.", schema: "ledger")
    ) { service, _ in
      var ledger = await service.gateway.counts()
      ledger.ended = rfc3339(WallClock.system.nanoseconds())
      return try .json(ledger)
    },
    ControlOperation(
      method: "GET", path: "/verdict", name: "getVerdict",
      summary:
        "The verdict on the providers since the latest reset, as in the ledger. What the gateway no longer keeps is counted as not observed, and what it may hide is open.",
      answer: Answer(status: 200, text: "The verdict so far.", schema: "verdict"), problems: [503]
    ) { service, _ in try .json(try await service.gateway.verdict()) },
  ]
}

// MARK: - faults

extension ControlOperation {
  private struct Silence: Decodable {
    let seconds: Double

    private enum Key: String, CodingKey, CaseIterable { case forS = "for_s" }

    init(from decoder: any Decoder) throws {
      try decoder.requireKnown(Key.allCases.map(\.rawValue))
      let container = try decoder.container(keyedBy: Key.self)
      seconds = try container.decode(Double.self, forKey: .forS)
      guard (0...FaultDocument.longestTime).contains(seconds) else {
        throw DecodingError.dataCorruptedError(
          forKey: .forS, in: container, debugDescription: "has to be seconds from 0 to 86400")
      }
    }
  }

  private struct Closing: Decodable {
    var how: ClosingWay
    var topic: String?

    private enum Key: String, CodingKey, CaseIterable { case how, topic }

    init(from decoder: any Decoder) throws {
      try decoder.requireKnown(Key.allCases.map(\.rawValue))
      let container = try decoder.container(keyedBy: Key.self)
      how = try container.choice(of: ClosingWay.self, forKey: .how)
      topic = container.contains(.topic) ? try container.decode(String.self, forKey: .topic) : nil
      if let topic, !FaultDocument.isTopic(topic) {
        throw DecodingError.dataCorruptedError(
          forKey: .topic, in: container, debugDescription: FaultDocument.expectedTopic)
      }
    }
  }

  private static func state(_ service: ControlService) throws -> HTTPAnswer {
    let simulator = service.gateway.simulator
    return try .json(
      FaultState(
        behavior: simulator.behavior, rejections: simulator.rejections, disturbances: simulator.http2Faults))
  }

  private static let faults = [
    ControlOperation(
      method: "GET", path: "/faults", name: "getFaults",
      summary: "The gateway's faults at the moment: the options of simulate, with units in seconds and bytes.",
      answer: Answer(status: 200, text: "The faults.", schema: "Faults")
    ) { service, _ in try state(service) },
    ControlOperation(
      method: "PATCH", path: "/faults", name: "changeFaults",
      summary:
        "Changes faults, for open connections and later ones: what is given is replaced, null is the default, the rest stays. A rejection rule that stays goes on with its counts.",
      body: "FaultChanges", answer: Answer(status: 200, text: "The faults after it.", schema: "Faults"),
      problems: [409, 422]
    ) { service, call in
      let changes = try call.request.decoded(FaultChanges.self)
      try await service.gateway.simulator.change { changes.apply(to: &$0) }
      return try state(service)
    },
    ControlOperation(
      method: "POST", path: "/faults/rejections", name: "addRejection",
      summary:
        "Adds a rejection rule that is asked before all others: reject the next 3 of a token with status 7, over HTTP/2 with a reason.",
      body: "Rejection", answer: Answer(status: 201, text: "The faults after it.", schema: "Faults"),
      problems: [409, 422]
    ) { service, call in
      let rule = try call.request.decoded(FaultDocument.Rule.self)
      do {
        try await service.gateway.simulator.reject(try rule.rule)
      } catch let error as InvalidValue {
        throw ControlProblem(400, error.expected)
      }
      var answer = try state(service)
      answer.status = 201
      return answer
    },
    ControlOperation(
      method: "POST", path: "/faults/http2", name: "addHTTP2Fault",
      summary:
        "Adds a fault of HTTP/2 that is asked before all others, as --http2-fault has it: goaway,every=100 or silence,token=aa,times=1.",
      body: "HTTP2Fault", answer: Answer(status: 201, text: "The faults after it.", schema: "Faults"),
      problems: [409, 422]
    ) { service, call in
      let fault = try call.request.decoded(FaultDocument.Disturbance.self)
      try await service.gateway.simulator.disturb(try fault.value)
      var answer = try state(service)
      answer.status = 201
      return answer
    },
    ControlOperation(
      method: "POST", path: "/faults/silence", name: "beSilent",
      summary: "The gateway neither reads nor answers for this time, from now. 0 ends an earlier silence.",
      body: "Silence", answer: Answer(status: 204, text: "The gateway is silent.")
    ) { service, call in
      let silence = try call.request.decoded(Silence.self)
      await service.gateway.simulator.beSilent(for: .seconds(silence.seconds))
      return .done
    },
    ControlOperation(
      method: "POST", path: "/connections/close", name: "closeConnections",
      summary: "Closes the open connections to the gateway, of a topic or of all. New ones are accepted.",
      body: "Closing", answer: Answer(status: 204, text: "They are closing.")
    ) { service, call in
      let closing = try call.request.decoded(Closing.self)
      await service.gateway.simulator.closeConnections(closing.how, topic: closing.topic)
      return .done
    },
  ]
}

// MARK: - devices

extension ControlOperation {
  private struct DeviceState: Codable {
    var token: String
    var state: Device

    private enum Key: String, CodingKey, CaseIterable { case token, state }

    init(_ token: [UInt8], _ state: Device) { (self.token, self.state) = (TokenText.text(token), state) }

    init(from decoder: any Decoder) throws {
      try decoder.requireKnown(Key.allCases.map(\.rawValue))
      let container = try decoder.container(keyedBy: Key.self)
      (token, state) = (
        try container.decode(String.self, forKey: .token), try container.choice(of: Device.self, forKey: .state)
      )
      guard TokenText.bytes(token) != nil else {
        throw DecodingError.dataCorruptedError(
          forKey: .token, in: container, debugDescription: TokenText.expected)
      }
    }
  }

  private struct NewState: Decodable {
    var state: Device

    private enum Key: String, CodingKey, CaseIterable { case state }

    init(from decoder: any Decoder) throws {
      try decoder.requireKnown(Key.allCases.map(\.rawValue))
      state = try decoder.container(keyedBy: Key.self).choice(of: Device.self, forKey: .state)
    }
  }

  private struct DeviceList: Codable {
    var devices: [DeviceState]
    /// Whether there are more after these.
    var more: Bool?

    private enum Key: String, CodingKey, CaseIterable { case devices }

    init(devices: [DeviceState], more: Bool) { (self.devices, self.more) = (devices, more) }

    init(from decoder: any Decoder) throws {
      try decoder.requireKnown(Key.allCases.map(\.rawValue))
      let container = try decoder.container(keyedBy: Key.self)
      devices = try container.decode([DeviceState].self, forKey: .devices)
      guard devices.count <= FaultDocument.longestList else {
        throw DecodingError.dataCorruptedError(
          forKey: .devices, in: container, debugDescription: FaultDocument.expectedList)
      }
    }
  }

  private static let devices = [
    ControlOperation(
      method: "GET", path: "/devices", name: "listDevices",
      summary:
        "The devices that were listed in a file or changed, in the order of their tokens; those that are generated are not listed.",
      parameters: [
        Parameter(
          name: "after", text: "Only tokens after this one.",
          schema: ["type": "string", "pattern": "^([0-9a-fA-F]{2}){1,1000}$"]),
        Parameter(
          name: "limit", text: "The most devices of the answer; 1000 unless given.",
          schema: ["type": "integer", "minimum": 1, "maximum": JSONValue.number("\(most)")]),
      ],
      answer: Answer(status: 200, text: "The devices.", schema: "Devices")
    ) { service, call in
      let limit = try call.query.number("limit", in: 1...most, default: 1_000)
      let after = try call.query["after"].map { text throws(ControlProblem) in
        guard let token = TokenText.bytes(text) else { throw ControlProblem(400, "'after' \(TokenText.expected)") }
        return token
      }
      let simulator = service.gateway.simulator
      // A file may have millions: few requests at a time sort them, and no task of the process waits for it.
      return try await NIOThreadPool.singleton.runIfActive {
        let known = simulator.knownDevices
        let start = after.map { token in known.partitioningIndex { token.lexicographicallyPrecedes($0.token) } } ?? 0
        let states = known[start...].prefix(limit).map { DeviceState($0.token, $0.device) }
        return try .json(DeviceList(devices: states, more: known.count - start > limit))
      }
    },
    ControlOperation(
      method: "POST", path: "/devices", name: "changeDevices",
      summary: "Changes devices, for all topics; all or none of them.", body: "NewDevices",
      answer: Answer(status: 204, text: "Done."), problems: [409]
    ) { service, call in
      let list = try call.request.decoded(DeviceList.self)
      try await service.gateway.simulator.setDevices(
        list.devices.map { (TokenText.bytes($0.token) ?? [], $0.state) })
      return .done
    },
    ControlOperation(
      method: "POST", path: "/devices/online", name: "bringDevicesOnline",
      summary: "All offline devices come online, get their notifications, and go offline again.",
      answer: Answer(status: 204, text: "Done.")
    ) { service, _ in
      service.gateway.simulator.bringDevicesOnline()
      return .done
    },
    ControlOperation(
      method: "GET", path: "/devices/{token}", name: "getDevice", summary: "A device, as it is for a topic.",
      parameters: [
        Parameter(
          name: "topic", text: "The topic: generated devices are different for each.", schema: ["type": "string"],
          isRequired: true)
      ],
      answer: Answer(status: 200, text: "The device.", schema: "Device")
    ) { service, call in
      guard let topic = call.query["topic"] else { throw ControlProblem(400, "'topic' is missing") }
      let token = try call.token
      return try .json(DeviceState(token, service.gateway.simulator.device(of: token, topic: topic)))
    },
    ControlOperation(
      method: "PUT", path: "/devices/{token}", name: "changeDevice",
      summary:
        "Changes a device, for all topics. What waits for a device that was offline is delivered if it is active now, and dropped otherwise.",
      body: "NewState", answer: Answer(status: 200, text: "The device after it.", schema: "Device"), problems: [409]
    ) { service, call in
      let (token, state) = (try call.token, try call.request.decoded(NewState.self).state)
      try await service.gateway.simulator.setDevices([(token, state)])
      return try .json(DeviceState(token, state))
    },
    ControlOperation(
      method: "DELETE", path: "/devices/{token}", name: "undoDevice",
      summary: "Undoes earlier changes of a device: it is what it was at the start.",
      answer: Answer(status: 204, text: "Done.")
    ) { service, call in
      try await service.gateway.simulator.setDevices([(try call.token, nil)])
      return .done
    },
  ]
}
