import Bytes

/// One push as sent: its fields, and a view of its bytes.
///
/// Nothing is copied: `token` and `payload` are views of the borrowed bytes.
public struct Push: ~Escapable {
  /// The numbers, and the positions of the byte strings in `bytes`.
  public let fields: PushFields
  /// All bytes of the push; in the binary protocol the frame, command byte included.
  public let bytes: RawSpan

  /// Makes a push from parsed fields.
  ///
  /// - Parameters:
  ///   - fields: the fields; their positions are offsets in `bytes`.
  ///   - bytes: the bytes of the push, borrowed for the lifetime of the push.
  @inlinable
  @_lifetime(copy bytes)
  public init(_ fields: PushFields, _ bytes: RawSpan) {
    self.fields = fields
    self.bytes = bytes
  }

  /// The time in UNIX seconds UTC after which APNs no longer stores the push; 0: never stored; `nil` if it was not
  /// sent.
  @inlinable public var expiration: UInt32? { fields.expiration }
  /// The priority, documented as 10 (immediately) or 5; `nil` if it was not sent.
  @inlinable public var priority: UInt8? { fields.priority }

  /// The device token as it was sent; empty if there is none (see `fields.token`).
  @inlinable
  public var token: RawSpan {
    @_lifetime(copy self)
    get { bytes.extracting(fields.token.range) }
  }

  /// The payload, usually JSON; empty if there is none (see `fields.payload`).
  @inlinable
  public var payload: RawSpan {
    @_lifetime(copy self)
    get { bytes.extracting(fields.payload.range) }
  }
}
