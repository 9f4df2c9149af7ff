/// A protocol version, by its number in hellos and record headers.
///
/// Versions are compared for every record, so that all of it but the names is inlinable.
public struct TLSVersion: RawRepresentable, Sendable, Hashable, Comparable, CustomStringConvertible {
  public let rawValue: UInt16
  @inlinable public init(rawValue: UInt16) { self.rawValue = rawValue }

  @inlinable public static var ssl2: TLSVersion { TLSVersion(rawValue: 0x0002) }
  @inlinable public static var ssl3: TLSVersion { TLSVersion(rawValue: 0x0300) }
  @inlinable public static var tls10: TLSVersion { TLSVersion(rawValue: 0x0301) }
  @inlinable public static var tls11: TLSVersion { TLSVersion(rawValue: 0x0302) }
  @inlinable public static var tls12: TLSVersion { TLSVersion(rawValue: 0x0303) }
  @inlinable public static var tls13: TLSVersion { TLSVersion(rawValue: 0x0304) }

  /// Parses the text that `description` returns, as "TLS 1.2"; `nil` for anything else.
  public init?(_ text: String) {
    let named: [TLSVersion] = [.ssl2, .ssl3, .tls10, .tls11, .tls12, .tls13]
    guard let version = named.first(where: { $0.description == text }) else { return nil }
    self = version
  }

  @inlinable public static func == (a: TLSVersion, b: TLSVersion) -> Bool { a.rawValue == b.rawValue }
  @inlinable public static func < (a: TLSVersion, b: TLSVersion) -> Bool { a.rawValue < b.rawValue }

  public var description: String {
    switch self {
    case .ssl2: "SSL 2.0"
    case .ssl3: "SSL 3.0"
    case .tls10: "TLS 1.0"
    case .tls11: "TLS 1.1"
    case .tls12: "TLS 1.2"
    case .tls13: "TLS 1.3"
    default: "unknown version 0x" + String(Int(rawValue) + 0x1_0000, radix: 16).dropFirst()
    }
  }
}
