import Bytes
import Measurement
import PushModel
import TestSupport
import Testing

@testable import GatewaySimulator

/// Channels of broadcasts, and broadcasts to them, as conversations.
@Suite("Broadcasts over HTTP/2")
struct BroadcastTests {
  fileprivate static let app = "com.example.app"

  /// A connection to channel management and one for notifications, which know the same channels.
  private struct Place {
    let channels: BroadcastChannels
    let management: HTTP2Conversation
    let sender: HTTP2Conversation

    init(
      _ trust: ProviderGateway.Trust = .any, maximumOfApp: Int = 10_000, maximum: Int = 100_000, seed: UInt64 = 1
    ) {
      channels = BroadcastChannels(maximumOfApp: maximumOfApp, maximum: maximum, seed: seed)
      management = HTTP2Conversation(trust, channels: channels) { $0.purpose = .channels }
      sender = HTTP2Conversation(trust, channels: channels)
    }

    func manage(
      _ method: String, _ path: String = "/1/apps/\(BroadcastTests.app)/channels", channel: String? = nil,
      content: String = "",
      more: [(String, String)] = []
    ) -> HTTP2Conversation.Answer {
      management.push(
        [
          ":method": method, ":path": path, "apns-topic": nil, "apns-push-type": nil,
          "apns-channel-id": channel,
        ], more: more, content: Array(content.utf8))
    }

    func create(keepsMessage: Bool = true) -> String {
      let content = #"{"message-storage-policy":\#(keepsMessage ? 1 : 0),"push-type":"LiveActivity"}"#
      return manage("POST", content: content).fields["apns-channel-id"] ?? ""
    }

    func broadcast(
      _ channel: String?, _ changes: [String: String?] = [:], content: [UInt8] = Array(#"{"aps":{}}"#.utf8)
    ) -> HTTP2Conversation.Answer {
      let usual: [String: String?] = [
        ":path": "/4/broadcasts/apps/\(BroadcastTests.app)", "apns-topic": nil, "apns-push-type": "Liveactivity",
        "apns-priority": "10", "apns-expiration": "0", "apns-channel-id": channel,
      ]
      return sender.push(usual.merging(changes) { $1 }, content: content)
    }
  }

  @Test("A channel is created, described, listed, and deleted once") func channel() throws {
    let place = Place()
    let created = place.manage(
      "POST", content: #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#,
      more: [("apns-request-id", "01234567-89ab-cdef-0123-456789abcdef")])
    #expect(created.status == 201 && created.content == "")
    #expect(created.fields["apns-request-id"] == "01234567-89ab-cdef-0123-456789abcdef")
    #expect(created.fields["apns-id"] == nil)
    let channel = try #require(created.fields["apns-channel-id"])
    #expect(channel.utf8.count == 24 && channel.hasSuffix("=="))
    let read = place.manage("GET", channel: channel)
    #expect(read.status == 200 && read.content == #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#)
    #expect(read.fields["apns-request-id"]?.utf8.count == 36)
    let other = place.create(keepsMessage: false)
    let all = place.manage("GET", "/1/apps/\(Self.app)/all-channels")
    #expect(all.content == "{\"channels\":[\([channel, other].sorted().map { "\"\($0)\"" }.joined(separator: ","))]}")
    #expect(place.manage("GET", "/1/apps/com.example.b/all-channels").content == #"{"channels":[]}"#)
    #expect(place.manage("DELETE", channel: channel).status == 204)
    let gone = place.manage("DELETE", channel: channel)
    #expect(gone.status == 400 && gone.reason == "ChannelNotRegistered")
    let counts = place.management.takeCounts()
    #expect(counts.received == 0 && counts.otherRequests == 7)
    let channels = counts.channels
    #expect(
      (channels.created, channels.read, channels.listed, channels.deleted) == (2, 1, 2, 1)
        && channels.rejected.map { [$0.key.rawValue: $0.value] } == [["ChannelNotRegistered": 1]])
    #expect(place.channels.counts(now: 0).registered == 1)
  }

  static let faults: [(String, String, String?, String, Int, String)] = [
    ("POST", "/1/apps/a/channels", nil, "", 400, "BadRequestPayload"),
    ("POST", "/1/apps/a/channels", nil, "[]", 400, "BadRequestPayload"),
    ("POST", "/1/apps/a/channels", nil, #"{"push-type":"LiveActivity"}"#, 400, "BadRequestPayload"),
    (
      "POST", "/1/apps/a/channels", nil, #"{"message-storage-policy":2,"push-type":"LiveActivity"}"#, 400,
      "BadRequestPayload"
    ),
    ("POST", "/1/apps/a/channels", nil, #"{"message-storage-policy":1}"#, 400, "MissingPushType"),
    (
      "POST", "/1/apps/a/channels", nil, #"{"message-storage-policy":1,"push-type":"alert"}"#, 400, "InvalidPushType"
    ),
    ("GET", "/1/apps/a/channels", nil, "", 400, "MissingChannelId"),
    ("GET", "/1/apps/a/channels", "AAAA", "", 400, "ChannelNotRegistered"),
    ("DELETE", "/1/apps/a/channels", nil, "", 400, "MissingChannelId"),
    ("PUT", "/1/apps/a/channels", "AAAA", "", 405, "MethodNotAllowed"),
    ("POST", "/1/apps/a/all-channels", nil, "", 405, "MethodNotAllowed"),
    ("GET", "/1/apps//channels", "AAAA", "", 404, "BadPath"), ("GET", "/", nil, "", 404, "BadPath"),
    ("POST", "/3/device/0f", nil, "{}", 404, "BadPath"),
    ("POST", "/4/broadcasts/apps/a", "AAAA", "{}", 404, "BadPath"),
  ]

  @Test("A wrong request to channel management has its reason, and changes nothing", arguments: faults)
  func wrong(method: String, path: String, channel: String?, content: String, status: Int, reason: String) {
    let place = Place()
    let answer = place.manage(method, path, channel: channel, content: content)
    #expect(answer.status == status && answer.reason == reason)
    #expect(place.channels.counts(now: 0).registered == 0)
    // A notification that comes here is one, and rejected.
    let counts = place.management.takeCounts()
    #expect(counts.received == counts.accepted + counts.rejections + counts.discarded)
    #expect(counts.received + counts.channels.rejected.values.reduce(0, +) == 1)
  }

  @Test("Lists for a client that opens no window are bounded") func unsentLists() {
    let place = Place()
    for _ in 0..<4_000 { _ = place.channels.create(.init(keepsMessage: false), of: Self.app) }
    for _ in 0..<40 { _ = place.manage("GET", "/1/apps/\(Self.app)/all-channels") }
    let length = 4_000 * 27
    #expect(place.management.heldBytes < (1 << 20) + length && place.management.heldBytes > 1 << 20)
    let counts = place.management.takeCounts()
    #expect(counts.channels.listed <= (1 << 20) / length + 3)
    #expect(
      counts.channels.rejected.map { [$0.key.rawValue: $0.value] } == [
        ["ServiceUnavailable": 40 - counts.channels.listed]
      ])
  }

  @Test("Another apns-request-id than a UUID is not sent back") func requestID() {
    let place = Place()
    let answer = place.manage(
      "GET", "/1/apps/a/all-channels", more: [("apns-request-id", String(repeating: "x", count: 36))])
    #expect(answer.fields["apns-request-id"].map { !$0.contains("x") && $0.utf8.count == 36 } == true)
  }

  @Test("Channels have a limit for each app, and for all") func limits() {
    let place = Place(maximumOfApp: 2, maximum: 3)
    func create(_ app: String) -> String? {
      place.manage(
        "POST", "/1/apps/\(app)/channels", content: #"{"message-storage-policy":0,"push-type":"LiveActivity"}"#
      ).reason
    }
    #expect([create("a"), create("a"), create("a")] == [nil, nil, "CannotCreateChannelConfig"])
    #expect([create("b"), create("b")] == [nil, "CannotCreateChannelConfig"])
  }

  @Test("A broadcast is accepted with identifiers of its own, and counts as a notification") func broadcast() {
    let place = Place()
    let channel = place.create()
    let answer = place.broadcast(channel)
    #expect(answer.status == 200 && answer.content == "")
    #expect(answer.fields["apns-request-id"]?.utf8.count == 36 && answer.fields["apns-unique-id"]?.utf8.count == 36)
    #expect(answer.fields["apns-id"] == nil && answer.fields["apns-channel-id"] == nil)
    let counts = place.sender.takeCounts()
    #expect((counts.received, counts.accepted, counts.otherRequests) == (1, 1, 0))
    #expect(place.channels.counts(now: place.sender.now).keeping == 0)
  }

  static let broadcastFaults: [(String, [String: String?], Int, String)] = [
    ("a method", [":method": "GET"], 405, "MethodNotAllowed"),
    ("no channel", ["apns-channel-id": nil], 400, "MissingChannelId"),
    ("no Base64", ["apns-channel-id": "*"], 400, "BadChannelId"),
    ("Base64url", ["apns-channel-id": "-_8="], 400, "BadChannelId"),
    ("another channel", ["apns-channel-id": "AAAA"], 400, "ChannelNotRegistered"),
    ("no priority", ["apns-priority": nil], 400, "BadPriority"),
    ("a priority", ["apns-priority": "7"], 400, "BadPriority"),
    ("no push type", ["apns-push-type": nil], 400, "MissingPushType"),
    ("a push type", ["apns-push-type": "alert"], 400, "InvalidPushType"),
    ("no expiration", ["apns-expiration": nil], 400, "BadExpirationDate"),
    ("an expiration", ["apns-expiration": "soon"], 400, "BadExpirationDate"),
    ("no app", [":path": "/4/broadcasts/apps/"], 404, "BadPath"),
    ("another path", [":path": "/4/broadcasts/apps/a/b"], 404, "BadPath"),
  ]

  @Test("A wrong broadcast has its reason", arguments: broadcastFaults)
  func wrongBroadcast(name: String, changes: [String: String?], status: Int, reason: String) {
    let place = Place()
    let answer = place.broadcast(place.create(), changes)
    #expect(answer.status == status && answer.reason == reason, "\(name)")
    #expect(place.sender.takeCounts().received == 1)
  }

  @Test("Payloads of broadcasts have up to 5,120 bytes, and are not empty") func payloads() {
    let place = Place()
    let channel = place.create()
    #expect(place.broadcast(channel, content: [UInt8](repeating: 0x20, count: 5_120)).status == 200)
    #expect(place.broadcast(channel, content: [UInt8](repeating: 0x20, count: 5_121)).reason == "PayloadTooLarge")
    #expect(place.broadcast(channel, content: []).reason == "PayloadEmpty")
  }

  @Test("Without channel management broadcasts are not enabled") func notEnabled() {
    let answer = HTTP2Conversation().push([":path": "/4/broadcasts/apps/a", "apns-topic": nil])
    #expect(answer.status == 400 && answer.reason == "FeatureNotEnabled")
  }

  @Test("A channel keeps its newest message until it expires, at most 8 hours, if it keeps any") func storage() {
    let place = Place()
    let (keeping, other) = (place.create(), place.create(keepsMessage: false))
    let now = place.sender.now
    func held(in seconds: Int64) -> Int { place.channels.counts(now: now + seconds * 1_000).keeping }
    // A channel without storage takes no other expiration than 0.
    #expect(place.broadcast(other, ["apns-expiration": "\(now / 1_000 + 60)"]).reason == "BadExpirationDate")
    #expect(place.broadcast(other).status == 200)
    #expect(held(in: 0) == 0)
    #expect(place.broadcast(keeping, ["apns-expiration": "\(now / 1_000 + 60)"]).status == 200)
    #expect((held(in: 0), held(in: 59), held(in: 60)) == (1, 1, 0))
    #expect(place.broadcast(keeping, ["apns-expiration": "99999999999"]).status == 200)
    #expect((held(in: 8 * 3_600 - 1), held(in: 8 * 3_600)) == (1, 0))
    // One that expires at once takes the place of the one before.
    #expect(place.broadcast(keeping).status == 200)
    #expect(held(in: 0) == 0)
  }

  @Test("A certificate is trusted for the apps that it names") func certificate() {
    let place = Place(.certificate([Self.app]))
    let channel = place.create()
    #expect(channel != "")
    #expect(place.broadcast(channel).status == 200)
    let other = place.broadcast(channel, [":path": "/4/broadcasts/apps/com.example.b"])
    #expect(other.status == 403 && other.reason == "TopicMismatch")
    #expect(place.manage("GET", "/1/apps/com.example.b/all-channels").reason == "TopicMismatch")
    #expect(Place(.certificate(nil)).manage("GET", "/1/apps/a/all-channels").reason == "MissingProviderToken")
  }

  @Test("The same seed draws the same channels, and none twice", arguments: seeds(3, of: 30))
  func drawn(seed: UInt64) {
    let (one, two) = (Place(seed: seed), Place(seed: seed))
    let channels = (0..<20).map { _ in one.create() }
    #expect(channels == (0..<20).map { _ in two.create() })
    #expect(Set(channels).count == 20)
  }
}
