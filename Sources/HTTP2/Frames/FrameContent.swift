import Bytes

/// The meaning of a frame's payload: numbers by value, byte strings as ranges in the payload.
public enum FrameContent: Sendable, Equatable {
  /// The content of a message, without padding.
  case data(Range<Int>)
  /// A part of a field block.
  case headers(block: Range<Int>, priority: StreamPriority?)
  case priority(StreamPriority)
  case reset(ErrorCode)
  /// Settings, which `Setting.list(_:)` reads. None in an acknowledgement.
  case settings(isAcknowledgement: Bool)
  case pushPromise(stream: UInt32, block: Range<Int>)
  case ping(UInt64, isAcknowledgement: Bool)
  case goAway(lastStream: UInt32, ErrorCode, debugData: Range<Int>)
  case windowUpdate(UInt32)
  case continuation(block: Range<Int>)
  /// A type that RFC 9113 does not define.
  case undefined

  /// Reads the payload of a frame.
  ///
  /// - Parameters:
  ///   - payload: all `payloadLength` bytes after the header.
  ///   - header: the frame's header.
  /// - Throws: the rule of RFC 9113 that the frame breaks by itself, whatever the state of its stream.
  /// - Complexity: O(1); settings are checked in O(*n*).
  public init(parsing payload: RawSpan, of header: FrameHeader) throws(Violation) {
    let (stream, count) = (header.stream, payload.byteCount)
    func require(_ holds: Bool, _ rule: Rule) throws(Violation) {
      guard holds else { throw Violation(rule, stream: stream) }
    }
    switch header.type {
    case .data:
      try require(stream != 0, .dataOnConnection)
      self = .data(try Self.unpadded(payload, header, after: 0))
    case .headers:
      try require(stream != 0, .headersOnConnection)
      let priorityLength = header.flags.contains(.priority) ? StreamPriority.length : 0
      let block = try Self.unpadded(payload, header, after: priorityLength)
      let priority =
        priorityLength > 0 ? StreamPriority(payload, at: block.lowerBound - priorityLength) : nil
      self = .headers(block: block, priority: priority)
    case .priority:
      try require(stream != 0, .priorityOnConnection)
      try require(count == StreamPriority.length, .prioritySize)
      self = .priority(StreamPriority(payload, at: 0))
    case .reset:
      try require(stream != 0, .resetOnConnection)
      try require(count == 4, .resetSize)
      self = .reset(ErrorCode(rawValue: payload.uint32(at: 0)))
    case .settings:
      try require(stream == 0, .settingsOnStream)
      let isAcknowledgement = header.flags.contains(.acknowledgement)
      try require(!isAcknowledgement || count == 0, .settingsAcknowledgementSize)
      try require(count % Setting.length == 0, .settingsSize)
      for offset in stride(from: 0, to: count, by: Setting.length) {
        if let rule = Setting(payload, at: offset).fault { throw Violation(rule) }
      }
      self = .settings(isAcknowledgement: isAcknowledgement)
    case .pushPromise:
      try require(stream != 0, .pushPromiseOnConnection)
      let block = try Self.unpadded(payload, header, after: 4)
      self = .pushPromise(stream: payload.uint32(at: block.lowerBound - 4) & 0x7fff_ffff, block: block)
    case .ping:
      try require(stream == 0, .pingOnStream)
      try require(count == 8, .pingSize)
      self = .ping(payload.uint64(at: 0), isAcknowledgement: header.flags.contains(.acknowledgement))
    case .goAway:
      try require(stream == 0, .goAwayOnStream)
      try require(count >= 8, .goAwaySize)
      self = .goAway(
        lastStream: payload.uint32(at: 0) & 0x7fff_ffff, ErrorCode(rawValue: payload.uint32(at: 4)),
        debugData: 8..<count)
    case .windowUpdate:
      try require(count == 4, .windowUpdateSize)
      let increment = payload.uint32(at: 0) & 0x7fff_ffff
      try require(increment != 0, .windowIncrementZero)
      self = .windowUpdate(increment)
    case .continuation:
      try require(stream != 0, .continuationOnConnection)
      self = .continuation(block: 0..<count)
    default: self = .undefined
    }
  }

  /// Where a field block or the content begins in a payload of which only the beginning is there; `nil` if it begins
  /// after that, or the frame carries neither.
  package static func start(in payload: RawSpan, of header: FrameHeader) -> Int? {
    let padding = header.flags.contains(.padded) && header.type != .continuation ? 1 : 0
    let start: Int
    switch header.type {
    case .data: start = padding
    case .headers: start = padding + (header.flags.contains(.priority) ? StreamPriority.length : 0)
    case .pushPromise: start = padding + 4
    case .continuation: start = 0
    default: return nil
    }
    return start <= payload.byteCount ? start : nil
  }

  /// The range between the fields at the payload's beginning and the padding at its end.
  private static func unpadded(
    _ payload: RawSpan, _ header: FrameHeader, after fields: Int
  ) throws(Violation) -> Range<Int> {
    let isPadded = header.flags.contains(.padded)
    let start = fields + (isPadded ? 1 : 0)
    guard start <= payload.byteCount else { throw Violation(.frameTooShort, stream: header.stream) }
    guard isPadded else { return start..<payload.byteCount }
    let end = payload.byteCount - Int(payload.byte(at: 0))
    guard end >= start else {
      let rule: Rule =
        header.type == .data ? .dataPadding : header.type == .headers ? .headersPadding : .pushPromisePadding
      throw Violation(rule, stream: header.stream)
    }
    return start..<end
  }
}

/// The priority of a stream, deprecated by RFC 9113 section 5.3.
public struct StreamPriority: Sendable, Hashable {
  static let length = 5

  /// The stream that it depends on.
  public var dependency: UInt32
  /// Whether it alone depends on that stream.
  public var isExclusive: Bool
  /// The weight, 1 to 256.
  public var weight: Int

  /// Makes a priority.
  public init(dependency: UInt32, isExclusive: Bool, weight: Int) {
    (self.dependency, self.isExclusive, self.weight) = (dependency, isExclusive, weight)
  }

  init(_ payload: RawSpan, at offset: Int) {
    let word = payload.uint32(at: offset)
    dependency = word & 0x7fff_ffff
    isExclusive = word >> 31 == 1
    weight = Int(payload.byte(at: offset + 4)) + 1
  }
}
