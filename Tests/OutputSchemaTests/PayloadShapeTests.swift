import Payload
import Testing

@testable import OutputSchema

/// The descriptions of payloads beside what the judge and the renderer say.
@Suite("Shapes of payloads")
struct PayloadShapeTests {
  private func values(_ shape: Shape) -> [String: String] {
    guard case .enumeration(let values) = shape else { return [:] }
    return Dictionary(uniqueKeysWithValues: values.map { ($0.name, $0.text) })
  }

  @Test("Every rule is described in its own words, and every kind, severity and note has a description")
  func complete() throws {
    let rules = values(.payloadRule)
    #expect(Set(rules.keys) == Set(PayloadRule.allCases.map(\.code)))
    for rule in PayloadRule.allCases { #expect(rules[rule.code] == rule.explanation) }
    #expect(Set(values(.payloadKind).keys) == Set(PayloadKind.allCases.map(\.rawValue)))
    #expect(Set(values(.payloadSeverity).keys) == Set(PayloadRule.Severity.allCases.map(\.rawValue)))
    guard case .object(let fields) = Schema.renderings.root,
      case .array(let note)? = fields.first(where: { $0.name == "notes" })?.shape
    else { throw Missing() }
    #expect(Set(values(note).keys) == Set(PayloadRendering.Note.allCases.map(\.rawValue)))
  }

  private struct Missing: Error {}
}
