import Foundation
import Measurement
import TestSupport
import Testing

@testable import Reporting

/// Text on a terminal: its width and its colours.
@Suite("text on a terminal")
struct TextLayoutTests {
  private static var escape: Regex<Substring> { /\u{1b}\[[0-9]+m/ }

  /// A text of lines with labels, indentation, long words, and none.
  private static func text(_ random: inout SeededGenerator) -> String {
    let words = [
      "12,345", "accepted", "0", "rejected", "✓", "✗", "!", "notifications", "日本語の通知", "a", "🙂",
      String(repeating: "x", count: 90),
    ]
    return (0..<Int.random(in: 1...8, using: &random)).map { _ in
      let label =
        Bool.random(using: &random)
        ? "errors         "
        : String(
          repeating: " ", count: Int.random(in: 0...16, using: &random))
      return label
        + (0..<Int.random(in: 0...20, using: &random)).map { _ in words.randomElement(using: &random) ?? "" }
        .joined(separator: Bool.random(using: &random) ? " " : "  ")
    }.joined(separator: "\n")
  }

  @Test(
    "Nothing changes without a width and colours; the width loses no word; colours are all that they add",
    arguments: seeds(100, of: 500))
  func laws(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let text = Self.text(&random)
    #expect(TextLayout(columns: nil, isColoured: false).laidOut(text) == text)
    let columns = Int.random(in: 20...200, using: &random)
    let wrapped = TextLayout(columns: columns, isColoured: false).laidOut(text)
    for line in wrapped.split(separator: "\n", omittingEmptySubsequences: false) {
      #expect(TextLayout.displayWidth(line) <= columns, "\(line)")
    }
    // Long words are broken; letters and their order stay.
    #expect(wrapped.filter { !$0.isWhitespace } == text.filter { !$0.isWhitespace })
    let coloured = TextLayout(columns: columns, isColoured: true).laidOut(text)
    #expect(coloured.replacing(Self.escape, with: "") == wrapped)
    // Every colour ends.
    for line in coloured.split(separator: "\n") {
      var isOn = false
      for match in line.matches(of: Self.escape) {
        #expect(isOn == (match.output == "\u{1b}[39m"))
        isOn.toggle()
      }
      #expect(!isOn)
    }
  }

  @Test("A long line goes on under its text, a long row of a table behind its indentation")
  func hanging() {
    let layout = TextLayout(columns: 40, isColoured: false)
    #expect(
      layout.laidOut("notifications  250,000 = 249,984 accepted + 16 rejected + 0 unknown")
        == "notifications  250,000 = 249,984\n               accepted + 16 rejected +\n               0 unknown")
    #expect(layout.laidOut("short") == "short")
    #expect(layout.laidOut("\n\n") == "\n\n")
  }

  @Test("Marks and counts with a fate have colours, counts of 0 and other words have none")
  func colours() {
    let layout = TextLayout(columns: nil, isColoured: true)
    #expect(layout.laidOut("✓ lost=0  (0)") == "\u{1b}[32m✓\u{1b}[39m lost=0  (0)")
    #expect(layout.laidOut("  accepted  12  ✗") == "  accepted  12  \u{1b}[31m✗\u{1b}[39m")
    #expect(layout.laidOut("! late") == "\u{1b}[33m!\u{1b}[39m late")
    #expect(
      layout.laidOut("fates  7 accepted, 1,000 rejected, 0 discarded, 32 unknown")
        == "fates  \u{1b}[32m7 accepted\u{1b}[39m, \u{1b}[31m1,000 rejected\u{1b}[39m, 0 discarded, 32 unknown")
    #expect(layout.laidOut("was rejected, accepted 7") == "was rejected, accepted 7")
  }

  @Test("A table leaves out columns in its order until it fits, says which, and no more than need be")
  func columns() {
    var table = TextTable(["one", "two", "three"], right: [])
    table.add(["1111111111", "22", "333333333333"])
    func header(_ columns: Int?) -> String {
      String(table.text(indent: 2, columns: columns, dispensable: ["two", "three"]).prefix { $0 != "\n" })
    }
    #expect(header(nil) == "  one         two  three")
    #expect(header(31) == "  one         two  three")
    #expect(header(30) == "  one         three")
    // Without the second it is too wide still; then there is room for it again.
    #expect(header(25) == "  one         two")
    #expect(header(15) == "  one")
    #expect(
      table.text(indent: 2, columns: 25, dispensable: ["two", "three"])
        == "  one         two\n  1111111111  22\n  left out at 25 columns: three\n")
  }

  @Test("Bars lie between 0 and the largest value, the latest is last, and only 0 is drawn as 0")
  func bars() {
    #expect(Dashboard.bars([0, 1, 50, 100], 10) == "▁▂▅█")
    #expect(Dashboard.bars([1, 0, 4], 2) == "▁█")
    #expect(Dashboard.bars([0, 0], 5) == "▁▁" && Dashboard.bars([], 5) == "" && Dashboard.bars([1], 0) == "")
    #expect(Dashboard.bars([.nan, .infinity, 1e300, 5e-324], 9) == "▁▁█▂")
  }

  @Test(
    "A dashboard fits any terminal, and keeps its title and its first rows", arguments: [1, 5, 20, 39, 40, 80, 300])
  func dashboard(columns: Int) {
    let rows = (1...6).map { Dashboard.Row("figure \($0)", "\($0),000/s", (0..<500).map(Double.init)) }
    let dashboard = Dashboard(title: "apnscope load  localhost:2195", rows: rows, footer: "Ctrl-C ends")
    for height in 1...12 {
      let lines = dashboard.lines(columns: columns, rows: height)
      #expect(lines.count <= height && lines.allSatisfy { TextLayout.displayWidth($0) <= columns })
      if columns >= 40, height >= 5 {
        #expect(lines[0] == dashboard.title && lines[2].hasPrefix("figure 1  1,000/s"))
      }
    }
    if columns == 80 { #expect(dashboard.lines(columns: 80, rows: 24)[2].count == 80) }
  }
}
