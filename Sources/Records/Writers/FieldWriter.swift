import Bytes
import PacketCapture
import Payload
import ProviderAPI

/// Writes the fields of a record, in the documented order, in any format.
///
/// Field names are compile-time constants, so writing one is a copy of known length.
package protocol FieldWriter: ~Copyable {
  mutating func begin(_ type: StaticString)
  mutating func field(_ name: StaticString, _ value: Int)
  mutating func field(_ name: StaticString, _ value: Bool)
  mutating func field(_ name: StaticString, milliseconds nanoseconds: Int64)
  mutating func field(_ name: StaticString, seconds nanoseconds: Int64)
  mutating func field(_ name: StaticString, _ text: String)
  /// A value whose column is behind the others.
  ///
  /// - Parameter isAlways: whether it is also with the columns of all types.
  mutating func field(_ name: StaticString, behind value: LateValue, isAlways: Bool)
  /// A text that needs no escaping.
  mutating func field(_ name: StaticString, word: StaticString)
  /// A text from the wire, of any bytes.
  mutating func field(_ name: StaticString, text bytes: RawSpan)
  mutating func field(_ name: StaticString, hex bytes: RawSpan)
  mutating func field(_ name: StaticString, time: Timestamp)
  mutating func field(_ name: StaticString, payload: RawSpan)
  mutating func field(_ name: StaticString, _ texts: [String])
  /// The codes of rules.
  mutating func field(_ name: StaticString, rules: PayloadRuleSet)
  mutating func field(_ name: StaticString, numbers: [UInt8])
  mutating func field(_ name: StaticString, integers: [Int])
  mutating func field(_ name: StaticString, items: [(id: UInt8, data: [UInt8])])
  mutating func field(_ name: StaticString, ends: [ConnectionEnds])
  /// Numbers by name.
  mutating func field(_ name: StaticString, counts: [(name: String, count: Int)])
  /// Names and values of fields of a request.
  mutating func field(_ name: StaticString, headers: [ProviderRequest.Header], in bytes: RawSpan)
  /// The fields until `endObject` belong together under this name.
  mutating func beginObject(_ name: StaticString)
  mutating func endObject()
  mutating func end()
}

/// A value that is kept until the others of its record are written.
package enum LateValue: Sendable {
  case number(Int)
  case text(String)
  case milliseconds(Int64)
}

extension FieldWriter where Self: ~Copyable {
  package mutating func field(_ name: StaticString, behind value: LateValue, isAlways: Bool = false) {
    write(name, value)
  }

  package mutating func write(_ name: StaticString, _ value: LateValue) {
    switch value {
    case .number(let number): field(name, number)
    case .text(let text): field(name, text)
    case .milliseconds(let nanoseconds): field(name, milliseconds: nanoseconds)
    }
  }

  @inline(__always)
  package mutating func field(_ name: StaticString, optional value: Int?) {
    if let value { field(name, value) }
  }

  @inline(__always)
  package mutating func field(_ name: StaticString, knownTime time: Timestamp) {
    if time.isKnown { field(name, time: time) }
  }

  @inline(__always)
  package mutating func field(_ name: StaticString, packet: Int) {
    if PacketNumber.packet(packet) > 0 { field(name, PacketNumber.packet(packet)) }
  }

  /// The file that a packet is of, where there are several.
  @inline(__always)
  package mutating func field(_ name: StaticString, fileOf packet: Int) {
    if PacketNumber.file(packet) > 0 { field(name, PacketNumber.file(packet)) }
  }
}
