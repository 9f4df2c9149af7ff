import BinaryProtocol
import Bytes
import PacketCapture

/// The fields of one record that is read back: its members that are numbers, words or lists of words.
///
/// For every record except notifications, which are too many for it.
struct RecordFields {
  private var numbers: [String: String] = [:]
  private var texts: [String: String] = [:]
  private var lists: [String: [String]] = [:]
  /// Lists of whole numbers.
  private var integerLists: [String: [Int]] = [:]
  /// Members of objects that are numbers by name, in their order.
  private var counted: [String: [(name: String, count: Int)]] = [:]

  /// Reads the members of an object; `prefix` is put before the names of a nested object's members.
  init(_ members: RecordMembers, prefix: String = "") throws(RecordError) {
    var members = members
    while let member = members.next() {
      let name = prefix + Self.text(members.line, member.name)
      switch member.kind {
      case .number, .literal: numbers[name] = Self.text(members.line, member.value)
      case .string: texts[name] = RecordText.unescaped(members.line.extracting(member.value))
      case .structure:
        let inner = members.line.extracting(member.value)
        if name == "sequences" {
          integerLists[name] = Self.integers(Self.text(members.line, member.value))
        } else if inner.byte(at: 0) == UInt8(ascii: "["), name != "payload", name != "items" {
          lists[name] = RecordText.strings(inner)
        } else if prefix.isEmpty, Self.objects.contains(name),
          let members = try RecordMembers(inner)
        {
          let fields = try RecordFields(members, prefix: name + ".")
          numbers.merge(fields.numbers) { $1 }
          texts.merge(fields.texts) { $1 }
          numbers[name] = "true"
        } else if name == "values" || name == "rejections", let members = try RecordMembers(inner) {
          counted[name] = Self.counts(members)
        }
      }
    }
  }

  private static let objects: Set<String> = Set(RecordField.objects.map(\.name.description))

  private static func integers(_ text: String) -> [Int] {
    text.dropFirst().dropLast().split(separator: ",").compactMap { Int($0.filter { !$0.isWhitespace }) }
  }

  private static func counts(_ members: RecordMembers) -> [(name: String, count: Int)] {
    var members = members
    var counts: [(name: String, count: Int)] = []
    while let member = members.next() {
      guard let count = Int(text(members.line, member.value)), count >= 0, count <= RecordReader.maximumBytes else {
        continue
      }
      counts.append((RecordText.unescaped(members.line.extracting(member.name)), count))
    }
    return counts
  }

  /// An object of numbers by name, in its order.
  func counts(_ name: String) -> [(name: String, count: Int)] { counted[name] ?? [] }

  private static func text(_ line: RawSpan, _ range: Range<Int>) -> String {
    String(decoding: Array(copying: line.extracting(range)), as: UTF8.self)
  }

  /// A whole number; `nil` if the field is missing.
  func number(_ name: String, most: Int = Int(UInt32.max)) throws(RecordError) -> Int? {
    guard let text = numbers[name] else {
      if texts[name] != nil || lists[name] != nil { throw RecordError("wrong type of value for '\(name)'") }
      return nil
    }
    guard let value = Int(text), value >= 0 else { throw RecordError("'\(name)' is not a whole number") }
    guard value <= most else { throw RecordError("'\(name)' exceeds \(most)") }
    return value
  }

  /// A whole number with a sign, as another program may have written it; `nil` if the field is missing.
  func signed(_ name: String) throws(RecordError) -> Int? {
    guard let text = numbers[name] else { return try number(name) }
    guard let value = Int(text) else { throw RecordError("'\(name)' is not a whole number") }
    return value
  }

  /// A number that every such record has; throws if it is missing.
  func required(_ name: String, most: Int = Int(UInt32.max)) throws(RecordError) -> Int {
    guard let value = try number(name, most: most) else { throw RecordError("missing field '\(name)'") }
    return value
  }

  func milliseconds(_ name: String) -> Double? { numbers[name].flatMap(Double.init) }
  func flag(_ name: String) -> Bool? { numbers[name].flatMap(Bool.init) }
  func text(_ name: String) -> String? { texts[name] }
  func list(_ name: String) -> [String] { lists[name] ?? [] }
  func integers(_ name: String) -> [Int] { integerLists[name] ?? [] }

  /// A list of objects with a client and a server.
  func ends(_ name: String) -> [ConnectionEnds] {
    // The strings of such a list are names and values, one after the other.
    let words = list(name)
    var ends: [ConnectionEnds] = []
    var client: Endpoint?
    for index in stride(from: 0, to: words.count - 1, by: 2) {
      guard let end = Endpoint(words[index + 1]) else { continue }
      if words[index] == "client" { client = end }
      if words[index] == "server", let other = client.take() { ends.append(ConnectionEnds(client: other, server: end)) }
    }
    return ends
  }

  func time(_ name: String) throws(RecordError) -> Timestamp {
    guard let text = texts[name] else { return .none }
    guard let nanoseconds = RFC3339.nanoseconds(Array(text.utf8).rawBytes) else {
      throw RecordError("invalid '\(name)'; expected RFC 3339, e.g. 2015-09-16T01:02:03.123456789Z")
    }
    return Timestamp(nanoseconds: nanoseconds)
  }

  func place() throws(RecordError) -> RecordPlace {
    RecordPlace(
      connection: try required("connection"), time: try time("time"),
      packet: PacketNumber.joining(
        file: try number("file", most: RecordReader.maximumFiles) ?? 0,
        packet: try number("packet", most: RecordReader.maximumBytes) ?? 0),
      offset: try number("offset", most: RecordReader.maximumBytes) ?? 0,
      length: try number("length", most: RecordReader.maximumBytes) ?? 0)
  }
}
