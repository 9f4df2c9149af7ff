import BinaryProtocol
import Bytes
import Foundation
import TestSupport
import Testing

/// Thousands of damaged payloads, each judged by `JSONText` and by Foundation's `JSONSerialization`.
///
/// Where they are known to differ, and why `JSONText` stays as it is (RFC 8259 is the judge):
///
/// | text | JSONText | Foundation | |
/// |---|---|---|---|
/// | byte order mark in front | invalid | taken | §8.1: must not be added |
/// | UTF-16 or UTF-32 | invalid | taken | §8.1: must be UTF-8 |
/// | comma before `]` or `}` | invalid | taken (Linux) | not in the grammar, §4 and §5 |
/// | `\ud834` alone | valid | refused | in the grammar, §8.2; a record keeps it as it was |
/// | `1e999`, 400 digits | valid | refused | in the grammar, §6; nothing here converts numbers |
///
/// Both stop at 512 levels, and both take repeated keys (Foundation keeps the last; a record keeps all).
@Suite("JSON text against Foundation")
struct JSONDifferentialTests {
  @Test("Damaged payloads are JSON to both, or to neither", arguments: 1...60 as ClosedRange<UInt64>)
  func mutations(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var counts = (valid: 0, invalid: 0)
    for _ in 0..<80 {
      var bytes = random.validPayload()
      #expect(isValid(bytes) && foundationTakes(bytes))
      random.damage(&bytes)
      let isValid = isValid(bytes)
      if isValid { counts.valid += 1 } else { counts.invalid += 1 }
      if isValid != foundationTakes(bytes) && !isKnownDifference(bytes, isValid: isValid) {
        Issue.record("JSONText says \(isValid ? "valid" : "invalid"), Foundation not: \(hexadecimal(bytes))")
      }
    }
    // Damage that is always or never seen would compare nothing.
    #expect(counts.valid >= 5 && counts.invalid >= 5)
  }

  @Test("The known differences, judged by the grammar")
  func knownDifferences() {
    let text: (String) -> [UInt8] = { Array($0.utf8) }
    for invalid in [
      text("\u{feff}{}"), text("[1,]"), text("{\"a\":1,}"), [0x31, 0], [0xff, 0xfe, 0x7b, 0, 0x7d, 0], [0, 0, 0, 0x31],
    ] {
      #expect(!isValid(invalid))
    }
    for valid in [#""\ud834""#, #""\udd1e\ud834""#, "1e999", "1" + String(repeating: "0", count: 400)] {
      #expect(isValid(text(valid)))
    }
  }

  private func isValid(_ bytes: [UInt8]) -> Bool { JSONText.scan(bytes.rawBytes) != .invalid }

  private func foundationTakes(_ bytes: [UInt8]) -> Bool {
    (try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)) != nil
  }

  private func hexadecimal(_ bytes: [UInt8]) -> String {
    String(decoding: written { $0.write(hex: bytes.rawBytes) }, as: UTF8.self)
  }

  /// Whether the two agree once the cause of a known difference is taken out, and the difference lies in its direction.
  private func isKnownDifference(_ bytes: [UInt8], isValid: Bool) -> Bool {
    // One character for each byte, so that damaged UTF-8 stays as it is.
    var text = String(bytes: bytes, encoding: .isoLatin1)!
    if isValid {
      text.replace(/\\u[dD][89a-fA-F][0-9a-fA-F]{2}/, with: #"\u0041"#)
      text.replace(/(?<sign>[eE][+\-]?)[0-9]{3,}/) { "\($0.sign)10" }
    } else {
      // A NUL is valid nowhere in UTF-8 text; to Foundation one of the first four bytes shows the encoding.
      if bytes.prefix(4).contains(0) || [[0xff, 0xfe], [0xfe, 0xff]].contains(Array(bytes.prefix(2))) { return true }
      if bytes.starts(with: [0xef, 0xbb, 0xbf]) { text.removeFirst(3) }
      text.replace(/,(?<rest>[ \t\r\n]*[\]}])/) { "\($0.rest)" }
    }
    let without = [UInt8](text.data(using: .isoLatin1)!)
    return without != bytes && self.isValid(without) == foundationTakes(without)
  }
}

extension SeededGenerator {
  /// A payload as a client sent it, or a random value.
  mutating func validPayload() -> [UInt8] {
    if happens(oneIn: 2) { return pick(Vector.jsonPayloads) }
    var tokens: [String] = []
    appendValue(to: &tokens, depth: 0)
    return Array(tokens.joined(separator: pick(["", "", " ", "\n"])).utf8)
  }

  /// Inserts, removes, replaces or cuts in up to three places.
  mutating func damage(_ bytes: inout [UInt8]) {
    let fragments = [
      "{", "}", "[", "]", ",", ":", "\"", "\\", "0", "1", "-", ".", "e", "+", "t", "true", "null", " ", "\n", "\u{1}",
      "\\u", "\\ud834", "\\udd1e", "\\u0041", "\u{feff}", "é", "1e999", "/",
    ]
    for _ in 0..<number(0...3) {
      let place = number(0...bytes.count)
      let fragment = Array(pick(fragments).utf8)
      switch number(0...8) {
      case 0...2: bytes.insert(contentsOf: fragment, at: place)
      case 3...4: if place < bytes.count { bytes.remove(at: place) }
      case 5: if place < bytes.count { bytes[place] = UInt8(number(0...255)) }
      case 6: bytes.removeLast(number(0...min(4, bytes.count)))
      default: if place < bytes.count { bytes.replaceSubrange(place...place, with: fragment) }
      }
    }
  }
}
