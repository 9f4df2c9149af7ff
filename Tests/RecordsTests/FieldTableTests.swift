import Bytes
import Foundation
import OutputSchema
import Testing

@testable import BinaryProtocol
@testable import Records

/// The one table of fields against what is written, and what is documented.
@Suite("Fields of records")
struct FieldTableTests {
  private static let traces = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Traces")

  static let baselines =
    ((try? FileManager.default.contentsOfDirectory(atPath: traces.path)) ?? []).filter { $0.hasSuffix(".jsonl") }
    .sorted()

  private static func names(of type: RecordType?) -> [String] { RecordField.names(of: type).map(\.description) }

  /// The names of a record's members in their order, those of objects such as `tls` with its name before them.
  private static func members(of line: [UInt8]) throws -> [String] {
    func names(_ members: consuming RecordMembers, _ prefix: String) throws -> [String] {
      var found: [String] = []
      while let member = members.next() {
        let name = String(decoding: Array(copying: members.line.extracting(member.name)), as: UTF8.self)
        let object = RecordField.objects.first { $0.name.description == name }
        if let object, prefix.isEmpty, let inner = try RecordMembers(members.line.extracting(member.value)) {
          found += try names(inner, object.prefix.description)
        } else {
          found.append(prefix + name)
        }
      }
      return found
    }
    guard let members = try RecordMembers(line.rawBytes) else { return [] }
    return try names(members, "")
  }

  @Test("Each record has fields of its type's rows only, in the order of the table", arguments: baselines)
  func written(name: String) throws {
    let text = try String(contentsOf: Self.traces.appending(path: name), encoding: .utf8)
    for line in text.split(separator: "\n") {
      let members = try Self.members(of: Array(line.utf8))
      let word = try #require(line.firstMatch(of: /^{"type":"(\w+)"/))
      let type = try #require(RecordType(rawValue: String(word.1)))
      let all = Self.names(of: type)
      let places = members.compactMap { all.firstIndex(of: $0) }
      #expect(places.count == members.count, "\(members) \(all)")
      #expect(places == places.sorted(), "\(members)")
    }
  }

  @Test("The documented fields of each type are its rows", arguments: RecordType.allCases)
  func documented(type: RecordType) throws {
    guard case .choice(_, let alternatives) = Schema.records.root else {
      Issue.record("records are no choice of types")
      return
    }
    let fields = try #require(alternatives.first { $0.name == type.rawValue }).fields
    let names = fields.flatMap { field -> [String] in
      guard case .object(let inner) = field.shape else { return [field.name] }
      return inner.map { "\(field.name)_\($0.name)" }
    }
    // Its column is the last one, as it came after those of 0.2.
    let last = names.filter { $0 == "tls_alpn" }
    #expect(["type"] + names.filter { $0 != "tls_alpn" } + last == Self.names(of: type))
  }

  @Test("No name is in the table twice, and every type has rows")
  func distinct() {
    #expect(Set(Self.names(of: nil)).count == RecordField.fields.count)
    for type in RecordType.allCases { #expect(Self.names(of: type).count > 3) }
  }

  @Test("A field that a table of columns lacks is left out, and the others keep their columns")
  func lacking() {
    var writer = CSVFieldWriter(columns: ["type", "first", "last"], capacity: 64)
    writer.begin("fate")
    writer.field("connection", 7)
    writer.field("first", 1)
    writer.field("fate", word: "accepted")
    writer.field("last", 2)
    writer.end()
    #expect(String(decoding: Array(copying: writer.output.bytes), as: UTF8.self) == "type,first,last\nfate,1,2\n")
  }
}
