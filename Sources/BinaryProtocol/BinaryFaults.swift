import Bytes
import PushModel

/// Faults that can be seen in a notification alone, by the status that names them.
///
/// Whether a token is a device's, and what topic the certificate has, cannot be seen.
public struct BinaryFaults: OptionSet, Sendable {
  public let rawValue: UInt8
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Priority 10, or none, on a payload that has nothing to show: status 1.
  public static let silentAtOnce = BinaryFaults(rawValue: 1 << 1)
  /// An empty token, or none: status 2.
  public static let missingToken = BinaryFaults(rawValue: 1 << 2)
  /// An empty payload, or none: status 4.
  public static let missingPayload = BinaryFaults(rawValue: 1 << 4)
  /// Longer or shorter than the documented 32 bytes: status 5.
  public static let tokenSize = BinaryFaults(rawValue: 1 << 5)
  /// The payload is longer than any gateway accepted in some year, the lowest limit being 256 bytes: status 7.
  public static let payloadSize = BinaryFaults(rawValue: 1 << 7)

  /// Whether the status names one of these faults.
  public func explains(_ status: ErrorResponse.Status) -> Bool {
    (1...7).contains(status.rawValue) && rawValue & 1 << status.rawValue != 0
  }
}

extension Push {
  /// The faults that can be seen in the notification.
  public var faults: BinaryFaults {
    var faults: BinaryFaults = []
    if fields.token.length == 0 { faults.insert(.missingToken) }
    if fields.token.length != DeviceToken.usualLength { faults.insert(.tokenSize) }
    if fields.payload.length == 0 { faults.insert(.missingPayload) }
    if fields.payload.length > 256 { faults.insert(.payloadSize) }
    if fields.priority ?? 10 == 10, PayloadRules.isSilent(payload) { faults.insert(.silentAtOnce) }
    return faults
  }
}
