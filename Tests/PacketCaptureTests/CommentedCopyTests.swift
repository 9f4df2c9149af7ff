import Bytes
import Foundation
import TestSupport
import Testing

@testable import PacketCapture

@Suite("Copies with comments")
struct CommentedCopyTests {
  /// A pcapng block, in either byte order.
  private static func block(_ type: UInt32, _ body: [UInt8], bigEndian: Bool) -> [UInt8] {
    let length = number(UInt32(12 + body.count), bigEndian)
    return number(type, bigEndian) + length + body + length
  }

  private static func number<Integer: FixedWidthInteger>(_ value: Integer, _ bigEndian: Bool) -> [UInt8] {
    let bytes = (0..<Integer.bitWidth / 8).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    return bigEndian ? bytes.reversed() : bytes
  }

  private static func option(_ code: UInt16, _ value: [UInt8], _ bigEndian: Bool) -> [UInt8] {
    let padding = [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
    return number(code, bigEndian) + number(UInt16(value.count), bigEndian) + value + padding
  }

  /// A section with an interface, packets of all three kinds, and blocks of others between them.
  private static func file(bigEndian: Bool, sectionLength: UInt64 = .max) -> [[UInt8]] {
    func number32(_ values: UInt32...) -> [UInt8] { values.flatMap { number($0, bigEndian) } }
    func half(_ values: UInt16...) -> [UInt8] { values.flatMap { number($0, bigEndian) } }
    return [
      block(0x0a0d_0d0a, number32(0x1a2b_3c4d) + half(1, 0) + number(sectionLength, bigEndian), bigEndian: bigEndian),
      block(1, half(1, 0) + number32(0), bigEndian: bigEndian),
      // 1: enhanced, with a comment and flags, and no end of options.
      block(
        6,
        number32(0, 7, 8, 5, 60) + [1, 2, 3, 4, 5, 0, 0, 0] + option(1, Array("before".utf8), bigEndian)
          + option(2, [0, 0, 0, 1], bigEndian), bigEndian: bigEndian),
      // A name resolution block, and one that nobody knows.
      block(4, half(0, 0), bigEndian: bigEndian), block(0x1234, [9, 9, 9, 9], bigEndian: bigEndian),
      // 2: simple; 3: obsolete, with an end of options; 4: enhanced, without options.
      block(3, number32(4) + [6, 7, 8, 9], bigEndian: bigEndian),
      block(
        2, half(0, 3) + number32(7, 9, 4, 4) + [1, 1, 1, 1] + option(2, [0, 0, 0, 2], bigEndian) + half(0, 0),
        bigEndian: bigEndian),
      block(6, number32(0, 7, 10, 4, 4) + [2, 2, 2, 2], bigEndian: bigEndian),
    ]
  }

  private func copy(
    _ bytes: [UInt8], comment: @escaping (Int) -> String?
  ) throws -> (copy: CommentedCopy, bytes: [UInt8]) {
    try withFile(bytes) { path in
      var written: [UInt8] = []
      let copy = try CommentedCopy(of: path, options: CaptureOptions(), comment: comment) {
        written.append(copying: $0)
        return true
      } proceed: { _, _, _ in
        true
      }
      return (copy, written)
    }
  }

  @Test("Without a comment every block of a pcapng file is as it was", arguments: [false, true])
  func untouched(bigEndian: Bool) throws {
    let bytes = Self.file(bigEndian: bigEndian).flatMap(\.self)
    let (copy, written) = try copy(bytes) { _ in nil }
    #expect(written == bytes)
    #expect(copy.packets == 4 && copy.comments == 0 && copy.warnings == [])
  }

  @Test("A comment follows the options that a packet has; all other blocks are as they were", arguments: [false, true])
  func comments(bigEndian: Bool) throws {
    let blocks = Self.file(bigEndian: bigEndian)
    let (copy, written) = try copy(blocks.flatMap(\.self)) { $0 == 4 ? nil : "note \($0)" }
    func number32(_ values: UInt32...) -> [UInt8] { values.flatMap { Self.number($0, bigEndian) } }
    func half(_ values: UInt16...) -> [UInt8] { values.flatMap { Self.number($0, bigEndian) } }
    func note(_ number: Int) -> [UInt8] {
      Self.option(1, Array("note \(number)".utf8), bigEndian) + half(0, 0)
    }
    var expected = blocks
    expected[2] = Self.block(
      6,
      number32(0, 7, 8, 5, 60) + [1, 2, 3, 4, 5, 0, 0, 0] + Self.option(1, Array("before".utf8), bigEndian)
        + Self.option(2, [0, 0, 0, 1], bigEndian) + note(1), bigEndian: bigEndian)
    expected[5] = Self.block(6, number32(0, 0, 0, 4, 4) + [6, 7, 8, 9] + note(2), bigEndian: bigEndian)
    expected[6] = Self.block(
      2, half(0, 3) + number32(7, 9, 4, 4) + [1, 1, 1, 1] + Self.option(2, [0, 0, 0, 2], bigEndian) + note(3),
      bigEndian: bigEndian)
    #expect(written == expected.flatMap(\.self))
    #expect(copy.packets == 4 && copy.comments == 3)
  }

  @Test("A section that states its length does so no longer", arguments: [false, true])
  func sectionLength(bigEndian: Bool) throws {
    let (_, written) = try copy(Self.file(bigEndian: bigEndian, sectionLength: 300).flatMap(\.self)) { "\($0)" }
    #expect(Array(written[16..<24]) == [UInt8](repeating: 0xff, count: 8))
  }

  @Test("A comment that is too long for an option is cut, and the file stays readable")
  func longComment() throws {
    let text = String(repeating: "é", count: 50_000)
    let (copy, written) = try copy(Self.file(bigEndian: false).flatMap(\.self)) { _ in text }
    #expect(copy.comments == 4)
    let again = try self.copy(written) { _ in nil }
    #expect(again.bytes == written && again.copy.packets == 4 && again.copy.warnings == [])
    let block = PcapngBlock.packet(time: 0, length: 4, [1, 2, 3, 4].rawBytes, comment: "a" + text)
    #expect(Array(block[32..<36]) == [1, 0, 0xff, 0xff])
    #expect(
      Array(PcapngBlock.packet(time: 0, length: 4, [1, 2, 3, 4].rawBytes, comment: text)[32..<36]) == [
        1, 0, 0xfe, 0xff,
      ])
  }

  @Test("Of a damaged file everything before the damage is copied, with a warning", arguments: [1, 7, 11, 30])
  func damaged(missing: Int) throws {
    let blocks = Self.file(bigEndian: false)
    let bytes = blocks.flatMap(\.self)
    let (copy, written) = try copy(Array(bytes.dropLast(missing))) { _ in nil }
    #expect(written == blocks.dropLast().flatMap(\.self))
    #expect(copy.packets == 3 && copy.warnings.count == 1)
    #expect(copy.warnings.first?.contains("after packet 3") == true)
  }

  @Test("A block that claims an impossible length ends the copy with a warning")
  func badLength() throws {
    let blocks = Self.file(bigEndian: false)
    let (copy, written) = try copy(blocks.flatMap(\.self) + [6, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]) { _ in nil }
    #expect(written == blocks.flatMap(\.self) && copy.warnings.count == 1)
  }

  @Test("Writing that fails ends the copy") func failed() throws {
    try withFile(Self.file(bigEndian: false).flatMap(\.self)) { path in
      var pieces = 0
      let copy = try CommentedCopy(of: path, options: CaptureOptions(), comment: { _ in nil }) { _ in
        pieces += 1
        return pieces < 3
      } proceed: { _, _, _ in
        true
      }
      #expect(pieces == 3 && copy.packets == 1)
    }
  }
}
