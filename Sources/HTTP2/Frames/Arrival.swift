/// The place of bytes in the caller's input: carried along with them and returned, for the caller to recognise.
public struct Arrival: Sendable, Hashable {
  /// The time in nanoseconds since 1970 UTC.
  public var time: Int64
  /// The number of the packet, counted by the caller.
  public var packet: Int

  /// Makes a place.
  ///
  /// - Parameters:
  ///   - time: the time in nanoseconds since 1970 UTC.
  ///   - packet: the number of the packet.
  public init(time: Int64, packet: Int) { (self.time, self.packet) = (time, packet) }
}
