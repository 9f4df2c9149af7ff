/// A version of the protocol, by its number on the wire.
public struct TLSVersion: RawRepresentable, Sendable, Hashable, Comparable, CustomStringConvertible {
  public let rawValue: UInt16
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  public static let tls10 = TLSVersion(rawValue: 0x0301)
  public static let tls11 = TLSVersion(rawValue: 0x0302)
  public static let tls12 = TLSVersion(rawValue: 0x0303)
  public static let tls13 = TLSVersion(rawValue: 0x0304)

  /// The version written as "1.2".
  public init?(_ text: String) {
    switch text {
    case "1.0": self = .tls10
    case "1.1": self = .tls11
    case "1.2": self = .tls12
    case "1.3": self = .tls13
    default: return nil
    }
  }

  public static func < (a: TLSVersion, b: TLSVersion) -> Bool { a.rawValue < b.rawValue }

  public var description: String {
    switch self {
    case .tls10: "TLS 1.0"
    case .tls11: "TLS 1.1"
    case .tls12: "TLS 1.2"
    case .tls13: "TLS 1.3"
    default: "TLS version \(rawValue)"
    }
  }
}
