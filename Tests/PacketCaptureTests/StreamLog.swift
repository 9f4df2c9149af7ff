import Bytes
import PacketCapture

/// Keeps everything a reassembler emits, and what it must never emit: bytes out of order or twice, events behind an
/// end.
struct StreamLog {
  struct Gap: Equatable {
    var offset: Int
    var length: Int
    var reason: GapReason
  }

  /// One direction: its bytes without the gaps, and where each piece of it stood.
  struct Direction {
    var bytes: [UInt8] = []
    var gaps: [Gap] = []
    var hasEnded = false
    /// Packet numbers of the events, in stream order.
    var packets: [Int] = []
    var length: Int { bytes.count + gaps.reduce(0) { $0 + $1.length } }
  }

  struct Connection {
    var flow: Flow
    var low = Direction()
    var high = Direction()
    var initiator: FlowDirection?
    var closings: [(direction: FlowDirection, isReset: Bool)] = []
    var conflicts: [(direction: FlowDirection, offset: Int, length: Int)] = []
    var unfinished: [(direction: FlowDirection, since: Timestamp, until: Timestamp?)] = []
    var limits: [LimitKind] = []
    var views: [Flow] = []
    var isClosed = false

    /// Both ends, as tshark writes them.
    var ends: Set<String> { ["\(flow.low)", "\(flow.high)"] }
    func direction(from end: String) -> Direction { end == "\(flow.high)" ? high : low }
  }

  private(set) var connections: [Connection] = []
  private(set) var violations: [String] = []
  private var current: [Int: Int] = [:]

  mutating func consume(_ event: borrowing StreamEvent, at position: StreamPosition) {
    switch event {
    case .connection(let change): note(copy change, slot: position.slot)
    default: keep(event, at: position)
    }
  }

  private mutating func keep(_ event: borrowing StreamEvent, at position: StreamPosition) {
    guard let index = current[position.slot] else {
      violations.append("an event for slot \(position.slot), where nothing is open")
      return
    }
    let way = position.direction == .reverse ? \Connection.high : \Connection.low
    let direction = connections[index][keyPath: way]
    if direction.hasEnded { violations.append("an event behind the end") }
    if direction.length != position.offset {
      violations.append("offset \(position.offset) after \(direction.length) bytes and gaps")
    }
    connections[index][keyPath: way].packets.append(position.packet)
    switch event {
    case .bytes(let bytes):
      if bytes.byteCount == 0 { violations.append("no bytes") }
      connections[index][keyPath: way].bytes.append(copying: bytes)
    case .gap(let length, let reason):
      if length <= 0 { violations.append("a gap of \(length) bytes") }
      connections[index][keyPath: way].gaps.append(Gap(offset: position.offset, length: length, reason: reason))
    case .end: connections[index][keyPath: way].hasEnded = true
    case .connection: break
    }
  }

  private mutating func note(_ event: ConnectionEvent, slot: Int) {
    if case .opened(let flow) = event {
      if current[slot] != nil { violations.append("slot \(slot) opened twice") }
      current[slot] = connections.count
      connections.append(Connection(flow: flow))
      return
    }
    guard let index = current[slot] else {
      violations.append("an event for slot \(slot), where nothing is open")
      return
    }
    switch event {
    case .opened: break
    case .initiator(let direction):
      if connections[index].initiator != nil { violations.append("two initiators") }
      connections[index].initiator = direction
    case .closing(let direction, let isReset): connections[index].closings.append((direction, isReset))
    case .conflict(let direction, let offset, let length):
      connections[index].conflicts.append((direction, offset, length))
    case .alsoSeen(let flow, _): connections[index].views.append(flow)
    case .limit(let kind): connections[index].limits.append(kind)
    case .unfinished(let direction, let since, let until):
      connections[index].unfinished.append((direction, since, until))
    case .closed:
      if !connections[index].low.hasEnded || !connections[index].high.hasEnded {
        violations.append("closed before both directions ended")
      }
      connections[index].isClosed = true
      current[slot] = nil
    }
  }

  /// Connections by their ends, in the order of their first packets: so tshark numbers its streams.
  var connectionsByEnds: [Set<String>: [Connection]] { Dictionary(grouping: connections, by: \.ends) }

  /// Call after `finish`.
  mutating func checkAllClosed() {
    if !current.isEmpty { violations.append("\(current.count) connections were not closed") }
  }
}

/// What a capture file holds: its packets counted, its TCP streams put together.
struct CaptureContents {
  var packets: [Packet] = []
  var streams = StreamLog()
  var warnings: [String] = []
  var linkTypes: [LinkType] = []
  var secrets: [DecryptionSecrets] = []

  init(of path: String, options: CaptureOptions = CaptureOptions(), filter: PacketFilter? = nil) throws {
    let input = try CaptureInput.open(path, options: options)
    switch consume input {
    case .dump: throw CaptureError(.notACapture, "is read as a dump")
    case .packets(let file): try read(file, options, filter)
    }
  }

  private mutating func read(_ file: consuming CaptureFile, _ options: CaptureOptions, _ filter: PacketFilter?) throws {
    var file = file
    var decoder = PacketDecoder(options: options)
    var reassembler = TCPReassembler(options: options.reassembly)
    var (packets, streams) = (packets, streams)
    try file.forEachPacket { packet, bytes, _ in
      if let filter, try !filter.matches(packet, bytes) { return true }
      packets.append(packet)
      decoder.decode(packet, bytes) { segment, payload in
        reassembler.receive(segment, payload, time: packet.time, packet: packet.number) { streams.consume($0, at: $1) }
      }
      return true
    }
    reassembler.finish { streams.consume($0, at: $1) }
    streams.checkAllClosed()
    (self.packets, self.streams) = (packets, streams)
    (warnings, linkTypes, secrets) = (file.warnings, file.linkTypes, file.secrets)
  }
}
