import Bytes

/// The result of parsing at an offset.
enum CaptureStep {
  /// A packet whose bytes are at this range of the window; the offset is after its record.
  case packet(Packet, Range<Int>)
  /// Another record was read; the offset is after it.
  case other
  /// This many bytes from the offset are needed.
  case needs(Int)
  /// This many bytes from the offset are to be skipped without being held.
  case skip(Int)
}

/// Walks the records of one capture file format.
protocol CaptureParser {
  /// Parses the record at `offset`. `position` is the offset of the window in the file, for messages.
  mutating func next(in window: RawSpan, at offset: inout Int, position: Int) throws(CaptureError) -> CaptureStep
}
