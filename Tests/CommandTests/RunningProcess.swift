import Foundation
import Testing

/// A process that a test has started and that ends with it: by itself, or killed at its deadline.
final class RunningProcess {
  let process: Process
  private let files: (output: URL, errors: URL)

  /// Output goes to files of this name in the folder, so that no pipe fills up.
  init(
    _ executable: String, _ arguments: [String], in folder: URL, name: String = UUID().uuidString,
    input: URL? = nil
  ) throws {
    files = (folder.appending(path: "\(name).output"), folder.appending(path: "\(name).errors"))
    process = Process()
    // A test runs on a thread that blocks signals, which a process inherits; env gives them back.
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["--default-signal=HUP,INT,TERM,USR1,USR2", executable] + arguments
    process.currentDirectoryURL = folder
    process.environment = ProcessInfo.processInfo.environment.merging(["apnscope": Command.path]) { $1 }
    for file in [files.output, files.errors] { try Data().write(to: file) }
    process.standardInput = try input.map { try FileHandle(forReadingFrom: $0) } ?? FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: files.output)
    process.standardError = try FileHandle(forWritingTo: files.errors)
    try process.run()
  }

  deinit { if process.isRunning { send(SIGKILL) } }

  var identifier: Int32 { process.processIdentifier }
  var isRunning: Bool { process.isRunning }
  var output: String { (try? String(contentsOf: files.output, encoding: .utf8)) ?? "" }
  var errors: String { (try? String(contentsOf: files.errors, encoding: .utf8)) ?? "" }
  var outputBytes: [UInt8] { (try? Data(contentsOf: files.output)).map { [UInt8]($0) } ?? [] }

  func send(_ signal: Int32) { if process.isRunning { kill(identifier, signal) } }

  /// Waits for its end, and kills it when that takes longer.
  func end(within seconds: Double = 60) throws -> Outcome {
    if !(waitUntil(seconds) { !self.process.isRunning }) {
      send(SIGKILL)
      process.waitUntilExit()
      throw TimeoutError("\(process.arguments?.joined(separator: " ") ?? "") runs longer than \(seconds) s: \(errors)")
    }
    process.waitUntilExit()
    return Outcome(
      status: process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus,
      output: output, errors: errors)
  }
}

struct TimeoutError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// Whether the condition came true in time.
func waitUntil(_ seconds: Double = 30, _ condition: () throws -> Bool) rethrows -> Bool {
  let end = ContinuousClock.now + .seconds(seconds)
  while ContinuousClock.now < end {
    if try condition() { return true }
    usleep(5_000)
  }
  return try condition()
}
