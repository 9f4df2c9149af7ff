import OutputSchema
import Testing

/// Renderings of a small schema.
@Suite("rendering schemas")
struct RendererTests {
  private let schema = Schema.small.jsonSchema

  private func property(_ name: String) throws -> JSONValue { try #require(schema["properties"]?[name]) }

  @Test("A JSON Schema says its draft, closes objects, and requires what is always there")
  func closed() {
    #expect(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema")
    #expect(schema["title"] == "A small output")
    #expect(schema["type"] == "object" && schema["additionalProperties"] == false)
    guard case .array(let required) = schema["required"] else {
      Issue.record("nothing is required")
      return
    }
    #expect(required.contains("count") && required.contains("state"))
    #expect(!required.contains("latency_ms") && !required.contains("added"))
  }

  @Test("Each shape has its keywords")
  func shapes() throws {
    #expect(try property("schema")["const"] == 1)
    #expect(try property("kind")["const"] == "small")
    #expect(try property("count")["type"] == "integer")
    #expect(
      try property("state")["oneOf"] == [
        ["const": "on", "description": "It runs."], ["const": "off", "description": "It does not."],
      ])
    #expect(try property("by_status")["propertyNames"] == ["pattern": "^[0-9]+$"])
    #expect(try property("by_status")["additionalProperties"] == ["type": "integer"])
    #expect(try property("by_state")["propertyNames"] == ["enum": ["on", "off"]])
    #expect(try property("pairs")["items"]?["prefixItems"] == [["type": "number"], ["type": "integer"]])
    #expect(try property("pairs")["items"]?["items"] == false)
    #expect(try property("topic")["anyOf"] == [["type": "string"], ["type": "null"]])
    #expect(try property("time")["format"] == "date-time")
    #expect(try property("any") == ["description": "Whatever | it is."])
  }

  @Test("A file of settings can leave out any of them, and has no others")
  func settings() {
    let schema = Schema("few", title: "Few", form: .settings, text: [], root: Schema.small.root, example: "")
    #expect(schema.jsonSchema["required"] == nil && schema.jsonSchema["additionalProperties"] == false)
    #expect(schema.check("{\"count\": 1}") == [])
    #expect(schema.check("{\"size\": 1}") == [.init("$.size", .unknownField)])
  }

  @Test("A definition is there once, and is referred to")
  func definitions() throws {
    #expect(try property("first")["$ref"] == "#/$defs/some_thing")
    #expect(try property("things")["items"] == ["$ref": "#/$defs/some_thing"])
    #expect(schema["$defs"]?["some_thing"]?["required"] == ["name"])
  }

  @Test("A description has the meaning, the window, when the field is there, and the unit")
  func descriptions() throws {
    #expect(
      try property("latency_ms")["description"]
        == "How long. Of the measured phase. Only when one was measured. In ms.")
    #expect(try property("added")["description"] == "Added later. Since 0.2.")
  }

  @Test("The schema of lines is that of one line, with an alternative for each kind")
  func lines() throws {
    let schema = Schema.smallLines.jsonSchema
    #expect(schema["title"] == "Lines: one line")
    guard case .array(let alternatives) = schema["oneOf"] else {
      Issue.record("no alternatives")
      return
    }
    #expect(alternatives.map { $0["title"] } == ["a", "b"])
    #expect(alternatives.first?["properties"]?["type"]?["const"] == "a")
    #expect(alternatives.first?["required"] == ["type", "x"])
  }

  @Test("A page has a table for each object, and what is used in several places once")
  func markdown() {
    let lines = Schema.markdown(of: [.smallLines, .small]).split(separator: "\n").map(String.init)
    for line in [
      "# Lines", "## `a`", "| `type` | \"a\" | Which kind of object it is. |", "| `x` | integer | An x. |", "## `b.y`",
      "# A small output", "| `count` | integer | How many. Of the whole run. |",
      "| `latency_ms` | number (ms) | How long. Of the measured phase. Only when one was measured. |",
      "| `added` | boolean | Added later. Since 0.2. |", "| `by_status` | map: integer to integer | Counts. |",
      "| `pairs` | array of [number, integer] | Pairs. |", "| `topic` | string or null | A topic or null. |",
      "| `things` | array of some thing | Things. |", "| `any` | any JSON | Whatever \\| it is. |", "Names in `state`:",
      "- `on`: It runs.", "## Some thing", "A thing with a name.",
    ] {
      #expect(lines.contains(line), "\(line)")
    }
    #expect(lines.count { $0 == "## Some thing" } == 1)
    let shared = lines.firstIndex(of: "# Objects that are used in several places") ?? 0
    #expect(shared > lines.firstIndex(of: "# A small output") ?? 0)
  }

  @Test("A manual page begins lines with sentences, and escapes what troff would take")
  func manual() {
    let lines = Schema.small.manual(program: "apnscope 1", date: "May 1, 2026").split(separator: "\n").map(String.init)
    #expect(
      Array(lines[1...6]) == [
        ".Dd May 1, 2026", ".Dt APNSCOPE-SMALL 5", ".Os apnscope 1", ".Sh NAME", ".Nm apnscope-small",
        ".Nd a small output",
      ])
    for line in [
      "First paragraph.", "It has two sentences.", "\\fBcode\\fR here.", ".Sh FIELDS", ".It Va count Pq integer",
      ".It Va latency_ms Pq number, ms", "How long.", ".It Li on", ".Ss some thing",
      "{\\(dqschema\\(dq: 1, \\(dqkind\\(dq: \\(dqsmall\\(dq}", ".Xr apnscope 1 ,",
    ] {
      #expect(lines.contains(line), "\(line)")
    }
    let (begun, ended) = (lines.count { $0.hasPrefix(".Bl") }, lines.count { $0 == ".El" })
    #expect(begun == ended)
  }
}
