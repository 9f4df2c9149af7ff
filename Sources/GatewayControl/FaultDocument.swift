import Bytes
import GatewaySimulator
import Measurement
import ProviderAPI
import PushModel

/// The faults of a gateway as a JSON document: the names of the command's options, with units in seconds and bytes.
struct FaultDocument {
  /// A rejection rule.
  struct Rule: Codable {
    var every: Int?
    var probability: Double?
    /// The probability for notifications to uninstalled apps.
    var uninstalled: Double?
    var prefix: String?
    var token: String?
    /// The number of tokens of a rule that was read from a file.
    var tokens: Int?
    /// Over the binary protocol.
    var status: Int?
    /// Over HTTP/2, with the HTTP status.
    var reason: String?
    var httpStatus: Int?
    var topic: String?
    var times: Int?
    /// Rejections that are left, in answers.
    var left: Int?
  }

  /// A fault of HTTP/2, as text.
  struct Disturbance: Codable {
    var fault: String
    /// How often it has hit, and the hits that are left, in answers.
    var hits: Int?
    var left: Int?
  }

  /// The names of the members.
  enum Key: String, CodingKey, CaseIterable {
    case reject
    case http2Fault = "http2_fault"
    case responseDelayMinS = "response_delay_min_s"
    case responseDelayMaxS = "response_delay_max_s"
    case responsePieces = "response_pieces"
    case responsePieceDelayS = "response_piece_delay_s"
    case responseIdentifier = "response_identifier"
    case responseEnding = "response_ending"
    case shutdownAfter = "shutdown_after"
    case readRate = "read_rate"
    case readPauseEvery = "read_pause_every"
    case readPauseS = "read_pause_s"
    case acceptThenClose = "accept_then_close"
    case wrongEnvironment = "wrong_environment"
    case handshakeFailure = "handshake_failure"
    case connectionLimit = "connection_limit"
    case reconnectLimit = "reconnect_limit"
    case reconnectRefusalS = "reconnect_refusal_s"
    case idleCloseS = "idle_close_s"
    case lifetimeS = "lifetime_s"
    case feedbackRagged = "feedback_ragged"
    case feedbackNeverCloses = "feedback_never_closes"
  }

  /// Seconds up to which times may be given: a day.
  static let longestTime = 86_400.0
  /// The most elements of a list: what a request leaves behind is kept until the next reset.
  static let longestList = 1_000
  static let expectedList = "has to be a list of at most \(longestList)"
  /// The most characters of a reason.
  static let longestReason = 100
  /// The most characters of a fault of HTTP/2.
  static let longestFault = 1_000
  /// The most characters of a topic; certificates have fewer.
  static let longestTopic = 1_000
  static let expectedTopic = "has to be at most \(longestTopic) characters"

  static func isTopic(_ text: String) -> Bool { text.unicodeScalars.count <= longestTopic }
}

// MARK: reading

/// Changes to a behavior: what is not in the document stays, null is the default.
struct FaultChanges: Decodable, Sendable {
  private var changes: [@Sendable (inout Behavior) -> Void] = []

  init(from decoder: any Decoder) throws {
    try decoder.requireKnown(FaultDocument.Key.allCases.map(\.rawValue))
    let container = try decoder.container(keyedBy: FaultDocument.Key.self)
    let normal = Behavior()
    /// The value of a member that is there; that of `normal` if it is null.
    func read<Value: Decodable, Setting: Sendable>(
      _ key: FaultDocument.Key, _ type: Value.Type, _ path: WritableKeyPath<Behavior, Setting> & Sendable,
      _ convert: (Value) throws -> Setting
    ) throws {
      guard container.contains(key) else { return }
      var setting = normal[keyPath: path]
      if try !container.decodeNil(forKey: key) {
        do {
          setting = try convert(try container.decode(type, forKey: key))
        } catch let error as InvalidValue {
          throw DecodingError.dataCorruptedError(forKey: key, in: container, debugDescription: error.expected)
        }
      }
      changes.append { [setting] in $0[keyPath: path] = setting }
    }
    try read(.reject, [FaultDocument.Rule].self, \.rejections) { try list($0).map { try $0.rule } }
    try read(.http2Fault, [FaultDocument.Disturbance].self, \.http2Faults) { try list($0).map { try $0.value } }
    try read(.responsePieces, [Int].self, \.response.pieces) { try list($0).map { try number($0, 1...6) } }
    try read(.responsePieceDelayS, Double.self, \.response.pieceDelay, time)
    try read(.responseIdentifier, Behavior.Response.Identifier.self, \.response.identifier) { $0 }
    try read(.responseEnding, Behavior.Response.Ending.self, \.response.ending) { $0 }
    try read(.shutdownAfter, Int.self, \.shutdownAfter) { try number($0, 0...Int(Int32.max)) }
    try read(.readRate, Int.self, \.reading.bytesPerSecond) { try number($0, 1...Int(Int32.max)) }
    try read(.readPauseEvery, Int.self, \.reading.pauseEvery) { try number($0, 1...Int(Int32.max)) }
    try read(.readPauseS, Double.self, \.reading.pause, time)
    try read(.acceptThenClose, Double.self, \.connection.acceptThenClose, share)
    try read(.wrongEnvironment, [String].self, \.connection.wrongEnvironmentTopics) { topics in
      Set(try list(topics).map { try known(topic: $0) })
    }
    try read(.handshakeFailure, Double.self, \.connection.handshakeFailure, share)
    try read(.connectionLimit, Int.self, \.connection.limitPerTopic) { try number($0, 1...Int(Int32.max)) }
    try read(.reconnectLimit, Int.self, \.connection.reconnectsPerSecond) { try number($0, 1...Int(Int32.max)) }
    try read(.reconnectRefusalS, Double.self, \.connection.refusal, time)
    try read(.idleCloseS, Double.self, \.connection.idle) { try time($0) }
    try read(.lifetimeS, Double.self, \.connection.lifetime) { try time($0) }
    try read(.feedbackRagged, Bool.self, \.feedback.isRagged) { $0 }
    try read(.feedbackNeverCloses, Bool.self, \.feedback.neverCloses) { $0 }
    try readDelay(container)
  }

  /// The limits of a range that is read before it is known whether it is one.
  private mutating func readDelay(_ container: KeyedDecodingContainer<FaultDocument.Key>) throws {
    func limit(_ key: FaultDocument.Key) throws -> Duration? {
      guard let seconds = try container.decodeIfPresent(Double.self, forKey: key) else {
        return container.contains(key) ? .zero : nil
      }
      guard (0...FaultDocument.longestTime).contains(seconds) else {
        throw DecodingError.dataCorruptedError(
          forKey: key, in: container, debugDescription: "has to be seconds from 0 to 86400")
      }
      return .seconds(seconds)
    }
    let (least, most) = (try limit(.responseDelayMinS), try limit(.responseDelayMaxS))
    guard least != nil || most != nil else { return }
    if let least, let most, least > most {
      throw ControlProblem(422, "response_delay_max_s is less than response_delay_min_s")
    }
    changes.append { behavior in
      // A limit that is given alone moves the other one if it has to.
      let lower = least ?? min(behavior.response.delay.lowerBound, most ?? .zero)
      behavior.response.delay = lower...max(lower, most ?? behavior.response.delay.upperBound)
    }
  }

  func apply(to behavior: inout Behavior) { for change in changes { change(&behavior) } }
}

/// A value that a setting cannot have.
struct InvalidValue: Error {
  /// `has to be …`.
  let expected: String
}

private func number(_ value: Int, _ range: ClosedRange<Int>) throws -> Int {
  guard range.contains(value) else {
    throw InvalidValue(expected: "has to be a number from \(range.lowerBound) to \(range.upperBound)")
  }
  return value
}

private func list<Element>(_ elements: [Element]) throws -> [Element] {
  guard elements.count <= FaultDocument.longestList else { throw InvalidValue(expected: FaultDocument.expectedList) }
  return elements
}

private func known(topic: String) throws -> String {
  guard FaultDocument.isTopic(topic) else {
    throw InvalidValue(expected: "a topic \(FaultDocument.expectedTopic)")
  }
  return topic
}

private func share(_ value: Double) throws -> Double {
  guard (0...1).contains(value) else { throw InvalidValue(expected: "has to be a share from 0 to 1") }
  return value
}

private func time(_ seconds: Double) throws -> Duration {
  guard (0...FaultDocument.longestTime).contains(seconds) else {
    throw InvalidValue(expected: "has to be seconds from 0 to 86400")
  }
  return .seconds(seconds)
}

extension FaultDocument.Rule {
  private enum Key: String, CodingKey, CaseIterable {
    case every, probability, uninstalled, prefix, token, tokens, status, reason, topic, times, left
    case httpStatus = "http_status"
  }

  /// A request may have the members of an answer; the rejections that are left begin anew.
  init(from decoder: any Decoder) throws {
    try decoder.requireKnown(Key.allCases.map(\.rawValue))
    let container = try decoder.container(keyedBy: Key.self)
    func read<Value: Decodable>(_ key: Key, _ type: Value.Type) throws -> Value? {
      container.contains(key) ? try container.decode(type, forKey: key) : nil
    }
    (every, probability) = (try read(.every, Int.self), try read(.probability, Double.self))
    uninstalled = try read(.uninstalled, Double.self)
    (prefix, token, tokens) = (
      try read(.prefix, String.self), try read(.token, String.self), try read(.tokens, Int.self)
    )
    (reason, httpStatus) = (try read(.reason, String.self), try read(.httpStatus, Int.self))
    (status, topic, times) = (try read(.status, Int.self), try read(.topic, String.self), try read(.times, Int.self))
  }

  /// Reads it. Throws `InvalidValue`.
  var rule: Behavior.RejectionRule {
    get throws {
      let conditions = [every != nil, probability != nil, uninstalled != nil, prefix != nil, token != nil].count { $0 }
      guard conditions == 1, tokens == nil else {
        throw InvalidValue(expected: "a rule has one of every, probability, uninstalled, prefix, token")
      }
      guard let status = UInt8(exactly: status ?? Int(BinaryStatus.invalidToken.rawValue)), status != 0, status != 10
      else {
        throw InvalidValue(expected: "status has to be 1 to 255, and not 10, which is no rejection")
      }
      let times = try times.map { try number($0, 1...Int(Int32.max)) }
      var rule = Behavior.RejectionRule(
        try condition, status: BinaryStatus(rawValue: status), topic: try topic.map { try known(topic: $0) },
        times: times)
      (rule.reason, rule.httpStatus) = try answer
      return rule
    }
  }

  /// The reason of its answers over HTTP/2, and their status.
  private var answer: (ProviderReason, Int) {
    get throws {
      let reason = ProviderReason(rawValue: reason ?? ProviderReason.badDeviceToken.rawValue)
      guard (1...FaultDocument.longestReason).contains(reason.rawValue.unicodeScalars.count) else {
        throw InvalidValue(expected: "reason has to be 1 to \(FaultDocument.longestReason) characters")
      }
      guard let status = try httpStatus.map({ try number($0, 300...599) }) ?? reason.documentedStatus else {
        throw ControlProblem(422, "a reason that Apple does not document needs http_status")
      }
      return (reason, status)
    }
  }

  private var condition: Behavior.RejectionRule.Condition {
    get throws {
      if let every { return .every(try number(every, 1...Int(Int32.max))) }
      if let probability { return .probability(try share(probability)) }
      if let uninstalled { return .uninstalled(try share(uninstalled)) }
      if let prefix { return .prefix(try bytes(prefix)) }
      return .tokens(TokenSet([try bytes(token ?? "")]))
    }
  }

  private func bytes(_ text: String) throws -> [UInt8] {
    guard let bytes = TokenText.bytes(text) else {
      throw InvalidValue(expected: "a token \(TokenText.expected)")
    }
    return bytes
  }

  init(_ rule: Behavior.RejectionRule, left: Int?) {
    switch rule.condition {
    case .every(let interval): every = interval
    case .probability(let share): probability = share
    case .uninstalled(let share): uninstalled = share
    case .prefix(let bytes): prefix = TokenText.text(bytes)
    case .tokens(let set): if let only = set.only { token = TokenText.text(only) } else { tokens = set.count }
    }
    (reason, httpStatus) = (rule.reason.rawValue, rule.httpStatus)
    (status, topic, times, self.left) = (Int(rule.rejection.status.rawValue), rule.topic, rule.times, left)
  }
}

extension FaultDocument.Disturbance {
  private enum Key: String, CodingKey, CaseIterable { case fault, hits, left }

  /// A request may have the members of an answer; hits begin anew.
  init(from decoder: any Decoder) throws {
    try decoder.requireKnown(Key.allCases.map(\.rawValue))
    fault = try decoder.container(keyedBy: Key.self).decode(String.self, forKey: .fault)
  }

  /// Reads it.
  var value: HTTP2Fault {
    get throws(ControlProblem) {
      guard fault.unicodeScalars.count <= FaultDocument.longestFault else {
        throw ControlProblem(400, "a fault has to be at most \(FaultDocument.longestFault) characters")
      }
      let value: HTTP2Fault
      do {
        value = try HTTP2Fault(fault)
      } catch {
        throw ControlProblem(422, "\(error)")
      }
      // Clients of the endpoint may not read files of this machine.
      guard value.file == nil else { throw ControlProblem(422, "a file of delays is named on the command line alone") }
      return value
    }
  }
}

/// Tokens as text.
enum TokenText {
  /// The most bytes of a token. Real ones have 32; changed devices and rules are kept.
  private static let mostBytes = 1_000
  static let expected = "has to be 1 to \(mostBytes) pairs of hexadecimal digits"

  /// `nil` for anything else than `expected`.
  static func bytes(_ text: some StringProtocol) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard !digits.isEmpty, digits.count.isMultiple(of: 2), digits.count <= 2 * mostBytes else { return nil }
    var bytes: [UInt8] = []
    for place in stride(from: 0, to: digits.count, by: 2) {
      guard let high = Character(Unicode.Scalar(digits[place])).hexDigitValue,
        let low = Character(Unicode.Scalar(digits[place + 1])).hexDigitValue
      else { return nil }
      bytes.append(UInt8(high << 4 | low))
    }
    return bytes
  }

  /// Lower-case hexadecimal digits.
  static func text(_ bytes: [UInt8]) -> String {
    var writer = ByteWriter(capacity: 2 * bytes.count)
    writer.write(hex: bytes.rawBytes)
    return String(decoding: Array(copying: writer.bytes), as: UTF8.self)
  }
}

extension Decoder {
  /// Throws when an object has a member that is not among these.
  func requireKnown(_ names: [String]) throws {
    for key in try container(keyedBy: AnyKey.self).allKeys where !names.contains(key.stringValue) {
      throw DecodingError.dataCorrupted(
        .init(
          codingPath: codingPath + [key], debugDescription: "is unknown; known are \(names.joined(separator: ", "))"))
    }
  }
}

private struct AnyKey: CodingKey {
  var stringValue: String
  var intValue: Int? { nil }
  init?(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { return nil }
}

extension Behavior.Response.Identifier: Decodable {}
extension Behavior.Response.Ending: Decodable {}

// MARK: writing

/// The faults at the moment.
struct FaultState: Encodable {
  let behavior: Behavior
  let rejections: [(rule: Behavior.RejectionRule, left: Int?)]
  let disturbances: [(fault: HTTP2Fault, hits: Int, left: Int?)]

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: FaultDocument.Key.self)
    func seconds(_ time: Duration) -> Double { time / .seconds(1) }
    let (response, reading, connection) = (behavior.response, behavior.reading, behavior.connection)
    try container.encode(rejections.map { FaultDocument.Rule($0.rule, left: $0.left) }, forKey: .reject)
    try container.encode(
      disturbances.map { FaultDocument.Disturbance(fault: "\($0.fault)", hits: $0.hits, left: $0.left) },
      forKey: .http2Fault)
    try container.encode(seconds(response.delay.lowerBound), forKey: .responseDelayMinS)
    try container.encode(seconds(response.delay.upperBound), forKey: .responseDelayMaxS)
    try container.encode(response.pieces, forKey: .responsePieces)
    try container.encode(seconds(response.pieceDelay), forKey: .responsePieceDelayS)
    try container.encode(response.identifier.rawValue, forKey: .responseIdentifier)
    try container.encode(response.ending.rawValue, forKey: .responseEnding)
    try container.encode(behavior.shutdownAfter, forKey: .shutdownAfter)
    try container.encode(reading.bytesPerSecond, forKey: .readRate)
    try container.encode(reading.pauseEvery, forKey: .readPauseEvery)
    try container.encode(seconds(reading.pause), forKey: .readPauseS)
    try container.encode(connection.acceptThenClose, forKey: .acceptThenClose)
    try container.encode(connection.wrongEnvironmentTopics.sorted(), forKey: .wrongEnvironment)
    try container.encode(connection.handshakeFailure, forKey: .handshakeFailure)
    try container.encode(connection.limitPerTopic, forKey: .connectionLimit)
    try container.encode(connection.reconnectsPerSecond, forKey: .reconnectLimit)
    try container.encode(seconds(connection.refusal), forKey: .reconnectRefusalS)
    try container.encode(connection.idle.map(seconds), forKey: .idleCloseS)
    try container.encode(connection.lifetime.map(seconds), forKey: .lifetimeS)
    try container.encode(behavior.feedback.isRagged, forKey: .feedbackRagged)
    try container.encode(behavior.feedback.neverCloses, forKey: .feedbackNeverCloses)
  }
}
