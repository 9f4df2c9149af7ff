import Foundation
import TestSupport
import Testing

/// A process that a test has started and that ends with it: by itself, or killed at its deadline.
final class RunningProcess {
  private let process: ChildProcess
  private let files: (output: URL, errors: URL)
  private let line: [String]

  /// Output goes to files of this name in the folder, so that no pipe fills up.
  ///
  /// - Parameter pipe: what standard input is; else it is the file `input`, or nothing.
  init(
    _ executable: String, _ arguments: [String], in folder: URL, name: String = UUID().uuidString,
    input: URL? = nil, pipe: Pipe? = nil
  ) throws {
    files = (folder.appending(path: "\(name).output"), folder.appending(path: "\(name).errors"))
    line = [executable] + arguments
    process = try ChildProcess(
      executable, arguments, in: folder, environment: ["apnscope": Command.path],
      input: pipe.map { .pipe($0) } ?? input.map { .file($0) } ?? .nothing, output: files.output, errors: files.errors)
  }

  var identifier: Int32 { process.identifier }
  var isRunning: Bool { process.isRunning }
  var output: String { (try? String(contentsOf: files.output, encoding: .utf8)) ?? "" }
  var errors: String { (try? String(contentsOf: files.errors, encoding: .utf8)) ?? "" }
  var outputBytes: [UInt8] { (try? Data(contentsOf: files.output)).map { [UInt8]($0) } ?? [] }

  /// It has dealt with all that came: every thread of it sleeps, and one does in a read of standard input.
  var waitsForInput: Bool {
    let tasks = "/proc/\(identifier)/task"
    guard let threads = try? FileManager.default.contentsOfDirectory(atPath: tasks) else { return false }
    var isReading = false
    for thread in threads {
      guard let stat = try? String(contentsOfFile: "\(tasks)/\(thread)/stat", encoding: .utf8),
        let state = stat.split(separator: ")").last?.split(separator: " ").first,
        // The call's number, read(2) is 0 or 63 by the machine, and its arguments.
        let call = try? String(contentsOfFile: "\(tasks)/\(thread)/syscall", encoding: .utf8)
      else { continue }
      if state != "S" { return false }
      isReading = isReading || call.hasPrefix("0 0x0 ") || call.hasPrefix("63 0x0 ")
    }
    return isReading
  }

  func send(_ signal: Int32) { process.send(signal) }

  /// Waits for its end, and kills it when that takes longer. The bound is against a hang, and no claim.
  func end(within seconds: Int = 240) throws -> Outcome {
    let ending: ChildProcess.Ending
    do {
      ending = try process.end(within: seconds)
    } catch ChildProcess.Failure.late {
      throw TimeoutError("\(line.joined(separator: " ")) runs longer than \(seconds) s: \(errors)")
    }
    let outcome = Outcome(status: ending.status, output: output, errors: errors)
    if line[0] == Command.path { outcome.expectValidOutput(of: Array(line.dropFirst())) }
    return outcome
  }
}

struct TimeoutError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// Whether the condition came true in time. The bound is against a hang, and no claim.
func waitUntil(_ seconds: Double = 120, _ condition: () throws -> Bool) rethrows -> Bool {
  let end = ContinuousClock.now + .seconds(seconds)
  var pause: UInt32 = 2_000
  while ContinuousClock.now < end {
    if try condition() { return true }
    usleep(pause)
    // To look costs processor time, which what is waited for may need.
    pause = min(2 * pause, 50_000)
  }
  return try condition()
}
