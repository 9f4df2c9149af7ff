import BinaryProtocol
import Bytes
import Testing

/// Lines as somebody else's program may write them.
@Suite("Members of a record")
struct RecordMembersTests {
  /// Name, kind and value of each member.
  private func members(_ line: String) throws(RecordError) -> [String]? {
    let bytes = Array(line.utf8)
    guard var members = try RecordMembers(bytes.rawBytes) else { return nil }
    func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
    var said: [String] = []
    while let member = members.next() { said.append("\(text(member.name)) \(member.kind) \(text(member.value))") }
    return said
  }

  @Test("Members come in their order, each with its kind and its place")
  func order() throws {
    for (line, expected) in [
      ("{}", []), ("{ }", []), ("\t\r\n {} \n", []), (#"{"a":1}"#, ["a number 1"]),
      (
        #"{"a":-1.5e3,"b":"x","c":[1,[2]],"d":{"e":{}},"f":null,"g":true}"#,
        [
          "a number -1.5e3", "b string x", "c structure [1,[2]]", #"d structure {"e":{}}"#, "f literal null",
          "g literal true",
        ]
      ),
      // White space wherever it may stand.
      (
        "  { \"a\" \t: \r\n 1 , \"b\" :\t\"x y\" , \"c\" : [ 1 , 2 ] , \"d\" : false }  ",
        ["a number 1", "b string x y", "c structure [ 1 , 2 ]", "d literal false"]
      ),
      ("{\"a\":0\t,\"b\":9\r}", ["a number 0", "b number 9"]), ("{\"a\":10\n}", ["a number 10"]),
      // Brackets, colons, commas and quotes inside strings.
      (
        #"{"a\"b:":"},{\"","c":["]}\"",{"]":"\\"}],"":""}"#,
        [#"a\"b: string },{\""#, #"c structure ["]}\"",{"]":"\\"}]"#, " string "]
      ),
      (#"{"a":"\\","b":"\\\""}"#, [#"a string \\"#, #"b string \\\""#]),
    ] {
      #expect(try members(line) == expected, "\(line)")
    }
  }

  @Test("A line without anything is no record; anything but an object is an error")
  func noObject() throws {
    for line in ["", " ", "\t\n\r "] { #expect(try members(line) == nil) }
    for line in ["[]", "1", "\"a\"", "{", "{\"a\":}", "x", "}", "{} {}", " [", "{\"a\":1"] {
      #expect(throws: RecordError("not a JSON object"), "\(line)") { try members(line) }
    }
  }

  /// Applies `body` to the first member of an object.
  private func first<T>(
    _ value: String, _ body: (RecordMembers.Member, borrowing RecordMembers) throws(RecordError) -> T
  ) throws -> T {
    let bytes = Array(#"{"key":\#(value)}"#.utf8)
    guard var members = try RecordMembers(bytes.rawBytes), let member = members.next() else {
      throw RecordError("no member")
    }
    return try body(member, members)
  }

  private func number(_ value: String, most: Int? = nil) throws -> Int {
    try first(value) { member, members throws(RecordError) in
      if let most { try members.number(member, "n", most: most) } else { try members.number(member, "n") }
    }
  }

  @Test("A whole number is digits alone, up to a limit")
  func numbers() throws {
    for (value, most, expected) in [
      ("0", 0, 0), ("9", 9, 9), ("10", 10, 10), ("1234567890", nil, 1_234_567_890),
      ("999999999999", nil, 999_999_999_999), ("999999999999999999", Int.max, 999_999_999_999_999_999),
    ] {
      #expect(try number(value, most: most) == expected)
    }
    for (value, most, text) in [
      ("1", 0, "'n' exceeds 0"), ("10", 9, "'n' exceeds 9"), ("1000000000000", nil, "'n' exceeds 999999999999"),
      ("1234567890123456789", Int.max, "'n' is not a whole number"), ("-1", nil, "'n' is not a whole number"),
      ("1.0", nil, "'n' is not a whole number"), ("1e3", nil, "'n' is not a whole number"),
      ("true", nil, "'n' is not a whole number"), ("null", nil, "'n' is not a whole number"),
      (#""1""#, nil, "'n' is not a whole number"), ("[1]", nil, "wrong type of value for 'n'"),
      ("{}", nil, "wrong type of value for 'n'"),
    ] as [(String, Int?, String)] {
      #expect(throws: RecordError(text), "\(value)") { try number(value, most: most) }
    }
  }

  @Test("A string is between quotes")
  func strings() throws {
    #expect(try first(#""x""#) { member, members throws(RecordError) in try members.string(member, "s") } == 8..<9)
    for value in ["1", "null", "[]", "{}"] {
      #expect(throws: RecordError("wrong type of value for 's'"), "\(value)") {
        try first(value) { member, members throws(RecordError) in try members.string(member, "s") }
      }
    }
  }

  @Test("A name is that, and neither a part of it nor more")
  func names() throws {
    for (name, isIt) in [("key", true), ("ke", false), ("keys", false), ("kez", false), ("", false)]
      as [(StaticString, Bool)]
    {
      #expect(try first("1") { member, members throws(RecordError) in members.isName(name, of: member) } == isIt)
    }
  }

  @Test("Of all bytes four are white space and ten are digits")
  func characters() {
    for byte in 0...255 as ClosedRange<UInt8> {
      #expect(RecordMembers.isSpace(byte) == [0x20, 0x09, 0x0a, 0x0d].contains(byte))
      #expect(RecordMembers.isDigit(byte) == Array("0123456789".utf8).contains(byte))
    }
  }

  // MARK: kinds

  private func kind(_ line: String) throws(RecordError) -> (kind: BinaryProtocol.RecordKind, others: Int) {
    let bytes = Array(line.utf8)
    var kind = BinaryProtocol.RecordKind()
    var others = 0
    guard var members = try RecordMembers(bytes.rawBytes) else { return (kind, 0) }
    while let member = members.next() {
      if try !kind.read(member, of: members) { others += 1 }
    }
    return (kind, others)
  }

  @Test("The type tells a notification, a capture and others")
  func kinds() throws {
    for (line, notification, capture, other, others) in [
      (#"{"type":"notification","a":1}"#, true, false, false, 1), (#"{"type":"capture"}"#, false, true, false, 0),
      (#"{"schema":1,"type":"response","b":2,"c":3}"#, false, false, true, 2), ("{}", false, false, false, 0),
      // Not a type that can be known.
      (#"{"type":7,"typ":"notification"}"#, false, false, false, 1), (#"{"type":null}"#, false, false, false, 0),
      (#"{"type":""}"#, false, false, true, 0), (#"{"type":"notifications"}"#, false, false, true, 0),
    ] {
      let (kind, passed) = try kind(line)
      #expect([kind.isNotification, kind.isCapture, kind.isOther] == [notification, capture, other], "\(line)")
      #expect(passed == others, "\(line)")
    }
    #expect(throws: RecordError("wrong type of value for 'type'")) { try kind(#"{"type":[]}"#) }
    #expect(throws: RecordError("'schema' is not a whole number")) { try kind(#"{"schema":"1"}"#) }
  }

  @Test("A record has a type; a capture has the schema that is understood, or none")
  func checked() throws {
    for line in [
      #"{"type":"capture"}"#, #"{"type":"capture","schema":1}"#, #"{"type":"notification","schema":2}"#,
      #"{"schema":3,"type":"other"}"#,
    ] {
      #expect(throws: Never.self, "\(line)") { try kind(line).kind.check() }
    }
    for line in ["{}", #"{"type":1}"#, #"{"schema":1}"#] {
      #expect(throws: RecordError("not a record: missing field 'type'"), "\(line)") { try kind(line).kind.check() }
    }
    for schema in [0, 2] {
      #expect(
        throws: RecordError("unsupported schema \(schema) of records; this apnscope reads schema 1")
      ) { try kind(#"{"type":"capture","schema":\#(schema)}"#).kind.check() }
    }
  }
}
