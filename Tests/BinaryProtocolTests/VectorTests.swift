import BinaryProtocol
import Bytes
import Foundation
import Testing

/// One line of `Vectors/vectors.jsonl`: bytes that real clients and servers wrote, and what stands in them.
struct Vector: Decodable, Sendable, CustomTestStringConvertible {
  struct Expectation: Decodable, Sendable {
    var notifications: [Notification]?
    var packets: [Packet]?
    var tuples: [Tuple]?
    var consumed: Int
    var trailing: Int
    var error: String?
    var mockGatewayAnswer: MockAnswer?
  }

  struct Notification: Decodable, Sendable {
    var command: UInt8
    var items: [[Int]]?
    var token: String
    var payloadHex: String
    var payloadIsJson: Bool
    var identifier: UInt32?
    var expiry: UInt32?
    var priority: UInt8?
    var offset: Int
    var length: Int
  }

  struct Packet: Decodable, Sendable {
    var offset: Int
    var command: UInt8
    var status: UInt8
    var identifier: UInt32
  }

  struct Tuple: Decodable, Sendable {
    var offset: Int
    var timestamp: UInt32
    var tokenLen: Int
    var token: String
  }

  struct MockAnswer: Decodable, Sendable {
    var hex: String
    var status: UInt8
    var identifier: UInt32
  }

  var id: String
  var stream: String
  var length: Int
  var hex: String
  var expect: Expectation

  var testDescription: String { id }
  var bytes: [UInt8] { Array(hex: hex) }
  var kind: RecordKind { RecordKind(rawValue: stream)! }

  /// Where each record stands, from the expectation alone.
  var places: [Range<Int>] {
    (expect.notifications ?? []).map { $0.offset..<$0.offset + $0.length }
      + (expect.packets ?? []).map { $0.offset..<$0.offset + 6 }
      + (expect.tuples ?? []).map { $0.offset..<$0.offset + 6 + $0.tokenLen }
  }

  static let all: [Vector] = {
    let file = Bundle.module.url(forResource: "vectors", withExtension: "jsonl", subdirectory: "Vectors")!
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let lines = try! String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    return lines.map { try! decoder.decode(Vector.self, from: Data($0.utf8)) }
  }()

  /// The payloads of all vectors that are JSON.
  static let jsonPayloads: [[UInt8]] = of(.notification).flatMap { $0.expect.notifications ?? [] }
    .filter(\.payloadIsJson).map { Array(hex: $0.payloadHex) }

  static func of(_ kind: RecordKind) -> [Vector] { all.filter { $0.kind == kind } }
}

@Suite("Vectors from clients and servers")
struct VectorTests {
  @Test("All vectors are read, of all three streams")
  func vectorsArePresent() {
    #expect(Vector.all.count == 52)
    for kind in RecordKind.allCases { #expect(!Vector.of(kind).isEmpty) }
    #expect(Vector.all.allSatisfy { $0.length == $0.bytes.count })
  }

  @Test("Notifications of the vectors are read as they say", arguments: Vector.of(.notification))
  func notifications(vector: Vector) throws {
    let bytes = vector.bytes
    let expected = try #require(vector.expect.notifications)
    let (records, consumed, _) = RecordKind.notification.parseAll(bytes)
    let found = records.compactMap(\.notification)
    #expect(consumed == vector.expect.consumed)
    #expect(bytes.count - consumed == vector.expect.trailing)
    try #require(found.count == expected.count)
    for (notification, expected) in zip(found, expected) {
      #expect(notification.frame == Array(bytes[expected.offset..<expected.offset + expected.length]))
      #expect(notification.command == expected.command)
      #expect(notification.identifier == expected.identifier)
      #expect(notification.expiration == expected.expiry)
      #expect(notification.priority == expected.priority)
      #expect(notification.token == Array(hex: expected.token))
      #expect(notification.payload == Array(hex: expected.payloadHex))
      #expect(notification.items.map { [Int($0.id.rawValue), $0.data.count] } == expected.items ?? [])
      #expect(notification.unknownItems.isEmpty && !notification.hasUnknownItems)
      let payload = notification.payload ?? []
      let verdict = JSONText.scan(payload.rawBytes)
      #expect((verdict != .invalid) == expected.payloadIsJson)
    }
  }

  @Test("What is no notification says why", arguments: Vector.of(.notification).filter { $0.expect.error != nil })
  func errors(vector: Vector) throws {
    let problem: ParseError.Problem
    switch try #require(vector.expect.error) {
    case "truncated": problem = .incomplete
    case "unknown command 7": problem = .unknownCommand(7)
    case "unknown command 102": problem = .unknownCommand(102)
    case "item overruns frame (id 0xaa, length 43690 at offset 40)":
      problem = .itemOverrun(item: 0xaa, length: 43_690)
    case let other:
      Issue.record("no problem is known for \(other)")
      return
    }
    let error = try #require(RecordKind.notification.parseAll(vector.bytes).error)
    #expect(error.problem == problem)
    if case .itemOverrun = problem { #expect(error.offset == 40) }
  }

  @Test("Error responses of the vectors are read as they say", arguments: Vector.of(.response))
  func responses(vector: Vector) throws {
    let expected = try #require(vector.expect.packets)
    let (records, consumed, _) = RecordKind.response.parseAll(vector.bytes)
    #expect(
      records
        == expected.map {
          .response(
            ErrorResponse(command: $0.command, status: .init(rawValue: $0.status), identifier: $0.identifier))
        })
    #expect(consumed == vector.expect.consumed)
    #expect(vector.length - consumed == vector.expect.trailing)
  }

  @Test("Feedback tuples of the vectors are read as they say", arguments: Vector.of(.feedback))
  func feedback(vector: Vector) throws {
    let expected = try #require(vector.expect.tuples)
    let (records, consumed, _) = RecordKind.feedback.parseAll(vector.bytes)
    #expect(records == expected.map { .feedback(timestamp: $0.timestamp, token: Array(hex: $0.token)) })
    #expect(expected.allSatisfy { $0.token.count == 2 * $0.tokenLen })
    #expect(consumed == vector.expect.consumed)
    #expect(vector.length - consumed == vector.expect.trailing)
  }

  @Test("A mock gateway's answers", arguments: Vector.all.filter { $0.expect.mockGatewayAnswer != nil })
  func mockAnswers(vector: Vector) throws {
    let expected = try #require(vector.expect.mockGatewayAnswer)
    let answer = ErrorResponse(status: .init(rawValue: expected.status), identifier: expected.identifier)
    #expect(try RecordKind.response.parse(whole: Array(hex: expected.hex)) == .response(answer))
    #expect(written { answer.encode(into: &$0) } == Array(hex: expected.hex))
  }

  @Test("Every record of a vector is written again byte for byte", arguments: Vector.all)
  func reencoding(vector: Vector) throws {
    for place in vector.places {
      let record = Array(vector.bytes[place])
      #expect(try vector.kind.reencode(record) == record)
    }
  }

  /// Only `encodeFramed(token:…)` chooses an item order itself: the usual one.
  @Test("The encoders write what the clients wrote", arguments: Vector.of(.notification))
  func encoding(vector: Vector) {
    for expected in vector.expect.notifications ?? [] {
      let (token, payload) = ([UInt8](hex: expected.token), [UInt8](hex: expected.payloadHex))
      if let items = expected.items, items.map({ $0[0] }) != items.map({ $0[0] }).sorted() { continue }
      let bytes = written { output in
        switch expected.command {
        case 0: BinaryFrame.encodeSimple(token: token.rawBytes, payload: payload.rawBytes, into: &output)
        case 1:
          BinaryFrame.encodeEnhanced(
            identifier: expected.identifier!, expiration: expected.expiry!, token: token.rawBytes,
            payload: payload.rawBytes, into: &output)
        default:
          BinaryFrame.encodeFramed(
            token: token.rawBytes, payload: payload.rawBytes, identifier: expected.identifier,
            expiration: expected.expiry, priority: expected.priority, into: &output)
        }
      }
      #expect(bytes == Array(vector.bytes[expected.offset..<expected.offset + expected.length]))
    }
  }
}
