import HTTP2
import HTTP2Server
import Measurement
import ProviderAPI
import PushModel
import Testing

@testable import GatewaySimulator

@Suite("Tallies of event loops")
struct TallyTests {
  /// Every counter has a number of its own.
  private static func tally(_ factor: Int) -> Tally {
    var tally = Tally()
    (tally.connections, tally.open, tally.handshakes, tally.resumed) = (factor, 2 * factor, 3 * factor, 4 * factor)
    (tally.handshakeFailures, tally.refused, tally.received) = (5 * factor, 6 * factor, 7 * factor)
    (tally.accepted, tally.discarded, tally.malformed) = (8 * factor, 9 * factor, 10 * factor)
    (tally.incomplete, tally.bytes, tally.errorResponsesIncomplete) = (11 * factor, 12 * factor, 13 * factor)
    (tally.offline, tally.uninstalled, tally.feedbackConnections) = (14 * factor, 15 * factor, 16 * factor)
    (tally.feedbackOpen, tally.feedbackHandshakeFailures) = (17 * factor, 18 * factor)
    (tally.feedbackCompleted, tally.tuplesSent, tally.feedbackLost) = (19 * factor, 20 * factor, 21 * factor)
    (tally.rejected, tally.errorResponses) = (
      [.status(BinaryStatus(rawValue: 8)): 22 * factor, .status(BinaryStatus(rawValue: 7)): 23 * factor],
      [.status(BinaryStatus(rawValue: 8)): 24 * factor]
    )
    tally.http2Connections = 25 * factor
    var served = ServedCounts()
    (served.received, served.accepted, served.discarded) = (26 * factor, 27 * factor, 28 * factor)
    (served.offline, served.incomplete, served.unanswered) = (29 * factor, 30 * factor, 31 * factor)
    (served.otherRequests, served.successes, served.goAways) = (32 * factor, 33 * factor, 34 * factor)
    (served.resetsSent, served.resetsReceived, served.pings) = (35 * factor, 36 * factor, 37 * factor)
    (served.rejected, served.answers) = ([.badTopic: 38 * factor], [400: 39 * factor])
    (served.violations, served.floods) = ([.connectionPreface: 40 * factor], [.pings: 41 * factor])
    (served.unknownAccepted, served.unknownRejected, served.unknownDiscarded) = (42 * factor, 43 * factor, 44 * factor)
    served.faults = ["delay": 45 * factor]
    (served.channels.created, served.channels.read) = (46 * factor, 47 * factor)
    (served.channels.deleted, served.channels.listed) = (48 * factor, 49 * factor)
    served.channels.rejected = [.badPath: 50 * factor]
    tally.served = served
    return tally
  }

  private static func numbers(_ counts: Any) -> [Int] {
    Mirror(reflecting: counts).children.flatMap { child -> [Int] in
      if let number = child.value as? Int { return [number] }
      if child.value is ServedCounts || child.value is ServedCounts.ChannelCounts { return numbers(child.value) }
      // Keys of one kind have numbers in any order.
      return (child.value as? [AnyHashable: Int])?.values.sorted() ?? []
    }
  }

  @Test("Every number is added")
  func sums() {
    #expect(Set(Self.numbers(Self.tally(1))) == Set(1...50) && Self.numbers(Self.tally(1)).count == 50)
    #expect(Self.numbers(Tally()).allSatisfy { $0 == 0 })
    var sum = Self.tally(1)
    sum += Self.tally(2)
    #expect(Self.numbers(sum) == Self.numbers(Self.tally(3)))
  }

  @Test("Counts of payloads are added where payloads are judged")
  func payloads() {
    var part = Tally()
    part.payloads = PayloadCounts(kinds: ["alert": 2], lint: ["aps_empty": 1])
    var sum = Tally()
    sum += Tally()
    #expect(sum.payloads == nil)
    for _ in 0..<3 { sum += part }
    sum += Tally()
    #expect(sum.payloads?.kinds == ["alert": 6] && sum.payloads?.lint == ["aps_empty": 3])
  }

  @Test("The ledger's figures are those of the tally, of both protocols together")
  func ledger() {
    let gateway = Self.tally(1).gateway
    #expect([gateway.connections, gateway.handshakes, gateway.resumed, gateway.handshakeFailures] == [1, 3, 4, 5])
    // 7 + 26, 8 + 27 and 9 + 28.
    #expect([gateway.refused, gateway.received, gateway.accepted, gateway.discarded] == [6, 33, 35, 37])
    #expect([gateway.binary.malformed, gateway.binary.incomplete, gateway.bytes] == [10, 11, 12])
    #expect(gateway.rejected == ["8": 22, "7": 23, "BadTopic": 38])
    #expect(gateway.binary.errorResponses == ["8": 24])
    #expect(gateway.binary.errorResponsesIncomplete == 13)
  }

  @Test("Connections are listed up to a limit, and counted beyond", arguments: [0, 1, 3])
  func list(maximum: Int) {
    let list = ConnectionList(maximum: maximum)
    var made = 0
    func connection() -> Ledger.Connection {
      made += 1
      return Ledger.Connection(client: "\(made)", topic: nil, opened: "", closed: "", end: .local)
    }
    for _ in 0..<3 { list.add(connection()) }
    #expect(list.all.connections.map(\.client) == Array(["1", "2", "3"].prefix(maximum)))
    #expect(list.all.omitted == 3 - maximum && made == maximum)
  }
}
