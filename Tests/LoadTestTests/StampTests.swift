import Bytes
import Foundation
import GatewaySimulator
import Measurement
import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import LoadTest

/// The times in payloads, over real sockets: a device can rely on them.
@Suite("Stamps of notifications", .waiting)
struct StampTests {
  private static let template =
    #"{"aps":{"alert":"{random:30}"},"n":{index},"apnscope":{"due_ns":{due_ns},"written_ns":{written_ns},"campaign":"c"}}"#

  /// A sending, as the gateway read it.
  private struct Sending {
    var number: UInt64
    /// UNIX nanoseconds before and after which it was read for sure: of the event.
    var read: Int64
    var stamp: PushStamp
    /// The payload is JSON.
    var isJSON: Bool
  }

  private final class Sendings: Sendable {
    private let kept = Mutex<[(time: Int64, bytes: [UInt8])]>([])
    var observer: ConnectionObserver {
      { [self] event in
        guard case .received(let bytes, _) = event.change else { return }
        let time = WallClock.system.nanoseconds()
        kept.withLock { $0.append((time, Array(buffer: bytes))) }
      }
    }

    func all() throws -> [Sending] {
      var object = JSONObject()
      return try kept.withLock { $0 }.flatMap { time, bytes in
        try ReadNotification.all(in: bytes).filter { $0.identifier != BinarySending.markerIdentifier }.map {
          let stamp = try #require(PushStamp(of: $0.payload.rawBytes, &object))
          let isJSON = object.read($0.payload.rawBytes)
          return Sending(number: UInt64($0.identifier ?? 0) - 1, read: time, stamp: stamp, isJSON: isJSON)
        }
      }
    }
  }

  private func run(
    _ change: (inout LoadPlan) -> Void, rejects: Bool = false
  ) async throws -> (sendings: [Sending], outcome: LoadOutcome, began: Int64) {
    let sendings = Sendings()
    let simulation = try await LoadSimulation(isListening: false) {
      if rejects { $0.behavior.rejections = [.init(.every(100))] }
    }
    simulation.observer = sendings.observer
    try await simulation.start()
    let plan = simulation.plan {
      $0.workload.payload = .template(Self.template)
      change(&$0)
    }
    let began = WallClock.system.nanoseconds()
    let outcome = try await simulation.runner(plan).run()
    expectBalance(outcome, await simulation.books())
    return (try sendings.all(), outcome, began)
  }

  @Test("A notification was due, then written, then read; what is sent again was due when it was due first")
  func resends() async throws {
    let rate = 2_000.0
    let (sendings, outcome, began) = try await run(
      {
        $0.pace = .scheduled(.constant(rate), isPoisson: false)
        $0.connections.count = 2
      }, rejects: true)
    #expect(outcome.books.sendings.resent > 0 && Set(sendings.map(\.number)).count == 2_000)
    let dues = Dictionary(grouping: sendings, by: \.number).mapValues { Set($0.map(\.stamp.due)) }
    #expect(dues.values.allSatisfy { $0.count == 1 })
    let first = try #require(dues[0]?.first ?? nil)
    #expect(first >= began)
    for sending in sendings {
      let (due, written) = (try #require(sending.stamp.due), try #require(sending.stamp.written))
      #expect(abs(Double(due - first) - Double(sending.number) / rate * 1e9) < 100)
      #expect(due <= written && written <= sending.read && sending.isJSON)
      #expect(sending.stamp.campaign == "c")
    }
    let written = Dictionary(grouping: sendings, by: \.number).values.map { $0.compactMap(\.stamp.written) }
    #expect(written.allSatisfy { Set($0).count == $0.count })
  }

  @Test("Of arrivals by chance the times of what is sent again are not known, and not made up")
  func chance() async throws {
    let (sendings, outcome, _) = try await run(
      {
        $0.pace = .scheduled(.constant(2_000), isPoisson: true)
        $0.connections.count = 2
      }, rejects: true)
    #expect(outcome.books.sendings.resent > 0)
    let all = Dictionary(grouping: sendings, by: \.number).values
    #expect(all.allSatisfy { $0.count { $0.stamp.due != nil } <= 1 } && sendings.allSatisfy(\.isJSON))
    #expect(sendings.contains { $0.stamp.due == nil } && sendings.allSatisfy { $0.stamp.written != nil })
    let first = all.compactMap { $0.compactMap(\.stamp.due).first }.sorted()
    #expect(Set(first).count > first.count / 2)
  }

  @Test("Without a pace a notification is due when a connection has room")
  func noPace() async throws {
    let (sendings, _, began) = try await run({ $0.count = 500 })
    #expect(sendings.count == 500)
    for sending in sendings {
      let (due, written) = (try #require(sending.stamp.due), try #require(sending.stamp.written))
      #expect(began <= due && due <= written && written <= sending.read)
    }
  }

  @Test("Only placeholders are replaced, wherever they are", arguments: seeds(20, of: 200))
  func placeholders(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var output = ByteWriter()
    var expected = ""
    let (due, written) = (Int64(generator.number(1...Int.max / 8)), Int64(generator.number(1...Int.max / 8)))
    func padded(_ time: Int64) -> String { String(repeating: "0", count: 19 - "\(time)".count) + "\(time)" }
    for _ in 0..<generator.number(1...20) {
      let pieces: [(String, String)] = [
        (StampTime.due.placeholder, padded(due)), (StampTime.written.placeholder, padded(written)), ("1", "1"),
        ("100000000000000000", "100000000000000000"), ("x", "x"), ("0", "0"),
        ("1000000000000000003", "1000000000000000003"),
      ]
      let (text, stamped) = pieces[generator.number(0...pieces.count - 1)]
      // Placeholders that run into each other are none.
      output.write(text: "\(text),")
      expected += stamped + ","
    }
    let count = output.count
    output.write(text: "1000000000000000001")
    output.stamp(0..<count, due: due, written: written)
    #expect(String(decoding: Array(copying: output.bytes), as: UTF8.self) == expected + "1000000000000000001")
  }
}
