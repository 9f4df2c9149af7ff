import Bytes
import PacketCapture
import Payload
import ProviderAPI

/// A selection of fields of records, by name.
public struct FieldSelection: Sendable, Equatable {
  /// Names of columns of CSV.
  package let columns: [StaticString]
  private let names: [String]

  public static func == (a: FieldSelection, b: FieldSelection) -> Bool { a.names == b.names }

  /// All valid names: the columns of CSV, and those of objects, such as `tls` for all columns that begin with `tls_`.
  public static let all =
    RecordField.names().map(\.description) + RecordField.objects.map(\.name.description)

  /// Selects the named fields; `nil` when a name is unknown.
  ///
  /// - Parameter names: names out of `all`. `payload` and `payload_base64` each select both, as a payload has only one
  ///   of these fields.
  public init?(_ names: [String]) {
    guard names.allSatisfy(Self.all.contains) else { return nil }
    self.names = names
    columns = RecordField.names().filter { column in
      let name = column.description
      return names.contains(name)
        || RecordField.objects.contains {
          name.hasPrefix($0.prefix.description) && names.contains($0.name.description)
        }
        || name.hasPrefix("payload") && name != "payload_length"
          && (names.contains("payload") || names.contains("payload_base64"))
    }
  }

  /// Selects the named ones of some columns; `nil` when a name is unknown.
  package init?(_ names: [String], of columns: [StaticString]) {
    let known = columns.map(\.description)
    guard names.allSatisfy(known.contains) else { return nil }
    self.names = names
    self.columns = columns.filter { names.contains($0.description) }
  }

  /// Whether a field is selected that comes from judging payloads.
  public var needsVerdicts: Bool { names.contains("kind") || names.contains("lint") }

  /// The columns of a file with records of one type; `nil`: of all types.
  package func columns(of type: RecordType?) -> [StaticString] {
    guard let type else { return columns }
    let names = Set(columns.map(\.description))
    return RecordField.names(of: type).filter { names.contains($0.description) }
  }

  @inline(__always)
  package func contains(_ prefix: StaticString, _ name: StaticString) -> Bool {
    for column in columns where CSVFieldWriter.equal(column, prefix, name) { return true }
    return false
  }
}

/// Passes the selected fields of records to another writer.
package struct SelectedFieldWriter<Base: FieldWriter & ~Copyable>: FieldWriter, ~Copyable {
  package var base: Base
  package let fields: FieldSelection
  private var object: (name: StaticString, prefix: StaticString, isOpen: Bool)?
  /// The record has none of the selected fields so far.
  package private(set) var isEmpty = true

  package init(_ base: consuming Base, _ fields: FieldSelection) {
    self.base = base
    self.fields = fields
  }

  package mutating func begin(_ type: StaticString) {
    isEmpty = !fields.contains("", "type")
    base.begin(type)
  }

  package mutating func end() { base.end() }

  /// Whether the field is selected; the caller then passes it to `base`.
  private mutating func wants(_ name: StaticString) -> Bool {
    guard let object else {
      guard fields.contains("", name) else { return false }
      isEmpty = false
      return true
    }
    guard fields.contains(object.prefix, name) else { return false }
    isEmpty = false
    if !object.isOpen {
      base.beginObject(object.name)
      self.object?.isOpen = true
    }
    return true
  }

  package mutating func field(_ name: StaticString, _ value: Int) { if wants(name) { base.field(name, value) } }
  package mutating func field(_ name: StaticString, _ value: Bool) { if wants(name) { base.field(name, value) } }
  package mutating func field(_ name: StaticString, milliseconds nanoseconds: Int64) {
    if wants(name) { base.field(name, milliseconds: nanoseconds) }
  }
  package mutating func field(_ name: StaticString, seconds nanoseconds: Int64) {
    if wants(name) { base.field(name, seconds: nanoseconds) }
  }
  package mutating func field(_ name: StaticString, _ text: String) { if wants(name) { base.field(name, text) } }
  package mutating func field(_ name: StaticString, behind value: LateValue, isAlways: Bool) {
    if wants(name) { base.field(name, behind: value, isAlways: isAlways) }
  }
  package mutating func field(_ name: StaticString, word: StaticString) {
    if wants(name) { base.field(name, word: word) }
  }
  package mutating func field(_ name: StaticString, text bytes: RawSpan) {
    if wants(name) { base.field(name, text: bytes) }
  }
  package mutating func field(_ name: StaticString, counts: [(name: String, count: Int)]) {
    if wants(name) { base.field(name, counts: counts) }
  }
  package mutating func field(_ name: StaticString, headers: [ProviderRequest.Header], in bytes: RawSpan) {
    if wants(name) { base.field(name, headers: headers, in: bytes) }
  }
  package mutating func field(_ name: StaticString, hex bytes: RawSpan) {
    if wants(name) { base.field(name, hex: bytes) }
  }
  package mutating func field(_ name: StaticString, time: Timestamp) { if wants(name) { base.field(name, time: time) } }
  package mutating func field(_ name: StaticString, payload: RawSpan) {
    if wants(name) { base.field(name, payload: payload) }
  }
  package mutating func field(_ name: StaticString, _ texts: [String]) { if wants(name) { base.field(name, texts) } }
  package mutating func field(_ name: StaticString, rules: PayloadRuleSet) {
    if wants(name) { base.field(name, rules: rules) }
  }
  package mutating func field(_ name: StaticString, numbers: [UInt8]) {
    if wants(name) { base.field(name, numbers: numbers) }
  }
  package mutating func field(_ name: StaticString, integers: [Int]) {
    if wants(name) { base.field(name, integers: integers) }
  }
  package mutating func field(_ name: StaticString, items: [(id: UInt8, data: [UInt8])]) {
    if wants(name) { base.field(name, items: items) }
  }
  package mutating func field(_ name: StaticString, ends: [ConnectionEnds]) {
    if wants(name) { base.field(name, ends: ends) }
  }

  package mutating func beginObject(_ name: StaticString) {
    object = (name, RecordField.prefix(ofObject: name), false)
  }

  package mutating func endObject() {
    if object?.isOpen == true { base.endObject() }
    object = nil
  }
}
