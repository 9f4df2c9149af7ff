import Foundation
import Testing

@Suite("Library pages")
struct LibraryPageTests {
  static let libraries =
    (try? lines(of: "Package.swift"))?
    .compactMap { $0.firstMatch(of: /\.library\(name: "(\w+)"/).map { String($0.1) } } ?? []

  private static func lines(of file: String) throws -> [String] {
    let text = try String(contentsOf: LibraryExamples.root.appending(path: file), encoding: .utf8)
    return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  @Test("Each library has a page, and the list of pages has a row for it")
  func pages() throws {
    #expect(Self.libraries.count >= 11)
    let list = try Self.lines(of: "Documentation/libraries/README.md")
    for library in Self.libraries {
      #expect(list.contains { $0.hasPrefix("| [\(library)](\(library).md) |") }, "\(library)")
      #expect(try Self.lines(of: "Documentation/libraries/\(library).md").first == "# \(library)")
    }
  }

  @Test("The example on a page is the one that is compiled and run", arguments: libraries)
  func examples(library: String) throws {
    let page = try Self.lines(of: "Documentation/libraries/\(library).md")
    let blocks = page.split { $0.hasPrefix("```") }
    let starts = page.indices.filter { page[$0] == "```swift" }
    let example = try #require(starts.count == 1 && blocks.count == 3 ? Array(blocks[1]) : nil, "one block of Swift")
    let imports = example.prefix { $0.hasPrefix("import ") }
    let code = example.dropFirst(imports.count + 1)
    #expect(!imports.isEmpty && (4...16).contains(code.count))

    let file = try Self.lines(of: "Examples/Libraries/\(library)Example.swift")
    for line in imports { #expect(file.contains(line), "\(line)") }
    let isTheSame = file.contains(code.map { $0.isEmpty ? "" : "    \($0)" })
    #expect(isTheSame, "the page shows other code than the file has")
  }

  @Test("The types that a page lists are public in the library", arguments: libraries)
  func types(library: String) throws {
    let page = try Self.lines(of: "Documentation/libraries/\(library).md")
    let listed = page.filter { $0.hasPrefix("| `") }
      .flatMap { line in line.dropFirst(2).prefix { $0 != "|" }.matches(of: /`(\w+)`/).map { String($0.1) } }
    #expect(listed.count >= 2)
    let folder = LibraryExamples.root.appending(path: "Sources/\(library)")
    let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
    let sources = try files.map { try String(contentsOf: folder.appending(path: $0), encoding: .utf8) }
    let declaration = /public (?:final |indirect )?(?:class|struct|enum|protocol|actor|typealias) (\w+)/
    let declared = Set(sources.flatMap { source in source.matches(of: declaration).map { String($0.1) } })
    for name in listed { #expect(declared.contains(name), "\(name) is not public in \(library)") }
  }
}
