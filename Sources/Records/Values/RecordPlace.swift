import PacketCapture

/// The sender of bytes: `client` is the provider, or the end that opened the connection.
public enum Direction: String, Sendable {
  case client, server
}

/// The service of a connection.
public enum Service: String, Sendable {
  case gateway, feedback
  /// Channel management of the provider API.
  case channels
  /// The connection carries another, known protocol, or other requests over HTTP/2.
  case other
  case unknown

  /// The services' documented server ports.
  public static let ofPorts: [UInt16: Service] = [2195: .gateway, 2196: .feedback]
}

/// The place of a record: its connection, its bytes in the stream of its direction, and the packet with its last byte.
public struct RecordPlace: Sendable, Equatable {
  /// Counts from 1 in the order of the connections' first packets.
  public var connection: Int
  /// The time of the packet; `.none` without times.
  public var time: Timestamp
  /// The packet's number, from 1; 0 for raw dumps, which have no packets. If there are several files, the number
  /// contains the file's as well (`PacketNumber`).
  public var packet: Int
  /// The offset of the record's first byte in the stream, from 0.
  public var offset: Int
  /// The record's bytes.
  public var length: Int

  @inlinable
  package init(connection: Int, time: Timestamp, packet: Int, offset: Int, length: Int) {
    (self.connection, self.time, self.packet) = (connection, time, packet)
    (self.offset, self.length) = (offset, length)
  }

  /// The number of the file; `nil` if there is only one file.
  public var file: Int? { PacketNumber.file(packet) > 0 ? PacketNumber.file(packet) : nil }
  /// The packet's number in its file; `nil` for raw dumps.
  public var packetInFile: Int? { PacketNumber.packet(packet) > 0 ? PacketNumber.packet(packet) : nil }
}
