import CSpawn
import Foundation
import Glibc
import Synchronization

/// A program that a test has started and that ends with it: by itself, or killed.
///
/// Foundation's `Process` needs a run loop in the thread that started it, else it and its descriptors stay; and it lists
/// the process's descriptors at each start, which ends in a fault when there are more than about 1,300.
public final class ChildProcess: Sendable {
  public enum Input {
    case nothing
    case file(URL)
    /// The process gets the reading end, which is closed here.
    case pipe(Pipe)
  }

  public enum Ending: Equatable, Sendable {
    case exit(Int32)
    case signal(Int32)

    /// As a shell says it: 128 and the signal's number when one ended it.
    public var status: Int32 {
      switch self {
      case .exit(let status): status
      case .signal(let number): 128 + number
      }
    }
  }

  public let identifier: pid_t
  private let known = Mutex<Ending?>(nil)

  /// Starts a program, by its path or a name to look up, in a folder. It has standard input, output and errors and no
  /// other descriptor, blocks no signal and ignores none.
  ///
  /// - Parameters:
  ///   - environment: what this process's environment is changed by.
  ///   - output: the file that it writes to, emptied; `nil`: what it writes is thrown away. The same for `errors`.
  public init(
    _ program: String, _ arguments: [String] = [], in folder: URL? = nil, environment: [String: String] = [:],
    input: Input = .nothing, output: URL? = nil, errors: URL? = nil
  ) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    switch input {
    case .nothing: posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    case .file(let file): posix_spawn_file_actions_addopen(&actions, 0, file.path, O_RDONLY, 0)
    case .pipe(let pipe): posix_spawn_file_actions_adddup2(&actions, pipe.fileHandleForReading.fileDescriptor, 0)
    }
    let flags = O_WRONLY | O_CREAT | O_TRUNC
    posix_spawn_file_actions_addopen(&actions, 1, output?.path ?? "/dev/null", flags, 0o600)
    if let errors, errors == output {
      posix_spawn_file_actions_adddup2(&actions, 1, 2)
    } else {
      posix_spawn_file_actions_addopen(&actions, 2, errors?.path ?? "/dev/null", flags, 0o600)
    }
    apnscope_add_folder_and_close(&actions, folder?.path)

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    let merged = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    var identifier: pid_t = 0
    let error = withCStrings([program] + arguments) { arguments in
      withCStrings(merged.map { "\($0)=\($1)" }) { environment in
        posix_spawnp(&identifier, program, &actions, &attributes, arguments, environment)
      }
    }
    guard error == 0 else { throw Failure.notStarted(program, error) }
    self.identifier = identifier
    if case .pipe(let pipe) = input { try pipe.fileHandleForReading.close() }
  }

  deinit {
    guard isRunning else { return }
    kill(identifier, SIGKILL)
    waitpid(identifier, nil, 0)
  }

  /// How it ended; `nil` while it runs.
  public var ending: Ending? {
    known.withLock { known in
      if known == nil { known = reaped() }
      return known
    }
  }

  public var isRunning: Bool { ending == nil }

  private func reaped() -> Ending? {
    var status: Int32 = 0
    switch waitpid(identifier, &status, WNOHANG) {
    case 0: return nil
    case identifier: break
    default: preconditionFailure("waitpid(\(identifier)): error \(errno)")
    }
    return status & 0x7f == 0 ? .exit(status >> 8 & 0xff) : .signal(status & 0x7f)
  }

  /// Sends a signal, unless it has ended.
  public func send(_ signal: Int32) {
    known.withLock { known in
      if known == nil { known = reaped() }
      if known == nil { kill(identifier, signal) }
    }
  }

  /// Waits for its end, and kills it when that takes longer. The bound is against a hang, and no claim.
  @discardableResult
  public func end(within seconds: Int = 240) throws -> Ending {
    let limit = ContinuousClock.now + .seconds(seconds)
    var pause: UInt32 = 500
    while ContinuousClock.now < limit {
      if let ending { return ending }
      usleep(pause)
      pause = min(2 * pause, 10_000)
    }
    send(SIGKILL)
    throw Failure.late(seconds: seconds)
  }

  public enum Failure: Error {
    case notStarted(String, Int32)
    case late(seconds: Int)
  }
}

/// Gives `body` the strings as an array of C strings that `nil` ends.
private func withCStrings<T>(_ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> T) -> T {
  let copies = strings.map { strdup($0) } + [nil]
  defer { for copy in copies { free(copy) } }
  return body(copies)
}
