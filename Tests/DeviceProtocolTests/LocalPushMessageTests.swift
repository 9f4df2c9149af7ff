import Bytes
import DeviceProtocol
import Foundation
import TestSupport
import Testing

/// Messages of local push: as Swift's `JSONEncoder` writes them in a client, and as they are written here.
@Suite("Messages of local push")
struct LocalPushMessageTests {
  static let anna = LocalPushMessage.User(identifier: "5C1F3D2A-0B7E-4E0B-9C61-2B8B0E3F4A11", deviceName: "Anna's iPad")
  static let ben = LocalPushMessage.User(identifier: "0D2B8F4E-1111-4222-8333-444455556666", deviceName: "Ben \"/\" 🛳")

  static let contents: [(LocalPushMessage.Content, UInt8, String)] = [
    (.invite(from: anna, to: ben), 0, #"{"routing":{"sender":ANNA,"receiver":BEN}}"#),
    (.user(ben), 1, "BEN"),
    (.callAction("hangup", of: anna), 2, #"{"action":"hangup","receiver":ANNA}"#),
    (
      .text("Wo bist du?", from: ben, to: anna), 3,
      #"{"routing":{"sender":BEN,"receiver":ANNA},"message":"Wo bist du?"}"#
    ),
    (.heartbeat(count: 12), 4, #"{"count":12}"#),
    (.directory([anna, ben]), 5, #"{"users":[ANNA,BEN]}"#),
    (.directory([]), 5, #"{"users":[]}"#),
    (.other(key: 9, Array(#"{"a":1}"#.utf8)), 9, #"{"a":1}"#),
    (.other(key: 4, Array("none".utf8)), 4, "none"),
  ]

  @Test("The time of sending is read as it was written, and is none of what others need")
  func sent() throws {
    var reader = LocalPushReader()
    for sent in [nil, 0, 1_700_000_000_123_456_789] as [Int64?] {
      let message = LocalPushMessage(request: 1, .heartbeat(count: 2), sent: sent)
      #expect(try reader.read(written { message.writeBody(to: &$0) }.rawBytes) == message)
    }
    let data = Data(#"{"count":2}"#.utf8).base64EncodedString()
    for value in ["-1", "null", #""1""#, "1.5", "99999999999999999999"] {
      let text =
        #"{"command":"request","requestIdentifier":1,"sentNs":\#(value),"payload":{"codingKey":4,"data":"\#(data)"}}"#
      #expect(try reader.read(Array(text.utf8).rawBytes) == LocalPushMessage(request: 1, .heartbeat(count: 2)))
    }
  }

  @Test("The user of a device has an identifier of its own, which is a UUID")
  func users() throws {
    let numbers: [UInt64] = [0, 1, 17, 1 << 47, 1 << 48, .max]
    let users = numbers.map { LocalPushMessage.User(device: $0) }
    #expect(users[2].identifier == "00000000-0000-4000-8000-000000000011" && users[2].deviceName == "device 17")
    #expect(Set(users.map(\.identifier)).count == numbers.count)
    for user in users { #expect(UUID(uuidString: user.identifier) != nil, "\(user.identifier)") }
  }

  private static func inner(_ text: String) throws -> String {
    func object(_ user: LocalPushMessage.User) throws -> String {
      String(
        decoding: try JSONSerialization.data(
          withJSONObject: ["uuid": user.identifier, "deviceName": user.deviceName], options: .withoutEscapingSlashes),
        as: UTF8.self)
    }
    return text.replacing("ANNA", with: try object(anna)).replacing("BEN", with: try object(ben))
  }

  @Test(
    "A request of a client with Foundation's encoder is read, whatever the order of its members",
    arguments: contents.indices)
  func foundation(place: Int) throws {
    let (content, key, text) = Self.contents[place]
    let data = Data(try Self.inner(text).utf8).base64EncodedString()
    for seed in 0..<10 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      let payload = [#""codingKey":\#(key)"#, "\"data\":\"\(data.replacing("/", with: "\\/"))\""].shuffled(
        using: &random)
      let outer = [
        #""command":"request""#, #""requestIdentifier":4294967295"#, "\"payload\":{\(payload.joined(separator: ","))}",
      ].shuffled(using: &random)
      var reader = LocalPushReader()
      let message = try reader.read(Array("{\(outer.joined(separator: ","))}".utf8).rawBytes)
      #expect(message == LocalPushMessage(request: .max, content) && content.codingKey == key)
    }
  }

  @Test("Foundation's decoder reads a message that is written", arguments: contents.indices)
  func writing(place: Int) throws {
    struct Outer: Decodable {
      struct Payload: Decodable {
        var codingKey: UInt8
        var data: Data
      }
      var command: String
      var requestIdentifier: UInt32
      var payload: Payload?
    }
    let (content, key, text) = Self.contents[place]
    let body = written { LocalPushMessage(request: 5, content).writeBody(to: &$0) }
    let outer = try JSONDecoder().decode(Outer.self, from: Data(body))
    #expect(outer.command == "request" && outer.requestIdentifier == 5 && outer.payload?.codingKey == key)
    let inner = try #require(outer.payload?.data)
    if key == 9 || text == "none" {
      #expect(String(decoding: inner, as: UTF8.self) == text)
    } else {
      let expected = try JSONSerialization.jsonObject(with: Data(try Self.inner(text).utf8)) as? NSObject
      #expect(try JSONSerialization.jsonObject(with: inner) as? NSObject == expected)
    }
    var reader = LocalPushReader()
    #expect(try reader.read(body.rawBytes) == LocalPushMessage(request: 5, content))
  }

  @Test("An acknowledgement has the identifier of its request and no payload")
  func acknowledgement() throws {
    let message = LocalPushMessage(acknowledging: 77)
    let body = written { message.writeBody(to: &$0) }
    #expect(String(decoding: body, as: UTF8.self) == #"{"command":"acknowledge","requestIdentifier":77}"#)
    var reader = LocalPushReader()
    #expect(try reader.read(body.rawBytes) == message)
    #expect(
      try reader.read(Array(#"{"command":"acknowledge","requestIdentifier":77,"payload":null}"#.utf8).rawBytes)
        == message)
  }

  @Test("The length is in the order that is asked for", arguments: MessageFraming.ByteOrder.allCases)
  func order(_ order: MessageFraming.ByteOrder) throws {
    var framing = MessageFraming()
    let bytes = written { LocalPushMessage(request: 1, .user(Self.anna)).write(order, to: &$0) }
    let range = try framing.next(bytes.rawBytes)
    #expect(range == 4..<bytes.count && framing.order == order)
  }

  @Test(
    "Text that is no message is told with its member",
    arguments: [
      ("{", .json(offset: 1)), ("{}", .member("command")), (#"{"command":"ask"}"#, .member("command")),
      (#"{"command":"request","requestIdentifier":4294967296}"#, .member("requestIdentifier")),
      (#"{"command":"request","requestIdentifier":1}"#, .member("payload")),
      (#"{"command":"request","requestIdentifier":1,"payload":[]}"#, .member("payload")),
      (#"{"command":"request","requestIdentifier":1,"payload":{"data":""}}"#, .member("codingKey")),
      (#"{"command":"request","requestIdentifier":1,"payload":{"codingKey":256,"data":""}}"#, .member("codingKey")),
      (#"{"command":"request","requestIdentifier":1,"payload":{"codingKey":1}}"#, .member("data")),
      (#"{"command":"request","requestIdentifier":1,"payload":{"codingKey":1,"data":"e3"}}"#, .member("data")),
    ] as [(String, MessageError)])
  func faults(text: String, error: MessageError) {
    var reader = LocalPushReader()
    #expect(throws: error) { try reader.read(Array(text.utf8).rawBytes) }
  }
}
