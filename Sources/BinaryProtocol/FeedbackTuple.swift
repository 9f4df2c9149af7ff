import Bytes

/// One entry of the feedback service's list: `time u32 | token length u16 | token`; a view of borrowed bytes.
public struct FeedbackTuple: ~Escapable {
  /// Bytes before the token.
  @usableFromInline package static var headerLength: Int { 6 }

  /// UNIX seconds UTC at which APNs found the app uninstalled.
  public let timestamp: UInt32
  /// The device token, a view of borrowed bytes.
  public let token: RawSpan

  /// Makes a tuple.
  ///
  /// - Parameters:
  ///   - timestamp: UNIX seconds UTC.
  ///   - token: the device token, borrowed for the lifetime of the tuple.
  @inlinable
  @_lifetime(copy token)
  public init(timestamp: UInt32, token: RawSpan) {
    self.timestamp = timestamp
    self.token = token
  }

  /// The extent of the tuple at `offset`, from its first six bytes.
  @inlinable
  public static func extent(of bytes: RawSpan, at offset: Int, limits: ProtocolLimits) -> RecordExtent {
    let available = bytes.byteCount - offset
    guard available >= headerLength else { return .incomplete(needed: headerLength) }
    let tokenLength = Int(bytes.uint16(at: offset + 4))
    if tokenLength > limits.maximumTokenLength { return .malformed(ParseError(.tokenTooLong(tokenLength), at: 4)) }
    let length = headerLength + tokenLength
    return available >= length ? .complete(length) : .incomplete(needed: length)
  }

  /// Reads a tuple that `extent(of:at:limits:)` has found complete; `record` is exactly that tuple.
  @inlinable
  @_lifetime(copy record)
  package init(record: RawSpan) {
    self.init(timestamp: record.uint32(at: 0), token: record.extracting(6..<record.byteCount))
  }

  /// Parses the tuple at `offset`, and advances `offset` past it. The tuple is a view of `bytes`.
  ///
  /// - Throws: a `ParseError`; `incomplete` if the bytes end before the tuple does, `tokenTooLong` above the limit.
  ///   `offset` is then unchanged.
  @inlinable
  @_lifetime(copy bytes)
  public init(
    parsing bytes: RawSpan, at offset: inout Int, limits: ProtocolLimits = ProtocolLimits()
  ) throws(ParseError) {
    let length: Int
    switch Self.extent(of: bytes, at: offset, limits: limits) {
    case .complete(let value): length = value
    case .incomplete(let needed): throw ParseError(.incomplete, at: needed)
    case .malformed(let error): throw error
    }
    self.init(record: bytes.extracting(offset..<offset + length))
    offset += length
  }

  /// Writes the tuple. A token of more than 65,535 bytes traps.
  public func encode(into output: inout ByteWriter) {
    output.write(bigEndian: timestamp)
    output.write(bigEndian: UInt16(token.byteCount))
    output.write(token)
  }
}
