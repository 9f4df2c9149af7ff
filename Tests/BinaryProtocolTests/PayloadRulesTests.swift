import BinaryProtocol
import Foundation
import PushModel
import TestSupport
import Testing

/// Which payloads a device would neither show nor play.
@Suite("Payload rules")
struct PayloadRulesTests {
  static let silent = [
    #"{"aps":{"content-available":1}}"#,
    #"{"aps":{"content-available":"1"}}"#, #"{"aps":{"content-available":true}}"#,
    #"{"aps":{"content-available":0.5}}"#, #"{"aps":{"content-available":-01}}"#.replacing("-01", with: "-1"),
    #" { "aps" : { "content-available" : 1 } } "#, "{\n\t\"aps\":\r\n{\"content-available\":1\n}}",
    #"{"alert":"outside","badge":1,"aps":{"content-available":1},"sound":"x"}"#,
    #"{"aps":{"category":"alert","content-available":1,"alerts":{"alert":1}}}"#,
    #"{"aps":{"x":"}{,:\"","content-available":1,"y":["alert","sound",{"badge":1}]}}"#,
    #"{"aps":{"x":"\\","content-available":1}}"#, #"{"a-b":"t-a","aps":{"content-available":1}}"#,
    #"{"a":[1,-2.5e-7,true,null,[],{}],"aps":{"b":{},"content-available":1}}"#,
    #"{"aps":{"content\u002davailable":1}}"#, #"{"aps":{"content\u002Davailable":1}}"#,
    #"{"\u0061ps":{"\u0063ontent-available":1}}"#, #"{"aps":{"\u0063\u006fntent\u002davailabl\u0065":1}}"#,
    #"{"x":"\\\u00e9\n","aps":{"content\u002davailable":1}}"#,
    #"{"aps":{"content-available":0,"content-available":1}}"#,
    #"{"aps":{"alert":"x"},"aps":{"content-available":1}}"#,
  ]
  static let notSilent = [
    "", "-", "content-available", "t-available", "\"content-available\"", "[\"content-available\"]", "{}",
    #"{"aps":{}}"#, #"{"aps":"content-available"}"#, #"{"aps":["content-available",1]}"#, #"{"aps":1,"x":"t-a"}"#,
    #"{"content-available":1}"#, #"{"x":{"aps":{"content-available":1}}}"#, #"{"aps":{"x":{"content-available":1}}}"#,
    #"[{"aps":{"content-available":1}}]"#,
    #"{"aps":{"content-available":0}}"#, #"{"aps":{"content-available":-0.00e7}}"#,
    #"{"aps":{"content-available":false}}"#, #"{"aps":{"content-available":null}}"#,
    #"{"aps":{"content-available":1,"alert":"x"}}"#, #"{"aps":{"alert":{"body":"x"},"content-available":1}}"#,
    #"{"aps":{"content-available":1,"badge":0}}"#, #"{"aps":{"content-available":1,"sound":""}}"#,
    #"{"aps":{"content-available":1,"alert":null}}"#, #"{"aps":{"content-available":1,"\u0061lert":"x"}}"#,
    #"{"aps":{"content-available":1,"content-available":0}}"#,
    #"{"aps":{"content-available":1},"aps":{"alert":"x"}}"#, #"{"aps":{"content-available":1},"aps":"x"}"#,
    #"{"aps":{"content-availablE":1}}"#, #"{"aps":{"content-available ":1}}"#, #"{"aps":{"xcontent-available":1}}"#,
    #"{"aps":{"content\\u002davailable":1}}"#, #"{"aps":{"content\u012davailable":1}}"#,
    #"{"aps":{"alert":"content-available"}}"#, #"{"aps":{"x":"\"content-available\":1"}}"#,
    // No JSON.
    #"{"aps":{"content-available":1}"#, #"{"aps":{"content-available":1}}}"#, #"{"aps":{"content-available":1,}}"#,
    #"{"aps":{"content-available":01}}"#, #"{"aps":{"content-available"}}"#, #"{"aps":{"content\u002"#, #"\u00"#,
  ]

  @Test("A payload with content and nothing to show is silent", arguments: silent)
  func isSilent(text: String) { #expect(judged(Array(text.utf8))) }

  @Test("A payload with something to show, or without content, is not silent", arguments: notSilent)
  func isNotSilent(text: String) { #expect(!judged(Array(text.utf8))) }

  @Test("Other encodings and bytes behind the text are no JSON")
  func otherBytes() {
    let text = Self.silent[0]
    #expect(!judged(text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), 0] }))
    #expect(!judged((Array(text.utf8) + [0])))
    #expect(!judged(([0xef, 0xbb, 0xbf] + Array(text.utf8))))
  }

  @Test("Every prefix of a silent payload is judged without a fault", arguments: silent)
  func prefixes(text: String) {
    let bytes = Array(text.utf8)
    for count in 0..<Array(text.trimmingCharacters(in: .whitespacesAndNewlines).utf8).count {
      #expect(!judged(Array(bytes.prefix(count))))
    }
  }

  /// Foundation's parser and the rule said in the plainest way. Repeated keys are left out: Foundation does not say which
  /// one it keeps.
  @Test("Judged by Foundation", arguments: 1...60 as ClosedRange<UInt64>)
  func differential(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var silent = 0
    for _ in 0..<100 {
      let text = random.document()
      let expected = try judge(text)
      if expected { silent += 1 }
      #expect(judged(Array(text.utf8)) == expected, "\(text)")
    }
    // A law over documents of one kind would compare nothing.
    #expect((5...95).contains(silent))
  }

  private func judged(_ bytes: [UInt8]) -> Bool { PayloadRules.isSilent(bytes.rawBytes) }

  private func judge(_ text: String) throws -> Bool {
    let document = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
    guard let aps = (document as? [String: Any])?["aps"] as? [String: Any] else { return false }
    if ["alert", "badge", "sound"].contains(where: { aps[$0] != nil }) { return false }
    switch aps["content-available"] {
    case nil, is NSNull: return false
    case let number as NSNumber: return number.doubleValue != 0
    default: return true
    }
  }
}

extension SeededGenerator {
  /// A document around `aps`, as text: members in any order, escapes, white space, keys that are nearly the right ones.
  fileprivate mutating func document() -> String {
    var members = others()
    if !happens(oneIn: 12) {
      var inner = others()
      if !happens(oneIn: 6) {
        let value = pick(["1", "1", "1", "1", "0", "0.0", "-0", "0e3", "true", "false", "null", "\"1\"", "[]", "0.25"])
        inner.append((key("content-available"), value))
      }
      for name in ["alert", "badge", "sound"] where happens(oneIn: 7) { inner.append((key(name), value())) }
      members.append((key("aps"), happens(oneIn: 20) ? value() : object(inner)))
    }
    let text = object(members)
    return happens(oneIn: 15) ? "[" + text + "]" : space() + text + space()
  }

  private mutating func object(_ members: [(key: String, value: String)]) -> String {
    let members = members.shuffled(using: &self)
    return "{" + space()
      + members.map { $0.key + space() + ":" + space() + $0.value + space() }.joined(separator: "," + space()) + "}"
  }

  /// Members that do not matter, each key once.
  private mutating func others() -> [(key: String, value: String)] {
    let names = [
      "category", "Alert", "aps ", "content-availabl", "content-availables", "t-a", "", #"{\"alert\":1"#, #"\\"#, "é",
      #"a\u002db"#, "content_available", "mutable-content",
    ]
    return names.shuffled(using: &self).prefix(happens(oneIn: 2) ? 0 : number(1...4)).map { ("\"\($0)\"", value()) }
  }

  private mutating func value() -> String {
    if happens(oneIn: 4) { return pick([Frame.silent, Frame.payload].map { String(decoding: $0, as: UTF8.self) }) }
    var tokens: [String] = []
    // Distinct keys only: an object of random strings may repeat one.
    repeat {
      tokens = []
      appendValue(to: &tokens, depth: 4)
    } while tokens.contains("{")
    return tokens.joined()
  }

  /// The name in quotes, some of its characters as escapes.
  private mutating func key(_ name: String) -> String {
    guard happens(oneIn: 4) else { return "\"\(name)\"" }
    var text = ""
    for character in name.utf8 {
      guard happens(oneIn: 4) else {
        text.unicodeScalars.append(Unicode.Scalar(character))
        continue
      }
      let digits = "00" + String(character, radix: 16)
      text += "\\u" + (happens(oneIn: 2) ? digits.uppercased() : digits)
    }
    return "\"\(text)\""
  }

  private mutating func space() -> String { happens(oneIn: 5) ? pick([" ", "\n", "\t", "\r\n "]) : "" }
}
