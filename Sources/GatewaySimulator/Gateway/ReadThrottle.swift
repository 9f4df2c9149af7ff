import Measurement
import NIOCore

/// Decides when a throttled connection may be read again.
struct ReadThrottle {
  private let rules: Behavior.Reading
  private var bucket: TokenBucket?
  private var sincePause = 0

  /// `nil` when reading is not to be slow.
  init?(_ rules: Behavior.Reading, at now: NIODeadline) {
    guard rules.bytesPerSecond != nil || rules.pauseEvery != nil else { return nil }
    self.rules = rules
    bucket = rules.bytesPerSecond.map { TokenBucket(bytesPerSecond: $0, at: now) }
  }

  /// The time to wait after `length` bytes were read; `nil`: none.
  mutating func delay(after length: Int, at now: NIODeadline) -> TimeAmount? {
    var wait = bucket?.delay(after: length, at: now) ?? 0
    if let interval = rules.pauseEvery {
      sincePause += length
      if sincePause >= max(1, interval) {
        sincePause = 0
        wait += rules.pause.nanoseconds
      }
    }
    return wait > 0 ? .nanoseconds(wait) : nil
  }

  /// Buffers of that length for the reads of a connection.
  static func allocator(_ rules: Behavior.Reading) -> AdaptiveRecvByteBufferAllocator {
    AdaptiveRecvByteBufferAllocator(
      minimum: 256, initial: min(2_048, readLength(rules)), maximum: readLength(rules))
  }

  /// Bytes to be read at a time, so that a slow rate is not a burst and a long wait.
  static func readLength(_ rules: Behavior.Reading) -> Int {
    let least = [rules.bytesPerSecond.map(TokenBucket.readLength), rules.pauseEvery].compactMap { $0 }.min()
    return least.map { min(65_536, max(256, $0)) } ?? 65_536
  }
}

/// Bytes that may be read: the bucket fills at the rate, and holds those of 10 ms at most.
///
/// A late timer finds the bucket filled meanwhile, so lateness costs nothing within its depth. A read begins only when
/// the bucket covers its maximum: in any time t at most rate · t plus the bucket's depth are read. With TLS a read may
/// return up to one more record (16 KiB); the bucket then goes negative.
private struct TokenBucket {
  private let bytesPerNanosecond: Double
  /// 10 ms of the rate, and never less than two reads.
  private let depth: Double
  private let readLength: Double
  /// Below 0: more was read than had come in.
  private var bytes: Double
  private var filledAt: NIODeadline

  init(bytesPerSecond rate: Int, at now: NIODeadline) {
    bytesPerNanosecond = Double(max(1, rate)) / 1e9
    readLength = Double(Self.readLength(rate))
    depth = max(bytesPerNanosecond * 10e6, 2 * readLength)
    bytes = depth
    filledAt = now
  }

  /// Nanoseconds to wait after `length` bytes were read; 0 when the next read may follow at once.
  mutating func delay(after length: Int, at now: NIODeadline) -> Int64 {
    bytes = min(depth, bytes + Double((now - filledAt).nanoseconds) * bytesPerNanosecond) - Double(length)
    filledAt = now
    guard bytes < readLength else { return 0 }
    // At least a fifth of the depth: one read at a time would need a timer for each.
    let wanted = max(readLength, depth / 5)
    return max(1, Int64(((wanted - bytes) / bytesPerNanosecond).rounded(.up)))
  }

  /// The bytes of 2 ms at most; a power of two, as a socket's reads are not cut to other lengths.
  static func readLength(_ rate: Int) -> Int {
    let most = min(65_536, max(256, rate / 500))
    return 1 << (Int.bitWidth - 1 - most.leadingZeroBitCount)
  }
}
