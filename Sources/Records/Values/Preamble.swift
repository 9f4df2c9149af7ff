/// A preamble of a connection, before the first record or the TLS handshake: a request to a proxy, a header of a load
/// balancer, or the commands that start TLS.
public enum Preamble: String, Sendable, CaseIterable {
  case httpConnect = "http_connect"
  case socks4, socks5
  case proxyV1 = "proxy_v1"
  case proxyV2 = "proxy_v2"
  case startTLS = "starttls"
  case text
  /// Non-text bytes of another protocol.
  case other

  /// The name of the protocol, for people.
  public var name: String {
    switch self {
    case .httpConnect: "HTTP CONNECT"
    case .socks4: "SOCKS 4"
    case .socks5: "SOCKS 5"
    case .proxyV1: "PROXY v1"
    case .proxyV2: "PROXY v2"
    case .startTLS: "STARTTLS"
    case .text: "text"
    case .other: "another protocol"
    }
  }
}
