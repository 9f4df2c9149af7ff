import Bytes
import CommandFiles
import Testing

@Suite("Record lines")
struct RecordLinesTests {
  private func lines(of path: String) throws -> [Int] {
    var lines = try RecordLines(path)
    var lengths: [Int] = []
    while try lines.next() { lengths.append(lines.text.byteCount) }
    return lengths
  }

  @Test("Lines are passed on without their ends, the last one also without one")
  func ends() throws {
    let folder = try Folder()
    try folder.write("ab\n\nabc", "records")
    #expect(try lines(of: folder.path + "records") == [2, 0, 3])
    try folder.write("ab\n", "records")
    #expect(try lines(of: folder.path + "records") == [2])
    try folder.write("", "records")
    #expect(try lines(of: folder.path + "records") == [])
  }

  @Test("Lines longer than a block are whole")
  func longLines() throws {
    let folder = try Folder()
    let lengths = [1 << 18, (1 << 18) - 1, 600_000, 1]
    try folder.write(lengths.map { String(repeating: "x", count: $0) + "\n" }.joined(), "records")
    #expect(try lines(of: folder.path + "records") == lengths)
  }

  @Test("What is wrong with a line names the file and the line's number")
  func failures() throws {
    let folder = try Folder()
    try folder.write("a\nb\n", "records")
    var lines = try RecordLines(folder.path + "records")
    _ = try lines.next()
    _ = try lines.next()
    #expect(lines.failure("is odd").description == "\(folder.path)records:2: is odd")
    #expect(lines.failure("is odd").kind == .unusable)
    do {
      _ = try RecordLines(folder.path + "none")
      Issue.record("no error")
    } catch {
      #expect(error == FileFailure(.cannotOpen, folder.path + "none", "No such file or directory"))
    }
    var unreadable = try RecordLines(folder.path)
    do {
      _ = try unreadable.next()
      Issue.record("no error")
    } catch {
      #expect(error == FileFailure(.readFailed, folder.path, "Is a directory"))
    }
  }

  @Test("A line that is too long is an error, or ends the file")
  func tooLong() throws {
    let folder = try Folder()
    try folder.write("a\n" + String(repeating: "x", count: 17 << 20) + "\nb\n", "records")
    let path = folder.path + "records"
    let problem = FileFailure(.unusable, "\(path):2", "the line exceeds 16777216 bytes")
    #expect(throws: problem) { try self.lines(of: path) }
    var lines = try RecordLines(path)
    #expect(try lines.nextIfReadable())
    #expect(lines.cut == nil)
    #expect(try !lines.nextIfReadable())
    #expect(lines.cut == problem)
  }
}
