import BinaryProtocol
import Bytes
import Foundation
import PacketCapture
import Payload
import PushModel
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection

@Suite("Redaction keeps structure")
struct RedactionLawTests {
  /// Fields of messages that are private; numbers of texts are structure.
  private static let hiddenOfMessages: Set = [
    "topic", "topics", "tokens", "new_token", "collapse_id", "language", "action", "user", "users", "device_names",
    "sender", "receiver", "message",
  ]

  private static func redaction() throws -> Redaction {
    try #require(Redaction(key: [UInt8](repeating: 9, count: 16), keepsAddresses: false))
  }

  /// Fields that are not structure.
  private static let hidden: Set = ["token", "payload", "client", "server", "source", "flow", "also_seen_as", "bytes"]

  private static func records(_ bytes: [UInt8], _ keys: String?, _ redaction: Redaction?) throws -> [[String: Any]] {
    try ClearCopy.records([bytes], keys, DissectionOptions(), redaction)
  }

  private static func text(_ value: Any?) throws -> String {
    String(
      decoding: try JSONSerialization.data(withJSONObject: [value ?? ""], options: [.sortedKeys, .fragmentsAllowed]),
      as: UTF8.self)
  }

  private static func expectSameStructure(_ bytes: [UInt8], _ keys: String? = nil, _ name: String) throws {
    let original = try records(bytes, keys, nil)
    let redacted = try records(bytes, keys, redaction())
    #expect(original.count == redacted.count, "\(name)")
    for (old, new) in zip(original, redacted) {
      #expect(Set(old.keys) == Set(new.keys), "\(name)")
      let isMessage = ["device", "local_push"].contains(old["type"] as? String ?? "")
      for (key, value) in old where !hidden.contains(key) {
        switch key {
        case "problem":
          // Words of the sender are in quotes.
          let texts = [value, new[key]].map { ($0 as? String ?? "").replacing(/'[^']*'/, with: "''") }
          #expect(texts[0] == texts[1] && !texts[0].isEmpty, "\(name) \(key)")
        case "reason" where old["kind"] as? String == "offline":
          #expect((value as? String)?.count == (new[key] as? String)?.count, "\(name) \(key)")
        case _ where isMessage && hiddenOfMessages.contains(key):
          #expect((value as? [Any])?.count == (new[key] as? [Any])?.count, "\(name) \(key)")
          let keys = [value, new[key]].map { ($0 as? [String: Any])?.keys.sorted() }
          #expect(keys[0] == keys[1], "\(name) \(key)")
        case "tls":
          let (old, new) = (value as? [String: Any] ?? [:], new[key] as? [String: Any] ?? [:])
          #expect(Set(old.keys) == Set(new.keys), "\(name)")
          for (key, value) in old where key != "client_subject" {
            // The beginning of a random number.
            let isRandom = (value as? String)?.contains("client random") ?? false
            #expect(try isRandom || text(value) == text(new[key]), "\(name) \(key)")
          }
        case "items":
          let lengths = [value, new[key] ?? ""].map { items in
            (items as? [[Any]])?.map { "\($0[0]) \(($0[1] as? String)?.count ?? 0)" }
          }
          #expect(lengths[0] == lengths[1], "\(name)")
        default: #expect(try text(value) == text(new[key]), "\(name) \(key)")
        }
      }
    }
  }

  @Test(
    "Records of a trace are the same but for what is private, rules and kinds of payloads among them",
    arguments: some(12, of: RecordingTests.traces))
  func traces(trace: String) throws {
    let url = Folder.traces.appending(path: trace)
    try Self.expectSameStructure([UInt8](Data(contentsOf: url)), url.path, trace)
  }

  @Test("The same of random connections", arguments: seeds(20, of: 200))
  func random(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    try Self.expectSameStructure(CaptureBuilder.conversations(&random).bytes, nil, "seed \(seed)")
  }

  @Test(
    "A subject keeps the number and kinds of its topics, and nothing else",
    arguments: [
      ("UID=com.anna.app,CN=Apple Push Services: com.anna.app", [PayloadTopic.app]),
      ("CN=Apple Push Services: com.anna.app", [.app]), ("UID=com.anna.app.voip,OU=Anna", [.voip]),
      ("UID=pass.anna,UID=com.anna.app", [.wallet, .app]), ("CN=Anna", []), ("", []),
    ])
  func subjects(subject: String, kinds: [PayloadTopic]) throws {
    let redaction = try Self.redaction()
    let topics = CertificateSubject(redaction.subject(subject)).topics
    #expect(topics.map(PayloadTopic.init) == kinds && !redaction.subject(subject).lowercased().contains("anna"))
    #expect(
      topics.joined(separator: " ") == redaction.topics(CertificateSubject(subject).topics.joined(separator: " ")))
    #expect(redaction.subject(subject) != redaction.subject(subject + "x"))
  }

  @Test("A token that breaks a rule has a pseudonym that breaks it")
  func tokens() throws {
    let redaction = try Self.redaction()
    var pseudonyms: Set<[UInt8]> = []
    for byte in 0...255 as ClosedRange<UInt8> {
      let token = [UInt8](repeating: byte, count: 32)
      let pseudonym = redaction.token(token.rawBytes)
      #expect(PayloadJudge.rules(ofToken: pseudonym.rawBytes) == PayloadJudge.rules(ofToken: token.rawBytes))
      pseudonyms.insert(pseudonym)
    }
    #expect(pseudonyms.count == 256)
    for text in [String(repeating: "0a", count: 32), "<0123 4567 89ab cdef 0123 4567 89ab cdef>", "abcd"] {
      let token = Array(text.utf8)
      let pseudonym = redaction.token(token.rawBytes)
      #expect(pseudonym.count == token.count && pseudonym != token)
      #expect(PayloadJudge.rules(ofToken: pseudonym.rawBytes) == PayloadJudge.rules(ofToken: token.rawBytes))
    }
  }

  @Test(
    "Sentences of apnscope stay, other words do not",
    arguments: [
      ("item 2 of length 300 overruns its frame at offset 5", "item 2 of length 300 overruns its frame at offset 5"),
      (
        "frame length 1397048403 is over the limit at offset 1", "frame length 1111111111 is over the limit at offset 1"
      ),
      ("a server key does not open ECDHE_RSA key exchange; a key log does", nil),
      ("cipher suite not supported: TLS_RSA_WITH_RC4_128_SHA", nil), ("no ServerHello in the capture", nil),
      ("Anna", "xxxx"), ("482913", "111111"), ("4829", "1111"), ("offset 4829 of Anna", "offset 1111 of xxxx"),
      ("unknown_ca from the client", nil), ("client random 1a2b3c4d… is", "client random 1x1x1x1x… is"),
      ("Анна owes\u{1b} <b>", "xxxx xxxxx xxx"),
    ])
  func problems(text: String, expected: String?) { #expect(RedactedText.problem(text) == expected ?? text) }

  @Test(
    "Of what selected records, numbers, times and words of apnscope stay",
    arguments: [
      ("--from=2026-11-21T10:05:00Z", nil), ("--status=8", nil), ("--fate=discarded", nil), ("--connection=1..5", nil),
      ("--type=notification", nil), ("--outcome=recovered", nil), ("--token=3b1d", "--token=redacted"),
      ("--topic=com.example", "--topic=redacted"), ("--from=Anna", "--from=redacted"), ("--to=10:05", nil),
      ("--to=48291.37", "--to=redacted"), ("--anna=1", "redacted"),
      ("--identifier=491711234567", "--identifier=redacted"), ("", "redacted"),
    ])
  func selections(option: String, expected: String?) { #expect(RedactedText.selection(option) == expected ?? option) }

  @Test("What does not fit the frame, and items that come again, are erased")
  func items() throws {
    let redaction = try Self.redaction()
    func item(_ id: UInt8, _ data: [UInt8]) -> [UInt8] { [id, 0, UInt8(data.count)] + data }
    let secret = Array("SECRET".utf8)
    for rest in [[], [83], [83, 69], [3, 83, 69, 67], item(3, [0, 0, 0, 1]) + item(3, [83, 69, 67, 82])] as [[UInt8]] {
      let items =
        item(1, [UInt8](repeating: 7, count: 32)) + item(2, Array("{}".utf8)) + item(9, secret) + item(1, secret) + rest
      let frame = [2, 0, 0, 0, UInt8(items.count)] + items
      let fields = PushFields(fitting: frame.rawBytes)
      let redacted = redaction.frame(fields, frame.rawBytes)
      #expect(redacted.count == frame.count)
      for window in 0..<secret.count - 1 { #expect(!redacted.contains(secret[window...window + 1])) }
      let again = PushFields(fitting: redacted.rawBytes)
      #expect(again.identifier == fields.identifier && again.binary.hasUnknownItems == fields.binary.hasUnknownItems)
    }
  }
}
