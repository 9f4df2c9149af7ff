import Bytes
import ProviderAPI

@testable import HTTP2

/// The first byte chooses limits, then pairs of a length and so many bytes are field blocks, and lengths above 250 are
/// losses.
@Sendable func fuzzHPACK(_ bytes: RawSpan) {
  var script = Script(bytes)
  let choice = script.byte()
  var limits = HPACKDecoder.Limits()
  if choice & 1 != 0 { limits.tableSize = 200 }
  if choice & 2 != 0 { limits.listSize = 300 }
  var (decoder, list) = (HPACKDecoder(isAtStart: choice & 4 == 0, limits: limits), FieldList())
  // It has seen what the other has not.
  var (damaged, other) = (decoder, FieldList())
  damaged.lose()
  while !script.isAtEnd {
    let length = script.byte()
    if length > 250 {
      damaged.lose()
      continue
    }
    let block = script.take(length)
    let before = decoder
    let rule = decoder.decode(block, into: &list)
    let otherRule = damaged.decode(block, into: &other)
    check(list, decoder, limits)
    check(other, damaged, limits)
    if rule == nil || rule == .fieldListTooLong {
      law(otherRule == nil || otherRule == .fieldListTooLong, "a loss makes a good block bad: \(otherRule!)")
    }
    compare(other, list)
    // Behind a fault the other may know more: it has read on, and the size of the table with it.
    if let rule, rule.losesTable { damaged.lose() }
    // The beginning of a block has the beginning of its fields.
    var (cut, beginning) = (before, FieldList())
    _ = cut.decode(block.extracting(0..<block.byteCount / 2), isCut: true, into: &beginning)
    law(beginning.fields.count <= list.fields.count, "a part has more fields than the block")
    compare(beginning, list)
  }
}

private func check(_ list: FieldList, _ decoder: HPACKDecoder, _ limits: HPACKDecoder.Limits) {
  law(list.size <= limits.listSize, "a section of \(list.size) bytes")
  law(list.fields.count * 32 <= list.size, "fields without a size")
  law(decoder.knownSize <= limits.tableSize, "a table of \(decoder.knownSize) bytes")
  law(decoder.knownEntries * 32 <= decoder.knownSize, "entries without a size")
  law(decoder.heldBytes < 10 * limits.tableSize + 100_000, "\(decoder.heldBytes) bytes held")
}

/// Every field is the same as in the list that knows more, or unknown.
private func compare(_ list: FieldList, _ whole: FieldList) {
  for (field, known) in zip(list.fields, whole.fields) {
    if field.isNameKnown, known.isNameKnown {
      law(list.name(of: field).elementsEqual(whole.name(of: known)), "another name")
    }
    if field.isValueKnown, known.isValueKnown {
      law(list.value(of: field).elementsEqual(whole.value(of: known)), "another value")
    }
  }
}

/// What a session tells, as numbers.
private struct ProviderTally: ProviderHandler {
  var (requests, responses, fates, notifications, others) = (0, 0, 0, 0, 0)
  var text: [String] = []

  mutating func receive(_ event: ProviderEvent, _ bytes: RawSpan) {
    switch event {
    case .request(let request):
      requests += 1
      if request.notification != nil { notifications += 1 }
      let places = [request.path, request.token, request.topic, request.payload] + request.headers.map(\.value)
      for place in places { law(place.range.upperBound <= max(bytes.byteCount, 0), "a field outside its bytes") }
      text.append("\(request.stream) \(request.target) \(request.payloadLength) \(request.completion)")
    case .response(let response):
      responses += 1
      law(response.body.range.upperBound <= bytes.byteCount, "a body outside its bytes")
      text.append("\(response.stream) \(response.status ?? 0) \(response.bodyLength)")
    case .fate(let decision):
      fates += 1
      text.append("\(decision.stream) \(decision.fate)")
    default: others += 1
    }
  }
}

/// The first byte chooses the beginning and limits; then steps: a side, a kind and a length, and so many bytes of its
/// stream.
@Sendable func fuzzProvider(_ bytes: RawSpan) {
  let whole = run(bytes, pieces: 0)
  let split = run(bytes, pieces: 3)
  law(whole.text == split.text, "pieces tell something else")
}

private func run(_ bytes: RawSpan, pieces: Int) -> ProviderTally {
  var script = Script(bytes)
  let choice = script.byte()
  var limits = ProviderSession.Limits()
  if choice & 2 != 0 {
    limits.connection.openStreams = 3
    limits.connection.frames.longestPayload = 100
    limits.connection.blockLength = 60
    limits.content = 20
  }
  var (session, tally) = (ProviderSession(isFromStart: choice & 1 == 0, limits: limits), ProviderTally())
  var offsets = [0, 0]
  // The preface costs the fuzzer much to find.
  if choice & 1 == 0 {
    let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    session.read(preface.rawBytes, from: .client, at: 0, arrival: Arrival(time: 0, packet: 0), into: &tally)
    offsets[0] = preface.count
  }
  while !script.isAtEnd {
    let step = script.byte()
    let side: FrameReader.Side = step & 1 == 0 ? .client : .server
    let place = step & 1
    let arrival = Arrival(time: 0, packet: 0)
    if step & 0x0e == 0x0e {
      let length = script.word() + 1
      session.gap(from: side, at: offsets[place], length: length, arrival: arrival, into: &tally)
      offsets[place] += length
      continue
    }
    let piece = script.take(script.byte() << (step & 0x10 == 0 ? 0 : 4))
    var start = 0
    while start < piece.byteCount {
      let end = pieces == 0 ? piece.byteCount : min(piece.byteCount, start + pieces)
      session.read(
        piece.extracting(start..<end), from: side, at: offsets[place], arrival: arrival, into: &tally)
      offsets[place] += end - start
      start = end
    }
    law(session.heldBytes < 4_000_000, "\(session.heldBytes) bytes held")
  }
  session.finish(.client, .closed, arrival: Arrival(time: 0, packet: 0), into: &tally)
  session.finish(.server, .closed, arrival: Arrival(time: 0, packet: 0), into: &tally)
  let fates = session.fates
  law(fates.accepted + fates.rejected + fates.discarded + fates.unknown == tally.fates, "fates are missing")
  law(tally.notifications == session.notifications && tally.fates == session.notifications, "a notification is missing")
  return tally
}

/// The first byte chooses the sender and the length of a beginning; the rest are the first bytes of a direction.
@Sendable func fuzzRecognition(_ bytes: RawSpan) {
  var script = Script(bytes)
  let choice = script.byte()
  let whole = script.take(bytes.byteCount)
  let beginning = whole.extracting(0..<whole.byteCount * (choice >> 2) / 64)
  let sender: FrameReader.Side? = [nil, .client, .server, nil][choice & 3]
  func look(_ look: (RawSpan, Bool) -> FrameRecognition.Verdict) {
    law(look(whole, true) != .needsMore, "nothing more follows, and more is needed")
    // More bytes change nothing of a refusal.
    if look(beginning, false) == .no { law(look(whole, false) == .no, "what is none becomes one") }
    if look(whole, false) == .yes(sender: .client) || look(whole, false) == .yes(sender: .server) {
      law(look(whole, true) == look(whole, false), "the end changes the sender")
    }
  }
  look { FrameRecognition.ofStart($0, sender: sender, atEnd: $1) }
  look { FrameRecognition.ofMiddle($0, isAligned: true, atEnd: $1) }
  law(FrameRecognition.ofMiddle(whole, isAligned: false, atEnd: true) != .needsMore, "more is needed at the end")
}

/// Beginnings of what these targets read.
func providerSeeds() -> [(target: String, bytes: [UInt8])] {
  var encoder = HPACKEncoder()
  var block = ByteWriter(capacity: 256)
  for (name, value) in [(":method", "POST"), (":scheme", "https"), (":path", "/3/device/00ff"), ("apns-topic", "a")] {
    encoder.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, to: &block)
  }
  let fields = Array(copying: block.bytes)
  var client = ByteWriter(capacity: 256)
  client.writeSettings([])
  client.writeSettingsAcknowledgement()
  client.writeFrame(.headers, flags: .endHeaders, stream: 1, fields.rawBytes)
  client.writeFrame(.data, flags: .endStream, stream: 1, Array("{\"aps\":{}}".utf8).rawBytes)
  var server = ByteWriter(capacity: 256)
  server.writeSettings([Setting(.maximumConcurrentStreams, 1)])
  server.writeFrame(.headers, flags: .endHeaders, stream: 1, [0x8c].rawBytes)
  server.writeFrame(.data, flags: .endStream, stream: 1, Array("{\"reason\":\"a\"}".utf8).rawBytes)
  server.writeGoAway(lastStream: 1, .noError, debugData: Array("{}".utf8))
  let (ours, theirs) = (Array(copying: client.bytes), Array(copying: server.bytes))
  let talk = [0, UInt8(ours.count)] + ours + [1, UInt8(theirs.count)] + theirs
  return [
    ("hpack", [0, UInt8(fields.count)] + fields + [4, 0xbe, 0xbf, 0xc0, 0x82]), ("provider", [0] + talk),
    ("recognition", [252] + ours), ("recognition", [128] + theirs), ("provider", [1] + talk),
    ("provider", [2] + talk + [0x0e, 0, 20] + talk),
  ]
}
