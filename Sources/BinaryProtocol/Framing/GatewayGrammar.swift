import Bytes
import PushModel

/// The grammar of frames, from provider to gateway.
public struct GatewayGrammar: RecordGrammar {
  /// Tokens longer than this were never seen; only a search uses it, known boundaries allow more.
  private static let longestCredibleToken = 255

  /// A record with the longest payload that was ever allowed.
  private static let longestUsualRecord = 4_608

  /// The limits on a frame.
  public let limits: ProtocolLimits
  @usableFromInline var hasSeenSimple = false

  @usableFromInline typealias Offsets = BinaryFrame.Offsets

  /// Makes the grammar for a stream of frames.
  ///
  /// - Parameter limits: lengths above which bytes are not a frame.
  public init(limits: ProtocolLimits) { self.limits = limits }

  /// The offset of the payload in a record of command 0 or 1, whose header must be complete.
  @inlinable @inline(__always)
  static func payloadOffset(_ record: RawSpan, _ command: UInt8) -> Int {
    let tokenAt = Offsets.token(of: command)
    return Offsets.payload(token: tokenAt, length: Offsets.length(in: record, before: tokenAt))
  }

  @inlinable @inline(__always)
  public func extent(_ bytes: RawSpan, _ offset: Int) -> RecordExtent {
    BinaryFrame.extent(of: bytes, at: offset, limits: limits)
  }

  @inlinable @inline(__always)
  public mutating func note(firstByte: UInt8) { if firstByte == 0 { hasSeenSimple = true } }

  @inlinable @inline(__always)
  public func isTrustworthy(_ record: RawSpan, followedBy rest: RawSpan) -> Bool {
    if rest.byteCount == 0 || rest.byte(at: 0) <= 2 {
      // The usual case needs only the payload's first byte.
      let command = record.byte(at: 0)
      if command == 2 {
        // A wrong frame length often leads into the items, where 0 and 1 abound.
        if rest.byteCount == 0 || rest.byte(at: 0) == 2 { return true }
        return isTrustworthySlowly(record, rest)
      }
      let payloadAt = Self.payloadOffset(record, command)
      if payloadAt < record.byteCount && record.byte(at: payloadAt) == UInt8(ascii: "{") { return true }
    }
    return isTrustworthySlowly(record, rest)
  }

  @inline(never) @usableFromInline
  func isTrustworthySlowly(_ record: RawSpan, _ rest: RawSpan) -> Bool {
    guard let fields = try? PushFields(parsing: record) else {
      // Items that overrun: the frame length is believed if it leads to another frame.
      return rest.byteCount == 0 || canStart(rest, 0, atEnd: true) == .yes
    }
    let payload = Push(fields, record).payload
    if payload.byteCount > 0, case .valid = JSONText.scan(payload) { return true }
    if fields.command != .framed, containsRecord(record, 0, record.byteCount, atEnd: true) == .yes { return false }
    return rest.byteCount == 0 || canStart(rest, 0, atEnd: true) == .yes
  }

  public func canStart(_ bytes: RawSpan, _ offset: Int, atEnd: Bool) -> Plausibility {
    let available = bytes.byteCount - offset
    guard available > 0 else { return atEnd ? .no : .needsMore }
    switch bytes.byte(at: offset) {
    case 2:
      guard available >= Offsets.items else { return atEnd ? .yes : .needsMore }
      let length = Int(bytes.uint32(at: offset + Offsets.frameLength))
      guard length <= limits.maximumFrameLength else { return .no }
      let hasItem = available > Offsets.items
      guard length > 0, hasItem else { return hasItem || atEnd ? .yes : .needsMore }
      return (1...5).contains(bytes.byte(at: offset + Offsets.items)) ? .yes : .no
    case let command where command <= 1:
      let tokenAt = Offsets.token(of: command)
      guard available >= tokenAt else { return atEnd ? .yes : .needsMore }
      let length = Offsets.length(in: bytes, before: offset + tokenAt)
      return length <= Self.longestCredibleToken && (command == 1 || length > 0) ? .yes : .no
    default: return .no
    }
  }

  /// The frame must parse whole, and be followed by another, carry JSON, or be a command-2 frame without a flaw.
  public func probe(_ bytes: RawSpan, _ offset: Int, beginsBetween: Bool, atEnd: Bool) -> Plausibility {
    switch canStart(bytes, offset, atEnd: false) {
    case .no: return .no
    case .needsMore: return atEnd ? .no : .needsMore
    case .yes: break
    }
    let length: Int
    switch extent(bytes, offset) {
    case .malformed: return .no
    case .incomplete: return atEnd || !isCredibleSoFar(bytes, offset) ? .no : .needsMore
    case .complete(let value): length = value
    }
    let record = bytes.extracting(offset..<offset + length)
    guard let fields = try? PushFields(parsing: record) else { return .no }
    if fields.command == .framed { return isExact(fields) ? .yes : .no }
    guard fields.token.length > 0 else { return .no }
    let payload = Push(fields, record).payload
    guard payload.byteCount > 0 else { return .no }
    let isJSON = if case .valid = JSONText.scan(payload) { true } else { false }
    if fields.command == .enhanced && isJSON { return .yes }
    switch containsRecord(bytes, offset, length, atEnd: atEnd) {
    case .yes: return .no
    case .needsMore: return .needsMore
    case .no: break
    }
    if fields.command == .simple {
      let answer = probeSimple(bytes, offset, length, isJSON, beginsBetween, atEnd)
      if isJSON || answer != .yes { return answer }
    }
    if offset + length == bytes.byteCount { return atEnd ? .yes : .needsMore }
    return canStart(bytes, offset + length, atEnd: atEnd)
  }

  /// Whether each field is in its place, or the payload begins like JSON, even with a mistake in it.
  public func isCredible(_ record: RawSpan, isAligned: Bool) -> Bool {
    guard let fields = try? PushFields(parsing: record) else { return false }
    if fields.command == .framed && isExact(fields) { return true }
    let payload = Push(fields, record).payload
    guard fields.token.length > 0, payload.byteCount > 0 else { return false }
    return isAligned || payload.byte(at: 0) == UInt8(ascii: "{")
  }

  /// Whether every item is one of the five fields with its proper length, occurs once, and together they fill the
  /// frame.
  private func isExact(_ fields: PushFields) -> Bool {
    !fields.binary.hasUnknownItems && fields.token.isPresent && fields.payload.isPresent
      && fields.token.length <= Self.longestCredibleToken
  }

  /// The end of a command-1 frame whose expiration ends in a zero byte looks like a command-0 frame. It is one only if
  /// the bytes before it are known not to begin a command-1 frame, or if the neighbours are of command 0, too.
  private func probeSimple(
    _ bytes: RawSpan, _ offset: Int, _ length: Int, _ isJSON: Bool, _ beginsBetween: Bool, _ atEnd: Bool
  ) -> Plausibility {
    // How far before it that frame would begin.
    let distance = Offsets.token(of: 1) - Offsets.token(of: 0)
    if isJSON, offset < distance ? beginsBetween : bytes.byte(at: offset - distance) != 1 { return .yes }
    if hasSeenSimple || (offset > 0 && bytes.byte(at: offset - 1) == UInt8(ascii: "}")) { return .yes }
    let next = offset + length
    guard next < bytes.byteCount else { return atEnd ? (offset == 0 ? .yes : .no) : .needsMore }
    return bytes.byte(at: next) == 0 ? .yes : .no
  }

  /// Whether a record that is beyond doubt begins inside the one of command 0 or 1 at `start`.
  ///
  /// The identifier `00 00 00 6d` near the end of a command-2 frame reads as a command-0 record whose token covers the
  /// beginning of the next frame, and its payload may even be that frame's. The search is limited to beginnings near
  /// `start`, so that a long region stays cheap.
  private func containsRecord(_ bytes: RawSpan, _ start: Int, _ length: Int, atEnd: Bool) -> Plausibility {
    for offset in start + 1..<start + min(length, Self.longestCredibleToken) {
      let command = bytes.byte(at: offset)
      guard command == 1 || command == 2, canStart(bytes, offset, atEnd: true) == .yes else { continue }
      switch extent(bytes, offset) {
      case .complete(let length) where length <= Self.longestUsualRecord:
        let record = bytes.extracting(offset..<offset + length)
        guard let fields = try? PushFields(parsing: record) else { continue }
        if command == 2 {
          if isExact(fields) { return .yes }
        } else if fields.token.length > 0, fields.payload.length > 0,
          case .valid = JSONText.scan(Push(fields, record).payload)
        {
          return .yes
        }
      case .incomplete(let needed) where needed <= Self.longestUsualRecord && !atEnd:
        let isShort = bytes.byteCount - offset < Offsets.items
        if command == 2, isShort || isCredibleSoFar(bytes, offset) { return .needsMore }
      default: continue
      }
    }
    return .no
  }

  /// Whether the items that are already there could belong to a frame: a search must not wait for 128 KiB because of
  /// five chance bytes.
  private func isCredibleSoFar(_ bytes: RawSpan, _ start: Int) -> Bool {
    let frame = bytes.extracting(start..<bytes.byteCount)
    guard frame.byte(at: 0) == 2 else {
      let payloadAt = Self.payloadOffset(frame, frame.byte(at: 0))
      return payloadAt >= frame.byteCount || frame.byte(at: payloadAt) != 0
    }
    var seen: UInt8 = 0
    var items = ItemIterator(end: Offsets.items + Int(frame.uint32(at: Offsets.frameLength)))
    while items.hasHeader(in: frame) {
      guard let item = try? items.next(in: frame), seen & (1 << item.id) == 0,
        FrameItem.Identifier(rawValue: item.id).canHave(length: item.data.length),
        item.id != 1 || item.data.length <= Self.longestCredibleToken
      else { return false }
      seen |= 1 << item.id
    }
    return true
  }
}
