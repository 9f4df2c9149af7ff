import Bytes
import DeviceProtocol
import PacketCapture
import Records

/// The messages of a connection of the device channel or of local push.
final class MessageReader {
  /// What was found in a range of a direction, with the position of its last byte.
  typealias Found = (event: MessageStream.Event, mark: CapturePosition)

  let kind: MessageProtocol
  /// Messages so far.
  var messages = 0
  private var client: Side
  private var server: Side

  /// - Parameters:
  ///   - clientFromStart: a message begins with the client's first byte; otherwise a beginning is searched for.
  ///   - serverFromStart: as much of the server's.
  init(_ kind: MessageProtocol, clientFromStart: Bool, serverFromStart: Bool) {
    self.kind = kind
    client = Side(isFromStart: clientFromStart)
    server = Side(isFromStart: serverFromStart)
  }

  /// Bytes that it holds until more comes.
  var heldBytes: Int { client.heldBytes + server.heldBytes }

  /// Reads the next bytes of a direction.
  func read(_ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ direction: Direction) -> [Found] {
    direction == .client
      ? client.read(bytes, at: offset, mark, kind) : server.read(bytes, at: offset, mark, kind)
  }

  /// Notes missing bytes of a direction.
  func gap(_ length: Int, at offset: Int, _ mark: CapturePosition, _ direction: Direction) -> [Found] {
    direction == .client
      ? client.gap(length, at: offset, mark, kind) : server.gap(length, at: offset, mark, kind)
  }

  /// Gives what is left of a direction.
  ///
  /// - Parameter isWhole: its end was recorded.
  func finish(_ direction: Direction, isWhole: Bool, _ mark: CapturePosition) -> [Found] {
    direction == .client ? client.finish(isWhole: isWhole, mark) : server.finish(isWhole: isWhole, mark)
  }

  /// Makes a direction give up what it holds.
  func drop(_ direction: Direction, _ mark: CapturePosition) -> [Found] {
    direction == .client ? client.drop(mark) : server.drop(mark)
  }

  /// Whether a range is before the first message of a direction whose beginning was not recorded.
  func isBeforeStart(_ range: Range<Int>, _ direction: Direction) -> Bool {
    (direction == .client ? client : server).isBeforeStart(range)
  }
}

/// One direction. Its stream begins with the first bytes, or the first gap.
private struct Side {
  let isFromStart: Bool
  private var stream: MessageStream?
  private var start = 0
  /// Where the pieces end that may have unfinished messages, in order; those before `first` are done.
  private var pieces: [(end: Int, mark: CapturePosition)] = []
  private var first = 0

  init(isFromStart: Bool) { self.isFromStart = isFromStart }

  var heldBytes: Int {
    (stream?.heldBytes ?? 0) + (pieces.count - first) * MemoryLayout<(Int, CapturePosition)>.stride
  }

  func isBeforeStart(_ range: Range<Int>) -> Bool { !isFromStart && range.lowerBound == start }

  mutating func read(
    _ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ kind: MessageProtocol
  ) -> [MessageReader.Found] {
    var stream = take(at: offset, kind)
    pieces.append((stream.offset + bytes.byteCount, mark))
    var found: [MessageReader.Found] = []
    stream.read(bytes) { found.append(($0, self.mark(of: $0, mark))) }
    release(before: stream.offset - stream.heldBytes)
    self.stream = stream
    return found
  }

  mutating func gap(
    _ length: Int, at offset: Int, _ mark: CapturePosition, _ kind: MessageProtocol
  ) -> [MessageReader.Found] {
    var stream = take(at: offset, kind)
    var found: [MessageReader.Found] = []
    stream.gap(length) { found.append(($0, self.mark(of: $0, mark))) }
    release(before: stream.offset)
    self.stream = stream
    return found
  }

  mutating func finish(isWhole: Bool, _ mark: CapturePosition) -> [MessageReader.Found] {
    guard var stream = stream.take() else { return [] }
    var found: [MessageReader.Found] = []
    stream.finish(isWhole: isWhole) { found.append(($0, self.mark(of: $0, mark))) }
    release(before: stream.offset)
    self.stream = stream
    return found
  }

  mutating func drop(_ mark: CapturePosition) -> [MessageReader.Found] {
    guard heldBytes > 0, var stream = stream.take() else { return [] }
    var found: [MessageReader.Found] = []
    stream.giveUp { found.append(($0, self.mark(of: $0, mark))) }
    release(before: stream.offset)
    self.stream = stream
    return found
  }

  private mutating func take(at offset: Int, _ kind: MessageProtocol) -> MessageStream {
    if let stream = stream.take() { return stream }
    start = offset
    return MessageStream(kind, offset: offset, isFromStart: isFromStart)
  }

  /// The position of an event's last byte. A message may be proven only by what follows it, and its time counts.
  private mutating func mark(of event: MessageStream.Event, _ latest: CapturePosition) -> CapturePosition {
    while first < pieces.count, pieces[first].end < event.range.upperBound { first += 1 }
    return first < pieces.count ? pieces[first].mark : latest
  }

  private mutating func release(before offset: Int) {
    while first < pieces.count, pieces[first].end <= offset { first += 1 }
    if first == pieces.count {
      pieces.removeAll(keepingCapacity: pieces.count < 1_024)
      first = 0
    } else if first > 64, first > pieces.count / 2 {
      pieces.removeFirst(first)
      first = 0
    }
  }
}
