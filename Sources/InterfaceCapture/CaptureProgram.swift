import Bytes
import CommandFiles
import Glibc
import PacketCapture

/// A program that captures from an interface and writes to a pipe: `dumpcap`, which needs no privileges of this
/// process, or `tcpdump` if there is no `dumpcap`.
package enum CaptureProgram: String, CaseIterable {
  case dumpcap, tcpdump

  /// Memory of the kernel for packets that wait for the program, in MiB: the usual 2 MiB lose packets of a burst.
  private static let buffer = 32

  private func arguments(_ interface: String, _ filter: String?) -> [String] {
    switch self {
    case .dumpcap:
      [rawValue, "-q", "-p", "-B", "\(Self.buffer)", "-i", interface] + (filter.map { ["-f", $0] } ?? []) + ["-w", "-"]
    case .tcpdump:
      [rawValue, "-p", "-n", "-U", "--immediate-mode", "-B", "\(Self.buffer << 10)", "-i", interface, "-w", "-"]
        + (filter.map { ["--", $0] } ?? [])
    }
  }

  /// Starts to capture; `nil` when it is not installed.
  func capture(
    _ interface: String, filter: String?, output: Int32, errors: Int32, endingSignals: [Int32]
  ) throws(InterfaceCaptureFailure) -> pid_t? {
    try Self.start(arguments(interface, filter), output: output, errors: errors, endingSignals)
  }

  /// Lists the network interfaces on standard output.
  ///
  /// - Parameter endingSignals: the signals that end the program, whatever this process does with them.
  package static func listInterfaces(endingSignals: [Int32]) throws(InterfaceCaptureFailure) {
    for program in allCases {
      let process = try start(
        [program.rawValue, "-D"], output: STDOUT_FILENO, errors: STDERR_FILENO, endingSignals)
      guard let process else { continue }
      if ChildProgram.wait(for: process) == 0 { return }
      throw .cannotList
    }
    throw .noProgram
  }

  /// The program's counts of dropped packets, parsed from the lines of its standard error.
  func loss(_ interface: String, _ lines: [String]) -> CaptureLoss? {
    // dumpcap writes its counts into the capture.
    guard self == .tcpdump else { return nil }
    func count(_ words: String) -> Int? {
      lines.lazy.compactMap { line in line.contains(words) ? Int(line.prefix { $0.isNumber }) : nil }.first
    }
    return CaptureLoss(
      interface: interface, interfaceDropped: count("dropped by interface"),
      systemDropped: count("dropped by kernel"), received: count("received by filter"))
  }

  /// The reason it gives for its end.
  func reason(_ lines: [String]) -> String {
    let noise = ["Capturing on", "File:", "Packets", "tcpdump: listening", "tcpdump: verbose", "tcpdump: data link"]
    let said = lines.filter { line in
      !noise.contains { line.hasPrefix($0) } && line.first?.isNumber != true
    }.map { line in line.hasPrefix("\(rawValue): ") ? String(line.dropFirst(rawValue.count + 2)) : line }
    return said.joined(separator: " ")
  }

  // MARK: processes

  /// Starts a program in its own process group, so that Ctrl-C does not reach it directly; `nil` when it is not
  /// installed.
  private static func start(
    _ arguments: [String], output: Int32, errors: Int32, _ endingSignals: [Int32]
  ) throws(InterfaceCaptureFailure) -> pid_t? {
    let (process, code) = ChildProgram.spawn(arguments, output: output, errors: errors, endingSignals: endingSignals)
    if code == 0 { return process }
    guard code == ENOENT else { throw .cannotStart(program: arguments[0], code: code) }
    return nil
  }
}

/// Ends a program when this process ends, however that happens: a program that waits for packets would not notice. The
/// kernel's mechanism for this (PR_SET_PDEATHSIG) does not work for programs with capabilities, which dumpcap usually
/// has.
///
/// A shell waits for the end of a pipe whose writing end this process holds. The shell is in the program's process
/// group, so that the group's number cannot be reused while the shell runs.
struct Lifeline {
  private let writingEnd: Int32
  private let guardian: pid_t

  /// - Parameter pipe: a pipe that programs do not inherit. The lifeline owns both ends from now on.
  init(_ pipe: (read: Int32, write: Int32), of program: pid_t, endingSignals: [Int32]) {
    let script = "trap '' INT TERM HUP; read -r _; kill -TERM -\(program)"
    let (process, code) = ChildProgram.spawn(
      ["sh", "-c", script], input: pipe.read, group: program, endingSignals: endingSignals)
    guardian = code == 0 ? process : 0
    writingEnd = pipe.write
    close(pipe.read)
  }

  /// The program has ended.
  func end() {
    close(writingEnd)
    if guardian > 0 { _ = ChildProgram.wait(for: guardian) }
  }
}
