/// A protocol version as it stands in hellos and record headers.
public struct TLSVersion: RawRepresentable, Sendable, Hashable, Comparable, CustomStringConvertible {
  public var rawValue: UInt16
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  public static let ssl2 = TLSVersion(rawValue: 0x0002)
  public static let ssl3 = TLSVersion(rawValue: 0x0300)
  public static let tls10 = TLSVersion(rawValue: 0x0301)
  public static let tls11 = TLSVersion(rawValue: 0x0302)
  public static let tls12 = TLSVersion(rawValue: 0x0303)
  public static let tls13 = TLSVersion(rawValue: 0x0304)

  /// Reads what `description` writes; `nil` for anything else.
  public init?(_ text: String) {
    guard
      let version = [.ssl2, .ssl3, .tls10, .tls11, .tls12, .tls13].first(where: { $0.description == text }) as Self?
    else { return nil }
    self = version
  }

  public static func < (a: TLSVersion, b: TLSVersion) -> Bool { a.rawValue < b.rawValue }

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
