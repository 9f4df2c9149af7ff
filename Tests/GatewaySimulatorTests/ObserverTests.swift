import BinaryProtocol
import NIOCore
import Synchronization
import Testing

@testable import GatewaySimulator

/// Keeps what an observer is told.
final class KeptEvents: Sendable {
  private let kept = Mutex<[ObservedEvent]>([])
  var events: [ObservedEvent] { kept.withLock { $0 } }
  var observer: ConnectionObserver { { [self] in receive($0) } }
  private func receive(_ event: ObservedEvent) { kept.withLock { $0.append(event) } }

  /// The bytes and decisions of the client's frames.
  var received: [(bytes: [UInt8], decision: ObservedEvent.Decision)] {
    events.compactMap {
      if case .received(let bytes, let decision) = $0.change { (Array(buffer: bytes), decision) } else { nil }
    }
  }
  var receivedBytes: [UInt8] { received.flatMap(\.bytes) }
}

/// What a connection's observer is told: all bytes of both ends, with the gateway's decisions.
@Suite("Observer", .waiting)
struct ObserverTests {
  @Test("It is told all bytes, one decision on each frame, and how the connection ended", arguments: [false, true])
  func connection(tls: Bool) async throws {
    let observer = KeptEvents()
    let cut = Array(frame(9).prefix(20))
    let sent = try await Simulation.run(tls: tls, observer: observer) { simulation in
      let client = try simulation.client()
      var sent = frames(1...3)
      try client.send(sent)
      let isAccepted = await simulation.wait { $0.gateway.accepted == 3 }
      #expect(isAccepted)
      let bad = frame(4, token: []) + frame(5)
      try client.send(bad)
      #expect(try client.receive() == response(.missingDeviceToken, 4))
      // Discarded bytes are frames no longer: each is told as it comes.
      try client.send([7])
      sent += bad + [7]
      let isTold = await simulation.wait { _ in observer.receivedBytes.count == sent.count }
      #expect(isTold)
      client.close()
      return sent
    }.result
    let other = try await Simulation.run(tls: tls, observer: observer) { simulation in
      let client = try simulation.client()
      try client.send(frame(1) + cut)
      _ = await simulation.wait { $0.gateway.accepted == 1 }
      client.close()
      return frame(1) + cut
    }.result

    #expect(observer.receivedBytes == sent + other)
    let decisions = observer.received.map(\.decision)
    #expect(decisions.reduce(0) { $0 + $1.received } == 6)
    #expect(decisions.reduce(0) { $0 + $1.accepted } == 4)
    #expect(decisions.count { $0.rejects } == 1)
    // After the rejection all is discarded, and before it nothing is.
    let first = decisions.prefix { !$0.discardsRest }
    #expect(first.reduce(0) { $0 + $1.accepted } == 3 && first.allSatisfy { !$0.rejects })
    let rest = decisions.dropFirst(first.count).prefix { $0.discardsRest }
    #expect(rest.first?.rejects == true && rest.allSatisfy { $0.acceptedInAll == 3 })
    #expect(first.count + rest.count < decisions.count && decisions.last?.discardsRest == false)

    var kinds: [String] = []
    for event in observer.events {
      switch event.change {
      case .opened(let opening):
        #expect(opening.service == .gateway && (opening.tls != nil) == tls && opening.client.hasPrefix("127.0.0.1:"))
        kinds.append("opened")
      case .received: if kinds.last != "received" { kinds.append("received") }
      case .sent(let bytes):
        #expect(Array(buffer: bytes) == response(.missingDeviceToken, 4))
        kinds.append("sent")
      case .closing(let byPeer, let isReset):
        #expect(!isReset)
        kinds.append(byPeer ? "closing by peer" : "closing")
      case .closed(let decision):
        #expect(decision.received == 0 && !decision.rejects)
        kinds.append("closed")
      case .devices: Issue.record("no device is offline")
      }
    }
    let connections = kinds.split(separator: "opened", omittingEmptySubsequences: false).dropFirst().map(Array.init)
    #expect(connections.count == 2 && kinds.first == "opened")
    for connection in connections {
      #expect(connection.first == "received" && connection.last == "closed", "\(connection)")
    }
    #expect(connections.first?.contains("sent") == true && connections.last?.contains("sent") == false)
    #expect(connections.last?.contains("closing by peer") == true, "\(connections)")
  }

  @Test("With TLS it is told record by record, with what a record ends of an earlier one") func records() async throws {
    let observer = KeptEvents()
    _ = try await Simulation.run(tls: true, observer: observer) { simulation in
      let client = try simulation.client()
      // Each send is a record; several of them arrive in one segment or read.
      let long = frames(1...40)
      for records in [long, frame(41), frame(42) + frame(43)] { try client.send(records) }
      let (begin, rest) = (Array(frame(44).prefix(50)), Array(frame(44).dropFirst(50)))
      try client.send(frame(45) + begin)
      try client.send(rest + frames(46...47))
      await simulation.wait { $0.gateway.accepted == 47 }
      client.close()
    }
    #expect(observer.received.map(\.decision.received) == [40, 1, 2, 1, 3])
    #expect(observer.received.map(\.decision.accepted) == [40, 1, 2, 1, 3])
    #expect(observer.received.map(\.decision.acceptedInAll) == [40, 41, 43, 44, 47])
  }
}
