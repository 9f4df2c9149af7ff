import BinaryProtocol
import Bytes
import Payload
import PushModel
import Testing

@testable import GatewaySimulator

@Suite("Payloads that a gateway counts")
struct PayloadTallyTests {
  /// 1 October 2015, 00:00 UTC, in seconds.
  private static let now: Int64 = 1_443_657_600
  private static let background = #"{"aps":{"content-available":1}}"#
  private static let trailingComma = #"{"aps":{"alert":"Ciao",}}"#

  private func tally(refusing status: ErrorResponse.Status? = nil, kept: Int = 100) -> PayloadTally {
    var scrutiny = PayloadScrutiny()
    (scrutiny.era, scrutiny.refusal, scrutiny.maximumKept) = (2015, status.map(Rejection.status), kept)
    return PayloadTally(scrutiny)
  }

  private func refusal(
    of payload: String, expiration: Int64? = nil, in tally: PayloadTally
  ) throws -> ErrorResponse.Status? {
    let bytes = frame(1, payload: payload, expiration: expiration.map { UInt32($0) })
    var offset = 0
    return tally.refusal(
      of: try Push(parsing: bytes.rawBytes, at: &offset), topic: .app, now: Self.now * 1_000 + 999)?.status
  }

  @Test("Each notification counts with its kind and the rules that it breaks", arguments: [1, 100])
  func counts(kept: Int) throws {
    let tally = tally(kept: kept)
    for _ in 0..<3 { #expect(try refusal(of: #"{"aps":{"alert":"Ciao"}}"#, in: tally) == nil) }
    for _ in 0..<4 { #expect(try refusal(of: Self.background, in: tally) == nil) }
    for _ in 0..<2 { #expect(try refusal(of: Self.trailingComma, in: tally) == nil) }
    #expect(try refusal(of: Self.background, in: tally) == nil)
    let counts = tally.counts
    #expect(counts.kinds == ["alert": 3, "background": 5, "invalid": 2])
    // Without a priority, the frame's is 10.
    #expect(counts.lint == ["json_trailing_comma": 2, "silent_priority_implied": 5])
    #expect(counts.ledger.kinds == counts.kinds && counts.ledger.lint == counts.lint)
  }

  @Test("Payloads of a few templates are counted as if each was judged", arguments: [1, 100])
  func templates(kept: Int) throws {
    let templates = [
      #"{"aps":{"alert":{"title":"Gate","body":"§"},"badge":§}}"#, #"{"aps":{"content-available":1},"id":"§"}"#,
      #"{"aps":{"alert":"§","sound":"beep.mp3"}}"#, #"{"aps":{"badge":-1,"x":"§"},"n":§}"#, #"{"aps":{"alert":"§",}}"#,
    ]
    let tally = tally(refusing: .processingError, kept: kept)
    var judge = PayloadJudge()
    var expected = PayloadCounts()
    for number in 0..<2_000 {
      let template = templates[number % 7 % templates.count]
      let payload = template.split(separator: "§", omittingEmptySubsequences: false).joined(separator: "\(number)")
      let judgement = judge.judge(
        Array(payload.utf8).rawBytes,
        in: PayloadEnvironment(era: 2015, topic: .app, frame: PushFrame(command: 2, priority: nil)))
      expected.kinds[judgement.kind.rawValue, default: 0] += 1
      for rule in judgement.rules { expected.lint[rule.code, default: 0] += 1 }
      #expect(try refusal(of: payload, in: tally) == (judgement.rules.hasErrors ? .processingError : nil))
    }
    #expect(tally.counts.kinds == expected.kinds && tally.counts.lint == expected.lint)
  }

  @Test("An error is refused with the status that is set, a warning is not")
  func refused() throws {
    let tally = tally(refusing: .processingError)
    #expect(try refusal(of: Self.trailingComma, in: tally) == .processingError)
    #expect(try refusal(of: Self.background, in: tally) == nil)
    #expect(try refusal(of: #"{"aps":{"alert":"Ciao"}}"#, expiration: Self.now - 1, in: tally) == nil)
  }

  @Test("Whether a push had expired is a question of the second in which it comes")
  func expired() throws {
    let tally = tally()
    for seconds: Int64 in [-1, 0, 1, 86_400] {
      _ = try refusal(of: Self.background, expiration: Self.now + seconds, in: tally)
    }
    #expect(tally.counts.lint == ["expiration_past": 2, "silent_priority_implied": 4])
    #expect(tally.counts.kinds == ["background": 4])
  }

  @Test("A frame that the protocol refuses counts with the rule that its status is about")
  func protocolRules() {
    let tally = tally()
    for (status, times) in [
      (ErrorResponse.Status.missingPayload, 1), (.invalidPayloadSize, 2), (.missingDeviceToken, 3),
      (.invalidTokenSize, 4), (.invalidToken, 5), (.shutdown, 6),
    ] {
      for _ in 0..<times { tally.note(refused: status) }
    }
    #expect(tally.counts.lint == ["payload_empty": 1, "payload_too_large": 2, "token_length": 7])
    #expect(tally.counts.kinds == [:])
  }

  @Test("Counts of several event loops are added key by key")
  func sums() {
    var sum = PayloadCounts(kinds: ["alert": 1, "background": 2], lint: ["aps_empty": 3])
    sum.combine(with: PayloadCounts(kinds: ["alert": 10], lint: ["aps_empty": 30, "badge_type": 4]), +)
    #expect(sum.kinds == ["alert": 11, "background": 2] && sum.lint == ["aps_empty": 33, "badge_type": 4])
  }
}
