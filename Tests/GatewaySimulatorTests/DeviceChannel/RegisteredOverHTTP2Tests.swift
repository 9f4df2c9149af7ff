import Bytes
import DeviceProtocol
import ProviderAPI
import Testing

@testable import GatewaySimulator

/// Notifications over HTTP/2 for registered devices.
@Suite("Registered devices over HTTP/2")
struct RegisteredOverHTTP2Tests {
  private static let link = RegisteredApp.Link(loop: 0, connection: 9)

  /// A device of a topic that is connected, and what is put into its mailbox.
  private struct Fixture {
    let store = StoredNotifications(.init())
    let directory: DeviceDirectory
    let mailbox = DeviceMailbox { _ in }
    let token: [UInt8]

    init(topic: String = "com.example.app", isOnline: Bool = true) {
      directory = DeviceDirectory(DeviceChannel(address: .init(host: "", port: 0)), seed: 1, file: nil)
      directory.begin([mailbox]) { _ in }
      let number = store.number(of: topic)
      let registration = directory.use {
        $0.register(.init(device: 4, topic: topic), topic: number, on: link, now: HTTP2Conversation.start)
      }
      guard case .token(let token) = registration else {
        self.token = []
        return
      }
      self.token = token
      guard isOnline else { return }
      directory.use {
        _ = $0.online(
          [(number, .init(token: token, topic: topic))], hasLowPower: false, on: link, now: HTTP2Conversation.start)
      }
    }

    var path: String { "/3/device/" + token.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }

    func deliveries() -> [DeviceMessage.Delivery] {
      mailbox.take().compactMap { if case .deliver(let delivery) = $0.message { delivery } else { nil } }
    }
  }

  @Test("A device gets all that the request says of its notification")
  func fields() throws {
    let fixture = Fixture()
    let talk = HTTP2Conversation(store: fixture.store, registered: fixture.directory)
    let answer = talk.push(
      [
        ":path": fixture.path, "apns-priority": "5", "apns-expiration": "1767225700", "apns-collapse-id": "score",
        "apns-push-type": "background",
      ], content: Array(#"{"aps":{"content-available":1}}"#.utf8))
    #expect(answer.status == 200)
    let delivery = try #require(fixture.deliveries().first)
    #expect(
      delivery
        == DeviceMessage.Delivery(
          token: fixture.token, topic: "com.example.app", sequence: 1,
          payload: Array(#"{"aps":{"content-available":1}}"#.utf8), priority: 5, pushType: "background",
          expiration: 1_767_225_700, collapseID: "score", sent: HTTP2Conversation.start * 1_000_000))
    let counts = talk.takeCounts()
    #expect(counts.accepted == 1 && counts.offline == 1)
  }

  @Test("A token of another topic is none of this one's, and one of nobody is as the population says")
  func otherTopic() {
    let fixture = Fixture(topic: "com.example.other")
    let talk = HTTP2Conversation(store: fixture.store, registered: fixture.directory)
    #expect(talk.push([":path": fixture.path]).reason == "DeviceTokenNotForTopic")
    #expect(talk.push([":path": fixture.path, "apns-topic": "unheard"]).reason == "DeviceTokenNotForTopic")
    #expect(talk.push().status == 200)
    #expect(fixture.deliveries().isEmpty)
  }

  @Test("A token that a restored device has left is unregistered since then")
  func restored() {
    let fixture = Fixture(isOnline: false)
    let talk = HTTP2Conversation(store: fixture.store, registered: fixture.directory)
    fixture.directory.use {
      _ = $0.register(
        .init(device: 4, topic: "com.example.app", generation: 1), topic: 0, on: Self.link,
        now: HTTP2Conversation.start + 77)
    }
    let answer = talk.push([":path": fixture.path])
    #expect(answer.status == 410)
    #expect(answer.content == #"{"reason":"Unregistered","timestamp":\#(HTTP2Conversation.start + 77)}"#)
  }

  @Test("A rule of --reject is asked before the device")
  func rejected() {
    let fixture = Fixture()
    var behavior = Behavior()
    behavior.rejections = [Behavior.RejectionRule(.every(2))]
    let talk = HTTP2Conversation(behavior: behavior, store: fixture.store, registered: fixture.directory)
    let statuses = (0..<4).map { _ in talk.push([":path": fixture.path]).status }
    #expect(statuses == [200, 400, 200, 400] && fixture.deliveries().map(\.sequence) == [1, 2])
  }

  @Test("Collapse identifiers name what waits for a device that is away, or nothing does, as told")
  func collapseIDs() {
    for (rule, stored) in [("collapse-id", 3), ("topic", 1)] {
      let fixture = Fixture(isOnline: false)
      let talk = HTTP2Conversation(store: fixture.store, registered: fixture.directory) {
        #expect(ServingRule.apply("offline-latest", rule, to: &$0.rules))
      }
      for identifier in ["a", "b", nil, "a", nil, ""] as [String?] {
        #expect(talk.push([":path": fixture.path, "apns-collapse-id": identifier]).status == 200)
      }
      let counts = fixture.directory.counts(now: talk.now)
      #expect(counts.accepted == 6 && counts.stored == stored && counts.coalesced == 6 - stored)
    }
  }
}
