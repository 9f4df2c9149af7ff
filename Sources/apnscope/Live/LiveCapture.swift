import ArgumentParser
import Bytes
import CommandFiles
import Glibc
import PacketCapture

/// A capture from an interface that another program writes to a pipe.
final class LiveCapture {
  /// The path from which the packets are read.
  let path: String
  let interface: String
  private let program: CaptureProgram
  private let process: pid_t
  private let lifeline: Lifeline
  /// The reading end of the pipe that is its standard error.
  private let errors: Int32
  private var said: [UInt8] = []
  private var pipe: Int32
  private let relay: CaptureRelay?
  private var stopped: ContinuousClock.Instant?
  private var hasEnded = false

  /// The time that it has to end after it was asked to.
  private static let patience = Duration.seconds(3)
  /// The most bytes of the program's standard error that are kept.
  private static let maximumSaid = 1 << 14

  /// Starts to capture. Reports an error and throws an exit code when that is not possible.
  init(_ interface: String, filter: String?, ring options: CaptureRing.Options?, maximumBlockLength: Int) throws {
    self.interface = interface
    let ring = try options.map {
      try CaptureRing($0, interface: interface, maximumBlockLength: maximumBlockLength)
    }
    let packets = try Self.makePipe(interface)
    let errors = try Self.makePipe(interface)
    let (lifelinePipe, relayPipe) = (try Self.makePipe(interface), try ring.map { _ in try Self.makePipe(interface) })
    self.errors = errors.read
    defer {
      close(packets.write)
      close(errors.write)
    }
    for program in CaptureProgram.allCases {
      guard
        let process = try program.capture(interface, filter: filter, output: packets.write, errors: errors.write)
      else { continue }
      (self.program, self.process) = (program, process)
      lifeline = Lifeline(lifelinePipe, of: process)
      if let ring, let relayPipe {
        let relay = CaptureRelay(packets.read, to: ring, relayPipe)
        pipe = relay.output
        self.relay = relay
      } else {
        pipe = packets.read
        relay = nil
      }
      path = "/proc/self/fd/\(pipe)"
      _ = fcntl(errors.read, F_SETFL, O_NONBLOCK)
      return
    }
    close(packets.read)
    close(errors.read)
    complain(CaptureProgram.missing)
    throw ExitStatus.unavailable
  }

  deinit {
    closePipe()
    close(errors)
    if !hasEnded {
      kill(process, SIGKILL)
      _ = CaptureProgram.wait(for: process)
      lifeline.end()
    }
  }

  /// F_SETPIPE_SZ, which the module does not have.
  private static let setPipeSize: Int32 = 1_031

  /// A pipe that programs do not inherit.
  private static func makePipe(_ interface: String) throws -> (read: Int32, write: Int32) {
    var ends: [Int32] = [0, 0]
    guard unsafe Glibc.pipe(&ends) == 0 else {
      complain("\(interface): \(SystemError.text(errno))")
      throw ExitStatus.inputOutput
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    // A pipe of 64 KiB would make the program wait in a burst. Above the system's limit it stays as it is.
    _ = fcntl(ends[1], setPipeSize, 1 << 20)
    return (ends[0], ends[1])
  }

  private func closePipe() {
    if pipe >= 0 { close(pipe) }
    pipe = -1
  }

  /// Adds secrets that were used, to be written into the ring's files.
  func use(secrets lines: String) { relay?.add(secrets: lines) }

  // MARK: the end

  /// Whether to continue reading. A signal that ends this process ends the program first, whose last packets and counts
  /// are still read.
  func proceed() -> Bool {
    readErrors()
    guard Interrupt.isRequested else { return true }
    let now = ContinuousClock.now
    guard let stopped else {
      self.stopped = now
      kill(process, SIGINT)
      return true
    }
    return stopped.duration(to: now) < Self.patience
  }

  /// Waits for the program, and reports if it has ended without a signal of this process.
  ///
  /// - Parameters:
  ///   - isWanted: packets were read until the program ended.
  ///   - hasRead: at least one packet was read.
  /// - Returns: the exit code of a failure, and the drop counts that the program reports.
  func end(isWanted: Bool, hasRead: Bool) -> (failure: ExitCode?, loss: CaptureLoss?) {
    hasEnded = true
    var status: Int32?
    let mayEnd = isWanted && stopped == nil && !Interrupt.isRequested
    // A pipe that has ended is the end of the program, in a moment.
    if mayEnd { status = CaptureProgram.wait(for: process, atMost: Self.patience) }
    let endedByItself = status
    // The program may wait until the pipe is read.
    closePipe()
    if status == nil {
      kill(process, SIGINT)
      status = CaptureProgram.wait(for: process, atMost: Self.patience)
    }
    if status == nil {
      kill(process, SIGKILL)
      _ = CaptureProgram.wait(for: process)
    }
    lifeline.end()
    readErrors()
    let lines = String(decoding: said, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
    var code: ExitCode?
    if let endedByItself {
      let reason = program.reason(lines)
      let how =
        endedByItself > 128 ? "was killed by signal \(endedByItself - 128)" : "ended with status \(endedByItself)"
      complain("\(interface): \(program.rawValue) \(how)\(reason.isEmpty ? "" : ": \(reason)")")
      code = (1...128).contains(endedByItself) && !hasRead ? ExitStatus.cannotOpen : ExitStatus.inputOutput
    }
    if relay?.finish() == false { code = code ?? ExitStatus.inputOutput }
    return (code, program.loss(interface, lines))
  }

  /// Reads the program's standard error.
  private func readErrors() {
    var bytes = [UInt8](repeating: 0, count: 4_096)
    while true {
      // Safe: at most the array's length is written.
      let count = unsafe read(errors, &bytes, bytes.count)
      guard count > 0 else { return }
      if said.count < Self.maximumSaid { said += bytes[..<count] }
    }
  }
}
