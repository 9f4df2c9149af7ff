import Bytes

/// One push as sent: its fields, and a view of its bytes.
///
/// Nothing is copied: `token` and `payload` are views of the borrowed bytes.
public struct Push: ~Escapable {
  public let fields: PushFields
  /// All bytes of the push; in the binary protocol the frame, command byte included.
  public let bytes: RawSpan

  @inlinable
  @_lifetime(copy bytes)
  public init(_ fields: PushFields, _ bytes: RawSpan) {
    self.fields = fields
    self.bytes = bytes
  }

  /// UNIX seconds UTC after which APNs no longer stores the push; 0: never stored.
  @inlinable public var expiration: UInt32? { fields.expiration }
  /// 10 or 5, as documented; `nil` when it was not sent.
  @inlinable public var priority: UInt8? { fields.priority }

  /// The device token as it was sent; empty when there is none (see `fields.token`).
  @inlinable
  public var token: RawSpan {
    @_lifetime(copy self)
    get { bytes.extracting(fields.token.range) }
  }

  /// The payload bytes, usually JSON; empty when there are none (see `fields.payload`).
  @inlinable
  public var payload: RawSpan {
    @_lifetime(copy self)
    get { bytes.extracting(fields.payload.range) }
  }
}
