import BinaryProtocol
import Bytes
import PacketCapture
import Payload
import ProviderAPI

/// CSV (RFC 4180, line feeds): a header, then one line per record; an absent field is an empty cell.
///
/// Control characters, which may come from the wire or a file name, are escaped as in JSON, `\u001b`, so every record
/// is one line. A backslash in text that is not JSON is not escaped.
///
/// Fields come in column order, so a line is written as they come: a comma for every column without a field.
package struct CSVFieldWriter: FieldWriter, ~Copyable {
  package var output: ByteWriter
  private let columns: [StaticString]
  private var column = 0
  private var prefix: StaticString = ""
  /// What is written at the end of the line, in the order of its columns.
  private var late: [(prefix: StaticString, name: StaticString, value: LateValue)] = []
  /// Whether the columns are those of one type.
  private let isOfOneType: Bool
  private var times = TimestampFormatter()

  private let separator: UInt8
  private let hasType: Bool

  /// - Parameters:
  ///   - isTabbed: cells are separated by tabs and never quoted; a tab in one is escaped, like all control characters.
  ///   - isOfOneType: the columns are those of one type of records.
  package init(columns: [StaticString], capacity: Int, isTabbed: Bool = false, isOfOneType: Bool = false) {
    (self.columns, self.isOfOneType) = (columns, isOfOneType)
    separator = isTabbed ? UInt8(ascii: "\t") : UInt8(ascii: ",")
    hasType = columns.first?.description == "type"
    output = ByteWriter(capacity: capacity)
    for (index, name) in columns.enumerated() {
      if index > 0 { output.write(separator) }
      output.write(name)
    }
    if !columns.isEmpty { output.write("\n") }
  }

  private init(
    _ columns: [StaticString], _ separator: UInt8, _ hasType: Bool, _ isOfOneType: Bool, capacity: Int
  ) {
    (self.columns, self.separator, self.hasType, self.isOfOneType) = (columns, separator, hasType, isOfOneType)
    output = ByteWriter(capacity: capacity)
  }

  /// A writer of the same columns, without the header.
  func emptyCopy(capacity: Int) -> sending CSVFieldWriter {
    CSVFieldWriter(columns, separator, hasType, isOfOneType, capacity: capacity)
  }

  /// Writes a record and returns how many bytes there are now.
  @inline(__always)
  package mutating func add(_ record: borrowing some WritableRecord & ~Escapable) -> Int {
    record.write(to: &self)
    return output.count
  }

  package mutating func begin(_ type: StaticString) {
    column = 0
    guard hasType, cell("type") else { return }
    output.write(type)
  }

  package mutating func field(_ name: StaticString, behind value: LateValue, isAlways: Bool) {
    guard isAlways || isOfOneType else { return write(name, value) }
    late.append((prefix, name, value))
  }

  package mutating func end() {
    if !late.isEmpty { writeLate() }
    while column < columns.count {
      if column > 0 && column < columns.count { output.write(separator) }
      column += 1
    }
    output.write("\n")
  }

  @inline(never)
  private mutating func writeLate() {
    for (prefix, name, value) in late {
      self.prefix = prefix
      write(name, value)
    }
    prefix = ""
    late.removeAll(keepingCapacity: true)
  }

  /// Moves on to the column of this name; `false` if none follows, and then nothing is to be written.
  private mutating func cell(_ name: StaticString) -> Bool {
    var found = column
    while found < columns.count, !Self.equal(columns[found], prefix, name) { found += 1 }
    guard found < columns.count else { return false }
    while column <= found {
      if column > 0 { output.write(separator) }
      column += 1
    }
    return true
  }

  @inline(__always)
  static func equal(_ column: StaticString, _ prefix: StaticString, _ name: StaticString) -> Bool {
    let split = prefix.utf8CodeUnitCount
    guard column.utf8CodeUnitCount == split + name.utf8CodeUnitCount else { return false }
    // Safe: all three are compile-time constants, read within their lengths.
    for index in 0..<column.utf8CodeUnitCount {
      let other = unsafe index < split ? prefix.utf8Start[index] : name.utf8Start[index - split]
      if unsafe column.utf8Start[index] != other { return false }
    }
    return true
  }

  package mutating func field(_ name: StaticString, _ value: Int) {
    guard cell(name) else { return }
    output.write(decimal: value)
  }

  package mutating func field(_ name: StaticString, _ value: Bool) {
    guard cell(name) else { return }
    if value { output.write("true") } else { output.write("false") }
  }

  package mutating func field(_ name: StaticString, milliseconds nanoseconds: Int64) {
    guard cell(name) else { return }
    output.write(milliseconds: nanoseconds)
  }

  package mutating func field(_ name: StaticString, seconds nanoseconds: Int64) {
    guard cell(name) else { return }
    output.write(seconds: nanoseconds)
  }

  package mutating func field(_ name: StaticString, _ text: String) {
    guard cell(name) else { return }
    quoted(Array(text.utf8).rawBytes)
  }

  package mutating func field(_ name: StaticString, word: StaticString) {
    guard cell(name) else { return }
    output.write(word)
  }

  package mutating func field(_ name: StaticString, text bytes: RawSpan) {
    guard cell(name) else { return }
    quoted(Array(String(decoding: Array(copying: bytes), as: UTF8.self).utf8).rawBytes)
  }

  package mutating func field(_ name: StaticString, counts: [(name: String, count: Int)]) {
    field(name, counts.map { "\($0.name):\($0.count)" }.joined(separator: " "))
  }

  package mutating func field(_ name: StaticString, headers: [ProviderRequest.Header], in bytes: RawSpan) {
    guard cell(name) else { return }
    var text = ByteWriter(capacity: 256)
    text.write(headers: headers, in: bytes)
    quoted(text.bytes)
  }

  package mutating func field(_ name: StaticString, hex bytes: RawSpan) {
    guard cell(name) else { return }
    output.write(hex: bytes)
  }

  package mutating func field(_ name: StaticString, time: Timestamp) {
    guard cell(name) else { return }
    times.write(time, into: &output)
  }

  package mutating func field(_ name: StaticString, payload: RawSpan) {
    switch JSONText.scan(payload) {
    case .valid(let isCompact):
      guard cell(name) else { return }
      if isCompact { return quoted(payload) }
      var compact = ByteWriter(capacity: payload.byteCount)
      JSONText.writeCompact(payload, into: &compact)
      quoted(compact.bytes)
    case .invalid:
      guard cell("payload_base64") else { return }
      output.write(base64: payload)
    }
  }

  package mutating func field(_ name: StaticString, _ texts: [String]) { field(name, texts.joined(separator: " ")) }

  package mutating func field(_ name: StaticString, rules: PayloadRuleSet) {
    guard cell(name) else { return }
    var isFirst = true
    for rule in rules {
      if !isFirst { output.write(" ") }
      isFirst = false
      output.write(text: rule.code)
    }
  }

  package mutating func field(_ name: StaticString, numbers: [UInt8]) {
    guard cell(name) else { return }
    for (index, number) in numbers.enumerated() {
      if index > 0 { output.write(" ") }
      output.write(decimal: Int(number))
    }
  }

  package mutating func field(_ name: StaticString, integers: [Int]) {
    field(name, integers.map(String.init))
  }

  package mutating func field(_ name: StaticString, items: [(id: UInt8, data: [UInt8])]) {
    guard cell(name) else { return }
    for (index, item) in items.enumerated() {
      if index > 0 { output.write(" ") }
      output.write(decimal: Int(item.id))
      output.write(":")
      output.write(hex: item.data.rawBytes)
    }
  }

  package mutating func field(_ name: StaticString, ends: [ConnectionEnds]) {
    field(name, ends.map { "\($0.client)>\($0.server)" }.joined(separator: " "))
  }

  package mutating func beginObject(_ name: StaticString) {
    // Its columns carry its name.
    prefix = RecordField.prefix(ofObject: name)
  }

  package mutating func endObject() { prefix = "" }

  /// A cell of several words follows, each with `item`.
  package mutating func beginList(_ name: StaticString) { _ = cell(name) }

  /// Numbers joined by colons, and a word.
  package mutating func item(_ first: Int, _ second: Int, _ word: StaticString, isFirst: Bool) {
    if !isFirst { output.write(" ") }
    output.write(decimal: first)
    output.write(":")
    output.write(decimal: second)
    output.write(":")
    output.write(word)
  }

  private mutating func quoted(_ text: RawSpan) {
    if separator != UInt8(ascii: ",") { return output.write(escapingControlsOf: text) }
    var needsQuotes = false
    for offset in 0..<text.byteCount {
      switch text.byte(at: offset) {
      case UInt8(ascii: "\""), UInt8(ascii: ","): needsQuotes = true
      default: break
      }
    }
    guard needsQuotes else { return output.write(escapingControlsOf: text) }
    output.write(UInt8(ascii: "\""))
    var start = 0
    for offset in 0..<text.byteCount where text.byte(at: offset) == UInt8(ascii: "\"") {
      output.write(escapingControlsOf: text.extracting(start..<offset))
      output.write(UInt8(ascii: "\""))
      start = offset
    }
    output.write(escapingControlsOf: text.extracting(start..<text.byteCount))
    output.write(UInt8(ascii: "\""))
  }
}

extension ByteWriter {
  /// Milliseconds with three decimals.
  package mutating func write(milliseconds nanoseconds: Int64) {
    let (whole, rest) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000)
    if nanoseconds < 0 { write(UInt8(ascii: "-")) }
    write(decimal: whole)
    write(UInt8(ascii: "."))
    write(decimal: UInt32(rest / 1_000), width: 3)
  }

  /// Seconds with three decimals.
  package mutating func write(seconds nanoseconds: Int64) { write(milliseconds: nanoseconds / 1_000) }
}
