import Bytes
import Foundation
import Glibc
import Testing

@testable import CommandFiles

@Suite("Files replaced when they are complete")
struct ReplacedFileTests {
  private func inFolder(_ body: (URL) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apnscope-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder)
  }

  /// The macro takes no spans.
  private func isWritten(_ bytes: [UInt8], to file: ReplacedFile) -> Bool { file.write(bytes.span.bytes) }

  private func names(in folder: URL) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
  }

  @Test("The place keeps its content until the file is complete", arguments: [1, 1_000_000, 3_000_001])
  func replaced(length: Int) throws {
    try inFolder { folder in
      let place = folder.appending(path: "file")
      try Data("before".utf8).write(to: place)
      let file = try ReplacedFile(place.path)
      let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
      for start in stride(from: 0, to: length, by: 70_000) {
        let isWritten = file.write(bytes[start..<min(start + 70_000, length)].span.bytes)
        #expect(isWritten)
      }
      #expect(try Data(contentsOf: place) == Data("before".utf8))
      try file.finish()
      #expect(try Data(contentsOf: place) == Data(bytes))
      #expect(try names(in: folder) == ["file"])
    }
  }

  @Test("A file that is never complete leaves nothing, and has no name or a hidden one while it is written")
  func abandoned() throws {
    try inFolder { folder in
      let place = folder.appending(path: "file")
      do {
        let file = try ReplacedFile(place.path)
        _ = file.write([1, 2, 3].span.bytes)
        // Where files without names cannot be made, it has one that begins with a dot.
        #expect(try names(in: folder).allSatisfy { $0.hasPrefix(".apnscope-") })
      }
      #expect(try names(in: folder) == [])
    }
  }

  @Test("Of two that are written at the same time, the one that is complete later has the place, whole")
  func two() throws {
    try inFolder { folder in
      let place = folder.appending(path: "file")
      let (first, second) = (try ReplacedFile(place.path), try ReplacedFile(place.path))
      let (long, short) = ([UInt8](repeating: 1, count: 3_000_000), [UInt8](repeating: 2, count: 2_000_000))
      #expect(isWritten(long, to: first))
      #expect(isWritten(short, to: second))
      try first.finish()
      #expect(try Data(contentsOf: place) == Data(long))
      try second.finish()
      #expect(try Data(contentsOf: place) == Data(short))
      #expect(try names(in: folder) == ["file"])
    }
  }

  @Test("What is no regular file is written to, and stays what it is")
  func noFile() throws {
    try inFolder { folder in
      let fifo = folder.appending(path: "fifo").path
      #expect(unsafe mkfifo(fifo, 0o600) == 0)
      // Open in both directions, so that neither end waits for the other.
      let reader = unsafe open(fifo, O_RDWR | O_NONBLOCK)
      defer { close(reader) }
      let file = try ReplacedFile(fifo)
      #expect(isWritten([1, 2, 3], to: file))
      try file.finish()
      var bytes = [UInt8](repeating: 0, count: 10)
      #expect(unsafe read(reader, &bytes, 10) == 3 && bytes[..<3] == [1, 2, 3])
      #expect(try kind(of: fifo) == S_IFIFO)

      let device = try ReplacedFile("/dev/null")
      #expect(isWritten([1], to: device))
      try device.finish()
      #expect(try kind(of: "/dev/null") == S_IFCHR)

      let full = try ReplacedFile("/dev/full")
      _ = full.write([1].span.bytes)
      #expect(throws: FileFailure(.writeFailed, "/dev/full", "No space left on device")) { try full.finish() }
    }
  }

  private func kind(of path: String) throws -> mode_t {
    var status = stat()
    try #require(unsafe lstat(path, &status) == 0)
    return status.st_mode & S_IFMT
  }

  @Test("A link stays, and what it leads to is replaced; a link NAME.part is not written through")
  func links() throws {
    try inFolder { folder in
      let (target, link) = (folder.appending(path: "target"), folder.appending(path: "link"))
      try Data("before".utf8).write(to: target)
      try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: "target")
      // The name that the new file once had.
      let victim = folder.appending(path: "victim")
      try Data("victim".utf8).write(to: victim)
      try FileManager.default.createSymbolicLink(atPath: link.path + ".part", withDestinationPath: "victim")
      let file = try ReplacedFile(link.path)
      #expect(isWritten(Array("after".utf8), to: file))
      try file.finish()
      #expect(try Data(contentsOf: target) == Data("after".utf8) && Data(contentsOf: victim) == Data("victim".utf8))
      #expect(try kind(of: link.path) == S_IFLNK)
    }
  }

  @Test(
    "A new file has the usual mode, and one that replaces another its mode; neither has more rights than allowed",
    arguments: [
      (nil, 0o7777, 0o644), (nil, 0o600, 0o600), (0o600, 0o7777, 0o600), (0o640, 0o666, 0o640),
      (0o664, 0o600, 0o600),
    ] as [(mode_t?, mode_t, mode_t)])
  func modes(before: mode_t?, mask: mode_t, after: mode_t) throws {
    try inFolder { folder in
      let place = folder.appending(path: "file")
      if let before {
        try Data("before".utf8).write(to: place)
        #expect(unsafe chmod(place.path, before) == 0)
      }
      let file = try ReplacedFile(place.path)
      #expect(isWritten([1], to: file))
      try file.finish(atMost: mask)
      var status = stat()
      try #require(unsafe stat(place.path, &status) == 0)
      #expect(status.st_mode & 0o7777 == after)
    }
  }

  @Test("A folder cannot be replaced, and one that is missing has no files")
  func refused() throws {
    try inFolder { folder in
      #expect(throws: FileFailure.self) { try ReplacedFile(folder.path) }
      #expect(throws: FileFailure.self) { try ReplacedFile(folder.appending(path: "nosuch/file").path) }
    }
  }
}
