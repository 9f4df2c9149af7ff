import Bytes
import CommandFiles
import Glibc
import PacketCapture

/// A capture from an interface that another program writes to a pipe.
package final class LiveCapture {
  /// What is captured, and where it is kept.
  package struct Options: Sendable {
    package var interface: String
    /// A filter expression for the capturing program; `nil`: all packets.
    package var filter: String?
    /// The ring of files that the packets are also written to; `nil`: none.
    package var ring: CaptureRing.Options?
    /// The longest block of the capture that is kept, in bytes.
    package var maximumBlockLength: Int
    /// The signals that end the capturing program, whatever this process does with them.
    package var endingSignals: [Int32]
    /// Called once when the ring can no longer be written, by a thread of the capture's own.
    package var onRingFailure: @Sendable (any Error) -> Void

    package init(
      interface: String, filter: String?, ring: CaptureRing.Options?, maximumBlockLength: Int,
      endingSignals: [Int32], onRingFailure: @escaping @Sendable (any Error) -> Void
    ) {
      (self.interface, self.filter, self.ring) = (interface, filter, ring)
      (self.maximumBlockLength, self.endingSignals) = (maximumBlockLength, endingSignals)
      self.onRingFailure = onRingFailure
    }
  }

  /// The path from which the packets are read.
  package let path: String
  package let interface: String
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

  /// Starts to capture.
  ///
  /// - Throws: an `InterfaceCaptureFailure` if no program can be started, or the ring's folder cannot be used.
  package init(_ options: Options) throws(InterfaceCaptureFailure) {
    interface = options.interface
    let ring = try Self.ring(options)
    let packets = try Self.makePipe(interface)
    let errors = try Self.makePipe(interface)
    let lifelinePipe = try Self.makePipe(interface)
    let relayPipe: (read: Int32, write: Int32)? = if ring != nil { try Self.makePipe(interface) } else { nil }
    self.errors = errors.read
    defer {
      close(packets.write)
      close(errors.write)
    }
    for program in CaptureProgram.allCases {
      let process = try program.capture(
        interface, filter: options.filter, output: packets.write, errors: errors.write,
        endingSignals: options.endingSignals)
      guard let process else { continue }
      (self.program, self.process) = (program, process)
      lifeline = Lifeline(lifelinePipe, of: process, endingSignals: options.endingSignals)
      if let ring, let relayPipe {
        let relay = CaptureRelay(packets.read, to: ring, relayPipe, onFailure: options.onRingFailure)
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
    throw .noProgram
  }

  private static func ring(_ options: Options) throws(InterfaceCaptureFailure) -> CaptureRing? {
    guard let ring = options.ring else { return nil }
    do throws(FileFailure) {
      return try CaptureRing(
        ring, interface: options.interface, maximumBlockLength: options.maximumBlockLength)
    } catch {
      throw .ring(error)
    }
  }

  deinit {
    closePipe()
    close(errors)
    if !hasEnded {
      kill(process, SIGKILL)
      _ = ChildProgram.wait(for: process)
      lifeline.end()
    }
  }

  /// F_SETPIPE_SZ, which the module does not have.
  private static let setPipeSize: Int32 = 1_031

  /// A pipe that programs do not inherit.
  private static func makePipe(
    _ interface: String
  ) throws(InterfaceCaptureFailure) -> (read: Int32, write: Int32) {
    var ends: [Int32] = [0, 0]
    guard unsafe Glibc.pipe(&ends) == 0 else { throw .cannotConnect(interface: interface, code: errno) }
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
  package func use(secrets lines: String) { relay?.add(secrets: lines) }

  // MARK: the end

  /// Whether to continue reading. A request to stop ends the program, whose last packets and counts are still read.
  package func proceed(isStopped: Bool) -> Bool {
    readErrors()
    guard isStopped else { return true }
    let now = ContinuousClock.now
    guard let stopped else {
      self.stopped = now
      kill(process, SIGINT)
      return true
    }
    return stopped.duration(to: now) < Self.patience
  }

  /// How a capture ended.
  package struct Ending {
    /// The program ended by itself.
    package var failure: InterfaceCaptureFailure?
    /// The ring could not be written, which `Options.onRingFailure` has said.
    package var hasRingFailed: Bool
    /// The counts of dropped packets that the program reports.
    package var loss: CaptureLoss?
  }

  /// Waits for the program, and ends it if necessary.
  ///
  /// - Parameters:
  ///   - isWanted: packets were read until the program ended.
  ///   - isStopped: the user has asked for the end.
  ///   - hasRead: at least one packet was read.
  package func end(isWanted: Bool, isStopped: Bool, hasRead: Bool) -> Ending {
    hasEnded = true
    var status: Int32?
    let mayEnd = isWanted && stopped == nil && !isStopped
    // A pipe that has ended is the end of the program, in a moment.
    if mayEnd { status = ChildProgram.wait(for: process, atMost: Self.patience) }
    let endedByItself = status
    // The program may wait until the pipe is read.
    closePipe()
    if status == nil {
      kill(process, SIGINT)
      status = ChildProgram.wait(for: process, atMost: Self.patience)
    }
    if status == nil {
      kill(process, SIGKILL)
      _ = ChildProgram.wait(for: process)
    }
    lifeline.end()
    readErrors()
    let lines = String(decoding: said, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
    let failure = endedByItself.map { status in
      InterfaceCaptureFailure.ended(
        interface: interface, program: program.rawValue, status > 128 ? .signal(status - 128) : .status(status),
        reason: program.reason(lines), hasRead: hasRead)
    }
    return Ending(
      failure: failure, hasRingFailed: relay?.finish() == false, loss: program.loss(interface, lines))
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
