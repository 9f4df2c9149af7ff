import Bytes
import DeviceProtocol
import TLSFoundation

/// A notification that a simulated device has received.
public struct DeviceNotification: Sendable, Equatable {
  /// UNIX nanoseconds at which it was read.
  public var time: Int64
  /// The number of the device.
  public var device: UInt64
  /// The message of the gateway.
  public var delivery: DeviceMessage.Delivery

  /// Makes a notification.
  public init(time: Int64, device: UInt64, delivery: DeviceMessage.Delivery) {
    (self.time, self.device, self.delivery) = (time, device, delivery)
  }

  /// Writes a JSON object with a line end.
  ///
  /// - Parameter hasPayload: whether the payload itself is written, in Base64, or else its SHA-256.
  public func writeLine(to output: inout ByteWriter, hasPayload: Bool = false) {
    output.write("{\"time_ns\":")
    output.write(decimal: Int(time))
    output.write(",\"device\":")
    output.write(decimal: device)
    output.write(",\"token\":\"")
    output.write(hex: delivery.token.rawBytes)
    output.write("\",\"topic\":")
    output.write(jsonString: delivery.topic)
    output.write(",\"sequence\":")
    output.write(decimal: delivery.sequence)
    output.write(",\"sent_ns\":")
    output.write(decimal: Int(delivery.sent))
    output.write(",\"stored\":")
    output.write(delivery.isStored ? "true" : "false")
    output.write(",\"repeated\":")
    output.write(delivery.isRepeated ? "true" : "false")
    output.write(",\"priority\":")
    output.write(decimal: UInt64(delivery.priority))
    if let pushType = delivery.pushType {
      output.write(",\"push_type\":")
      output.write(jsonString: pushType)
    }
    if let collapseID = delivery.collapseID {
      output.write(",\"collapse_id\":")
      output.write(jsonString: collapseID)
    }
    if hasPayload {
      output.write(",\"payload\":\"")
      output.write(base64: delivery.payload.rawBytes)
    } else {
      output.write(",\"payload_sha256\":\"")
      output.write(hex: SHA256.digest(delivery.payload.rawBytes).rawBytes)
    }
    output.write("\"}\n")
  }
}
