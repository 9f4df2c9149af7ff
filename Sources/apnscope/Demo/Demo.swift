import ArgumentParser
import Bytes
import CommandFiles
import FoundationEssentials
import Glibc
import Measurement
import Reporting

/// The steps of the demo: each runs commands as a user would type them.
struct Demo {
  /// Why it ended before its last step.
  struct End: Error {
    let reason: String?
    let code: ExitCode

    static let interrupted = End(reason: nil, code: ExitStatus.interrupted)
  }

  private let rate: String
  private let duration: String
  private let folder: String
  private let began = ContinuousClock.now
  private let isTerminal = isatty(STDOUT_FILENO) == 1
  private var simulator: DemoProcess?
  private var capture: DemoProcess?

  /// Makes the folder, and works in it.
  init(folder: String, rate: String, duration: String) throws {
    (self.folder, self.rate, self.duration) = (folder, rate, duration)
    // Results of somebody else's are not written over.
    guard unsafe mkdir(folder, 0o755) == 0 else {
      throw FileFailure(
        .cannotOpen, folder, errno == EEXIST ? "exists; choose another --output" : SystemError.text(errno))
    }
    guard unsafe chdir(folder) == 0 else { throw FileFailure(.cannotOpen, folder, code: errno) }
  }

  mutating func run() throws {
    title("1. Certificates for a test: an authority, a gateway, a provider of one topic.")
    try show(["identity", "--directory", "ids", "--topic", "com.example.app"])

    title("2. A gateway on this machine: it refuses some tokens, shuts connections down, and lost a few devices.")
    let (gateway, feedback) = try startGateway()
    try startCapture(gateway: gateway, feedback: feedback)

    title("3. A load: \(rate) for \(duration), with a few notifications that are bad on purpose.")
    try show([
      "load", "--identity", "ids", "--gateway", gateway, "--connections", "4", "--rate", rate, "--for", duration,
      "--faults", "missing-token=5e-5,oversize=5e-5", "--poll-feedback", "\(feedback),every=2s", "--keylog", Self.keys,
      "--output", "run.json",
    ])
    let isCaptured = try endCapture()
    _ = simulator?.end(SIGTERM)
    simulator = nil
    say("\nAt its end the gateway says what it saw:\n" + (lines(of: Self.said).dropFirst(2).joined(separator: "\n")))

    title("4. Do the books agree? Each side has counted by itself.")
    let holds = try compare(withRecording: isCaptured)

    title("5. A report of the run.")
    try show(["report", "run.json", "--ledger", "sim.json", "--output", "report"])
    let length = Int(nearest: began.duration(to: .now) / .seconds(1))
    if isCaptured {
      say("\nThe capture is in \(folder)/recording; see the protocol in Wireshark with 'apnscope dissector'.")
    }
    guard holds else { throw End(reason: "the books do not agree", code: ExitStatus.brokenBooks) }
    say("\nThe books agree. Open \(folder)/report/report.html in a browser. Done in \(length) s.")
  }

  /// Ends what is still running.
  mutating func endAll() {
    _ = capture?.end(SIGINT)
    _ = simulator?.end(SIGTERM)
    (capture, simulator) = (nil, nil)
  }

  // MARK: steps

  private static let keys = "run.keys"
  private static let said = "simulator.txt"

  private mutating func startGateway() throws -> (gateway: String, feedback: String) {
    // Longer than any load here; it is ended before.
    let arguments = [
      "simulate", "--identity", "ids", "--gateway", "127.0.0.1:0", "--feedback", "127.0.0.1:0", "--reject",
      "prefix=dead", "--reject", "prefix=cafe,status=1", "--shutdown-after", "12000", "--devices-uninstalled", "0.01%",
      "--ledger", "sim.json",
    ]
    commandLine(arguments, isBehind: true)
    let simulator = try DemoProcess(arguments, output: Self.said)
    self.simulator = simulator
    guard try waits(for: { lines(of: Self.said).contains { $0.hasPrefix("feedback ") } }, of: simulator) else {
      throw End(
        reason: "the gateway did not start: \(lines(of: Self.said).joined(separator: " "))",
        code: ExitStatus.unavailable)
    }
    func address(_ name: String) -> String {
      lines(of: Self.said).first { $0.hasPrefix(name) }.map { String($0.dropFirst(name.count)) } ?? ""
    }
    say(lines(of: Self.said).joined(separator: "\n"))
    return (address("gateway "), address("feedback "))
  }

  /// Starts a capture of both services, if this user may.
  private mutating func startCapture(gateway: String, feedback: String) throws {
    let ports = [gateway, feedback].map { String($0.split(separator: ":").last ?? "") }
    // The load writes to it; until then it is empty.
    close(unsafe open(Self.keys, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600))
    let arguments = [
      "inspect", "--interface", "lo", "--filter",
      "tcp port \(ports[0]) or tcp port \(ports[1]) or udp port \(Self.wakingPort)",
      "--keys", Self.keys,
      "--port", "\(ports[0])=gateway", "--port", "\(ports[1])=feedback", "--keep", "recording", "--format", "json",
    ]
    let capture = try DemoProcess(arguments, output: Self.inspection, errors: Self.captureErrors)
    // Its file begins with the first packet.
    let isOn = try waits(
      for: {
        Self.sendDatagram()
        return !files(in: "recording").isEmpty
      }, of: capture)
    if isOn, capture.isRunning {
      commandLine(arguments, isBehind: true)
      self.capture = capture
    } else {
      capture.end(SIGINT)
      say("\nWithout a capture: \(lines(of: Self.captureErrors).first ?? "it did not start").")
    }
  }

  /// The service "discard", to which anything may be sent, and which hardly any machine runs.
  private static let wakingPort: UInt16 = 9

  /// A packet that nobody reads but a capture.
  private static func sendDatagram() {
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = wakingPort.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    // Safe: the address lives through the call, which is told its size; no bytes are sent.
    unsafe withUnsafePointer(to: &address) { address in
      _ = unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe sendto(descriptor, nil, 0, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  private static let inspection = "inspection.json"
  private static let captureErrors = "capture.txt"

  /// Ends the capture when it has all that was sent; whether there was one.
  private mutating func endCapture() throws -> Bool {
    guard let capture else { return false }
    // What the kernel holds for it is written first, which takes longer on a busy machine.
    var (size, quiet) = (-1, 0)
    for _ in 0..<50 where quiet < 3 {
      guard !Interrupt.isRequested else { throw End.interrupted }
      usleep(200_000)
      let now = files(in: "recording").reduce(0) { $0 + self.size(of: "recording/\($1)") }
      (size, quiet) = (now, now == size ? quiet + 1 : 0)
    }
    capture.end(SIGINT)
    self.capture = nil
    return true
  }

  private func compare(withRecording isCaptured: Bool) throws -> Bool {
    let result = try ResultDocument.read("run.json")
    let ledger = try ResultDocument.readLedger("sim.json")
    var books = [RunReport.books(of: result, with: ledger)]
    if isCaptured {
      let report = try ResultDocument.inspection(in: try ResultDocument.contents(of: Self.inspection), Self.inspection)
      if let dropped = report.summary.droppedPackets, dropped > 0 {
        say(
          "\nThe capture is not whole: \(grouped(dropped)) packets were dropped. It is not compared; try --rate 5k/s.")
      } else {
        books.append(RunReport.books(of: report, with: ledger))
      }
    }
    for book in books { say("\n" + book.text) }
    return books.allSatisfy(\.holds)
  }

  // MARK: showing

  /// Shows a command and what it prints, and ends the demo when it fails.
  private func show(_ arguments: [String]) throws {
    commandLine(arguments, isBehind: false)
    let status = try DemoProcess(arguments).wait()
    if Interrupt.isRequested { throw End.interrupted }
    guard status == 0 else {
      throw End(reason: "'apnscope \(arguments[0])' ended with \(status), for the reason above", code: ExitCode(status))
    }
  }

  private func title(_ text: String) { say("\n" + bold(text)) }

  private func commandLine(_ arguments: [String], isBehind: Bool) {
    let words = arguments.map { $0.contains(" ") || $0.contains("(") ? "'\($0)'" : $0 }
    say("\n" + bold("$ apnscope " + words.joined(separator: " ") + (isBehind ? " &" : "")))
  }

  private func bold(_ text: String) -> String { isTerminal ? "\u{1b}[1m\(text)\u{1b}[0m" : text }

  /// Written at once, since commands write to the same output.
  private func say(_ text: String) {
    var bytes = Array((text + "\n").utf8)[...]
    while !bytes.isEmpty {
      // Safe: the bytes live through the call.
      let count = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      guard count > 0 else { return Interrupt.request() }
      bytes = bytes.dropFirst(count)
    }
  }

  // MARK: files

  private func lines(of file: String) -> [Substring] {
    let bytes = (try? WholeFile.read(file, maximumLength: 1 << 20)) ?? []
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
  }

  private func files(in folder: String) -> [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
  }

  private func size(of file: String) -> Int {
    var status = stat()
    return unsafe stat(file, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Waits up to a minute until something is so, while the process runs.
  private func waits(for isSo: () -> Bool, of process: DemoProcess) throws -> Bool {
    let end = ContinuousClock.now + .seconds(60)
    while ContinuousClock.now < end {
      if Interrupt.isRequested { throw End.interrupted }
      if isSo() { return true }
      guard process.isRunning else { return isSo() }
      usleep(20_000)
    }
    return false
  }
}
