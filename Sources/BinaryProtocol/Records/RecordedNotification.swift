import Bytes

/// The notification of one record: the positions of its fields in the line, from which its frame is encoded again.
package struct RecordedNotification {
  /// UNIX nanoseconds; `nil` when the trace had no times.
  package private(set) var time: Int64?
  /// 0 when the record has none.
  package private(set) var connection = 0
  /// The frame's items did not fit it, so the record is incomplete.
  package private(set) var isMalformed = false
  private var command: UInt8?
  private var hasIdentifier = false
  private var expiration: UInt32?
  private var priority: UInt8?
  private var token: Range<Int>?
  private var payloadLength: Int?
  private var payload: (kind: Payload, text: Range<Int>)?
  /// Items that no field holds, and the order of all; `nil` when there was nothing odd about them.
  private var items: [FrameItem]?
  private var order: [UInt8]?

  private enum Payload { case json, base64 }

  /// The encoded frame.
  package struct Frame {
    /// The offset of the identifier in the frame; `nil` without one.
    package var identifierOffset: Int?
    /// The length of the token in bytes; 0 without one.
    package var tokenLength: Int
  }

  /// Missing white space is inserted before the last byte of the payload, so that an object still ends with its
  /// bracket.
  package var padsInside = false

  package init() {}

  package mutating func read(_ member: RecordMembers.Member, of members: borrowing RecordMembers) throws(RecordError) {
    if members.isName("time", of: member) {
      time = RFC3339.nanoseconds(members.line.extracting(try members.string(member, "time")))
      if time == nil { throw RecordError("invalid 'time'; expected RFC 3339, e.g. 2015-09-16T01:02:03.123456789Z") }
    } else if members.isName("connection", of: member) {
      connection = try members.number(member, "connection")
    } else if members.isName("command", of: member) {
      command = UInt8(try members.number(member, "command", most: 2))
    } else if members.isName("identifier", of: member) {
      _ = try members.number(member, "identifier", most: Int(UInt32.max))
      hasIdentifier = true
    } else if members.isName("expiration", of: member) {
      expiration = UInt32(try members.number(member, "expiration", most: Int(UInt32.max)))
    } else if members.isName("priority", of: member) {
      priority = UInt8(try members.number(member, "priority", most: 255))
    } else if members.isName("token", of: member) {
      token = try members.string(member, "token")
    } else if members.isName("payload_length", of: member) {
      payloadLength = try members.number(member, "payload_length", most: 65_535)
    } else if members.isName("payload", of: member) {
      // In JSON text a string includes its quotes.
      let isString = member.kind == .string
      payload = (.json, isString ? member.value.lowerBound - 1..<member.value.upperBound + 1 : member.value)
    } else if members.isName("payload_base64", of: member) {
      payload = (.base64, try members.string(member, "payload_base64"))
    } else if members.isName("problem", of: member) {
      isMalformed = true
    } else if members.isName("items", of: member) {
      guard member.kind == .structure else { throw RecordError("wrong type of value for 'items'") }
      items = try UnusualItems.items(members.line.extracting(member.value))
    } else if members.isName("item_order", of: member) {
      guard member.kind == .structure else { throw RecordError("wrong type of value for 'item_order'") }
      order = try UnusualItems.order(members.line.extracting(member.value))
    }
  }

  /// Writes the notification's frame, with identifier 0 if it has an identifier.
  ///
  /// - Parameters:
  ///   - line: the line that it was read from.
  ///   - scratch: a buffer that is overwritten.
  package func encode(_ line: RawSpan, into output: inout ByteWriter, scratch: inout ByteWriter) throws(RecordError)
    -> Frame
  {
    guard let command else { throw RecordError("not a notification: missing field 'command'") }
    scratch.removeAll()
    if let token, !scratch.write(bytesOfHexadecimal: line.extracting(token)) {
      throw RecordError("'token' is not hexadecimal")
    }
    let tokenLength = scratch.count
    guard tokenLength <= 65_535 else { throw RecordError("'token' exceeds 65535 bytes") }
    let hasPayload = try writePayload(line, into: &scratch)
    guard scratch.count - tokenLength <= 65_535 else { throw RecordError("'payload' exceeds 65535 bytes") }
    let token = scratch.bytes.extracting(0..<tokenLength)
    let payload = scratch.bytes.extracting(tokenLength..<scratch.count)
    let start = output.count
    switch command {
    case 0: BinaryFrame.encodeSimple(token: token, payload: payload, into: &output)
    case 1:
      BinaryFrame.encodeEnhanced(
        identifier: 0, expiration: expiration ?? 0, token: token, payload: payload, into: &output)
    default:
      if self.token != nil, hasPayload, items == nil, order == nil {
        BinaryFrame.encodeFramed(
          token: token, payload: payload, identifier: hasIdentifier ? 0 : nil, expiration: expiration,
          priority: priority, into: &output)
      } else {
        let items = unusualItems(
          token: self.token == nil ? nil : Array(copying: token), payload: hasPayload ? Array(copying: payload) : nil)
        BinaryFrame.encodeFramed(items: items, into: &output)
      }
    }
    // In command 2, an item that is not the recorded identifier may look like it.
    let isIdentified = command == 1 || hasIdentifier
    let frame = output.bytes.extracting(start..<output.count)
    return Frame(
      identifierOffset: isIdentified ? BinaryFrame.identifierOffset(in: frame) : nil, tokenLength: tokenLength)
  }

  /// Writes the payload. Returns whether there is one; it may be empty.
  ///
  /// A record may have less white space than the payload: spaces are added to keep its length. It may have escaped
  /// control characters: they are unescaped while the text is too long.
  private func writePayload(_ line: RawSpan, into output: inout ByteWriter) throws(RecordError) -> Bool {
    let start = output.count
    switch payload {
    case .none:
      guard let payloadLength else { return false }
      guard payloadLength == 0 else {
        throw RecordError("'payload_length' is \(payloadLength), but there is no payload")
      }
      return true
    case .some((.json, let text)):
      JSONText.writeCompact(line.extracting(text), into: &output)
      guard let payloadLength else { return true }
      let excess = output.count - start - payloadLength
      if excess > 0 {
        let escaped = Array(copying: output.bytes.extracting(start..<output.count))
        output.truncate(to: start)
        RecordText.write(restoringControlsOf: escaped.rawBytes, bytesLess: excess, into: &output)
      }
      writeSpaces(payloadLength - (output.count - start), into: &output)
      return true
    case .some((.base64, let text)):
      guard output.write(bytesOfBase64: line.extracting(text)) else {
        throw RecordError("'payload_base64' is not Base64")
      }
      return true
    }
  }

  /// Lengthens a payload by white space; the JSON text has at least one byte.
  private func writeSpaces(_ missing: Int, into output: inout ByteWriter) {
    guard missing > 0 else { return }
    let last = output.bytes.byte(at: output.count - 1)
    if padsInside { output.truncate(to: output.count - 1) }
    for _ in 0..<missing { output.write(UInt8(ascii: " ")) }
    if padsInside { output.write(last) }
  }

  /// The items of a frame in which some are missing, unknown, or in another order than usual.
  private func unusualItems(token: [UInt8]?, payload: [UInt8]?) -> [FrameItem] {
    var known: [UInt8: [UInt8]] = [:]
    known[1] = token
    known[2] = payload
    if hasIdentifier { known[3] = [0, 0, 0, 0] }
    known[4] = expiration.map { value in (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32($0))) } }
    known[5] = priority.map { [$0] }
    var others = items ?? []
    // Without a recorded order, items were in ascending order of ids.
    let order = order ?? (known.keys + others.map(\.id.rawValue)).sorted()
    var all: [FrameItem] = []
    for id in order {
      // Of several items with one id the first one is the field, if its length is valid.
      if let data = known.removeValue(forKey: id) {
        all.append(FrameItem(id: .init(rawValue: id), data: data))
      } else if let index = others.firstIndex(where: { $0.id.rawValue == id }) {
        all.append(others.remove(at: index))
      }
    }
    // Items that the order does not list, if the record is inconsistent.
    let rest = known.sorted { $0.key < $1.key }.map { FrameItem(id: .init(rawValue: $0.key), data: $0.value) }
    return all + rest + others
  }
}

/// The two lists of a record whose frame had items that are unusual.
private enum UnusualItems {
  /// `[[id,"hex"],…]`
  static func items(_ text: RawSpan) throws(RecordError) -> [FrameItem] {
    var items: [FrameItem] = []
    var values = ListValues(text)
    while let value = values.next() {
      guard case .number(let id) = value, let id = UInt8(exactly: id), case .text(let range) = values.next() else {
        throw RecordError("'items' is not a list of pairs such as [6,\"00ff\"]")
      }
      var data = ByteWriter(capacity: range.count / 2)
      guard data.write(bytesOfHexadecimal: text.extracting(range)), data.count <= 65_535 else {
        throw RecordError("'items' is not a list of pairs such as [6,\"00ff\"]")
      }
      items.append(FrameItem(id: .init(rawValue: id), data: Array(copying: data.bytes)))
    }
    return items
  }

  /// `[id,…]`
  static func order(_ text: RawSpan) throws(RecordError) -> [UInt8] {
    var order: [UInt8] = []
    var values = ListValues(text)
    while let value = values.next() {
      guard case .number(let number) = value, let id = UInt8(exactly: number) else {
        throw RecordError("'item_order' is not a list of item ids")
      }
      order.append(id)
    }
    return order
  }
}

/// The values of a list and of its nested lists, one after the other.
private struct ListValues: ~Escapable {
  enum Value {
    case number(Int)
    case text(Range<Int>)
    case other
  }

  private let text: RawSpan
  private var offset = 0

  @_lifetime(copy text)
  init(_ text: RawSpan) { self.text = text }

  /// The text is JSON, so what begins has an end.
  mutating func next() -> Value? {
    while offset < text.byteCount {
      let byte = text.byte(at: offset)
      offset += 1
      switch byte {
      case UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: ","), 0x20, 0x09, 0x0a, 0x0d: continue
      case UInt8(ascii: "\""):
        let start = offset
        while text.byte(at: offset) != UInt8(ascii: "\"") {
          offset += text.byte(at: offset) == UInt8(ascii: "\\") ? 2 : 1
        }
        offset += 1
        return .text(start..<offset - 1)
      case 0x30...0x39:
        var value = Int(byte - 0x30)
        while offset < text.byteCount, RecordMembers.isDigit(text.byte(at: offset)) {
          value = min(1 << 32, value * 10 + Int(text.byte(at: offset) - 0x30))
          offset += 1
        }
        return .number(value)
      default: return .other
      }
    }
    return nil
  }
}
