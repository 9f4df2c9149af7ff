import Foundation
import Glibc
import Testing

/// dumpcap on the loopback interface, which has everything on file that was sent between its start and its end.
///
/// A datagram that nobody listens for shows both: what is on file behind it came later, and what came before it is on
/// file when it is.
final class LoopbackCapture {
  private static let program = "/usr/bin/dumpcap"
  static let isPossible = FileManager.default.isExecutableFile(atPath: program) && getuid() == 0

  let file: String
  private let running: RunningProcess
  private let folder: URL
  private let sentinel: UDPSocket

  convenience init(port: Int, file: String, in command: Command) throws {
    try self.init(ports: [port], file: file, in: command)
  }

  /// Returns when packets of these TCP ports come to the file, which is of the older kind when it is called `.pcap`.
  init(ports: [Int], file: String, in command: Command) throws {
    (self.file, folder) = (file, command.folder)
    sentinel = try UDPSocket()
    let filter = (ports.map { "tcp port \($0)" } + ["udp port \(sentinel.port)"]).joined(separator: " or ")
    running = try RunningProcess(
      Self.program,
      ["-q", "-i", "lo", "-f", filter, "-B", "64", "-w", file] + (file.hasSuffix(".pcap") ? ["-P"] : []),
      in: command.folder)
    try waitForDatagram()
  }

  /// Ends it when all that was sent is on file.
  func end() throws {
    try waitForDatagram()
    running.send(SIGINT)
    _ = try running.end()
  }

  private func waitForDatagram() throws {
    let mark = UUID().uuidString
    let isOnFile = waitUntil {
      sentinel.send(mark)
      guard let bytes = try? Data(contentsOf: folder.appending(path: file)) else { return !running.isRunning }
      return bytes.range(of: Data(mark.utf8)) != nil
    }
    guard isOnFile, running.isRunning else { throw TimeoutError("dumpcap does not capture: \(running.errors)") }
  }
}

/// A datagram socket of the loopback interface that sends to itself.
private final class UDPSocket {
  private let descriptor: Int32
  let port: Int

  init() throws {
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    self.descriptor = descriptor
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    // Safe: the address lives through the calls, which are told its size.
    let result = unsafe withUnsafeMutablePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> Int32 in
        guard unsafe bind(descriptor, address, length) == 0, unsafe getsockname(descriptor, address, &length) == 0
        else { return -1 }
        return unsafe connect(descriptor, address, length)
      }
    }
    port = Int(in_port_t(bigEndian: address.sin_port))
    guard result == 0 else { throw TimeoutError("no datagram socket: \(errno)") }
  }

  deinit { close(descriptor) }

  /// Its buffer may be full, which does not matter: the interface has carried the datagram all the same.
  func send(_ text: String) {
    let bytes = Array(text.utf8)
    _ = unsafe bytes.withUnsafeBytes { unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT)) }
  }
}
