import BinaryProtocol
import Foundation
import TestSupport
import Testing

/// How it ends, and what signals do.
@Suite("simulate: end and signals", .waiting)
struct SimulateEndTests {
  @Test(
    "SIGINT, SIGTERM and SIGHUP: open connections get status 10, and the ledger is written",
    arguments: [SIGINT, SIGTERM, SIGHUP])
  func signal(number: Int32) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--plain", "--metrics", "127.0.0.1:0"], in: command)
      let provider = try PlainClient(simulator.gateway)
      try provider.send((1...10).flatMap { Frames.framed($0) })
      #expect(simulator.hasReceived(10))
      simulator.send(number)
      #expect(try provider.receive() == Frames.response(10, 10))
      provider.close()
      let outcome = try simulator.end()
      #expect(outcome.status == 0)
      #expect(outcome.errors == "")
      #expect(outcome.output.contains("notifications  10 received = 10 accepted + 0 rejected + 0 discarded"))
      let ledger = try simulator.ledger()
      #expect(ledger.gateway.accepted == 10)
      #expect(ledger.gateway.binary.errorResponses == ["10": 1])
      #expect(ledger.connections.map(\.end) == [.shutdown])
    }
  }

  @Test("A signal at the moment it is ready") func signalAtOnce() throws {
    try SimulatorProcess.inFolder { command in
      for number in 0..<8 {
        let simulator = try SimulatorProcess(["--plain"], in: command, name: "\(number)")
        simulator.send(SIGUSR1)
        simulator.send(SIGUSR2)
        #expect(try simulator.stop().gateway.connections == 0)
      }
    }
  }

  @Test("timeout(1), which sends its signal twice, gets the ledger written") func wrapper() throws {
    try Command.inFolder { command in
      let wrapper = try RunningProcess(
        "timeout",
        [
          "10m", Command.path, "simulate", "--plain", "--gateway", "127.0.0.1:0", "--no-feedback", "--ledger", "l.json",
        ], in: command.folder)
      #expect(waitUntil { wrapper.output.contains("gateway ") })
      // Its time is over.
      wrapper.send(SIGALRM)
      #expect(try wrapper.end().status == 124)
      #expect(try command.read("l.json").contains(#""kind" : "simulate""#))
    }
  }

  @Test("A second signal ends it at once, in whatever the first one has it do") func second() throws {
    try SimulatorProcess.inFolder { command in
      // It cannot finish: its ledger goes to a pipe that is full.
      let pipe = try FullPipe(command.folder.appending(path: "simulator.ledger.json"))
      let simulator = try SimulatorProcess(["--plain"], in: command)
      let provider = try PlainClient(simulator.gateway)
      try provider.send(Frames.framed(1))
      simulator.send(SIGINT)
      // Its answer, or just the connection's end when the signal was faster than the notification.
      _ = try? provider.receive()
      provider.close()
      // Two signals within half a second count as one.
      usleep(600_000)
      #expect(simulator.isRunning)
      simulator.send(SIGINT)
      #expect(try simulator.end().status == 130)
      pipe.close()
    }
  }

  @Test("--for ends it, and not before its time") func limit() throws {
    try SimulatorProcess.inFolder { command in
      let start = ContinuousClock.now
      // Not a SimulatorProcess, which looks for its ports while it runs: its time may be over before that.
      let simulator = try RunningProcess(
        Command.path,
        [
          "simulate", "--plain", "--gateway", "127.0.0.1:0", "--no-feedback", "--for", "200ms", "--ledger", "l.json",
          "--log", "l.jsonl",
        ], in: command.folder)
      let outcome = try simulator.end()
      #expect(outcome.status == 0)
      #expect(outcome.output.contains("gateway 127.0.0.1:"))
      #expect(ContinuousClock.now - start >= .milliseconds(200))
      #expect(try SimulatorProcess.ledger("l.json", log: "l.jsonl", in: command.folder).gateway.connections == 0)
    }
  }

  @Test("SIGUSR1: status 10 to the connections there are, and it goes on with new ones") func maintenance() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--plain", "--metrics", "127.0.0.1:0"], in: command)
      for round in 1...3 {
        let provider = try PlainClient(simulator.gateway)
        try provider.send((1...20).flatMap { Frames.framed($0) })
        #expect(simulator.hasReceived(20 * round))
        simulator.send(SIGUSR1)
        #expect(try provider.receive() == Frames.response(10, 20))
        provider.close()
      }
      let ledger = try simulator.stop()
      #expect(ledger.gateway.connections == 3)
      #expect(ledger.gateway.accepted == 60)
      #expect(ledger.gateway.binary.errorResponses == ["10": 3])
    }
  }

  @Test("SIGUSR2: devices come online and get the latest; without it they wait") func online() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--plain", "--devices-offline", "100%", "--metrics", "127.0.0.1:0"], in: command)
      func push(_ number: UInt32, expiration: UInt32? = 0x7fff_ffff, token: UInt32 = 1) throws {
        let provider = try PlainClient(simulator.gateway)
        try provider.send(
          Frames.framed(number, token: Frames.token(token), expiration: expiration) + Frames.known)
        #expect(try provider.receive() == Frames.response(2, Frames.marker))
        provider.close()
      }
      try push(1)
      try push(2)
      try push(3, expiration: 0)
      try push(4, token: 2)
      simulator.send(SIGUSR2)
      #expect(waitUntil { simulator.metric("apnscope_devices_delivered_total") == 2 })
      try push(5)
      let devices = try simulator.stop().devices
      #expect(devices.delivered == 2)
      #expect(devices.coalesced == 1)
      #expect(devices.expired == 1)
      #expect(devices.stored == 1)
    }
  }
}

/// A provider without TLS, byte by byte.
final class PlainClient {
  private let descriptor: Int32

  init(_ port: Int) throws {
    // Not for the processes that other tests start meanwhile: it would not be closed before they end.
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var timeout = timeval(tv_sec: 120, tv_usec: 0)
    // Safe: the structures live through the calls, which are told their sizes.
    _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    let result = unsafe withUnsafePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw TimeoutError("cannot connect to port \(port)") }
  }

  func send(_ bytes: [UInt8]) throws {
    let count = unsafe bytes.withUnsafeBytes {
      unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
    }
    guard count == bytes.count else { throw TimeoutError("sent \(count) bytes of \(bytes.count)") }
  }

  /// The number of bytes that the system takes without a wait.
  func sendNow(_ bytes: [UInt8]) -> Int {
    // Safe: the buffer lives through the call.
    let count = unsafe bytes.withUnsafeBytes {
      unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
    }
    return max(0, count)
  }

  /// Everything up to the peer's end.
  func receive() throws -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
      guard count >= 0 else { throw TimeoutError("nothing to read, and no end: \(errno)") }
      if count == 0 { return bytes }
      bytes += buffer[..<count]
    }
  }

  /// The bytes that are there, without a wait.
  func receiveNow() throws -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      // Safe: the buffer lives through the call.
      let count = unsafe recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      if count < 0, errno == EAGAIN { return bytes }
      guard count > 0 else { throw TimeoutError("the connection has ended: \(errno)") }
      bytes += buffer[..<count]
    }
  }

  /// Something is there to be read, or the end is.
  var isReadable: Bool {
    var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    // Safe: one entry.
    return unsafe poll(&poller, 1, 0) == 1
  }

  private var isClosed = false

  func close() {
    if !isClosed { Glibc.close(descriptor) }
    isClosed = true
  }

  deinit { close() }
}

/// A named pipe that takes nothing more, so that who writes to it waits.
private final class FullPipe {
  private var descriptor: Int32

  init(_ path: URL) throws {
    guard unsafe mkfifo(path.path, 0o600) == 0 else { throw TimeoutError("no pipe: \(errno)") }
    descriptor = unsafe open(path.path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    let bytes = [UInt8](repeating: 0, count: 4_096)
    while unsafe write(descriptor, bytes, bytes.count) > 0 {}
  }

  func close() {
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  deinit { close() }
}
