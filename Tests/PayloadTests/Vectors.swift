import Bytes
import Foundation
import Payload
import Testing

/// One line of `Vectors/payload-rules.jsonl`: a payload, its environment, and what is to be said about it.
struct RuleVector: Decodable, Sendable, CustomTestStringConvertible {
  var id: String
  var payloadBase64: String
  var command: UInt8?
  var priority: UInt8?
  var expirationOffsetS: Int64?
  var expiration: UInt32?
  var topic: String?
  var era: Int?
  var tokenHex: String?
  var strings: [String: String]?
  var sentOffsetsS: [Int64]?
  var codes: [String]
  var kind: String

  // Not by a strategy for all keys, or those of the strings would be changed, too.
  enum CodingKeys: String, CodingKey {
    case id, command, priority, expiration, topic, era, strings, codes, kind
    case payloadBase64 = "payload_base64"
    case expirationOffsetS = "expiration_offset_s"
    case tokenHex = "token_hex"
    case sentOffsetsS = "sent_offsets_s"
  }

  var testDescription: String { id }
  var payload: [UInt8] { Array(Data(base64Encoded: payloadBase64) ?? Data()) }

  /// 1 July of the era, or 1 October 2015 without one, 00:00 UTC.
  var sentAt: Int64 {
    guard let era else { return 1_443_657_600 }
    let leapDays = (era - 1969) / 4
    let isLeapYear = era % 4 == 0
    return Int64((era - 1970) * 365 + leapDays + (isLeapYear ? 182 : 181)) * 86_400
  }

  var environment: PayloadEnvironment {
    let frame = command.map { command in
      PushFrame(
        command: command, priority: priority,
        expiration: expiration ?? expirationOffsetS.map { UInt32(sentAt + $0) }, sentAt: sentAt,
        token: tokenHex.map(bytes(hex:)))
    }
    return PayloadEnvironment(era: era, topic: PayloadTopic(name: topic), frame: frame, strings: strings)
  }

  static let all: [RuleVector] = lines(of: "payload-rules")
}

/// One line of `Vectors/payload-render.jsonl`: a payload, a device, and what its user sees.
struct RenderVector: Decodable, Sendable, CustomTestStringConvertible {
  struct Category: Decodable, Sendable {
    struct Action: Decodable, Sendable {
      var id: String
      var title: String
    }
    var actions: [Action]
    var minimal: [String]?
  }

  struct Expectation: Decodable, Sendable {
    struct Buttons: Decodable, Sendable {
      var dialog: [String]
      var options: [String]
      var compact: [String]
    }
    var title: String?
    var subtitle: String?
    var body: String?
    var buttons: Buttons
    var badge: Int?
    var sound: String?
    var background: Bool
    var mutable: Bool
    var notes: [String]
  }

  var id: String
  var payload: String
  var ios: Int
  var language: String
  var strings: [String: String]
  var categories: [String: Category]
  var expect: Expectation

  var testDescription: String { id }

  var resources: AppResources {
    AppResources(
      strings: [language: strings],
      categories: categories.mapValues { category in
        NotificationCategory(
          actions: category.actions.map { .init(id: $0.id, title: $0.title) }, minimal: category.minimal)
      })
  }

  static let all: [RenderVector] = lines(of: "payload-render")
}

/// A line that cannot be read, or a file that is missing, is an issue of the test that reads it.
private func lines<Line: Decodable>(of name: String) -> [Line] {
  do {
    let file = try #require(Bundle.module.url(forResource: name, withExtension: "jsonl", subdirectory: "Vectors"))
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map {
      try JSONDecoder().decode(Line.self, from: Data($0.utf8))
    }
  } catch {
    Issue.record(error, "\(name).jsonl")
    return []
  }
}

private func bytes(hex: String) -> [UInt8] {
  let digits = hex.compactMap(\.hexDigitValue)
  return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

/// What the judge says about a text, with its places.
func judged(_ text: String, in environment: PayloadEnvironment = PayloadEnvironment()) -> PayloadJudgement {
  judged(Array(text.utf8), in: environment)
}

func judged(_ payload: [UInt8], in environment: PayloadEnvironment = PayloadEnvironment()) -> PayloadJudgement {
  var judge = PayloadJudge()
  return judge.judge(payload.rawBytes, in: environment, findsPlaces: true)
}
