import Bytes
import Payload
import Testing

@Suite("Places of findings")
struct PlaceTests {
  private func place(_ rule: PayloadRule, _ payload: [UInt8]) -> Int?? {
    judged(payload).findings.first { $0.rule == rule }?.offset
  }

  @Test("A finding stands where its value or key does")
  func offsets() {
    let text = #"{"aps":{"alert":"x","badge":"1","harbour":2},"y":null}"#
    #expect(place(.badgeType, Array(text.utf8)) == 28)
    #expect(place(.keyUnknown, Array(text.utf8)) == 32)
    #expect(place(.customNull, Array(text.utf8)) == 49)
  }

  @Test("Places are those of the payload as it was sent, whatever its encoding")
  func encodings() {
    let text = "{\"é\":\"🌊\",\"aps\":[]}"
    let plain = Array(text.utf8)
    #expect(place(.apsNotDictionary, plain) == 19)
    #expect(place(.apsNotDictionary, [0xef, 0xbb, 0xbf] + plain) == 22)
    let little = text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
    let big = text.utf16.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
    #expect(place(.apsNotDictionary, little) == 32)
    #expect(place(.apsNotDictionary, [0xfe, 0xff] + big) == 34)
    let wide = text.unicodeScalars.flatMap { scalar in (0..<4).map { UInt8((scalar.value >> (24 - 8 * $0)) & 255) } }
    #expect(place(.apsNotDictionary, wide) == 60)
  }

  @Test("UTF-16 that is cut or has half a pair is invalid")
  func badUTF16() {
    let text = "{\"aps\":{}}".utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
    #expect(judged(text).rules.codes == ["aps_empty", "payload_utf16"])
    #expect(judged(text + [0x41]).rules.codes == ["payload_bad_utf8", "payload_utf16"])
    #expect(judged(text + [0x3c, 0xd8]).kind == .invalid)
  }

  @Test("Lines and columns are counted from one, in characters")
  func linesAndColumns() {
    let text = Array("aé\r\nb\rc\n🌊d".utf8)
    func position(_ offset: Int) -> [Int] {
      let position = PayloadPosition(offset: offset, in: text.rawBytes)
      return [position.line, position.column]
    }
    #expect(position(0) == [1, 1])
    #expect(position(3) == [1, 3])
    #expect(position(5) == [2, 1])
    #expect(position(7) == [3, 1])
    #expect(position(9) == [4, 1])
    #expect(position(13) == [4, 2])
    #expect(position(1000) == [4, 3])
    #expect(position(-1) == [1, 1])
  }

  @Test("Messages name the key and suggest what is meant")
  func messages() {
    let findings = judged("{\"aps\":{\"alert\":\"x\",\"content_available\":1},\n\"sound\":1}").findings
    let messages = findings.map(\.message)
    #expect(messages.contains { $0.contains("content_available: is content-available meant?") })
    #expect(messages.contains { $0.contains("(sound)") })
    #expect(messages.contains { $0.contains("(1 byte)") })
    #expect(messages.allSatisfy { $0.hasSuffix(".") })
  }
}
