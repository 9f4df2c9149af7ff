import Foundation
import NIOCore
import TestSupport
import Testing

@testable import TLSTransport

@Suite("key logs")
struct KeyLogTests {
  static let credentials = TestCredentials.p256

  private func lines(_ folder: URL) throws -> [[Substring]] {
    try folder.text(of: "keys.log").split(separator: "\n").map {
      $0.split(separator: " ", omittingEmptySubsequences: false)
    }
  }

  @Test("Both sides log the same secrets, under the client's random", arguments: Agreement.some, [true, false])
  func secrets(_ agreement: Agreement, atServer: Bool) throws {
    try withTemporaryFolder { folder in
      let log = try KeyLogFile(path: folder.appending(path: "keys.log").path)
      let pair = try TLSPair(
        Self.credentials.client {
          agreement.apply(to: &$0)
          if !atServer { $0.keyLog = log }
        }, Self.credentials.server { if atServer { $0.keyLog = log } })
      try pair.server.activate()
      try pair.client.activate()
      // Record head, handshake head, version.
      let hello = try #require(pair.client.wire.sent.first)
      let random = try #require(hello.getBytes(at: hello.readerIndex + 11, length: 32))
      pair.pump()
      try #require(pair.server.observer.info != nil)
      let expected: Set<Substring> =
        agreement.version == .tls13
        ? [
          "SERVER_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "EXPORTER_SECRET",
          "SERVER_TRAFFIC_SECRET_0", "CLIENT_TRAFFIC_SECRET_0",
        ] : ["CLIENT_RANDOM"]
      let lines = try lines(folder)
      #expect(Set(lines.map { $0[0] }) == expected)
      #expect(lines.count == expected.count)
      for line in lines {
        #expect(line.count == 3)
        #expect(line[1] == random.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined())
        #expect(line[2].count == (agreement.version == .tls13 ? 64 : 96))
      }
      #expect(try folder.mode(of: "keys.log") == 0o600)
    }
  }

  @Test("A file that is there keeps its lines and its mode, also behind a link, and who else may read it is warned of")
  func existing() throws {
    try withTemporaryFolder { folder in
      let file = try folder.write("# mine\n", "keys.log")
      try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
      let path = file + ".link"
      try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "keys.log")
      let log = try KeyLogFile(path: path)
      #expect(try folder.mode(of: "keys.log") == 0o644)
      #expect(log.warning?.hasPrefix("\(path): the file is accessible to others (mode 644)") == true)
      #expect(try KeyLogFile(path: "/dev/null").warning == nil)
      log.append("CLIENT_RANDOM 00 11")
      let again = try KeyLogFile(path: path)
      again.append("CLIENT_RANDOM 22 33")
      #expect(try folder.text(of: "keys.log") == "# mine\nCLIENT_RANDOM 00 11\nCLIENT_RANDOM 22 33\n")
      #expect(log.failure == nil)
    }
  }

  @Test("Lines of several threads do not mix") func threads() async throws {
    let folder = TestFolder.url.appending(path: "threads-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let path = folder.appending(path: "keys.log").path
    let logs = [try KeyLogFile(path: path), try KeyLogFile(path: path)]
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<4 {
        group.addTask {
          for _ in 0..<500 { logs[task % 2].append(String(repeating: "\(task)", count: 200)) }
        }
      }
    }
    let lines = try folder.text(of: "keys.log").split(separator: "\n")
    #expect(lines.count == 2_000)
    #expect(lines.allSatisfy { $0.count == 200 && Set($0).count == 1 })
  }

  @Test("A file that cannot be had, and one that takes nothing") func failures() throws {
    let nowhere = TestFolder.url.appending(path: "nowhere/keys.log").path
    #expect(expectError(.file) { try KeyLogFile(path: nowhere) } == "\(nowhere): No such file or directory")
    expectError(.file) { try KeyLogFile(path: "/tmp") }
    let full = try KeyLogFile(path: "/dev/full")
    let context = try Self.credentials.server { $0.keyLog = full }
    #expect(context.keyLogFailure == nil)
    let pair = try TLSPair(Self.credentials.client(), context)
    try pair.connect()
    // The connection is none the worse for it.
    #expect(pair.server.observer.info != nil)
    #expect(context.keyLogFailure == "No space left on device")
  }
}
