import Foundation
import NIOCore
import NIOPosix
import TLSFoundation
import TestSupport
import Testing

@testable import TLSTransport

/// The `openssl` command as client and as server.
@Suite(
  "with openssl's own client and server", .waiting, .enabled(if: ExternalTool.isInstalled("openssl")))
struct InteropTests {
  static let credentials = TestCredentials.p256

  /// `openssl` running, with its standard input open and its output in a file.
  final class Program {
    let process: ChildProcess
    private let input = Pipe()
    private let output: URL

    init(_ arguments: [String]) throws {
      output = TestFolder.url.appending(path: UUID().uuidString)
      process = try ChildProcess(
        "openssl", arguments, input: .pipe(input), output: output, errors: output)
    }

    var text: String { (try? String(contentsOf: output, encoding: .isoLatin1)) ?? "" }

    func say(_ text: String) throws { try input.fileHandleForWriting.write(contentsOf: Data(text.utf8)) }

    func endInput() throws { try input.fileHandleForWriting.close() }

    func hasEnded() async -> Bool { await eventually { !self.process.isRunning } }
  }

  struct Choice: Sendable, CustomTestStringConvertible {
    var version: TLSVersion
    var option: String
    var suite: [String] = []
    var testDescription: String { option }
  }

  static let choices = [
    Choice(version: .tls10, option: "-tls1", suite: ["-cipher", "DEFAULT:@SECLEVEL=0"]),
    Choice(version: .tls11, option: "-tls1_1", suite: ["-cipher", "DEFAULT:@SECLEVEL=0"]),
    Choice(version: .tls12, option: "-tls1_2"), Choice(version: .tls13, option: "-tls1_3"),
  ]

  private func files(_ name: String) -> [String] {
    let path = Self.credentials.directory.path
    return ["-cert", "\(path)/\(name).pem", "-key", "\(path)/\(name).key", "-CAfile", "\(path)/ca.pem"]
  }

  @Test("s_client talks to our server, and ends with close_notify", arguments: choices) func client(_ choice: Choice)
    async throws
  {
    let server = try await TLSServer(Self.credentials.server())
    let program = try Program(
      [
        "s_client", "-connect", "127.0.0.1:\(server.port)", "-servername", "localhost", choice.option, "-quiet",
        "-verify_return_error", "-verify_hostname", "localhost", "-no_ign_eof",
      ] + choice.suite
        + files(TestCredentials.topic))
    try program.say("good morning\n")
    #expect(await eventually { program.text.contains("good morning") }, "\(program.text)")
    let witness = try #require(server.accepted.first)
    #expect(witness.seen.info?.version == choice.version)
    #expect(witness.seen.info?.serverName == "localhost")
    #expect(witness.seen.info?.peer?.topic == TestCredentials.topic)
    try program.endInput()
    #expect(await program.hasEnded())
    #expect(await eventually { witness.seen.isInactive })
    #expect(witness.seen.ends == 1)
    #expect(witness.errorText == "")
    await server.close()
  }

  @Test("s_client is refused with a reason", arguments: choices) func refusedClient(_ choice: Choice) async throws {
    let server = try await TLSServer(Self.credentials.server())
    for (name, reason, alert) in [
      ("\(TestCredentials.topic).revoked", "[certificate revoked]", "alert certificate revoked"),
      ("\(TestCredentials.topic).expired", "[certificate has expired]", "alert certificate expired"),
    ] {
      let program = try Program(
        ["s_client", "-connect", "127.0.0.1:\(server.port)", choice.option, "-quiet", "-no_ign_eof"] + choice.suite
          + files(name))
      #expect(await program.hasEnded())
      #expect(program.text.contains(alert), "\(program.text)")
      #expect(await eventually { server.accepted.last?.errorText.contains(reason) == true })
    }
    await server.close()
  }

  @Test("s_client resumes its session with our server", arguments: [choices[2], choices[3]]) func resumingClient(
    _ choice: Choice
  ) async throws {
    let server = try await TLSServer(Self.credentials.server { $0.ticketCount = 1 })
    let file = TestFolder.url.appending(path: "session-\(choice.option).pem").path
    for turn in 0..<2 {
      let program = try Program(
        ["s_client", "-connect", "127.0.0.1:\(server.port)", choice.option, "-quiet", "-no_ign_eof"]
          + files(TestCredentials.topic) + (turn == 0 ? ["-sess_out", file] : ["-sess_in", file]))
      try program.say("hello\n")
      #expect(await eventually { program.text.contains("hello") }, "\(program.text)")
      try program.endInput()
      #expect(await program.hasEnded())
    }
    #expect(server.accepted.map { $0.seen.info?.isResumed } == [false, true])
    #expect(server.accepted.last?.seen.info?.peer?.topic == TestCredentials.topic)
    await server.close()
  }

  @Test("Our client talks to s_server, resumes, and hears close_notify", arguments: choices)
  func server(_ choice: Choice) async throws {
    let reserved = try ReservedPort()
    let program = try Program(
      [
        "s_server", "-accept", "127.0.0.1:\(reserved.number)", choice.option, "-Verify", "1", "-verify_return_error",
        "-rev",
      ]
        + choice.suite + files("gateway"))
    #expect(await eventually { program.text.contains("ACCEPT") }, "\(program.text)")
    let sessions = SessionCache()
    let client = try Self.credentials.client { $0.versions = choice.version...choice.version }
    for turn in 0..<2 {
      let (channel, witness) = try await connectTLS(client, port: reserved.number, sessions: sessions)
      try await channel.writeAndFlush(ByteBuffer(string: "good morning\n"))
      #expect(await eventually { witness.seen.received == Array("gninrom doog\n".utf8) }, "\(witness.errorText)")
      #expect(witness.seen.info?.version == choice.version)
      #expect(witness.seen.info?.isResumed == (turn == 1))
      #expect(witness.seen.info?.peer?.subject == "CN=apnscope gateway")
      // What it ends on.
      try await channel.writeAndFlush(ByteBuffer(string: "CLOSE\n"))
      #expect(await eventually { witness.seen.ends == 1 }, "\(program.text)")
      #expect(witness.errorText == "")
      try? await channel.close()
    }
    #expect(sessions.count >= 1)
  }

  @Test("s_server refuses our client with a reason", arguments: [choices[2], choices[3]])
  func refusedByServer(_ choice: Choice) async throws {
    let reserved = try ReservedPort()
    let program = try Program(
      [
        "s_server", "-accept", "127.0.0.1:\(reserved.number)", choice.option, "-Verify", "1", "-verify_return_error",
        "-rev",
      ]
        + files("gateway"))
    #expect(await eventually { program.text.contains("ACCEPT") }, "\(program.text)")
    let (_, witness) = try await connectTLS(
      Self.credentials.client { $0.identity = try? TestCredentials.p256.provider(.expired) }, port: reserved.number)
    #expect(await eventually { witness.seen.isInactive })
    #expect(witness.errorText.contains("alert certificate expired"), "\(witness.errorText)")
  }
}
