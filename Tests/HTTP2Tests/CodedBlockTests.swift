import Bytes
import TestSupport
import Testing

@testable import HTTP2

/// The strings of field blocks, read without a table, and letters of theirs that are replaced in place.
@Suite("Coded blocks")
struct CodedBlockTests {
  private struct Field {
    var name: [UInt8]
    var value: [UInt8]
  }

  private static func block(_ fields: [Field], _ random: inout SeededGenerator, resize: Bool) -> [UInt8] {
    var encoder = HPACKEncoder()
    var writer = ByteWriter(capacity: 512)
    if resize { encoder.resize(to: 100) }
    encoder.beginBlock(&writer)
    for field in fields {
      encoder.write(
        field.name.rawBytes, field.value.rawBytes, .allCases.randomElement(using: &random) ?? .incremental,
        .allCases.randomElement(using: &random) ?? .plain, to: &writer)
    }
    return Array(copying: writer.bytes)
  }

  @Test("Filler changes the letters that it replaces, no other one, and no length", arguments: seeds(20, of: 400))
  func filler(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    let secrets = (0..<3).map { _ in
      (0..<Int.random(in: 1...90, using: &random)).map { _ in digits.randomElement(using: &random) ?? 0 }
    }
    let fields = secrets.map {
      Field(name: Array("x-\($0.count)".utf8), value: Array("bearer ".utf8) + $0 + Array(" end".utf8))
    }
    let original = Self.block(fields, &random, resize: Bool.random(using: &random))
    let coded = try CodedBlock(parsing: original.rawBytes)
    var changed = original
    for text in coded.texts {
      let read = text.decoded(in: original.rawBytes)
      let decoded = try #require(read)
      #expect(text.coded(decoded, filling: []) == Array(original[text.range]))
      guard decoded.starts(with: Array("bearer ".utf8)) else { continue }
      let filled = text.coded(decoded, filling: [7..<decoded.count - 4])
      try #require(filled.count == text.range.count)
      changed.replaceSubrange(text.range, with: filled)
    }
    // A decoder reads the same fields, but for the letters.
    var (decoder, list) = (HPACKDecoder(), FieldList())
    let rule = decoder.decode(changed.rawBytes, into: &list)
    #expect(rule == nil)
    try #require(list.fields.count == fields.count)
    for (field, known) in zip(list.fields, fields) {
      let value = Array(copying: list.value(of: field))
      #expect(Array(copying: list.name(of: field)) == known.name && value.count == known.value.count)
      #expect(value.prefix(7) == known.value.prefix(7) && value.suffix(4) == known.value.suffix(4))
      #expect(Set(value.dropFirst(7).dropLast(4)).isSubset(of: Set("xoAX".utf8)))
    }
  }

  @Test("A block that is cut anywhere has no strings, or those before the cut", arguments: seeds(5, of: 50))
  func cut(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let fields = [
      Field(name: Array("x-name".utf8), value: Array("a value".utf8)), Field(name: Array(":path".utf8), value: [0x2f]),
    ]
    let block = Self.block(fields, &random, resize: true)
    let whole = try CodedBlock(parsing: block.rawBytes)
    #expect(whole.sizeUpdatesEnd > 0)
    for end in 0..<block.count {
      let part = Array(block[..<end])
      if let cut = try? CodedBlock(parsing: part.rawBytes) { #expect(cut.texts.count <= whole.texts.count) }
    }
  }
}
