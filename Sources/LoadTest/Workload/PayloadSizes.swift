import APNSProtocol
import Bytes

/// How often payloads of each size occur in a decoded trace; a workload draws its own as often.
///
/// It is given the records that `apnscope decode` writes, a line at a time (shared/RECORDS.md: `payload_length` of
/// `notification` records). Memory does not grow with the trace.
public struct PayloadSizes: Sendable {
  /// Why a line is no record.
  public struct RecordError: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String
  }

  /// Most parts of the mix.
  public static let maximumParts = 1_024
  /// The number of the records' contract that is understood.
  private static let schema = 1

  private var counts = [Int](repeating: 0, count: PayloadMaker.longest + 1)
  /// Payloads in all.
  public private(set) var count = 0
  /// The part of them that is shorter or longer than those a workload can make; they count as the nearest size.
  public private(set) var clamped = 0

  public init() {}

  /// Counts the payload of a notification; other records and empty lines are passed over.
  public mutating func add(record line: RawSpan) throws(RecordError) {
    let record = try Record(line)
    guard let record else { return }
    if record.isCapture, let schema = record.schema, schema != Self.schema {
      throw RecordError(description: "records of schema \(schema); this apnscope knows schema \(Self.schema)")
    }
    guard record.isNotification, let length = record.payloadLength else { return }
    let size = min(PayloadMaker.longest, max(PayloadMaker.shortest, length))
    if size != length { clamped += 1 }
    counts[size] += 1
    count += 1
  }

  /// As often as they occur; `nil` when there was no payload.
  ///
  /// When there are too many different sizes, neighbours share a part, so many that all parts are about as frequent; any
  /// size from a part's smallest to its largest is then drawn alike.
  public var mix: WorkloadPlan.Mix<ClosedRange<Int>>? {
    guard count > 0 else { return nil }
    let sizes = counts.indices.filter { counts[$0] > 0 }
    let areAlone = sizes.count <= Self.maximumParts
    var parts: [(ClosedRange<Int>, Double)] = []
    var (before, place) = (0, -1)
    for size in sizes {
      let next = areAlone ? place + 1 : Int(Double(before) / Double(count) * Double(Self.maximumParts))
      if next > place {
        parts.append((size...size, 0))
        place = next
      }
      parts[parts.count - 1].0 = parts[parts.count - 1].0.lowerBound...size
      parts[parts.count - 1].1 += Double(counts[size])
      before += counts[size]
    }
    return WorkloadPlan.Mix(parts)
  }
}

/// The members of a record that matter here.
private struct Record {
  private(set) var isNotification = false
  private(set) var isCapture = false
  private(set) var schema: Int?
  private(set) var payloadLength: Int?

  private enum Member { case type, schema, payloadLength, other }

  /// `nil` for an empty line.
  init?(_ line: RawSpan) throws(PayloadSizes.RecordError) {
    var start = 0
    while start < line.byteCount, Self.isSpace(line.byte(at: start)) { start += 1 }
    guard start < line.byteCount else { return nil }
    // Whatever follows is then known to be well-formed.
    guard line.byte(at: start) == UInt8(ascii: "{"), JSONText.scan(line) != .invalid else {
      throw PayloadSizes.RecordError(description: "it is no JSON object")
    }
    var hasType = false
    var (depth, member, isKey) = (0, Member.other, false)
    var offset = start
    while offset < line.byteCount {
      let byte = line.byte(at: offset)
      switch byte {
      case UInt8(ascii: "\""):
        let end = Self.endOfString(line, from: offset + 1)
        if depth == 1 {
          let text = line.extracting(offset + 1..<end)
          if isKey {
            member = Self.member(text)
            isKey = false
          } else if member == .type {
            hasType = true
            isNotification = Self.equals(text, "notification")
            isCapture = Self.equals(text, "capture")
          } else if member != .other {
            throw PayloadSizes.RecordError(description: "\(Self.name(of: member)) is no whole number")
          }
        }
        offset = end
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        if depth == 1, member != .other {
          throw PayloadSizes.RecordError(description: "\(Self.name(of: member)) has a value of another type")
        }
        depth += 1
        isKey = depth == 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: ","): if depth == 1 { isKey = true }
      case UInt8(ascii: ":"), 0x20, 0x09, 0x0d, 0x0a: break
      default:
        guard depth == 1, member != .other else { break }
        let number = try Self.number(line, from: &offset, of: member)
        if member == .schema { schema = number } else { payloadLength = number }
      }
      offset += 1
    }
    guard hasType else { throw PayloadSizes.RecordError(description: "it is no record: it has no type") }
  }

  private static func member(_ key: RawSpan) -> Member {
    if equals(key, "type") { return .type }
    if equals(key, "payload_length") { return .payloadLength }
    return equals(key, "schema") ? .schema : .other
  }

  private static func name(of member: Member) -> String {
    switch member {
    case .type: "type"
    case .schema: "schema"
    case .payloadLength: "payload_length"
    case .other: "it"
    }
  }

  private static func equals(_ bytes: RawSpan, _ text: StaticString) -> Bool {
    guard bytes.byteCount == text.utf8CodeUnitCount else { return false }
    // Safe: below the text's length, as was just compared.
    for index in 0..<bytes.byteCount where unsafe bytes.byte(at: index) != text.utf8Start[index] { return false }
    return true
  }

  private static func endOfString(_ line: RawSpan, from start: Int) -> Int {
    var offset = start
    while line.byte(at: offset) != UInt8(ascii: "\"") { offset += line.byte(at: offset) == UInt8(ascii: "\\") ? 2 : 1 }
    return offset
  }

  /// Digits and nothing else; `offset` is left at the last of them.
  private static func number(
    _ line: RawSpan, from offset: inout Int, of member: Member
  ) throws(PayloadSizes.RecordError) -> Int {
    let start = offset
    var value = 0
    while offset < line.byteCount, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(line.byte(at: offset)),
      offset - start < 10
    {
      value = value * 10 + Int(line.byte(at: offset) - UInt8(ascii: "0"))
      offset += 1
    }
    let end = line.byte(at: offset)
    guard offset > start, end == UInt8(ascii: ",") || end == UInt8(ascii: "}") || isSpace(end) else {
      throw PayloadSizes.RecordError(description: "\(name(of: member)) is no whole number")
    }
    offset -= 1
    return value
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0d || byte == 0x0a }
}
