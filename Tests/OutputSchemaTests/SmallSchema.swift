import OutputSchema

/// A schema with one of everything, in which renderers and checks can be followed by eye.
extension Schema {
  static let small = Schema(
    "small", title: "A small output", form: .document,
    text: ["First paragraph. It has two sentences.", "`code` here."],
    root: .object([
      Field("schema", .exactly(1), "Version."),
      Field("kind", .word("small"), "Which document it is."),
      Field("count", .integer, "How many.", of: .run),
      Field("latency_ms", .number, "How long.", unit: .milliseconds, of: .measured, when: "one was measured"),
      Field("added", .boolean, "Added later.", since: "0.2"),
      Field("state", state, "What it does."),
      Field("by_status", .map(key: .integer, value: .integer), "Counts."),
      Field("by_state", .map(key: state, value: .integer), "Counts."),
      Field("pairs", .array(.tuple([.number, .integer])), "Pairs."),
      Field("topic", .either([.text, .null]), "A topic or null."),
      Field("first", .thing, "A thing."),
      Field("things", .array(.thing), "Things."),
      Field("time", .time, "When."),
      Field("bytes", .hexadecimal, "Bytes."),
      Field("base64", .string(.base64), "Other bytes."),
      Field("any", .anything, "Whatever | it is."),
    ]),
    example: #"{"schema": 1, "kind": "small"}"#)

  static let smallLines = Schema(
    "lines", title: "Lines", form: .lines, text: ["Lines."],
    root: .choice(
      by: "type",
      [
        .init("a", "Kind a.", [Field("x", .integer, "An x.")]),
        .init("b", "Kind b.", [Field("y", .object([Field("z", .text, "A z.")]), "A y.")]),
      ]),
    example: #"{"type":"a","x":1}"#)

  /// A document that is valid.
  static let smallDocument: JSONValue = [
    "schema": 1, "kind": "small", "count": 3, "latency_ms": .number("1.5"), "added": true, "state": "on",
    "by_status": ["8": 1], "by_state": ["off": 2], "pairs": [[.number("0.5"), 1]], "topic": .null,
    "first": ["name": "a"], "things": [["name": "b"], ["name": "c"]], "time": "2026-01-02T03:04:05.25Z",
    "bytes": "00ff", "base64": "AA==", "any": ["what": ["ever": 1]],
  ]

  private static let state: Shape = .values(["on": "It runs.", "off": "It does not."])
}

extension Shape {
  fileprivate static let thing = named(
    Definition("some thing", "A thing with a name.", .object([Field("name", .text, "Its name.")])))
}

extension JSONValue {
  subscript(_ name: String) -> JSONValue? {
    get {
      guard case .object(let members) = self else { return nil }
      return members.first { $0.name == name }?.value
    }
    set {
      guard case .object(var members) = self else { return }
      let index = members.firstIndex { $0.name == name }
      if let newValue {
        let member = Member(name, newValue)
        if let index { members[index] = member } else { members.append(member) }
      } else if let index {
        members.remove(at: index)
      }
      self = .object(members)
    }
  }

  /// The same with another value for one member, or without it.
  func with(_ name: String, _ value: JSONValue?) -> JSONValue {
    var changed = self
    changed[name] = value
    return changed
  }
}
