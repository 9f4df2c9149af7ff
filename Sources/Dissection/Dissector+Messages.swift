import Bytes
import DeviceProtocol
import PacketCapture
import Records

/// Connections of the device channel and of local push: how they are recognised, and the records of their messages.
extension Dissector {
  /// Bytes of a direction among which its first message has to be whole to be recognised.
  private static var sniffedMessageBytes: Int { 8_192 }

  // MARK: recognition

  /// The protocol that the user says the connection has.
  func declaredMessages(_ connection: Connection) -> MessageProtocol? {
    guard let flow = connection.flow, !options.messagePorts.isEmpty else { return nil }
    let (low, high) = (options.messagePorts[flow.low.port], options.messagePorts[flow.high.port])
    return connection.clientIsHigh.map { $0 ? low : high } ?? low ?? high
  }

  /// The protocol of messages of which a direction's first bytes are, as far as they tell.
  func claimMessages(_ first: [UInt8], isFinal: Bool) -> MessageProtocol.Verdict {
    guard !first.isEmpty else { return .no }
    return MessageProtocol.recognition(
      of: first.rawBytes, isFinal: isFinal || first.count >= Self.sniffedMessageBytes)
  }

  /// The protocol of a connection of which one direction lacks its beginning, by the other one.
  func claimMessagesAfterLoss(_ connection: Connection, _ isHigh: Bool) -> MessageProtocol? {
    let other = isHigh ? connection.directions.low : connection.directions.high
    guard !other.lacksBeginning, case .yes(let kind) = claimMessages(other.held.flatMap(\.bytes), isFinal: true) else {
      return nil
    }
    return kind
  }

  /// Reads the connection as messages from here on, with what was held.
  mutating func beginMessages(_ kind: MessageProtocol, _ connection: Connection) {
    let held = (
      low: connection.directions.low.held.flatMap(\.bytes), high: connection.directions.high.held.flatMap(\.bytes)
    )
    // Without a SYN the ends were told apart by their ports, which the messages may contradict.
    if connection.clientIsHigh == nil || !connection.startWasCaptured && connection.tls == nil {
      connection.clientIsHigh =
        clientIsHigh(held.low, held.high, kind) ?? clientIsHighByPort(connection) ?? connection.clientIsHigh
        ?? connection.flow.map { $0.high.port > $0.low.port } ?? false
    }
    func isFromStart(_ bytes: [UInt8], lacksBeginning: Bool) -> Bool {
      if lacksBeginning { return false }
      return connection.startWasCaptured || claimMessages(bytes, isFinal: true) == .yes(kind)
    }
    let low = isFromStart(held.low, lacksBeginning: connection.directions.low.lacksBeginning)
    let high = isFromStart(held.high, lacksBeginning: connection.directions.high.lacksBeginning)
    let isHigh = connection.clientIsHigh ?? false
    (connection.service, connection.otherProtocol) = (.other, OtherProtocol(kind))
    connection.reading = .messages(
      MessageReader(kind, clientFromStart: isHigh ? high : low, serverFromStart: isHigh ? low : high))
    clientStreams[connection.slot].readings = (.messages, .messages)
    readHeld(connection.takeHeld(), connection)
  }

  /// The end that the messages show to be the client; `nil`: both may be.
  private func clientIsHigh(_ low: [UInt8], _ high: [UInt8], _ kind: MessageProtocol) -> Bool? {
    if let sender = sender(of: low, kind) { return sender == .server }
    return sender(of: high, kind).map { $0 == .client }
  }

  /// The end that sends the first of these messages that only one end sends.
  private func sender(of bytes: [UInt8], _ kind: MessageProtocol) -> Direction? {
    var sender: Direction?
    var stream = MessageStream(kind)
    stream.read(bytes.rawBytes) { event in
      if sender == nil, case .message(let message, _) = event { sender = message.sender }
    }
    return sender
  }

  /// The end without the declared port.
  private func clientIsHighByPort(_ connection: Connection) -> Bool? {
    guard let flow = connection.flow else { return nil }
    let (low, high) = (options.messagePorts[flow.low.port] != nil, options.messagePorts[flow.high.port] != nil)
    return low == high ? nil : low
  }

  // MARK: input

  mutating func readMessages(
    _ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Connection, _ fromHigh: Bool
  ) {
    guard case .messages(let reader) = connection.reading else { return }
    let direction = connection.direction(fromHigh: fromHigh)
    take(reader.read(bytes, at: offset, mark, direction), direction, reader, connection)
  }

  mutating func readMessageGap(
    _ length: Int, _ reason: GapRecord.Reason, at offset: Int, _ mark: CapturePosition, _ connection: Connection,
    _ fromHigh: Bool, _ reader: MessageReader
  ) {
    let direction = connection.direction(fromHigh: fromHigh)
    take(reader.gap(length, at: offset, mark, direction), direction, reader, connection)
    output.receive(
      GapRecord(place: place(offset..<offset + length, mark, connection), direction: direction, reason: reason))
  }

  mutating func finishMessages(_ connection: Connection, fromHigh: Bool, _ reader: MessageReader) {
    let direction = connection.direction(fromHigh: fromHigh)
    let mark = CapturePosition(time: connection.closed, packet: 0)
    let found = reader.finish(direction, isWhole: connection.hasEnded(fromHigh: fromHigh), mark)
    take(found, direction, reader, connection)
  }

  /// Makes a connection drop what it holds.
  mutating func dropMessages(_ connection: Connection, _ mark: CapturePosition, _ reader: MessageReader) {
    for direction in [Direction.client, .server] {
      take(reader.drop(direction, mark), direction, reader, connection, isDropping: true)
    }
  }

  // MARK: records

  private mutating func take(
    _ found: [MessageReader.Found], _ direction: Direction, _ reader: MessageReader, _ connection: Connection,
    isDropping: Bool = false
  ) {
    for (event, mark) in found {
      let place = place(event.range, mark, connection)
      switch event {
      case .message(let message, _):
        reader.messages += 1
        output.summary.messages += 1
        output.sink.receive(MessageRecord(message, at: place, direction))
      case .malformed(let error, _): report(error.sentence, place, direction)
      case .unread(_, let range) where isDropping || reader.isBeforeStart(range, direction):
        output.receive(
          GapRecord(place: place, direction: direction, reason: isDropping ? .givenUp : .beforeCapture))
      case .unread(.gap, _): report("part of a message that a gap cut", place, direction)
      case .unread(.framing, _): report("no message begins here", place, direction)
      case .unread(.end, _): output.receive(GapRecord(place: place, direction: direction, reason: .captureEnd))
      }
    }
  }

  /// Records of messages have no bytes: they may be those of a token.
  private mutating func report(_ problem: String, _ place: RecordPlace, _ direction: Direction) {
    output.receive(MalformedRecord(place: place, direction: direction, problem: problem, bytes: []))
  }

  private func place(_ range: Range<Int>, _ mark: CapturePosition, _ connection: Connection) -> RecordPlace {
    RecordPlace(
      connection: connection.number, time: mark.time, packet: mark.packet, offset: range.lowerBound,
      length: range.count)
  }
}

extension MessageError {
  /// The longest name from the wire in a sentence, in bytes.
  private static let longestName = 64

  fileprivate var sentence: String {
    if case .unknown(let name) = self, name.utf8.count > Self.longestName { return "there is no message of this name" }
    return description
  }
}

extension ObservedMessage {
  /// The end that sends such messages; `nil`: either.
  fileprivate var sender: Direction? {
    switch self {
    case .device(let message):
      switch message {
      case .register, .online, .acknowledge: .client
      case .registered, .deliver, .tokenChanged, .refused: .server
      case .offline: nil
      }
    case .localPush(let message):
      switch message.content {
      case .user: .client
      case .heartbeat: .server
      default: nil
      }
    }
  }
}
