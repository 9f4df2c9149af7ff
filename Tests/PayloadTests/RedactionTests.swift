import Bytes
import Payload
import TestSupport
import Testing

@Suite("Redaction of payloads")
struct RedactionTests {
  private static let tag: [UInt8] = Array(33..<49)

  private func redacted(_ payload: [UInt8], tag: [UInt8] = []) -> [UInt8] {
    var bytes = [1, 2, 3] + payload + [4, 5]
    var redaction = PayloadRedaction()
    redaction.redact(&bytes, in: 3..<3 + payload.count, tag: tag)
    #expect(Array(bytes.prefix(3)) == [1, 2, 3] && Array(bytes.suffix(2)) == [4, 5])
    return Array(bytes[3..<bytes.count - 2])
  }

  private func redacted(_ text: String) -> String { String(decoding: redacted(Array(text.utf8)), as: UTF8.self) }

  @Test(
    "What is known to be structure is kept, and everything else has a placeholder of its length",
    arguments: [
      (#"{"aps":{"alert":"Hi Ana, 12 new!","badge":12}}"#, #"{"aps":{"alert":"xxxxxxxxxxxxxxx","badge":11}}"#),
      (
        #"{"aps":{"alert":{"loc-key":"FROM","loc-args":["Ana","é",5],"body":"x\"y"}}}"#,
        #"{"aps":{"alert":{"loc-key":"xxxx","loc-args":["xxx","xx",1],"body":"xxxx"}}}"#
      ),
      (
        #"{"aps":{"sound":{"name":"a.caf","volume":0.5,"u":"v"},"thread-id":"u7"},"id":-120,"mail":"a@b.org"}"#,
        #"{"aps":{"sound":{"name":"x.caf","volume":1.1,"x":"x"},"thread-id":"xx"},"xx":-111,"xxxx":"xxxxxxx"}"#
      ),
      (
        #"{"acme":{"aps":{"sound":"default"},"ok":true,"n":-0.5e3,"no":null},"mdm":"f1"}"#,
        #"{"xxxx":{"xxx":{"xxxxx":"xxxxxxx"},"xx":true,"x":-11111,"xa":null},"mdm":"xx"}"#
      ),
      (
        #"{"aps":{"sound":"default","interruption-level":"active","content-available":1}, "a":1}"#,
        #"{"aps":{"sound":"default","interruption-level":"active","content-available":1}, "x":1}"#
      ),
      (
        #"{"aps":{"sound":"Anna","interruption-level":"secret","content-available":7,"mutable-content":1.0}}"#,
        #"{"aps":{"sound":"xxxx","interruption-level":"xxxxxx","content-available":2,"mutable-content":1.0}}"#
      ),
      (#"{"aps":{"badge":"You owe 5"}}"#, #"{"aps":{"badge":"xxxxxxxxx"}}"#),
      (#"{"a":"\u00e9\ud83d\ude00\n","b":"\ud83d!"}"#, #"{"x":"xxxxxxxxxxxxxxxxxxxx","a":"\ud800x"}"#),
      (#"{"aps":{"alert":" {\"a\":1} "}}"#, #"{"aps":{"alert":"{         }"}}"#),
      (#"{"b":1,"a":2,"b":3,"ab":4}"#, #"{"a":1,"x":1,"a":1,"xx":1}"#),
      (#"{"aps":{"alret":"A","acme":1}}"#, #"{"aps":{"alerx":"x","xxxx":1}}"#),
      ("Dear Ana, call 555", "xxxxxxxxxxxxxxxxxx"), ("{'aps':{'alert':'Ana'}}", "'xxxxxxxxxxxxxxxxxxxxxx"),
      (#"{"aps":{"alert":"Ana"#, "\"xxxxxxxxxxxxxxxxxxx"), ("", ""), ("\0\0", "\0\0"), ("12", "11"),
      (#"{"aps":{"badge":1,"alert" "SECRET"}}"#, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
      (#"{"aps":{"badge":1 "alert":"SECRET"}}"#, "[1\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
      (#"{"aps":{"sound":"x" /* "Ana" */}}"#, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
      (#"["Ana",]"#, "[11111,]"),
    ])
  func texts(text: String, expected: String) { #expect(redacted(text) == expected) }

  @Test("What is said of a payload is said of it redacted", arguments: RuleVector.all)
  func judgements(vector: RuleVector) {
    var environment = vector.environment
    // Names that an app gives its texts are no structure.
    environment.strings = nil
    var before = judged(vector.payload, in: environment)
    // They are about the characters of texts, of which nothing stays.
    let ofCharacters: Set<PayloadRule> = [.textDoubleEscaped, .textHTMLEntities, .textPrivateUse]
    before.rules = PayloadRuleSet(before.rules.filter { !ofCharacters.contains($0) })
    for bytes in [redacted(vector.payload), redacted(vector.payload, tag: Self.tag)] {
      #expect(bytes.count == vector.payload.count)
      let after = judged(bytes, in: environment)
      let text = Comment(rawValue: String(decoding: bytes, as: UTF8.self))
      #expect(after.rules == before.rules && after.kind == before.kind, text)
    }
  }

  /// A payload with a canary wherever one may stand.
  private static func payloads(_ secret: String) -> [String] {
    let key = secret.replacing("\"", with: "")
    return [
      #"{"aps":{"alert":"\#(secret)"}}"#, #"{"aps":{"badge":"\#(secret)"}}"#, #"{"aps":{"sound":"\#(secret).caf"}}"#,
      #"{"aps":{"sound":{"name":"\#(secret)","volume":"\#(secret)","\#(key)":1}}}"#,
      #"{"aps":{"alert":{"title":"\#(secret)","loc-key":"\#(secret)","loc-args":["\#(secret)",["\#(secret)"]]}}}"#,
      #"{"aps":{"alert":{"launch-image":"\#(secret)","action-loc-key":"\#(secret)","\#(key)":"\#(secret)"}}}"#,
      #"{"aps":{"category":"\#(secret)","thread-id":"\#(secret)","url-args":["\#(secret)"]}}"#,
      #"{"aps":{"interruption-level":"\#(secret)","target-content-id":"\#(secret)","\#(key)":{"\#(key)":0}}}"#,
      #"{"aps":{},"\#(key)":"\#(secret)","a":[["\#(secret)"],{"\#(key)":"\#(secret)"}]}"#,
      #"{"aps":{},"alert":"\#(secret)","mdm":"\#(secret)","acme":{"sound":"\#(secret)","badge":"\#(secret)"}}"#,
      #"{"aps":"{\"alert\":\"\#(secret)\"}"}"#, #"{"aps":{"alert":"{\"alert\":\"\#(secret)\"}"}}"#, #""\#(secret)""#,
      #"{"aps":{"badge":1,"alert" "\#(secret)"}}"#, #"{"aps":{"sound":"default","alert"="\#(secret)"}}"#,
      #"{"aps":{"sound":"default" /* "\#(secret)" */}}"#, #"{"aps":{"sound":"default" "\#(secret)"}}"#,
      #"{'aps':{'alert':'\#(secret)'}}"#, #"{"aps":{"alert":"\#(secret)"#, #"{"aps":{"alert":"\#(secret)",}}"#,
      "\(secret)", #"{"aps":{"alert":"\#(secret)"}} \#(secret)"#, #"{aps:{alert:"\#(secret)"}}"#,
      "{\"aps\":{\"alert\":\"a\n\(secret)\"}}", #"{"aps":{"badge":\#(secret),"content-available":\#(secret)}}"#,
      #"{"aps":{"alert":"\ud83d \#(secret)"}}"#, "{\"aps\":{\"alert\":\"\(secret)\"}}\0",
    ]
  }

  @Test("Nothing of a secret is left, whatever its shape, encoding and place", arguments: Canary.all.indices)
  func nothingLeft(index: Int) {
    let canary = Canary.all[index]
    for payload in Self.payloads(canary.text) {
      for encoding in Canary.Encoding.allCases {
        // Of escapes only the texts are written so.
        let original =
          encoding == .escapes
          ? Array(
            payload.replacing(canary.text, with: String(decoding: encoding.bytes(of: canary.text), as: UTF8.self)).utf8)
          : encoding.bytes(of: payload)
        for tag in [[], Self.tag] {
          let bytes = redacted(original, tag: tag)
          #expect(bytes.count == original.count)
          #expect(!canary.isIn(bytes), "\(encoding) \(payload) \(String(decoding: bytes, as: UTF8.self))")
        }
      }
    }
  }

  /// A random text with letters in places of a value, key or anything else; `letters` chooses which.
  private static func shape(_ random: inout SeededGenerator, _ first: Int, _ second: Int) -> ([UInt8], [UInt8]) {
    let pieces = [
      "{", "}", "[", "]", "\"", "'", ",", ":", "\\n", " ", "\"aps\":{", "\"alert\":", "true", "\u{0}", "\"sound\":",
      "\"badge\":",
      "\"§§\"", "\"§§§\":", "\"§\":\"§§§§\"", "{\"aps\":{\"alert\":\"§§§§\"}}", "§", "{\"aps\":{\"badge\":", "é", "/*",
    ]
    let alphabets = ["bdghkmqr", "jpuvwyzB"].map(Array.init)
    var (one, other) = ("", "")
    for _ in 0..<random.number(1...20) {
      for character in random.pick(pieces) {
        let letter = random.number(0...7)
        one += character == "§" ? String(alphabets[first][letter]) : String(character)
        other += character == "§" ? String(alphabets[second][letter]) : String(character)
      }
    }
    return (Array(one.utf8), Array(other.utf8))
  }

  @Test("Payloads that differ in their letters alone are redacted to the same bytes", arguments: seeds(100, of: 5_000))
  func sameShape(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let (one, other) = Self.shape(&random, 0, 1)
    let bytes = redacted(one)
    #expect(bytes == redacted(other), "\(String(decoding: one, as: UTF8.self))")
    #expect(redacted(bytes) == bytes && redacted(redacted(one, tag: Self.tag)) == bytes)
    #expect(judged(one).rules == judged(bytes).rules, "\(String(decoding: one, as: UTF8.self))")
  }

  @Test("A tag keeps different payloads apart")
  func tag() {
    let payload = Array(#"{"aps":{"alert":"Hello","badge":12345678},"a":"b"}"#.utf8)
    let (one, other) = (redacted(payload, tag: Self.tag), redacted(payload, tag: Self.tag.reversed()))
    #expect(one != other && one == redacted(payload, tag: Self.tag) && judged(one).rules == judged(payload).rules)
  }
}
