import BinaryProtocol
import Bytes
import Dissection
import Foundation
import Records
import TestSupport
import Testing

@testable import GatewayRecords
@testable import GatewaySimulator

/// Records of what a gateway received: its own decisions, to the last notification.
@Suite("Records of a simulated gateway")
struct ObservedRecordsTests {
  /// Connections whose events alternate.
  private static func conversations(
    _ random: inout SeededGenerator, endings: [GatewayConversation.Ending] = GatewayConversation.Ending.allCases
  ) -> ([GatewayConversation], mixed: [ObservedEvent]) {
    let all = (1...random.number(1...6)).map { number in
      GatewayConversation(
        UInt64(number), frames: random.number(0...60), ending: random.pick(endings), &random)
    }
    var waiting = all.map { $0.events[...] }
    var mixed: [ObservedEvent] = []
    while let place = waiting.indices.filter({ !waiting[$0].isEmpty }).randomElement(using: &random) {
      mixed.append(waiting[place].removeFirst())
    }
    return (all, mixed)
  }

  private static func fates(_ records: [[String: Any]], of connection: Int) -> [String] {
    records.filter { $0["connection"] as? Int == connection }.map { $0["fate"] as? String ?? "none" }
  }

  @Test("Each notification is there once, in its order, with the gateway's decision", arguments: seeds(40, of: 400))
  func decisions(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let (all, mixed) = Self.conversations(&random)
    let written = WrittenRecords()
    var records = ObservedRecords(
      into: RecorderOutput(writer: written.writer()) { nil }, source: "test", options: DissectionOptions())
    for event in mixed { records.receive(.event(event)) }
    records.finish(observedUntil: .none, lost: 0)

    let notifications = try written.all("notification")
    // Connections are numbered in the order in which they opened.
    var numbers: [UInt64] = []
    for event in mixed { if case .opened = event.change { numbers.append(event.connection) } }
    for (place, number) in numbers.enumerated() {
      let conversation = all[Int(number) - 1]
      let own = notifications.filter { $0["connection"] as? Int == place + 1 }
      #expect(own.map { $0["token"] as? String ?? "" } == conversation.tokens)
      #expect(own.map { $0["index"] as? Int } == Array(0..<own.count))
      let fates = Self.fates(notifications, of: place + 1)
      let books = conversation.books
      #expect(fates.count { $0 == "accepted" } == books.accepted)
      #expect(Array(fates.prefix(books.accepted)) == Array(repeating: "accepted", count: books.accepted))
      let rejected = conversation.hasNoFrame ? 0 : books.rejected
      #expect(fates.count { $0 == "rejected" } == rejected)
      #expect(fates.dropFirst(books.accepted + rejected).allSatisfy { $0 == "discarded" })
      let connection = try #require(try written.all("connection").first { $0["connection"] as? Int == place + 1 })
      #expect(connection["accepted"] as? Int == books.accepted)
      #expect(connection["rejected"] as? Int == rejected)
      #expect(connection["unknown"] as? Int == 0)
    }
    #expect(try written.all("fate").isEmpty)
    #expect(notifications.allSatisfy { $0["packet"] == nil })
  }

  @Test("What is left out is a gap, counted, and changes no fate", arguments: seeds(40, of: 400))
  func leftOut(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let (all, mixed) = Self.conversations(&random, endings: [.peer, .rejection, .shutdown, .malformedItems])
    let queue = EventQueue(maximumBytes: random.number(1_000...8_000))
    let written = WrittenRecords()
    var records = ObservedRecords(
      into: RecorderOutput(writer: written.writer()) { nil }, source: "test", options: DissectionOptions())
    var items: [EventQueue.Item] = []
    func takeAll() {
      _ = queue.take(&items, within: .milliseconds(0))
      for item in items { records.receive(item) }
      queue.release(items)
    }
    for event in mixed {
      queue.receive(event)
      if random.happens(oneIn: 20) { takeAll() }
    }
    queue.end()
    takeAll()
    records.finish(observedUntil: .none, lost: 0)

    let notifications = try written.all("notification")
    let received = all.reduce(0) { $0 + $1.books.received }
    #expect(queue.counts.received == received)
    #expect(notifications.count + queue.counts.lost == received)
    // A connection's counts are those of its notifications' records.
    for connection in try written.all("connection") {
      let fates = Self.fates(notifications, of: connection["connection"] as? Int ?? 0)
      for fate in ["accepted", "rejected", "discarded", "unknown"] {
        #expect(connection[fate] as? Int == fates.count { $0 == fate }, "\(fate)")
      }
    }
    // A connection whose beginning is left out is not there at all.
    let isEachThere = try written.all("connection").count == all.count
    if isEachThere { #expect(try written.all("gap").isEmpty == (queue.counts.lost == 0)) }
    var fateOfToken: [String: String] = [:]
    for conversation in all {
      for (index, token) in conversation.tokens.enumerated() where !token.isEmpty {
        let books = conversation.books
        fateOfToken[token] =
          index < books.accepted ? "accepted" : index < books.accepted + books.rejected ? "rejected" : "discarded"
      }
    }
    for record in notifications {
      guard let token = record["token"] as? String else { continue }
      #expect(record["fate"] as? String == fateOfToken[token], "\(token)")
    }
  }
}
