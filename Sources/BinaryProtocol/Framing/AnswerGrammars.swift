import Bytes

/// The grammar of error responses, from gateway to provider.
public struct ResponseGrammar: RecordGrammar {
  public init() {}

  public func extent(_ bytes: RawSpan, _ offset: Int) -> RecordExtent { ErrorResponse.extent(of: bytes, at: offset) }

  public func isCredible(_ record: RawSpan, isAligned: Bool) -> Bool {
    record.byte(at: 0) == ErrorResponse.documentedCommand
  }

  public func isTrustworthy(_ record: RawSpan, followedBy rest: RawSpan) -> Bool { true }
  public mutating func note(firstByte: UInt8) {}

  public func canStart(_ bytes: RawSpan, _ offset: Int, atEnd: Bool) -> Plausibility {
    probe(bytes, offset, beginsBetween: true, atEnd: atEnd)
  }

  public func probe(_ bytes: RawSpan, _ offset: Int, beginsBetween: Bool, atEnd: Bool) -> Plausibility {
    guard offset < bytes.byteCount else { return atEnd ? .no : .needsMore }
    guard bytes.byte(at: offset) == ErrorResponse.documentedCommand else { return .no }
    guard bytes.byteCount - offset >= ErrorResponse.length else { return atEnd ? .no : .needsMore }
    return ErrorResponse.Status(rawValue: bytes.byte(at: offset + 1)).isDocumented ? .yes : .no
  }
}

/// The grammar of tuples from the feedback service.
public struct FeedbackGrammar: RecordGrammar {
  /// The limits on a tuple.
  public let limits: ProtocolLimits

  /// Makes the grammar for a stream of tuples.
  ///
  /// - Parameter limits: the longest credible token.
  public init(limits: ProtocolLimits) { self.limits = limits }

  public func extent(_ bytes: RawSpan, _ offset: Int) -> RecordExtent {
    FeedbackTuple.extent(of: bytes, at: offset, limits: limits)
  }
  public func isTrustworthy(_ record: RawSpan, followedBy rest: RawSpan) -> Bool { true }
  public mutating func note(firstByte: UInt8) {}

  public func isCredible(_ record: RawSpan, isAligned: Bool) -> Bool {
    record.uint32(at: 0) != 0 && canStart(record, 0, atEnd: true) == .yes
  }

  /// Between 2009, when the service began, and 2038.
  package static let credibleTimes: ClosedRange<UInt32> = 0x495c_0780...0x7fff_ffff

  /// A credible time, or none, and a token length that was ever seen.
  public func canStart(_ bytes: RawSpan, _ offset: Int, atEnd: Bool) -> Plausibility {
    guard bytes.byteCount - offset >= FeedbackTuple.headerLength else { return atEnd ? .no : .needsMore }
    let time = bytes.uint32(at: offset)
    let isRecent = Self.credibleTimes.contains(time) || time == 0
    return isRecent && (1...255).contains(bytes.uint16(at: offset + 4)) ? .yes : .no
  }

  public func probe(_ bytes: RawSpan, _ offset: Int, beginsBetween: Bool, atEnd: Bool) -> Plausibility {
    switch canStart(bytes, offset, atEnd: atEnd) {
    case .no: return .no
    case .needsMore: return .needsMore
    case .yes: break
    }
    guard case .complete(let length) = extent(bytes, offset) else { return atEnd ? .no : .needsMore }
    if length == FeedbackTuple.headerLength + 32, bytes.uint32(at: offset) != 0 { return .yes }
    guard offset + length < bytes.byteCount else { return atEnd ? .yes : .needsMore }
    return canStart(bytes, offset + length, atEnd: atEnd)
  }
}
