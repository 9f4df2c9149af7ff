import BinaryProtocol
import Bytes
import TestSupport
import Testing

/// Records of notifications, and the frames that are encoded from them.
@Suite("Notifications from their records")
struct RecordedNotificationTests {
  private struct Made: Equatable {
    var frame: [UInt8]
    var identifierOffset: Int?
    var tokenLength: Int
  }

  private func read(_ line: String) throws -> RecordedNotification {
    let bytes = Array(line.utf8)
    var notification = RecordedNotification()
    guard var members = try RecordMembers(bytes.rawBytes) else { return notification }
    while let member = members.next() { try notification.read(member, of: members) }
    return notification
  }

  private func made(_ line: String, padsInside: Bool = false) throws -> Made {
    var notification = try read(line)
    notification.padsInside = padsInside
    // Something is there already, in both.
    var output = ByteWriter()
    var scratch = ByteWriter()
    for _ in 0..<7 { output.write(0x99 as UInt8) }
    scratch.write(0x98 as UInt8)
    let frame = try notification.encode(Array(line.utf8).rawBytes, into: &output, scratch: &scratch)
    let bytes = Array(copying: output.bytes)
    #expect(Array(bytes.prefix(7)) == [UInt8](repeating: 0x99, count: 7))
    return Made(
      frame: Array(bytes.dropFirst(7)), identifierOffset: frame.identifierOffset, tokenLength: frame.tokenLength)
  }

  private func payload(_ fields: String, padsInside: Bool = false) throws -> String {
    let frame = try made(#"{"command":0,"token":"01",\#(fields)}"#, padsInside: padsInside).frame
    return String(decoding: frame.dropFirst(6), as: UTF8.self)
  }

  private static func items(_ items: (UInt8, [UInt8])...) -> [UInt8] {
    let items = items.map { FrameItem(id: .init(rawValue: $0.0), data: $0.1) }
    return written { BinaryFrame.encodeFramed(items: items, into: &$0) }
  }

  // MARK: frames

  @Test("Commands 0 and 1 from their fields; the identifier is 0")
  func unframed() throws {
    #expect(
      try made(#"{"command":0,"token":"0102","payload":"7"}"#)
        == Made(frame: [0, 0, 2, 1, 2, 0, 3, 0x22, 0x37, 0x22], identifierOffset: nil, tokenLength: 2))
    #expect(
      try made(#"{"command":1,"identifier":9,"expiration":258,"token":"0a","payload":8}"#)
        == Made(
          frame: [1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 1, 10, 0, 1, 0x38], identifierOffset: 1, tokenLength: 1))
    #expect(
      try made(#"{"command":1}"#)
        == Made(frame: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], identifierOffset: 1, tokenLength: 0))
  }

  @Test("Command 2 has the items that the record has fields of")
  func framed() throws {
    let (token, payload): ([UInt8], [UInt8]) = ([0xab, 0xcd], Array("{}".utf8))
    let (zero, expiration): ([UInt8], [UInt8]) = ([0, 0, 0, 0], [0x12, 0x34, 0x56, 0x78])
    let number = 0x1234_5678
    for (fields, frame, offset) in [
      (#""token":"abcd","payload":{}"#, Self.items((1, token), (2, payload)), nil),
      (#""token":"abcd","payload":{},"identifier":5"#, Self.items((1, token), (2, payload), (3, zero)), 18),
      (
        #""token":"abcd","payload":{},"expiration":\#(number)"#, Self.items((1, token), (2, payload), (4, expiration)),
        nil
      ),
      (
        #""token":"abcd","payload":{},"identifier":5,"expiration":\#(number),"priority":10"#,
        Self.items((1, token), (2, payload), (3, zero), (4, expiration), (5, [10])), 18
      ),
      // Without a token or payload.
      (#""payload":{},"identifier":4294967295"#, Self.items((2, payload), (3, zero)), 13),
      (#""token":"abcd","priority":5,"expiration":\#(number)"#, Self.items((1, token), (4, expiration), (5, [5])), nil),
      (#""token":"","payload_length":0"#, Self.items((1, []), (2, [])), nil), ("\"index\":1", Self.items(), nil),
    ] as [(String, [UInt8], Int?)] {
      let made = try made(#"{"command":2,\#(fields)}"#)
      #expect(made.frame == frame && made.identifierOffset == offset, "\(fields)")
      #expect(made.tokenLength == (fields.contains("abcd") ? 2 : 0), "\(fields)")
    }
  }

  @Test("Items that no field holds stand in their order")
  func unusual() throws {
    let (token, payload): ([UInt8], [UInt8]) = ([0xab], Array("{}".utf8))
    let fields = #""command":2,"token":"ab","payload":{}"#
    for (more, frame, offset) in [
      (#""items":[[6,"00ff"]]"#, Self.items((1, token), (2, payload), (6, [0, 255])), nil),
      (#""items":[[0,""],[255,"01"]]"#, Self.items((0, []), (1, token), (2, payload), (255, [1])), nil),
      (#""items":[]"#, Self.items((1, token), (2, payload)), nil),
      (#""item_order":[2,1]"#, Self.items((2, payload), (1, token)), nil),
      (#""item_order":[3,2,1],"identifier":7"#, Self.items((3, [0, 0, 0, 0]), (2, payload), (1, token)), 8),
      // Of several with one id the field is the first.
      (
        #""items":[[1,"07"],[1,"08"]],"item_order":[1,1,2,1]"#,
        Self.items((1, token), (1, [7]), (2, payload), (1, [8])), nil
      ),
      (#""items":[[1,"07"],[6,"08"]]"#, Self.items((1, token), (1, [7]), (2, payload), (6, [8])), nil),
      // What the order does not list follows; what nobody has is passed over.
      (
        #""items":[[9,"07"]],"item_order":[2,8],"priority":3"#,
        Self.items((2, payload), (1, token), (5, [3]), (9, [7])), nil
      ),
      // Only the recorded identifier is one.
      (#""items":[[3,"00000009"]]"#, Self.items((1, token), (2, payload), (3, [0, 0, 0, 9])), nil),
    ] as [(String, [UInt8], Int?)] {
      let made = try made("{\(fields),\(more)}")
      #expect(made.frame == frame && made.identifierOffset == offset, "\(more)")
    }
    #expect(
      try made("{\(fields),\"items\" : [ [ 10 , \"0a\" ],\r\n\t[11,\"0b\"] ] }").frame
        == Self.items((1, token), (2, payload), (10, [10]), (11, [11])))
  }

  // MARK: payloads

  @Test("JSON is compact, and a string keeps its quotes")
  func payloads() throws {
    for (fields, expected) in [
      (#""payload":{ "a" : [ 1 , 2 ] }"#, #"{"a":[1,2]}"#), (#""payload":"a b""#, #""a b""#),
      (#""payload":null"#, "null"),
      (#""payload":-1.50"#, "-1.50"), (#""payload_base64":"aGkh""#, "hi!"), (#""payload_base64":"""#, ""),
      // The length is not looked at.
      (#""payload_base64":"aGkh","payload_length":9"#, "hi!"),
    ] {
      #expect(try payload(fields) == expected, "\(fields)")
    }
  }

  @Test("White space that the record lacks is added, at the end or before the last byte")
  func padding() throws {
    for (length, after, inside) in [
      (0, "{}", "{}"), (1, "{}", "{}"), (2, "{}", "{}"), (3, "{} ", "{ }"), (5, "{}   ", "{   }"),
    ] {
      let fields = #""payload":{},"payload_length":\#(length)"#
      #expect(try payload(fields) == after)
      #expect(try payload(fields, padsInside: true) == inside)
    }
  }

  @Test("Control characters are unescaped while the text is longer than the payload was")
  func controls() throws {
    let text = #""payload":"\u009b\u009b""#
    for (length, expected) in [
      (14, #""\u009b\u009b""#), (13, "\"\u{9b}\\u009b\"   "), (10, "\"\u{9b}\\u009b\""),
      (9, "\"\u{9b}\u{9b}\"   "), (6, "\"\u{9b}\u{9b}\""), (1, "\"\u{9b}\u{9b}\""),
    ] {
      #expect(try payload(text + #","payload_length":\#(length)"#) == expected, "\(length)")
    }
    #expect(try payload(text) == #""\u009b\u009b""#)
  }

  @Test("A payload that is empty has a length; one that was not recorded cannot be made")
  func withoutPayload() throws {
    #expect(try payload(#""payload_length":0"#) == "")
    #expect(throws: RecordError("'payload_length' is 1, but there is no payload")) {
      try payload(#""payload_length":1"#)
    }
  }

  // MARK: errors

  @Test("What cannot be made says why")
  func errors() {
    let pairs = #"'items' is not a list of pairs such as [6,"00ff"]"#
    for (fields, text) in [
      (#""index":1"#, "not a notification: missing field 'command'"),
      (#""command":0,"token":"0g""#, "'token' is not hexadecimal"),
      (#""command":0,"token":"0""#, "'token' is not hexadecimal"),
      (#""command":0,"payload_base64":"a""#, "'payload_base64' is not Base64"),
      (#""command":3"#, "'command' exceeds 2"), (#""command":"2""#, "'command' is not a whole number"),
      (#""identifier":4294967296"#, "'identifier' exceeds 4294967295"),
      (#""expiration":4294967296"#, "'expiration' exceeds 4294967295"), (#""priority":256"#, "'priority' exceeds 255"),
      (#""payload_length":65536"#, "'payload_length' exceeds 65535"),
      (#""token":1"#, "wrong type of value for 'token'"),
      (#""payload_base64":{}"#, "wrong type of value for 'payload_base64'"),
      (#""connection":-1"#, "'connection' is not a whole number"), (#""time":1"#, "wrong type of value for 'time'"),
      (#""time":"today""#, "invalid 'time'; expected RFC 3339, e.g. 2015-09-16T01:02:03.123456789Z"),
      (#""items":1"#, "wrong type of value for 'items'"),
      (#""item_order":"1""#, "wrong type of value for 'item_order'"),
      (#""items":[6]"#, pairs), (#""items":["00"]"#, pairs), (#""items":[[256,"00"]]"#, pairs),
      (#""items":[[6,7]]"#, pairs),
      (#""items":[[6,"0g"]]"#, pairs), (#""items":[[6,"000"]]"#, pairs), (#""items":[[true,"00"]]"#, pairs),
      (#""items":[[-1,"00"]]"#, pairs), (#""items":[[99999999999999999999999999,"00"]]"#, pairs),
      (#""items":[["\"",6]]"#, pairs), (#""items":[[6,"\u0030b"]]"#, pairs),
      (#""item_order":["1"]"#, "'item_order' is not a list of item ids"),
      (#""item_order":[256]"#, "'item_order' is not a list of item ids"),
      (#""item_order":[1,null]"#, "'item_order' is not a list of item ids"),
      (#""item_order":[4294967297]"#, "'item_order' is not a list of item ids"),
    ] {
      #expect(throws: RecordError(text), "\(fields)") { try made("{\(fields)}") }
    }
  }

  @Test("Fields have 16-bit lengths")
  func longest() throws {
    func hex(_ count: Int) -> String { String(repeating: "ab", count: count) }
    let token = try made(#"{"command":2,"token":"\#(hex(65_535))","payload":1}"#)
    #expect(token.tokenLength == 65_535 && token.frame.count == 5 + 3 + 65_535 + 3 + 1)
    #expect(throws: RecordError("'token' exceeds 65535 bytes")) {
      try made(#"{"command":2,"token":"\#(hex(65_536))","payload":1}"#)
    }
    let text = String(repeating: "x", count: 65_533)
    #expect(try made(#"{"command":0,"token":"ab","payload":"\#(text)"}"#).frame.count == 3 + 1 + 2 + 65_535)
    #expect(throws: RecordError("'payload' exceeds 65535 bytes")) {
      try made(#"{"command":0,"token":"ab","payload":"\#(text)x"}"#)
    }
    #expect(try made(#"{"command":2,"items":[[6,"\#(hex(65_535))"]]}"#).frame.count == 5 + 3 + 65_535)
    #expect(throws: RecordError.self) { try made(#"{"command":2,"items":[[6,"\#(hex(65_536))"]]}"#) }
  }

  // MARK: other fields

  @Test("Time, connection and problem are read; other fields are passed over")
  func others() throws {
    let plain = try read(#"{"type":"notification","index":3,"bundle":[1]}"#)
    #expect(plain.time == nil && plain.connection == 0 && !plain.isMalformed)
    let full = try read(#"{"time":"1970-01-01T00:00:01.5Z","connection":12,"problem":"cut"}"#)
    #expect(full.time == 1_500_000_000 && full.connection == 12 && full.isMalformed)
  }
}
