import PacketCapture

/// How a connection began and ended in its capture: what is needed to write its packets again.
package struct ConnectionOutline: Sendable {
  /// A FIN or RST.
  package struct Closing: Sendable {
    package var isFromClient: Bool
    package var isReset: Bool
    package var time: Timestamp
    package var packet: Int

    package init(
      isFromClient: Bool, isReset: Bool, time: Timestamp, packet: Int
    ) {
      self.isFromClient = isFromClient
      self.isReset = isReset
      self.time = time
      self.packet = packet
    }
  }

  /// The first bytes of both directions begin records: the SYN was captured, or the TLS handshake.
  package var isFromBeginning = false
  package var firstPacket = 0
  /// Over HTTP/2, all bytes of both directions were passed on as redacted frames.
  package var areFramesWhole = false
  /// The first of each end, and the latest, when that repeats one.
  package var closings: [Closing] = []

  package init(
    isFromBeginning: Bool = false, firstPacket: Int = 0, closings: [Closing] = []
  ) {
    self.isFromBeginning = isFromBeginning
    self.firstPacket = firstPacket
    self.closings = closings
  }
}
