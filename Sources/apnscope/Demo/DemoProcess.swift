import CommandFiles
import Glibc

/// A command of this program in a process of its own.
///
/// It is in its own process group: Ctrl-C reaches this process alone, which ends the others in their order.
final class DemoProcess {
  /// This program, also when its file was replaced meanwhile, or has another name.
  private static let program = "/proc/self/exe"

  private let process: pid_t
  private var status: Int32?

  /// - Parameters:
  ///   - output: the file of its standard output and its errors; `nil`: those of this process.
  ///   - errors: the file of its errors, where they go elsewhere than its output.
  init(_ arguments: [String], output: String? = nil, errors: String? = nil) throws(FileFailure) {
    let out = try Self.open(output) ?? STDOUT_FILENO
    defer { if out != STDOUT_FILENO { close(out) } }
    let err = try Self.open(errors) ?? (output == nil ? STDERR_FILENO : out)
    defer { if err != STDERR_FILENO, err != out { close(err) } }
    let (process, code) = ChildProgram.spawn(
      ["apnscope"] + arguments, file: Self.program, output: out, errors: err, endingSignals: StopSignals.numbers)
    guard code == 0 else { throw FileFailure(.cannotOpen, Self.program, code: code) }
    self.process = process
  }

  private static func open(_ path: String?) throws(FileFailure) -> Int32? {
    guard let path else { return nil }
    let descriptor = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw FileFailure(.cannotOpen, path, code: errno) }
    return descriptor
  }

  /// Ends it when nobody has waited for its end.
  deinit {
    guard status == nil else { return }
    kill(process, SIGKILL)
    _ = ChildProgram.wait(for: process)
  }

  /// Whether it has not ended; waits a moment for that.
  var isRunning: Bool {
    status = status ?? ChildProgram.wait(for: process, atMost: .milliseconds(20))
    return status == nil
  }

  /// Waits for its end, and returns its exit status; asks it to end when this process is asked to.
  func wait() -> Int32 {
    while isRunning {
      if Interrupt.isRequested { return end(SIGTERM) }
    }
    return status ?? 0
  }

  /// Asks it to end, and returns its exit status. One that does not end within ten seconds is killed.
  @discardableResult
  func end(_ signal: Int32) -> Int32 {
    if status == nil {
      kill(process, signal)
      status = ChildProgram.wait(for: process, atMost: .seconds(10))
      if status == nil {
        kill(process, SIGKILL)
        status = ChildProgram.wait(for: process)
      }
    }
    return status ?? 0
  }
}
