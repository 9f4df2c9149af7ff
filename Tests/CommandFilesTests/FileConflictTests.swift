import CommandFiles
import Testing

@Suite("File conflicts")
struct FileConflictTests {
  private func conflict(reading: [String] = [], writing: [(name: String, path: String?)]) -> FileConflict? {
    do {
      try FilesInUse.check(reading: reading, writing: writing)
      return nil
    } catch {
      return error
    }
  }

  @Test("An output is an input whatever leads to it, and the input is named as it was given")
  func overwritten() throws {
    let folder = try Folder()
    let path = folder.path
    try folder.write("x", "in")
    try folder.link("link", to: "in")
    for output in ["in", "link", "./in"] {
      #expect(
        conflict(reading: [path + "in"], writing: [("--output", path + output)])
          == .overwritten(input: path + "in", by: "--output"))
    }
    #expect(conflict(reading: [path + "in"], writing: [("--output", path + "other"), ("--log", nil)]) == nil)
    #expect(
      conflict(reading: [path + "link"], writing: [("--output", path + "in")])?.description
        == "--output would overwrite the input \(path)link")
  }

  @Test("Two outputs are one file, also when it is not there yet")
  func same() throws {
    let folder = try Folder()
    let path = folder.path
    try folder.link("dangling", to: "new")
    #expect(
      conflict(writing: [("--output", path + "new"), ("--log", path + "dangling")])
        == .same("--output", "--log", path: path + "dangling"))
    #expect(conflict(writing: [("--output", path + "new"), ("--log", path + "newer")]) == nil)
    let steering = path + "a\u{1b}b"
    #expect(
      conflict(writing: [("--output", steering), ("--log", steering)])?.description.contains("\u{1b}") == false)
  }

  @Test("A folder that is read stands for the certificates and keys in it, and devices may be named often")
  func folders() throws {
    let folder = try Folder()
    try folder.write("x", "gateway.pem")
    try folder.write("x", "notes")
    let path = String(folder.path.dropLast())
    #expect(conflict(reading: [path], writing: [("--output", "\(path)/gateway.pem")]) != nil)
    #expect(conflict(reading: [path], writing: [("--output", "\(path)/notes")]) == nil)
    #expect(conflict(reading: ["/dev/null"], writing: [("--output", "/dev/null"), ("--log", "/dev/null")]) == nil)
  }

  @Test("Two names of one file are the same, names of nothing and of devices are not")
  func isSame() throws {
    let folder = try Folder()
    try folder.write("x", "a")
    try folder.link("b", to: "a")
    #expect(FilesInUse.isSame(folder.path + "a", folder.path + "b"))
    #expect(!FilesInUse.isSame(folder.path + "a", folder.path + "c"))
    #expect(!FilesInUse.isSame("/dev/null", "/dev/null"))
  }
}
