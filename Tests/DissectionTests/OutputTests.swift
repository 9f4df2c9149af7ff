import BinaryProtocol
import Bytes
import FoundationEssentials
import PacketCapture
import TestSupport
import Testing

@testable import Dissection
@testable import Records

/// What the three formats make of records.
@Suite("Output")
struct OutputTests {
  private func frame(_ payload: [UInt8], token: [UInt8] = [UInt8](repeating: 7, count: 32)) -> [UInt8] {
    written {
      BinaryFrame.encodeEnhanced(
        identifier: 1, expiration: 0, token: token.rawBytes, payload: payload.rawBytes, into: &$0)
    }
  }

  private func write<Sink: RecordSink>(_ dump: [UInt8], source: String = "dump", _ sink: Sink) throws -> Sink {
    var options = DissectionOptions()
    options.dumpContents = .gateway
    return try withTemporaryFile(dump) { path in
      let shared = SharedSink(sink)
      var dissection = Dissection(into: shared, options: options)
      _ = try dissection.read(try .open(path, options: options.capture), source: source) { _ in true }
      dissection.finish()
      return shared.sink
    }
  }

  private func jsonLines(_ dump: [UInt8], source: String = "dump") throws -> [String] {
    var text: [UInt8] = []
    try write(
      dump, source: source,
      JSONLinesWriter {
        text.append(copying: $0)
        return true
      }
    ).flush()
    return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private func csv(_ dump: [UInt8], source: String = "dump") throws -> [[String]] {
    var text: [UInt8] = []
    try write(
      dump, source: source,
      CSVWriter {
        text.append(copying: $0)
        return true
      }
    ).flush()
    return Self.cells(String(decoding: text, as: UTF8.self))
  }

  private func table(_ dump: [UInt8], source: String = "dump") throws -> String {
    var text: [UInt8] = []
    try write(
      dump, source: source,
      TableWriter {
        text.append(copying: $0)
        return true
      }
    ).flush()
    return String(decoding: text, as: UTF8.self)
  }

  // MARK: JSON

  @Test("A field that was absent on the wire is absent") func absent() throws {
    let line = try jsonLines(plainFrame(device: 0xab))[1]
    let token = String(repeating: "ab", count: 32)
    #expect(
      line == #"{"type":"notification","connection":1,"index":0,"offset":0,"length":53,"command":2,"#
        + #""token":"\#(token)","payload_length":10,"payload":{"aps":{}}}"#)
  }

  @Test("An empty payload has a length and nothing else") func emptyPayload() throws {
    let line = try jsonLines(frame([]))[1]
    #expect(line.hasSuffix(#","payload_length":0}"#))
  }

  @Test(
    "Valid JSON is embedded as it was",
    arguments: [
      #"{"n":123456789012345678901234567890,"n":1.0,"n":1e400}"#, #"{"s":"\u00e9\/\ud83d\ude00é"}"#, "[]", "null",
      #""text""#, "-0", #"{"a":{"b":[1,2,{"c":true}]}}"#,
    ])
  func embedded(payload: String) throws {
    let line = try jsonLines(frame(Array(payload.utf8)))[1]
    #expect(line.hasSuffix(#","payload":\#(payload)}"#))
  }

  @Test("White space outside strings goes, so that a record is one line") func whiteSpace() throws {
    let line = try jsonLines(frame(Array("{\r\n  \"a b\" : [ 1 , \"c  d\" ]\n}\n".utf8)))[1]
    #expect(line.hasSuffix(#","payload":{"a b":[1,"c  d"]}}"#))
  }

  private static let noJSON: [[UInt8]] = [
    Array("{\"a\":1}".utf16).flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] }, Array("{\"a\":1".utf8),
    [0x22, 0xc3, 0x28, 0x22], Array("{'a':1}".utf8), [0],
  ]

  @Test("What is no JSON in UTF-8 becomes Base64", arguments: noJSON)
  func base64(payload: [UInt8]) throws {
    // A second notification, so that the first is believed whatever it carries.
    let line = try jsonLines(frame(payload) + frame(Array("{}".utf8)))[1]
    #expect(line.hasSuffix(#","payload_base64":"\#(Data(payload).base64EncodedString())"}"#))
    #expect(!line.contains(#""payload":"#))
  }

  @Test("Every line is an object, whatever the file is called") func source() throws {
    let name = "a\"b\\c\n\u{1}é"
    let lines = try jsonLines(frame(Array("{}".utf8)), source: name)
    struct Capture: Decodable { var source: String }
    #expect(try JSONDecoder().decode(Capture.self, from: Data(lines[0].utf8)).source == name)
    #expect(lines.count == 4)
  }

  // MARK: CSV

  /// RFC 4180, read as it stands.
  private static func cells(_ text: String) -> [[String]] {
    var (rows, row, cell, isQuoted) = ([[String]](), [String](), "", false)
    var rest = text.unicodeScalars[...]
    while let scalar = rest.popFirst() {
      switch (scalar, isQuoted) {
      case ("\"", true) where rest.first == "\"":
        cell.unicodeScalars.append(scalar)
        rest.removeFirst()
      case ("\"", _): isQuoted.toggle()
      case (",", false):
        row.append(cell)
        cell = ""
      case ("\n", false):
        rows.append(row + [cell])
        (row, cell) = ([], "")
      default: cell.unicodeScalars.append(scalar)
      }
    }
    return rows
  }

  @Test("CSV reads back as the records: quotes, commas, absent fields") func readBack() throws {
    let payloads = [#"{"a":"b, \"c\""}"#, "[1,2]", "null", "", "\u{1}"]
    let dump = payloads.flatMap { frame(Array($0.utf8)) } + plainFrame(device: 1)
    let rows = try csv(dump)
    let header = rows[0]
    #expect(rows.allSatisfy { $0.count == header.count })
    func column(_ name: String) throws -> [String] {
      let index = try #require(header.firstIndex(of: name), "\(name)")
      return rows.dropFirst().filter { $0[0] == "notification" }.map { $0[index] }
    }
    #expect(try column("payload") == ["{\"a\":\"b, \\\"c\\\"\"}", "[1,2]", "null", "", "", #"{"aps":{}}"#])
    #expect(try column("payload_base64") == ["", "", "", "", "AQ==", ""])
    #expect(try column("payload_length") == ["16", "5", "4", "0", "1", "10"])
    #expect(try column("identifier") == ["1", "1", "1", "1", "1", ""])
    #expect(try column("offset").map { Int($0) } == [0, 61, 111, 160, 205, 251])
    #expect(Array(Set(header)).count == header.count)
  }

  @Test("Each type's fields stand in the order of the contract") func order() throws {
    let rows = try csv(frame(Array("{}".utf8)) + [0xff] + frame(Array("{}".utf8)))
    let lines = try jsonLines(frame(Array("{}".utf8)) + [0xff] + frame(Array("{}".utf8)))
    for (row, line) in zip(rows.dropFirst(), lines) {
      let filled = zip(rows[0], row).filter { !$0.1.isEmpty }.map(\.0)
      // Names at the first level of the record, in order.
      let places = filled.compactMap { name in line.firstRange(of: "\"\(name)\":")?.lowerBound }
      #expect(places == places.sorted())
      #expect(places.count >= filled.count - 1)
    }
  }

  // MARK: control characters

  private static let steering = "\u{1b}[2J\u{9b}31m\r\n\u{7f}\u{202e}\u{2067}\u{200f}\u{2028}\u{85}"

  /// `decode` handed C1, DEL and direction marks of payloads and names on to whoever shows its records.
  @Test("Records hold no control character, and say the same") func noControls() throws {
    let payload = "{\"a\":\"\u{9b}31m\u{7f}\u{202e} é👩\u{200d}👧 \u{2028}\",\"b\" : \"\u{85}\"}"
    let dump = frame(Array(payload.utf8)) + frame(Array("{}".utf8))
    let lines = try jsonLines(dump, source: Self.steering)
    let cells = try csv(dump, source: Self.steering)
    for text in lines + cells.joined() {
      for scalar in text.unicodeScalars { #expect(!ControlCharacters.contains(scalar), "\(scalar.value)") }
    }
    #expect(lines.count == 5)
    #expect(cells.count == 6)
    struct Record: Decodable {
      var source: String?
      var payload: [String: String]?
    }
    let records = try lines.map { try JSONDecoder().decode(Record.self, from: Data($0.utf8)) }
    let meant = try JSONDecoder().decode([String: String].self, from: Data(payload.utf8))
    #expect(records[0].source == Self.steering)
    #expect(records[1].payload == meant)
    // A payload's cell is JSON as well.
    let column = try #require(cells[0].firstIndex(of: "payload"))
    #expect(try JSONDecoder().decode([String: String].self, from: Data(cells[2][column].utf8)) == meant)
  }

  @Test(
    "A record is made again into the payload that it was made from, with control characters as they were",
    arguments: [
      "{\"a\":\"\u{9b}\u{7f}é\u{202e}\"}", "{\"a\":\"\\u009b\\\\u009b\u{9b}\"}", "\"\u{2028}\"",
      "{\"\u{85}\":[\"\u{200e}\"]}",
      "{\"a\":\"\u{9b}\\u009b\\u001b\"}",
    ])
  func madeAgain(payload: String) throws {
    let original = frame(Array(payload.utf8))
    let line = Array(try jsonLines(original)[1].utf8)
    var recorded = RecordedNotification()
    guard var members = try RecordMembers(line.rawBytes) else {
      Issue.record("the line is empty")
      return
    }
    while let member = members.next() { try recorded.read(member, of: members) }
    var output = ByteWriter(capacity: 100)
    var scratch = ByteWriter(capacity: 100)
    _ = try recorded.encode(line.rawBytes, into: &output, scratch: &scratch)
    // Behind command and identifier, which is not made again.
    let frame = Array(copying: output.bytes)
    #expect(frame.count == original.count)
    if !payload.contains("\\u009b\\\\") { #expect(frame.dropFirst(5) == original.dropFirst(5)) }
  }

  // MARK: the table

  @Test("The table cannot steer a terminal") func terminal() throws {
    let nasty = "\u{1b}[2J\u{9b}31m\r\u{7f}\u{202e}\u{2028}\u{0}x"
    let valid = Array("{\"a\":\"\u{9b}31m\u{7f}\u{202e}\u{2028}\"}".utf8)
    let dump = frame(Array(nasty.utf8)) + frame(valid) + frame(Array("{}".utf8))
    let text = try table(dump, source: "evil\u{1b}]0;title")
    for scalar in text.unicodeScalars where scalar != "\n" {
      let category = scalar.properties.generalCategory
      #expect(![.control, .format, .lineSeparator, .paragraphSeparator].contains(category), "\(scalar.value)")
    }
    #expect(text.contains("[2J"))
    // The file, the columns, three notifications, the connection, the summary.
    #expect(text.split(separator: "\n").count == 7)
  }

  @Test("An output that takes nothing more ends the reading") func closed() throws {
    let dump = (0..<20_000).flatMap { _ in frame(Array(#"{"aps":{"alert":"hi"}}"#.utf8)) }
    var calls = 0
    let writer = try write(
      dump,
      JSONLinesWriter { _ in
        calls += 1
        return false
      })
    writer.flush()
    #expect(!writer.isOpen)
    #expect(calls == 1)
  }
}
