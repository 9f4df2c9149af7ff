import Bytes
import Glibc

/// An IPv4 or IPv6 address; IPv4 is stored as an IPv4-mapped address, `::ffff:a.b.c.d`.
public struct IPAddress: Sendable, Hashable, CustomStringConvertible {
  @usableFromInline let high: UInt64
  @usableFromInline let low: UInt64

  @inlinable package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
  @inlinable package init(v4 address: UInt32) { self.init(high: 0, low: 0xffff_0000_0000 | UInt64(address)) }

  init?(_ text: String, isV6: Bool) {
    var bytes = [UInt8](repeating: 0, count: 16)
    // Safe: an address of either family has at most 16 bytes.
    guard unsafe inet_pton(isV6 ? AF_INET6 : AF_INET, text, &bytes) == 1 else { return nil }
    let spans = bytes.rawBytes
    if isV6 {
      self.init(high: spans.uint64(at: 0), low: spans.uint64(at: 8))
    } else {
      self.init(v4: spans.uint32(at: 0))
    }
  }

  /// Whether the address is an IPv4 address.
  public var isV4: Bool { high == 0 && low >> 32 == 0xffff }

  /// Dotted decimal for IPv4; the canonical text of RFC 5952 for IPv6.
  public var description: String {
    if isV4 { return [24, 16, 8, 0].map { String((low >> $0) & 255) }.joined(separator: ".") }
    let groups = (0..<8).map { UInt16(truncatingIfNeeded: ($0 < 4 ? high : low) >> UInt64(48 - 16 * ($0 % 4))) }
    // The longest run of two or more zero groups becomes "::"; of runs with equal lengths the first.
    var best = 0..<0
    var start: Int?
    for index in 0...8 {
      if index < 8 && groups[index] == 0 {
        start = start ?? index
      } else if let from = start {
        if index - from > max(1, best.count) { best = from..<index }
        start = nil
      }
    }
    func text(_ groups: some Sequence<UInt16>) -> String { groups.map { String($0, radix: 16) }.joined(separator: ":") }
    return best.isEmpty ? text(groups) : text(groups[..<best.lowerBound]) + "::" + text(groups[best.upperBound...])
  }
}

/// An address and a TCP port.
public struct Endpoint: Sendable, Hashable, CustomStringConvertible {
  /// The IP address.
  public var address: IPAddress
  /// The TCP port.
  public var port: UInt16

  /// Makes an endpoint.
  @inlinable public init(address: IPAddress, port: UInt16) {
    self.address = address
    self.port = port
  }

  /// Parses the format of `description`; `nil` for anything else.
  public init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    let host = text[..<colon]
    let isV6 = host.hasPrefix("[") && host.hasSuffix("]")
    guard let address = IPAddress(isV6 ? String(host.dropFirst().dropLast()) : String(host), isV6: isV6) else {
      return nil
    }
    self.init(address: address, port: port)
  }

  /// The address and port as `10.0.0.5:55054` or `[fe80::1]:2195`.
  public var description: String { address.isV4 ? "\(address):\(port)" : "[\(address)]:\(port)" }

  @inlinable static func isOrdered(_ a: Endpoint, _ b: Endpoint) -> Bool {
    if a.address.high != b.address.high { return a.address.high < b.address.high }
    if a.address.low != b.address.low { return a.address.low < b.address.low }
    return a.port <= b.port
  }
}

/// The two endpoints of a TCP connection in a fixed order, so that both directions have the same flow.
public struct Flow: Sendable, Hashable {
  /// The endpoint that sorts first.
  public let low: Endpoint
  /// The endpoint that sorts last.
  public let high: Endpoint

  /// The flow and direction of a segment.
  @inlinable
  package static func of(source: Endpoint, destination: Endpoint) -> (flow: Flow, direction: FlowDirection) {
    Endpoint.isOrdered(source, destination)
      ? (Flow(low: source, high: destination), .forward) : (Flow(low: destination, high: source), .reverse)
  }

  @inlinable init(low: Endpoint, high: Endpoint) {
    self.low = low
    self.high = high
  }
}

/// One of the two directions of a flow, identified by the order of the flow's endpoints.
///
/// A direction does not say who is the client: bytes are delivered before that is known, and even if it never is.
/// `ConnectionEvent.initiator` names the direction of the client.
public enum FlowDirection: Sendable, Hashable {
  /// From the `low` endpoint to the `high` one.
  case forward
  /// From the `high` endpoint to the `low` one.
  case reverse

  /// The other direction of the same flow.
  @inlinable public var opposite: FlowDirection {
    switch self {
    case .forward: .reverse
    case .reverse: .forward
    }
  }
}
