import BinaryProtocol
import Bytes
import PacketCapture
import Payload
import ProviderAPI

/// JSON Lines: one object a line, no white space, and control characters of any kind as `\u009b` (`ControlCharacters`).
package struct JSONFieldWriter: FieldWriter, ~Copyable {
  package var output: ByteWriter
  private var times = TimestampFormatter()
  private var isFirst = true

  package init(capacity: Int) { output = ByteWriter(capacity: capacity) }

  /// Writes a record and returns how many bytes there are now.
  @inline(__always)
  package mutating func add(_ record: borrowing some WritableRecord & ~Escapable) -> Int {
    record.write(to: &self)
    return output.count
  }

  package mutating func begin(_ type: StaticString) {
    output.write("{\"type\":\"")
    output.write(type)
    output.write(UInt8(ascii: "\""))
    isFirst = false
  }

  package mutating func end() { output.write("}\n") }

  @inline(__always)
  private mutating func key(_ name: StaticString) {
    if !isFirst { output.write(UInt8(ascii: ",")) }
    isFirst = false
    output.write(UInt8(ascii: "\""))
    output.write(name)
    output.write("\":")
  }

  package mutating func field(_ name: StaticString, _ value: Int) {
    key(name)
    output.write(decimal: value)
  }

  package mutating func field(_ name: StaticString, _ value: Bool) {
    key(name)
    if value { output.write("true") } else { output.write("false") }
  }

  package mutating func field(_ name: StaticString, milliseconds nanoseconds: Int64) {
    key(name)
    output.write(milliseconds: nanoseconds)
  }

  package mutating func field(_ name: StaticString, seconds nanoseconds: Int64) {
    key(name)
    output.write(seconds: nanoseconds)
  }

  package mutating func field(_ name: StaticString, _ text: String) {
    key(name)
    output.write(jsonString: text)
  }

  package mutating func field(_ name: StaticString, word: StaticString) {
    key(name)
    output.write(UInt8(ascii: "\""))
    output.write(word)
    output.write(UInt8(ascii: "\""))
  }

  package mutating func field(_ name: StaticString, text bytes: RawSpan) {
    key(name)
    output.write(jsonText: bytes)
  }

  package mutating func field(_ name: StaticString, counts: [(name: String, count: Int)]) {
    beginObject(name)
    for (offset, entry) in counts.enumerated() {
      if offset > 0 { output.write(UInt8(ascii: ",")) }
      output.write(jsonString: entry.name)
      output.write(UInt8(ascii: ":"))
      output.write(decimal: entry.count)
    }
    endObject()
  }

  package mutating func field(_ name: StaticString, headers: [ProviderRequest.Header], in bytes: RawSpan) {
    key(name)
    output.write(headers: headers, in: bytes)
  }

  package mutating func field(_ name: StaticString, hex bytes: RawSpan) {
    key(name)
    output.write(UInt8(ascii: "\""))
    output.write(hex: bytes)
    output.write(UInt8(ascii: "\""))
  }

  package mutating func field(_ name: StaticString, time: Timestamp) {
    key(name)
    output.write(UInt8(ascii: "\""))
    times.write(time, into: &output)
    output.write(UInt8(ascii: "\""))
  }

  /// Valid JSON is embedded as it is; anything else becomes Base64 under another name.
  package mutating func field(_ name: StaticString, payload: RawSpan) {
    switch JSONText.scan(payload) {
    case .valid(let isCompact):
      key(name)
      // A line feed between two values would end the line.
      if isCompact { return output.write(escapingControlsOf: payload) }
      let start = output.count
      JSONText.writeCompact(payload, into: &output)
      output.escapeControls(from: start)
    case .invalid:
      output.write(",\"")
      output.write(name)
      output.write("_base64\":\"")
      output.write(base64: payload)
      output.write(UInt8(ascii: "\""))
    }
  }

  package mutating func field(_ name: StaticString, _ texts: [String]) {
    key(name)
    list(texts) { $0.output.write(jsonString: $1) }
  }

  package mutating func field(_ name: StaticString, rules: PayloadRuleSet) {
    key(name)
    var isFirst = true
    for rule in rules {
      if isFirst { output.write("[\"") } else { output.write("\",\"") }
      isFirst = false
      output.write(text: rule.code)
    }
    output.write("\"]")
  }

  package mutating func field(_ name: StaticString, numbers: [UInt8]) {
    key(name)
    list(numbers) { $0.output.write(decimal: Int($1)) }
  }

  package mutating func field(_ name: StaticString, integers: [Int]) {
    key(name)
    list(integers) { $0.output.write(decimal: $1) }
  }

  package mutating func field(_ name: StaticString, items: [(id: UInt8, data: [UInt8])]) {
    key(name)
    list(items) { writer, item in
      writer.output.write("[")
      writer.output.write(decimal: Int(item.id))
      writer.output.write(",\"")
      writer.output.write(hex: item.data.rawBytes)
      writer.output.write("\"]")
    }
  }

  package mutating func field(_ name: StaticString, ends: [ConnectionEnds]) {
    beginList(name)
    for (client, server) in ends.map({ ($0.client, $0.server) }) {
      beginItem()
      field("client", client.description)
      field("server", server.description)
      endObject()
    }
    endList()
  }

  package mutating func beginObject(_ name: StaticString) {
    key(name)
    output.write(UInt8(ascii: "{"))
    isFirst = true
  }

  package mutating func endObject() {
    output.write(UInt8(ascii: "}"))
    isFirst = false
  }

  /// A list of objects follows, each between `beginItem()` and `endObject()`, and `endList()`.
  package mutating func beginList(_ name: StaticString) {
    key(name)
    output.write(UInt8(ascii: "["))
    isFirst = true
  }

  package mutating func beginItem() {
    if !isFirst { output.write(UInt8(ascii: ",")) }
    output.write(UInt8(ascii: "{"))
    isFirst = true
  }

  package mutating func endList() {
    output.write(UInt8(ascii: "]"))
    isFirst = false
  }

  private mutating func list<T>(_ values: [T], _ write: (inout JSONFieldWriter, T) -> Void) {
    output.write(UInt8(ascii: "["))
    for (index, value) in values.enumerated() {
      if index > 0 { output.write(UInt8(ascii: ",")) }
      write(&self, value)
    }
    output.write(UInt8(ascii: "]"))
  }
}

extension ByteWriter {
  /// Text of any bytes as a JSON string; bytes that are not UTF-8 become U+FFFD.
  package mutating func write(jsonText bytes: RawSpan) {
    for offset in 0..<bytes.byteCount {
      let byte = bytes.byte(at: offset)
      guard (0x20..<0x7f).contains(byte), byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") else {
        return write(jsonString: String(decoding: Array(copying: bytes), as: UTF8.self))
      }
    }
    write(UInt8(ascii: "\""))
    write(bytes)
    write(UInt8(ascii: "\""))
  }

  /// A list of pairs of names and values.
  package mutating func write(headers: [ProviderRequest.Header], in bytes: RawSpan) {
    write(UInt8(ascii: "["))
    for (offset, header) in headers.enumerated() {
      if offset > 0 { write(UInt8(ascii: ",")) }
      write(UInt8(ascii: "["))
      write(jsonText: bytes.extracting(header.name.range))
      write(UInt8(ascii: ","))
      write(jsonText: bytes.extracting(header.value.range))
      write(UInt8(ascii: "]"))
    }
    write(UInt8(ascii: "]"))
  }
}
