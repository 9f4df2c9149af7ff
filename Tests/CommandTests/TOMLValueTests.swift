import Testing

@testable import apnscope

@Suite("TOML values")
struct TOMLValueTests {
  @Test("A document of each kind of value, in tables and arrays")
  func values() throws {
    let table = try #require(
      try TOMLValue(
        parsing: """
          text = "a \\u0000 é"
          "" = ''
          whole = -9223372036854775808
          real = 1e3
          yes = true
          no = false
          day = 2026-11-28
          list = [1, [2.5, "x"], {}]
          [a.b]
          c = 1
          [[uses]]
          every = 2
          [[uses]]
          """
      ).table)
    #expect(table["text"]?.string == "a \0 é" && table[""]?.string == "")
    #expect(table["whole"]?.int == .min && table["real"]?.double == 1_000 && table["real"]?.int == nil)
    #expect(table["yes"]?.bool == true && table["no"]?.bool == false && table["yes"]?.int == nil)
    // A date is a value that no option takes.
    #expect(table["day"] != nil && table["day"]?.string == nil && table["day"]?.table == nil)
    let list = try #require(table["list"]?.array)
    #expect(list.count == 3 && list[0].int == 1 && list[1].array?[1].string == "x" && list[2].table?.isEmpty == true)
    #expect(table["a"]?.table?["b"]?.table?["c"]?.int == 1)
    #expect(table["uses"]?.array?.map { $0.table?["every"]?.int } == [2, nil])
    #expect(try TOMLValue(parsing: "").table?.isEmpty == true)
  }

  @Test(
    "An error has its line and column",
    arguments: [("a = 1\nb = ", 2), ("a = 1\na = 2", 2), ("= 1", 1), ("a = [1", 1), ("\0", 1)])
  func errors(text: String, line: Int) throws {
    let error = try #require(throws: TOMLValue.ParseError.self) { try TOMLValue(parsing: text) }
    #expect(error.line == line && error.column > 0 && !error.description.isEmpty)
  }

  @Test("Depth is limited: no document ends the process")
  func depth() {
    let deep = "a = " + String(repeating: "[", count: 100_000)
    #expect(throws: TOMLValue.ParseError.self) { try TOMLValue(parsing: deep) }
    for key in ["a", "\"\\u0061\""] {
      let keys = Array(repeating: key, count: 100_000).joined(separator: " . ")
      for text in ["\(keys) = 1", "[\(keys)]", "x = { \(keys) = 1 }"] {
        #expect(throws: TOMLValue.ParseError.self) { try TOMLValue(parsing: text) }
      }
    }
    #expect((try? TOMLValue(parsing: Array(repeating: "a", count: 32).joined(separator: ".") + " = 1")) != nil)
  }
}
