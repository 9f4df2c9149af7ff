import OutputSchema
import Testing

/// Conversations with the check: a document that is valid but for one thing, and the problem that is found.
@Suite("checking outputs")
struct SchemaCheckTests {
  private let valid = Schema.smallDocument

  private func problems(_ value: JSONValue, _ age: Schema.Age = .current) -> [Schema.Problem] {
    Schema.small.check(value.text, age: age)
  }

  private func problems(_ name: String, _ value: JSONValue?) -> [Schema.Problem] { problems(valid.with(name, value)) }

  @Test("A valid document has no problems")
  func isValid() { #expect(problems(valid) == []) }

  @Test("A field that is always there is missing, one that need not be is not")
  func missing() {
    #expect(problems("count", nil) == [.init("$.count", .missingField)])
    #expect(problems("latency_ms", nil) == [])
    #expect(problems("count", nil).first?.description == "$.count is missing")
  }

  @Test("A field of later versions may be missing in earlier documents only")
  func ages() {
    let earlier = valid.with("added", nil)
    #expect(problems(earlier) == [.init("$.added", .missingField)])
    #expect(problems(earlier, .any) == [])
  }

  @Test("A field of earlier documents is unknown in those of this version")
  func earlier() {
    let schema = Schema(
      "renamed", title: "A renamed field", form: .document, text: [],
      root: .object([Field("new", .integer, "A.", when: "it is so"), Field("old", .integer, "The same.", until: "0.2")]
      ),
      example: "{}")
    #expect(schema.check(#"{"new": 1}"#) == [] && schema.check(#"{"old": 1}"#, age: .any) == [])
    #expect(schema.check(#"{"old": 1}"#) == [.init("$.old", .unknownField)])
    #expect(schema.check(#"{"old": "x"}"#, age: .any).count == 1)
    #expect(!schema.jsonSchema.text.contains("required"))
  }

  @Test("A field that nobody has described is found, at any depth")
  func unknown() {
    #expect(problems("extra", 1) == [.init("$.extra", .unknownField)])
    #expect(
      problems("things", [["name": "b"], ["name": "c", "size": 1]]) == [.init("$.things[1].size", .unknownField)])
    #expect(problems("first", [:]) == [.init("$.first.name", .missingField)])
  }

  @Test("A field that is there twice is found")
  func repeated() {
    guard case .object(let members) = valid else { return }
    #expect(problems(.object(members + [.init("count", 4)])) == [.init("$.count", .repeatedField)])
  }

  @Test(
    "A value of another type is found",
    arguments: [
      ("count", "number", .string("3")), ("count", "fraction", .number("3.5")), ("count", "small", .number("3e-1")),
      ("latency_ms", "text", "1.5"), ("added", "number", 1), ("state", "number", 1), ("schema", "version", 2),
      ("kind", "kind", "large"), ("by_status", "array", []), ("pairs", "object", .object([])), ("topic", "number", 1),
      ("first", "null", .null), ("time", "no zone", "2026-01-02T03:04:05"), ("time", "words", "yesterday at noon, Z"),
      ("time", "no decimals", "2026-01-02T03:04:05.Z"), ("bytes", "upper case", "00FF"), ("bytes", "odd", "0"),
      ("base64", "odd", "AA="), ("base64", "padding", "A==="),
    ] as [(String, String, JSONValue)])
  func types(name: String, what: String, value: JSONValue) {
    let found = problems(name, value)
    #expect(found.count == 1 && found.first?.path == "$.\(name)", "\(what): \(found)")
    if case .type = found.first?.kind {} else { Issue.record("\(what): \(found)") }
  }

  @Test("An integer may have an exponent, as large ones are written")
  func exponents() {
    #expect(problems("count", .number("1e+15")) == [])
    #expect(problems("count", .number("-3")) == [])
    #expect(problems("count", .number("1.5e+15")).count == 1)
  }

  @Test("Of several shapes all are named when the value is of none")
  func either() {
    #expect(problems("topic", 1) == [.init("$.topic", .type(found: "the number 1", expected: "string or null"))])
    #expect(problems("topic", "a") == [])
  }

  @Test("A name that is not in the enumeration is found, as a value and as a key")
  func names() {
    #expect(problems("state", "idle") == [.init("$.state", .unknownValue("idle"))])
    #expect(problems("by_state", ["idle": 1]) == [.init("$.by_state.idle", .unknownValue("idle"))])
    let found = problems("by_status", ["eight": 1])
    #expect(found == [.init("$.by_status.eight", .type(found: "a key", expected: "integer"))])
  }

  @Test("A tuple has exactly its elements")
  func tuples() {
    #expect(problems("pairs", [[1, 1], [1]]) == [.init("$.pairs[1]", .length(found: 1, expected: 2))])
    #expect(problems("pairs", [[1, .number("1.5")]]).map(\.path) == ["$.pairs[0][1]"])
  }

  @Test("The discriminator chooses the fields of a line, and problems have the line's number")
  func lines() {
    func problems(_ text: String) -> [Schema.Problem] { Schema.smallLines.check(text) }
    #expect(problems("{\"type\":\"a\",\"x\":1}\n{\"type\":\"b\",\"y\":{\"z\":\"\"}}\n") == [])
    let exchanged = problems("{\"type\":\"a\",\"x\":1}\n{\"type\":\"b\",\"x\":1}")
    #expect(exchanged.map(\.path) == ["line 2: $.y", "line 2: $.x"])
    #expect(problems("{\"type\":\"c\"}") == [.init("line 1: $.type", .unknownValue("c"))])
    #expect(problems("{\"x\":1}") == [.init("line 1: $.type", .missingField)])
    #expect(problems("[]").map(\.path) == ["line 1: $"])
    let cut = problems("{\"type\":\"a\",\"x\":1}\n{\"type\"")
    if case .syntax = cut.first?.kind {} else { Issue.record("\(cut)") }
  }

  @Test("At most a hundred problems are reported")
  func many() {
    let text = String(repeating: "{}\n", count: 1_000)
    #expect(Schema.smallLines.check(text).count == 100)
  }
}
