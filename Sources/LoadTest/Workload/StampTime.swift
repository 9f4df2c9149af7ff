import Bytes
import Measurement

/// A time in a payload that is known only when its notification is written.
enum StampTime: String, CaseIterable, Sendable {
  /// When the notification was due first, in UNIX nanoseconds; 0: it is not known any more.
  case due = "due_ns"
  /// When it is written, in UNIX nanoseconds.
  case written = "written_ns"

  /// The number that stands for it until then: as long, and in no other payload of the load.
  var placeholder: String {
    switch self {
    case .due: "1000000000000000001"
    case .written: "1000000000000000002"
    }
  }

  var digits: [UInt8] { Array(placeholder.utf8) }

  /// The bytes that both placeholders begin with.
  static let beginning = Array("100000000000000000".utf8)
}

extension ByteWriter {
  /// Replaces the placeholders within a range of what was written.
  mutating func stamp(_ range: Range<Int>, due: Int64, written: Int64) {
    let length = PushStamp.digits
    var start = range.lowerBound
    while let next = bytes.extracting(start..<range.upperBound).firstOffset(of: StampTime.beginning[0]),
      start + next + length <= range.upperBound
    {
      let found = start + next
      start = found + 1
      guard bytes.extracting(found..<found + length - 1).elementsEqual(StampTime.beginning.rawBytes) else { continue }
      let time: Int64
      switch bytes.byte(at: found + length - 1) {
      case UInt8(ascii: "1"): time = due
      case UInt8(ascii: "2"): time = written
      default: continue
      }
      start = found + length
      if time > 0 {
        overwrite(decimal: UInt64(time), width: length, at: found)
      } else {
        // Zeros in front of a number are not JSON; white space behind it is.
        overwrite(decimal: 0, width: 1, at: found)
        overwrite(UInt8(ascii: " "), in: found + 1..<found + length)
      }
    }
  }
}
