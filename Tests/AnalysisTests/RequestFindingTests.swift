import Measurement
import PacketCapture
import ProviderAPI
import TLSDecryption
import Testing

@testable import Analysis
@testable import Records

/// Findings about providers over HTTP/2: each beside a recording that nearly has it, and beside one whose gap may hide
/// what would refute it.
@Suite("Findings over HTTP/2")
struct RequestFindingTests {
  private typealias Recording = RequestRecording<Inspection>
  private typealias Push = RequestPush

  /// How often a recording has a finding.
  private static func count(_ kind: FindingKind, _ make: (inout RequestRecording<Inspection>) -> Void) -> Int {
    var recording = RequestRecording(Inspection())
    make(&recording)
    recording.finish(at: 10_000)
    return recording.sink.finish().findings.first { $0.kind == kind }?.count ?? 0
  }

  /// How often one notification alone has a finding.
  private static func count(_ kind: FindingKind, _ push: RequestPush) -> Int {
    count(kind) {
      $0.send(push, on: 1, at: 1)
      $0.answer(0, on: 1, 200, at: 1.1)
      $0.end(1, at: 2)
    }
  }

  // MARK: fields

  @Test("A push type is missing only where its absence is certain")
  func pushTypeMissing() {
    #expect(Self.count(.pushTypeMissing, Push()) == 0)
    #expect(Self.count(.pushTypeMissing, Push(pushType: nil)) == 1)
    #expect(Self.count(.pushTypeMissing, Push(pushType: nil, uncertain: .pushType)) == 0)
  }

  @Test(
    "A push type is held against the payload",
    arguments: [
      ("alert", #"{"aps":{"alert":"a"}}"#, 0), ("alert", #"{"aps":{"content-available":1}}"#, 1),
      ("alert", #"{"aps":{"content-available":1,"alert":"a"}}"#, 0), ("alert", #"{"aps":{"badge":1}}"#, 0),
      ("background", #"{"aps":{"content-available":1}}"#, 0), ("background", #"{"aps":{"alert":"a"}}"#, 1),
      ("background", #"{"aps":{"content-available":1,"sound":"a"}}"#, 1), ("background", "no JSON", 0),
      ("voip", #"{"aps":{}}"#, 0), ("Background", #"{"aps":{"alert":"a"}}"#, 1),
    ])
  func mismatch(type: String, payload: String, expected: Int) {
    #expect(Self.count(.pushTypeMismatch, Push(pushType: type, priority: 5, payload: payload)) == expected)
    let uncertain = Push(pushType: type, priority: 5, payload: payload, uncertain: .payload)
    #expect(Self.count(.pushTypeMismatch, uncertain) == 0)
  }

  @Test("A background push has priority 5")
  func background() {
    let payload = #"{"aps":{"content-available":1}}"#
    func count(_ priority: UInt8?, _ uncertain: ProviderRequest.Uncertain = []) -> Int {
      Self.count(
        .backgroundPriority,
        Push(pushType: "background", priority: priority, payload: payload, uncertain: uncertain))
    }
    #expect(count(5) == 0 && count(1) == 0 && count(10) == 1)
    // None is 10.
    #expect(count(nil) == 1 && count(nil, .priority) == 0 && count(nil, .headers) == 0)
    #expect(Self.count(.backgroundPriority, Push()) == 0)
  }

  @Test(
    "A topic has the suffix of its push type, and by chance that of another",
    arguments: [
      ("voip", "com.example.tide.voip", 0), ("voip", "com.example.tide", 1), ("alert", "com.example.tide", 0),
      ("alert", "com.example.voip", 0), ("alert", "com.example.tide.push-type.liveactivity", 1),
      ("liveactivity", "com.example.tide.push-type.liveactivity", 0), ("complication", "com.example.tide.voip", 1),
      ("other", "com.example.tide.voip", 0), ("mdm", "com.apple.mgmt.External.1", 0),
    ])
  func suffix(type: String, topic: String, expected: Int) {
    #expect(Self.count(.topicSuffix, Push(topic: topic, pushType: type)) == expected)
    #expect(Self.count(.topicSuffix, Push(topic: nil, pushType: type, uncertain: .topic)) == 0)
  }

  @Test("A collapse identifier has 64 bytes at most", arguments: [(64, 0), (65, 1)])
  func collapse(length: Int, expected: Int) {
    #expect(
      Self.count(.collapseIDTooLong, Push(collapseID: String(repeating: "a", count: length))) == expected)
  }

  // MARK: provider tokens

  @Test("A provider token is old above 55 minutes", arguments: [(3_300, 0), (3_301, 1), (3_700, 1), (0, 0)])
  func old(age: Int, expected: Int) {
    #expect(Self.count(.providerTokenOld, Push(issued: (1, Recording.start + 1 - age))) == expected)
  }

  @Test("A provider token from the future is found from a minute on", arguments: [(59, 0), (60, 1), (-10, 0)])
  func future(seconds: Int, expected: Int) {
    #expect(Self.count(.providerTokenInFuture, Push(issued: (1, Recording.start + 1 + seconds))) == expected)
  }

  @Test(
    "A provider token is renewed too often below 20 minutes", arguments: [(1_199, 1), (1_200, 0), (0, 1), (-1_199, 1)])
  func renewed(apart: Int, expected: Int) {
    let found = Self.count(.providerTokenRenewedOften) {
      $0.send(Push(issued: (1, Recording.start - 5_000)), on: 1, at: 1)
      $0.send(Push(issued: (1, Recording.start - 5_000)), on: 1, at: 2)
      $0.send(Push(issued: (2, Recording.start - 5_000 + apart)), on: 1, at: 3)
      $0.send(Push(issued: (2, Recording.start - 5_000 + apart)), on: 1, at: 4)
      $0.end(1, at: 5)
    }
    #expect(found == expected)
  }

  @Test(
    "Connections with a provider token each are found from three on, of one provider",
    arguments: [
      ([0, 60, 120], 3), ([0, 60], 0), ([0, 0, 0], 0), ([0, 1_200, 2_400], 0), ([0, 0, 60, 120, 180], 3),
      ([0, 60, 9_000, 9_060], 4),
    ])
  func perConnection(issued: [Int], expected: Int) {
    let found = Self.count(.providerTokenPerConnection) {
      for (number, time) in issued.enumerated() {
        $0.send(Push(issued: (1, Recording.start - time)), on: number + 1, at: 1)
        $0.end(number + 1, at: 2)
      }
    }
    #expect(found == expected)
    let others = Self.count(.providerTokenPerConnection) {
      for (number, time) in issued.enumerated() {
        $0.send(Push(issued: (1, Recording.start - time)), on: number + 1, at: 1)
        $0.end(number + 1, at: 2, client: "10.0.1.\(number)")
      }
    }
    #expect(others == 0)
  }

  // MARK: answers

  @Test("A notification after 410 to its token and topic is found, until the token is accepted again")
  func afterUnregistered() {
    func count(_ push: Push, between: (inout RequestRecording<Inspection>) -> Void = { _ in }) -> Int {
      Self.count(.sentAfterUnregistered) {
        $0.send(on: 1, at: 1)
        // Written before the answer.
        $0.send(on: 1, at: 1.1)
        $0.answer(0, on: 1, 410, "Unregistered", at: 1.2)
        $0.answer(1, on: 1, 410, "Unregistered", at: 1.3)
        between(&$0)
        $0.send(push, on: 1, at: 5)
        $0.end(1, at: 9)
      }
    }
    #expect(count(Push()) == 1)
    #expect(count(Push(payload: "{}")) == 1)
    #expect(count(Push(topic: "com.example.other")) == 0)
    #expect(count(Push(token: [1, 2, 3])) == 0)
    #expect(count(Push(topic: nil, uncertain: .topic)) == 0)
    #expect(count(Push(token: nil, uncertain: .token)) == 0)
    // A gap may hide that it was accepted.
    #expect(count(Push()) { $0.gap(.server, on: 1, at: 2) } == 0)
    let again = Self.count(.sentAfterUnregistered) {
      $0.send(on: 1, at: 1)
      $0.answer(0, on: 1, 410, "Unregistered", at: 1.2)
      $0.send(on: 1, at: 2)
      $0.answer(1, on: 1, 200, at: 2.1)
      $0.send(on: 1, at: 3)
      $0.answer(2, on: 1, 200, at: 3.1)
      $0.end(1, at: 9)
    }
    #expect(again == 1)
  }

  @Test(
    "BadDeviceToken for most of a provider's notifications is found",
    arguments: [(3, 0, 0, 3), (2, 0, 0, 0), (4, 3, 0, 4), (4, 4, 0, 0), (4, 0, 4, 0)])
  func badTokens(bad: Int, accepted: Int, unknown: Int, expected: Int) {
    let found = Self.count(.badDeviceTokens) {
      for index in 0..<bad + accepted + unknown {
        $0.send(Push(token: [UInt8(index), 1]), on: 1, at: Double(index))
        if index < bad {
          $0.answer(index, on: 1, 400, "BadDeviceToken", at: Double(index) + 0.1)
        } else if index < bad + accepted {
          $0.answer(index, on: 1, 200, at: Double(index) + 0.1)
        }
      }
      $0.end(1, at: 99)
    }
    #expect(found == expected)
  }

  @Test(
    "The same notification within a second of 429 or 5xx is found",
    arguments: [(429, 0.999, 1), (429, 1.0, 0), (503, 0.5, 1), (500, 0, 1), (403, 0.5, 0), (200, 0.5, 0)])
  func storm(status: Int, after: Double, expected: Int) {
    func count(_ push: Push) -> Int {
      Self.count(.retryStorm) {
        $0.send(on: 1, at: 1)
        $0.answer(0, on: 1, status, at: 2)
        $0.send(push, on: 2, at: 2 + after)
        $0.end(1, at: 9)
        $0.end(2, at: 9)
      }
    }
    #expect(count(Push()) == expected)
    #expect(count(Push(payload: "{}")) == 0 && count(Push(topic: nil, uncertain: .topic)) == 0)
  }

  @Test("TooManyRequests is of the token, TooManyProviderTokenUpdates is not")
  func tooMany() {
    for (reason, expected) in [("TooManyRequests", 1), ("TooManyProviderTokenUpdates", 0)] {
      let found = Self.count(.tooManyRequests) {
        $0.send(on: 1, at: 1)
        $0.answer(0, on: 1, 429, reason, at: 2)
        $0.end(1, at: 9)
      }
      #expect(found == expected)
    }
  }

  // MARK: connections

  @Test("GOAWAY is found with its reasons")
  func goAway() throws {
    var recording = RequestRecording(Inspection())
    recording.send(on: 1, at: 1)
    recording.answer(0, on: 1, 200, at: 1.1)
    recording.goAway(1, on: 1, at: 2, reason: "Shutdown")
    recording.end(1, at: 3)
    recording.finish(at: 9)
    let report = recording.sink.finish()
    #expect(report.findings.map(\.text).contains("1 GOAWAY from the gateway: 1 Shutdown"))
    #expect(report.http2?.goaways.map(\.name) == ["Shutdown"])
  }

  @Test(
    "A notification begun a second after a GOAWAY that excludes it is found",
    arguments: [(1, 1.0, 1), (1, 0.999, 0), (3, 5.0, 0), (0x7fff_ffff, 5.0, 0)])
  func afterGoAway(lastStream: Int, after: Double, expected: Int) {
    let found = Self.count(.writtenAfterGoAway) {
      $0.send(on: 1, at: 1)
      $0.goAway(lastStream, on: 1, at: 2)
      $0.send(on: 1, at: 2 + after)
      $0.end(1, at: 99)
    }
    #expect(found == expected)
  }

  @Test("More open streams than allowed are found, where nothing is missing that may have closed some")
  func limit() {
    func count(_ open: Int, _ limit: Int?, change: @escaping (inout RequestRecording<Inspection>) -> Void = { _ in })
      -> Int
    {
      Self.count(.streamLimitExceeded) {
        $0.send(Push(openStreams: open, streamLimit: limit), on: 1, at: 1)
        change(&$0)
        $0.end(1, at: 9)
      }
    }
    #expect(count(2, 1) == 1 && count(1, 1) == 0 && count(2, nil) == 0)
    // A gap that is noticed later may be before.
    #expect(count(2, 1) { $0.gap(.server, on: 1, at: 3) } == 0)
    let missing = Self.count(.streamLimitExceeded) {
      $0.send(Push(openStreams: 2, streamLimit: 1), on: 1, at: 1)
      $0.end(1, at: 9) { $0.missingBytes = 1 }
    }
    #expect(missing == 0)
  }

  @Test(
    "Unused streams: twenty notifications one at a time, most of the time waited for",
    arguments: [
      (20, 0.51, 100, 1, 1), (19, 0.51, 100, 1, 0), (20, 0.49, 100, 1, 0), (20, 0.51, 99, 1, 0), (20, 0.51, 100, 2, 0),
    ])
  func unused(count: Int, waited: Double, limit: Int, most: Int, expected: Int) {
    func find(_ change: @escaping (inout RequestRecording<Inspection>) -> Void = { _ in }) -> Int {
      Self.count(.streamsUnused) {
        for index in 0..<count {
          let open = index == 7 ? most : 1
          $0.send(Push(openStreams: open, streamLimit: limit), on: 1, at: Double(index))
          // The last answer ends the time, so it waits for all of its second.
          let latency = index == count - 1 ? 1 : (waited * Double(count) - 1) / Double(count - 1)
          $0.answer(index, on: 1, 200, at: Double(index) + latency, latency: latency)
        }
        change(&$0)
        $0.end(1, at: 1_000)
      }
    }
    #expect(find() == expected)
    #expect(find { $0.gap(.client, on: 1, at: 900) } == 0)
  }

  @Test(
    "Silence after a pause is found after ten seconds, on a connection that the gateway did not end",
    arguments: [
      (60.0, 10.0, 2), (59.9, 10.0, 0), (60.0, 9.9, 0),
    ])
  func silence(pause: Double, wait: Double, expected: Int) {
    func count(
      _ end: ConnectionRecord.End, closed: Bool = true, answersPing: Double? = nil,
      change: @escaping (inout RequestRecording<Inspection>) -> Void = { _ in }
    ) -> Int {
      var recording = RequestRecording(Inspection())
      recording.send(on: 1, at: 1)
      recording.answer(0, on: 1, 200, at: 1)
      recording.send(on: 1, at: 1 + pause)
      recording.send(on: 1, at: 1 + pause)
      change(&recording)
      recording.end(1, at: closed ? 1 + pause + wait : nil, end) {
        if let answersPing { $0.http2?.pings.lastAnswer = RequestRecording<Inspection>.time(answersPing) }
      }
      recording.finish(at: 1 + pause + wait)
      return recording.sink.finish().findings.first { $0.kind == .silentAfterIdle }?.count ?? 0
    }
    #expect(count(.clientFIN) == expected && count(.captureEnd, closed: false) == expected)
    #expect(count(.serverRST) == 0)
    #expect(count(.clientFIN) { $0.gap(.server, on: 1, at: 50) } == 0)
    #expect(count(.clientFIN) { $0.goAway(99, on: 1, at: 1 + pause) } == 0)
    // A PING that is answered after the pause shows that the connection is not dead.
    #expect(count(.clientFIN, answersPing: 1 + pause) == 0 && count(.clientFIN, answersPing: 1) == expected)
  }

  @Test("PRIORITY frames are found")
  func priority() {
    func count(_ frames: Int) -> Int {
      Self.count(.prioritySent) {
        $0.send(on: 1, at: 1)
        $0.end(1, at: 2) { $0.http2?.priorityFrames = frames }
      }
    }
    #expect(count(3) == 3 && count(0) == 0)
  }

  @Test(
    "Provider tokens in full are found from 20 notifications on, all with one, if they are most of the header bytes",
    arguments: [(20, 20, 41, 20), (19, 19, 41, 0), (20, 20, 34, 0), (20, 20, 35, 20), (20, 19, 60, 0)])
  func literalTokens(notifications: Int, literal: Int, bytes: Int, expected: Int) {
    // Each notification has 68 bytes beside its payload.
    let found = Self.count(.providerTokenNotIndexed) {
      for number in 0..<notifications { $0.send(on: 1, at: Double(number)) }
      $0.end(1, at: 90) {
        $0.http2?.literalTokens = literal
        $0.http2?.literalTokenBytes = bytes * notifications
      }
    }
    #expect(found == expected)
  }

  @Test("TLS 1.2 without ALPN is found where the handshake shows it")
  func alpn() {
    func count(_ change: @escaping (inout TLSSummary, inout ConnectionRecord) -> Void) -> Int {
      Self.count(.tls12WithoutALPN) {
        $0.send(on: 1, at: 1)
        $0.end(1, at: 9) {
          var tls = TLSSummary()
          (tls.version, tls.suite) = (.tls12, CipherSuite(code: 0xc02f))
          change(&tls, &$0)
          $0.tls = tls
        }
      }
    }
    #expect(count { _, _ in } == 1)
    #expect(count { tls, _ in tls.chosenProtocol = "h2" } == 0)
    #expect(count { tls, _ in tls.version = .tls13 } == 0)
    #expect(count { _, record in record.notCaptured.start = true } == 0)
  }

  @Test("A connection for each push is found where all of it was captured")
  func connectionPerPush() {
    func count(_ connections: Int, missing: Int = 0) -> Int {
      Self.count(.oneNotificationConnections) {
        for number in 1...connections {
          $0.send(on: number, at: 1)
          $0.end(number, at: 2) { $0.missingBytes = missing }
        }
      }
    }
    #expect(count(10) == 10 && count(9) == 0 && count(10, missing: 1) == 0)
  }
}
