import Foundation

/// A TCP client without any idea of a protocol.
///
/// Its reads give up after 150 seconds, so that a test fails rather than hangs.
public struct RawClient: ~Copyable {
  private let descriptor: Int32

  public init(port: Int) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var patience = timeval(tv_sec: 150, tv_usec: 0)
    _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    let result = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw Failure(code: errno) }
  }

  deinit { close(descriptor) }

  public struct Failure: Error { public var code: Int32 }

  /// What cannot be written because the other side has closed is left out.
  public func write(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes {
        unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  public func write(_ text: String) { write(Array(text.utf8)) }

  public func endWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// All that comes until the other side closes; `nil` when it does not.
  public func readToEnd() -> String? { readAll().map { String(decoding: $0, as: UTF8.self) } }

  /// The bytes that come until the other side closes; `nil` when it does not.
  public func readAll() -> [UInt8]? {
    var all: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe piece.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
      if count > 0 {
        all += piece[..<count]
      } else if count == 0 || errno == ECONNRESET {
        return all
      } else {
        return nil
      }
    }
  }
}
