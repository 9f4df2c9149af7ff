import Bytes
import Foundation
import HTTP2
import TestSupport
import Testing

/// Other implementations of HPACK, as processes: libnghttp2 (Debian's) and hpack (PyPI), where they are installed.
enum Opinions {
  struct Case: Codable {
    var limit: Int
    var blocks: [String]
  }

  private static let script = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "Opinions/opinions.py").path

  /// The Python with hpack, which `Scripts/test` installs, or that of the system.
  private static let python: String = {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let own = root.appending(path: ".build/hpack/bin/python").path
    return FileManager.default.isExecutableFile(atPath: own) ? own : "python3"
  }()

  /// The decoders that are there.
  static let names: [String] = {
    guard let output = try? ExternalTool.run(python, [script, "--list"]) else { return [] }
    return String(decoding: output, as: UTF8.self).split(whereSeparator: \.isWhitespace).map(String.init)
  }()

  static func of(_ cases: [Case]) throws -> [[String: [[[String]]?]]] {
    let encoder = JSONEncoder()
    let input = try cases.reduce(into: Data()) {
      $0.append(try encoder.encode($1))
      $0.append(0x0a)
    }
    let output = try ExternalTool.run(python, [script], input: [UInt8](input))
    return try String(decoding: output, as: UTF8.self).split(separator: "\n").map {
      try JSONDecoder().decode([String: [[[String]]?]].self, from: Data($0.utf8))
    }
  }
}

@Suite("Second opinions on HPACK", .enabled(if: !Opinions.names.isEmpty, "neither libnghttp2 nor python hpack is here"))
struct OpinionTests {
  @Test("Blocks of our encoder are decoded by others to what was encoded") func encoder() throws {
    var cases: [Opinions.Case] = []
    var expected: [[[[String]]]] = []
    for seed in seeds(100, of: 500) {
      var (generator, encoder) = (BlockGenerator(seed: seed), HPACKEncoder())
      var (blocks, fields): ([String], [[[String]]]) = ([], [])
      for _ in 0..<20 {
        if generator.random.happens(oneIn: 6) { encoder.resize(to: generator.random.number(0...4_096)) }
        let block = generator.block()
        blocks.append(encoder.block(block).hex)
        fields.append(block.map { [Array($0.name.utf8).hex, Array($0.value.utf8).hex] })
      }
      cases.append(Opinions.Case(limit: 4_096, blocks: blocks))
      expected.append(fields)
    }
    for (opinions, fields) in zip(try Opinions.of(cases), expected) {
      for (name, opinion) in opinions { #expect(opinion == fields, "\(name)") }
    }
  }

  @Test("Damaged and random blocks are decoded, or refused, as others do") func decoder() throws {
    var cases: [Opinions.Case] = []
    for seed in seeds(300, of: 5_000) {
      var (generator, encoder) = (BlockGenerator(seed: seed), HPACKEncoder())
      var blocks: [[UInt8]] = []
      for _ in 0..<generator.random.number(1...4) {
        var block = encoder.block(generator.block())
        switch generator.random.number(0...5) {
        case 0...2: break
        case 3:
          for _ in 0..<3 {
            block[generator.random.number(0...block.count - 1)] ^= 1 << UInt8(generator.random.number(0...7))
          }
        case 4: block.removeLast(generator.random.number(0...block.count - 1))
        default: block = generator.random.bytes(generator.random.number(1...40))
        }
        blocks.append(block)
      }
      cases.append(Opinions.Case(limit: 4_096, blocks: blocks.map(\.hex)))
    }
    var (agreed, refused) = (0, 0)
    for (number, opinions) in try Opinions.of(cases).enumerated() {
      let mine = decode(cases[number])
      for (name, opinion) in opinions where !Self.differs(name, cases[number], opinion, mine) {
        #expect(opinion == mine, "\(name) on \(cases[number].blocks)")
        agreed += 1
        if opinion.contains(nil) { refused += 1 }
      }
    }
    // Both kinds occur, so the comparison is one.
    #expect(agreed >= cases.count && refused > cases.count / 10)
  }

  /// Where others are known to differ: a size update that is owed, and integers that only they refuse or take.
  private static func differs(
    _ name: String, _ test: Opinions.Case, _ opinion: [[[String]]?], _ mine: [[[String]]?]
  ) -> Bool {
    false
  }

  private func decode(_ test: Opinions.Case) -> [[[String]]?] {
    var (decoder, list) = (HPACKDecoder(), FieldList())
    var result: [[[String]]?] = []
    for block in test.blocks {
      guard decoder.decode([UInt8](hex: block).rawBytes, into: &list) == nil else { return result + [nil] }
      result.append(
        list.fields.map { [Array(copying: list.name(of: $0)).hex, Array(copying: list.value(of: $0)).hex] })
    }
    return result
  }
}
