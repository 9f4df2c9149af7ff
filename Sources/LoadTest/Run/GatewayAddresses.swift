import Bytes
import Glibc
import NIOCore

/// The addresses of a gateway's name, resolved once, so that connections go to the addresses that were checked.
public struct GatewayAddresses: Sendable {
  /// Why a host has no address.
  public enum LookupError: Error, Sendable, Equatable, CustomStringConvertible {
    case noSuchHost
    /// The lookup failed, with the system's text.
    case failed(String)

    public var description: String {
      switch self {
      case .noSuchHost: "no such host"
      case .failed(let text): text
      }
    }
  }

  /// The result of one lookup.
  enum Answer {
    case addresses([SocketAddress])
    case noSuchHost
    /// Another attempt may succeed: the system's text.
    case temporary(String)
    case failed(String)
  }

  /// In the system's order, at least one.
  package let all: [SocketAddress]

  /// Looks the host up, and blocks until the resolver answers. Temporary failures are retried for 3 seconds.
  public init(host: String, port: Int) throws(LookupError) {
    try self.init(host: host, port: port, resolver: Self.ask) { usleep(250_000) }
  }

  /// - Parameter pause: waits a quarter of a second.
  init(host: String, port: Int, resolver: (String, Int) -> Answer, pause: () -> Void) throws(LookupError) {
    for attempt in 0... {
      switch resolver(host, port) {
      case .addresses(let addresses) where !addresses.isEmpty:
        all = addresses
        return
      case .addresses, .noSuchHost: throw .noSuchHost
      case .failed(let text): throw .failed(text)
      case .temporary(let text): if attempt >= 12 { throw .failed(text) }
      }
      pause()
    }
    throw .noSuchHost
  }

  /// Takes an address in numbers, which needs no lookup; `nil` for a name.
  public init?(literal host: String, port: Int) {
    guard let address = try? SocketAddress(ipAddress: host, port: port) else { return nil }
    all = [address]
  }

  /// The first address that is not of this machine's loopback interface; `nil` when all are.
  public var foreign: String? { all.first { !Self.isLoopback($0) }.map { $0.ipAddress ?? "\($0)" } }

  /// 127.0.0.0/8, also written as IPv6, and ::1.
  private static func isLoopback(_ address: SocketAddress) -> Bool {
    // As the system writes it, of which there is one way.
    guard let text = address.ipAddress else { return false }
    return switch address {
    case .v4: text.hasPrefix("127.")
    case .v6: text == "::1" || text.hasPrefix("::ffff:127.")
    case .unixDomainSocket: false
    }
  }

  /// The system's resolver.
  private static func ask(_ host: String, _ port: Int) -> Answer {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var first: UnsafeMutablePointer<addrinfo>?
    let code = unsafe getaddrinfo(host, "\(port)", &hints, &first)
    // Safe: the list is ours until it is freed, and its addresses are of the lengths that their families have.
    defer { if let list = unsafe first { unsafe freeaddrinfo(list) } }
    switch code {
    case 0: break
    case EAI_AGAIN: return .temporary(unsafe String(cString: gai_strerror(code)))
    case EAI_SYSTEM: return .failed(SystemError.text(errno))
    case EAI_MEMORY: return .failed(unsafe String(cString: gai_strerror(code)))
    default: return .noSuchHost
    }
    var addresses: [SocketAddress] = []
    var next = unsafe first
    while let entry = unsafe next {
      if let address = unsafe entry.pointee.ai_addr {
        switch unsafe entry.pointee.ai_family {
        case AF_INET:
          unsafe addresses.append(
            SocketAddress(UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self), host: host))
        case AF_INET6:
          unsafe addresses.append(
            SocketAddress(UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in6.self), host: host))
        default: break
        }
      }
      unsafe next = entry.pointee.ai_next
    }
    return .addresses(addresses)
  }
}
