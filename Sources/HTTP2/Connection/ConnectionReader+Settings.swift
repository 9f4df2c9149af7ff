import Bytes

/// Settings, and flow-control windows.
extension ConnectionReader {
  mutating func receive(
    _ settings: [Setting], _ origin: FrameOrigin, _ direction: inout Direction, _ handler: inout some ConnectionHandler
  ) {
    handler.receive(settings: settings, origin)
    if direction.announced.count >= limits.announcedSettings {
      direction.announced.removeAll()
      loseSettings(&direction, &handler)
    }
    direction.announced.append(settings)
    for setting in settings where setting.name == .headerTableSize {
      if direction.side == .client {
        server?.decoder.announce(tableSize: Int(setting.value))
      } else {
        client?.decoder.announce(tableSize: Int(setting.value))
      }
    }
    if direction.side == .client {
      server?.allowed = direction.allowedToOther
      if let payload = server?.allowed?.payload { server?.reader.maximumFrameSize = payload }
    } else {
      client?.allowed = direction.allowedToOther
      if let payload = client?.allowed?.payload { client?.reader.maximumFrameSize = payload }
    }
  }

  /// The direction keeps to the other side's settings from here on.
  mutating func receiveAcknowledgement(
    _ origin: FrameOrigin, _ direction: inout Direction, _ handler: inout some ConnectionHandler
  ) {
    guard var other = take(direction.side == .client ? .server : .client) else { return }
    if let settings = other.applyAnnounced() {
      for setting in settings where setting.name == .headerTableSize { direction.decoder.acknowledge() }
      direction.allowed = other.allowedToOther
      handler.receiveAcknowledgement(inForce: other.inForce, origin)
      putBack(other)
    } else {
      putBack(other)
      // SETTINGS that were not seen are in force.
      loseSettings(&direction, &handler)
    }
  }

  mutating func count(_ length: Int, _ origin: FrameOrigin, _ direction: inout Direction) {
    let before = direction.windowUsed
    direction.windowUsed += length
    if before <= 65_535, direction.windowUsed > 65_535 { suspect(Violation(.windowExceeded), origin) }
  }

  mutating func checkWindow(
    _ half: StreamHalf, _ header: FrameHeader, _ origin: FrameOrigin, _ direction: borrowing Direction
  ) {
    guard let window = direction.allowed?.window, half.windowUsed > window else { return }
    guard half.windowUsed - header.payloadLength <= window else { return }
    suspect(Violation(.windowExceeded, stream: header.stream), origin)
  }

  mutating func receiveWindowUpdate(
    _ increment: UInt32, _ header: FrameHeader, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    let other: FrameReader.Side = direction.side == .client ? .server : .client
    guard header.stream != 0 else {
      let used = (other == .client ? client?.windowUsed : server?.windowUsed) ?? 0
      if other == .client { client?.windowUsed -= Int(increment) } else { server?.windowUsed -= Int(increment) }
      if 65_535 - used + Int(increment) > 0x7fff_ffff { suspect(Violation(.windowOverflow), origin) }
      return
    }
    guard let slot = streams.slot(of: header.stream), var half = streams[slot]?[other] else {
      if direction.side == .client, direction.isIntact, header.stream & 1 == 1, header.stream > highestClientStream {
        handler.receive(Violation(.windowUpdateOnIdleStream, stream: header.stream), origin)
      }
      return
    }
    half.windowUsed -= Int(increment)
    streams[slot]?[other] = half
    let window = (other == .client ? client?.allowed?.window : server?.allowed?.window) ?? 65_535
    if window - half.windowUsed > 0x7fff_ffff {
      suspect(Violation(.windowOverflow, stream: header.stream), origin)
    }
  }
}
