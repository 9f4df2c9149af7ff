import Bytes

/// The rules of one device, by the protocol that it speaks: bytes and times go in, bytes and events come out.
protocol FleetSession {
  /// The number of the device in its population.
  var device: UInt64 { get }
  /// Bytes that wait for the rest of their message.
  var pendingBytes: Int { get }
  /// Whether `acknowledge` has something to write.
  var owesAcknowledgement: Bool { get }
  /// When `expire` has something to do, in nanoseconds since the fleet's start; `Int64.max`: never.
  var deadline: Int64 { get }

  mutating func connected(_ tools: inout SessionTools)
  /// The connection is gone.
  mutating func disconnected()
  /// Reads what the other end has sent, in pieces of any length.
  mutating func receive(_ bytes: RawSpan, _ tools: inout SessionTools)
  /// Acknowledges all that came.
  mutating func acknowledge(_ tools: inout SessionTools)
  /// The deadline has passed.
  mutating func expire(_ tools: inout SessionTools)
  /// The device goes.
  mutating func leave(_ tools: inout SessionTools)
  /// Nothing more is read or written on this connection.
  mutating func abandon()
  /// The device is set up anew from a copy.
  mutating func restore()
}

extension DeviceSession: FleetSession {
  var deadline: Int64 { .max }
  mutating func expire(_ tools: inout SessionTools) {}
}
