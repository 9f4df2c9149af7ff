import Bytes
import DeviceProtocol

/// The first byte chooses the beginning and the longest body, then pairs of a length and so many bytes are pieces of a
/// direction, and lengths above 250 are gaps.
private func fuzzMessages(_ kind: MessageProtocol, _ bytes: RawSpan) {
  var script = Script(bytes)
  let choice = script.byte()
  let longest = choice & 1 == 0 ? 64 << 10 : 100
  let isWhole = choice & 4 == 0
  func stream() -> MessageStream {
    MessageStream(kind, offset: choice, isFromStart: choice & 2 == 0, longestBody: longest)
  }
  var (whole, single) = (stream(), stream())
  var (events, others): ([MessageStream.Event], [MessageStream.Event]) = ([], [])
  // Where the bytes end before each gap, and where they go on.
  var gaps: [Range<Int>] = []
  while !script.isAtEnd {
    let length = script.byte()
    if length > 250 {
      let start = whole.offset
      whole.gap(length - 250) { events.append($0) }
      single.gap(length - 250) { others.append($0) }
      gaps.append(start..<whole.offset)
      continue
    }
    let piece = script.take(length)
    whole.read(piece) { events.append($0) }
    for place in 0..<piece.byteCount {
      single.read(piece.extracting(place..<place + 1)) { others.append($0) }
      law(single.heldBytes <= 2 * (longest + MessageFraming.headerLength), "\(single.heldBytes) bytes held")
    }
  }
  whole.finish(isWhole: isWhole) { events.append($0) }
  single.finish(isWhole: isWhole) { others.append($0) }
  law(events == others, "pieces change events")
  law(whole.heldBytes == 0, "bytes held behind the end")
  var next = choice
  for event in events {
    while let gap = gaps.first, gap.lowerBound == next {
      next = gap.upperBound
      gaps.removeFirst()
    }
    let range = extent(event)
    law(range.lowerBound == next && !range.isEmpty, "an event at \(range) behind \(next)")
    next = range.upperBound
  }
  for gap in gaps where gap.lowerBound == next { next = gap.upperBound }
  law(next == whole.offset, "events up to \(next) of \(whole.offset)")
}

private func extent(_ event: MessageStream.Event) -> Range<Int> {
  switch event {
  case .message(_, let range), .malformed(_, let range), .unread(_, let range): range
  }
}

@Sendable func fuzzDevices(_ bytes: RawSpan) {
  fuzzMessages(.devices, bytes)
  fuzzMessageRecognition(bytes)
}

@Sendable func fuzzLocalPush(_ bytes: RawSpan) {
  fuzzMessages(.localPush, bytes)
  fuzzMessageRecognition(bytes)
}

private func fuzzMessageRecognition(_ bytes: RawSpan) {
  var script = Script(bytes)
  let choice = script.byte()
  let whole = script.rest()
  let beginning = whole.extracting(0..<whole.byteCount * choice / 256)
  let verdict = MessageProtocol.recognition(of: whole, isFinal: false)
  let final = MessageProtocol.recognition(of: whole, isFinal: true)
  law(final != .needsMore, "nothing more follows, and more is needed")
  law(verdict == final || verdict == .needsMore && final == .no, "the end changes the protocol")
  let first = MessageProtocol.recognition(of: beginning, isFinal: false)
  law(first == .needsMore || first == verdict, "more bytes change a verdict")
}

/// Conversations of both protocols, whole and with a gap.
func messageSeeds() -> [(target: String, bytes: [UInt8])] {
  var devices = ByteWriter()
  DeviceMessage.register(.init(device: 1, topic: "a")).write(to: &devices)
  DeviceMessage.deliver(.init(token: [1], topic: "a", sequence: 1, payload: [0x7b, 0x7d], sent: 0)).write(to: &devices)
  DeviceMessage.acknowledge(token: [1], topic: "a", sequence: 1).write(to: &devices)
  DeviceMessage.refused(reason: .unknownToken, topic: nil).write(to: &devices)
  var seeds: [(target: String, bytes: [UInt8])] = [("devices", [0] + Array(copying: devices.bytes))]
  seeds.append(("devices", script(Array(copying: devices.bytes))))
  for order in MessageFraming.ByteOrder.allCases {
    var messages = ByteWriter()
    let user = LocalPushMessage.User(identifier: "1", deviceName: "a")
    LocalPushMessage(request: 1, .user(user)).write(order, to: &messages)
    LocalPushMessage(acknowledging: 1).write(order, to: &messages)
    LocalPushMessage(request: 2, .heartbeat(count: 3)).write(order, to: &messages)
    seeds.append(("local-push", [0] + Array(copying: messages.bytes)))
    seeds.append(("local-push", script(Array(copying: messages.bytes))))
  }
  return seeds
}

/// Pieces with a gap of two bytes behind the second.
private func script(_ bytes: [UInt8]) -> [UInt8] {
  var script: [UInt8] = [0]
  for start in stride(from: 0, to: bytes.count, by: 100) {
    let piece = bytes[start..<min(bytes.count, start + 100)]
    script += [UInt8(piece.count)] + piece
    if start == 100 { script.append(252) }
  }
  return script
}
