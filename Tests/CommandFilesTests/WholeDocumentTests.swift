import CommandFiles
import Testing

@Suite("Whole documents")
struct WholeDocumentTests {
  @Test("A document replaces the file, keeps its mode, and leaves nothing beside it")
  func replaced() throws {
    let folder = try Folder()
    try folder.write("earlier", "out")
    try folder.setMode(0o640, of: "out")
    let document = try WholeDocument(folder.path + "out")
    #expect(document.isFile)
    #expect(folder.read("out") == "earlier")
    document.write("new")
    try document.check()
    #expect(folder.read("out") == "new\n")
    #expect(try folder.mode(of: "out") == 0o640)
    #expect(try folder.names == ["out"])
  }

  @Test("A link stays, and what it leads to is replaced or made")
  func links() throws {
    let folder = try Folder()
    try folder.write("earlier", "target")
    try folder.link("link", to: "target")
    try folder.link("dangling", to: "new")
    for name in ["link", "dangling"] {
      let document = try WholeDocument(folder.path + name)
      document.write("new")
      try document.check()
    }
    #expect(folder.read("target") == "new\n" && folder.read("new") == "new\n")
    #expect(try folder.names == ["dangling", "link", "new", "target"])
  }

  @Test("What was prepared and not committed changes nothing")
  func prepared() throws {
    let folder = try Folder()
    do {
      let document = try WholeDocument(folder.path + "out")
      document.prepare([0x61])
    }
    #expect(try folder.names == [])
  }

  @Test("A path that cannot be written is known before anything is")
  func refused() throws {
    let folder = try Folder()
    #expect(throws: FileFailure(.writeFailed, folder.path, "Is a directory")) { try WholeDocument(folder.path) }
    #expect(throws: FileFailure(.writeFailed, folder.path + "none/out", "No such file or directory")) {
      try WholeDocument(folder.path + "none/out")
    }
  }

  @Test("A device is written to, and its failure is named")
  func device() throws {
    let document = try WholeDocument("/dev/full")
    #expect(!document.isFile)
    document.write("new")
    #expect(throws: FileFailure(.writeFailed, "/dev/full", "No space left on device")) { try document.check() }
  }
}

@Suite("Output folders")
struct OutputFolderTests {
  @Test("A folder is made with those that it is in, and a file in the way is named")
  func made() throws {
    let folder = try Folder()
    let output = try OutputFolder(folder.path + "a/b/c")
    #expect(output.path == folder.path + "a/b/c/")
    try output.write([("one", [0x61]), ("two", [0x62])])
    #expect(folder.read("a/b/c/one") == "a" && folder.read("a/b/c/two") == "b")
    try folder.write("x", "file")
    #expect(throws: FileFailure(.writeFailed, folder.path + "file/d", "Not a directory")) {
      try OutputFolder(folder.path + "file/d")
    }
  }

  @Test("When one document cannot be written, those that were there stay as they were")
  func allOrNone() throws {
    let folder = try Folder()
    try folder.write("earlier", "one")
    _ = try OutputFolder(folder.path + "two")
    let output = try OutputFolder(folder.path)
    #expect(throws: FileFailure.self) { try output.write([("one", [0x61]), ("two", [0x62])]) }
    #expect(folder.read("one") == "earlier")
    #expect(try folder.names == ["one", "two"])
    #expect(throws: FileFailure.self) { try output.check("two") }
    try output.check("one")
    #expect(folder.read("one") == "earlier")
  }

  @Test("The nearest folder that there is is found without making any")
  func existing() throws {
    let folder = try Folder()
    #expect(OutputFolder.existing(folder.path + "a/b/") == folder.path)
    #expect(OutputFolder.existing(folder.path) == folder.path)
    #expect(OutputFolder.existing("/") == "/")
    #expect(OutputFolder.existing("no-such-folder/a") == "./")
    #expect(OutputFolder.existing("") == "./")
    #expect(OutputFolder.existing("/no-such-folder/a") == "/")
  }
}

@Suite("Paths of files")
struct PathTests {
  @Test("A name in a directory has one slash before it")
  func joined() {
    #expect(Paths.path(of: "a", in: "d") == "d/a")
    #expect(Paths.path(of: "a", in: "d/") == "d/a")
  }

  @Test("Directories are told from files and from nothing")
  func kinds() throws {
    let folder = try Folder()
    try folder.write("x", "file")
    #expect(Paths.isDirectory(folder.path) && !Paths.isDirectory(folder.path + "file"))
    #expect(Paths.exists(folder.path + "file") && !Paths.exists(folder.path + "none"))
  }
}
