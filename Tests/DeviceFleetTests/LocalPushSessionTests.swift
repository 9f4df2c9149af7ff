import Bytes
import DeviceProtocol
import Measurement
import TestSupport
import Testing

@testable import DeviceFleet

/// An extension of local push, event by event.
@Suite("Sessions of local push")
struct LocalPushSessionTests {
  private static let second: Int64 = 1_000_000_000

  private struct Talk: ~Copyable {
    var session: LocalPushSession
    var tools = SessionTools(FleetRules(topics: []))

    init(acknowledges: Bool = true, _ change: (inout LocalPushPlan) -> Void = { _ in }) {
      var plan = LocalPushPlan()
      change(&plan)
      session = LocalPushSession(device: 7, plan, acknowledges: acknowledges)
    }

    mutating func connect(at time: Int64 = 0) {
      tools.now = time
      session.connected(&tools)
    }

    mutating func hear(
      _ messages: LocalPushMessage..., at time: Int64 = 0, order: MessageFraming.ByteOrder = .littleEndian
    ) {
      hear(written { for message in messages { message.write(order, to: &$0) } }, at: time)
    }

    mutating func hear(_ bytes: [UInt8], at time: Int64 = 0) {
      tools.now = time
      session.receive(bytes.rawBytes, &tools)
    }

    mutating func expire(at time: Int64) {
      tools.now = time
      session.expire(&tools)
    }

    mutating func acknowledge() { session.acknowledge(&tools) }

    mutating func told() -> [SessionEvent] { tools.takeEvents() }

    mutating func said() throws -> [LocalPushMessage] {
      let bytes = Array(copying: tools.output.bytes)
      tools.output.removeAll()
      var (framing, reader) = (MessageFraming(), LocalPushReader())
      var (start, found) = (0, [LocalPushMessage]())
      while let body = try framing.next(bytes.rawBytes.extracting(start...)) {
        found.append(try reader.read(bytes.rawBytes.extracting(start + body.lowerBound..<start + body.upperBound)))
        start += body.upperBound
      }
      return found
    }

    mutating func comeOnline() throws {
      connect()
      hear(LocalPushMessage(acknowledging: 1))
      _ = try said()
      _ = told()
    }
  }

  private static let user = LocalPushMessage.User(device: 7)

  @Test("It registers, is online when that is acknowledged, and acknowledges each request once")
  func conversation() throws {
    var talk = Talk()
    talk.connect()
    #expect(try talk.said() == [LocalPushMessage(request: 1, .user(Self.user))])
    var told = talk.told()
    #expect(told == [.localPush(.asked)])
    talk.hear(LocalPushMessage(acknowledging: 1))
    told = talk.told()
    #expect(told == [.localPush(.registered), .online])
    talk.hear(
      LocalPushMessage(request: 5, .text("abc", from: Self.user, to: Self.user), sent: 12),
      LocalPushMessage(request: 6, .heartbeat(count: 1)),
      LocalPushMessage(request: 7, .invite(from: Self.user, to: Self.user)))
    told = talk.told()
    #expect(
      told == [
        .localPush(.received(.init(.text("abc", from: Self.user, to: Self.user), sent: 12))),
        .localPush(.received(.init(.heartbeat(count: 1), sent: nil))),
        .localPush(.received(.init(.invite(from: Self.user, to: Self.user), sent: nil))),
      ])
    #expect(talk.session.owesAcknowledgement)
    talk.acknowledge()
    #expect(try talk.said() == [5, 6, 7].map { LocalPushMessage(acknowledging: $0) })
    told = talk.told()
    #expect(
      told == [
        .localPush(.acknowledged(isMessage: true)), .localPush(.acknowledged(isMessage: false)),
        .localPush(.acknowledged(isMessage: true)),
      ])
    talk.acknowledge()
    #expect(try talk.said() == [] && !talk.session.owesAcknowledgement)
  }

  @Test("Silence of 30 s ends it, and a registration that is not acknowledged for 10 s")
  func silence() throws {
    var talk = Talk()
    talk.connect(at: 5 * Self.second)
    #expect(talk.session.deadline == 15 * Self.second)
    talk.expire(at: 15 * Self.second - 1)
    _ = talk.told()
    talk.expire(at: 15 * Self.second)
    var told = talk.told()
    #expect(told == [.localPush(.timedOut), .ends(.unanswered)])

    talk = Talk()
    try talk.comeOnline()
    talk.hear(LocalPushMessage(request: 1, .heartbeat(count: 1)), at: 20 * Self.second)
    #expect(talk.session.deadline == 50 * Self.second)
    // A part of a message is heard, too.
    talk.hear([9], at: 21 * Self.second)
    _ = talk.told()
    talk.expire(at: 51 * Self.second - 1)
    told = talk.told()
    #expect(told == [])
    talk.expire(at: 51 * Self.second)
    told = talk.told()
    #expect(told == [.ends(.silence)] && talk.session.deadline == .max)
    talk.session.disconnected()
    talk.connect(at: 60 * Self.second)
    #expect(talk.session.deadline == 70 * Self.second)
  }

  @Test("A request that comes twice, is for another user, or comes too early is the server's fault")
  func faults() throws {
    var talk = Talk()
    talk.connect()
    talk.hear(LocalPushMessage(request: 1, .heartbeat(count: 1)), LocalPushMessage(acknowledging: 2))
    var told = talk.told()
    #expect(told == [.localPush(.asked), .fault(.unexpected), .fault(.unexpected)])
    try talk.comeOnline()
    let text = LocalPushMessage.Content.text("a", from: Self.user, to: Self.user)
    talk.hear(LocalPushMessage(request: 3, text), LocalPushMessage(request: 3, text))
    told = talk.told()
    #expect(told == [.localPush(.received(.init(text, sent: nil))), .fault(.duplicate)])
    // The acknowledgement of the first one may have been lost.
    talk.acknowledge()
    #expect(try talk.said() == [LocalPushMessage(acknowledging: 3), LocalPushMessage(acknowledging: 3)])
    _ = talk.told()
    talk.hear(LocalPushMessage(request: 4, .invite(from: Self.user, to: .init(device: 8))))
    told = talk.told()
    #expect(told.last == .fault(.unexpected))
    talk.hear([200, 0, 0, 0, 65])
    told = talk.told()
    #expect(told == [.fault(.framing), .ends(.message)])
  }

  @Test("Bytes may come in any pieces, and lengths in either order", arguments: MessageFraming.ByteOrder.allCases)
  func pieces(order: MessageFraming.ByteOrder) throws {
    let messages = [
      LocalPushMessage(acknowledging: 1), LocalPushMessage(request: 5, .text("abc", from: Self.user, to: Self.user)),
      LocalPushMessage(request: 6, .heartbeat(count: 1)),
    ]
    let bytes = written { for message in messages { message.write(order, to: &$0) } }
    for length in 1..<bytes.count {
      var talk = Talk()
      talk.connect()
      for start in stride(from: 0, to: bytes.count, by: length) {
        talk.hear(Array(bytes[start..<min(bytes.count, start + length)]))
      }
      #expect(talk.session.pendingBytes == 0)
      let told = talk.told()
      #expect(told.count == 5 && told.contains(.online))
      talk.acknowledge()
      let said = Array(copying: talk.tools.output.bytes)
      let expected = written { LocalPushMessage(acknowledging: 6).write(order, to: &$0) }
      #expect(said.suffix(expected.count) == expected[...])
    }
  }

  @Test("A device that never acknowledges reads on")
  func never() throws {
    var talk = Talk(acknowledges: false)
    try talk.comeOnline()
    talk.hear(LocalPushMessage(request: 5, .heartbeat(count: 1)))
    talk.acknowledge()
    #expect(try talk.said() == [] && talk.told().count == 1)
  }

  @Test("Networks are drawn by their shares; what is left is elsewhere")
  func networks() {
    var plan = LocalPushPlan()
    #expect(plan.isPossible && plan.network(drawn: 0) == .any)
    plan.networks = [.init(name: "a", share: 0.25), .init(name: "b", share: 0.5)]
    #expect(plan.isPossible)
    #expect(
      [0, 0.249, 0.25, 0.749, 0.75, 0.99].map { plan.network(drawn: $0) }
        == [.network(0), .network(0), .network(1), .network(1), .other, .other])
    plan.networks.append(.init(name: "c", share: 0.3))
    #expect(!plan.isPossible)
    plan.networks = [.init(name: "a", share: 0.1), .init(name: "a", share: 0.1)]
    #expect(!plan.isPossible)
  }
}
