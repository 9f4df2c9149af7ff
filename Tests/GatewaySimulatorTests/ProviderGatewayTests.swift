import Bytes
import HTTP2
import ProviderAPI
import TLSFoundation
import TestSupport
import Testing

@testable import GatewaySimulator

/// The rules of the HTTP/2 provider API, as conversations.
@Suite("The HTTP/2 provider API")
struct ProviderGatewayTests {
  @Test("A right notification is accepted, its apns-id echoed, or made") func accepted() {
    let conversation = HTTP2Conversation()
    let identifier = "eabeae54-14a8-11e5-b60b-1697f925ec7b"
    #expect(conversation.push(["apns-id": identifier]).fields == [":status": "200", "apns-id": identifier])
    let made = conversation.push()
    #expect(made.status == 200)
    #expect(
      made.fields["apns-id"]?.wholeMatch(of: #/[0-9A-F]{8}-[0-9A-F]{4}-4[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}/#)
        != nil)
    #expect(conversation.push().fields["apns-id"] != made.fields["apns-id"])
    let sandbox = HTTP2Conversation { $0.isSandbox = true }
    #expect(sandbox.push().fields["apns-unique-id"]?.utf8.count == 36)
    #expect(sandbox.push(["apns-topic": nil]).fields["apns-unique-id"] == nil)
    #expect(conversation.violations.isEmpty)
  }

  /// A field's value, or none, and the reason of the rejection; `nil`: it is accepted.
  static let fields: [(name: String, value: String?, reason: String?)] = [
    (":path", "/", "BadPath"), (":path", "/3/devices/\(HTTP2Conversation.token)", "BadPath"),
    (":path", "/4/broadcasts/apps/com.example.app", "FeatureNotEnabled"), (":method", "GET", "MethodNotAllowed"),
    (":method", "PUT", "MethodNotAllowed"), (":path", "/3/device/", "MissingDeviceToken"),
    (":path", "/3/device/xyz", "BadDeviceToken"), (":path", "/3/device/0f0", "BadDeviceToken"),
    (":path", "/3/device/" + String(repeating: "0f", count: 101), "BadDeviceToken"),
    (":path", "/3/device/" + String(repeating: "0f", count: 100), nil), (":path", "/3/device/0F", nil),
    (":path", "/3/device/0bad0bad0bad0bad" + String(repeating: "0f", count: 24), "BadDeviceToken"),
    ("apns-id", "1", "BadMessageId"), ("apns-id", "eabeae54-14a8-11e5-b60b-1697f925ec7g", "BadMessageId"),
    ("apns-id", "eabeae54014a8-11e5-b60b-1697f925ec7b", "BadMessageId"),
    ("apns-id", "EABEAE54-14A8-11E5-B60B-1697F925EC7B", nil), ("apns-expiration", "", "BadExpirationDate"),
    ("apns-expiration", "soon", "BadExpirationDate"), ("apns-expiration", "-1", "BadExpirationDate"),
    ("apns-expiration", "0", nil), ("apns-expiration", "1767225600", nil), ("apns-priority", "0", "BadPriority"),
    ("apns-priority", "7", "BadPriority"), ("apns-priority", "high", "BadPriority"), ("apns-priority", "1", nil),
    ("apns-priority", "5", nil), ("apns-priority", "10", nil),
    ("apns-collapse-id", String(repeating: "x", count: 65), "BadCollapseId"),
    ("apns-collapse-id", String(repeating: "x", count: 64), nil), ("apns-push-type", "alarm", "InvalidPushType"),
    ("apns-push-type", nil, nil), ("apns-topic", nil, "MissingTopic"), ("apns-topic", "", "MissingTopic"),
    ("apns-topic", "com example", "BadTopic"), ("apns-topic", String(repeating: "x", count: 256), "BadTopic"),
    ("apns-topic", "com.example.app.voip", "DeviceTokenNotForTopic"),
    ("apns-push-type", "voip", "DeviceTokenNotForTopic"), ("apns-push-type", "background", nil),
    ("apns-push-type", "mdm", nil),
  ]

  @Test("Each field has its rule and its reason", arguments: fields)
  func field(name: String, value: String?, reason: String?) {
    let conversation = HTTP2Conversation()
    let answer = conversation.push([name: value])
    #expect(answer.reason == reason)
    #expect(answer.status == reason.flatMap { ProviderReason(rawValue: $0).documentedStatus } ?? 200)
    #expect(answer.fields["content-type"] == (reason == nil ? nil : "application/json"))
    let counts = conversation.takeCounts()
    #expect(counts.received + counts.otherRequests == 1)
    #expect(counts.received == counts.accepted + counts.rejections)
    // The connection goes on.
    #expect(conversation.push().status == 200)
  }

  @Test("The answer to HEAD has a status and no content, and the rejection is counted")
  func head() {
    let conversation = HTTP2Conversation()
    let answer = conversation.push([":method": "HEAD"])
    #expect(answer.status == 405 && answer.content == "" && !answer.isReset)
    #expect(conversation.takeCounts().rejected == [.methodNotAllowed: 1])
    #expect(conversation.push([":method": "GET"]).reason == "MethodNotAllowed")
    #expect(conversation.violations.isEmpty)
  }

  @Test(
    "A repeated field is named as such, before what is wrong with it",
    arguments: [
      "apns-id", "apns-topic", "apns-push-type", "apns-expiration", "apns-priority", "apns-collapse-id",
      "authorization",
    ])
  func duplicates(name: String) {
    let answer = HTTP2Conversation().push([name: "x"], more: [(name, "x")])
    #expect(answer.reason == "DuplicateHeaders")
    #expect(answer.status == 400)
  }

  static let types: [(type: String, topic: String)] = [
    ("alert", ""), ("background", ""), ("location", ".location-query"), ("voip", ".voip"),
    ("complication", ".complication"), ("fileprovider", ".pushkit.fileprovider"), ("mdm", ""),
    ("liveactivity", ".push-type.liveactivity"), ("pushtotalk", ".voip-ptt"), ("widgets", ".push-type.widgets"),
    ("controls", ".push-type.controls"),
  ]

  @Test("Each push type needs its topic", arguments: types) func suffix(type: String, topic: String) {
    let conversation = HTTP2Conversation()
    #expect(conversation.push(["apns-push-type": type, "apns-topic": "com.example.app" + topic]).status == 200)
    let wrong = topic.isEmpty ? ".voip" : ""
    let answer = conversation.push(["apns-push-type": type, "apns-topic": "com.example.app" + wrong])
    #expect(answer.reason == (type == "mdm" ? nil : "DeviceTokenNotForTopic"))
  }

  @Test(
    "Payloads are as long as their type allows, and not empty",
    arguments: [
      (0, "alert", "PayloadEmpty"), (1, "alert", nil), (4_096, "alert", nil), (4_097, "alert", "PayloadTooLarge"),
      (5_120, "voip", nil), (5_121, "voip", "PayloadTooLarge"), (100_000, "voip", "PayloadTooLarge"),
    ])
  func payload(length: Int, type: String, reason: String?) {
    let answer = HTTP2Conversation().push(
      ["apns-push-type": type, "apns-topic": type == "voip" ? "a.voip" : "a"],
      content: [UInt8](repeating: 0x20, count: length))
    #expect(answer.reason == reason)
    #expect(answer.status == (reason == nil ? 200 : reason == "PayloadEmpty" ? 400 : 413))
  }

  @Test("Of several faults the first in the documented order is named") func order() {
    let conversation = HTTP2Conversation(.token)
    var changes: [String: String?] = [
      ":path": "/3/device/x", "apns-id": "x", "apns-expiration": "x", "apns-priority": "x", "apns-push-type": "x",
      "apns-collapse-id": String(repeating: "x", count: 65), "apns-topic": "x y",
    ]
    #expect(conversation.push(changes, content: []).reason == "MissingProviderToken")
    let trusted = HTTP2Conversation()
    for (name, right, reason) in [
      (":path", "/3/device/0f", "BadDeviceToken"), ("apns-id", "eabeae54-14a8-11e5-b60b-1697f925ec7b", "BadMessageId"),
      ("apns-expiration", "0", "BadExpirationDate"), ("apns-priority", "10", "BadPriority"),
      ("apns-push-type", "alert", "InvalidPushType"), ("apns-collapse-id", "x", "BadCollapseId"),
    ] {
      #expect(trusted.push(changes, content: []).reason == reason)
      changes[name] = right
    }
    changes["apns-topic"] = "com example"
    #expect(trusted.push(changes, content: []).reason == "BadTopic")
    changes["apns-topic"] = "com.example"
    #expect(trusted.push(changes, content: []).reason == "PayloadEmpty")
    #expect(trusted.push(changes).status == 200)
  }

  // MARK: rules that Apple does not document

  static let rules: [(rule: String, value: String, changes: [String: String?], reason: String?)] = [
    ("missing-push-type", "InvalidPushType", ["apns-push-type": nil], "InvalidPushType"),
    ("unknown-push-type", "accept", ["apns-push-type": "alarm"], nil),
    ("topic-suffix", "accept", ["apns-push-type": "voip"], nil),
    ("topic-suffix", "BadTopic", ["apns-push-type": "voip"], "BadTopic"),
    ("background-priority", "BadPriority", ["apns-push-type": "background", "apns-priority": "10"], "BadPriority"),
    ("background-priority", "accept", ["apns-push-type": "background", "apns-priority": "10"], nil),
    ("token-bytes", "32", [":path": "/3/device/0f"], "BadDeviceToken"),
    ("token-bytes", "1..200", [":path": "/3/device/" + String(repeating: "0f", count: 101)], nil),
    ("apns-id-case", "lower", ["apns-id": "EABEAE54-14A8-11E5-B60B-1697F925EC7B"], "BadMessageId"),
  ]

  @Test("Each rule that is not documented can be chosen", arguments: rules)
  func rule(rule: String, value: String, changes: [String: String?], reason: String?) {
    let conversation = HTTP2Conversation { #expect(ServingRule.apply(rule, value, to: &$0.rules)) }
    #expect(conversation.push(changes).reason == reason)
  }

  @Test("The first value of each rule is its default; others that it does not take are refused") func ruleTable() {
    for rule in ServingRule.all {
      var rules = ServingRules()
      #expect(ServingRule.apply(rule.name, rule.values[0], to: &rules), "\(rule.name)")
      #expect(rules == ServingRules(), "\(rule.name)")
      #expect(!ServingRule.apply(rule.name, "nonsense", to: &rules), "\(rule.name)")
    }
    var rules = ServingRules()
    #expect(!ServingRule.apply("nonsense", "accept", to: &rules))
    #expect(ServingRule.apply("content-type", "none", to: &rules))
    let conversation = HTTP2Conversation { $0.rules.sendsContentType = false }
    #expect(conversation.push(["apns-id": "x"]).fields["content-type"] == nil)
  }

  // MARK: certificates

  @Test("A certificate allows its topics, and one topic is the default") func certificate() {
    let one = HTTP2Conversation(.certificate(["com.example.app"]))
    #expect(one.push(["apns-topic": nil]).status == 200)
    #expect(one.push().status == 200)
    #expect(one.push(["apns-topic": "com.example.other"]).reason == "TopicDisallowed")
    let two = HTTP2Conversation(.certificate(["com.example.app", "com.example.app.voip"]))
    #expect(two.push(["apns-topic": nil]).reason == "MissingTopic")
    #expect(two.push(["apns-topic": "com.example.app.voip", "apns-push-type": "voip"]).status == 200)
    // With a certificate a provider token is ignored.
    #expect(two.push(["authorization": "bearer x.y.z"]).status == 200)
    let none = HTTP2Conversation(.certificate(nil))
    #expect(none.push().reason == "MissingProviderToken")
    #expect(none.push().status == 403)
  }

  // MARK: provider tokens

  private static let second = HTTP2Conversation.start / 1_000

  private static func trusting(
    _ key: SigningKey, keyID: String? = "KEY4567890", teamID: String? = "TEAM567890",
    _ configure: @escaping (inout HTTP2Service) -> Void = { _ in }
  ) throws -> HTTP2Conversation {
    let verifier = try #require(ES256Key(pem: key.publicPEM))
    return HTTP2Conversation(.token) {
      $0.providerKeys = [ProviderKey(key: verifier, keyID: keyID, teamID: teamID)]
      configure(&$0)
    }
  }

  @Test("Signatures are verified, raw and in DER", arguments: [false, true]) func signatures(isDER: Bool) throws {
    let (key, other) = (try SigningKey(), try SigningKey())
    for number in 0..<20 {
      let conversation = try Self.trusting(key)
      // Numbers with leading zeros are among those of many tokens.
      let token = try key.token(issuedAt: "\(Self.second - Int64(number))", isDER: isDER)
      #expect(conversation.push(["authorization": token]).status == 200)
      let foreign = try other.token(issuedAt: "\(Self.second)", isDER: isDER)
      #expect(conversation.push(["authorization": foreign]).reason == "InvalidProviderToken")
      #expect(conversation.tokens.map(\.keyID) == ["KEY4567890"])
    }
  }

  @Test("What is no token of the key is rejected, and its reason said") func wrongTokens() throws {
    let key = try SigningKey()
    let now = "\(Self.second)"
    let right = try key.token(issuedAt: now)
    let cases: [(String, String)] = [
      ("bearer x", "InvalidProviderToken"), ("Basic x", "InvalidProviderToken"), (right + "A", "InvalidProviderToken"),
      (String(right.dropLast(4)), "InvalidProviderToken"),
      (try key.token(issuedAt: now, algorithm: "none"), "InvalidProviderToken"),
      (try key.token(keyID: "OTHER67890", issuedAt: now), "InvalidProviderToken"),
      (try key.token(teamID: "OTHER67890", issuedAt: now), "InvalidProviderToken"),
      (try key.token(issuedAt: "\"soon\""), "InvalidProviderToken"),
      (try key.token(issuedAt: "\(Self.second - 3_601)"), "ExpiredProviderToken"),
      (try key.token(issuedAt: "\(Self.second + 61)"), "ExpiredProviderToken"),
    ]
    for (token, reason) in cases {
      let conversation = try Self.trusting(key)
      #expect(conversation.push(["authorization": token]).reason == reason, "\(token.prefix(20))")
      #expect(conversation.push(["authorization": right]).status == 200)
    }
    #expect(try Self.trusting(key).push().reason == "MissingProviderToken")
  }

  @Test("The time of issue is a number, a fraction, or a string", arguments: ["", ".25", "s"])
  func timeForms(form: String) throws {
    let key = try SigningKey()
    let token = try key.token(issuedAt: form == "s" ? "\"\(Self.second)\"" : "\(Self.second)\(form)")
    #expect(try Self.trusting(key).push(["authorization": token]).status == 200)
    let strict = try Self.trusting(key) { $0.rules.allowsTextTime = false }
    #expect(strict.push(["authorization": token]).reason == (form == "s" ? "InvalidProviderToken" : nil))
  }

  @Test("A token is good for an hour, also one that was good before") func age() throws {
    let key = try SigningKey()
    let conversation = try Self.trusting(key)
    let token = try key.token(issuedAt: "\(Self.second)")
    for (minutes, status) in [(0, 200), (59, 200), (60, 200), (61, 403)] {
      conversation.now = HTTP2Conversation.start + Int64(minutes) * 60_000
      #expect(conversation.push(["authorization": token]).status == status)
    }
    let later = try key.token(issuedAt: "\(Self.second + 3_600)")
    #expect(conversation.push(["authorization": later]).status == 200)
  }

  @Test("A token that comes less than 20 minutes after another one is too early") func renewal() throws {
    let key = try SigningKey()
    let conversation = try Self.trusting(key)
    let tokens = try (0..<3).map { try key.token(issuedAt: "\(Self.second + Int64($0))") }
    #expect(conversation.push(["authorization": tokens[0]]).status == 200)
    let early = conversation.push(["authorization": tokens[1]])
    #expect(early.status == 429)
    #expect(early.reason == "TooManyProviderTokenUpdates")
    // The first one is still in use.
    #expect(conversation.push(["authorization": tokens[0]]).status == 200)
    conversation.now += 1_200_000
    #expect(conversation.push(["authorization": tokens[1]]).status == 200)
    #expect(conversation.push(["authorization": tokens[2]]).status == 429)
    #expect(conversation.tokens.count == 2)
    let lax = try Self.trusting(key) { $0.rules.checksRenewal = false }
    for token in tokens { #expect(lax.push(["authorization": token]).status == 200) }
    // Back to tokens that were used before: they are told of once.
    for token in tokens { #expect(lax.push(["authorization": token]).status == 200) }
    #expect(lax.tokens.count == 3)
  }

  @Test("A connection is of one team and one key") func related() throws {
    let key = try SigningKey()
    let conversation = try Self.trusting(key, keyID: nil, teamID: nil)
    let now = "\(Self.second)"
    #expect(conversation.push(["authorization": try key.token(issuedAt: now)]).status == 200)
    let otherKey = try key.token(keyID: "OTHER67890", issuedAt: now)
    #expect(conversation.push(["authorization": otherKey]).reason == "UnrelatedKeyIdInToken")
    let otherTeam = try key.token(teamID: "OTHER67890", issuedAt: now)
    #expect(conversation.push(["authorization": otherTeam]).reason == "InvalidProviderToken")
  }

  @Test("A key of one environment is for that one, whatever else its token says") func environments() throws {
    let key = try SigningKey()
    let token = try key.token(issuedAt: "\(Self.second)")
    for (isOfSandbox, isSandbox) in [(nil, true), (nil, false), (true, true), (false, false)] as [(Bool?, Bool)] {
      let conversation = try Self.trusting(key) {
        $0.providerKeys[0].scope.isOfSandbox = isOfSandbox
        $0.isSandbox = isSandbox
      }
      #expect(conversation.push(["authorization": token]).status == 200)
    }
    for isSandbox in [true, false] {
      let conversation = try Self.trusting(key) {
        $0.providerKeys[0].scope.isOfSandbox = !isSandbox
        $0.isSandbox = isSandbox
      }
      let answer = conversation.push(["authorization": token])
      #expect(answer.status == 403)
      #expect(answer.reason == "BadEnvironmentKeyIdInToken")
      #expect(conversation.tokens.isEmpty && conversation.limits == [1])
      let old = try key.token(issuedAt: "\(Self.second - 3_601)")
      #expect(conversation.push(["authorization": old]).reason == "ExpiredProviderToken")
      let other = try Self.trusting(key) {
        $0.providerKeys[0].scope.isOfSandbox = !isSandbox
        $0.isSandbox = isSandbox
        #expect(ServingRule.apply("key-environment", "InvalidProviderToken", to: &$0.rules))
      }
      #expect(other.push(["authorization": token]).reason == "InvalidProviderToken")
    }
  }

  @Test("A key of some topics is for these, and a related key may follow it on a connection") func keyTopics() throws {
    let (key, successor, stranger) = (try SigningKey(), try SigningKey(), try SigningKey())
    let other = try #require(ES256Key(pem: successor.publicPEM))
    let third = try #require(ES256Key(pem: stranger.publicPEM))
    func conversation() throws -> HTTP2Conversation {
      try Self.trusting(key) {
        $0.rules.checksRenewal = false
        $0.providerKeys[0].scope.topics = ["com.example.app", "com.example.app.voip"]
        $0.providerKeys[0].scope.related = ["NEXT567890"]
        var next = ProviderKey(key: other, keyID: "NEXT567890", teamID: nil)
        next.scope.topics = ["com.example.other"]
        $0.providerKeys += [next, ProviderKey(key: third, keyID: "ALIEN67890", teamID: nil)]
      }
    }
    let now = "\(Self.second)"
    let first = try key.token(issuedAt: now)
    let next = try successor.token(keyID: "NEXT567890", issuedAt: now)
    let alien = try stranger.token(keyID: "ALIEN67890", issuedAt: now)
    let talk = try conversation()
    #expect(talk.push(["authorization": first]).status == 200)
    let voip = ["authorization": first, "apns-topic": "com.example.app.voip", "apns-push-type": "voip"]
    #expect(talk.push(voip).status == 200)
    let wrong = talk.push(["authorization": first, "apns-topic": "com.example.other"])
    #expect(wrong.status == 400 && wrong.reason == "TopicDisallowed")
    #expect(talk.push(["authorization": alien]).reason == "UnrelatedKeyIdInToken")
    #expect(talk.push(["authorization": next, "apns-topic": "com.example.other"]).status == 200)
    #expect(talk.push(["authorization": next]).reason == "TopicDisallowed")
    // Related both ways; a key without topics is for all.
    #expect(talk.push(["authorization": first]).status == 200)
    let free = try conversation()
    #expect(free.push(["authorization": alien, "apns-topic": "com.example.other"]).status == 200)
    #expect(free.push(["authorization": first]).reason == "UnrelatedKeyIdInToken")
  }

  @Test("One stream until the first good token, then as many as told") func streamLimit() throws {
    let key = try SigningKey()
    let conversation = try Self.trusting(key) { $0.session.streamLimit = 500 }
    #expect(conversation.limits == [1])
    conversation.push(["authorization": "bearer x.y.z"])
    #expect(conversation.limits == [1])
    let token = try key.token(issuedAt: "\(Self.second)")
    conversation.push(["authorization": token])
    conversation.push(["authorization": token])
    #expect(conversation.limits == [1, 500])
    #expect(HTTP2Conversation { $0.session.streamLimit = 500 }.limits == [500])
  }

  @Test("More tokens than are remembered are verified each") func manyTokens() throws {
    let key = try SigningKey()
    let conversation = try Self.trusting(key) {
      $0.maximumTokens = 3
      $0.rules.checksRenewal = false
    }
    for number in 0..<10 {
      let token = try key.token(issuedAt: "\(Self.second + Int64(number))")
      #expect(conversation.push(["authorization": token]).status == 200)
      #expect(conversation.push(["authorization": "bearer x.y.\(number)"]).status == 403)
    }
  }

  @Test("As many tokens are remembered as are allowed, and told of again when they were forgotten") func forgotten()
    throws
  {
    let key = try SigningKey()
    let conversation = try Self.trusting(key) {
      $0.maximumTokens = 2
      $0.rules.checksRenewal = false
    }
    let tokens = try (0..<3).map { try key.token(issuedAt: "\(Self.second + Int64($0))") }
    for number in [0, 1, 0, 1] { conversation.push(["authorization": tokens[number]]) }
    #expect(conversation.tokens.count == 2)
    for number in [2, 0] { conversation.push(["authorization": tokens[number]]) }
    #expect(conversation.tokens.count == 4)
  }

  @Test("The ledger lists each token once, with its age at first, up to a limit") func book() throws {
    let key = try SigningKey()
    let conversation = try Self.trusting(key) { $0.rules.checksRenewal = false }
    for number in 0..<2 {
      conversation.push(["authorization": try key.token(issuedAt: "\(Self.second + Int64(number))")])
    }
    let book = ProviderTokenBook(limit: 1)
    for (place, seconds) in [(0, 30), (0, 40), (1, 50)] as [(Int, Int64)] {
      book.add(conversation.tokens[place], now: (Self.second + seconds) * 1_000_000_000)
    }
    book.addRenewals(2)
    #expect(book.all.tokens.map(\.ageS) == [30] && book.all.tokens.map(\.connections) == [2])
    #expect(book.all.omitted == 1 && book.all.renewals == 2)
  }

  // MARK: devices and rules of --reject

  @Test("A rule by probability draws for each topic by itself") func drawnByTopic() {
    var behavior = Behavior()
    behavior.rejections = [Behavior.RejectionRule(.probability(0.5))]
    let conversation = HTTP2Conversation(behavior: behavior)
    let statuses = ["a", "b"].map { topic in (0..<40).map { _ in conversation.push(["apns-topic": topic]).status } }
    #expect(statuses[0] != statuses[1])
  }

  @Test("Devices: offline ones wait, unknown ones are rejected, uninstalled ones have a time") func devices() throws {
    let tokens = (1...3).map { [UInt8](repeating: UInt8($0), count: 32) }
    var population = DevicePopulation()
    for (token, device) in zip(tokens, [Device.offline, .unknown, .uninstalled]) {
      population.change(token.rawBytes, to: device, at: 43_000)
    }
    // It is so since the first time.
    let last = tokens[2]
    population.change(last.rawBytes, to: .uninstalled, at: 44_000)
    let store = StoredNotifications(.init())
    let conversation = HTTP2Conversation(devices: population, store: store)
    func path(_ number: Int) -> String { "/3/device/" + String(repeating: "0\(number)", count: 32) }
    #expect(conversation.push([":path": path(1)]).status == 200)
    #expect(conversation.push([":path": path(1), "apns-expiration": "0"]).status == 200)
    #expect(store.counts(now: conversation.now).stored == 1)
    #expect(store.counts(now: conversation.now).expired == 1)
    #expect(conversation.push([":path": path(2)]).reason == "BadDeviceToken")
    let gone = conversation.push([":path": path(3)])
    #expect(gone.status == 410)
    #expect(gone.content == #"{"reason":"Unregistered","timestamp":43000}"#)
    #expect(conversation.push([":path": path(4)]).status == 200)
    let others = HTTP2Conversation(devices: try DevicePopulation(shares: .init(uninstalled: 1)))
    #expect(others.push().content == #"{"reason":"Unregistered","timestamp":42000}"#, "since the start")
    let counts = conversation.takeCounts()
    #expect(counts.received == 5)
    #expect(counts.accepted == 3)
    #expect(counts.offline == 2)
    #expect(counts.rejected == [.badDeviceToken: 1, .unregistered: 1])
  }

  @Test(
    "A malformed notification is in the books, as discarded without a word of it",
    arguments: [
      ["connection": "close"], ["Apns-Topic": "com.example.app"], ["content-length": "5"], ["te": "gzip"],
      [":path": nil],
    ] as [[String: String?]])
  func malformed(changes: [String: String?]) {
    let conversation = HTTP2Conversation()
    #expect(conversation.push(changes).isReset && conversation.push().status == 200)
    conversation.finish()
    let counts = conversation.takeCounts()
    #expect(counts.received == 2 && counts.accepted == 1 && counts.discarded == 1 && counts.unknownDiscarded == 1)
    #expect(counts.incomplete == 0 && counts.otherRequests == 0 && counts.violations.values.reduce(0, +) == 1)
  }

  @Test("A malformed request that is no notification is another request")
  func malformedOther() {
    let conversation = HTTP2Conversation()
    let changes = [":path": "/", "apns-topic": nil, "apns-push-type": nil, "connection": "close"] as [String: String?]
    #expect(conversation.push(changes).isReset)
    let counts = conversation.takeCounts()
    #expect(counts.received == 0 && counts.otherRequests == 1 && counts.unknownDiscarded == 0)
  }

  @Test("Of what waits for an offline device, the latest of each apns-collapse-id or of all is kept, as told")
  func collapseIDs() {
    for (rule, stored) in [("collapse-id", 3), ("topic", 1)] {
      var population = DevicePopulation()
      population.change([UInt8](repeating: 0x0f, count: 32).rawBytes, to: .offline, at: 0)
      let store = StoredNotifications(.init())
      let talk = HTTP2Conversation(devices: population, store: store) {
        #expect(ServingRule.apply("offline-latest", rule, to: &$0.rules))
      }
      for identifier in ["a", "b", nil, "a", nil, ""] as [String?] {
        #expect(talk.push(["apns-collapse-id": identifier]).status == 200)
      }
      let counts = store.counts(now: talk.now)
      #expect(counts.accepted == 6 && counts.stored == stored && counts.coalesced == 6 - stored)
    }
  }

  @Test("Payloads are judged and counted once they come to be looked at, and refused where that is asked")
  func payloads() throws {
    let texts = [
      #"{"aps":{"alert":"plain alert"}}"#, #"{"aps":{"content-available":1}}"#, #"{"aps":{"alert":"Ciao",}}"#,
      #"{"aps":{"alert":"Ciao","badge":"1"}}"#,
    ]
    for reason in [nil, ProviderReason.badRequestPayload] {
      var scrutiny = PayloadScrutiny()
      scrutiny.reason = reason
      let tally = PayloadTally(scrutiny)
      let talk = HTTP2Conversation(payloads: tally)
      for text in texts + texts {
        let isWrong = text == texts[2]
        #expect(talk.push(content: Array(text.utf8)).reason == (isWrong ? reason?.rawValue : nil), "\(text)")
      }
      // Checks that come before.
      #expect(talk.push([":path": "/3/device/x"], content: Array(texts[2].utf8)).reason == "BadDeviceToken")
      #expect(talk.push(content: []).reason == "PayloadEmpty")
      #expect(talk.push(content: [UInt8](repeating: 0x20, count: 4_097)).reason == "PayloadTooLarge")
      #expect(tally.counts.kinds == ["alert": 4, "background": 2, "invalid": 2])
      let expected = [
        "json_trailing_comma": 2, "badge_type": 2, "payload_empty": 1, "payload_too_large": 1,
        "silent_priority_implied": 2,
      ]
      #expect(tally.counts.lint == expected)
    }
  }

  @Test("Rules of --reject: every n-th, with its reason and status") func rejections() {
    var rule = Behavior.RejectionRule(.every(3), topic: "com.example.app")
    (rule.reason, rule.httpStatus) = (ProviderReason(rawValue: "TooManyRequests"), 429)
    var behavior = Behavior()
    behavior.rejections = [rule]
    let conversation = HTTP2Conversation(behavior: behavior)
    let statuses = (0..<6).map { _ in conversation.push().status }
    #expect(statuses == [200, 200, 429, 200, 200, 429])
    #expect((0..<4).map { _ in conversation.push(["apns-topic": "other"]).status } == [200, 200, 200, 200])
  }

  @Test("An answer that waits for a window and is not taken counts as such, and its request once") func cutAnswer() {
    let conversation = HTTP2Conversation()
    var writer = ByteWriter()
    writer.writeSettings([Setting(.initialWindowSize, 0)])
    conversation.send(Array(copying: writer.bytes))
    #expect(conversation.push(["apns-priority": "7"]).content.isEmpty)
    writer.removeAll()
    writer.writeReset(.cancel, stream: 1)
    conversation.send(Array(copying: writer.bytes))
    let counts = conversation.takeCounts()
    #expect(counts.received == 1)
    #expect(counts.rejected == [.badPriority: 1])
    #expect(counts.unanswered == 1)
    #expect(counts.incomplete == 0)
  }

  @Test("A topic has letters, digits, full stops, hyphens and underscores, up to 255, and nothing beside them")
  func topicCharacters() {
    for text in ["a", "z", "A", "Z", "0", "9", ".", "-", "_", String(repeating: "a", count: 255)] {
      #expect(ProviderGateway.isTopic(Array(text.utf8)), "\(text)")
    }
    for text in ["`", "{", "@", "[", "/", ":", ",", " ", String(repeating: "a", count: 256)] {
      #expect(!ProviderGateway.isTopic(Array(text.utf8)), "\(text)")
    }
  }

  @Test("Made identifiers are UUIDs of version 4 in upper case, of all digits, each another one") func identifiers() {
    let conversation = HTTP2Conversation()
    let made = (0..<200).compactMap { _ in conversation.push().fields["apns-id"] }
    #expect(Set(made).count == 200)
    let form = /[0-9A-F]{8}-[0-9A-F]{4}-4[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}/
    #expect(made.allSatisfy { $0.wholeMatch(of: form) != nil })
    for place in [0, 7, 9, 12, 15, 17, 20, 22, 24, 35] {
      #expect(Set(made.map { Array($0)[place] }).count == 16, "at \(place)")
    }
  }

  @Test("Answers are counted by their status") func answers() {
    let conversation = HTTP2Conversation()
    for _ in 0..<2 { conversation.push() }
    for _ in 0..<3 { conversation.push(["apns-priority": "7"]) }
    conversation.push([":path": "/other"])
    let counts = conversation.takeCounts()
    #expect(counts.successes == 2)
    #expect(counts.answers == [400: 3, 404: 1])
  }

  @Test("A request above the limit on streams counts by its path") func refused() {
    let conversation = HTTP2Conversation { $0.session.streamLimit = 1 }
    conversation.begin()
    #expect(conversation.push().isReset)
    #expect(conversation.push([":path": "/other", "apns-topic": nil, "apns-push-type": nil]).isReset)
    let counts = conversation.takeCounts()
    #expect((counts.received, counts.discarded, counts.otherRequests) == (1, 1, 1))
  }

  @Test("A token may be a minute ahead of the gateway's clock") func skew() throws {
    let key = try SigningKey()
    for (ahead, status) in [(60, 200), (61, 403)] as [(Int64, Int)] {
      let token = try key.token(issuedAt: "\(Self.second + ahead)")
      #expect(try Self.trusting(key).push(["authorization": token]).status == status)
    }
  }

  @Test("Topics of a connection have a limit") func topics() {
    let conversation = HTTP2Conversation { $0.maximumTopics = 2 }
    #expect((0..<3).map { conversation.push(["apns-topic": "t\($0)"]).status } == [200, 200, 503])
    #expect(conversation.push(["apns-topic": "t1"]).status == 200)
  }
}
