import Testing

@testable import Measurement

@Suite("Segments")
struct SegmentsTests {
  @Test(
    "A text names parts of one stream",
    arguments: [
      ("1/1", 1, [], [], "1/1"), ("all", 1, [], [], "1/1"), ("2/4", 4, ["1/4", "3/4", "4/4"], [], "2/4"),
      ("3/3,1/3,2/3", 3, [], [], "1/3,2/3,3/3"), ("2/2,2/2", 2, ["1/2"], ["2/2"], "2/2,2/2"),
      ("1/1,1/1", 1, [], ["all"], "1/1,1/1"), ("1/1000000", 1_000_000, nil, [], "1/1000000"),
    ] as [(String, Int, [String]?, [String], String)])
  func read(text: String, count: Int, missing: [String]?, repeated: [String], written: String) throws {
    let segments = try #require(Segments(text))
    #expect(segments.count == count && segments.text == written && segments.repeated == repeated)
    #expect(segments.isDivided == (count > 1))
    if let missing {
      #expect(segments.missing == missing)
      #expect(segments.warnings.count == (missing.isEmpty ? 0 : 1) + (repeated.isEmpty ? 0 : 1))
      #expect(segments.warnings.allSatisfy { Segments.isWarning($0) })
    }
  }

  @Test(
    "Other texts name none",
    arguments: [
      "", "1", "1/", "/1", "0/1", "2/1", "1/0", "-1/2", "1/-2", "1/2,", ",1/2", "1/2,2/3", "1/2/3", "1/1000001", "a/b",
      "half", "All", "1/2 ,2/2",
    ])
  func refused(text: String) { #expect(Segments(text) == nil) }

  @Test("Added ones are counted together")
  func adding() throws {
    var segments = try #require(Segments("1/3"))
    segments.add(try #require(Segments("1/3,3/3")))
    #expect(segments.text == "1/3,1/3,3/3" && segments.missing == ["2/3"] && segments.repeated == ["1/3"])
    #expect(
      segments.warnings == [
        "segments are missing: 2/3", "segments are there more than once, and count as often: 1/3",
      ])
    #expect(!Segments.isWarning("the segments") && Segments.isWarning(segments.warnings[1]))
  }

  @Test("A list names ten, and how many more there are")
  func list() {
    let names = (1...12).map { "\($0)" }
    let ten = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10"
    #expect(Segments.list(Array(names.prefix(10))) == ten)
    #expect(Segments.list(Array(names.prefix(11))) == ten + " and 1 more")
    #expect(Segments.list(names) == ten + " and 2 more" && Segments.list([]) == "" && Segments.list(["a"]) == "a")
  }
}
