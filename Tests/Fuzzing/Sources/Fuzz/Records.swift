import PushModel

@testable import BinaryProtocol
@testable import Bytes

/// Frames one after the other, with usual and with narrow limits.
@Sendable func fuzzFrames(_ bytes: RawSpan) {
  walkFrames(bytes, ProtocolLimits())
  walkFrames(bytes, ProtocolLimits(maximumFrameLength: 100, maximumTokenLength: 32, maximumPayloadLength: 40))
}

private func walkFrames(_ bytes: RawSpan, _ limits: ProtocolLimits) {
  var offset = 0
  while offset < bytes.byteCount {
    let extent = BinaryFrame.extent(of: bytes, at: offset, limits: limits)
    checkExtent(extent, available: bytes.byteCount - offset)
    guard case .complete(let length) = extent else { break }
    let end = offset + length
    // The header alone decides: what follows the frame changes nothing, and without its last byte it is incomplete.
    law(
      BinaryFrame.extent(of: bytes.extracting(offset..<end), at: 0, limits: limits) == .complete(length),
      "an extent depends on what follows")
    if case .incomplete(let needed) = BinaryFrame.extent(
      of: bytes.extracting(offset..<end - 1), at: 0, limits: limits)
    {
      law(needed <= length, "needed \(needed) of a frame of \(length)")
    } else {
      law(false, "a frame without its last byte is not incomplete")
    }
    var position = offset
    do throws(ParseError) {
      let notification = try Push(parsing: bytes, at: &position, limits: limits)
      law(position == end, "parsing moved to \(position), not \(end)")
      check(notification)
    } catch {
      law(position == offset, "a failed parse moved the offset")
      law(error.offset < length, "the error is outside its frame")
    }
    offset = end
  }
}

private func check(_ notification: Push) {
  let frame = notification.bytes
  for field in [notification.fields.token, notification.fields.payload] where field.isPresent {
    law(field.range.upperBound <= frame.byteCount, "a field reaches beyond its frame")
  }
  // The encoder is the parser's inverse.
  var output = ByteWriter(capacity: 256)
  notification.encode(into: &output)
  law(output.bytes.elementsEqual(frame), "the frame encodes to other bytes")
  guard notification.command == .framed else { return }
  // The fast path over the usual items, and the items told one by one, mean the same.
  func first(_ id: FrameItem.Identifier, _ length: Int? = nil) -> [UInt8]? {
    notification.items.first { $0.id == id && (length == nil || $0.data.count == length) }?.data
  }
  func number(_ data: [UInt8]?) -> UInt32? { data.map { $0.reduce(0) { $0 << 8 | UInt32($1) } } }
  law(Array(copying: notification.token) == first(.deviceToken) ?? [], "token")
  law(Array(copying: notification.payload) == first(.payload) ?? [], "payload")
  law(notification.identifier == number(first(.notificationIdentifier, 4)), "identifier")
  law(notification.expiration == number(first(.expiration, 4)), "expiration")
  law(notification.priority.map(UInt32.init) == number(first(.priority, 1)), "priority")
  let ids = notification.items.map(\.id.rawValue)
  law(notification.fields.binary.hasUnusualItemOrder == zip(ids, ids.dropFirst()).contains { $0 >= $1 }, "item order")
}

/// What holds for every incremental decoder's answer.
private func checkExtent(_ extent: RecordExtent, available: Int) {
  switch extent {
  case .complete(let length): law(length > 0 && length <= available, "\(length) bytes of \(available)")
  case .incomplete(let needed): law(needed > available, "incomplete, but \(needed) of \(available) bytes are there")
  case .malformed: break
  }
}

@Sendable func fuzzFeedback(_ bytes: RawSpan) {
  for limits in [ProtocolLimits(), ProtocolLimits(maximumTokenLength: 32)] {
    var offset = 0
    while true {
      let extent = FeedbackTuple.extent(of: bytes, at: offset, limits: limits)
      checkExtent(extent, available: bytes.byteCount - offset)
      guard case .complete(let length) = extent else { break }
      var position = offset
      guard let tuple = try? FeedbackTuple(parsing: bytes, at: &position, limits: limits) else {
        law(false, "a complete tuple does not parse")
        return
      }
      law(position == offset + length && tuple.token.byteCount == length - 6, "tuple length")
      var output = ByteWriter(capacity: 256)
      tuple.encode(into: &output)
      law(output.bytes.elementsEqual(bytes.extracting(offset..<position)), "the tuple encodes to other bytes")
      offset = position
    }
  }
}

@Sendable func fuzzResponses(_ bytes: RawSpan) {
  var offset = 0
  while true {
    let extent = ErrorResponse.extent(of: bytes, at: offset)
    checkExtent(extent, available: bytes.byteCount - offset)
    guard case .complete(let length) = extent else { break }
    var position = offset
    guard let response = try? ErrorResponse(parsing: bytes, at: &position) else {
      law(false, "a complete response does not parse")
      return
    }
    law(length == ErrorResponse.length && position == offset + length, "response length")
    var output = ByteWriter(capacity: 64)
    response.encode(into: &output)
    law(output.bytes.elementsEqual(bytes.extracting(offset..<position)), "the response encodes to other bytes")
    offset = position
  }
}

@Sendable func fuzzJSON(_ bytes: RawSpan) {
  guard case .valid(let isCompact) = JSONText.scan(bytes) else { return }
  var output = ByteWriter(capacity: 256)
  JSONText.writeCompact(bytes, into: &output)
  law(JSONText.scan(output.bytes) == .valid(isCompact: true), "compact text is not compact JSON")
  law(isCompact == output.bytes.elementsEqual(bytes), "isCompact says otherwise than the text")
  let text = Array(copying: bytes)
  law(String(validating: text, as: UTF8.self) != nil, "valid JSON that is no UTF-8")
  law(JSONText.scan((text + [UInt8(ascii: ",")]).rawBytes) == .invalid, "valid JSON and a comma is valid")
  // An object, array or string is no longer one without its last byte.
  if let first = text.first, let last = text.last, "{[\"".utf8.contains(first), last > 0x20 {
    law(JSONText.scan(Array(text.dropLast()).rawBytes) == .invalid, "a prefix is valid")
  }
}
