import Bytes

/// A key of 128 bits for a content: two SipHash values, with keys that the process draws at random, so that nobody can
/// construct two contents with one key.
struct ContentKey: BitwiseCopyable, Comparable, Hashable {
  var high: UInt64
  var low: UInt64

  static let zero = ContentKey(high: 0, low: 0)

  init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// - Parameter context: the same content in different contexts has different keys.
  init(_ content: RawSpan, in context: ContentKey) {
    // Safe: the memory lives through the call.
    func add(to hasher: inout Hasher) { unsafe content.withUnsafeBytes { unsafe hasher.combine(bytes: $0) } }
    (high, low) = (Self.hash(context, 1, add), Self.hash(context, 2, add))
  }

  /// The key of a notification with this token and payload: see `NotificationIdentity`.
  init(_ token: ContentKey, _ payload: ContentKey, isMalformed: Bool) {
    func add(to hasher: inout Hasher) {
      hasher.combine(payload)
      hasher.combine(isMalformed)
    }
    (high, low) = (Self.hash(token, 1, add), Self.hash(token, 2, add))
  }

  private static func hash(_ context: ContentKey, _ half: UInt8, _ add: (inout Hasher) -> Void) -> UInt64 {
    var hasher = Hasher()
    hasher.combine(half)
    hasher.combine(context)
    add(&hasher)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }

  @inline(__always)
  static func < (a: ContentKey, b: ContentKey) -> Bool { a.high != b.high ? a.high < b.high : a.low < b.low }
}
