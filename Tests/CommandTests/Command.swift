import Foundation
import TestSupport

/// What a run of the command left behind.
struct Outcome {
  var status: Int32
  var output: String
  var errors: String
  var lines: [String] { output.split(separator: "\n").map(String.init) }
}

/// The built command, run as a process in a folder of its own.
struct Command {
  /// It is built beside the test bundle.
  static let path: String = {
    let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") }.map { URL(filePath: $0) }
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let folders = [
      bundle?.deletingLastPathComponent(), Bundle.main.executableURL?.deletingLastPathComponent(),
      root.appending(path: ".build-tests/release"), root.appending(path: ".build/debug"),
    ]
    let paths = folders.compactMap { $0?.appending(path: "apnscope").path }
    return paths.first { FileManager.default.isExecutableFile(atPath: $0) } ?? "apnscope"
  }()

  static let traces = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Traces")

  let folder: URL

  /// Makes a folder, and removes it after `body`.
  static func inFolder<T>(_ body: (Command) throws -> T) throws -> T {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apnscope-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try body(Command(folder: folder))
  }

  /// The same for what waits for tasks.
  static func inFolder<T>(
    isolation: isolated (any Actor)? = #isolation, _ body: (Command) async throws -> T
  ) async throws -> T {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apnscope-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(Command(folder: folder))
  }

  /// Copies a trace of the project into the folder.
  func trace(_ name: String, as copy: String? = nil) throws {
    try FileManager.default.copyItem(
      at: Self.traces.appending(path: name), to: folder.appending(path: copy ?? name))
  }

  func write(_ bytes: [UInt8], _ name: String) throws { try Data(bytes).write(to: folder.appending(path: name)) }

  func read(_ name: String) throws -> String {
    try String(contentsOf: folder.appending(path: name), encoding: .utf8)
  }

  func run(_ arguments: String..., input: String = "/dev/null") throws -> Outcome {
    try run(arguments, input: input)
  }

  func run(_ arguments: [String], input: String = "/dev/null") throws -> Outcome {
    let outcome = try run(Self.path, arguments, input: input)
    outcome.expectValidOutput(of: arguments)
    return outcome
  }

  /// A line for the shell, in which `$apnscope` is the command and `$@` are the arguments.
  func shell(_ line: String, _ arguments: [String] = []) throws -> Outcome {
    try run("/bin/bash", ["-c", line, "bash"] + arguments, input: "/dev/null")
  }

  /// Output goes to files, so that no pipe fills up.
  private func run(_ executable: String, _ arguments: [String], input: String) throws -> Outcome {
    let ending = try ChildProcess(
      executable, arguments, in: folder, environment: ["apnscope": Self.path], input: .file(URL(filePath: input)),
      output: folder.appending(path: ".output"), errors: folder.appending(path: ".errors")
    ).end()
    return Outcome(status: ending.status, output: try read(".output"), errors: try read(".errors"))
  }
}
