import Bytes
import Foundation
import HTTP2
import Testing

/// One line of `Vectors/vectors.jsonl`: bytes, what the RFCs prescribe, and what other implementations say of them.
struct Vector: Decodable, Sendable, CustomTestStringConvertible {
  struct Block: Decodable, Sendable {
    var hex: String
    var fields: [[String]]?
    var error: String?
    var tableSize: Int?
    var tableEntries: Int?
  }

  struct Prescribed: Decodable, Sendable {
    var error: String
    var scope: String
    var rfc: String
    var stream: UInt32?
  }

  var kind: String
  var name: String
  var blocks: [Block]?
  var tableLimit: Int?
  var hex: String?
  var prefaceAndSettings: String?
  var prescribed: Prescribed?

  var testDescription: String { name }

  static let all: [Vector] = {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let file = Bundle.module.url(forResource: "vectors", withExtension: "jsonl", subdirectory: "Vectors"),
      let text = try? String(contentsOf: file, encoding: .utf8)
    else { return [] }
    return text.split(separator: "\n").compactMap { try? decoder.decode(Vector.self, from: Data($0.utf8)) }
  }()
  static let ofBlocks = all.filter { $0.kind == "hpack" }
  static let ofFrames = all.filter { $0.kind == "frames" }
}

@Suite("HTTP/2 vectors") struct VectorTests {
  @Test("All vectors are read") func areThere() {
    #expect(Vector.ofBlocks.count == 37)
    #expect(Vector.ofFrames.count == 47)
  }

  @Test("Field blocks are decoded as RFC 7541 and its appendix C say", arguments: Vector.ofBlocks)
  func block(vector: Vector) throws {
    var decoder = HPACKDecoder()
    var list = FieldList()
    if let limit = vector.tableLimit {
      decoder.announce(tableSize: limit)
      decoder.acknowledge()
    }
    for block in try #require(vector.blocks) {
      let fault = decoder.decode([UInt8](hex: block.hex).rawBytes, into: &list)
      if let error = block.error {
        let section = try #require(fault).section
        #expect(error.hasPrefix(section) || Self.alsoCited[error] == section, "\(error) is \(section)")
        #expect(fault?.entryCode == .compressionError)
        continue
      }
      #expect(fault == nil)
      #expect(!list.isCut)
      #expect(texts(list) == block.fields?.map { "\($0[0]): \($0[1])" })
      #expect(list.fields.allSatisfy { $0.isNameKnown && $0.isValueKnown })
      #expect(decoder.knownSize == block.tableSize)
      #expect(decoder.knownEntries == block.tableEntries)
    }
  }

  /// The section of another rule that the same bytes break.
  private static let alsoCited = ["RFC 7541 5.1, 3.1": "RFC 7541 5.1"]

  @Test("Frames break the rules that the vectors name, and no others", arguments: Vector.ofFrames, [0, 1, 7])
  func frames(vector: Vector, piece: Int) throws {
    let hex = try #require(vector.hex)
    let bytes = [UInt8](hex: (vector.prefaceAndSettings ?? "") + hex)
    guard piece != 1 || bytes.count < 20_000 else { return }
    let log = read(bytes, pieces: piece)
    guard let prescribed = vector.prescribed else {
      #expect(log.violations.isEmpty)
      return
    }
    let violation = try #require(log.violations.first)
    #expect(violation.code.description == prescribed.error)
    #expect(violation.isStreamError == (prescribed.scope == "stream"))
    if let stream = prescribed.stream { #expect(violation.stream == stream) }
    // A block that cannot be decompressed breaks a rule of RFC 7541.
    if prescribed.error != "COMPRESSION_ERROR" {
      #expect(prescribed.rfc.hasPrefix(violation.rule.section), "\(violation)")
    }
  }

  @Test("Good requests have their fields and their content", arguments: Vector.ofFrames.filter { $0.prescribed == nil })
  func requests(vector: Vector) throws {
    let bytes = [UInt8](hex: (vector.prefaceAndSettings ?? "") + (try #require(vector.hex)))
    let log = read(bytes, pieces: 0)
    for section in log.sections where section.kind == .request {
      #expect(section.extent == .whole)
      #expect(section.fields.contains { $0.hasPrefix(":path: /3/device/") })
      #expect(log.ended.contains(section.stream))
    }
    for content in log.contents.values where !content.isEmpty { #expect(content.first == UInt8(ascii: "{")) }
  }

  private func read(_ bytes: [UInt8], pieces: Int) -> ConnectionLog {
    var (reader, log) = (ConnectionReader(), ConnectionLog())
    var offset = 0
    while offset < bytes.count {
      let end = pieces == 0 ? bytes.count : min(bytes.count, offset + pieces)
      reader.read(
        bytes.rawBytes.extracting(offset..<end), from: .client, at: offset, arrival: arrival(1), into: &log)
      offset = end
    }
    reader.finish(.client, into: &log)
    reader.finish(.server, into: &log)
    #expect(!log.isSlotShared)
    return log
  }
}

extension Rule {
  var entryCode: ErrorCode { Violation(self).code }
}
