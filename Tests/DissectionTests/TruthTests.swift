import BinaryProtocol
import FoundationEssentials
import PacketCapture
import Testing

@testable import Dissection
@testable import Records

/// What was on the wire, written down by who made the recordings and not by this program.
struct Truth: Codable, Sendable, CustomTestStringConvertible {
  struct Notification: Codable, Sendable {
    var index, offset, length: Int
    var command: UInt8
    var identifier: UInt32?
    var expiration: UInt32?
    var priority: UInt8?
    var token: String
    var payload: String

    var seen: SeenNotification {
      SeenNotification(
        index: index, offset: offset, length: length, command: command, identifier: identifier,
        expiration: expiration, priority: priority, token: bytes(hex: token), payload: Array(payload.utf8))
    }
  }

  struct Response: Codable, Sendable, Equatable {
    var offset: Int
    var command, status: UInt8
    var identifier: UInt32
  }

  struct Tuple: Codable, Sendable {
    var offset: Int
    var timestamp: UInt32
    var token: String
  }

  struct TLS: Codable, Sendable {
    var version, cipherSuite: String
    /// The key log beside the trace has its secrets; without them nothing of it can be seen.
    var decrypted: Bool
  }

  struct Connection: Codable, Sendable {
    var tls: TLS?
    var clientPort, clientBytes, serverBytes: Int
    /// Bytes of the client's stream that are not in the file; that are no record; that end one from before the capture.
    var missing, garbage, beforeCapture: [[Int]]
    var errorResponses: [Response]
    var notifications: [Notification]
    var feedback: [Tuple]
  }

  var testDescription: String { origin }
  var origin: String
  var traces: [String]
  var connections: [Connection]

  static let all: [Truth] = Folder.names(in: Folder.tests.appending(path: "Truth"), ending: ".json").map { name in
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    // A file that cannot be read fails the run: there is nothing to test without it.
    let data = try! Data(contentsOf: Folder.tests.appending(path: "Truth/\(name)"))
    return try! decoder.decode(Truth.self, from: data)
  }
}

@Suite("Truth")
struct TruthTests {
  static let cases = Truth.all.flatMap { truth in truth.traces.map { (truth: truth, trace: $0) } }

  @Test("There is truth for 21 recordings") func there() { #expect(Self.cases.count == 21) }

  @Test("A recording decodes to what was on the wire", arguments: cases)
  func compare(truth: Truth, trace: String) throws {
    let seen = try dissect(Folder.traces.appending(path: trace).path)
    #expect(seen.connections.count == truth.connections.count)
    for (number, expected) in truth.connections.enumerated() {
      let number = number + 1
      let record = try #require(seen.connections.first { $0.connection == number })
      #expect(record.client.map { Int($0.port) } ?? expected.clientPort == expected.clientPort)
      #expect(record.tls?.version?.description == expected.tls?.version)
      #expect(record.tls?.suite?.name == expected.tls?.cipherSuite)
      #expect(record.tls?.isDecrypted == expected.tls?.decrypted)
      if expected.tls?.decrypted != false {
        #expect(record.clientBytes == expected.clientBytes)
        #expect(record.serverBytes == expected.serverBytes)
      }
      let missing = expected.missing.map { $0[1] - $0[0] }.reduce(0, +)
      #expect(record.missingBytes == missing)

      let notifications = seen.notifications.filter { $0.connection == number }
      #expect(notifications.count == expected.notifications.count)
      for (decoded, sent) in zip(notifications, expected.notifications) {
        var decoded = decoded.content
        decoded.connection = 1
        #expect(decoded == sent.seen)
      }
      let responses = seen.responses.filter { $0.place.connection == number }.map {
        Truth.Response(
          offset: $0.place.offset, command: $0.response.command, status: $0.response.status.rawValue,
          identifier: $0.response.identifier)
      }
      #expect(responses == expected.errorResponses)
      let tuples = seen.tuples.filter { $0.connection == number }
      #expect(tuples.map(\.offset) == expected.feedback.map(\.offset))
      #expect(tuples.map(\.timestamp) == expected.feedback.map(\.timestamp))
      #expect(tuples.map(\.token) == expected.feedback.map { bytes(hex: $0.token) })

      let gaps = seen.gaps.filter { $0.place.connection == number }
      func ranges(_ reason: GapRecord.Reason) -> [[Int]] {
        gaps.filter { $0.reason == reason }.map { [$0.place.offset, $0.place.offset + $0.place.length] }
      }
      #expect(ranges(.truncated) == expected.missing)
      #expect(ranges(.beforeCapture) == expected.beforeCapture)
      #expect(gaps.count == expected.missing.count + expected.beforeCapture.count)
      // Where bytes are missing, the rest of their records is malformed; only garbage is so without that.
      if expected.missing.isEmpty {
        let malformed = seen.malformed.filter { $0.place.connection == number }
        #expect(malformed.map { [$0.place.offset, $0.place.offset + $0.place.length] } == expected.garbage)
      }
    }
  }

  /// Fates follow from the protocol's rule: the response names identifier 8, the eighth of 34.
  @Test(
    "An error response names, accepts and discards",
    arguments: ["plain-error.pcap", "plain-error.pcapng", "tiny-segments.pcap.gz", "shuffled-duplicated.pcap"])
  func fates(trace: String) throws {
    let seen = try dissect(Folder.traces.appending(path: trace).path)
    let response = try #require(seen.responses.first)
    #expect((response.notification, response.accepted, response.discarded) == (7, 7, 26))
    let first = try #require(seen.connections.first { $0.connection == 1 })
    #expect((first.fates.accepted, first.fates.rejected, first.fates.discarded, first.fates.unknown) == (7, 1, 26, 0))
    #expect(first.end == .serverFIN)
    let second = try #require(seen.connections.first { $0.connection == 2 })
    #expect(second.fates.unknown == 32)
    #expect(second.end == .clientFIN)
  }
}

func bytes(hex: String) -> [UInt8] {
  let digits = Array(hex.utf8)
  return stride(from: 0, to: digits.count, by: 2).map { place in
    UInt8(String(decoding: digits[place..<place + 2], as: UTF8.self), radix: 16)!
  }
}
