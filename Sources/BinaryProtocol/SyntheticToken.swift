import Bytes

/// Device tokens that are made up for tests.
@usableFromInline package enum SyntheticToken {
  /// Tokens that begin with these eight bytes belong to no device: the load generator makes them to be rejected, and
  /// the simulator answers status 8. A random token has this beginning once in 2⁶⁴ times.
  package static let invalidPrefix: UInt64 = 0x0bad_0bad_0bad_0bad

  @inlinable @inline(__always)
  package static func isInvalid(_ token: RawSpan) -> Bool {
    token.byteCount >= 8 && token.uint64(at: 0) == 0x0bad_0bad_0bad_0bad
  }
}
