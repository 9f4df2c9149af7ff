import Bytes

/// What a file parser found at an offset.
enum CaptureStep {
  /// A packet whose bytes stand at this range of the window; the offset is behind its record.
  case packet(Packet, Range<Int>)
  /// Something else was read; the offset is behind it.
  case other
  /// This many bytes from the offset are needed.
  case needs(Int)
  /// This many bytes from the offset are to be passed over without being held.
  case skip(Int)
}

/// Walks the records of one capture file format.
protocol CaptureParser {
  /// Reads what stands at `offset`. `position` is the offset of the window in the file, for messages.
  mutating func next(in window: RawSpan, at offset: inout Int, position: Int) throws(CaptureError) -> CaptureStep
}
