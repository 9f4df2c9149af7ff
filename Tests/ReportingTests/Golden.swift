import Foundation
import Testing

/// Text that is kept as a file in `Golden`; `APNSCOPE_REWRITE_GOLDEN=1` writes what the tests make now.
func expectGolden(_ text: String, _ name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
  let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Golden").appending(path: name)
  if ProcessInfo.processInfo.environment["APNSCOPE_REWRITE_GOLDEN"] == "1" {
    try Data(text.utf8).write(to: file)
  }
  let kept = try String(contentsOf: file, encoding: .utf8)
  if kept != text {
    let (a, b) = (kept.split(separator: "\n"), text.split(separator: "\n"))
    let line = zip(a, b).prefix { $0 == $1 }.count
    let (was, now) = (line < a.count ? a[line] : "its end", line < b.count ? b[line] : "its end")
    Issue.record("\(name) differs in line \(line + 1): kept '\(was)', made '\(now)'", sourceLocation: sourceLocation)
  }
}

/// A tree of elements is well formed; `nil`, or what is wrong.
func problem(inXML text: String) -> String? {
  var open: [Substring] = []
  var rest = text[...]
  while let start = rest.firstIndex(of: "<") {
    guard let end = rest[start...].firstIndex(of: ">") else { return "an element without an end" }
    let tag = rest[rest.index(after: start)..<end]
    rest = rest[rest.index(after: end)...]
    if tag.hasPrefix("!") { continue }
    if tag.hasPrefix("/") {
      guard let last = open.popLast(), last == tag.dropFirst() else { return "</\(tag.dropFirst())> closes nothing" }
    } else if !tag.hasSuffix("/") {
      guard let first = tag.first, first.isLetter else { return "<\(tag.prefix(20))> is no element" }
      open.append(tag.prefix { $0 != " " && $0 != "\n" })
    }
  }
  return open.isEmpty ? nil : "<\(open[0])> is never closed"
}
