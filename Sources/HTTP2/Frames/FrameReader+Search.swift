import Bytes

/// The search for frames after a gap.
extension FrameReader {
  private enum Plausibility { case yes, no, needsMore }

  /// The first place in `keptBytes` at or after `cursor` where a frame begins; `cursor` moves to it, or to the place
  /// that cannot be decided yet.
  mutating func search(_ atEnd: Bool) -> Int? {
    while cursor < keptBytes.count {
      switch probe(cursor, atEnd) {
      case .yes: return cursor
      case .no: cursor += 1
      case .needsMore: return nil
      }
    }
    return nil
  }

  /// A frame must be followed by another one, or by the end.
  private func probe(_ start: Int, _ atEnd: Bool) -> Plausibility {
    // Payloads that a search believes are shorter than 64 KiB.
    guard keptBytes[start] == 0 else { return .no }
    guard keptBytes.count - start >= FrameHeader.length else { return atEnd ? .no : .needsMore }
    guard isPlausible(at: start) else { return .no }
    let next = start + FrameHeader(keptBytes.rawBytes, at: start).frameLength
    if next + FrameHeader.length <= keptBytes.count { return isPlausible(at: next) ? .yes : .no }
    guard atEnd else { return .needsMore }
    return next == keptBytes.count ? .yes : next < keptBytes.count && keptBytes[next] == 0 ? .yes : .no
  }

  /// Whether the bytes at `start` do not contradict that a frame begins there and is followed by another.
  func isNextPlausible(after start: Int) -> Bool {
    let next = start + FrameHeader(keptBytes.rawBytes, at: start).frameLength
    return next + FrameHeader.length > keptBytes.count || isPlausible(at: next)
  }

  /// Whether the header of a frame of a defined type is at `start`, with the flags, the length and the stream that such
  /// a frame can have.
  func isPlausible(at start: Int) -> Bool {
    FrameHeader.isPlausible(
      keptBytes.rawBytes, at: start, longestPayload: min(maximumFrameSize, limits.longestSearchedPayload),
      highestStream: UInt64(highestStream) + UInt64(streamSlack))
  }
}

extension FrameHeader {
  /// Whether the header of a frame of a defined type is at an offset, with the flags, the length and the stream that
  /// such a frame can have.
  static func isPlausible(_ bytes: RawSpan, at start: Int, longestPayload: Int, highestStream: UInt64) -> Bool {
    guard start + FrameHeader.length <= bytes.byteCount, bytes.byte(at: start) == 0 else { return false }
    let header = FrameHeader(bytes, at: start)
    let (length, flags, stream) = (header.payloadLength, header.flags, header.stream)
    guard length <= longestPayload, bytes.byte(at: start + 5) < 0x80 else { return false }
    let isStream = stream & 1 == 1 && UInt64(stream) <= highestStream
    switch header.type {
    case .data:
      return isStream && flags.isSubset(of: [.endStream, .padded]) && (length > 0 || flags.contains(.endStream))
    case .headers:
      return isStream && flags.isSubset(of: [.endStream, .endHeaders, .padded, .priority]) && length > 0
    case .priority: return stream != 0 && length == 5 && flags.isEmpty
    case .reset: return isStream && length == 4 && flags.isEmpty
    case .settings:
      return stream == 0 && flags.isSubset(of: .acknowledgement) && length % 6 == 0 && length <= 600
        && (flags.isEmpty || length == 0)
    case .ping: return stream == 0 && flags.isSubset(of: .acknowledgement) && length == 8
    case .goAway: return stream == 0 && flags.isEmpty && length >= 8
    case .windowUpdate: return (stream == 0 || isStream) && flags.isEmpty && length == 4
    case .continuation: return isStream && flags.isSubset(of: .endHeaders)
    default: return false
    }
  }
}
