import OutputSchema
import Testing

@testable import GatewayControl

/// The description of the endpoint, and the operations that it is made from.
@Suite("Description of the control endpoint")
struct ControlDescriptionTests {
  private static let document = ControlDescription.document(version: "1")

  private static func member(_ value: JSONValue?, _ name: String) -> JSONValue? {
    guard case .object(let members)? = value else { return nil }
    return members.first { $0.name == name }?.value
  }

  private static func names(_ value: JSONValue?) -> [String] {
    guard case .object(let members)? = value else { return [] }
    return members.map(\.name)
  }

  private static func references(in value: JSONValue) -> [String] {
    switch value {
    case .object(let members):
      members.flatMap { member in
        if member.name == "$ref", case .string(let text) = member.value { return [text] }
        return references(in: member.value)
      }
    case .array(let elements): elements.flatMap { references(in: $0) }
    default: []
    }
  }

  @Test("Every reference leads to a schema, and every schema of the endpoint is used") func references() {
    let schemas = Set(Self.names(Self.member(Self.member(Self.document, "components"), "schemas")))
    let references = Set(Self.references(in: Self.document).map { String($0.split(separator: "/").last ?? "") })
    #expect(references.isSubset(of: schemas), "\(references.subtracting(schemas))")
    #expect(schemas.subtracting(references).isEmpty, "\(schemas.subtracting(references))")
  }

  @Test("Every operation is described once, with its parameters, and names are not repeated") func operations() {
    let paths = Self.member(Self.document, "paths")
    for operation in ControlOperation.all {
      let described = Self.member(Self.member(paths, operation.path), operation.method.lowercased())
      #expect(Self.member(described, "operationId") == .string(operation.name))
      #expect(Self.names(Self.member(described, "responses")).contains("\(operation.answer.status)"))
      #expect((Self.member(described, "requestBody") != nil) == (operation.body != nil))
    }
    #expect(Set(ControlOperation.all.map(\.name)).count == ControlOperation.all.count)
    #expect(Set(ControlOperation.all.map { $0.method + $0.path }).count == ControlOperation.all.count)
  }

  @Test("Every fault that can be read can be described") func faults() {
    let schemas = Self.member(Self.member(Self.document, "components"), "schemas")
    for name in ["Faults", "FaultChanges"] {
      let described = Self.names(Self.member(Self.member(schemas, name), "properties"))
      #expect(Set(described) == Set(FaultDocument.Key.allCases.map(\.rawValue)), "\(name)")
    }
  }
}
