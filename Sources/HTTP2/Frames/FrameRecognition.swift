import Bytes

/// Recognises HTTP/2 by the bytes of one direction.
public enum FrameRecognition {
  /// The result of a look at bytes.
  public enum Verdict: Sendable, Hashable {
    /// HTTP/2; the sender is `nil` if the bytes do not tell.
    case yes(sender: FrameReader.Side?)
    case no
    /// Unknown until more bytes arrive.
    case needsMore
  }

  private static let longestSettings = 600

  /// Recognises the first bytes of a connection: the client's preface, or the server's first SETTINGS.
  ///
  /// - Parameters:
  ///   - bytes: the first bytes of a direction.
  ///   - sender: their sender; `nil` if it is not known.
  ///   - atEnd: whether no more bytes follow directly.
  public static func ofStart(_ bytes: RawSpan, sender: FrameReader.Side?, atEnd: Bool) -> Verdict {
    guard bytes.byteCount > 0 else { return atEnd ? .no : .needsMore }
    if sender != .server {
      switch ofPreface(bytes, atEnd: atEnd) {
      case .no: break
      case let verdict: return verdict
      }
    }
    return sender == .client ? .no : ofSettings(bytes, atEnd: atEnd)
  }

  /// Its first 16 bytes suffice: no other protocol begins with them.
  private static func ofPreface(_ bytes: RawSpan, atEnd: Bool) -> Verdict {
    let preface = ByteWriter.http2Preface
    let count = min(bytes.byteCount, preface.count)
    for offset in 0..<count where bytes.byte(at: offset) != preface[offset] { return .no }
    if count >= 16 { return .yes(sender: .client) }
    return atEnd ? .no : .needsMore
  }

  /// `length u24, of entries of 6 | type 4 | flags 0 | stream u32 0`.
  private static func ofSettings(_ bytes: RawSpan, atEnd: Bool) -> Verdict {
    let pattern: [UInt8?] = [0, nil, nil, 4, 0, 0, 0, 0, 0]
    for offset in 0..<min(bytes.byteCount, pattern.count) {
      if let byte = pattern[offset], bytes.byte(at: offset) != byte { return .no }
    }
    guard bytes.byteCount >= pattern.count else { return atEnd ? .no : .needsMore }
    let length = FrameHeader(bytes, at: 0).payloadLength
    return length % 6 == 0 && length <= longestSettings ? .yes(sender: .server) : .no
  }

  /// Recognises bytes from the middle of a connection: two or more plausible frames in a row.
  ///
  /// - Parameters:
  ///   - bytes: bytes of a direction.
  ///   - isAligned: only frames from the first byte on count. Otherwise they are searched, and at least three headers have
  ///     to be in a row.
  ///   - atEnd: whether no more bytes follow directly. Then a single frame is enough that ends with the bytes.
  /// - Complexity: O(*n*) for aligned bytes; a search looks at each byte once, and at few frames twice.
  public static func ofMiddle(_ bytes: RawSpan, isAligned: Bool, atEnd: Bool) -> Verdict {
    guard !isAligned else { return verdict(of: Chain(bytes, at: 0), least: 2, atEnd: atEnd) }
    var start = 0
    while start + FrameHeader.length <= bytes.byteCount {
      let chain = Chain(bytes, at: start)
      if chain.headers >= 3, !chain.isBroken { return .yes(sender: chain.sender) }
      start += 1
    }
    return atEnd ? .no : .needsMore
  }

  private static func verdict(of chain: Chain, least: Int, atEnd: Bool) -> Verdict {
    if chain.headers == 0 { return chain.isBroken ? .no : atEnd ? .no : .needsMore }
    guard !chain.isBroken else { return .no }
    if chain.headers >= least || atEnd && chain.endsWhole { return .yes(sender: chain.sender) }
    return atEnd ? .no : .needsMore
  }

  /// Plausible frames in a row.
  private struct Chain {
    var headers = 0
    /// Bytes follow that begin no frame.
    var isBroken = false
    /// The last frame ends with the bytes.
    var endsWhole = false
    var sender: FrameReader.Side?

    init(_ bytes: RawSpan, at start: Int) {
      var position = start
      while position + FrameHeader.length <= bytes.byteCount {
        guard FrameHeader.isPlausible(bytes, at: position, longestPayload: 16_384, highestStream: 0x7fff_ffff) else {
          isBroken = true
          return
        }
        let header = FrameHeader(bytes, at: position)
        headers += 1
        let end = min(position + header.frameLength, bytes.byteCount)
        let payload = bytes.extracting(position + FrameHeader.length..<end)
        sender = sender ?? Self.sender(of: header, payload)
        position += header.frameLength
      }
      endsWhole = position == bytes.byteCount
      // The beginning of a header that is cut off.
      if position < bytes.byteCount { isBroken = bytes.byte(at: position) != 0 }
    }

    /// The side that a frame shows to be its sender: field blocks begin with a pseudo-field, which is often an index of
    /// the static table.
    private static func sender(of header: FrameHeader, _ payload: RawSpan) -> FrameReader.Side? {
      guard header.type == .headers, let start = FrameContent.start(in: payload, of: header) else { return nil }
      guard start < payload.byteCount else { return nil }
      switch payload.byte(at: start) {
      // :authority, :method, :path and :scheme.
      case 0x81...0x87: return .client
      case 0x88...0x8e, 0x48, 0x08, 0x18: return .server
      default: return nil
      }
    }
  }
}
