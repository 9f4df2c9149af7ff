import Bytes
import CommandFiles
import Testing

@Suite("Output files")
struct OutputFileTests {
  @Test("A file keeps what it had until something is written")
  func emptiedLate() throws {
    let folder = try Folder()
    try folder.write("earlier", "out")
    do {
      let file = try #require(OutputFile(later: folder.path + "out"))
      #expect(folder.read("out") == "earlier")
      let isWritten = file.write(Array("new".utf8).rawBytes)
      #expect(isWritten)
      #expect(file.failure == nil)
    }
    #expect(folder.read("out") == "new")
  }

  @Test("A file that was made and never written goes again, one that was there stays")
  func neverWritten() throws {
    let folder = try Folder()
    try folder.write("earlier", "old")
    do {
      let files = [OutputFile(later: folder.path + "new"), OutputFile(later: folder.path + "old")]
      #expect(files.allSatisfy { $0 != nil })
      #expect(try folder.names == ["new", "old"])
    }
    #expect(try folder.names == ["old"])
    #expect(folder.read("old") == "earlier")
  }

  @Test("A file that is begun is empty and stays")
  func begun() throws {
    let folder = try Folder()
    OutputFile(later: folder.path + "out")?.begin()
    #expect(folder.read("out") == "")
  }

  @Test("Secrets are their owner's alone, also in a file that others could read")
  func secret() throws {
    let folder = try Folder()
    try folder.write("earlier", "keys")
    try folder.setMode(0o644, of: "keys")
    OutputFile(later: folder.path + "keys", isSecret: true)?.begin()
    #expect(try folder.mode(of: "keys") == 0o600)
    #expect(folder.read("keys") == "")
  }

  @Test("Several files of a directory are told apart by name, and a failure names its file")
  func outputs() throws {
    let folder = try Folder()
    let outputs = try Outputs(folder.path + "d", isDirectory: true)
    let write = try outputs.open("a.csv")
    _ = try outputs.open("b.csv")
    let isWritten = write(Array("1".utf8).rawBytes)
    #expect(isWritten)
    try outputs.check()
    #expect(folder.read("d/a.csv") == "1" && folder.read("d/b.csv") == "")
    #expect(throws: FileFailure(.writeFailed, folder.path + "d/none/c.csv", "No such file or directory")) {
      try outputs.open("none/c.csv")
    }
    #expect(throws: FileFailure(.writeFailed, folder.path + "none/d", "No such file or directory")) {
      try Outputs(folder.path + "none/d", isDirectory: true)
    }
    let full = try Outputs("/dev/full", isDirectory: false)
    let writeToFull = try full.open()
    let isWrittenToFull = writeToFull(Array("1".utf8).rawBytes)
    #expect(!isWrittenToFull)
    #expect(throws: FileFailure(.writeFailed, "/dev/full", "No space left on device")) { try full.check() }
  }

  @Test("A key log takes lines, and is its owner's alone")
  func keyLog() throws {
    let folder = try Folder()
    let outputs = try Outputs(folder.path + "records", isDirectory: false)
    let log = try outputs.openKeyLog(folder.path + "keys")
    log("CLIENT_RANDOM 00 00\n")
    try outputs.check()
    #expect(folder.read("keys") == "CLIENT_RANDOM 00 00\n")
    #expect(try folder.mode(of: "keys") == 0o600)
  }
}
