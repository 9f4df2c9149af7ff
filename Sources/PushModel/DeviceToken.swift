import Bytes

/// Facts about device tokens of any protocol. A token itself is bytes, which are viewed where they are.
@usableFromInline package enum DeviceToken {
  /// The length in bytes of a device's token. Providers may not rely on it: Apple calls tokens of variable length.
  @inlinable package static var usualLength: Int { 32 }

  /// Tokens that begin with these eight bytes belong to no device: the load generator makes them to be rejected, and
  /// the simulator answers that the token is invalid. A random token has this beginning once in 2⁶⁴ times.
  @inlinable package static var invalidPrefix: UInt64 { 0x0bad_0bad_0bad_0bad }

  /// Whether a token is made to be rejected.
  @inlinable @inline(__always)
  package static func isInvalid(_ token: RawSpan) -> Bool {
    token.byteCount >= 8 && token.uint64(at: 0) == invalidPrefix
  }
}
