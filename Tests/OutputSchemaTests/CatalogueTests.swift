import Foundation
import Testing

@testable import OutputSchema

/// The descriptions themselves, held against the outputs that the repository keeps.
@Suite("the catalogue of outputs")
struct CatalogueTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  private static func files(in folder: String, endingIn ending: String) throws -> [URL] {
    try FileManager.default.contentsOfDirectory(
      at: root.appending(path: folder), includingPropertiesForKeys: nil
    ).filter { $0.lastPathComponent.hasSuffix(ending) }.sorted { $0.path < $1.path }
  }

  /// Documents that are kept, with the schema of each by its kind.
  private static func documents() throws -> [(file: URL, schema: Schema, value: JSONValue)] {
    let kinds: [JSONValue: Schema] = ["load": .result, "simulate": .ledger, "capacity": .capacity]
    var documents: [(file: URL, schema: Schema, value: JSONValue)] = []
    for folder in ["Reports/benchmark", "Reports/capacity", "Tests/MeasurementTests/Results"] {
      for file in try files(in: folder, endingIn: ".json") {
        let value = try JSONValue(parsing: [UInt8](Data(contentsOf: file)))
        let kind = try #require(value["kind"], "\(file.path)")
        documents.append((file, try #require(kinds[kind], "\(file.path) is of an unknown kind"), value))
      }
    }
    return documents
  }

  // MARK: outputs that are kept

  @Test("Every recorded baseline is valid")
  func baselines() throws {
    let files = try Self.files(in: "Traces", endingIn: ".jsonl")
    #expect(files.count > 30)
    for file in files {
      #expect(try Schema.records.check([UInt8](Data(contentsOf: file))) == [], "\(file.lastPathComponent)")
    }
  }

  @Test("Every document that is kept is valid")
  func keptDocuments() throws {
    let documents = try Self.documents()
    #expect(Set(documents.map(\.schema.name)) == ["result", "ledger", "capacity"])
    for (file, schema, value) in documents {
      #expect(schema.check(value.text, age: .any) == [], "\(file.path)")
    }
  }

  /// One record of each type, and each document with one element of each of its lists.
  private static func specimens() throws -> [(schema: Schema, value: JSONValue)] {
    var records: [JSONValue: JSONValue] = [:]
    for file in try files(in: "Traces", endingIn: ".jsonl") {
      for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
        let record = try JSONValue(parsing: Array(line.utf8))
        guard let type = record["type"] else { continue }
        // The one with most fields says most.
        if record.memberCount > records[type]?.memberCount ?? 0 { records[type] = record }
      }
    }
    #expect(records.count == 10)
    var specimens: [(schema: Schema, value: JSONValue)] = []
    for record in records.values { specimens.append((.records, record)) }
    for (_, schema, value) in try documents() { specimens.append((schema, value.shortened)) }
    return specimens
  }

  private func problems(_ schema: Schema, _ value: JSONValue) -> [Schema.Problem] {
    // Of lines there is one.
    schema.check(value.text.replacing("\n", with: ""), age: .any).map {
      Schema.Problem($0.path.replacing("line 1: ", with: ""), $0.kind)
    }
  }

  @Test("A field that is taken out of an output is found, or need not be there")
  func takenOut() throws {
    var found: Set<String> = []
    for (schema, value) in try Self.specimens() {
      #expect(problems(schema, value) == [], "\(schema.name)")
      for change in value.changes(at: "$", .taking) {
        let problems = problems(schema, change.value)
        #expect(problems == [] || problems == [.init(change.path, .missingField)], "\(change.path): \(problems)")
        if !problems.isEmpty { found.insert("\(schema.name) \(change.path)") }
      }
    }
    #expect(found.count > 200, "\(found.count)")
  }

  @Test("A field that is added to an output is found, except in a payload")
  func added() throws {
    for (schema, value) in try Self.specimens() {
      for change in value.changes(at: "$", .adding) where !change.path.hasPrefix("$.payload") {
        #expect(problems(schema, change.value).contains { $0.path == change.path }, "\(schema.name) \(change.path)")
      }
    }
  }

  // MARK: the descriptions

  private static let sections: [(schema: Schema, section: Outline.Section)] = Schema.all.flatMap { schema in
    (Outline(schema).sections + Outline([schema.root].definitions).sections).map { (schema: schema, section: $0) }
  }

  @Test("Every schema has a name and a title of its own, and an example that has nothing unknown")
  func examples() {
    #expect(Set(Schema.all.map(\.name)).count == Schema.all.count)
    #expect(Set(Schema.all.map(\.title)).count == Schema.all.count)
    for schema in Schema.all where schema.form != .settings {
      // A long one is cut short.
      let problems = schema.check(schema.example).filter { $0.kind != .missingField }
      #expect(problems == [], "\(schema.name)")
    }
  }

  @Test("Names of fields are in snake case, each once in its object")
  func names() {
    for (schema, section) in Self.sections {
      let names = section.rows.map(\.name)
      #expect(Set(names).count == names.count, "\(schema.name) \(section.title)")
      for name in names {
        #expect(name.allSatisfy { $0.isLowercase || $0.isNumber || $0 == "_" }, "\(schema.name) \(name)")
      }
    }
  }

  @Test("Every field and every name is explained in sentences")
  func sentences() {
    for (schema, section) in Self.sections {
      for field in section.rows {
        #expect(field.text.hasSuffix("."), "\(schema.name) \(section.title) \(field.name)")
        if case .when(let condition) = field.presence { #expect(!condition.hasSuffix("."), "\(field.name)") }
      }
      for (field, values) in section.names {
        #expect(!values.isEmpty && values.allSatisfy { !$0.text.isEmpty }, "\(field)")
        #expect(Set(values.map(\.name)).count == values.count, "\(field)")
      }
    }
  }

  @Test("A number whose name ends in a unit has that unit")
  func units() {
    let endings: [(String, Set<Field.Unit>)] = [
      ("_bytes_per_s", [.bytesPerSecond]), ("_bits_per_s", [.bitsPerSecond]), ("_per_s", [.perSecond]),
      ("_ms", [.milliseconds]), ("_us", [.microseconds]), ("_bytes", [.bytes]), ("_s", [.seconds, .unixSeconds]),
    ]
    for (schema, section) in Self.sections {
      for field in section.rows where [.integer, .number].contains(field.shape) {
        guard let (_, units) = endings.first(where: { field.name.hasSuffix($0.0) }) else { continue }
        #expect(field.unit.map { units.contains($0) } == true, "\(schema.name) \(section.title) \(field.name)")
      }
    }
  }
}

extension JSONValue {
  enum Change { case taking, adding }

  var memberCount: Int { if case .object(let members) = self { members.count } else { 0 } }

  /// The same with the first element of each list; a list of numbers stays.
  var shortened: JSONValue {
    switch self {
    case .array(let elements):
      switch elements.first {
      case .array, .object: .array(elements.prefix(1).map(\.shortened))
      default: self
      }
    case .object(let members): .object(members.map { Member($0.name, $0.value.shortened) })
    default: self
    }
  }

  /// Every value that differs by one member, which is taken out of an object or added to one, and where.
  func changes(at path: String, _ change: Change) -> [(path: String, value: JSONValue)] {
    switch self {
    case .array(let elements):
      return elements.indices.flatMap { index in
        elements[index].changes(at: "\(path)[\(index)]", change).map { inner -> (path: String, value: JSONValue) in
          var changed = elements
          changed[index] = inner.value
          return (inner.path, .array(changed))
        }
      }
    case .object(let members):
      let inner = members.indices.flatMap { index -> [(path: String, value: JSONValue)] in
        let place = "\(path).\(members[index].name)"
        return members[index].value.changes(at: place, change).map { inner -> (path: String, value: JSONValue) in
          var changed = members
          changed[index].value = inner.value
          return (inner.path, .object(changed))
        }
      }
      switch change {
      case .adding:
        return inner + [(path: "\(path).unexpected", value: .object(members + [Member("unexpected", .null)]))]
      case .taking:
        return inner
          + members.indices.map { index -> (path: String, value: JSONValue) in
            var changed = members
            let taken = changed.remove(at: index)
            return ("\(path).\(taken.name)", .object(changed))
          }
      }
    default: return []
    }
  }
}
