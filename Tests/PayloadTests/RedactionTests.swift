import Bytes
import Payload
import TestSupport
import Testing

@Suite("Redaction of payloads")
struct RedactionTests {
  private func redacted(_ payload: [UInt8]) -> [UInt8] {
    var bytes = [1, 2, 3] + payload + [4, 5]
    var redaction = PayloadRedaction()
    redaction.redact(&bytes, in: 3..<3 + payload.count)
    #expect(Array(bytes.prefix(3)) == [1, 2, 3] && Array(bytes.suffix(2)) == [4, 5])
    return Array(bytes[3..<3 + payload.count])
  }

  private func redacted(_ text: String) -> String { String(decoding: redacted(Array(text.utf8)), as: UTF8.self) }

  @Test(
    "Texts are masked, and structure, keys and names are kept",
    arguments: [
      (#"{"aps":{"alert":"Hi Ana, 12 new!","badge":12}}"#, #"{"aps":{"alert":"Xx Xxx, 11 xxx!","badge":12}}"#),
      (
        #"{"aps":{"alert":{"loc-key":"FROM","loc-args":["Ana","é"],"body":"x\"y"}}}"#,
        #"{"aps":{"alert":{"loc-key":"FROM","loc-args":["Xxx","xx"],"body":"x\"x"}}}"#
      ),
      (
        #"{"aps":{"sound":{"name":"a.caf","volume":0.5},"thread-id":"u7"},"id":1207,"mail":"a@b.org"}"#,
        #"{"aps":{"sound":{"name":"a.caf","volume":0.5},"thread-id":"x1"},"id":1111,"mail":"x@x.xxx"}"#
      ),
      (
        #"{"acme":{"aps":{"sound":"secret"},"ok":true,"n":-0.5e3}}"#,
        #"{"acme":{"aps":{"sound":"xxxxxx"},"ok":true,"n":-1.1e1}}"#
      ),
      (#"{"a":"\u00e9\ud83d\ude00\n\ud83d"}"#, #"{"a":"\u0078\ud800\udc00\n\ud800"}"#),
      ("Dear Ana, call 555", "Xxxx Xxx, xxxx 111"), ("{'aps':{'alert':'Ana'}}", "{'aps':{'alert':'Xxx'}}"),
      (#"{"aps":{"alert":"Ana"#, #"{"aps":{"alert":"Xxx"#), ("", ""), (#"["Ana",nul"#, #"["Xxx",nul"#),
    ])
  func texts(text: String, expected: String) { #expect(redacted(text) == expected) }

  @Test("What is said of a payload is said of it redacted", arguments: RuleVector.all)
  func judgements(vector: RuleVector) {
    let bytes = redacted(vector.payload)
    #expect(bytes.count == vector.payload.count)
    let (before, after) = (judged(vector.payload, in: vector.environment), judged(bytes, in: vector.environment))
    // Its keys are masked as well.
    if before.rules.contains(.payloadUTF16) { return #expect(after.rules.contains(.payloadUTF16)) }
    let text = Comment(rawValue: String(decoding: bytes, as: UTF8.self))
    #expect(after.rules == before.rules && after.kind == before.kind, text)
  }

  @Test("Nothing of a text is left, whatever the bytes are", arguments: seeds(50, of: 2_000))
  func nothingLeft(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    // Without a colon nothing is a key.
    let pieces = ["{", "}", "[", "]", "\"", "'", ",", "\\", "\\u", "Zoë", "q7", " ", "\"aps\"", "\u{0}", "true", "9"]
    var payload: [UInt8] = []
    for _ in 0..<Int.random(in: 0...60, using: &random) {
      payload += Array((pieces.randomElement(using: &random) ?? "").utf8)
      if Int.random(in: 0..<10, using: &random) == 0 { payload.append(UInt8.random(in: 0x80...0xff, using: &random)) }
    }
    let bytes = redacted(payload)
    #expect(bytes.count == payload.count)
    #expect(redacted(bytes) == bytes)
    for (old, new) in zip(payload, bytes) where old >= 0x80 { #expect(new == UInt8(ascii: "x") || new == 0xff) }
  }
}
