import Bytes
import Foundation
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

  @Test("A file that is never complete leaves nothing") func abandoned() throws {
    try inFolder { folder in
      let place = folder.appending(path: "file")
      do {
        let file = try ReplacedFile(place.path)
        _ = file.write([1, 2, 3].span.bytes)
        #expect(try names(in: folder) == ["file.part"])
      }
      #expect(try names(in: folder) == [])
    }
  }

  @Test("A full disk is an error, and the place keeps its content", .enabled(if: getuid() == 0))
  func full() throws {
    try inFolder { folder in
      let place = folder.appending(path: "file")
      try Data("before".utf8).write(to: place)
      // Everything that is written to it fails.
      try FileManager.default.createSymbolicLink(atPath: "\(place.path).part", withDestinationPath: "/dev/full")
      let file = try ReplacedFile(place.path)
      _ = file.write([1].span.bytes)
      #expect(throws: FileFailure.self) { try file.finish() }
      #expect(try Data(contentsOf: place) == Data("before".utf8))
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
